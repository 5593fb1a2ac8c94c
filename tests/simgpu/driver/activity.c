/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finished ops for the simulator's own libraries (CUPTI). Guarded by the lock.
 */
#include "tests/simgpu/driver/engine.h"
#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/simgpu_private.h"

#include <string.h>

static simgpu_activity_sink sink;
static void *sink_user;

/* The calling thread's, by kind. */
static __thread uint64_t external_ids[SIMGPU_EXTERNAL_KINDS];

void sg_activity_external(uint64_t *ret_ids)
{
	memcpy(ret_ids, external_ids, sizeof(external_ids));
}

SG_EXPORT void simgpu_set_external(unsigned int kind, uint64_t id)
{
	if (kind < SIMGPU_EXTERNAL_KINDS)
		external_ids[kind] = id;
}

void sg_activity(const struct sg_op *op)
{
	struct simgpu_activity record;

	if (!sink || op->kind == SG_OP_MARKER)
		return;
	record = (struct simgpu_activity){
	        .kind = op->kind,
	        .device = op->dev->ordinal,
	        .context_id = op->stream->ctx->h.id,
	        .stream_id = op->stream->h.id,
	        .correlation = op->correlation,
	        .start_ns = op->start_ns,
	        .end_ns = op->end_ns,
	        .bytes = op->bytes,
	        .name = op->name,
	        .details = op->details,
	};
	memcpy(record.grid, op->grid, sizeof(record.grid));
	memcpy(record.block, op->block, sizeof(record.block));
	memcpy(record.external, op->external, sizeof(record.external));
	sink(&record, sink_user);
}

SG_EXPORT void simgpu_set_activity_sink(
        simgpu_activity_sink new_sink, void *user)
{
	sg_lock();
	sink = new_sink;
	sink_user = user;
	sg_unlock();
}

SG_EXPORT uint64_t simgpu_next_correlation(void)
{
	uint64_t next;

	sg_lock();
	next = sg_op_next_seq();
	sg_unlock();
	return next;
}

SG_EXPORT void simgpu_flush(void)
{
	sg_lock();
	while (sg_engine_step())
		;
	sg_unlock();
}
