/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SIMGPU_MUTATE="kind:k", a list separated by commas: the k-th copy is dropped
 * (copy) or loses its end (truncate), the same of those between a device and
 * page-locked memory (move, shorten), the k-th launch does nothing (launch),
 * the k-th event wait is left out (wait); counted from 1 in order of arrival.
 * Everything takes its time as before. The report says what was done, and
 * whether it was harmless.
 *
 * Wrong bytes are followed (taint.c), those of all mutations together. A wait
 * left out is judged by the order alone: either the next op came after the
 * event anyway, or everything later that is not known to come after it is
 * compared, access by access, with what the event stood for. That is done by
 * brute force, apart from race detection, until the order exists otherwise.
 *
 * Guarded by the lock.
 */
#include "tests/simgpu/driver/mutate.h"
#include "tests/simgpu/driver/content.h"
#include "tests/simgpu/driver/engine.h"
#include "tests/simgpu/driver/races.h"
#include "tests/simgpu/driver/start.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind {
	KIND_COPY,
	KIND_TRUNCATE,
	KIND_MOVE,
	KIND_SHORTEN,
	KIND_LAUNCH,
	KIND_WAIT,
	KIND_COUNT,
};
static const char *const kind_names[KIND_COUNT] = {
        "copy", "truncate", "move", "shorten", "launch", "wait"};

enum order {
	ORDER_OPEN,      /* the stream has had no op since */
	ORDER_REDUNDANT, /* its next op came after the event all the same */
	ORDER_WATCHED,   /* nothing in conflict so far */
	ORDER_NEEDED,
};
struct mutation {
	enum kind kind;
	uint64_t index;
	bool done;
	char what[320];
	uint64_t lost_bytes, changed_bytes;
	/* of a wait */
	struct sg_stream *stream;
	struct sg_op *event;    /* reference held while it matters */
	struct sg_moment first; /* the stream's next op */
	enum order order;
	char conflict[320];
};
static struct mutation *mutations;
static unsigned n_mutations;
static uint64_t counts[KIND_COUNT];
static struct mutation *losing; /* the copy whose pieces are being lost */

bool sg_mutating(void)
{
	return n_mutations > 0;
}

static int add(char *item)
{
	struct mutation mutation = {0};
	char *colon = strchr(item, ':');
	int kind = 0;

	if (!colon)
		return -EINVAL;
	*colon = '\0';
	while (kind < KIND_COUNT && strcmp(item, kind_names[kind]))
		kind++;
	mutation.kind = (enum kind)kind;
	if (kind == KIND_COUNT || sg_parse_number(colon + 1, &mutation.index) ||
	        !mutation.index)
		return -EINVAL;
	mutations =
	        sg_xrealloc(mutations, (n_mutations + 1) * sizeof(*mutations));
	mutations[n_mutations++] = mutation;
	return 0;
}

int sg_mutate_read(const char *list)
{
	char *copy = sg_xstrdup(list), *rest = copy, *item;
	int err = 0;

	while (!err && (item = strsep(&rest, ",")))
		err = add(item + strspn(item, " "));
	if (!err && (!sg_content_tagged() || !sg_races_on())) {
		sg_say("SIMGPU_MUTATE wants SIMGPU_CONTENT=tags and "
		       "SIMGPU_RACES=on");
		err = -EINVAL;
	} else if (err) {
		sg_say("SIMGPU_MUTATE=\"%s\": want copy, truncate, move, "
		       "shorten, launch or wait, each :k, a list separated by "
		       "commas",
		        list);
	}
	free(copy);
	return err;
}

/* Counts one more of a kind; the mutation that falls on it, or NULL. */
static struct mutation *next(enum kind kind)
{
	uint64_t index = ++counts[kind];

	for (unsigned i = 0; i < n_mutations; i++) {
		if (mutations[i].kind == kind && mutations[i].index == index)
			return &mutations[i];
	}
	return NULL;
}

/* ------------------------------------------------------------------ copies */

static void begin_loss(struct mutation *mutation, uint64_t bytes)
{
	mutation->done = true;
	snprintf(mutation->what, sizeof(mutation->what),
	        "operation %llu: copy of %llu bytes",
	        (unsigned long long)sg_op_next_seq(),
	        (unsigned long long)bytes);
	losing = mutation;
}

uint64_t sg_mutate_copy(uint64_t bytes, uint64_t rows, bool locked)
{
	uint64_t whole = rows > 1 ? rows : bytes;
	struct mutation *drop, *truncate, *move = NULL, *shorten = NULL;

	losing = NULL;
	if (!n_mutations)
		return whole;
	drop = next(KIND_COPY);
	truncate = next(KIND_TRUNCATE);
	if (locked) {
		move = next(KIND_MOVE);
		shorten = next(KIND_SHORTEN);
	}
	drop = drop ? drop : move;
	truncate = truncate ? truncate : shorten;
	if (drop) {
		begin_loss(drop, bytes);
		return 0;
	}
	if (!truncate)
		return whole;
	begin_loss(truncate, bytes);
	if (rows > 1)
		return rows - 1;
	return bytes > 2 * SG_PAGE_BYTES ? bytes - SG_PAGE_BYTES : bytes / 2;
}

void sg_mutate_lose(uint64_t dst, uint64_t src, uint64_t bytes)
{
	losing->lost_bytes += bytes;
	if (sg_content_same(dst, src, bytes))
		return;
	losing->changed_bytes += bytes;
	sg_taint_add(dst, bytes);
}

/* ---------------------------------------------------------------- launches */

void sg_mutate_launch(const struct sg_launch *launch, struct sg_op *op)
{
	struct mutation *mutation = n_mutations ? next(KIND_LAUNCH) : NULL;
	struct sg_parts *before;

	if (!mutation) {
		sg_content_launch(launch, op);
		if (n_mutations)
			sg_taint_launched(op);
		return;
	}
	mutation->done = true;
	snprintf(mutation->what, sizeof(mutation->what),
	        "operation %llu: %.250s", (unsigned long long)sg_op_next_seq(),
	        op->name);
	before = sg_content_save(op);
	sg_content_launch(launch, op);
	for (unsigned i = op->n_accesses; i-- > 0;) {
		const struct sg_access *access = &op->accesses[i];

		if (!access->write || !sg_is_device_va(access->va))
			continue;
		mutation->lost_bytes += access->bytes;
		if (!sg_content_restore(access, &before[i]))
			continue;
		mutation->changed_bytes += access->bytes;
		sg_taint_add(access->va, access->bytes);
	}
	free(before);
	op->n_accesses = 0;
}

/* ------------------------------------------------------------------- waits */

/* What ops touched, as long as the host does not know that they are done. */
struct touched {
	struct sg_moment moment;
	uint64_t seq;
	void **memory; /* names the chunk or the host range */
	uint64_t start, end;
	bool write;
};
static struct touched *touched;
static unsigned n_touched, cap_touched, sweep_touched = 4096;

struct touching {
	const struct sg_op *op;
	bool write;
};

static void log_stretch(void *arg, struct sg_place *place, uint64_t offset,
        uint64_t va, uint64_t bytes)
{
	const struct touching *touching = arg;

	if (n_touched == cap_touched) {
		cap_touched = 2 * cap_touched + 1024;
		touched = sg_xrealloc(touched, cap_touched * sizeof(*touched));
	}
	touched[n_touched++] = (struct touched){
	        .moment = sg_clock_moment(touching->op),
	        .seq = touching->op->seq,
	        .memory = place->races,
	        .start = offset,
	        .end = offset + bytes,
	        .write = touching->write,
	};
}

static void log_op(const struct sg_op *op)
{
	if (n_touched > sweep_touched) {
		unsigned kept = 0;

		for (unsigned i = 0; i < n_touched; i++) {
			if (!sg_clock_host_covers(touched[i].moment))
				touched[kept++] = touched[i];
		}
		n_touched = kept;
		sweep_touched = 2 * kept + 4096;
	}
	for (unsigned i = 0; i < op->n_accesses; i++) {
		struct touching touching = {op, op->accesses[i].write};

		sg_stretches(op->accesses[i].va, op->accesses[i].bytes,
		        log_stretch, &touching);
	}
}

bool sg_mutate_wait(struct sg_stream *stream, struct sg_op *op)
{
	struct mutation *mutation = n_mutations ? next(KIND_WAIT) : NULL;

	if (!mutation)
		return false;
	mutation->done = true;
	snprintf(mutation->what, sizeof(mutation->what),
	        "stream %llu does not wait for operation %llu of stream %llu",
	        (unsigned long long)stream->h.id, (unsigned long long)op->seq,
	        (unsigned long long)op->stream->h.id);
	mutation->stream = stream;
	mutation->event = op;
	sg_op_ref(op);
	return true;
}

/* Compares what op touches with what it should have come after. */
static void compare(struct mutation *mutation, const struct sg_op *op)
{
	unsigned end = n_touched;

	/* log_op has just put op's own accesses at the end. */
	for (unsigned i = 0; i < end; i++) {
		const struct touched *before = &touched[i];

		if (!sg_clock_covers(mutation->event, before->moment) ||
		        sg_clock_covers(op, before->moment))
			continue;
		for (unsigned j = end; j-- > 0;) {
			const struct touched *now = &touched[j];

			if (now->seq != op->seq)
				break;
			if (now->memory != before->memory ||
			        now->start >= before->end ||
			        before->start >= now->end ||
			        !(now->write || before->write))
				continue;
			mutation->order = ORDER_NEEDED;
			snprintf(mutation->conflict, sizeof(mutation->conflict),
			        "operation %llu had to come after "
			        "operation %llu",
			        (unsigned long long)op->seq,
			        (unsigned long long)before->seq);
			return;
		}
	}
}

static void judge_wait(struct mutation *mutation, const struct sg_op *op)
{
	if (mutation->order == ORDER_OPEN && op->stream == mutation->stream) {
		mutation->order = sg_clock_covers_all(op, mutation->event)
		                          ? ORDER_REDUNDANT
		                          : ORDER_WATCHED;
		mutation->first = sg_clock_moment(op);
	}
	if (mutation->order == ORDER_WATCHED &&
	        sg_clock_covers(op, mutation->first))
		compare(mutation, op);
}

void sg_mutate_ordered(const struct sg_op *op)
{
	/* Markers only write words that are there to be waited for. */
	if (op->kind != SG_OP_MARKER)
		log_op(op);
	for (unsigned i = 0; i < n_mutations; i++) {
		if (mutations[i].event)
			judge_wait(&mutations[i], op);
	}
}

/* ------------------------------------------------------------------ report */

static const char *wait_verdict(
        const struct mutation *mutation, bool *ret_harmless)
{
	switch (mutation->order) {
	case ORDER_OPEN:
		*ret_harmless = true;
		return "nothing came after it in the stream";
	case ORDER_REDUNDANT:
		*ret_harmless = true;
		return "redundant: the order existed otherwise";
	case ORDER_WATCHED:
		*ret_harmless = true;
		return "nothing that it ordered touches the same memory";
	default:
		*ret_harmless = false;
		return mutation->conflict;
	}
}

static const char *verdict(const struct mutation *mutation, bool *ret_harmless)
{
	*ret_harmless = true;
	if (!mutation->done)
		return "never came to it";
	if (mutation->kind == KIND_WAIT)
		return wait_verdict(mutation, ret_harmless);
	if (!mutation->changed_bytes)
		return "unchanged: the same bytes were there";
	if (!sg_taint_reached())
		return "dead: overwritten, freed or never read";
	*ret_harmless = false;
	return sg_taint_reached();
}

json_t *sg_mutations_json(void)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < n_mutations; i++) {
		const struct mutation *mutation = &mutations[i];
		bool harmless;
		const char *why = verdict(mutation, &harmless);

		json_array_append_new(list,
		        json_pack("{s:s, s:I, s:b, s:s, s:I, s:b, s:s}", "kind",
		                kind_names[mutation->kind], "index",
		                (json_int_t)mutation->index, "done",
		                mutation->done, "what", mutation->what,
		                "lost_bytes", (json_int_t)mutation->lost_bytes,
		                "harmless", harmless, "why", why));
	}
	return list;
}
