/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/planner/random_tape.h"

#include <errno.h>
#include <string.h>

#define MAX_LAYERS 6
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

static int make(uint64_t seed, bool wide, struct ts_profile *ret_profile)
{
	struct tape t = {.wide = wide};
	struct ts_device *device = &t.b.profile.device;
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
	device->name = strdup("random");
	t.b.profile.name = strdup("random");
	if (!device->name || !t.b.profile.name)
		t.b.err = -ENOMEM;
	device->d2h_bytes_per_s = device->h2d_bytes_per_s =
	        UINT64_C(1000000000) << ts_random_below(&t.random, 6);
	device->d2h_both_bytes_per_s = device->d2h_bytes_per_s / 100 * 85;
	device->h2d_both_bytes_per_s = device->h2d_bytes_per_s / 100 * 85;
	device->copy_latency_ns = 10000;
	return ts_builder_take(&t.b, ret_profile);
}

int ts_random_tape(uint64_t seed, struct ts_profile *ret_profile)
{
	return make(seed, false, ret_profile);
}

int ts_random_wide_tape(uint64_t seed, struct ts_profile *ret_profile)
{
	return make(seed, true, ret_profile);
}
