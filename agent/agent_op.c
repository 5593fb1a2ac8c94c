/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ops, and what orders them: residency before, the tape after. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/base/peek.h"
#include "agent/beside.h"
#include "agent/declared.h"
#include "agent/kernel.h"
#include "agent/planned.h"
#include "agent/profiler.h"
#include "agent/proof.h"
#include "agent/remake.h"
#include "agent/status.h"

/* Larger copies are data, not tables of addresses. */
#define SCAN_BYTES_MAX   (1u << 20)
#define SCAN_PIECE_BYTES 8192

static const char *op_name(const struct ts_op *op)
{
	if (op->func)
		return op->func->name;
	return op->name ? op->name : "?";
}

static void say_op_shortage(
        const struct ts_op *op, const struct ts_shortage *shortage)
{
	struct ts_kernel *kernel =
	        op->func ? ts_kernel_create(op->func->name) : NULL;
	bool many = kernel && (kernel->family == TS_FAMILY_LISTS ||
	                              kernel->family == TS_FAMILY_ADAM);
	char what[256];

	snprintf(what, sizeof(what), "%s%.150s%s",
	        op->func && !op->func->has_layout ? "(layout unknown) " : "",
	        kernel ? kernel->label : op_name(op),
	        many ? " (less in an optimizer with foreach=False)" : "");
	ts_kernel_destroy(kernel);
	ts_agent_say_shortage(what, shortage);
}

/* What the pager foresees follows from where the step stands. */
static void tell_time(struct ts_pager *pager)
{
	ts_pager_tell_time(pager,
	        atomic_load_explicit(
	                &ts_agent.tape.pace.count, memory_order_relaxed) +
	                1,
	        atomic_load_explicit(
	                &ts_agent.tape.pace.period, memory_order_relaxed));
}

static uint64_t devices_of(const struct ts_op *op)
{
	uint64_t devices = 0;

	/* What a graph uses is not told: it may be anything. */
	for (int i = 0; op->kind == TS_OP_GRAPH && i < TS_AGENT_DEVICES; i++)
		if (ts_agent_pager(i))
			devices |= 1ull << i;
	for (size_t i = 0; i < op->count; i++)
		if (ts_agent_pager(op->ranges[i].device))
			devices |= 1ull << op->ranges[i].device;
	return devices;
}

/* Which of the contexts' legacy or per-thread streams @key is just now. */
static ts_stream_key key_here(ts_stream_key key)
{
	CUcontext context = NULL;

	if (key & TS_STREAM_KIND)
		ts_agent.pager_ops->ctx_get_current(&context);
	return ts_stream_in(key, context);
}

static void end_devices(struct ts_op *op, bool issued)
{
	ts_stream_key key = op->key;

	for (int device = 0; op->devices >> device; device++) {
		struct ts_pager *pager = ts_agent_pager(device);

		if (op->devices >> device & 1 && pager)
			ts_pager_end(pager, op->ranges, op->count, key, issued);
	}
	op->devices = 0;
}

/* What goes into a graph stays; what runs beside a capture does not. */
static unsigned int flags_of(const struct ts_op *op)
{
	unsigned int flags = op->plan ? TS_BEGIN_BY_PLAN : 0;

	if (op->capturing)
		return TS_BEGIN_CAPTURING;
	return flags | ts_agent_begin_flags();
}

static int try_devices(
        struct ts_op *op, unsigned int flags, struct ts_shortage *ret_shortage)
{
	uint64_t wanted = devices_of(op);

	if (wanted)
		op->key = key_here(op->stream);
	for (int device = 0; wanted >> device; device++) {
		int rc;

		if (!(wanted >> device & 1))
			continue;
		tell_time(ts_agent_pager(device));
		rc = ts_pager_begin(ts_agent_pager(device), op->ranges,
		        op->count, flags, op->key, &op->in_bytes,
		        &op->out_bytes, ret_shortage);
		if (rc) {
			end_devices(op, false);
			return rc;
		}
		op->devices |= 1ull << device;
	}
	return 0;
}

/* Once: what is moved out and in from now on takes longer. */
static void say_plain_memory(const struct ts_op *op)
{
	static atomic_bool said;

	for (int device = 0; op->devices >> device; device++) {
		if (!(op->devices >> device & 1) || atomic_load(&said) ||
		        !ts_pager_plain_bytes(ts_agent_pager(device)) ||
		        atomic_exchange(&said, true))
			continue;
		ts_log(TS_LOG_WARN,
		        "the driver pins no more host memory: going on with "
		        "pageable memory, which is slower to copy");
	}
}

static CUresult begin_devices(struct ts_op *op)
{
	struct ts_shortage shortage;
	unsigned int flags = flags_of(op);
	int rc = try_devices(op, flags, &shortage);

	if (rc && flags & TS_BEGIN_BESIDE_CAPTURE &&
	        shortage.short_of == TS_SHORT_CAPTURING && ts_captures_wait())
		rc = try_devices(op, flags_of(op), &shortage);
	/* The program comes before the proofs. */
	while (rc && ts_proof_give_back())
		rc = try_devices(op, flags_of(op), &shortage);
	if (op->out_bytes)
		say_plain_memory(op);
	if (!rc)
		return CUDA_SUCCESS;
	say_op_shortage(op, &shortage);
	return ts_agent_shortage_result(&shortage);
}

/* Where nothing captures the driver need not be asked. */
static bool goes_into_graph(const struct ts_op *op)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	if (!atomic_load(&ts_agent.capturing) || op->stream == TS_STREAM_LEGACY)
		return false;
	ts_agent.ops->stream_is_capturing(
	        (CUstream)(uintptr_t)op->stream, &status);
	return status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static bool wants_uses(const struct ts_op *op)
{
	return op->recorded || ts_agent_wants_blocks();
}

CUresult ts_agent_pin_op(struct ts_op *op)
{
	CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;

	if (op->kind == TS_OP_LAUNCH) {
		op->func = ts_funcs_get(&ts_agent.funcs, op->function);
		ts_op_touch_params(op, &ts_agent.blocks);
	}
	if (!op->incomplete)
		rc = begin_devices(op);
	for (size_t i = 0; rc == CUDA_SUCCESS && i < op->count; i++) {
		struct ts_pager *pager = ts_agent_pager(op->ranges[i].device);

		if (pager)
			ts_pager_pin(pager, &op->ranges[i], TS_PIN_CAPTURED);
	}
	end_devices(op, false);
	ts_op_finish(op);
	return rc;
}

/* All that is done for an op where steps are only followed. */
static CUresult begin_followed(struct ts_op *op)
{
	op->collective = op->kind == TS_OP_LAUNCH && ts_declared_collective();
	ts_op_sign(op);
	op->capturing = goes_into_graph(op);
	if (!op->beside)
		ts_profiler_begin(op);
	return CUDA_SUCCESS;
}

CUresult ts_agent_op_begin(struct ts_op *op)
{
	CUresult rc;

	if (op->kind == TS_OP_LAUNCH)
		op->func = ts_funcs_get(&ts_agent.funcs, op->function);
	op->beside = ts_beside_op(op);
	if (!wants_uses(op))
		return begin_followed(op);
	if (op->kind == TS_OP_LAUNCH)
		ts_op_touch_params(op, &ts_agent.blocks);
	ts_op_sign(op);
	op->capturing = goes_into_graph(op);
	/* Better not run than run on memory that may be missing. */
	if (op->incomplete)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* Copies follow no addresses. */
	rc = op->kind == TS_OP_LAUNCH || op->kind == TS_OP_GRAPH
	             ? ts_agent_tables_settle()
	             : CUDA_SUCCESS;
	if (rc != CUDA_SUCCESS)
		return rc;
	if (!op->beside)
		ts_planned_op(op);
	/* What a graph takes along stays for as long as there is one. */
	if (op->kind == TS_OP_LAUNCH && !op->capturing)
		ts_op_skip_unused(op);
	rc = ts_proof_comes(op);
	if (rc == CUDA_SUCCESS)
		rc = begin_devices(op);
	if ((op->in_bytes || op->out_bytes) && !op->beside)
		ts_planned_missed(op);
	if (rc == CUDA_SUCCESS) {
		ts_proof_ready(op);
		if (!op->beside)
			ts_profiler_begin(op);
	}
	return rc;
}

/* The driver loads code, and what it needs of local memory, when it is used. */
static void room_for_code(const struct ts_op *op)
{
	unsigned int seen = atomic_load(&ts_agent.functions);

	/* What is captured is not used yet. */
	if (!op->func || op->capturing)
		return;
	/* They are numbered in the order in which they are first launched. */
	while (op->func->number >= seen)
		if (atomic_compare_exchange_weak(
		            &ts_agent.functions, &seen, op->func->number + 1)) {
			ts_agent_after_unmanaged();
			return;
		}
}

static void end_followed(struct ts_op *op, CUresult result)
{
	if (result == CUDA_SUCCESS)
		ts_tape_count(&ts_agent.tape, op);
	if (!op->beside)
		ts_profiler_end(op, result == CUDA_SUCCESS);
	ts_op_finish(op);
	ts_status_refresh();
}

void ts_agent_op_end(struct ts_op *op, CUresult result)
{
	const struct ts_observed *proved;

	if (!wants_uses(op)) {
		end_followed(op, result);
		return;
	}
	proved = ts_proof_issued(op, result == CUDA_SUCCESS);
	/* A captured op runs, if at all, with its graph. */
	end_devices(op, result == CUDA_SUCCESS && !op->capturing);
	ts_proof_pass_on(proved);
	if (op->host && result == CUDA_SUCCESS && !op->capturing)
		ts_downloads_note(op);
	room_for_code(op);
	/* Steps are found on the tape, too, and numbers are those of it. */
	if (result == CUDA_SUCCESS && op->beside)
		ts_tape_count(&ts_agent.tape, op);
	else if (result == CUDA_SUCCESS)
		ts_tape_record(&ts_agent.tape, op);
	if (!op->beside)
		ts_profiler_end(op, result == CUDA_SUCCESS);
	if (result == CUDA_SUCCESS)
		ts_agent_scan_written(op);
	ts_op_finish(op);
	ts_status_refresh();
}

void ts_agent_touch(struct ts_op *op, CUdeviceptr address, size_t bytes,
        enum ts_access access)
{
	if (bytes && wants_uses(op))
		ts_op_touch(op, &ts_agent.blocks, address, bytes, access);
}

static CUresult pin_range(
        const struct ts_range *range, enum ts_pin pin, const char *what)
{
	struct ts_pager *pager = ts_agent_pager(range->device);
	struct ts_shortage shortage;
	uint64_t in = 0, out = 0;

	if (!pager)
		return CUDA_SUCCESS;
	if (!ts_remake_all())
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* Ops that reach it unseen wait for nothing. */
	if (ts_pager_begin(pager, range, 1, ts_agent_begin_flags(),
	            TS_STREAM_HOST, &in, &out, &shortage)) {
		ts_agent_say_shortage(what, &shortage);
		return ts_agent_shortage_result(&shortage);
	}
	if (ts_pager_pin(pager, range, pin))
		atomic_fetch_add(&ts_agent.tables.pinned, 1);
	ts_pager_end(pager, range, 1, TS_STREAM_HOST, false);
	return CUDA_SUCCESS;
}

static CUresult pin_escaped(const struct ts_range *block)
{
	return pin_range(
	        block, TS_PIN_ESCAPED, "a block whose address is in memory");
}

void ts_agent_pin_found(const struct ts_range *block, void *data)
{
	CUresult *result = data, rc = pin_escaped(block);

	if (*result == CUDA_SUCCESS)
		*result = rc;
}

/*
 * A program may give a device address for its source: the driver sorts that
 * out, a plain read here would end the program.
 */
CUresult ts_agent_scan_host(CUdeviceptr dst, const void *source, size_t bytes)
{
	uint64_t words[SCAN_PIECE_BYTES / sizeof(uint64_t)];
	const char *at = source;
	/* Kernels read the table where it arrives, by aligned words there. */
	size_t skip = -dst % sizeof(words[0]);
	CUresult result = CUDA_SUCCESS;

	if (!source || bytes > SCAN_BYTES_MAX || bytes < skip ||
	        !ts_agent_places() || !ts_downloads_wait(source, bytes))
		return CUDA_SUCCESS;
	at += skip;
	bytes = (bytes - skip) / sizeof(words[0]) * sizeof(words[0]);
	while (bytes && result == CUDA_SUCCESS) {
		size_t piece = bytes < sizeof(words) ? bytes : sizeof(words);

		if (ts_peek(at, piece, words))
			break;
		ts_scan_words(&ts_agent.blocks, words, piece,
		        ts_agent_pin_found, &result);
		at += piece;
		bytes -= piece;
	}
	return result;
}

CUresult ts_agent_pin(CUdeviceptr address)
{
	struct ts_range range = {.access = TS_ACCESS_READWRITE, .device = -1};
	struct ts_block *block;

	ts_mutex_lock(&ts_agent.blocks.lock);
	block = ts_blocks_find_locked(&ts_agent.blocks, address);
	if (block && block->managed) {
		range.address = block->address;
		range.bytes = block->bytes;
		range.device = block->device;
	}
	ts_mutex_unlock(&ts_agent.blocks.lock);
	return pin_escaped(&range);
}

CUresult ts_agent_pin_registered(CUdeviceptr address, size_t bytes)
{
	struct ts_range range = {.address = address,
	        .bytes = bytes,
	        .access = TS_ACCESS_READWRITE};
	struct ts_allocation allocation;
	uint64_t end;

	if (!ts_blocks_find_allocation(
	            &ts_agent.blocks, address, &allocation) ||
	        !allocation.whole.managed)
		return CUDA_SUCCESS;
	end = allocation.whole.address + allocation.whole.bytes;
	if (range.bytes > end - address)
		range.bytes = end - address;
	range.device = allocation.whole.device;
	return pin_range(&range, TS_PIN_REGISTERED, "registered memory");
}

bool ts_agent_moves(CUdeviceptr address)
{
	struct ts_allocation allocation;

	return ts_blocks_find_allocation(
	               &ts_agent.blocks, address, &allocation) &&
	       allocation.whole.managed;
}

void ts_agent_sync_begin(struct ts_sync *sync)
{
	for (int device = 0; device < TS_AGENT_DEVICES; device++) {
		struct ts_pager *pager = ts_agent_pager(device);

		sync->numbers[device] = pager ? ts_pager_last_op(pager) : 0;
	}
}

/*
 * A stream of one context may hold ops on any device's memory. A thread's own
 * stream is no more than one of those that its context's key stands for.
 */
void ts_agent_sync_end(ts_stream_key stream, const struct ts_sync *sync)
{
	ts_profiler_synchronized();
	if (stream == TS_STREAM_PER_THREAD)
		return;
	stream = key_here(stream ? stream : TS_STREAM_PER_THREAD);
	for (int device = 0; device < TS_AGENT_DEVICES; device++) {
		struct ts_pager *pager = ts_agent_pager(device);

		if (pager)
			ts_pager_synchronized(
			        pager, stream, sync->numbers[device]);
	}
}

void ts_agent_stream_destroyed(ts_stream_key stream)
{
	CUcontext context = NULL;

	ts_captures_of_stream_end(stream);
	ts_agent.ops->stream_get_ctx((CUstream)(uintptr_t)stream, &context);
	for (int device = 0; device < TS_AGENT_DEVICES; device++) {
		struct ts_pager *pager = ts_agent_pager(device);

		if (pager)
			ts_pager_stream_destroyed(pager, stream, context);
	}
}

void ts_agent_step(void)
{
	ts_profiler_mark();
}

bool ts_agent_range(const char *name)
{
	const char *wanted = ts_agent.config.step_range;

	if (!*wanted || strcmp(name, wanted))
		return false;
	ts_profiler_mark();
	return true;
}

void ts_agent_code_unloaded(void)
{
	ts_funcs_forget_handles(&ts_agent.funcs);
	ts_agent_after_unmanaged();
}
