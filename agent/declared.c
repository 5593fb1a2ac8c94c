/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/declared.h"

#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))

static __thread unsigned int depth INITIAL_EXEC;
static __thread const struct ts_declaration *outermost INITIAL_EXEC;

void ts_declared_begin(const struct ts_declaration *declaration)
{
	/* What the outermost call was asked for is what its caller sees. */
	if (!depth++)
		outermost = declaration;
}

void ts_declared_end(void)
{
	if (!--depth)
		outermost = NULL;
}

const struct ts_declaration *ts_declared(void)
{
	return outermost;
}

bool ts_declared_access(const struct ts_declaration *declaration,
        uint64_t address, uint64_t bytes, enum ts_access *ret_access)
{
	enum ts_access access = TS_ACCESS_READ;
	bool found = false;

	for (size_t i = 0; i < declaration->count; i++) {
		const struct ts_operand *operand = &declaration->operands[i];

		if (operand->address - address >= bytes)
			continue;
		/* Of what two operands write together nothing is certain. */
		if (found && (access != TS_ACCESS_READ ||
		                     operand->access != TS_ACCESS_READ))
			access = TS_ACCESS_READWRITE;
		else
			access = operand->access;
		found = true;
	}
	if (found)
		*ret_access = access;
	return found;
}
