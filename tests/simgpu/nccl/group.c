/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Groups: calls between ncclGroupStart and the outermost ncclGroupEnd are made
 * at its end, all sends before the first receive, so that one thread can serve
 * several ranks. What is collected is the calling thread's; no lock.
 */
#include "tests/simgpu/nccl/simnccl.h"

#include <errno.h>
#include <stdlib.h>

#define JOINING (4 * SG_NCCL_RANKS)

static __thread struct {
	unsigned depth, joining;
	struct sg_nccl_task *first, *last;
	struct sg_nccl_comm *joins[JOINING];
} group;

bool sg_nccl_grouped(void)
{
	return group.depth > 0;
}

struct sg_nccl_task *sg_nccl_task_new(
        struct sg_nccl_comm *comm, CUstream stream)
{
	struct sg_nccl_task *task = calloc(1, sizeof(*task));

	if (!task)
		return NULL;
	task->sends = calloc(SG_NCCL_RANKS, sizeof(*task->sends));
	task->receives = calloc(SG_NCCL_RANKS, sizeof(*task->receives));
	if (!task->sends || !task->receives) {
		sg_nccl_task_free(task);
		return NULL;
	}
	task->comm = comm;
	task->stream = stream;
	return task;
}

void sg_nccl_task_free(struct sg_nccl_task *task)
{
	if (!task)
		return;
	free(task->sends);
	free(task->receives);
	free(task);
}

/* All sends, then all receives; frees the tasks. */
static int launch(struct sg_nccl_task *first)
{
	struct sg_nccl_task *next;
	int err = 0;

	for (struct sg_nccl_task *task = first; task && !err; task = task->next)
		err = sg_nccl_task_send(task);
	for (struct sg_nccl_task *task = first; task && !err; task = task->next)
		err = sg_nccl_task_receive(task);
	for (struct sg_nccl_task *task = first; task; task = next) {
		next = task->next;
		if (err)
			sg_nccl_status(task->comm, err);
		sg_nccl_task_free(task);
	}
	return err;
}

int sg_nccl_task_submit(struct sg_nccl_task *task)
{
	if (!group.depth)
		return launch(task);
	if (group.last)
		group.last->next = task;
	else
		group.first = task;
	group.last = task;
	return 0;
}

int sg_nccl_group_join(struct sg_nccl_comm *comm)
{
	if (!group.depth)
		return sg_nccl_comm_complete(comm);
	if (group.joining == JOINING)
		return -ENOTSUP;
	group.joins[group.joining++] = comm;
	return 0;
}

static int end_group(void)
{
	struct sg_nccl_task *first = group.first;
	int err = 0;

	group.first = group.last = NULL;
	for (unsigned i = 0; i < group.joining; i++) {
		int failed = sg_nccl_comm_complete(group.joins[i]);

		err = err ? err : failed;
	}
	group.joining = 0;
	if (!err)
		return launch(first);
	while (first) {
		struct sg_nccl_task *next = first->next;

		sg_nccl_task_free(first);
		first = next;
	}
	return err;
}

ncclResult_t ncclGroupStart(void)
{
	group.depth++;
	return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
	if (!group.depth)
		return ncclInvalidUsage;
	if (--group.depth)
		return ncclSuccess;
	return sg_nccl_status(NULL, end_group());
}
