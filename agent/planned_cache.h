/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The plans of a process, one for each kind of step, and which of them the
 * program's ops go by. Guarded by its owner's lock.
 */
#ifndef TS_PLANNED_CACHE_H
#define TS_PLANNED_CACHE_H

#include <jansson.h>

#include "agent/observed.h"
#include "agent/planned_bucket.h"
#include "agent/planned_drift.h"
#include "agent/planned_follow.h"
#include "agent/planned_make.h"
#include "agent/planned_phase.h"

#define TS_PLANS_MAX 8

struct ts_planned_entry {
	struct ts_follow follow;
	struct ts_planned_plan made; /* for as many in a row as phases */
	struct ts_phases phases;
	uint64_t cycle_id; /* of shapes that take turns; 0: there is one */
	/* Where large blocks lie in it, by phase. */
	uint64_t layouts[TS_CYCLE_MAX];
	json_t *json; /* the plan, as it is written */
	/* What it was made for, which the tracker owns. */
	const struct ts_observed *observed;
	struct ts_planned_bucket *bucket;
	struct ts_planned_drift drift;
	uint64_t number;        /* differs from plan to plan; not 0 */
	uint64_t pager_ns;      /* a step with the pager alone; 0: not known */
	uint64_t doubt_ns;      /* of that: what was added, not measured */
	uint64_t used;          /* when last; 0: there is none here */
	unsigned int bad_steps; /* in a row, in which it did not hold */
	/*
	 * Steps that were begun by it and left, in a row, and how many whole
	 * ones have to pass until it is tried again.
	 */
	unsigned int vain, wait;
	/* Its first so many ops at least have to come before it is taken up
	 * in the middle of a step. */
	uint32_t wanted;
	/* Whole steps since it was made, up to those before it is proved what
	 * can be made again. */
	unsigned int whole;
	bool carried;   /* it carried a step through */
	bool declined;  /* the pager alone is as fast */
	bool stale;     /* the device is measured anew, for another plan */
	bool misplaced; /* blocks lie elsewhere: the pager alone until a plan
	                 * has them where they are */
};

struct ts_planned_cache {
	struct ts_planned_entry entries[TS_PLANS_MAX];
	uint64_t uses;
	unsigned int count;
};

/* @entry is for steps as @observed. 0 or -ENOMEM. */
int ts_planned_cache_follow(
        struct ts_planned_entry *entry, const struct ts_observed *observed);

/* The entry for steps as @observed, or for all that it takes turns with; or
 * NULL. */
struct ts_planned_entry *ts_planned_cache_find(
        struct ts_planned_cache *cache, const struct ts_observed *observed);

/* True where large blocks lie in @observed as in what @entry was made for. */
bool ts_planned_cache_lies(const struct ts_planned_entry *entry,
        const struct ts_observed *observed);

/* A free place, or else what was used longest ago; but not @keep. */
struct ts_planned_entry *ts_planned_cache_oldest(
        struct ts_planned_cache *cache, const struct ts_planned_entry *keep);

/* From now on @entry, which was free and is filled, counts. */
void ts_planned_cache_add(
        struct ts_planned_cache *cache, struct ts_planned_entry *entry);

/* It was of use just now. */
void ts_planned_cache_touch(
        struct ts_planned_cache *cache, struct ts_planned_entry *entry);

/* Frees what @entry holds, if anything; its place is free, all zeros. */
void ts_planned_cache_drop(
        struct ts_planned_cache *cache, struct ts_planned_entry *entry);

/*
 * The next op, off all plans: the entry whose whole step it ends, the one
 * used last where there are several; or NULL. @item is the op, or NULL where
 * its blocks are not known.
 */
struct ts_planned_entry *ts_planned_cache_push(struct ts_planned_cache *cache,
        const struct ts_follow_op *op, const struct ts_op *item);

/* As if the first @count ops of @entry's step had just passed, which say no
 * more of its phase than is known. */
void ts_planned_cache_rewind(struct ts_planned_cache *cache,
        struct ts_planned_entry *entry, uint32_t count);

#endif
