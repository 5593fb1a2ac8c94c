/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where values live that are made again, seen by running ops on them: an op
 * writes a number made of those it finds where its operands are to be.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "agent/in_place.h"
#include "agent/places.h"
#include "tests/unit/suite.h"

#define OPS    24u
#define VALUES (2 * OPS)
#define UNIT   512u
#define UNITS  (4 * VALUES)
#define LEAVES 3u

static struct {
	struct ts_profile profile;
	uint32_t signature;
	struct ts_profile_builder builder;
	uint32_t state; /* of random numbers */
} s;

static uint32_t below(uint32_t n)
{
	s.state = s.state * 1664525u + 1013904223u;
	return (s.state >> 8) % n;
}

static void begin(uint32_t seed)
{
	s.state = seed;
	ts_builder_init(&s.builder);
	s.signature =
	        ts_builder_signature(&s.builder, "k", TS_CLASS_OTHER, true);
}

static uint32_t value(uint64_t bytes, uint32_t older)
{
	uint32_t made = ts_builder_value(&s.builder, bytes, TS_KIND_OTHER);

	s.builder.profile.values[made].in_place_of = older;
	return made;
}

static void op(const uint32_t *reads, uint32_t n_reads, uint32_t written)
{
	ts_builder_op(
	        &s.builder, s.signature, 1000, reads, n_reads, &written, 1);
}

static void take(void)
{
	ck_assert_int_eq(ts_builder_take(&s.builder, &s.profile), 0);
}

static uint64_t scratch(uint32_t n_ops, const uint32_t *home, uint32_t n_home)
{
	uint32_t ops[OPS];
	struct ts_places places;
	uint64_t bytes;

	for (uint32_t i = 0; i < n_ops; i++)
		ops[i] = i;
	ck_assert_int_eq(
	        ts_places_find(&s.profile, ops, n_ops, home, n_home, &places),
	        0);
	bytes = places.bytes;
	ts_places_finish(&places);
	return bytes;
}

START_TEST(scratch_goes_to_the_next_one)
{
	uint32_t last;

	begin(1);
	last = value(UNIT, TS_NONE);
	for (uint32_t i = 0; i < 6; i++) {
		uint32_t made = value(3 * UNIT - 1, TS_NONE);

		op(&last, 1, made);
		last = made;
	}
	take();
	/* Of five that nobody keeps two are there at once. */
	ck_assert_uint_eq(scratch(6, &last, 1), 2 * 3 * UNIT);
	ck_assert_uint_eq(scratch(1, &last, 1), 3 * UNIT);
	ts_profile_finish(&s.profile);
}
END_TEST

START_TEST(what_is_read_again_stays)
{
	uint32_t leaf, first, made[3];

	begin(1);
	leaf = value(UNIT, TS_NONE);
	first = value(UNIT, TS_NONE);
	op(&leaf, 1, first);
	for (int i = 0; i < 3; i++) {
		uint32_t reads[] = {first, i ? made[i - 1] : leaf};

		made[i] = value(UNIT, TS_NONE);
		op(reads, 2, made[i]);
	}
	take();
	ck_assert_uint_eq(scratch(4, &made[2], 1), 3 * UNIT);
	ts_profile_finish(&s.profile);
}
END_TEST

START_TEST(what_is_changed_in_place_stays_there)
{
	uint32_t leaf, first, second, third, reads[2];
	uint32_t ops[] = {0, 1, 2};
	struct ts_places places;

	begin(1);
	leaf = value(UNIT, TS_NONE);
	first = value(UNIT, TS_NONE);
	second = value(UNIT, first);
	third = value(UNIT, second);
	op(&leaf, 1, first);
	reads[0] = first;
	reads[1] = leaf;
	op(reads, 2, second);
	op(&second, 1, third);
	take();
	ck_assert_uint_eq(scratch(3, &third, 1), 0);
	ck_assert_uint_eq(scratch(3, NULL, 0), UNIT);
	ck_assert_int_eq(
	        ts_places_find(&s.profile, ops, 3, &third, 1, &places), 0);
	ck_assert_uint_eq(places.count, 1);
	ck_assert_ptr_eq(ts_places_get(&places, first), places.list);
	ck_assert_ptr_eq(ts_places_get(&places, second), places.list);
	ck_assert_ptr_eq(ts_places_get(&places, third), places.list);
	ck_assert_ptr_null(ts_places_get(&places, leaf));
	ck_assert(places.list[0].home);
	ts_places_finish(&places);
	/* Without the last one it ends as the second one. */
	ck_assert_uint_eq(scratch(2, &third, 1), UNIT);
	ts_profile_finish(&s.profile);
}
END_TEST

/* ------------------------------------------------------------ random steps */

static uint32_t at_random(const uint32_t *list, uint32_t count)
{
	return list[below(count)];
}

/* Ops that read what there is, and make something new of it or change one. */
static void make_random(uint32_t seed)
{
	uint32_t now[VALUES], count = 0;

	begin(seed);
	for (; count < LEAVES; count++)
		now[count] = value(UNIT, TS_NONE);
	for (uint32_t i = 0; i < OPS; i++) {
		uint32_t at = below(count), reads[3];
		bool in_place = at >= LEAVES && !below(3);
		uint64_t bytes = (1 + below(4)) * UNIT;

		reads[0] = now[at];
		reads[1] = at_random(now, count);
		reads[2] = at_random(now, count);
		if (in_place)
			bytes = s.builder.profile.values[now[at]].size_bytes;
		if (!in_place)
			at = count++;
		now[at] = value(bytes, in_place ? reads[0] : TS_NONE);
		op(reads, 3, now[at]);
	}
	take();
}

struct memory {
	uint64_t scratch[UNITS], home[VALUES];
	uint64_t holds[VALUES]; /* by value: had each one memory of its own */
};

static uint64_t *unit(struct memory *memory, const struct ts_places *places,
        const struct ts_place *place, uint64_t at)
{
	return place->home ? &memory->home[place - places->list]
	                   : &memory->scratch[place->offset / UNIT + at];
}

static void run_op(
        struct memory *memory, const struct ts_places *places, uint32_t index)
{
	const struct ts_profile_op *o = &s.profile.ops[index];
	uint32_t written = s.profile.uses[o->first_write];
	const struct ts_place *place = ts_places_get(places, written);
	uint64_t holds = index + 1;

	for (uint32_t k = 0; k < o->n_reads; k++) {
		uint32_t read = s.profile.uses[o->first_read + k];
		const struct ts_place *from = ts_places_get(places, read);

		for (uint64_t i = 0; from && i < from->bytes / UNIT; i++)
			ck_assert_uint_eq(*unit(memory, places, from, i),
			        memory->holds[read]);
		holds = holds * 1000003u + memory->holds[read];
	}
	memory->holds[written] = holds;
	ck_assert_ptr_nonnull(place);
	for (uint64_t i = 0; i < place->bytes / UNIT; i++)
		*unit(memory, places, place, i) = holds;
}

START_TEST(every_op_finds_what_it_reads)
{
	static struct memory memory;
	uint64_t bytes = 0, least = 0;

	for (uint32_t seed = 1; seed <= 2000; seed++) {
		uint32_t ops[OPS], home[2];
		struct ts_places places;

		make_random(seed);
		memset(&memory, 0, sizeof(memory));
		for (uint32_t i = 0; i < OPS; i++)
			ops[i] = i;
		for (uint32_t v = 0; v < LEAVES; v++)
			memory.holds[v] = v + 77;
		home[0] = s.profile.n_values - 1;
		home[1] = LEAVES + below(OPS);
		ck_assert_int_eq(
		        ts_places_find(&s.profile, ops, OPS, home, 2, &places),
		        0);
		ck_assert_uint_le(places.bytes, UNITS * UNIT);
		for (uint32_t i = 0; i < OPS; i++)
			run_op(&memory, &places, i);
		for (uint32_t i = 0; i < places.count; i++)
			bytes += places.list[i].bytes;
		least += places.bytes;
		ts_places_finish(&places);
		ts_profile_finish(&s.profile);
	}
	/* Else nothing was shared, and nothing seen. */
	ck_assert_uint_lt(least, bytes * 3 / 4);
}
END_TEST

/* ---------------------------------------------------------------- in place */

START_TEST(what_is_older_than_the_step_is_not_changed_again)
{
	uint32_t leaf, fresh, changed, last, both[2];
	bool in_place[OPS];

	begin(1);
	leaf = value(UNIT, TS_NONE);
	fresh = value(UNIT, TS_NONE);
	changed = value(UNIT, leaf);
	last = value(UNIT, fresh);
	op(&leaf, 1, fresh);
	op(&leaf, 1, changed); /* a leaf in place */
	op(&fresh, 1, last);   /* what the step made */
	both[0] = value(UNIT, last);
	both[1] = value(UNIT, TS_NONE);
	/* Something new beside, what it does not read. */
	ts_builder_op(&s.builder, s.signature, 1000, &last, 1, both, 2);
	op(&leaf, 1, value(UNIT, both[0]));
	take();
	ck_assert_int_eq(ts_in_place_find(&s.profile, in_place), 0);
	ck_assert(!in_place[0]);
	ck_assert(!in_place[1]);
	ck_assert(in_place[2]);
	ck_assert(!in_place[3]);
	ck_assert(!in_place[4]);
	ts_profile_finish(&s.profile);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, scratch_goes_to_the_next_one);
	tcase_add_test(tcase, what_is_read_again_stays);
	tcase_add_test(tcase, what_is_changed_in_place_stays_there);
	tcase_add_test(tcase, every_op_finds_what_it_reads);
	tcase_add_test(tcase, what_is_older_than_the_step_is_not_changed_again);
}

int main(void)
{
	return run_suite("places", add_tests);
}
