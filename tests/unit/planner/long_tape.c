/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/planner/long_tape.h"

#include <errno.h>
#include <stdlib.h>

#include "planner/workloads.h"

int ts_long_transformer(uint32_t ops, struct ts_profile *p)
{
	struct ts_transformer shape = *ts_transformer_find("gpt2-xl");

	/* Forward and backward of a layer are 26 ops. */
	shape.layers = ops / 26;
	shape.vocabulary = 1000;
	return ts_workload_transformer(&shape, ts_machine_find("a100"), p);
}

static uint32_t persistent(
        struct ts_profile_builder *b, uint64_t mib, enum ts_value_kind kind)
{
	uint32_t value = ts_builder_value(b, mib << 20, kind);

	if (!b->err)
		b->profile.values[value].persistent = true;
	return value;
}

/* Updates parameter and state of one layer in place. */
static void update(struct ts_profile_builder *b, uint32_t signature,
        uint32_t weight, uint32_t state, uint32_t gradient)
{
	uint32_t old[] = {weight, state, gradient}, new[2];

	for (uint32_t i = 0; i < 2 && !b->err; i++) {
		const struct ts_value *value = &b->profile.values[old[i]];

		new[i] = ts_builder_value(b, value->size_bytes, value->kind);
		if (!b->err)
			b->profile.values[new[i]].in_place_of = old[i];
	}
	ts_builder_op(b, signature, 30000, old, 3, new, 2);
}

int ts_long_chain(uint32_t ops, struct ts_profile *p)
{
	const struct ts_machine *machine = ts_machine_find("a100");
	uint64_t both =
	        machine->link_bytes_per_s / 100 * machine->link_both_percent;
	struct ts_profile_builder b;
	uint32_t layers = ops / 3, forward, backward, step;
	uint32_t *x = calloc(layers + UINT64_C(1), sizeof(*x));
	uint32_t *w = calloc(layers, sizeof(*w)), gradient;
	uint32_t *m = calloc(layers, sizeof(*m));

	if (!x || !w || !m) {
		free(x);
		free(w);
		free(m);
		return -ENOMEM;
	}
	ts_builder_init(&b);
	forward = ts_builder_signature(&b, "forward", TS_CLASS_GEMM, true);
	backward = ts_builder_signature(&b, "backward", TS_CLASS_GEMM, true);
	step = ts_builder_signature(&b, "step", TS_CLASS_OPTIMIZER, false);
	x[0] = ts_builder_value(&b, 4 << 20, TS_KIND_INPUT);
	for (uint32_t i = 0; i < layers; i++) {
		w[i] = persistent(&b, 4 + i % 5, TS_KIND_PARAMETER);
		m[i] = persistent(&b, 8 + i % 3, TS_KIND_OPTIMIZER);
	}
	for (uint32_t i = 0; i < layers; i++) {
		uint32_t reads[] = {x[i], w[i]};

		x[i + 1] = ts_builder_value(
		        &b, (4 + i % 7) << 20, TS_KIND_ACTIVATION);
		ts_builder_op(&b, forward, 200000 + i % 11 * 10000, reads, 2,
		        &x[i + 1], 1);
	}
	gradient = x[layers];
	for (uint32_t i = layers; i-- > 0;) {
		uint32_t reads[] = {gradient, x[i], w[i]};

		gradient = ts_builder_value(
		        &b, (4 + i % 7) << 20, TS_KIND_GRADIENT);
		ts_builder_op(&b, backward, 400000 + i % 11 * 20000, reads, 3,
		        &gradient, 1);
	}
	for (uint32_t i = 0; i < layers; i++)
		update(&b, step, w[i], m[i], gradient);
	ts_builder_turn(&b, layers);
	b.profile.device =
	        (struct ts_device){.memory_bytes = machine->memory_bytes,
	                .d2h_bytes_per_s = machine->link_bytes_per_s,
	                .h2d_bytes_per_s = machine->link_bytes_per_s,
	                .d2h_both_bytes_per_s = both,
	                .h2d_both_bytes_per_s = both,
	                .copy_latency_ns = machine->copy_latency_ns};
	free(x);
	free(w);
	free(m);
	return ts_builder_take(&b, p);
}
