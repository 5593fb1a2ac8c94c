/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/observed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/device.h"
#include "agent/memline.h"
#include "agent/shapes.h"

#define DEVICES 16
/* Where the link was not measured: a slow PCIe 3. Said in the file. */
#define GUESSED_BYTES_PER_S 10000000000ull
#define GUESSED_LATENCY_NS  10000ull

struct ordinal_slot {
	uint64_t key;
	uint32_t count;
};

static uint64_t signature_of(const struct ts_rec_op *op)
{
	return op->signature;
}

static uint64_t family_of(const struct ts_rec_op *op)
{
	return op->family;
}

/* Which of the ops with the same key each op is. */
static uint32_t *count_ordinals(const struct ts_recording *step,
        uint64_t (*key_of)(const struct ts_rec_op *op))
{
	size_t slots = 2 * step->op_count + 1;
	struct ordinal_slot *seen = calloc(slots, sizeof(*seen));
	uint32_t *ordinals = malloc((step->op_count + 1) * sizeof(*ordinals));

	if (!seen || !ordinals) {
		free(seen);
		free(ordinals);
		return NULL;
	}
	for (size_t i = 0; i < step->op_count; i++) {
		uint64_t key = key_of(&step->ops[i]);
		size_t slot = key % slots;

		while (seen[slot].count && seen[slot].key != key)
			slot = (slot + 1) % slots;
		seen[slot].key = key;
		ordinals[i] = seen[slot].count++;
	}
	free(seen);
	return ordinals;
}

static int fill_device(
        struct ts_device *device, const struct ts_device_facts *facts)
{
	const struct ts_bandwidth *link = &facts->link;

	device->name = strdup(*facts->name ? facts->name : "?");
	device->memory_bytes = facts->bytes;
	if (facts->link_measured) {
		device->d2h_bytes_per_s = link->d2h_bytes_per_s;
		device->h2d_bytes_per_s = link->h2d_bytes_per_s;
		device->d2h_both_bytes_per_s = link->d2h_both_bytes_per_s;
		device->h2d_both_bytes_per_s = link->h2d_both_bytes_per_s;
		device->copy_latency_ns = link->latency_ns;
	} else {
		device->d2h_bytes_per_s = GUESSED_BYTES_PER_S;
		device->h2d_bytes_per_s = GUESSED_BYTES_PER_S;
		device->d2h_both_bytes_per_s = GUESSED_BYTES_PER_S;
		device->h2d_both_bytes_per_s = GUESSED_BYTES_PER_S;
		device->copy_latency_ns = GUESSED_LATENCY_NS;
	}
	return device->name ? 0 : -ENOMEM;
}

static int build_device(const struct ts_recording *step, int device,
        const struct ts_device_facts *facts, struct ts_observed_device *ret)
{
	struct ts_profile_builder builder;
	int rc;

	ts_builder_init(&builder);
	rc = ts_values_build(step, device, &builder, &ret->values);
	if (rc)
		goto out_builder;
	builder.profile.resident_bytes = facts->outside_bytes;
	rc = ts_builder_take(&builder, &ret->profile);
	if (rc)
		goto out_values;
	rc = fill_device(&ret->profile.device, facts);
	if (rc)
		goto out_profile;
	ret->device = device;
	ts_builder_finish(&builder);
	return 0;
out_profile:
	ts_profile_finish(&ret->profile);
out_values:
	ts_values_finish(&ret->values);
out_builder:
	ts_builder_finish(&builder);
	return rc;
}

/* Which devices the step has to do with, bit by bit. */
static uint32_t devices_of(const struct ts_recording *step)
{
	uint32_t devices = 0;

	for (size_t i = 0; i < step->op_count; i++)
		for (uint32_t k = 0; k < step->ops[i].use_count; k++) {
			uint32_t block =
			        ts_recording_use(step, &step->ops[i], k)->block;
			int device = step->blocks[block].device;

			if (device >= 0 && device < DEVICES)
				devices |= 1u << device;
		}
	return devices;
}

static int add_device(struct ts_observed *made, int device,
        const struct ts_device_facts *facts)
{
	int rc = build_device(&made->step, device, &facts[device],
	        &made->devices[made->device_count]);

	made->device_count += !rc;
	return rc;
}

static int build_devices(
        struct ts_observed *made, const struct ts_device_facts *facts)
{
	int most = ts_memline_device(&made->step), rc;
	uint32_t others = devices_of(&made->step) & ~(1u << most);

	made->devices = calloc(DEVICES, sizeof(*made->devices));
	if (!made->devices)
		return -ENOMEM;
	rc = add_device(made, most, facts);
	for (int device = 0; !rc && others >> device; device++)
		if (others >> device & 1)
			rc = add_device(made, device, facts);
	return rc;
}

static int copy_turns(struct ts_observed *made)
{
	const struct ts_profile *profile = &made->devices[0].profile;

	made->turn_count = profile->n_turns;
	made->turns = malloc((profile->n_turns + 1) * sizeof(*made->turns));
	if (!made->turns)
		return -ENOMEM;
	if (profile->n_turns)
		memcpy(made->turns, profile->turns,
		        profile->n_turns * sizeof(*made->turns));
	return 0;
}

/* The shape's words take the place of those the step was recorded with. */
static int take_words(struct ts_observed *made, const struct ts_shape *shape)
{
	struct ts_recording *step = &made->step;
	uint64_t *words = malloc((shape->word_count + 1) * sizeof(*words));
	uint64_t next = 0;

	made->word_class = malloc(shape->word_count + 1);
	if (!words || !made->word_class) {
		free(words);
		return -ENOMEM;
	}
	memcpy(words, shape->words, shape->word_count * sizeof(*words));
	memcpy(made->word_class, shape->word_class, shape->word_count);
	free(step->words);
	step->words = words;
	step->word_count = shape->word_count;
	step->first_word = 0;
	for (size_t i = 0; i < step->op_count; i++) {
		step->ops[i].first_word = next;
		next += step->ops[i].word_count;
	}
	return 0;
}

static int fill(struct ts_observed *made, const struct ts_shape *shape,
        const struct ts_device_facts *facts)
{
	int rc;

	made->hash = shape->hash;
	made->op_count = (uint32_t)made->step.op_count;
	made->signatures =
	        malloc((shape->op_count + 1) * sizeof(*made->signatures));
	made->ordinals = count_ordinals(&made->step, signature_of);
	made->family_ordinals = count_ordinals(&made->step, family_of);
	if (!made->signatures || !made->ordinals || !made->family_ordinals)
		return -ENOMEM;
	memcpy(made->signatures, shape->signatures,
	        shape->op_count * sizeof(*made->signatures));
	rc = take_words(made, shape);
	if (!rc)
		rc = build_devices(made, facts);
	return rc ? rc : copy_turns(made);
}

struct ts_observed *ts_observed_create(struct ts_recording *step,
        const struct ts_shape *shape, const struct ts_device_facts *facts)
{
	struct ts_observed *made = calloc(1, sizeof(*made));

	if (!made) {
		ts_recording_finish(step);
		return NULL;
	}
	made->step = *step;
	memset(step, 0, sizeof(*step));
	if (!fill(made, shape, facts))
		return made;
	ts_observed_destroy(made);
	return NULL;
}

int ts_observed_add_cycle(struct ts_observed *observed,
        struct ts_recording *joined, const struct ts_cycle_found *found,
        const struct ts_device_facts *facts)
{
	struct ts_observed_cycle *cycle = calloc(1, sizeof(*cycle));
	int device = observed->devices[0].device, rc = -ENOMEM;

	if (cycle)
		rc = build_device(
		        joined, device, &facts[device], &cycle->device);
	if (rc) {
		free(cycle);
		ts_recording_finish(joined);
		return rc;
	}
	cycle->id = found->id;
	cycle->rounds = found->steps / found->shapes;
	cycle->step = *joined;
	memset(joined, 0, sizeof(*joined));
	observed->cycle = cycle;
	return 0;
}

static void destroy_cycle(struct ts_observed_cycle *cycle)
{
	if (!cycle)
		return;
	ts_profile_finish(&cycle->device.profile);
	ts_values_finish(&cycle->device.values);
	ts_recording_finish(&cycle->step);
	free(cycle);
}

void ts_observed_destroy(struct ts_observed *observed)
{
	if (!observed)
		return;
	destroy_cycle(observed->cycle);
	for (size_t i = 0; i < observed->device_count; i++) {
		ts_profile_finish(&observed->devices[i].profile);
		ts_values_finish(&observed->devices[i].values);
	}
	free(observed->devices);
	free(observed->turns);
	free(observed->word_class);
	free(observed->family_ordinals);
	free(observed->ordinals);
	free(observed->signatures);
	ts_recording_finish(&observed->step);
	free(observed);
}
