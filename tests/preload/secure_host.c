/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that is linked with the library, so that it has it even where
 * LD_PRELOAD is not heard: made setuid by the test, it is a real case of
 * AT_SECURE. Prints what the loader says of that, and whether the work went
 * well.
 */
#include <cuda.h>
#include <stdio.h>
#include <sys/auxv.h>

#define BYTES 4096u

static CUresult work(unsigned int *ret_value)
{
	CUdeviceptr address;
	CUcontext context;
	CUresult rc = cuInit(0);

	if (rc == CUDA_SUCCESS)
		rc = cuDevicePrimaryCtxRetain(&context, 0);
	if (rc == CUDA_SUCCESS)
		rc = cuCtxSetCurrent(context);
	if (rc == CUDA_SUCCESS)
		rc = cuMemAlloc(&address, BYTES);
	if (rc == CUDA_SUCCESS)
		rc = cuMemsetD8(address, 7, BYTES);
	if (rc == CUDA_SUCCESS)
		rc = cuMemcpyDtoH(ret_value, address, sizeof(*ret_value));
	return rc;
}

int main(void)
{
	unsigned int value = 0;
	CUresult rc = work(&value);

	printf("secure %lu result %d value %x\n", getauxval(AT_SECURE), (int)rc,
	        value);
	return rc != CUDA_SUCCESS;
}
