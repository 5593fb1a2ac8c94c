/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Collectives in graphs: the launch that is captured names work that stays, and
 * the letters go and come each time the graph is launched, when the device
 * carries the work out. That is on the thread that launches the graph, which
 * holds the driver meanwhile: so all peers have to be in other processes. Those
 * of one graph are expected on one stream, which keeps them in order. What was
 * captured goes with its communicator, which graphs may not outlive.
 */
#include "tests/simgpu/nccl/simnccl.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct sg_nccl_captured {
	struct simnccl_work work;
	struct sg_nccl_comm *comm;
	struct sg_nccl_part *parts; /* as many as of work */
	struct sg_nccl_captured *next;
};

static struct sg_nccl_captured *of_work(struct simnccl_work *work)
{
	return (struct sg_nccl_captured *)((char *)work -
	                                   offsetof(struct sg_nccl_captured,
	                                           work));
}

static void forget(struct simnccl_part *part)
{
	for (unsigned k = 0; k < part->sources; k++) {
		free(part->messages[k].data);
		part->messages[k] = (struct simnccl_message){0};
	}
}

static void send_all(struct simnccl_work *work)
{
	struct sg_nccl_captured *captured = of_work(work);
	struct sg_nccl_comm *comm = captured->comm;
	int err = 0;

	for (unsigned i = 0; i < work->count; i++) {
		if (!err)
			err = sg_nccl_send(comm->room, comm->rank,
			        captured->parts[i].peers[0],
			        work->parts[i].messages);
		forget(&work->parts[i]);
	}
	if (err)
		sg_nccl_status(comm, err);
}

/* What did not come is known to nobody. */
static void take_all(struct simnccl_work *work)
{
	struct sg_nccl_captured *captured = of_work(work);
	struct sg_nccl_comm *comm = captured->comm;
	int err = 0;

	for (unsigned i = 0; i < work->count; i++) {
		forget(&work->parts[i]);
		for (unsigned k = 0; k < work->parts[i].sources && !err; k++)
			err = sg_nccl_take(comm->room,
			        captured->parts[i].peers[k], comm->rank,
			        &work->parts[i].messages[k]);
	}
	if (err)
		sg_nccl_status(comm, err);
}

static void drop(struct sg_nccl_captured *captured)
{
	for (unsigned i = 0; i < captured->work.count; i++)
		if (captured->work.parts[i].messages)
			forget(&captured->work.parts[i]);
	sg_nccl_ranges_free(captured->work.parts, captured->work.count);
	free(captured->parts);
	free(captured);
}

struct simnccl_work *sg_nccl_capture(
        struct sg_nccl_task *task, enum sg_nccl_kernel kernel)
{
	bool send = kernel == SG_NCCL_K_SEND;
	unsigned count = send ? task->sent : task->received;
	const struct sg_nccl_part *parts = send ? task->sends : task->receives;
	struct sg_nccl_captured *captured = calloc(1, sizeof(*captured));

	if (!captured)
		return NULL;
	captured->comm = task->comm;
	captured->parts = calloc(count, sizeof(*parts));
	captured->work = (struct simnccl_work){.magic = SIMNCCL_MAGIC,
	        .wire_bytes = send ? 0 : task->wire_bytes,
	        .count = count,
	        .parts = sg_nccl_ranges(parts, count),
	        .after = send ? send_all : NULL,
	        .before = send ? NULL : take_all};
	if (!captured->parts || !captured->work.parts) {
		captured->work.count = 0;
		drop(captured);
		return NULL;
	}
	memcpy(captured->parts, parts, count * sizeof(*parts));
	captured->next = task->comm->captured;
	task->comm->captured = captured;
	return &captured->work;
}

void sg_nccl_captured_free(struct sg_nccl_comm *comm)
{
	while (comm->captured) {
		struct sg_nccl_captured *captured = comm->captured;

		comm->captured = captured->next;
		drop(captured);
	}
}
