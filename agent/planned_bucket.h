/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Steps of the same ops but for their sizes, as of texts of many lengths, in
 * buckets by what memory they need: each bucket's steps need up to a tenth more
 * than the least of it, so there are at most eight from one size to twice that.
 * A plan is for one size, since PyTorch lays out others elsewhere; so one plan
 * a bucket is made, and another only once that has carried its share of steps.
 * Pure; guarded by its owner's lock.
 */
#ifndef TS_PLANNED_BUCKET_H
#define TS_PLANNED_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/recording.h"

#define TS_BUCKETS_MAX 256

struct ts_planned_bucket {
	uint64_t family;     /* of all ops, without their sizes */
	uint64_t edge_bytes; /* most that its steps need */
	unsigned int plans;  /* that were made for it, and not dropped */
	uint64_t steps;      /* that went by these */
	uint64_t pager_ns;   /* a step with the pager alone; 0: not known */
	bool refused;        /* one more was wanted before there might be one */
};

struct ts_planned_buckets {
	struct ts_planned_bucket list[TS_BUCKETS_MAX];
	unsigned int count;
};

/*
 * The bucket of @step, which needs @peak_bytes; NULL where there are too many.
 * It stays where it is.
 */
struct ts_planned_bucket *ts_planned_bucket_of(
        struct ts_planned_buckets *buckets, const struct ts_recording *step,
        uint64_t peak_bytes);

/* May there be one plan more for its steps? */
bool ts_planned_bucket_may_plan(const struct ts_planned_bucket *bucket);

/* The same; where there may be none it is remembered that one was wanted. */
bool ts_planned_bucket_wants_plan(struct ts_planned_bucket *bucket);

/* A step went by a plan of @bucket. True: the one that was wanted may be made
 * now, which is told once. */
bool ts_planned_bucket_step(struct ts_planned_bucket *bucket);

#endif
