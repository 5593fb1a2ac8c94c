/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stands in for NCCL in one process of two ranks of which the other does
 * nothing: calls are collected, and launched by the end of the group as one
 * kernel that is told of a table of the library's own, no buffer. A call fails
 * with ncclSystemError where a buffer is not there as the kernel starts. A
 * communicator that does not block launches on another thread.
 */
#include <pthread.h>
#include <stdlib.h>

#include "fake_api.h"
#include "fake_kernel.h"

#define TABLE_BYTES (1u << 20)
#define BUFFERS_MAX 64
#define FLOAT_BYTES 4
#define SHOWN       __attribute__((visibility("default")))

struct ncclComm {
	CUdeviceptr table;
	bool blocking;
	int ranks;
};

static __thread struct {
	struct ncclComm *comm;
	CUdeviceptr addresses[BUFFERS_MAX];
	size_t bytes[BUFFERS_MAX];
	int count, depth;
	CUstream stream;
} queue;

struct work {
	CUcontext context;
	struct ncclComm *comm;
	CUdeviceptr addresses[BUFFERS_MAX];
	size_t bytes[BUFFERS_MAX];
	int count;
	CUstream stream;
	int result;
};

static void *launch(void *data)
{
	struct work *work = data;

	FAKE_DRIVER(cuCtxSetCurrent)(work->context);
	work->result = ncclUnhandledCudaError;
	if (fake_launch("ncclDevKernel_Generic", work->comm->table,
	            work->stream) != CUDA_SUCCESS)
		return NULL;
	work->result = ncclSuccess;
	for (int i = 0; i < work->count; i++)
		if (!fake_is_there(work->addresses[i], work->bytes[i]))
			work->result = ncclSystemError;
	return NULL;
}

static int launch_all(void)
{
	struct work work = {.comm = queue.comm,
	        .count = queue.count,
	        .stream = queue.stream};
	pthread_t thread;

	if (!queue.count)
		return ncclSuccess;
	for (int i = 0; i < queue.count; i++) {
		work.addresses[i] = queue.addresses[i];
		work.bytes[i] = queue.bytes[i];
	}
	queue.count = 0;
	FAKE_DRIVER(cuCtxGetCurrent)(&work.context);
	if (work.comm->blocking) {
		launch(&work);
	} else {
		pthread_create(&thread, NULL, launch, &work);
		pthread_join(thread, NULL);
	}
	return work.result;
}

static void add(const void *buffer, size_t floats)
{
	if (!buffer || queue.count == BUFFERS_MAX)
		return;
	queue.addresses[queue.count] = (CUdeviceptr)buffer;
	queue.bytes[queue.count++] = floats * FLOAT_BYTES;
}

static int enqueue(struct ncclComm *comm, const void *sent, size_t sent_floats,
        const void *received, size_t received_floats, void *stream)
{
	queue.comm = comm;
	queue.stream = (CUstream)stream;
	add(sent, sent_floats);
	add(received, received_floats);
	return queue.depth ? ncclSuccess : launch_all();
}

SHOWN int ncclGroupStart(void)
{
	queue.depth++;
	return ncclSuccess;
}

SHOWN int ncclGroupEnd(void)
{
	return --queue.depth ? ncclSuccess : launch_all();
}

static int make(ncclComm_t *comm, int ranks, bool blocking)
{
	struct ncclComm *made = calloc(1, sizeof(*made));

	if (!made || FAKE_DRIVER(cuMemAlloc)(&made->table, TABLE_BYTES) !=
	                     CUDA_SUCCESS)
		return ncclUnhandledCudaError;
	made->blocking = blocking;
	made->ranks = ranks;
	*comm = made;
	return ncclSuccess;
}

SHOWN int ncclCommInitRank(
        ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
	/* The id comes by value, as 128 bytes: all of them. */
	if (id.internal[0] != 1 || id.internal[127] != 2 || rank)
		return ncclInvalidArgument;
	return make(comm, ranks, true);
}

SHOWN int ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id,
        int rank, ncclConfig_t *config)
{
	if (id.internal[0] != 1 || id.internal[127] != 2 || rank)
		return ncclInvalidArgument;
	return make(comm, ranks, config->blocking);
}

SHOWN int ncclCommCount(ncclComm_t comm, int *count)
{
	*count = comm->ranks;
	return ncclSuccess;
}

/* Whoever registers what may go is refused: it would be reached later. */
SHOWN int ncclCommRegister(
        ncclComm_t comm, void *buffer, size_t bytes, void **handle)
{
	(void)comm;
	(void)buffer;
	(void)bytes;
	(void)handle;
	return ncclSystemError;
}

SHOWN int ncclCommDeregister(ncclComm_t comm, void *handle)
{
	(void)comm;
	(void)handle;
	return ncclInvalidArgument;
}

SHOWN int ncclCommWindowRegister(
        ncclComm_t comm, void *buffer, size_t bytes, void **window, int flags)
{
	(void)flags;
	*window = comm;
	return fake_is_there((CUdeviceptr)buffer, bytes) ? ncclSuccess
	                                                 : ncclSystemError;
}

SHOWN int ncclAllReduce(const void *sent, void *received, size_t count,
        int type, int operation, ncclComm_t comm, void *stream)
{
	(void)type;
	(void)operation;
	return enqueue(comm, sent, count, received, count, stream);
}

SHOWN int ncclAllGather(const void *sent, void *received, size_t count,
        int type, ncclComm_t comm, void *stream)
{
	(void)type;
	return enqueue(comm, sent, count, received, count * (size_t)comm->ranks,
	        stream);
}

/* As the real one does: a group of its own, by the public names. */
SHOWN int ncclSend(const void *sent, size_t count, int type, int peer,
        ncclComm_t comm, void *stream)
{
	(void)type;
	(void)peer;
	ncclGroupStart();
	enqueue(comm, sent, count, NULL, 0, stream);
	return ncclGroupEnd();
}

SHOWN int ncclRecv(void *received, size_t count, int type, int peer,
        ncclComm_t comm, void *stream)
{
	(void)type;
	(void)peer;
	ncclGroupStart();
	enqueue(comm, NULL, 0, received, count, stream);
	return ncclGroupEnd();
}

/* The same once more, as NCCL has it for tools. */
#define TOOL_NAME(name)                                                        \
	extern __typeof__(name) p##name                                        \
	        __attribute__((alias(#name), visibility("default")))

TOOL_NAME(ncclGroupStart);
TOOL_NAME(ncclGroupEnd);
TOOL_NAME(ncclCommInitRank);
TOOL_NAME(ncclAllReduce);
TOOL_NAME(ncclSend);
TOOL_NAME(ncclRecv);
