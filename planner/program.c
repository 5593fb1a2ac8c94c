/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Outside regions a replayed intermediate is shared over so many ops. */
#define SHARE_OPS 24

int ts_choice_init(struct ts_choice *choice, uint32_t n_gaps)
{
	choice->n_gaps = n_gaps;
	choice->action = calloc(n_gaps + UINT64_C(1), sizeof(*choice->action));
	choice->window = calloc(n_gaps + UINT64_C(1), sizeof(*choice->window));
	choice->late = calloc(n_gaps + UINT64_C(1), sizeof(*choice->late));
	if (choice->action && choice->window && choice->late)
		return 0;
	ts_choice_finish(choice);
	return -ENOMEM;
}

void ts_choice_finish(struct ts_choice *choice)
{
	free(choice->action);
	free(choice->window);
	free(choice->late);
	memset(choice, 0, sizeof(*choice));
}

void ts_choice_copy(struct ts_choice *to, const struct ts_choice *from)
{
	memcpy(to->action, from->action, from->n_gaps * sizeof(*to->action));
	memcpy(to->window, from->window, from->n_gaps * sizeof(*to->window));
	memcpy(to->late, from->late, from->n_gaps * sizeof(*to->late));
}

void ts_program_share_until(const struct ts_graph *graph, uint32_t *share_until)
{
	const struct ts_profile *profile = graph->profile;

	for (uint32_t i = 0; i < graph->n_ops; i++)
		share_until[i] = i + SHARE_OPS;
	for (uint32_t r = 0; r < profile->n_regions; r++) {
		const struct ts_region *region = &profile->regions[r];

		if (region->backward_first_op == TS_NONE)
			continue;
		for (uint32_t i = region->backward_first_op;
		        i < region->backward_end_op; i++)
			share_until[i] = region->backward_end_op - 1;
	}
}

int ts_program_init(struct ts_program *p, const struct ts_graph *graph)
{
	const struct ts_profile *profile = graph->profile;
	uint64_t values = profile->n_values + UINT64_C(1);
	uint64_t gaps = graph->n_gaps + UINT64_C(1);

	memset(p, 0, sizeof(*p));
	p->graph = graph;
	p->need_op = calloc(gaps, sizeof(*p->need_op));
	p->copy_op = calloc(gaps, sizeof(*p->copy_op));
	p->restored = calloc(gaps, sizeof(*p->restored));
	p->held = calloc(gaps, sizeof(*p->held));
	p->scratch_instr = calloc(values, sizeof(*p->scratch_instr));
	p->scratch_until = calloc(values, sizeof(*p->scratch_until));
	p->share_until =
	        calloc(graph->n_ops + UINT64_C(1), sizeof(*p->share_until));
	if (!p->need_op || !p->copy_op || !p->restored || !p->held ||
	        !p->scratch_instr || !p->scratch_until || !p->share_until) {
		ts_program_finish(p);
		return -ENOMEM;
	}
	ts_program_share_until(graph, p->share_until);
	return 0;
}

void ts_program_finish(struct ts_program *p)
{
	free(p->instrs);
	free(p->needs);
	free(p->need_op);
	free(p->copy_op);
	free(p->restored);
	free(p->held);
	free(p->scratch_instr);
	free(p->scratch_until);
	free(p->share_until);
	free(p->live);
	free(p->stack);
	memset(p, 0, sizeof(*p));
}

/* Room for one more item; doubles. */
static int room_for(
        void *array_pointer, uint32_t count, uint32_t *room, size_t size)
{
	void **array = array_pointer, *more;
	uint32_t next;

	if (count < *room)
		return 0;
	next = *room ? 2 * *room : 256;
	more = realloc(*array, next * size);
	if (!more)
		return -ENOMEM;
	*array = more;
	*room = next;
	return 0;
}

static int add_need(struct ts_program *p, uint32_t gap, uint32_t op)
{
	int err = room_for(
	        &p->needs, p->n_needs, &p->needs_room, sizeof(*p->needs));
	uint32_t own = op;

	if (err)
		return err;
	p->needs[p->n_needs++] = gap;
	/* A need before the gap begins belongs to the next step's count. */
	if (op <= p->graph->gaps[gap].from_op)
		own += p->graph->n_ops;
	if (own < p->need_op[gap])
		p->need_op[gap] = own;
	return 0;
}

/* The next instruction, to be filled in place; it counts once it is done. */
static struct ts_instr *begin_instr(struct ts_program *p)
{
	if (room_for(&p->instrs, p->n_instrs, &p->instrs_room,
	            sizeof(*p->instrs)))
		return NULL;
	return &p->instrs[p->n_instrs];
}

static bool has_scratch(const struct ts_program *p, uint32_t value, uint32_t op)
{
	return p->scratch_instr[value] != TS_NONE &&
	       op <= p->scratch_until[value];
}

/* Is @value on hand at @op, or does its producer have to run first? */
static bool on_hand(const struct ts_program *p, const struct ts_choice *choice,
        uint32_t value, uint32_t op)
{
	uint32_t gap;

	if (!ts_graph_alive(p->graph, value, op))
		return has_scratch(p, value, op);
	gap = ts_graph_gap_at(p->graph, value, op);
	return gap == TS_NONE || choice->action[gap] != TS_REPLAY ||
	       p->restored[gap];
}

/* The copy is freed after the last instruction that used it. */
static void free_scratch(struct ts_program *p, uint32_t value)
{
	p->instrs[p->scratch_instr[value]].free_bytes +=
	        p->graph->profile->values[value].size_bytes;
	p->scratch_instr[value] = TS_NONE;
}

static int output(struct ts_program *p, const struct ts_choice *choice,
        uint32_t value, uint32_t op, struct ts_instr *instr)
{
	uint64_t size = p->graph->profile->values[value].size_bytes;
	uint32_t old = p->graph->profile->values[value].in_place_of;
	uint32_t gap;
	int err;

	if (old != TS_NONE && p->scratch_instr[old] == p->n_instrs)
		/* Overwrites the copy of the older version, as at first. */
		p->scratch_instr[old] = TS_NONE;
	else
		instr->alloc_bytes += size;
	if (ts_graph_alive(p->graph, value, op)) {
		gap = ts_graph_gap_at(p->graph, value, op);
		if (gap != TS_NONE && choice->action[gap] == TS_REPLAY &&
		        !p->restored[gap]) {
			p->restored[gap] = 1;
			p->need_op[gap] = op;
			return 0;
		}
		/* The original is there: this output goes to waste. */
		instr->free_bytes += size;
		return 0;
	}
	if (p->scratch_instr[value] != TS_NONE)
		free_scratch(p, value);
	err = room_for(&p->live, p->n_live, &p->live_room, sizeof(*p->live));
	if (err)
		return err;
	p->live[p->n_live++] = value;
	p->scratch_instr[value] = p->n_instrs;
	p->scratch_until[value] = p->share_until[op];
	return 0;
}

/* Emits the run of @value's producer before @op; all it reads is on hand. */
static int emit_replay(struct ts_program *p, const struct ts_choice *choice,
        uint32_t value, uint32_t op, const struct ts_producer *producer)
{
	const struct ts_graph *g = p->graph;
	struct ts_instr *instr = begin_instr(p);
	int err = 0;

	if (!instr)
		return -ENOMEM;
	*instr = (struct ts_instr){.op = op,
	        .value = value,
	        .duration_ns = producer->duration_ns,
	        .first_need = p->n_needs};
	for (uint32_t k = 0; !err && k < producer->n_reads; k++) {
		uint32_t read = producer->reads[k], gap;

		if (!ts_graph_alive(g, read, op)) {
			p->scratch_instr[read] = p->n_instrs;
			continue;
		}
		gap = ts_graph_gap_at(g, read, op);
		if (gap != TS_NONE && choice->action[gap] == TS_SWAP)
			err = add_need(p, gap, op);
	}
	instr->n_needs = p->n_needs - instr->first_need;
	if (!err && producer->op == TS_NONE)
		err = output(p, choice, value, op, instr);
	for (uint32_t k = 0; !err && producer->op != TS_NONE &&
	                     k < g->profile->ops[producer->op].n_writes;
	        k++) {
		const struct ts_profile_op *made =
		        &g->profile->ops[producer->op];

		err = output(p, choice, g->profile->uses[made->first_write + k],
		        op, instr);
	}
	p->replay_ns += instr->duration_ns;
	p->n_instrs++;
	return err;
}

/* Depth first over what is missing; the stack holds (value, next read). */
static int restore(struct ts_program *p, const struct ts_choice *choice,
        uint32_t value, uint32_t op)
{
	uint32_t depth = 0;
	int err;

	err = room_for(&p->stack, 1, &p->stack_room, sizeof(*p->stack));
	if (err)
		return err;
	p->stack[depth++] = value;
	p->stack[depth++] = 0;
	while (depth) {
		struct ts_producer producer;
		uint32_t at = p->stack[depth - 2];
		uint32_t k = p->stack[depth - 1];

		if (!ts_graph_producer(p->graph, at, &producer))
			return -EINVAL;
		while (k < producer.n_reads &&
		        on_hand(p, choice, producer.reads[k], op))
			k++;
		if (k < producer.n_reads) {
			p->stack[depth - 1] = k;
			err = room_for(&p->stack, depth + 1, &p->stack_room,
			        sizeof(*p->stack));
			if (err)
				return err;
			p->stack[depth++] = producer.reads[k];
			p->stack[depth++] = 0;
			continue;
		}
		err = emit_replay(p, choice, at, op, &producer);
		if (err)
			return err;
		depth -= 2;
	}
	return 0;
}

/* Copies that have outlived their region go back. */
static void drop_old_scratch(struct ts_program *p, uint32_t op)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < p->n_live; i++) {
		uint32_t value = p->live[i];

		if (p->scratch_instr[value] == TS_NONE)
			continue;
		if (op == TS_NONE || op > p->scratch_until[value])
			free_scratch(p, value);
		else
			p->live[kept++] = value;
	}
	p->n_live = kept;
}

static int compile_op(
        struct ts_program *p, const struct ts_choice *choice, uint32_t op)
{
	const struct ts_graph *g = p->graph;
	struct ts_instr *instr;
	int err;

	for (uint32_t k = g->to_first[op]; k < g->to_first[op + 1]; k++) {
		uint32_t gap = g->by_to[k];

		if (choice->action[gap] != TS_REPLAY || p->restored[gap])
			continue;
		err = restore(p, choice, g->gaps[gap].version, op);
		if (err)
			return err;
	}
	if (p->n_live)
		drop_old_scratch(p, op);
	instr = begin_instr(p);
	if (!instr)
		return -ENOMEM;
	*instr = (struct ts_instr){.op = op,
	        .value = TS_NONE,
	        .duration_ns = g->profile->ops[op].duration_ns,
	        .alloc_bytes = g->alloc_bytes[op],
	        .free_bytes = g->free_bytes[op],
	        .first_need = p->n_needs};
	for (uint32_t turn = 0; turn < 2; turn++) {
		uint32_t to = op + (turn ? g->n_ops : 0);

		for (uint32_t k = g->to_first[to]; k < g->to_first[to + 1];
		        k++) {
			uint32_t gap = g->by_to[k];

			if (choice->action[gap] != TS_SWAP)
				continue;
			err = add_need(p, gap, op);
			if (err)
				return err;
		}
	}
	instr->n_needs = p->n_needs - instr->first_need;
	p->n_instrs++;
	return 0;
}

/*
 * Whether the host holds the gap's version already when the gap begins;
 * earlier gaps of the version have their answer in p->held.
 */
static bool has_copy(const struct ts_program *p, const struct ts_choice *choice,
        uint32_t gap)
{
	const struct ts_graph *g = p->graph;
	const struct ts_object *object = &g->objects[g->gaps[gap].object];
	uint32_t earlier = g->gaps[gap].earlier, wrap;

	if (g->gaps[gap].dirty)
		return false;
	if (earlier != TS_NONE)
		return p->held[earlier] || choice->action[earlier] == TS_SWAP;
	if (!object->persistent || g->gaps[gap].born_op != TS_NONE)
		return false;
	/* Never written in the step: the copy of some earlier step serves. */
	if (g->overwriter[g->gaps[gap].version] == TS_NONE && !object->dirtied)
		return true;
	wrap = g->object_gaps[g->object_first[g->gaps[gap].object + 1] - 1];
	return g->gaps[wrap].to_op >= g->n_ops &&
	       choice->action[wrap] == TS_SWAP;
}

/* Before the last use a copy would be of no use, where that makes it old. */
static bool copies_late(
        const struct ts_graph *g, const struct ts_choice *choice, uint32_t gap)
{
	return choice->late[gap] || g->gaps[gap].dirty;
}

int ts_program_compile(struct ts_program *p, const struct ts_choice *choice)
{
	const struct ts_graph *g = p->graph;
	int err = 0;

	p->n_instrs = p->n_needs = p->n_live = 0;
	p->replay_ns = 0;
	p->cyclic = false;
	memset(p->scratch_instr, 0xff,
	        g->profile->n_values * sizeof(*p->scratch_instr));
	for (uint32_t gap = 0; gap < g->n_gaps; gap++) {
		const struct ts_gap *info = &g->gaps[gap];

		p->restored[gap] = 0;
		p->need_op[gap] = info->to_op;
		p->copy_op[gap] = TS_NONE;
		p->held[gap] = has_copy(p, choice, gap);
		if (choice->action[gap] != TS_SWAP)
			continue;
		if (info->to_op >= g->n_ops)
			p->cyclic = true;
		if (!p->held[gap])
			p->copy_op[gap] =
			        copies_late(g, choice, gap) ? info->from_op
			        : info->born_op == TS_NONE  ? 0
			                                    : info->born_op;
	}
	for (uint32_t i = 0; !err && i < g->n_ops; i++)
		err = compile_op(p, choice, i);
	if (!err)
		drop_old_scratch(p, TS_NONE);
	return err;
}

void ts_program_memory(const struct ts_program *p,
        const struct ts_choice *choice, uint64_t *bytes)
{
	const struct ts_graph *g = p->graph;
	uint64_t used = g->base_bytes;
	uint32_t op = TS_NONE;

	/* What comes back by op, then the highest at it. */
	memset(bytes, 0, g->n_ops * sizeof(*bytes));
	for (uint32_t gap = 0; gap < g->n_gaps; gap++) {
		uint64_t size = g->gaps[gap].size_bytes;

		if (choice->action[gap] != TS_SWAP)
			continue;
		bytes[p->need_op[gap] % g->n_ops] += size;
		if (p->need_op[gap] >= g->n_ops)
			used -= size;
	}
	for (uint32_t k = 0; k < p->n_instrs; k++) {
		const struct ts_instr *instr = &p->instrs[k];

		if (instr->op != op) {
			op = instr->op;
			used += bytes[op];
			bytes[op] = 0;
		}
		used += instr->alloc_bytes;
		if (used > bytes[op])
			bytes[op] = used;
		used -= instr->free_bytes;
		if (instr->value != TS_NONE)
			continue;
		for (uint32_t i = g->from_first[op]; i < g->from_first[op + 1];
		        i++) {
			if (choice->action[i] != TS_KEEP)
				used -= g->gaps[i].size_bytes;
		}
	}
}
