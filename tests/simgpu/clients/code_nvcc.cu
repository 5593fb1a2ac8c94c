/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kernels whose layouts code_nvcc.c knows; compiled where there is nvcc. */
struct table {
	void *entry[600];
};

__device__ int counter = 5;
__device__ float scratch[100];
__constant__ float factors[10];

extern "C" __global__ void mixed(float *out, int n, short shift)
{
	__shared__ float tile[256];

	tile[threadIdx.x] = out[n] + scratch[n] + factors[n] + counter;
	__syncthreads();
	out[shift] = tile[0];
}

extern "C" __global__ void large(struct table table, int n)
{
	((int *)table.entry[n])[0] = n;
}

extern "C" __global__ void __launch_bounds__(128) bounded(int *out)
{
	int local[100];

	for (int i = 0; i < 100; i++)
		local[i] = out[i];
	out[0] = local[out[1]];
}
