/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/declared.h"

#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))

static __thread unsigned int depth INITIAL_EXEC;
static __thread uint64_t output INITIAL_EXEC;

void ts_declared_begin(const void *written)
{
	/* What the outermost call was asked for is what its caller sees. */
	if (!depth++)
		output = (uint64_t)(uintptr_t)written;
}

void ts_declared_end(void)
{
	depth--;
}

bool ts_declared_any(void)
{
	return depth;
}

bool ts_declared_writes(uint64_t address, uint64_t bytes)
{
	return output - address < bytes;
}
