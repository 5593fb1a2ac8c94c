/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that may not read memory by process_vm_readv(), as in some
 * containers, copies from device memory that it mapped itself.
 */
#include <cuda.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#define BYTES  (2u << 20)
#define COPIED 4096u

static int check(CUresult result, const char *what)
{
	if (result != CUDA_SUCCESS)
		printf("%s: error %d\n", what, (int)result);
	return result != CUDA_SUCCESS;
}

static int forbid(void)
{
	struct sock_filter filter[] = {
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
	                offsetof(struct seccomp_data, nr)),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {
	        .len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int map(CUdeviceptr *ret_address)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemAccessDesc access = {.location = prop.location,
	        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;

	return check(cuMemAddressReserve(ret_address, BYTES, 0, 0, 0),
	               "reserve") ||
	       check(cuMemCreate(&handle, BYTES, &prop, 0), "create") ||
	       check(cuMemMap(*ret_address, BYTES, 0, handle, 0), "map") ||
	       check(cuMemSetAccess(*ret_address, BYTES, &access, 1), "open");
}

int main(void)
{
	unsigned char bytes[COPIED];
	CUdeviceptr mapped, plain;
	CUcontext context;

	if (forbid()) {
		puts("cannot forbid it");
		return 77;
	}
	if (check(cuInit(0), "init") ||
	        check(cuDevicePrimaryCtxRetain(&context, 0), "context") ||
	        check(cuCtxSetCurrent(context), "current") ||
	        check(cuMemAlloc(&plain, BYTES), "allocate") || map(&mapped) ||
	        check(cuMemsetD8(mapped, 3, COPIED), "set") ||
	        check(cuMemcpyDtoD(plain, mapped, COPIED), "across") ||
	        check(cuMemcpyDtoH(bytes, mapped, COPIED), "down"))
		return 1;
	puts("done");
	return 0;
}
