/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What planned.c (which plans there are), planned_steps.c (how steps go by
 * them), planned_lost.c (whether they have their chunks) and planned_status.c
 * (what is told of that) share. Guarded by its lock
 * but for what says otherwise; functions are called with the lock held.
 */
#ifndef TS_PLANNED_INTERNAL_H
#define TS_PLANNED_INTERNAL_H

#include <stdatomic.h>

#include "agent/agent_internal.h"
#include "agent/planned.h"
#include "agent/planned_cache.h"

/* Where the program's ops stand. */
enum ts_planned_stand {
	TS_PLANNED_OFF, /* no plan: the pager alone */
	/* Steps like the plan's go by with the pager, and are timed. */
	TS_PLANNED_TIMING,
	TS_PLANNED_ON, /* by the plan */
};

struct ts_planned {
	bool on; /* constant after start */
	atomic_bool has_plan;
	atomic_uint missed;  /* ops the pager had to help, on the step */
	atomic_uint doubted; /* of these, with doubtful uses */
	/* What others have of the memory is wanted, of who holds no lock. */
	atomic_bool asks;
	atomic_bool lost; /* chunks, to the agent itself */

	struct ts_mutex lock;
	/*
	 * A plan is being put into force, which waits for the device and so is
	 * done without the lock: what is here stays as it is meanwhile, but
	 * for @crossed: other threads' ops came. Told by @adopted.
	 */
	bool adopting, crossed;
	pthread_cond_t adopted;
	/* Guarded by lock. */
	int device;
	struct ts_planned_cache cache;
	struct ts_planned_buckets buckets;
	struct ts_planned_entry *now;      /* op `at` of its step comes next */
	struct ts_planned_entry *in_force; /* pages are as it wants them */
	struct ts_planned_entry *told;     /* its plan is the file's */
	json_t *former;                    /* what was, where there is none */
	enum ts_planned_stand stand;
	bool to_join; /* at the step's start the plan has to come into force */
	uint32_t at;
	uint64_t between; /* ops since the last step ended */
	/*
	 * Whole steps of one kind in a row, and ops since the last; so many
	 * more than one there have to be where steps take turns.
	 */
	const struct ts_planned_entry *last;
	unsigned int row, restless;
	uint64_t apart;
	bool joined; /* no step went by the plan since it was taken up */
	bool fresh;  /* it came into force in the step at hand */
	unsigned int in_vain; /* plans without a good step, in a row */
	unsigned int waits;   /* for the device, in vain, in a row */
	unsigned int timed;   /* steps in a row that the clock saw */
	unsigned int in_row;  /* steps by the plan since it was taken up */
	/*
	 * Where the plan was left in the middle of a step, which may go on: the
	 * plan, before which op, and how many of those that come then came.
	 */
	struct ts_planned_entry *torn;
	uint64_t torn_number; /* its number: it may have gone since */
	uint32_t torn_at, torn_ops;
	bool mending;        /* the step at hand was taken up like this */
	unsigned int mended; /* so often since a step went by whole */
	/* When the last of these ended. */
	uint64_t vmm_calls;
	struct ts_enforce_work work;
	uint64_t other_bytes; /* that others had when it was */
	uint64_t others_now;  /* as they were asked for last */
	bool others_known;    /* they were, and were not looked at */
	/* Steps by a plan before one looks whether others have less by now. */
	unsigned int less_steps;
	uint64_t clocked; /* the plan whose steps the clock has timed */
	bool rewrite;     /* the file offers what was dropped */
	struct ts_planned_figures figures;
};

extern struct ts_planned ts_planned;

/* planned.c */

/* Nothing is done ahead of the pager any more. */
void ts_planned_end_force(void);

/* The plan of @entry does not hold: it goes, and a new one is to be made. */
void ts_planned_drop(struct ts_planned_entry *entry);

/*
 * The pager alone is as fast: it goes on alone with steps like these. @took_ns:
 * what a step by the plan took; 0: none did, it is said what one would take.
 */
void ts_planned_decline(struct ts_planned_entry *entry, uint64_t took_ns);

/*
 * Others have more memory by now, or less: @entry gets a plan for that, where
 * there is one. True: it did, and has to come into force. Where they have more
 * and there is none the old one is gone.
 */
bool ts_planned_remake(
        struct ts_pager *pager, struct ts_planned_entry *entry, bool more);

/* planned_steps.c */

/* Ops are followed no more, until a whole step is found. */
void ts_planned_stand_off(void);

/* A whole step of @entry, or NULL, has just passed: may the next go by it? */
void ts_planned_found_step(struct ts_planned_entry *entry);

/* planned_lost.c */

/* So many may find pages missing in a step that went as planned. */
uint64_t ts_planned_few_ops(const struct ts_planned_entry *entry);

/* The plan in force has lost more chunks than the pager may help out with. */
bool ts_planned_is_disturbed(
        struct ts_pager *pager, const struct ts_planned_entry *entry);

/* The same, asked once after each ts_planned_lost(): cheap for every op. */
bool ts_planned_has_lost_chunks(struct ts_pager *pager);

#endif
