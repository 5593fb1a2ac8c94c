/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cuDNN's functions for single layers: which operands a call has, which of
 * them it writes to, and its work space, which is scratch. Every wrapper takes
 * words (words.h) as dnn.def tells, and two numbers beside them: these travel
 * in registers of their own, so that it matters neither where they stand among
 * the arguments nor whether there are any.
 */
#include <stdint.h>

#include "agent/agent.h"
#include "agent/declared.h"
#include "intercept/guard.h"
#include "intercept/library.h"
#include "intercept/words.h"

/* cudnnStatus_t of version 9 */
#define STATUS_NOT_SUPPORTED 3000

#define WORDS_MAX    29
#define OPERANDS_MAX 16

struct row {
	uint32_t operands, written, scratch; /* bit n: argument n */
};

/* A call on its way. */
struct call {
	struct ts_declaration declaration;
	struct ts_operand operands[OPERANDS_MAX];
};

static int not_supported(void)
{
	return STATUS_NOT_SUPPORTED;
}

static void note_scratch(ts_word workspace)
{
	if (!workspace || !ts_enter())
		return;
	ts_agent_scratch(workspace);
	ts_leave();
}

/* Declares the call and answers the function to make it with. */
static void *begin(struct call *call, const struct row *row,
        enum ts_library_id id, const ts_word *words, const void *caller)
{
	void *real = ts_library_real(id, caller);

	call->declaration = (struct ts_declaration){.operands = call->operands,
	        .tells_roles = true,
	        .complete = true,
	        .unseen = true};
	for (int i = 1; i <= WORDS_MAX; i++) {
		uint32_t bit = 1u << i;

		if (!(row->operands & bit) || !words[i - 1])
			continue;
		if (row->scratch & bit)
			note_scratch(words[i - 1]);
		call->operands[call->declaration.count++] =
		        (struct ts_operand){.address = words[i - 1],
		                .access = (row->written | row->scratch) & bit
		                                  ? TS_ACCESS_READWRITE
		                                  : TS_ACCESS_READ};
	}
	ts_declared_begin(&call->declaration);
	return real ? real : (void *)not_supported;
}

#define TS_DNN(symbol, words, operands, written, scratch)                      \
	extern int ts_hook_##symbol(                                           \
	        TS_WORDS(words), double a, double b) __asm__(#symbol)          \
	        __attribute__((visibility("default")));                        \
	int ts_hook_##symbol(TS_WORDS(words), double a, double b)              \
	{                                                                      \
		static const struct row row = {operands, written, scratch};    \
		const ts_word all[] = {TS_WORD_NAMES(words)};                  \
		struct call call;                                              \
		int (*real)(TS_WORDS(words), double, double) =                 \
		        (int (*)(TS_WORDS(words), double, double))begin(&call, \
		                &row, TS_LIBRARY_##symbol, all,                \
		                __builtin_return_address(0));                  \
		int status = real(TS_WORD_NAMES(words), a, b);                 \
                                                                               \
		ts_declared_end();                                             \
		return status;                                                 \
	}
#include "intercept/dnn.def"
