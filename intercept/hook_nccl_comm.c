/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * NCCL's communicators and registered buffers. What a communicator allocates
 * is left to the driver (hook_nccl.h); one that does not block is noted; what
 * is a window stays where it is, since other ranks reach into it.
 *
 * Registering a buffer only spares NCCL a copy through its own ones. PyTorch
 * 2.15 registers whatever its allocator takes, so that nothing could move: of
 * memory that moves NCCL is not told.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/base/log.h"
#include "intercept/guard.h"
#include "intercept/hook_nccl.h"
#include "intercept/library.h"

/* ncclResult_t */
#define STATUS_SUCCESS        0
#define STATUS_CUDA_ERROR     1
#define STATUS_INTERNAL_ERROR 3

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

/* @config: what names the configuration among the arguments, or NULL. */
#define COMMUNICATOR(symbol, parameters, arguments, config)                    \
	extern int ts_hook_##symbol parameters __asm__(#symbol)                \
	        __attribute__((visibility("default")));                        \
	int ts_hook_##symbol parameters                                        \
	{                                                                      \
		int(*real) parameters = (int(*) parameters)ts_library_real(    \
		        TS_LIBRARY_##symbol, __builtin_return_address(0));     \
		bool entered;                                                  \
		int status;                                                    \
                                                                               \
		if (!real)                                                     \
			return STATUS_INTERNAL_ERROR;                          \
		entered = enter(config);                                       \
		status = real arguments;                                       \
		ts_nccl_leave(entered);                                        \
		return status;                                                 \
	}
/* Under both names: pnccl is that for tools. */
#define COMMUNICATORS(name, parameters, arguments, config)                     \
	COMMUNICATOR(nccl##name, parameters, arguments, config)                \
	COMMUNICATOR(pnccl##name, parameters, arguments, config)

COMMUNICATORS(CommInitAll, (void **comms, int count, const int *devices),
        (comms, count, devices), NULL)
COMMUNICATORS(CommInitRank,
        (void **comm, int ranks, struct unique_id id, int rank),
        (comm, ranks, id, rank), NULL)
COMMUNICATORS(CommInitRankConfig,
        (void **comm, int ranks, struct unique_id id, int rank, void *config),
        (comm, ranks, id, rank, config), config)
COMMUNICATORS(CommInitRankScalable,
        (void **comm, int ranks, int rank, int id_count, void *ids,
                void *config),
        (comm, ranks, rank, id_count, ids, config), config)
COMMUNICATORS(CommSplit,
        (void *comm, int color, int key, void **ret_comm, void *config),
        (comm, color, key, ret_comm, config), config)
COMMUNICATORS(CommShrink,
        (void *comm, int *excluded, int count, void **ret_comm, void *config,
                int flags),
        (comm, excluded, count, ret_comm, config, flags), config)

/* -------------------------------------------------------------- registering */

/* The handle of a buffer of which NCCL was not told. */
static char untold;

typedef int register_call(
        void *comm, void *buffer, size_t bytes, void **ret_handle);
typedef int deregister_call(void *comm, void *handle);
typedef int window_call(
        void *comm, void *buffer, size_t bytes, void **ret_window, int flags);

static bool is_untold(void *buffer)
{
	static atomic_bool said;
	bool moves;

	if (!ts_enter())
		return false;
	moves = ts_agent_moves((CUdeviceptr)(uintptr_t)buffer);
	if (moves && !atomic_exchange(&said, true))
		ts_log(TS_LOG_DEBUG, "memory that moves is not registered with "
		                     "NCCL, which copies through its own");
	ts_leave();
	return moves;
}

static int register_buffer(register_call *real, void *comm, void *buffer,
        size_t bytes, void **ret_handle)
{
	if (!real)
		return STATUS_INTERNAL_ERROR;
	if (!ret_handle || !is_untold(buffer))
		return real(comm, buffer, bytes, ret_handle);
	*ret_handle = &untold;
	return STATUS_SUCCESS;
}

static int deregister_buffer(deregister_call *real, void *comm, void *handle)
{
	if (handle == &untold)
		return STATUS_SUCCESS;
	return real ? real(comm, handle) : STATUS_INTERNAL_ERROR;
}

#define REGISTERING(symbol)                                                    \
	extern register_call ts_hook_##symbol __asm__(#symbol)                 \
	        __attribute__((visibility("default")));                        \
	int ts_hook_##symbol(                                                  \
	        void *comm, void *buffer, size_t bytes, void **ret_handle)     \
	{                                                                      \
		return register_buffer(                                        \
		        (register_call *)ts_library_real(TS_LIBRARY_##symbol,  \
		                __builtin_return_address(0)),                  \
		        comm, buffer, bytes, ret_handle);                      \
	}
REGISTERING(ncclCommRegister)
REGISTERING(pncclCommRegister)

#define DEREGISTERING(symbol)                                                  \
	extern deregister_call ts_hook_##symbol __asm__(#symbol)               \
	        __attribute__((visibility("default")));                        \
	int ts_hook_##symbol(void *comm, void *handle)                         \
	{                                                                      \
		return deregister_buffer((deregister_call *)ts_library_real(   \
		                                 TS_LIBRARY_##symbol,          \
		                                 __builtin_return_address(0)), \
		        comm, handle);                                         \
	}
DEREGISTERING(ncclCommDeregister)
DEREGISTERING(pncclCommDeregister)

static bool keep(void *buffer, size_t bytes)
{
	CUresult rc;

	if (!ts_enter())
		return true;
	rc = ts_agent_pin_registered((CUdeviceptr)(uintptr_t)buffer, bytes);
	ts_leave();
	return rc == CUDA_SUCCESS;
}

#define WINDOW(symbol)                                                         \
	extern window_call ts_hook_##symbol __asm__(#symbol)                   \
	        __attribute__((visibility("default")));                        \
	int ts_hook_##symbol(void *comm, void *buffer, size_t bytes,           \
	        void **ret_window, int flags)                                  \
	{                                                                      \
		window_call *real = (window_call *)ts_library_real(            \
		        TS_LIBRARY_##symbol, __builtin_return_address(0));     \
                                                                               \
		if (!real)                                                     \
			return STATUS_INTERNAL_ERROR;                          \
		if (!keep(buffer, bytes))                                      \
			return STATUS_CUDA_ERROR;                              \
		return real(comm, buffer, bytes, ret_window, flags);           \
	}
WINDOW(ncclCommWindowRegister)
WINDOW(pncclCommWindowRegister)
