/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Token buckets, after TapeSAC: steps of changing length share plans. Counts of
 * tokens fall into geometric buckets; the plan of a bucket is made for its
 * upper edge, where memory is dearest, and so holds for every count in it.
 * Sizes and times of what has to do with tokens are taken to grow with their
 * number; parameters, their gradients and the optimizer do not know of it.
 * Pure; no locks.
 */
#ifndef TS_PLANNER_BUCKETS_H
#define TS_PLANNER_BUCKETS_H

#include "planner/profile.h"

/* An edge, in per cent of the one before. */
#define TS_BUCKET_PERCENT 110
/* Of regions beside the main one, whose counts vary more (vision, audio). */
#define TS_BUCKET_SECONDARY_PERCENT 125

/*
 * Upper edge of the bucket that @tokens falls into, which tells the bucket:
 * the least edge that is not below. Edges are whole numbers from 1 on; at 110
 * there are at most eight from one count to twice that. 0 for 0; UINT64_MAX
 * where there is no edge so high.
 */
uint64_t ts_bucket_edge(uint64_t tokens, uint32_t percent);

/*
 * The same for a secondary region: of the largest count that it has had, which
 * *largest_tokens keeps, so that its swings do not change the plan.
 */
uint64_t ts_bucket_secondary_edge(uint64_t tokens, uint64_t *largest_tokens);

/* Is a profile of @profiled_tokens too far from a step of @tokens? */
bool ts_bucket_wants_profile(uint64_t profiled_tokens, uint64_t tokens);

/* Memory that a step of so many tokens was seen to take. */
struct ts_bucket_sample {
	uint64_t tokens;
	uint64_t bytes;
};

/*
 * What a step of @tokens takes, by @n samples in ascending order of tokens: on
 * the line between those beside it; beyond the last ones in proportion to
 * them. 0 without samples. *ret_again, where not NULL: no sample is near
 * enough, and memory should be measured at @tokens.
 */
uint64_t ts_bucket_memory(const struct ts_bucket_sample *samples, uint32_t n,
        uint64_t tokens, bool *ret_again);

/*
 * @profile as it would be at @tokens. 0; -EINVAL: it does not say of how many
 * tokens it is, or would be out of bounds; -ENOMEM. The caller finishes it.
 */
int ts_bucket_scale(const struct ts_profile *profile, uint64_t tokens,
        struct ts_profile *ret_profile);

#endif
