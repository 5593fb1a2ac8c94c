/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * NCCL's communicators and registered buffers. What a communicator allocates
 * is left to the driver (hook_nccl.h); one that does not block is noted; what
 * is registered stays where it is, since network cards know it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "intercept/guard.h"
#include "intercept/hook_nccl.h"
#include "intercept/library.h"

/* ncclResult_t */
#define STATUS_CUDA_ERROR     1
#define STATUS_INTERNAL_ERROR 3

#define HOOK(symbol)                                                           \
	extern symbol##_call ts_hook_##symbol __asm__(#symbol)                 \
	        __attribute__((visibility("default")))

#define REAL(symbol)                                                           \
	((symbol##_call *)ts_library_real(                                     \
	        TS_LIBRARY_##symbol, __builtin_return_address(0)))

/* How ncclConfig_t begins, in all versions. */
struct config {
	size_t size;
	unsigned int magic, version;
	int blocking;
};

/* ncclUniqueId, which is passed by value. */
struct unique_id {
	char internal[128];
};

/* A communicator is about to be made, with @config where it has one. */
static bool enter(const struct config *config)
{
	const char *blocking = getenv("NCCL_COMM_BLOCKING");

	if ((config && !config->blocking) ||
	        (blocking && !strcmp(blocking, "0")))
		ts_nccl_launches_elsewhere();
	return ts_nccl_enter();
}

typedef int ncclCommInitAll_call(void **comms, int count, const int *devices);
HOOK(ncclCommInitAll);

int ts_hook_ncclCommInitAll(void **comms, int count, const int *devices)
{
	ncclCommInitAll_call *real = REAL(ncclCommInitAll);
	bool entered;
	int status;

	if (!real)
		return STATUS_INTERNAL_ERROR;
	entered = enter(NULL);
	status = real(comms, count, devices);
	ts_nccl_leave(entered);
	return status;
}

typedef int ncclCommInitRank_call(
        void **comm, int ranks, struct unique_id id, int rank);
HOOK(ncclCommInitRank);

int ts_hook_ncclCommInitRank(
        void **comm, int ranks, struct unique_id id, int rank)
{
	ncclCommInitRank_call *real = REAL(ncclCommInitRank);
	bool entered;
	int status;

	if (!real)
		return STATUS_INTERNAL_ERROR;
	entered = enter(NULL);
	status = real(comm, ranks, id, rank);
	ts_nccl_leave(entered);
	return status;
}

typedef int ncclCommInitRankConfig_call(
        void **comm, int ranks, struct unique_id id, int rank, void *config);
HOOK(ncclCommInitRankConfig);

int ts_hook_ncclCommInitRankConfig(
        void **comm, int ranks, struct unique_id id, int rank, void *config)
{
	ncclCommInitRankConfig_call *real = REAL(ncclCommInitRankConfig);
	bool entered;
	int status;

	if (!real)
		return STATUS_INTERNAL_ERROR;
	entered = enter(config);
	status = real(comm, ranks, id, rank, config);
	ts_nccl_leave(entered);
	return status;
}

typedef int ncclCommInitRankScalable_call(void **comm, int ranks, int rank,
        int id_count, void *ids, void *config);
HOOK(ncclCommInitRankScalable);

int ts_hook_ncclCommInitRankScalable(
        void **comm, int ranks, int rank, int id_count, void *ids, void *config)
{
	ncclCommInitRankScalable_call *real = REAL(ncclCommInitRankScalable);
	bool entered;
	int status;

	if (!real)
		return STATUS_INTERNAL_ERROR;
	entered = enter(config);
	status = real(comm, ranks, rank, id_count, ids, config);
	ts_nccl_leave(entered);
	return status;
}

typedef int ncclCommSplit_call(
        void *comm, int color, int key, void **ret_comm, void *config);
HOOK(ncclCommSplit);

int ts_hook_ncclCommSplit(
        void *comm, int color, int key, void **ret_comm, void *config)
{
	ncclCommSplit_call *real = REAL(ncclCommSplit);
	bool entered;
	int status;

	if (!real)
		return STATUS_INTERNAL_ERROR;
	entered = enter(config);
	status = real(comm, color, key, ret_comm, config);
	ts_nccl_leave(entered);
	return status;
}

typedef int ncclCommShrink_call(void *comm, int *excluded, int count,
        void **ret_comm, void *config, int flags);
HOOK(ncclCommShrink);

int ts_hook_ncclCommShrink(void *comm, int *excluded, int count,
        void **ret_comm, void *config, int flags)
{
	ncclCommShrink_call *real = REAL(ncclCommShrink);
	bool entered;
	int status;

	if (!real)
		return STATUS_INTERNAL_ERROR;
	entered = enter(config);
	status = real(comm, excluded, count, ret_comm, config, flags);
	ts_nccl_leave(entered);
	return status;
}

/* -------------------------------------------------------------- registering */

static bool keep(void *buffer, size_t bytes)
{
	CUresult rc;

	if (!ts_enter())
		return true;
	rc = ts_agent_pin_registered((CUdeviceptr)(uintptr_t)buffer, bytes);
	ts_leave();
	return rc == CUDA_SUCCESS;
}

typedef int ncclCommRegister_call(
        void *comm, void *buffer, size_t bytes, void **ret_handle);
HOOK(ncclCommRegister);

int ts_hook_ncclCommRegister(
        void *comm, void *buffer, size_t bytes, void **ret_handle)
{
	ncclCommRegister_call *real = REAL(ncclCommRegister);

	if (!real)
		return STATUS_INTERNAL_ERROR;
	if (!keep(buffer, bytes))
		return STATUS_CUDA_ERROR;
	return real(comm, buffer, bytes, ret_handle);
}

typedef int ncclCommWindowRegister_call(
        void *comm, void *buffer, size_t bytes, void **ret_window, int flags);
HOOK(ncclCommWindowRegister);

int ts_hook_ncclCommWindowRegister(
        void *comm, void *buffer, size_t bytes, void **ret_window, int flags)
{
	ncclCommWindowRegister_call *real = REAL(ncclCommWindowRegister);

	if (!real)
		return STATUS_INTERNAL_ERROR;
	if (!keep(buffer, bytes))
		return STATUS_CUDA_ERROR;
	return real(comm, buffer, bytes, ret_window, flags);
}
