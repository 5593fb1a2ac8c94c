/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the two kernels of the simulated NCCL work on. As with the real one a
 * launch's parameters name no buffer of the program's: the first is the host
 * address of a struct simnccl_work, which the device reads while the launch is
 * made, or the graph is launched that it is in, the second the communicator's
 *own device memory.
 *
 *	simnccl_send     reads each part and makes a message of what it holds
 *	simnccl_receive  writes each part from the messages of its sources
 *
 * Messages are opaque to all but the device (driver/collective.c) and mean the
 * same in every process with the same SIMGPU_CONTENT.
 */
#ifndef SIMNCCL_WORK_H
#define SIMNCCL_WORK_H

#include <stdint.h>

#define SIMNCCL_SEND    "simnccl_send"
#define SIMNCCL_RECEIVE "simnccl_receive"
#define SIMNCCL_MAGIC   ((uint64_t)0x6c63636e6d6973) /* "simnccl" */

/* Of an element of @type, an ncclDataType_t. */
static inline unsigned simnccl_type_bytes(int type)
{
	static const unsigned bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

	return bytes[type];
}

/* malloc'ed; data is NULL where nothing is known, as without content. */
struct simnccl_message {
	void *data;
	uint64_t bytes;
};

/* One range of this rank's memory. */
struct simnccl_part {
	uint64_t va, bytes;
	/* ncclRedOp_t and ncclDataType_t; of several sources only */
	int operation, type;
	unsigned sources; /* in order of rank; 1 of what is sent */
	struct simnccl_message *messages;
};

struct simnccl_work {
	uint64_t magic;
	uint64_t wire_bytes; /* that come over the link */
	unsigned count;
	struct simnccl_part *parts;
	/*
	 * In a graph: the device calls them each time the work is carried out,
	 * before it to have the messages there, and after it to have them sent.
	 * NULL elsewhere.
	 */
	void (*before)(struct simnccl_work *work);
	void (*after)(struct simnccl_work *work);
};

#endif
