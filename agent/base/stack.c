/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/base/stack.h"

#include <stdbool.h>
#include <string.h>

#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))
/* The agent's frames, and the driver's below them. */
#define WIPE_BYTES 16384

static __thread bool soiled INITIAL_EXEC;

void ts_stack_soil(void)
{
	soiled = true;
}

static void __attribute__((noinline)) wipe(void)
{
	char room[WIPE_BYTES];

	memset(room, 0, sizeof(room));
	/* Nobody reads it: for all that the compiler knows this does. */
	__asm__ volatile("" : : "r"(room) : "memory");
}

void ts_stack_wipe(void)
{
	if (!soiled)
		return;
	soiled = false;
	wipe();
}
