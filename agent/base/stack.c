/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/base/stack.h"

#include <alloca.h>
#include <stddef.h>
#include <string.h>

/*
 * What a driver's copy takes of the stack at least: the program's stack has had
 * room for that much, small as it may be.
 */
#define DRIVER_BYTES 4096
/* Nobody's frames: a fibre may have changed stacks in between. */
#define MOST_BYTES 65536

__thread uintptr_t ts_stack_lowest;

/* Frames of their own, so that one lies below the other's caller. */
#define OWN_FRAME __attribute__((noinline))

void OWN_FRAME ts_stack_soil(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0) - DRIVER_BYTES;

	if (!ts_stack_lowest || here < ts_stack_lowest)
		ts_stack_lowest = here;
}

void OWN_FRAME ts_stack_clear(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t lowest = ts_stack_lowest;
	void *room;

	ts_stack_lowest = 0;
	if (lowest >= here || here - lowest > MOST_BYTES)
		return;
	room = alloca(here - lowest);
	memset(room, 0, here - lowest);
	/* Nobody reads it: for all that the compiler knows this does. */
	__asm__ volatile("" : : "r"(room) : "memory");
}
