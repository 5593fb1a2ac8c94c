/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A choice (what to do with each gap) turned into the instructions that the
 * event model runs: ops with the replays before them, what each needs and
 * how its memory changes. Belongs to one planner call; no locks.
 */
#ifndef TS_PLANNER_PROGRAM_H
#define TS_PLANNER_PROGRAM_H

#include "planner/graph.h"

enum ts_action {
	TS_KEEP,
	TS_SWAP,
	TS_REPLAY,
	TS_ACTIONS,
};

/* What to do with each gap, and when prefetches may start. */
struct ts_choice {
	uint32_t n_gaps;
	uint8_t *action; /* enum ts_action by gap */
	/*
	 * First op from whose start the copy back may run, in the gap's own
	 * count (above n_ops: in the next step); 0: right after the gap began.
	 */
	uint32_t *window;
	/* By gap: the copy out waits until the gap begins. */
	uint8_t *late;
};

int ts_choice_init(struct ts_choice *choice, uint32_t n_gaps);
void ts_choice_finish(struct ts_choice *choice);
void ts_choice_copy(struct ts_choice *to, const struct ts_choice *from);

struct ts_instr {
	/* Op in whose place it runs: itself, or the one the replay is for. */
	uint32_t op;
	/* Replays: value whose producer runs; TS_NONE for the op itself. */
	uint32_t value;
	uint64_t duration_ns;
	uint64_t alloc_bytes;
	uint64_t free_bytes;
	/* Slice of program.needs: swap gaps that must be on the device. */
	uint32_t first_need;
	uint32_t n_needs;
};

struct ts_program {
	const struct ts_graph *graph;
	uint32_t n_instrs;
	uint32_t instrs_room;
	struct ts_instr *instrs;
	uint32_t n_needs;
	uint32_t needs_room;
	uint32_t *needs;
	/* By gap: op of the first need (swap) or the replay; its own count. */
	uint32_t *need_op;
	/*
	 * By gap: op after which its copy out is queued, as early as may be
	 * (what came from outside: after the first op); TS_NONE: the host has
	 * it.
	 */
	uint32_t *copy_op;
	uint64_t replay_ns;
	/* A wrapping gap is swapped: one step leans on the one before. */
	bool cyclic;

	/* Scratch of the compiler. */
	uint8_t *restored;       /* by gap */
	uint8_t *held;           /* by gap: the host has the version already */
	uint32_t *scratch_instr; /* by value: last instr that used the copy */
	uint32_t *scratch_until; /* by value: last op that may share it */
	uint32_t *share_until;   /* by op */
	uint32_t *live;          /* values with a scratch copy */
	uint32_t n_live;
	uint32_t live_room;
	uint32_t *stack;
	uint32_t stack_room;
};

/*
 * By op, n_ops of them: the last op that may read what was replayed for this
 * one and is dead there, its scratch.
 */
void ts_program_share_until(
        const struct ts_graph *graph, uint32_t *share_until);

int ts_program_init(struct ts_program *program, const struct ts_graph *graph);
void ts_program_finish(struct ts_program *program);

/*
 * Compiles @choice. 0, -ENOMEM, or -EINVAL where a replay asks for what
 * nothing can make.
 */
int ts_program_compile(
        struct ts_program *program, const struct ts_choice *choice);

/*
 * Memory by op that the compiled @program takes if copies took no time; in
 * @ret_bytes, by op.
 */
void ts_program_memory(const struct ts_program *program,
        const struct ts_choice *choice, uint64_t *ret_bytes);

#endif
