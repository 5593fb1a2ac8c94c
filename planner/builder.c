/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for @more items of @size bytes at the end of @array. */
static void *grow(struct ts_profile_builder *builder, void *array,
        uint32_t count, uint32_t more, uint32_t *room, size_t size)
{
	uint64_t need = (uint64_t)count + more;
	uint64_t next = *room ? *room : 64;
	void *bigger;

	if (need <= *room)
		return array;
	while (next < need)
		next *= 2;
	if (next > TS_MAX_USES * UINT64_C(2)) {
		builder->err = -EINVAL;
		return array;
	}
	bigger = realloc(array, next * size);
	if (!bigger) {
		builder->err = -ENOMEM;
		return array;
	}
	*room = (uint32_t)next;
	return bigger;
}

void ts_builder_init(struct ts_profile_builder *builder)
{
	memset(builder, 0, sizeof(*builder));
}

void ts_builder_finish(struct ts_profile_builder *builder)
{
	ts_profile_finish(&builder->profile);
	free(builder->ordinals);
	memset(builder, 0, sizeof(*builder));
}

int ts_builder_take(
        struct ts_profile_builder *builder, struct ts_profile *ret_profile)
{
	int err = builder->err;

	if (!err) {
		*ret_profile = builder->profile;
		memset(&builder->profile, 0, sizeof(builder->profile));
	}
	ts_builder_finish(builder);
	return err;
}

uint32_t ts_builder_signature(struct ts_profile_builder *builder,
        const char *name, enum ts_op_class op_class, bool replayable)
{
	struct ts_profile *p = &builder->profile;
	uint32_t room = builder->signatures_room;
	struct ts_signature *sig;

	for (uint32_t i = 0; i < p->n_signatures; i++) {
		if (!strcmp(p->signatures[i].name, name))
			return i;
	}
	p->signatures = grow(builder, p->signatures, p->n_signatures, 1,
	        &builder->signatures_room, sizeof(*p->signatures));
	builder->ordinals = grow(builder, builder->ordinals, p->n_signatures, 1,
	        &room, sizeof(*builder->ordinals));
	if (builder->err)
		return 0;
	sig = &p->signatures[p->n_signatures];
	sig->name = strdup(name);
	if (!sig->name) {
		builder->err = -ENOMEM;
		return 0;
	}
	sig->op_class = op_class;
	sig->replayable = replayable;
	builder->ordinals[p->n_signatures] = 0;
	return p->n_signatures++;
}

uint32_t ts_builder_value(struct ts_profile_builder *builder,
        uint64_t size_bytes, enum ts_value_kind kind)
{
	struct ts_profile *p = &builder->profile;

	p->values = grow(builder, p->values, p->n_values, 1,
	        &builder->values_room, sizeof(*p->values));
	if (builder->err)
		return 0;
	p->values[p->n_values] = (struct ts_value){
	        .size_bytes = size_bytes,
	        .signature = TS_NONE,
	        .kind = kind,
	        .in_place_of = TS_NONE,
	        .rebuild = TS_NONE,
	        .died = TS_NONE,
	};
	return p->n_values++;
}

static uint32_t add_uses(
        struct ts_profile_builder *builder, const uint32_t *uses, uint32_t n)
{
	struct ts_profile *p = &builder->profile;
	uint32_t first = p->n_uses;

	p->uses = grow(builder, p->uses, p->n_uses, n, &builder->uses_room,
	        sizeof(*p->uses));
	if (builder->err)
		return 0;
	if (n)
		memcpy(p->uses + first, uses, n * sizeof(*uses));
	p->n_uses += n;
	return first;
}

uint32_t ts_builder_op(struct ts_profile_builder *builder, uint32_t signature,
        uint64_t duration_ns, const uint32_t *reads, uint32_t n_reads,
        const uint32_t *writes, uint32_t n_writes)
{
	struct ts_profile *p = &builder->profile;
	uint32_t first_read = add_uses(builder, reads, n_reads);
	uint32_t first_write = add_uses(builder, writes, n_writes);

	p->ops = grow(builder, p->ops, p->n_ops, 1, &builder->ops_room,
	        sizeof(*p->ops));
	if (builder->err)
		return 0;
	p->ops[p->n_ops] = (struct ts_profile_op){
	        .duration_ns = duration_ns,
	        .signature = signature,
	        .first_read = first_read,
	        .n_reads = n_reads,
	        .first_write = first_write,
	        .n_writes = n_writes,
	};
	for (uint32_t k = 0; k < n_writes; k++) {
		struct ts_value *value = &p->values[writes[k]];

		value->signature = signature;
		value->ordinal = builder->ordinals[signature];
		value->output = k;
	}
	builder->ordinals[signature]++;
	return p->n_ops++;
}

void ts_builder_rebuild(struct ts_profile_builder *builder, uint32_t value,
        uint64_t duration_ns, const uint32_t *reads, uint32_t n_reads)
{
	struct ts_profile *p = &builder->profile;
	uint32_t first_read = add_uses(builder, reads, n_reads);

	p->rebuilds = grow(builder, p->rebuilds, p->n_rebuilds, 1,
	        &builder->rebuilds_room, sizeof(*p->rebuilds));
	if (builder->err)
		return;
	p->rebuilds[p->n_rebuilds] = (struct ts_rebuild){
	        .duration_ns = duration_ns,
	        .first_read = first_read,
	        .n_reads = n_reads,
	};
	p->values[value].rebuild = p->n_rebuilds++;
}

void ts_builder_region(
        struct ts_profile_builder *builder, const struct ts_region *region)
{
	struct ts_profile *p = &builder->profile;

	p->regions = grow(builder, p->regions, p->n_regions, 1,
	        &builder->regions_room, sizeof(*p->regions));
	if (!builder->err)
		p->regions[p->n_regions++] = *region;
}

void ts_builder_turn(struct ts_profile_builder *builder, uint32_t op)
{
	struct ts_profile *p = &builder->profile;

	p->turns = grow(builder, p->turns, p->n_turns, 1, &builder->turns_room,
	        sizeof(*p->turns));
	if (!builder->err)
		p->turns[p->n_turns++] = op;
}
