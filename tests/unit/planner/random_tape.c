/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/planner/random_tape.h"

#include <errno.h>
#include <string.h>

#define MAX_LAYERS 6
/* Of what woven tapes have in common. */
#define MAX_READERS 3
/* Of wide tapes; each has all kinds of gaps in each layer. */
#define MAX_WIDE 40
#define MIN_WIDE 14

void ts_random_seed(struct ts_random *random, uint64_t seed)
{
	random->state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

uint32_t ts_random_below(struct ts_random *random, uint32_t n)
{
	random->state ^= random->state >> 12;
	random->state ^= random->state << 25;
	random->state ^= random->state >> 27;
	return (uint32_t)((random->state * UINT64_C(2685821657736338717)) >>
	                  33) %
	       n;
}

struct tape {
	struct ts_profile_builder b;
	struct ts_random random;
	uint32_t layers;
	bool wide;
	bool apart; /* the link's speeds are drawn for each way */
	uint32_t out[MAX_WIDE + 1]; /* what layer i reads */
	uint32_t skip[MAX_WIDE];    /* a second input, or TS_NONE */
	uint32_t parameter[MAX_WIDE];
	uint32_t gradient[MAX_WIDE];
};

/* Of wide tapes some are too small to be worth moving each for itself. */
static uint64_t size(struct tape *t)
{
	uint64_t size = (UINT64_C(1) + ts_random_below(&t->random, 40)) << 20;

	return t->wide && !ts_random_below(&t->random, 3) ? size >> 6 : size;
}

static uint64_t duration(struct tape *t)
{
	return 20000 + ts_random_below(&t->random, 2000000);
}

static uint32_t op(struct tape *t, const char *name, bool replayable,
        const uint32_t *reads, uint32_t n_reads, const uint32_t *writes,
        uint32_t n_writes)
{
	return ts_builder_op(&t->b,
	        ts_builder_signature(&t->b, name, TS_CLASS_GEMM, replayable),
	        duration(t), reads, n_reads, writes, n_writes);
}

static void forward(struct tape *t, uint32_t i)
{
	uint32_t reads[3], n = 0, out;

	reads[n++] = t->out[i];
	t->skip[i] = TS_NONE;
	if (i > 1 && !ts_random_below(&t->random, 3)) {
		t->skip[i] = t->out[ts_random_below(&t->random, i)];
		reads[n++] = t->skip[i];
	}
	if (t->parameter[i] != TS_NONE)
		reads[n++] = t->parameter[i];
	out = ts_builder_value(&t->b, size(t), TS_KIND_ACTIVATION);
	op(t, ts_random_below(&t->random, 5) ? "layer" : "unproved",
	        ts_random_below(&t->random, 5) != 0, reads, n, &out, 1);
	if (!ts_random_below(&t->random, 4)) {
		/* An activation that works in place. */
		uint32_t after = ts_builder_value(&t->b,
		        t->b.profile.values[out].size_bytes,
		        TS_KIND_ACTIVATION);

		if (!t->b.err)
			t->b.profile.values[after].in_place_of = out;
		op(t, "in_place", true, &out, 1, &after, 1);
		out = after;
	}
	if (!t->b.err && !ts_random_below(&t->random, 8))
		t->b.profile.values[out].no_replay = true;
	t->out[i + 1] = out;
}

static uint32_t backward(struct tape *t, uint32_t i, uint32_t grad)
{
	uint32_t reads[3] = {grad, t->out[i], t->out[i + 1]};
	uint32_t writes[2], n_writes = 0, n_reads = 3;

	if (!ts_random_below(&t->random, 3))
		n_reads = 2;
	writes[n_writes++] = ts_builder_value(&t->b, size(t), TS_KIND_GRADIENT);
	if (t->parameter[i] != TS_NONE) {
		t->gradient[i] = ts_builder_value(&t->b,
		        t->b.profile.values[t->parameter[i]].size_bytes,
		        TS_KIND_GRADIENT);
		writes[n_writes++] = t->gradient[i];
	}
	op(t, "backward", false, reads, n_reads, writes, n_writes);
	if (t->skip[i] != TS_NONE)
		op(t, "skip_backward", false, &t->skip[i], 1, NULL, 0);
	return writes[0];
}

static void optimizer(struct tape *t, uint32_t i, uint32_t moment)
{
	uint32_t reads[3] = {t->parameter[i], t->gradient[i], moment};
	uint32_t writes[2];

	for (uint32_t k = 0; k < 2; k++) {
		uint32_t old = k ? moment : t->parameter[i];

		writes[k] = ts_builder_value(&t->b,
		        t->b.profile.values[old].size_bytes,
		        k ? TS_KIND_OPTIMIZER : TS_KIND_PARAMETER);
		if (!t->b.err)
			t->b.profile.values[writes[k]].in_place_of = old;
	}
	op(t, "adam", false, reads, 3, writes, 2);
}

static uint32_t persistent(
        struct tape *t, uint64_t bytes, enum ts_value_kind kind)
{
	uint32_t value = ts_builder_value(&t->b, bytes, kind);

	if (!t->b.err)
		t->b.profile.values[value].persistent = true;
	return value;
}

/* Names, and a link. */
static int finish(struct tape *t, struct ts_profile *ret_profile)
{
	struct ts_device *device = &t->b.profile.device;

	device->name = strdup("random");
	t->b.profile.name = strdup("random");
	if (!device->name || !t->b.profile.name)
		t->b.err = -ENOMEM;
	device->d2h_bytes_per_s = device->h2d_bytes_per_s =
	        UINT64_C(1000000000) << ts_random_below(&t->random, 6);
	if (t->apart)
		device->d2h_bytes_per_s = UINT64_C(100000000)
		                          << ts_random_below(&t->random, 8);
	device->d2h_both_bytes_per_s = device->d2h_bytes_per_s / 100 * 85;
	device->h2d_both_bytes_per_s = device->h2d_bytes_per_s / 100 * 85;
	device->copy_latency_ns = 10000;
	return ts_builder_take(&t->b, ret_profile);
}

static int make(
        uint64_t seed, bool wide, bool apart, struct ts_profile *ret_profile)
{
	struct tape t = {.wide = wide, .apart = apart};
	uint32_t moments[MAX_WIDE], grad;
	bool cyclic;

	ts_random_seed(&t.random, seed);
	ts_builder_init(&t.b);
	t.layers = wide ? MIN_WIDE + ts_random_below(
	                                     &t.random, MAX_WIDE + 1 - MIN_WIDE)
	                : 2 + ts_random_below(&t.random, MAX_LAYERS - 1);
	cyclic = wide || !ts_random_below(&t.random, 3);
	t.out[0] = ts_builder_value(&t.b, size(&t), TS_KIND_INPUT);
	for (uint32_t i = 0; i < t.layers; i++) {
		t.parameter[i] = moments[i] = TS_NONE;
		if (!cyclic || (!(wide && i < MIN_WIDE) &&
		                       ts_random_below(&t.random, 2)))
			continue;
		t.parameter[i] = persistent(&t, size(&t), TS_KIND_PARAMETER);
		moments[i] = persistent(&t, size(&t), TS_KIND_OPTIMIZER);
	}
	for (uint32_t i = 0; i < t.layers; i++)
		forward(&t, i);
	if (ts_random_below(&t.random, 8))
		ts_builder_turn(&t.b, t.b.profile.n_ops);
	grad = ts_builder_value(&t.b, size(&t), TS_KIND_GRADIENT);
	op(&t, "loss", false, &t.out[t.layers], 1, &grad, 1);
	for (uint32_t i = t.layers; i-- > 0;)
		grad = backward(&t, i, grad);
	for (uint32_t i = 0; i < t.layers; i++) {
		if (t.parameter[i] != TS_NONE)
			optimizer(&t, i, moments[i]);
	}
	return finish(&t, ret_profile);
}

/* An op that makes @n_made values of at most @bytes. */
static void make_some(struct tape *t, bool replayable, uint64_t bytes,
        uint64_t ns, const uint32_t *reads, uint32_t n_reads,
        uint32_t *ret_made, uint32_t n_made)
{
	for (uint32_t i = 0; i < n_made; i++)
		ret_made[i] = ts_builder_value(
		        &t->b, bytes >> 2 * i, TS_KIND_ACTIVATION);
	ts_builder_op(&t->b,
	        ts_builder_signature(&t->b, replayable ? "woven" : "unproved",
	                TS_CLASS_GEMM, replayable),
	        ns, reads, n_reads, ret_made, n_made);
}

/* Something large comes and goes: a peak. */
static void pass_by(struct tape *t)
{
	uint32_t large;

	make_some(t, false, 4 * size(t), duration(t), NULL, 0, &large, 1);
	op(t, "passed", false, &large, 1, NULL, 0);
}

/*
 * What takes long to make and has several readers: a few ops in a row, of
 * which the later ones may read the first one's as well.
 */
static uint32_t make_shared(struct tape *t, uint32_t input)
{
	uint32_t reads[2] = {input, input}, made[2];

	for (uint32_t i = 1 + ts_random_below(&t->random, 3); i > 0; i--) {
		uint32_t n_reads = 1 + (reads[1] != input &&
		                               ts_random_below(&t->random, 2));

		make_some(t, true, size(t) >> 5,
		        duration(t) * (1 + ts_random_below(&t->random, 40)),
		        reads, n_reads, made, 1);
		reads[0] = made[0];
		if (reads[1] == input && !ts_random_below(&t->random, 2))
			reads[1] = made[0];
	}
	return reads[0];
}

/* Readers of the shared value; one of two outputs may have a rebuild. */
static uint32_t make_readers(
        struct tape *t, uint32_t shared, uint32_t *kept, uint32_t n)
{
	uint32_t reads[2] = {shared, shared};

	for (uint32_t i = 2 + ts_random_below(&t->random, MAX_READERS - 1);
	        i > 0; i--) {
		uint32_t n_reads = 1 + (n && !ts_random_below(&t->random, 4));
		uint32_t n_made = 1 + !ts_random_below(&t->random, 4);

		if (n)
			reads[1] = kept[n - 1];
		make_some(t, ts_random_below(&t->random, 8) != 0, size(t),
		        duration(t), reads, n_reads, kept + n, n_made);
		n += n_made;
		if (n_made == 2 && ts_random_below(&t->random, 2))
			ts_builder_rebuild(
			        &t->b, kept[n - 1], duration(t), NULL, 0);
	}
	return n;
}

/*
 * Values that are made from shared ones; they and what nothing can replay are
 * used in any order, with peaks in between.
 */
int ts_random_woven_tape(uint64_t seed, struct ts_profile *ret_profile)
{
	struct tape t = {.apart = true};
	uint32_t kept[2 + 2 * MAX_READERS], n = 0, input;

	ts_random_seed(&t.random, seed);
	ts_builder_init(&t.b);
	input = ts_builder_value(&t.b, size(&t) >> 5, TS_KIND_INPUT);
	for (uint32_t i = 1 + ts_random_below(&t.random, 2); i > 0; i--)
		make_some(&t, false, 2 * size(&t), duration(&t), &input,
		        ts_random_below(&t.random, 2), &kept[n++], 1);
	n = make_readers(&t, make_shared(&t, input), kept, n);
	ts_builder_turn(&t.b, t.b.profile.n_ops);
	pass_by(&t);
	while (n) {
		uint32_t k = ts_random_below(&t.random, n);

		op(&t, "use", false, &kept[k], 1, NULL, 0);
		kept[k] = kept[--n];
		if (ts_random_below(&t.random, 2))
			pass_by(&t);
	}
	if (ts_random_below(&t.random, 4))
		op(&t, "end", false, &input, 1, NULL, 0);
	return finish(&t, ret_profile);
}

int ts_random_tape(uint64_t seed, struct ts_profile *ret_profile)
{
	return make(seed, false, false, ret_profile);
}

int ts_random_tape_apart(uint64_t seed, struct ts_profile *ret_profile)
{
	return make(seed, false, true, ret_profile);
}

int ts_random_wide_tape(uint64_t seed, struct ts_profile *ret_profile)
{
	return make(seed, true, false, ret_profile);
}
