/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that has the agent and its wrappers in it, for sanitizers, under
 * which it cannot be preloaded: threads that work on streams of their own with
 * more memory than the limit leaves. They allocate and free while others work,
 * use pools, virtual memory and graphs, ask about memory and try to share it.
 * Every buffer holds what its thread has written. Ends with 0 where all went
 * well.
 *
 * Usage: preload_threads [ROUNDS]
 */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "tests/preload/touch.h"

#define THREADS      3
#define BUFFERS      3
#define BUFFER_BYTES (4u << 20)
#define WORDS        (BUFFER_BYTES / 4)
#define PIECE_WORDS  (WORDS / 4) /* of uploads that keep their bytes */
#define POOL_BYTES   (1u << 20)
#define TABLE_BYTES  512
#define ROUNDS       16
#define AGAIN        3 /* graphs, where no table was found in one */

static CUcontext context;
static CUfunction kernel;
static int rounds = ROUNDS;

struct worker {
	pthread_t thread;
	unsigned int number;
	CUdeviceptr buffers[BUFFERS];
	unsigned int values[BUFFERS];
	CUstream stream;
	unsigned int *host; /* page-locked */
};

/* Of all threads together: no two values are the same. */
static unsigned int next_value(void)
{
	static unsigned int last;

	return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

static void fill(struct worker *worker, int at)
{
	worker->values[at] = next_value();
	MUST(cuMemsetD32Async(worker->buffers[at], worker->values[at], WORDS,
	        worker->stream));
}

static void check(struct worker *worker, int at)
{
	MUST(cuMemcpyDtoHAsync(worker->host, worker->buffers[at], BUFFER_BYTES,
	        worker->stream));
	MUST(cuStreamSynchronize(worker->stream));
	for (unsigned int i = 0; i < WORDS; i += WORDS - 1)
		if (worker->host[i] != worker->values[at]) {
			printf("thread %u, buffer %d: %u, not %u\n",
			        worker->number, at, worker->host[i],
			        worker->values[at]);
			exit(1);
		}
}

static void renew(struct worker *worker, int at)
{
	MUST(cuMemFree(worker->buffers[at]));
	MUST(cuMemAlloc(&worker->buffers[at], BUFFER_BYTES));
	fill(worker, at);
}

/* Memory that is not placed, but counted. */
static void use_pool(struct worker *worker)
{
	CUdeviceptr address;

	MUST(cuMemAllocAsync(&address, POOL_BYTES, worker->stream));
	MUST(cuMemsetD8Async(address, 1, POOL_BYTES, worker->stream));
	MUST(cuMemFreeAsync(address, worker->stream));
}

static void ask(struct worker *worker)
{
	CUipcMemHandle handle;
	size_t left, total;
	int type;

	MUST(cuMemGetInfo(&left, &total));
	MUST(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
	        worker->buffers[0] + 4));
	if (left > total || type != CU_MEMORYTYPE_DEVICE ||
	        cuIpcGetMemHandle(&handle, worker->buffers[0]) !=
	                CUDA_ERROR_NOT_SUPPORTED) {
		printf("thread %u: wrong answers\n", worker->number);
		exit(1);
	}
}

static void copy(struct worker *worker, int from, int to)
{
	MUST(cuMemcpyDtoDAsync(worker->buffers[to], worker->buffers[from],
	        BUFFER_BYTES, worker->stream));
	worker->values[to] = worker->values[from];
}

static void upload(struct worker *worker, int at)
{
	worker->values[at] = next_value();
	MUST(cuStreamSynchronize(worker->stream));
	for (unsigned int i = 0; i < WORDS; i++)
		worker->host[i] = worker->values[at];
	for (unsigned int i = 0; i < WORDS; i += PIECE_WORDS)
		MUST(cuMemcpyHtoDAsync(worker->buffers[at] + 4ull * i,
		        worker->host + i, 4 * PIECE_WORDS, worker->stream));
}

static void launch(struct worker *worker, CUdeviceptr address)
{
	void *params[] = {&address};

	MUST(cuLaunchKernel(
	        kernel, 1, 1, 1, 32, 1, 1, 0, worker->stream, params, NULL));
}

/*
 * What the graph uses stays until it is gone. A kernel of it writes a table, in
 * which the address of another buffer turns up: that stays until it is freed.
 */
static void replay(struct worker *worker, int at, int named)
{
	CUgraphExec instance;
	CUdeviceptr table;
	CUgraph graph;

	MUST(cuMemAlloc(&table, TABLE_BYTES));
	memcpy(worker->host, &worker->buffers[named], sizeof(CUdeviceptr));
	/* Nothing makes room for them during the capture: they are there. */
	fill(worker, at);
	launch(worker, table);
	MUST(cuStreamBeginCapture(
	        worker->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	fill(worker, at);
	launch(worker, table);
	MUST(cuMemcpyHtoDAsync(
	        table, worker->host, sizeof(CUdeviceptr), worker->stream));
	MUST(cuStreamEndCapture(worker->stream, &graph));
	MUST(cuGraphInstantiate(&instance, graph, 0));
	for (int i = 0; i < 2; i++)
		MUST(cuGraphLaunch(instance, worker->stream));
	MUST(cuStreamSynchronize(worker->stream));
	MUST(cuGraphExecDestroy(instance));
	MUST(cuGraphDestroy(graph));
	MUST(cuMemFree(table));
	check(worker, named);
	renew(worker, named);
}

static void *work(void *data)
{
	struct worker *worker = data;
	CUdeviceptr scratch;

	MUST(cuCtxSetCurrent(context));
	MUST(cuStreamCreate(&worker->stream, CU_STREAM_NON_BLOCKING));
	MUST(cuMemHostAlloc((void **)&worker->host, BUFFER_BYTES, 0));
	MUST(cuMemAlloc(&scratch, 512));
	for (int i = 0; i < BUFFERS; i++) {
		MUST(cuMemAlloc(&worker->buffers[i], BUFFER_BYTES));
		fill(worker, i);
	}
	for (int round = 0; round < rounds; round++) {
		int at = round % BUFFERS, next = (round + 1) % BUFFERS;

		launch(worker, scratch);
		copy(worker, at, next);
		check(worker, next);
		upload(worker, at);
		check(worker, at);
		if (round % 4 == 0)
			renew(worker, next);
		if (round % 4 == 1)
			use_pool(worker);
		if (round % 4 == 2)
			ask(worker);
		/* One thread: the others go on beside a capture. */
		if (worker->number == 0 && round % 16 == 8)
			replay(worker, next, at);
		check(worker, (round + 2) % BUFFERS);
	}
	/*
	 * Where memory is short a table is looked into later, and the one of
	 * the round above is freed by then: there are fewer others at work
	 * here.
	 */
	for (int i = 0; i < AGAIN && worker->number == 0 &&
	                !atomic_load(&ts_agent.tables.pinned);
	        i++)
		replay(worker, 0, 1);
	for (int i = 0; i < BUFFERS; i++)
		MUST(cuMemFree(worker->buffers[i]));
	MUST(cuMemFree(scratch));
	MUST(cuMemFreeHost(worker->host));
	MUST(cuStreamDestroy(worker->stream));
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS];

	if (argc > 1)
		rounds = atoi(argv[1]);
	start_touch(&context, &kernel);
	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i].number = i;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 1;
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	if (!atomic_load(&ts_agent.tables.pinned)) {
		printf("no table was found in a graph\n");
		return 1;
	}
	return 0;
}
