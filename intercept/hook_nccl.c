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
 * Every wrapper takes words (words.h): what they are stands in nccl.def, and no
 * header of the library's is needed. What is pending is the calling thread's;
 * no lock.
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
#include "intercept/words.h"

/* ncclResult_t */
#define STATUS_SUCCESS        0
#define STATUS_CUDA_ERROR     1
#define STATUS_INTERNAL_ERROR 3

#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))

/* As in nccl.def. */
struct row {
	unsigned int words, buffers, sent, received;
	enum ts_access access;
	unsigned int all; /* bits as below */
};

#define ALL_SENT     1u
#define ALL_RECEIVED 2u

/* A call on its way. */
struct call {
	bool begun;
	int status; /* where it is not made */
};

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

/* Of a buffer that holds a part of every rank; whole, if that is unknown. */
static bool use_all(const void *buffer, size_t elements, int type,
        enum ts_access access, const void *comm, const void *caller)
{
	size_t ranks = ranks_of(comm, caller);

	return ranks ? use(buffer, elements * ranks, type, access)
	             : use(buffer, elements, -1, TS_ACCESS_READWRITE);
}

/* @number: which argument it is; 0: there is none. */
static bool use_buffer(const struct row *row, const ts_word *words,
        unsigned int number, bool all, enum ts_access access,
        const void *caller)
{
	size_t elements = words[row->buffers];
	int type = (int)words[row->buffers + 1];
	const void *comm = (const void *)words[row->words - 2];

	if (!number)
		return true;
	return all ? use_all((const void *)words[number - 1], elements, type,
	                     access, comm, caller)
	           : use((const void *)words[number - 1], elements, type,
	                     access);
}

/* The function to make the call with; NULL: it ends with the call's status. */
static void *begin(struct call *call, const struct row *row,
        enum ts_library_id id, const ts_word *words, const void *caller)
{
	void *real = ts_library_real(id, caller);

	call->status = STATUS_INTERNAL_ERROR;
	if (!real)
		return NULL;
	call->status = STATUS_CUDA_ERROR;
	if (!use_buffer(row, words, row->sent, row->all & ALL_SENT,
	            TS_ACCESS_READ, caller) ||
	        !use_buffer(row, words, row->received, row->all & ALL_RECEIVED,
	                row->access, caller))
		return NULL;
	call->begun = begin_call();
	return real;
}

#define COLLECTIVE(symbol, words, ...)                                         \
	extern int ts_hook_##symbol(TS_WORDS(words)) __asm__(#symbol)          \
	        __attribute__((visibility("default")));                        \
	int ts_hook_##symbol(TS_WORDS(words))                                  \
	{                                                                      \
		static const struct row row = {words, __VA_ARGS__};            \
		const ts_word all[] = {TS_WORD_NAMES(words)};                  \
		struct call call;                                              \
		int (*real)(TS_WORDS(words)) =                                 \
		        (int (*)(TS_WORDS(words)))begin(&call, &row,           \
		                TS_LIBRARY_##symbol, all,                      \
		                __builtin_return_address(0));                  \
                                                                               \
		if (!real)                                                     \
			return call.status;                                    \
		call.status = real(TS_WORD_NAMES(words));                      \
		end_call(call.begun);                                          \
		return call.status;                                            \
	}
#define TS_NCCL(name, words, ...)                                              \
	COLLECTIVE(nccl##name, words, __VA_ARGS__)                             \
	COLLECTIVE(pnccl##name, words, __VA_ARGS__)
#include "intercept/nccl.def"

typedef int group_call(void);

static int start_group(group_call *real)
{
	int status = real ? real() : STATUS_INTERNAL_ERROR;

	if (!status && !pending.inside)
		pending.group++;
	return status;
}

static int end_group(group_call *real)
{
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

#define GROUP(symbol, follow)                                                  \
	extern group_call ts_hook_##symbol __asm__(#symbol)                    \
	        __attribute__((visibility("default")));                        \
	int ts_hook_##symbol(void)                                             \
	{                                                                      \
		return follow((group_call *)ts_library_real(                   \
		        TS_LIBRARY_##symbol, __builtin_return_address(0)));    \
	}
GROUP(ncclGroupStart, start_group)
GROUP(pncclGroupStart, start_group)
GROUP(ncclGroupEnd, end_group)
GROUP(pncclGroupEnd, end_group)
