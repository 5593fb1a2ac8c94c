/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One shadow step, op by op: sums around each, and each that may be launched
 * again is, behind itself. Only issues; what comes of it proof_judge.c reads.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/proof_internal.h"

/* Scratch takes no more than one part in so many of what there is. */
#define SCRATCH_PART 4
/* The driver gives memory away in pieces of so much. */
#define DRIVER_UNIT_BYTES (2ull << 20)
/* Results of a shadow step take two: four are of an op with three operands,
 * roughly, so that there is room for 65000 ops. */
#define RESULTS_BYTES (2 * DRIVER_UNIT_BYTES)

int ts_proof_room_for(uint64_t bytes, void *unused)
{
	struct ts_shortage shortage;
	struct ts_pager *pager;
	int device, rc;

	(void)unused;
	pager = ts_agent_current_pager(&device);
	if (!pager)
		return 0;
	bytes = (bytes + DRIVER_UNIT_BYTES - 1) / DRIVER_UNIT_BYTES *
	        DRIVER_UNIT_BYTES;
	rc = ts_pager_make_room(
	        pager, bytes, ts_agent_begin_flags(), &shortage);
	return rc ? -ENOSPC : 0;
}

/* The pager has to know of what others have taken. */
static void room_taken(uint64_t held_before)
{
	if (ts_proof.scratch.held_bytes != held_before)
		ts_agent_after_unmanaged();
}

static int set_up(void)
{
	uint64_t left, total;
	struct ts_pager *pager;
	size_t bytes, whole;
	int device, rc;

	if (ts_proof.checks)
		return 0;
	pager = ts_agent_current_pager(&device);
	if (pager && !ts_pager_mem_info(pager, &left, &total))
		bytes = total;
	else if (ts_agent.ops->mem_get_info(&bytes, &whole) != CUDA_SUCCESS)
		return -EIO;
	ts_proof.scratch = (struct ts_scratch){.ops = ts_agent.ops,
	        .make_room = ts_proof_room_for,
	        .most_bytes = bytes / SCRATCH_PART};
	rc = ts_proof_room_for(RESULTS_BYTES, NULL);
	if (!rc)
		rc = ts_checks_create(ts_agent.ops,
		        ts_checks_most(RESULTS_BYTES), &ts_proof.checks);
	if (!rc)
		ts_agent_after_unmanaged();
	return rc;
}

int ts_proof_step_start(void)
{
	const struct ts_recording *step = &ts_proof.step->step;
	CUcontext context = NULL;
	int rc;

	ts_agent.ops->ctx_get_current(&context);
	/* The kernels belong to the context they were loaded in. */
	if (!context || (ts_proof.checks && ts_proof.context != context))
		return -ENODEV;
	ts_proof.context = context;
	rc = set_up();
	/* What a step that was left has on its way uses scratch and results. */
	if (!rc && ts_proof.left)
		rc = ts_gpu_errno(ts_agent.ops->ctx_synchronize());
	ts_proof.left &= rc != 0;
	if (!rc)
		rc = ts_checks_clear(ts_proof.checks);
	if (rc)
		return rc;
	if (ts_proof.known_room < step->use_count + 1) {
		free(ts_proof.known);
		ts_proof.known_room = step->use_count + 1;
		ts_proof.known =
		        calloc(ts_proof.known_room, sizeof(*ts_proof.known));
		if (!ts_proof.known) {
			ts_proof.known_room = 0;
			return -ENOMEM;
		}
	}
	memset(ts_proof.trials, 0,
	        ts_proof.step->op_count * sizeof(*ts_proof.trials));
	ts_map_init(&ts_proof.by_serial);
	ts_proof.known_count = 0;
	ts_proof.touch_count = 0;
	ts_proof.output_count = 0;
	ts_proof.at = 0;
	ts_proof.stamp = 0;
	if (ts_proof.closures)
		ts_closures_begin(ts_proof.closures);
	atomic_store(&ts_proof.phase, TS_PROOF_RUNNING);
	return 0;
}

static void put_outputs(ts_stream_key stream)
{
	struct ts_scratch *scratch = &ts_proof.scratch;

	for (unsigned int i = 0; i < ts_proof.making_count; i++) {
		const struct ts_proof_output *output = &ts_proof.making[i];

		if (output->before)
			ts_scratch_put(scratch, output->before, stream);
		if (output->first)
			ts_scratch_put(scratch, output->first, stream);
		if (output->second)
			ts_scratch_put(scratch, output->second, stream);
	}
	ts_proof.making_count = 0;
}

void ts_proof_step_spare(void)
{
	struct ts_proof_trial *trial = &ts_proof.trials[ts_proof.at];

	if (!ts_proof.making_count)
		return;
	put_outputs(TS_STREAM_LEGACY);
	trial->failed = TS_VERDICT_NO_ROOM;
}

void ts_proof_step_leave(const char *why)
{
	ts_log(TS_LOG_DEBUG, "proof: shadow step left at op %u of %u: %s",
	        ts_proof.at, ts_proof.step->op_count, why);
	/*
	 * What is on its way still uses them: the next shadow step waits for
	 * that, and freeing does. Here something may capture.
	 */
	put_outputs(TS_STREAM_LEGACY);
	ts_proof.stamp = 0;
	ts_proof.left = true;
	ts_proof.given_up++;
	atomic_store(&ts_proof.phase, TS_PROOF_WAITING);
}

/* ------------------------------------------------------------- before it */

static bool is_scratch_block(uint64_t address)
{
	struct ts_block *block;
	bool scratch;

	ts_mutex_lock(&ts_agent.blocks.lock);
	block = ts_blocks_find_locked(&ts_agent.blocks, address);
	scratch = block && block->scratch;
	ts_mutex_unlock(&ts_agent.blocks.lock);
	return scratch;
}

/* Does the step's profile have it that op `at` writes its use @index? */
static bool writes(uint32_t index)
{
	const struct ts_observed *step = ts_proof.step;
	const struct ts_rec_op *rec = &step->step.ops[ts_proof.at];
	uint64_t use = rec->first_use - step->step.first_use + index;

	return index < rec->use_count &&
	       step->devices[0].values.use_write[use] != TS_NONE;
}

/* Three buffers for what the op makes of a block: what it was, and two more. */
static int add_output(const struct ts_op *op, size_t index, bool in_place)
{
	const struct ts_use *use = &op->uses[index];
	struct ts_scratch *scratch = &ts_proof.scratch;
	struct ts_proof_output *output;
	int rc;

	if (ts_proof.making_count == TS_PROOF_OUTPUTS)
		return -ENOSPC;
	output = &ts_proof.making[ts_proof.making_count++];
	*output = (struct ts_proof_output){.address = use->address,
	        .bytes = use->bytes,
	        .range_address = op->ranges[index].address,
	        .range_bytes = op->ranges[index].bytes,
	        .in_place = in_place};
	rc = ts_scratch_get(scratch, use->bytes, op->stream, &output->before);
	if (!rc)
		rc = ts_scratch_get(
		        scratch, use->bytes, op->stream, &output->first);
	if (!rc)
		rc = ts_scratch_get(
		        scratch, use->bytes, op->stream, &output->second);
	return rc;
}

static bool is_touched(const struct ts_op *op, size_t index)
{
	return !op->uses[index].doubtful && op->ranges[index].bytes;
}

static bool may_try(enum ts_verdict verdict)
{
	return verdict == TS_VERDICT_OPEN || verdict == TS_VERDICT_PROVED ||
	       verdict == TS_VERDICT_NO_ROOM || verdict == TS_VERDICT_FAILED;
}

static void prepare(const struct ts_op *op, struct ts_proof_trial *trial)
{
	uint64_t held = ts_proof.scratch.held_bytes;
	bool in_place = ts_proof.in_place[ts_proof.at];
	uint32_t recorded = 0;
	int rc = 0;

	for (size_t i = 0; i < op->count && !rc; i++) {
		uint32_t index = recorded;

		recorded += !op->uses[i].doubtful;
		if (is_touched(op, i) &&
		        (in_place ? writes(index) : op->uses[i].fresh) &&
		        !is_scratch_block(op->uses[i].address))
			rc = add_output(op, i, in_place);
	}
	room_taken(held);
	if (rc) {
		put_outputs(op->stream);
		trial->failed =
		        rc == -ENOSPC ? TS_VERDICT_NO_ROOM : TS_VERDICT_FAILED;
	}
	trial->tried = rc || ts_proof.making_count;
}

void ts_proof_step_comes(struct ts_op *op)
{
	struct ts_proof_trial *trial = &ts_proof.trials[ts_proof.at];

	if (ts_proof.stamp) {
		ts_proof_step_leave("two ops at once");
		return;
	}
	if (op->signature != ts_proof.step->signatures[ts_proof.at]) {
		ts_proof_step_leave("another op came");
		return;
	}
	if (op->capturing || op->kind == TS_OP_GRAPH) {
		ts_proof_step_leave("graphs tell nothing of what they touch");
		return;
	}
	ts_proof.stamp = op->stamp;
	trial->first_touch = (uint32_t)ts_proof.touch_count;
	trial->first_output = (uint32_t)ts_proof.output_count;
	if (ts_proof.closures) {
		int rc = ts_closures_before(ts_proof.closures, op, ts_proof.at);

		if (rc)
			ts_proof_step_leave(strerror(-rc));
	} else if (ts_proof.looked && may_try(ts_proof.verdicts[ts_proof.at])) {
		/* What changes others' memory would do so once more. */
		prepare(op, trial);
	}
}

/* Sums begin at words. */
static uint64_t sum_address(const struct ts_range *range)
{
	return range->address & ~7ull;
}

static uint64_t sum_bytes(const struct ts_range *range)
{
	return range->address + range->bytes - sum_address(range);
}

struct ts_proof_known *ts_proof_find_known(uint64_t serial)
{
	struct ts_map_node *node = ts_map_find(&ts_proof.by_serial, serial);

	return node ? ts_container_of(node, struct ts_proof_known, node) : NULL;
}

/* The last sum of just this range; TS_PROOF_NO_SLOT: there is none. */
static uint32_t last_sum(uint64_t serial, const struct ts_range *range)
{
	const struct ts_proof_known *known = ts_proof_find_known(serial);

	if (!known || known->address != sum_address(range) ||
	        known->bytes != sum_bytes(range))
		return TS_PROOF_NO_SLOT;
	return known->slot;
}

static int note_sum(
        uint64_t serial, const struct ts_range *range, uint32_t slot)
{
	struct ts_proof_known *known = ts_proof_find_known(serial);

	if (!known) {
		if (ts_proof.known_count == ts_proof.known_room)
			return -ENOSPC;
		known = &ts_proof.known[ts_proof.known_count++];
		ts_map_insert(&ts_proof.by_serial, &known->node, serial);
	}
	known->address = sum_address(range);
	known->bytes = sum_bytes(range);
	known->slot = slot;
	return 0;
}

static int sum(const struct ts_op *op, size_t index, uint32_t *ret_slot)
{
	const struct ts_range *range = &op->ranges[index];

	ts_proof.looked_bytes += range->bytes;
	return ts_checks_sum(ts_proof.checks, sum_address(range),
	        sum_bytes(range), op->stream, ret_slot);
}

static struct ts_proof_touch *new_touch(void)
{
	if (ts_proof.touch_count == ts_proof.touch_room) {
		size_t room = 2 * ts_proof.touch_room + 1024;
		void *more = realloc(
		        ts_proof.touches, room * sizeof(*ts_proof.touches));

		if (!more)
			return NULL;
		ts_proof.touches = more;
		ts_proof.touch_room = room;
	}
	return &ts_proof.touches[ts_proof.touch_count++];
}

/* Does the step's profile take it that the op's use @index only reads? */
static bool only_reads(uint32_t index)
{
	const struct ts_observed *step = ts_proof.step;
	const struct ts_rec_op *rec = &step->step.ops[ts_proof.at];
	uint64_t use = rec->first_use - step->step.first_use + index;

	return index < rec->use_count &&
	       step->devices[0].values.use_write[use] == TS_NONE;
}

/* Copies and sets say what they write: nothing else changes. */
static bool is_certain_to_read(const struct ts_op *op, size_t index)
{
	return op->kind == TS_OP_COPY &&
	       op->ranges[index].access == TS_ACCESS_READ;
}

static int look_before(const struct ts_op *op)
{
	uint32_t recorded = 0;
	int rc = 0;

	for (size_t i = 0; i < op->count && !rc; i++) {
		uint32_t index = recorded;
		struct ts_proof_touch *touch;

		recorded += !op->uses[i].doubtful;
		if (!is_touched(op, i) || is_certain_to_read(op, i))
			continue;
		touch = new_touch();
		if (!touch)
			return -ENOMEM;
		*touch = (struct ts_proof_touch){.serial = op->uses[i].serial,
		        .before = last_sum(op->uses[i].serial, &op->ranges[i]),
		        .after = TS_PROOF_NO_SLOT,
		        .again = TS_PROOF_NO_SLOT,
		        .use = index,
		        .scratch = is_scratch_block(op->uses[i].address),
		        .read_only = only_reads(index),
		        .changes = ts_proof.in_place[ts_proof.at] &&
		                   writes(index)};
		if (op->uses[i].fresh)
			touch->before = TS_PROOF_NO_SLOT;
		else if (touch->before == TS_PROOF_NO_SLOT &&
		         op->kind == TS_OP_LAUNCH)
			rc = sum(op, i, &touch->before);
	}
	return rc;
}

static int save_outputs(const struct ts_op *op)
{
	CUresult rc = CUDA_SUCCESS;

	for (unsigned int i = 0;
	        i < ts_proof.making_count && rc == CUDA_SUCCESS; i++) {
		const struct ts_proof_output *output = &ts_proof.making[i];
		uint64_t skip = output->range_address - output->address;

		rc = ts_agent.ops->copy_within(output->before + skip,
		        output->range_address, output->range_bytes,
		        (CUstream)(uintptr_t)op->stream);
	}
	return ts_gpu_errno(rc);
}

void ts_proof_step_ready(const struct ts_op *op)
{
	int rc;

	if (ts_proof.stamp != op->stamp)
		return;
	rc = look_before(op);
	if (!rc)
		rc = save_outputs(op);
	if (rc)
		ts_proof_step_leave(strerror(-rc));
}

/* -------------------------------------------------------------- behind it */

static int fill(uint64_t address, uint64_t bytes, unsigned char with,
        ts_stream_key stream)
{
	return ts_gpu_errno(ts_agent.ops->set_bytes(
	        address, with, bytes, (CUstream)(uintptr_t)stream));
}

/* What works in place finds in a copy what it found. */
static int copy_before(const struct ts_op *op,
        const struct ts_proof_output *output, uint64_t to)
{
	uint64_t skip = output->range_address - output->address;

	return ts_gpu_errno(
	        ts_agent.ops->copy_within(to + skip, output->before + skip,
	                output->range_bytes, (CUstream)(uintptr_t)op->stream));
}

/* Leads what the op makes to the one set of buffers, and launches it. */
static int launch_into(
        struct ts_replay_launch *launch, const struct ts_op *op, bool second)
{
	int rc = 0;

	for (unsigned int i = 0; i < ts_proof.making_count && !rc; i++) {
		const struct ts_proof_output *output = &ts_proof.making[i];
		uint64_t from = second ? output->first : output->address;
		uint64_t to = second ? output->second : output->first;

		rc = fill(to, output->bytes,
		        second ? TS_FILL_SECOND : TS_FILL_FIRST, op->stream);
		if (!rc && output->in_place)
			rc = copy_before(op, output, to);
		if (!rc && !ts_replay_redirect(launch, from, output->bytes, to))
			rc = -ENOTSUP;
	}
	if (!rc)
		rc = ts_replay_issue(launch, ts_agent.ops, op->stream);
	ts_proof.replays += !rc;
	return rc;
}

static int compare_all(const struct ts_op *op, struct ts_proof_trial *trial)
{
	int rc = 0;

	for (unsigned int i = 0; i < ts_proof.making_count && !rc; i++) {
		const struct ts_proof_output *output = &ts_proof.making[i];
		uint64_t skip = output->range_address - output->address;
		struct ts_comparison comparison = {output->before + skip,
		        output->range_address, output->first + skip,
		        output->second + skip, output->range_bytes};
		uint32_t slot;

		if (ts_proof.output_count == ts_proof.output_room) {
			size_t room = 2 * ts_proof.output_room + 1024;
			void *more = realloc(ts_proof.outputs,
			        room * sizeof(*ts_proof.outputs));

			if (!more)
				return -ENOMEM;
			ts_proof.outputs = more;
			ts_proof.output_room = room;
		}
		rc = ts_checks_compare(
		        ts_proof.checks, &comparison, op->stream, &slot);
		if (!rc) {
			ts_proof.outputs[ts_proof.output_count++] = slot;
			trial->output_count++;
		}
	}
	return rc;
}

static enum ts_verdict launch_again(
        const struct ts_op *op, struct ts_proof_trial *trial, int *ret_rc)
{
	struct ts_replay_launch launch;
	int rc = ts_replay_keep(op, &launch);

	*ret_rc = 0;
	if (rc)
		return rc == -ENOTSUP ? TS_VERDICT_ATTRIBUTES
		                      : TS_VERDICT_FAILED;
	rc = launch_into(&launch, op, false);
	if (!rc)
		rc = launch_into(&launch, op, true);
	ts_replay_finish(&launch);
	if (rc)
		return TS_VERDICT_FAILED;
	rc = compare_all(op, trial);
	/* Words are compared; what begins between them is not. */
	if (rc == -EINVAL)
		return TS_VERDICT_FAILED;
	*ret_rc = rc;
	return TS_VERDICT_OPEN;
}

/* Sums of everything the op touched; @again: for the second time. */
static int look_after(
        const struct ts_op *op, const struct ts_proof_trial *trial, bool again)
{
	uint32_t at = trial->first_touch;
	int rc = 0;

	for (size_t i = 0; i < op->count && !rc; i++) {
		struct ts_proof_touch *touch;
		uint32_t slot = TS_PROOF_NO_SLOT;

		if (!is_touched(op, i) || is_certain_to_read(op, i))
			continue;
		touch = &ts_proof.touches[at++];
		rc = sum(op, i, &slot);
		if (again)
			touch->again = slot;
		else
			touch->after = slot;
		if (!rc)
			rc = note_sum(touch->serial, &op->ranges[i], slot);
	}
	return rc;
}

void ts_proof_step_issued(const struct ts_op *op, bool issued)
{
	struct ts_proof_trial *trial = &ts_proof.trials[ts_proof.at];
	int rc;

	if (ts_proof.stamp != op->stamp)
		return;
	if (!issued) {
		ts_proof_step_leave("an op failed");
		return;
	}
	trial->touch_count =
	        (uint32_t)ts_proof.touch_count - trial->first_touch;
	rc = look_after(op, trial, false);
	if (!rc && ts_proof.closures)
		rc = ts_closures_after(ts_proof.closures, op, ts_proof.at);
	if (!rc && ts_proof.making_count) {
		trial->failed = launch_again(op, trial, &rc);
		if (!rc && trial->failed == TS_VERDICT_OPEN)
			rc = look_after(op, trial, true);
	}
	if (rc) {
		ts_proof_step_leave(strerror(-rc));
		return;
	}
	put_outputs(op->stream);
	ts_proof.stamp = 0;
	if (++ts_proof.at < ts_proof.step->op_count)
		return;
	rc = ts_checks_collect(ts_proof.checks);
	if (rc)
		ts_proof_step_leave(strerror(-rc));
	else
		atomic_store(&ts_proof.phase, TS_PROOF_RESULTS);
}
