/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kernels and captured work on memory: what the driver takes for an access of
 * a kernel it does not know, and when that is illegal.
 */
#include "mem_client.h"

#include "kernel_client.h"

#include "tests/simgpu/driver/simgpu_private.h"

#define READWRITE CU_MEM_ACCESS_FLAGS_PROT_READWRITE

static CUfunction kernel;

/* A context with one kernel of two pointers that no table knows. */
static void start(void)
{
	client_start();
	kernel = client_kernel("unheard_of", 2);
}

static CUresult launch(CUdeviceptr a, CUdeviceptr b)
{
	void *params[] = {&a, &b};

	return cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
}

/* A reservation of 4 pages of which the first and the last are mapped. */
static CUdeviceptr half_mapped(void)
{
	CUmemGenericAllocationHandle chunk = client_chunk(PAGE);
	CUdeviceptr va = client_reserve(4 * PAGE);

	OK(cuMemMap(va, PAGE, 0, chunk, 0));
	OK(cuMemMap(va + 3 * PAGE, PAGE, 0, chunk, 0));
	OK(client_access(va, PAGE, READWRITE));
	OK(client_access(va + 3 * PAGE, PAGE, READWRITE));
	return va;
}

START_TEST(mapped_memory_may_be_touched)
{
	CUdeviceptr va, plain;

	start();
	va = half_mapped();
	OK(cuMemAlloc(&plain, 1000));
	OK(launch(va + 100, plain));
	OK(launch(va + 3 * PAGE, plain + 992));
	OK(cuCtxSynchronize());
	/* A number that looks like no address is none. */
	OK(launch(va, 12345));
	OK(cuCtxSynchronize());
}
END_TEST

START_TEST(unmapped_memory_is_700_when_somebody_looks)
{
	CUdeviceptr va;

	start();
	va = half_mapped();
	OK(launch(va, va + PAGE));
	FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	FAILS(launch(va, va), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(live_block_with_an_unmapped_page_is_700)
{
	CUdeviceptr va;

	start();
	va = half_mapped();
	simgpu_block(0, va, PAGE);
	simgpu_block(0, va + PAGE, 3 * PAGE);
	OK(launch(va, 0));
	OK(cuCtxSynchronize());
	OK(launch(va, va + 3 * PAGE)); /* from there to the end: mapped */
	OK(cuCtxSynchronize());
	OK(launch(va, va + 2 * PAGE));
	FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(words_that_point_into_dead_blocks_are_no_accesses)
{
	CUdeviceptr va;

	start();
	va = half_mapped();
	simgpu_block(0, va, PAGE);
	simgpu_block(0, va + PAGE, 2 * PAGE);
	simgpu_block(0, va + PAGE, -(int64_t)(2 * PAGE));
	OK(launch(va, va + PAGE));
	OK(launch(va, va + 3 * PAGE + 5));
	OK(cuCtxSynchronize());
	/* A new block in their place is alive again. */
	simgpu_block(0, va + 2 * PAGE, PAGE);
	OK(launch(va, va + 2 * PAGE));
	FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(freed_allocation_is_no_access)
{
	CUdeviceptr a, b;

	start();
	OK(cuMemAlloc(&a, 4 * MIB));
	OK(cuMemAlloc(&b, 4 * MIB));
	OK(cuMemFree(b));
	OK(launch(a, b));
	OK(cuCtxSynchronize());
}
END_TEST

START_TEST(host_memory_is_touched_where_the_device_sees_it)
{
	CUdeviceptr managed;
	void *pinned;

	start();
	OK(cuMemHostAlloc(&pinned, MIB, 0));
	OK(cuMemAllocManaged(&managed, MIB, CU_MEM_ATTACH_GLOBAL));
	OK(launch((CUdeviceptr)(uintptr_t)pinned, managed + 512));
	OK(cuCtxSynchronize());
	OK(cuMemFree(managed));
	OK(cuMemFreeHost(pinned));
}
END_TEST

START_TEST(captured_copies_and_memsets_are_replayed)
{
	CUgraphNode nodes[8];
	CUgraphExec exec;
	CUgraph graph;
	CUstream stream;
	CUdeviceptr d;
	unsigned char *p;
	size_t n = 8;

	start();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&d, MIB));
	OK(cuMemHostAlloc((void **)&p, MIB, 0));
	memset(p, 7, MIB);
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	OK(cuMemsetD8Async(d, 0, MIB, stream));
	OK(cuMemcpyDtoHAsync(p, d, MIB / 2, stream));
	INVALID(cuMemcpyDtoHAsync(p, d, 2 * MIB, stream));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphGetNodes(graph, nodes, &n));
	ck_assert_uint_eq(n, 2);
	ck_assert_int_eq(p[0], 7); /* nothing has run yet */
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	ck_assert_int_eq(p[0], 0);
	ck_assert_int_eq(p[MIB / 2], 7);
	p[0] = 9;
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	ck_assert_int_eq(p[0], 0);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuMemFreeHost(p));
	OK(cuMemFree(d));
	OK(cuStreamDestroy(stream));
}
END_TEST

START_TEST(unsafe_calls_break_a_capture)
{
	CUstream stream;
	CUgraph graph;
	CUdeviceptr p, va;

	start();
	OK(cuMemAlloc(&p, MIB));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int call = 0; call < 4; call++) {
		OK(cuStreamBeginCapture(
		        stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
		OK(cuMemsetD8Async(p, 1, MIB, stream));
		if (call == 0)
			FAILS(cuMemAlloc(&va, MIB),
			        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		else if (call == 1)
			FAILS(cuMemFree(p),
			        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		else if (call == 2)
			FAILS(cuMemsetD8(p, 1, MIB),
			        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		else
			FAILS(cuMemAddressReserve(&va, PAGE, 0, 0, 0),
			        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		FAILS(cuStreamEndCapture(stream, &graph),
		        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	}
	/* Allowed where the capturing thread asks for it. */
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuMemAlloc(&va, MIB));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphDestroy(graph));
	OK(cuMemFree(va));
	OK(cuMemFree(p));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("kernel");

	tcase_add_test(tests, mapped_memory_may_be_touched);
	tcase_add_test(tests, unmapped_memory_is_700_when_somebody_looks);
	tcase_add_test(tests, live_block_with_an_unmapped_page_is_700);
	tcase_add_test(
	        tests, words_that_point_into_dead_blocks_are_no_accesses);
	tcase_add_test(tests, freed_allocation_is_no_access);
	tcase_add_test(tests, host_memory_is_touched_where_the_device_sees_it);
	tcase_add_test(tests, captured_copies_and_memsets_are_replayed);
	tcase_add_test(tests, unsafe_calls_break_a_capture);
	return client_run(tests, "mem_kernel");
}
