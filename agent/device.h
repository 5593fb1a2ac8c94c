/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is known of a device beside what the program does on it: name, memory,
 * speed of its link. Asked once each; the profiler guards it.
 */
#ifndef TS_DEVICE_H
#define TS_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/bandwidth.h"

struct ts_device_facts {
	char name[256];
	uint64_t bytes;
	uint64_t outside_bytes; /* beside allocations: the context */
	struct ts_bandwidth link;
	bool link_measured;
	bool known;
	unsigned int in_vain; /* times that the device had no rest */
};

/*
 * Asks for what is not known yet of @device, with driver calls and copies of
 * the agent's own, in the device's context if that is not the current one. Not
 * to be called while something captures.
 */
void ts_device_look(int device, struct ts_device_facts *facts);

#endif
