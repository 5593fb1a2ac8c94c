/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cuBLAS, by its exported symbols: which operands a call writes to, the
 * addresses in tables it follows, and that a work space the program gives is
 * scratch, whatever passes through it. Every wrapper takes words (words.h):
 * what they are stands in blas.def, and no header of the library's is needed.
 * What has no row is guessed as the operands of any launch are.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/declared.h"
#include "intercept/guard.h"
#include "intercept/library.h"
#include "intercept/real_dlsym.h"
#include "intercept/words.h"
#include "runtime/streams.h"

/* cublasStatus_t */
#define STATUS_NOT_SUPPORTED 15
#define STATUS_SUCCESS       0

#define WORDS_MAX      24
#define WRITTEN_MAX    4
#define TS_BLAS_GROUPS 0x80u

struct row {
	uint32_t written, tables; /* bit n: argument n */
	unsigned int count;       /* as in blas.def */
	bool wide;
};

/* A call on its way. */
struct call {
	struct ts_declaration declaration;
	struct ts_operand operands[WRITTEN_MAX];
};

static int not_supported(void)
{
	return STATUS_NOT_SUPPORTED;
}

static uint64_t integer(ts_word word, bool wide)
{
	int64_t value = wide ? (int64_t)word : (int)word;

	return value > 0 ? (uint64_t)value : 0;
}

/* How many addresses a table has. */
static uint64_t table_length(const struct row *row, const ts_word *words)
{
	unsigned int count = row->count & ~TS_BLAS_GROUPS;
	uint64_t length = integer(words[count - 1], row->wide), sum = 0;
	const char *sizes = (const char *)words[count];

	if (!(row->count & TS_BLAS_GROUPS))
		return length;
	for (uint64_t i = 0; sizes && i < length; i++) {
		ts_word size = 0;
		size_t bytes = row->wide ? sizeof(int64_t) : sizeof(int);

		memcpy(&size, sizes + i * bytes, bytes);
		sum += integer(size, row->wide);
	}
	return sum;
}

typedef int get_stream(void *handle, CUstream *ret_stream);

static ts_stream_key stream_of(ts_word handle, const void *caller)
{
	static _Atomic(void *) known;
	get_stream *get = (get_stream *)atomic_load_explicit(
	        &known, memory_order_relaxed);
	CUstream stream = NULL;

	if (!get) {
		get = (get_stream *)ts_next_for(caller, "cublasGetStream_v2");
		atomic_store_explicit(
		        &known, (void *)get, memory_order_relaxed);
	}
	if (!get || get((void *)handle, &stream) || !stream)
		return TS_STREAM_LEGACY;
	return (ts_stream_key)(uintptr_t)stream;
}

/* True where everything the tables name is there to stay. */
static bool scan_tables(
        const struct row *row, const ts_word *words, const void *caller)
{
	uint64_t bytes = table_length(row, words) * sizeof(CUdeviceptr);
	ts_stream_key stream = stream_of(words[0], caller);
	bool known = true;

	if (!ts_enter())
		return true;
	for (int i = 1; i <= WORDS_MAX; i++)
		if (row->tables >> i & 1 &&
		        !ts_agent_scan_device(words[i - 1], bytes, stream))
			known = false;
	ts_leave();
	return known;
}

/* Declares the call and answers the function to make it with. */
static void *begin(struct call *call, const struct row *row,
        enum ts_library_id id, const ts_word *words, const void *caller)
{
	void *real = ts_library_real(id, caller);

	call->declaration = (struct ts_declaration){
	        .operands = call->operands, .tells_roles = !row->tables};
	for (int i = 1; i <= WORDS_MAX; i++)
		if (row->written >> i & 1)
			call->operands[call->declaration.count++] =
			        (struct ts_operand){.address = words[i - 1],
			                .access = TS_ACCESS_READWRITE};
	if (real && row->tables)
		call->declaration.any = !scan_tables(row, words, caller);
	ts_declared_begin(&call->declaration);
	return real ? real : (void *)not_supported;
}

#define TS_BLAS(symbol, words, written, tables, count, wide)                   \
	extern int ts_hook_##symbol(TS_WORDS(words)) __asm__(#symbol)          \
	        __attribute__((visibility("default")));                        \
	int ts_hook_##symbol(TS_WORDS(words))                                  \
	{                                                                      \
		static const struct row row = {written, tables, count, wide};  \
		const ts_word all[] = {TS_WORD_NAMES(words)};                  \
		struct call call;                                              \
		int (*real)(TS_WORDS(words)) =                                 \
		        (int (*)(TS_WORDS(words)))begin(&call, &row,           \
		                TS_LIBRARY_##symbol, all,                      \
		                __builtin_return_address(0));                  \
		int status = real(TS_WORD_NAMES(words));                       \
                                                                               \
		ts_declared_end();                                             \
		return status;                                                 \
	}
#include "intercept/blas.def"

static void note_scratch(void *workspace, size_t bytes)
{
	if (!workspace || !bytes || !ts_enter())
		return;
	ts_agent_scratch((CUdeviceptr)(uintptr_t)workspace);
	ts_leave();
}

typedef int set_workspace(void *handle, void *workspace, size_t bytes);

extern set_workspace ts_hook_set_workspace __asm__("cublasSetWorkspace_v2")
        __attribute__((visibility("default")));

int ts_hook_set_workspace(void *handle, void *workspace, size_t bytes)
{
	set_workspace *real = (set_workspace *)ts_library_real(
	        TS_LIBRARY_cublasSetWorkspace_v2, __builtin_return_address(0));
	int status =
	        real ? real(handle, workspace, bytes) : STATUS_NOT_SUPPORTED;

	if (status == STATUS_SUCCESS)
		note_scratch(workspace, bytes);
	return status;
}

typedef int lt_matmul(void *handle, const void *product, const void *alpha,
        const void *a, const void *layout_a, const void *b,
        const void *layout_b, const void *beta, const void *c,
        const void *layout_c, void *d, const void *layout_d,
        const void *algorithm, void *workspace, size_t workspace_bytes,
        void *stream);

extern lt_matmul ts_hook_LtMatmul __asm__("cublasLtMatmul")
        __attribute__((visibility("default")));

int ts_hook_LtMatmul(void *handle, const void *product, const void *alpha,
        const void *a, const void *layout_a, const void *b,
        const void *layout_b, const void *beta, const void *c,
        const void *layout_c, void *d, const void *layout_d,
        const void *algorithm, void *workspace, size_t workspace_bytes,
        void *stream)
{
	struct ts_operand written = {.address = (uint64_t)(uintptr_t)d,
	        .access = TS_ACCESS_READWRITE};
	struct ts_declaration declaration = {
	        .operands = &written, .count = 1, .tells_roles = true};
	lt_matmul *real = (lt_matmul *)ts_library_real(
	        TS_LIBRARY_cublasLtMatmul, __builtin_return_address(0));
	int status;

	if (!real)
		return STATUS_NOT_SUPPORTED;
	note_scratch(workspace, workspace_bytes);
	ts_declared_begin(&declaration);
	status = real(handle, product, alpha, a, layout_a, b, layout_b, beta, c,
	        layout_c, d, layout_d, algorithm, workspace, workspace_bytes,
	        stream);
	ts_declared_end();
	return status;
}
