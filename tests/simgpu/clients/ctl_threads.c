/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Many host threads on one device at once: what each does comes out right and
 * the totals add up. Meant for the thread sanitizer too.
 */
#include "ctl_client.h"

#include "tests/simgpu/driver/simgpu_private.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 6
#define ROUNDS  200

struct worker {
	pthread_t thread;
	CUcontext ctx;
	CUevent other; /* recorded by another thread, again and again */
	CUresult error;
	atomic_uint *calls;
};

static void called(void *arg)
{
	++*(atomic_uint *)arg;
}

/* One round of everything a thread may do; the first error. */
static CUresult work(const struct worker *worker, CUstream stream,
        CUdeviceptr va, void *pinned, CUevent event)
{
	CUresult r;

	if ((r = cuMemcpyHtoDAsync_v2(va, pinned, 4096, stream)) ||
	        (r = cuMemsetD8Async(va, 1, 4096, stream)) ||
	        (r = cuStreamWaitEvent(stream, worker->other, 0)) ||
	        (r = cuLaunchHostFunc(stream, called, worker->calls)) ||
	        (r = cuEventRecord(event, stream)) ||
	        (r = cuMemcpyDtoHAsync_v2_ptsz(pinned, va, 4096, NULL)))
		return r;
	return cuEventSynchronize(event);
}

static void *run(void *arg)
{
	struct worker *worker = arg;
	CUstream stream;
	CUdeviceptr va;
	CUevent event;
	void *pinned;
	CUresult r;

	if ((r = cuCtxSetCurrent(worker->ctx)) ||
	        (r = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) ||
	        (r = cuMemAlloc_v2(&va, 4096)) ||
	        (r = cuMemAllocHost_v2(&pinned, 4096)) ||
	        (r = cuEventCreate(&event, 0)))
		goto out;
	for (int i = 0; i < ROUNDS && !r; i++)
		r = work(worker, stream, va, pinned, event);
	if (!r)
		r = cuStreamDestroy_v2(stream);
	if (!r)
		r = cuMemFreeHost(pinned);
	if (!r)
		r = cuMemFree_v2(va);
out:
	worker->error = r;
	return NULL;
}

/* Written under the simulator's lock, read when all threads have ended. */
static uint64_t records, host_functions;

static void sink(const struct simgpu_activity *record, void *user)
{
	records++;
	host_functions += record->kind == 6; /* SG_OP_HOST_FN */
	ck_assert_uint_ge(record->end_ns, record->start_ns);
}

START_TEST(threads_share_a_device)
{
	struct worker workers[THREADS] = {0};
	atomic_uint calls = 0;
	CUcontext ctx;
	CUevent other;

	ctx = client_start("a100-80g-pcie4");
	simgpu_set_activity_sink(sink, NULL);
	other = client_mark(NULL);
	for (int i = 0; i < THREADS; i++) {
		workers[i].ctx = ctx;
		workers[i].other = other;
		workers[i].calls = &calls;
		ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, run,
		                         &workers[i]),
		        0);
	}
	for (int i = 0; i < ROUNDS; i++)
		OK(cuEventRecord(other, NULL));
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		OK(workers[i].error);
	}
	OK(cuCtxSynchronize());
	simgpu_set_activity_sink(NULL, NULL);
	ck_assert_uint_eq(calls, THREADS * ROUNDS);
	ck_assert_uint_eq(host_functions, THREADS * ROUNDS);
	ck_assert_uint_eq(records, 4 * THREADS * ROUNDS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl_threads");
	TCase *tests = tcase_create("all");

	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, threads_share_a_device);
	suite_add_tcase(suite, tests);
	return client_run(suite);
}
