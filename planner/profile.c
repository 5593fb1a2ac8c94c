/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/profile.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ts_profile_finish(struct ts_profile *profile)
{
	for (uint32_t i = 0; i < profile->n_signatures; i++)
		free(profile->signatures[i].name);
	free(profile->name);
	free(profile->device.name);
	free(profile->signatures);
	free(profile->ops);
	free(profile->values);
	free(profile->rebuilds);
	free(profile->uses);
	free(profile->regions);
	free(profile->turns);
	free(profile->idle);
	memset(profile, 0, sizeof(*profile));
}

__attribute__((format(printf, 4, 5))) static int bad(
        struct ts_input_error *error, const char *list, uint32_t index,
        const char *fmt, ...)
{
	va_list ap;

	snprintf(error->path, sizeof(error->path), "$.%s[%u]", list, index);
	va_start(ap, fmt);
	vsnprintf(error->message, sizeof(error->message), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int check_device(
        const struct ts_profile *profile, struct ts_input_error *error)
{
	const struct ts_device *device = &profile->device;
	const uint64_t speeds[] = {device->d2h_bytes_per_s,
	        device->h2d_bytes_per_s, device->d2h_both_bytes_per_s,
	        device->h2d_both_bytes_per_s};

	for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++) {
		if (speeds[i] >= 1000000 && speeds[i] <= TS_MAX_BYTES)
			continue;
		snprintf(error->path, sizeof(error->path), "$.device");
		snprintf(error->message, sizeof(error->message),
		        "a link speed is outside 1e6..2^50 bytes/s");
		return -EINVAL;
	}
	if (device->copy_latency_ns > 1000000000 ||
	        device->memory_bytes > TS_MAX_BYTES ||
	        profile->resident_bytes > TS_MAX_BYTES) {
		snprintf(error->path, sizeof(error->path), "$.device");
		snprintf(error->message, sizeof(error->message),
		        "latency, memory or resident bytes out of bounds");
		return -EINVAL;
	}
	return 0;
}

/* Fills @writer: the op that writes each value. */
static int check_ops(const struct ts_profile *profile, uint32_t *writer,
        uint32_t *last_use, struct ts_input_error *error)
{
	uint64_t step_ns = 0;

	for (uint32_t v = 0; v < profile->n_values; v++)
		writer[v] = last_use[v] = TS_NONE;
	for (uint32_t i = 0; i < profile->n_ops; i++) {
		const struct ts_profile_op *op = &profile->ops[i];

		if (op->signature >= profile->n_signatures)
			return bad(error, "ops", i, "no such signature");
		if (op->duration_ns > TS_MAX_DURATION)
			return bad(error, "ops", i, "duration out of bounds");
		step_ns += op->duration_ns;
		if (step_ns > TS_MAX_DURATION)
			return bad(error, "ops", i,
			        "durations up to here are out of bounds");
		for (uint32_t k = 0; k < op->n_writes; k++) {
			uint32_t v = profile->uses[op->first_write + k];

			if (v >= profile->n_values)
				return bad(error, "ops", i, "no value %u", v);
			if (writer[v] != TS_NONE)
				return bad(error, "ops", i,
				        "value %u is written twice", v);
			if (last_use[v] != TS_NONE)
				return bad(error, "ops", i,
				        "value %u is read before this write",
				        v);
			writer[v] = i;
		}
		for (uint32_t k = 0; k < op->n_reads; k++) {
			uint32_t v = profile->uses[op->first_read + k];

			if (v >= profile->n_values)
				return bad(error, "ops", i, "no value %u", v);
			if (writer[v] == i)
				return bad(error, "ops", i,
				        "value %u is read by its own writer",
				        v);
			last_use[v] = i;
		}
	}
	return 0;
}

static int check_in_place(const struct ts_profile *profile, uint32_t v,
        const uint32_t *writer, const uint32_t *last_use, bool *overwritten,
        struct ts_input_error *error)
{
	const struct ts_value *value = &profile->values[v];
	uint32_t old = value->in_place_of;

	if (old == TS_NONE)
		return 0;
	if (old >= profile->n_values || old == v)
		return bad(error, "values", v, "in_place_of: no such value");
	if (writer[v] == TS_NONE)
		return bad(error, "values", v, "in_place_of without a writer");
	if (overwritten[old])
		return bad(error, "values", v, "value %u is overwritten twice",
		        old);
	overwritten[old] = true;
	if (profile->values[old].size_bytes != value->size_bytes)
		return bad(error, "values", v,
		        "in_place_of: sizes of versions differ");
	if (writer[old] != TS_NONE && writer[old] >= writer[v])
		return bad(error, "values", v,
		        "in_place_of: the older version is not older");
	if (last_use[old] != TS_NONE && last_use[old] > writer[v])
		return bad(error, "values", v,
		        "in_place_of: the older version is read afterwards");
	return 0;
}

/* Memory that no op uses counts to the @total of all sizes, too. */
static int check_idle(const struct ts_profile *profile, uint64_t total,
        struct ts_input_error *error)
{
	for (uint32_t i = 0; i < profile->n_idle; i++) {
		if (profile->idle[i].size_bytes > TS_MAX_BYTES - total)
			return bad(error, "idle", i,
			        "all sizes together are out of bounds");
		total += profile->idle[i].size_bytes;
	}
	return 0;
}

static int check_values(const struct ts_profile *profile,
        const uint32_t *writer, const uint32_t *last_use, bool *overwritten,
        struct ts_input_error *error)
{
	uint64_t total = 0;

	for (uint32_t v = 0; v < profile->n_values; v++) {
		const struct ts_value *value = &profile->values[v];
		int err;

		if (value->size_bytes > TS_MAX_BYTES)
			return bad(error, "values", v, "size out of bounds");
		total += value->size_bytes;
		if (total > TS_MAX_BYTES)
			return bad(error, "values", v,
			        "all sizes together are out of bounds");
		if (value->signature != TS_NONE &&
		        value->signature >= profile->n_signatures)
			return bad(error, "values", v, "no such signature");
		if (value->persistent && writer[v] != TS_NONE)
			return bad(error, "values", v,
			        "persistent, but written by op %u", writer[v]);
		err = check_in_place(
		        profile, v, writer, last_use, overwritten, error);
		if (err)
			return err;
		if (value->rebuild == TS_NONE)
			continue;
		if (value->rebuild >= profile->n_rebuilds ||
		        writer[v] == TS_NONE)
			return bad(error, "values", v,
			        "rebuild of a value that no op writes");
		const struct ts_rebuild *rebuild =
		        &profile->rebuilds[value->rebuild];

		if (rebuild->duration_ns > TS_MAX_DURATION)
			return bad(error, "values", v,
			        "rebuild duration out of bounds");
		for (uint32_t k = 0; k < rebuild->n_reads; k++) {
			uint32_t r = profile->uses[rebuild->first_read + k];

			if (r >= profile->n_values)
				return bad(error, "values", v,
				        "rebuild reads no value %u", r);
			if (writer[r] != TS_NONE && writer[r] >= writer[v])
				return bad(error, "values", v,
				        "rebuild reads value %u, which is not "
				        "older",
				        r);
		}
	}
	return check_idle(profile, total, error);
}

static int check_structure(
        const struct ts_profile *profile, struct ts_input_error *error)
{
	for (uint32_t i = 0; i < profile->n_regions; i++) {
		const struct ts_region *region = &profile->regions[i];
		bool no_backward = region->backward_first_op == TS_NONE &&
		                   region->backward_end_op == TS_NONE;

		if (region->first_op >= region->end_op ||
		        region->end_op > profile->n_ops)
			return bad(error, "regions", i, "no such ops");
		if (i && region->first_op < profile->regions[i - 1].end_op)
			return bad(error, "regions", i,
			        "regions overlap or are out of order");
		if (!no_backward &&
		        (region->backward_first_op < region->end_op ||
		                region->backward_first_op >=
		                        region->backward_end_op ||
		                region->backward_end_op > profile->n_ops))
			return bad(error, "regions", i,
			        "the backward is not after the region");
	}
	for (uint32_t i = 0; i < profile->n_turns; i++) {
		if (profile->turns[i] >= profile->n_ops)
			return bad(error, "turns", i, "no such op");
		if (i && profile->turns[i] <= profile->turns[i - 1])
			return bad(error, "turns", i, "not ascending");
	}
	return 0;
}

int ts_profile_check(
        const struct ts_profile *profile, struct ts_input_error *error)
{
	size_t n = profile->n_values ? profile->n_values : 1;
	uint32_t *writer, *last_use;
	bool *overwritten;
	int err;

	memset(error, 0, sizeof(*error));
	if (profile->n_ops > TS_MAX_OPS || profile->n_values > TS_MAX_VALUES ||
	        profile->n_uses > TS_MAX_USES) {
		snprintf(error->path, sizeof(error->path), "$");
		snprintf(error->message, sizeof(error->message),
		        "too many ops, values or uses");
		return -EINVAL;
	}
	err = check_device(profile, error);
	if (err)
		return err;
	writer = calloc(n, sizeof(*writer));
	last_use = calloc(n, sizeof(*last_use));
	overwritten = calloc(n, sizeof(*overwritten));
	if (!writer || !last_use || !overwritten) {
		err = -ENOMEM;
		goto out_free;
	}
	err = check_ops(profile, writer, last_use, error);
	if (!err)
		err = check_values(
		        profile, writer, last_use, overwritten, error);
	if (!err)
		err = check_structure(profile, error);
out_free:
	free(overwritten);
	free(last_use);
	free(writer);
	return err;
}
