/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * NCCL: what collectives send and receive. Their kernels find the buffers in
 * tables of NCCL's own, so the calls say what is used, and every kernel that
 * NCCL launches for them is marked as a collective: its operands are resident,
 * it is counted, and nobody replays it. Calls of a group are launched by the
 * end of the outermost group. A communicator that does not block launches on
 * threads of NCCL's, at any time: once there is one, buffers stay resident till
 * they are freed.
 *
 * What is pending is the calling thread's; no lock. Enums are ints here and
 * structs pointers, so that no header of the library's is needed.
 */
#include "intercept/hook_nccl.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/base/log.h"
#include "agent/declared.h"
#include "intercept/guard.h"
#include "intercept/library.h"
#include "intercept/real_dlsym.h"

/* ncclResult_t */
#define STATUS_SUCCESS        0
#define STATUS_CUDA_ERROR     1
#define STATUS_INTERNAL_ERROR 3

#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))

#define HOOK(symbol)                                                           \
	extern symbol##_call ts_hook_##symbol __asm__(#symbol)                 \
	        __attribute__((visibility("default")))

#define REAL(symbol)                                                           \
	((symbol##_call *)ts_library_real(                                     \
	        TS_LIBRARY_##symbol, __builtin_return_address(0)))

static __thread struct {
	struct ts_operand *operands;
	size_t count, capacity;
	bool lost; /* no memory for all of them */
	unsigned int group;
	bool inside; /* a call that may launch, or make a communicator */
	struct ts_declaration declaration;
} pending INITIAL_EXEC;

/* Some communicator launches on threads of its own. */
static atomic_bool launches_elsewhere;

bool ts_nccl_allocates(const void *caller)
{
	return pending.inside || ts_library_is_nccl(caller);
}

bool ts_nccl_enter(void)
{
	bool entered = !pending.inside;

	pending.inside = true;
	return entered;
}

void ts_nccl_leave(bool entered)
{
	if (entered)
		pending.inside = false;
}

void ts_nccl_launches_elsewhere(void)
{
	atomic_store(&launches_elsewhere, true);
}

/* By ncclDataType_t; 0 for those that came later. */
static size_t type_bytes(int type)
{
	static const size_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

	return type >= 0 && (size_t)type < sizeof(bytes) / sizeof(bytes[0])
	               ? bytes[type]
	               : 0;
}

static bool keep(CUdeviceptr address)
{
	CUresult rc;

	if (!ts_enter())
		return true;
	rc = ts_agent_pin(address);
	ts_leave();
	return rc == CUDA_SUCCESS;
}

static bool reserve_one(void)
{
	size_t capacity = pending.capacity ? 2 * pending.capacity : 16;
	struct ts_operand *larger;

	if (pending.count < pending.capacity)
		return true;
	larger = realloc(pending.operands, capacity * sizeof(*larger));
	if (!larger)
		return false;
	pending.operands = larger;
	pending.capacity = capacity;
	return true;
}

/* False where the buffer cannot be kept: the call must not be made. */
static bool use(
        const void *buffer, size_t elements, int type, enum ts_access access)
{
	CUdeviceptr address = (CUdeviceptr)(uintptr_t)buffer;

	/* NCCL's own calls to itself say what was said before. */
	if (!buffer || !elements || pending.inside)
		return true;
	if (atomic_load_explicit(&launches_elsewhere, memory_order_relaxed) &&
	        !keep(address))
		return false;
	if (!reserve_one()) {
		pending.lost = true;
		return true;
	}
	pending.operands[pending.count++] =
	        (struct ts_operand){.address = address,
	                .bytes = elements * type_bytes(type),
	                .access = access};
	return true;
}

/* True where this call is the one that launches; end_call() follows. */
static bool begin_call(void)
{
	if (pending.inside || pending.group)
		return false;
	pending.inside = true;
	pending.declaration =
	        (struct ts_declaration){.operands = pending.operands,
	                .count = pending.count,
	                .tells_roles = true,
	                .complete = true,
	                .unseen = true,
	                .any = pending.lost,
	                .collective = true};
	ts_declared_begin(&pending.declaration);
	return true;
}

static void end_call(bool begun)
{
	if (!begun)
		return;
	ts_declared_end();
	free(pending.operands);
	memset(&pending, 0, sizeof(pending));
}

typedef int ncclGroupStart_call(void);
typedef int ncclGroupEnd_call(void);
HOOK(ncclGroupStart);
HOOK(ncclGroupEnd);

int ts_hook_ncclGroupStart(void)
{
	ncclGroupStart_call *real = REAL(ncclGroupStart);
	int status = real ? real() : STATUS_INTERNAL_ERROR;

	if (!status && !pending.inside)
		pending.group++;
	return status;
}

int ts_hook_ncclGroupEnd(void)
{
	ncclGroupEnd_call *real = REAL(ncclGroupEnd);
	bool begun;
	int status;

	if (!real)
		return STATUS_INTERNAL_ERROR;
	if (!pending.inside && pending.group)
		pending.group--;
	begun = begin_call();
	status = real();
	end_call(begun);
	return status;
}

/* ------------------------------------------------------------ collectives */

typedef int get_count(const void *comm, int *ret_count);

/* Ranks of @comm; 0, that is whole blocks, where NCCL does not tell. */
static size_t ranks_of(const void *comm, const void *caller)
{
	get_count *get = (get_count *)ts_next_for(caller, "ncclCommCount");
	int count = 0;

	if (pending.inside || !get || get(comm, &count) || count < 0)
		return 0;
	return (size_t)count;
}

/* Written on the root only: on other ranks it keeps what it holds. */
#define IF_ROOT TS_ACCESS_READWRITE

/* Of a buffer that holds a part of every rank; whole, if that is unknown. */
static bool use_all(const void *buffer, size_t elements, int type,
        enum ts_access access, const void *comm, const void *caller)
{
	size_t ranks = ranks_of(comm, caller);

	return ranks ? use(buffer, elements * ranks, type, access)
	             : use(buffer, elements, -1, TS_ACCESS_READWRITE);
}

typedef int ncclAllReduce_call(const void *sent, void *received, size_t count,
        int type, int operation, void *comm, void *stream);
HOOK(ncclAllReduce);

int ts_hook_ncclAllReduce(const void *sent, void *received, size_t count,
        int type, int operation, void *comm, void *stream)
{
	ncclAllReduce_call *real = REAL(ncclAllReduce);
	bool begun;
	int status;

	if (!real)
		return STATUS_INTERNAL_ERROR;
	if (!use(sent, count, type, TS_ACCESS_READ) ||
	        !use(received, count, type, TS_ACCESS_WRITE))
		return STATUS_CUDA_ERROR;
	begun = begin_call();
	status = real(sent, received, count, type, operation, comm, stream);
	end_call(begun);
	return status;
}

typedef int ncclReduce_call(const void *sent, void *received, size_t count,
        int type, int operation, int root, void *comm, void *stream);
HOOK(ncclReduce);

int ts_hook_ncclReduce(const void *sent, void *received, size_t count, int type,
        int operation, int root, void *comm, void *stream)
{
	ncclReduce_call *real = REAL(ncclReduce);
	bool begun;
	int status;

	if (!real)
		return STATUS_INTERNAL_ERROR;
	if (!use(sent, count, type, TS_ACCESS_READ) ||
	        !use(received, count, type, IF_ROOT))
		return STATUS_CUDA_ERROR;
	begun = begin_call();
	status = real(
	        sent, received, count, type, operation, root, comm, stream);
	end_call(begun);
	return status;
}

typedef int ncclReduceScatter_call(const void *sent, void *received,
        size_t count, int type, int operation, void *comm, void *stream);
HOOK(ncclReduceScatter);

int ts_hook_ncclReduceScatter(const void *sent, void *received, size_t count,
        int type, int operation, void *comm, void *stream)
{
	ncclReduceScatter_call *real = REAL(ncclReduceScatter);
	bool begun;
	int status;

	if (!real)
		return STATUS_INTERNAL_ERROR;
	if (!use_all(sent, count, type, TS_ACCESS_READ, comm,
	            __builtin_return_address(0)) ||
	        !use(received, count, type, TS_ACCESS_WRITE))
		return STATUS_CUDA_ERROR;
	begun = begin_call();
	status = real(sent, received, count, type, operation, comm, stream);
	end_call(begun);
	return status;
}

typedef int ncclAllGather_call(const void *sent, void *received, size_t count,
        int type, void *comm, void *stream);
HOOK(ncclAllGather);

int ts_hook_ncclAllGather(const void *sent, void *received, size_t count,
        int type, void *comm, void *stream)
{
	ncclAllGather_call *real = REAL(ncclAllGather);
	bool begun;
	int status;

	if (!real)
		return STATUS_INTERNAL_ERROR;
	if (!use(sent, count, type, TS_ACCESS_READ) ||
	        !use_all(received, count, type, TS_ACCESS_WRITE, comm,
	                __builtin_return_address(0)))
		return STATUS_CUDA_ERROR;
	begun = begin_call();
	status = real(sent, received, count, type, comm, stream);
	end_call(begun);
	return status;
}

typedef int ncclAlltoAll_call(const void *sent, void *received, size_t count,
        int type, void *comm, void *stream);
HOOK(ncclAlltoAll);

int ts_hook_ncclAlltoAll(const void *sent, void *received, size_t count,
        int type, void *comm, void *stream)
{
	const void *caller = __builtin_return_address(0);
	ncclAlltoAll_call *real = REAL(ncclAlltoAll);
	bool begun;
	int status;

	if (!real)
		return STATUS_INTERNAL_ERROR;
	if (!use_all(sent, count, type, TS_ACCESS_READ, comm, caller) ||
	        !use_all(received, count, type, TS_ACCESS_WRITE, comm, caller))
		return STATUS_CUDA_ERROR;
	begun = begin_call();
	status = real(sent, received, count, type, comm, stream);
	end_call(begun);
	return status;
}

typedef int ncclGather_call(const void *sent, void *received, size_t count,
        int type, int root, void *comm, void *stream);
HOOK(ncclGather);

int ts_hook_ncclGather(const void *sent, void *received, size_t count, int type,
        int root, void *comm, void *stream)
{
	ncclGather_call *real = REAL(ncclGather);
	bool begun;
	int status;

	if (!real)
		return STATUS_INTERNAL_ERROR;
	if (!use(sent, count, type, TS_ACCESS_READ) ||
	        !use_all(received, count, type, IF_ROOT, comm,
	                __builtin_return_address(0)))
		return STATUS_CUDA_ERROR;
	begun = begin_call();
	status = real(sent, received, count, type, root, comm, stream);
	end_call(begun);
	return status;
}

typedef int ncclScatter_call(const void *sent, void *received, size_t count,
        int type, int root, void *comm, void *stream);
HOOK(ncclScatter);

int ts_hook_ncclScatter(const void *sent, void *received, size_t count,
        int type, int root, void *comm, void *stream)
{
	ncclScatter_call *real = REAL(ncclScatter);
	bool begun;
	int status;

	if (!real)
		return STATUS_INTERNAL_ERROR;
	if (!use_all(sent, count, type, TS_ACCESS_READ, comm,
	            __builtin_return_address(0)) ||
	        !use(received, count, type, TS_ACCESS_WRITE))
		return STATUS_CUDA_ERROR;
	begun = begin_call();
	status = real(sent, received, count, type, root, comm, stream);
	end_call(begun);
	return status;
}

typedef int ncclBroadcast_call(const void *sent, void *received, size_t count,
        int type, int root, void *comm, void *stream);
HOOK(ncclBroadcast);

int ts_hook_ncclBroadcast(const void *sent, void *received, size_t count,
        int type, int root, void *comm, void *stream)
{
	ncclBroadcast_call *real = REAL(ncclBroadcast);
	bool begun;
	int status;

	if (!real)
		return STATUS_INTERNAL_ERROR;
	if (!use(sent, count, type, TS_ACCESS_READ) ||
	        !use(received, count, type, TS_ACCESS_WRITE))
		return STATUS_CUDA_ERROR;
	begun = begin_call();
	status = real(sent, received, count, type, root, comm, stream);
	end_call(begun);
	return status;
}

typedef int ncclBcast_call(void *buffer, size_t count, int type, int root,
        void *comm, void *stream);
HOOK(ncclBcast);

int ts_hook_ncclBcast(void *buffer, size_t count, int type, int root,
        void *comm, void *stream)
{
	ncclBcast_call *real = REAL(ncclBcast);
	bool begun;
	int status;

	if (!real)
		return STATUS_INTERNAL_ERROR;
	if (!use(buffer, count, type, TS_ACCESS_READWRITE))
		return STATUS_CUDA_ERROR;
	begun = begin_call();
	status = real(buffer, count, type, root, comm, stream);
	end_call(begun);
	return status;
}

typedef int ncclSend_call(const void *sent, size_t count, int type, int peer,
        void *comm, void *stream);
HOOK(ncclSend);

int ts_hook_ncclSend(const void *sent, size_t count, int type, int peer,
        void *comm, void *stream)
{
	ncclSend_call *real = REAL(ncclSend);
	bool begun;
	int status;

	if (!real)
		return STATUS_INTERNAL_ERROR;
	if (!use(sent, count, type, TS_ACCESS_READ))
		return STATUS_CUDA_ERROR;
	begun = begin_call();
	status = real(sent, count, type, peer, comm, stream);
	end_call(begun);
	return status;
}

typedef int ncclRecv_call(void *received, size_t count, int type, int peer,
        void *comm, void *stream);
HOOK(ncclRecv);

int ts_hook_ncclRecv(void *received, size_t count, int type, int peer,
        void *comm, void *stream)
{
	ncclRecv_call *real = REAL(ncclRecv);
	bool begun;
	int status;

	if (!real)
		return STATUS_INTERNAL_ERROR;
	if (!use(received, count, type, TS_ACCESS_WRITE))
		return STATUS_CUDA_ERROR;
	begun = begin_call();
	status = real(received, count, type, peer, comm, stream);
	end_call(begun);
	return status;
}
