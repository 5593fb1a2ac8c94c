/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The calls that move data: each becomes a task of parts that this rank sends
 * and parts it receives. No state.
 */
#include "tests/simgpu/nccl/simnccl.h"

#include <errno.h>

/* One call, while its task is made. */
struct call {
	struct sg_nccl_task *task;
	int type;
	uint64_t bytes; /* of what one rank gives another */
	unsigned ranks, rank;
};

static int begin(struct call *call, size_t count, ncclDataType_t type,
        struct sg_nccl_comm *comm, CUstream stream)
{
	if (!sg_nccl_comm_ok(comm) || (unsigned)type >= ncclNumTypes)
		return -EINVAL;
	call->task = sg_nccl_task_new(comm, stream);
	if (!call->task)
		return -ENOMEM;
	call->type = type;
	call->bytes = count * simnccl_type_bytes(type);
	call->ranks = sg_nccl_room_ranks(comm->room);
	call->rank = comm->rank;
	return 0;
}

static bool is_rank(const struct sg_nccl_comm *comm, int rank)
{
	return sg_nccl_comm_ok(comm) && rank >= 0 &&
	       (unsigned)rank < sg_nccl_room_ranks(comm->room);
}

static int begin_with(struct call *call, int peer, size_t count,
        ncclDataType_t type, struct sg_nccl_comm *comm, CUstream stream)
{
	return is_rank(comm, peer) ? begin(call, count, type, comm, stream)
	                           : -EINVAL;
}

static int begin_reduction(struct call *call, size_t count, ncclDataType_t type,
        ncclRedOp_t op, struct sg_nccl_comm *comm, CUstream stream)
{
	return (unsigned)op < ncclNumOps
	               ? begin(call, count, type, comm, stream)
	               : -EINVAL;
}

/* The nth such part that begins at @buffer. */
static uint64_t part_at(const struct call *call, const void *buffer, unsigned n)
{
	return (uint64_t)(uintptr_t)buffer + n * call->bytes;
}

static void give(struct call *call, uint64_t va, unsigned to)
{
	struct sg_nccl_part *part = &call->task->sends[call->task->sent++];

	part->range.va = va;
	part->range.bytes = call->bytes;
	part->range.sources = 1;
	part->peers[0] = to;
}

static void give_all(struct call *call, const void *buffer)
{
	for (unsigned i = 0; i < call->ranks; i++)
		give(call, part_at(call, buffer, 0), i);
}

static void get(struct call *call, uint64_t va, unsigned from)
{
	struct sg_nccl_part *part =
	        &call->task->receives[call->task->received++];

	part->range.va = va;
	part->range.bytes = call->bytes;
	part->range.sources = 1;
	part->peers[0] = from;
	if (from != call->rank)
		call->task->wire_bytes += call->bytes;
}

/* What all ranks give, combined. */
static void combine(struct call *call, const void *buffer, ncclRedOp_t op)
{
	struct sg_nccl_part *part =
	        &call->task->receives[call->task->received++];

	part->range.va = part_at(call, buffer, 0);
	part->range.bytes = call->bytes;
	part->range.operation = op;
	part->range.type = call->type;
	part->range.sources = call->ranks;
	for (unsigned i = 0; i < call->ranks; i++)
		part->peers[i] = i;
	call->task->wire_bytes += (call->ranks - 1) * call->bytes;
}

static ncclResult_t finish(struct call *call)
{
	struct sg_nccl_comm *comm = call->task->comm;

	if (!call->bytes) {
		sg_nccl_task_free(call->task);
		return ncclSuccess;
	}
	return sg_nccl_status(comm, sg_nccl_task_submit(call->task));
}

ncclResult_t ncclAllReduce(const void *sent, void *received, size_t count,
        ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, CUstream stream)
{
	struct call call;
	int err = begin_reduction(&call, count, type, op, comm, stream);

	if (err)
		return sg_nccl_status(comm, err);
	give_all(&call, sent);
	combine(&call, received, op);
	/* As a ring moves it: twice, less the part that stays. */
	call.task->wire_bytes = 2 * call.bytes * (call.ranks - 1) / call.ranks;
	return finish(&call);
}

ncclResult_t ncclReduce(const void *sent, void *received, size_t count,
        ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
        CUstream stream)
{
	struct call call;
	int err = is_rank(comm, root) ? begin_reduction(&call, count, type, op,
	                                        comm, stream)
	                              : -EINVAL;

	if (err)
		return sg_nccl_status(comm, err);
	give(&call, part_at(&call, sent, 0), (unsigned)root);
	if (call.rank == (unsigned)root)
		combine(&call, received, op);
	return finish(&call);
}

ncclResult_t ncclReduceScatter(const void *sent, void *received, size_t count,
        ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, CUstream stream)
{
	struct call call;
	int err = begin_reduction(&call, count, type, op, comm, stream);

	if (err)
		return sg_nccl_status(comm, err);
	for (unsigned i = 0; i < call.ranks; i++)
		give(&call, part_at(&call, sent, i), i);
	combine(&call, received, op);
	return finish(&call);
}

ncclResult_t ncclBroadcast(const void *sent, void *received, size_t count,
        ncclDataType_t type, int root, ncclComm_t comm, CUstream stream)
{
	struct call call;
	int err = begin_with(&call, root, count, type, comm, stream);

	if (err)
		return sg_nccl_status(comm, err);
	if (call.rank == (unsigned)root)
		give_all(&call, sent);
	get(&call, part_at(&call, received, 0), (unsigned)root);
	return finish(&call);
}

ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type,
        int root, ncclComm_t comm, CUstream stream)
{
	return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclAllGather(const void *sent, void *received, size_t count,
        ncclDataType_t type, ncclComm_t comm, CUstream stream)
{
	struct call call;
	int err = begin(&call, count, type, comm, stream);

	if (err)
		return sg_nccl_status(comm, err);
	give_all(&call, sent);
	for (unsigned i = 0; i < call.ranks; i++)
		get(&call, part_at(&call, received, i), i);
	return finish(&call);
}

ncclResult_t ncclAlltoAll(const void *sent, void *received, size_t count,
        ncclDataType_t type, ncclComm_t comm, CUstream stream)
{
	struct call call;
	int err = begin(&call, count, type, comm, stream);

	if (err)
		return sg_nccl_status(comm, err);
	for (unsigned i = 0; i < call.ranks; i++) {
		give(&call, part_at(&call, sent, i), i);
		get(&call, part_at(&call, received, i), i);
	}
	return finish(&call);
}

ncclResult_t ncclGather(const void *sent, void *received, size_t count,
        ncclDataType_t type, int root, ncclComm_t comm, CUstream stream)
{
	struct call call;
	int err = begin_with(&call, root, count, type, comm, stream);

	if (err)
		return sg_nccl_status(comm, err);
	give(&call, part_at(&call, sent, 0), (unsigned)root);
	for (unsigned i = 0; call.rank == (unsigned)root && i < call.ranks; i++)
		get(&call, part_at(&call, received, i), i);
	return finish(&call);
}

ncclResult_t ncclScatter(const void *sent, void *received, size_t count,
        ncclDataType_t type, int root, ncclComm_t comm, CUstream stream)
{
	struct call call;
	int err = begin_with(&call, root, count, type, comm, stream);

	if (err)
		return sg_nccl_status(comm, err);
	for (unsigned i = 0; call.rank == (unsigned)root && i < call.ranks; i++)
		give(&call, part_at(&call, sent, i), i);
	get(&call, part_at(&call, received, 0), (unsigned)root);
	return finish(&call);
}

ncclResult_t ncclSend(const void *sent, size_t count, ncclDataType_t type,
        int peer, ncclComm_t comm, CUstream stream)
{
	struct call call;
	int err = begin_with(&call, peer, count, type, comm, stream);

	if (err)
		return sg_nccl_status(comm, err);
	give(&call, part_at(&call, sent, 0), (unsigned)peer);
	return finish(&call);
}

ncclResult_t ncclRecv(void *received, size_t count, ncclDataType_t type,
        int peer, ncclComm_t comm, CUstream stream)
{
	struct call call;
	int err = begin_with(&call, peer, count, type, comm, stream);

	if (err)
		return sg_nccl_status(comm, err);
	get(&call, part_at(&call, received, 0), (unsigned)peer);
	return finish(&call);
}
