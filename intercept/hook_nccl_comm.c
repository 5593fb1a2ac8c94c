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

static bool keep(void *buffer, size_t bytes)
{
	CUresult rc;

	if (!ts_enter())
		return true;
	rc = ts_agent_pin_registered((CUdeviceptr)(uintptr_t)buffer, bytes);
	ts_leave();
	return rc == CUDA_SUCCESS;
}

#define REGISTERED(symbol, parameters, arguments)                              \
	extern int ts_hook_##symbol parameters __asm__(#symbol)                \
	        __attribute__((visibility("default")));                        \
	int ts_hook_##symbol parameters                                        \
	{                                                                      \
		int(*real) parameters = (int(*) parameters)ts_library_real(    \
		        TS_LIBRARY_##symbol, __builtin_return_address(0));     \
                                                                               \
		if (!real)                                                     \
			return STATUS_INTERNAL_ERROR;                          \
		if (!keep(buffer, bytes))                                      \
			return STATUS_CUDA_ERROR;                              \
		return real arguments;                                         \
	}
#define REGISTERED_BOTH(name, parameters, arguments)                           \
	REGISTERED(nccl##name, parameters, arguments)                          \
	REGISTERED(pnccl##name, parameters, arguments)

REGISTERED_BOTH(CommRegister,
        (void *comm, void *buffer, size_t bytes, void **ret_handle),
        (comm, buffer, bytes, ret_handle))
REGISTERED_BOTH(CommWindowRegister,
        (void *comm, void *buffer, size_t bytes, void **ret_window, int flags),
        (comm, buffer, bytes, ret_window, flags))
