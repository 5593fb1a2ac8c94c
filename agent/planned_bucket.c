/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_bucket.h"

#include "agent/hash.h"
#include "planner/buckets.h"

/* So many steps by the bucket's plans are worth the making of one more. */
#define STEPS_A_PLAN 16

static uint64_t family_of(const struct ts_recording *step)
{
	uint64_t hash = TS_HASH_START;

	for (size_t i = 0; i < step->op_count; i++)
		hash = ts_hash_word(hash, step->ops[i].family);
	return hash;
}

struct ts_planned_bucket *ts_planned_bucket_of(
        struct ts_planned_buckets *buckets, const struct ts_recording *step,
        uint64_t peak_bytes)
{
	uint64_t edge_bytes = ts_bucket_edge(peak_bytes, TS_BUCKET_PERCENT);
	uint64_t family = family_of(step);
	struct ts_planned_bucket *bucket = buckets->list;

	for (; bucket < buckets->list + buckets->count; bucket++)
		if (bucket->family == family &&
		        bucket->edge_bytes == edge_bytes)
			return bucket;
	if (buckets->count == TS_BUCKETS_MAX)
		return NULL;
	buckets->count++;
	*bucket = (struct ts_planned_bucket){
	        .family = family, .edge_bytes = edge_bytes};
	return bucket;
}

bool ts_planned_bucket_may_plan(const struct ts_planned_bucket *bucket)
{
	return bucket && bucket->plans <= bucket->steps / STEPS_A_PLAN;
}

bool ts_planned_bucket_wants_plan(struct ts_planned_bucket *bucket)
{
	bool may = ts_planned_bucket_may_plan(bucket);

	if (bucket)
		bucket->refused = !may;
	return may;
}

bool ts_planned_bucket_step(struct ts_planned_bucket *bucket)
{
	bool may;

	bucket->steps++;
	may = bucket->refused && ts_planned_bucket_may_plan(bucket);
	bucket->refused &= !may;
	return may;
}
