/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/buckets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A profile serves up to so many times its tokens. */
#define PROFILE_TIMES 2
/* A sample of memory serves up to so many per cent from its tokens. */
#define SAMPLE_PERCENT 15

uint64_t ts_bucket_edge(uint64_t tokens, uint32_t percent)
{
	uint64_t edge = 1;

	if (!tokens)
		return 0;
	while (edge < tokens) {
		/* Rounded up, so that edges are never nearer than that. */
		uint64_t more = edge / 100 * (percent - 100) +
		                (edge % 100 * (percent - 100) + 99) / 100;

		if (more > UINT64_MAX - edge)
			return UINT64_MAX;
		edge += more;
	}
	return edge;
}

uint64_t ts_bucket_secondary_edge(uint64_t tokens, uint64_t *largest_tokens)
{
	if (tokens > *largest_tokens)
		*largest_tokens = tokens;
	return ts_bucket_edge(*largest_tokens, TS_BUCKET_SECONDARY_PERCENT);
}

bool ts_bucket_wants_profile(uint64_t profiled_tokens, uint64_t tokens)
{
	return !profiled_tokens || tokens / PROFILE_TIMES > profiled_tokens ||
	       (tokens / PROFILE_TIMES == profiled_tokens &&
	               tokens % PROFILE_TIMES);
}

/* @value * @over / @under, rounded up; the highest number where it is more. */
static uint64_t scale(uint64_t value, uint64_t over, uint64_t under)
{
	unsigned __int128 product = (unsigned __int128)value * over;

	product = (product + under - 1) / under;
	return product > UINT64_MAX ? UINT64_MAX : (uint64_t)product;
}

static bool is_near(const struct ts_bucket_sample *sample, uint64_t tokens)
{
	uint64_t apart = tokens > sample->tokens ? tokens - sample->tokens
	                                         : sample->tokens - tokens;

	return apart <= scale(sample->tokens, SAMPLE_PERCENT, 100);
}

uint64_t ts_bucket_memory(const struct ts_bucket_sample *samples, uint32_t n,
        uint64_t tokens, bool *ret_again)
{
	const struct ts_bucket_sample *low, *high;
	uint32_t at = 0;

	if (ret_again) {
		*ret_again = true;
		for (uint32_t i = 0; i < n; i++)
			*ret_again =
			        *ret_again && !is_near(&samples[i], tokens);
	}
	if (!n)
		return 0;
	while (at < n && samples[at].tokens < tokens)
		at++;
	if (at < n && samples[at].tokens == tokens)
		return samples[at].bytes;
	if (!at || at == n) {
		low = &samples[at ? n - 1 : 0];
		return low->tokens ? scale(low->bytes, tokens, low->tokens)
		                   : low->bytes;
	}
	low = &samples[at - 1];
	high = &samples[at];
	/* Less memory for more tokens is an accident: nothing is gained. */
	if (high->bytes < low->bytes)
		return low->bytes;
	return low->bytes + scale(high->bytes - low->bytes,
	                            tokens - low->tokens,
	                            high->tokens - low->tokens);
}

/*
 * The first version of what @v is one of. @older has each value's older
 * version, a first one's itself, and has shorter ways afterwards: any number
 * of such walks takes little more time than there are values.
 */
static uint32_t first_version(uint32_t *older, uint32_t v)
{
	while (older[v] != v) {
		older[v] = older[older[v]];
		v = older[v];
	}
	return v;
}

/* Values whose size has nothing to do with tokens, by value. 0 or -ENOMEM. */
static int find_fixed(const struct ts_profile *p, uint8_t *fixed)
{
	uint32_t *older = malloc((p->n_values + UINT64_C(1)) * sizeof(*older));

	if (!older)
		return -ENOMEM;
	for (uint32_t v = 0; v < p->n_values; v++) {
		uint32_t old = p->values[v].in_place_of;

		older[v] = old == TS_NONE ? v : old;
	}
	/* Versions of one storage have one size: its first stands for all. */
	for (uint32_t v = 0; v < p->n_values; v++) {
		enum ts_value_kind kind = p->values[v].kind;

		if (p->values[v].persistent || kind == TS_KIND_PARAMETER ||
		        kind == TS_KIND_OPTIMIZER)
			fixed[first_version(older, v)] = 1;
	}
	for (uint32_t v = 0; v < p->n_values; v++)
		fixed[v] = fixed[first_version(older, v)];
	free(older);
	return 0;
}

/* Does @op write a new version of something that lives on? */
static bool updates(const struct ts_profile *p, const uint8_t *fixed,
        const struct ts_profile_op *op)
{
	for (uint32_t k = 0; k < op->n_writes; k++) {
		uint32_t v = p->uses[op->first_write + k];

		if (fixed[v] && p->values[v].in_place_of != TS_NONE)
			return true;
	}
	return false;
}

/* Gradients of parameters are what their updates read. */
static void find_gradients(const struct ts_profile *p, uint8_t *fixed)
{
	for (uint32_t i = 0; i < p->n_ops; i++) {
		const struct ts_profile_op *op = &p->ops[i];

		if (!updates(p, fixed, op))
			continue;
		for (uint32_t k = 0; k < op->n_reads; k++) {
			uint32_t v = p->uses[op->first_read + k];

			/*
			 * And the older versions, which were added up. Where
			 * one is fixed those before it are as well.
			 */
			while (p->values[v].kind == TS_KIND_GRADIENT &&
			        !fixed[v]) {
				fixed[v] = 1;
				if (p->values[v].in_place_of == TS_NONE)
					break;
				v = p->values[v].in_place_of;
			}
		}
	}
}

/* Nothing that it reads or writes grows with tokens: updates and the like. */
static bool is_fixed_op(const struct ts_profile *p, const uint8_t *fixed,
        const struct ts_profile_op *op)
{
	for (uint32_t k = 0; k < op->n_reads; k++) {
		if (!fixed[p->uses[op->first_read + k]])
			return false;
	}
	for (uint32_t k = 0; k < op->n_writes; k++) {
		if (!fixed[p->uses[op->first_write + k]])
			return false;
	}
	return op->n_reads + op->n_writes > 0;
}

static void *copy_of(const void *from, uint64_t n, size_t size, int *err)
{
	void *to = malloc(n ? n * size : 1);

	if (!to)
		*err = -ENOMEM;
	else if (n)
		memcpy(to, from, n * size);
	return to;
}

static char *name_of(const char *name, int *err)
{
	char *copy = name ? strdup(name) : NULL;

	if (name && !copy)
		*err = -ENOMEM;
	return copy;
}

static int copy_profile(const struct ts_profile *p, struct ts_profile *to)
{
	int err = 0;

	*to = *p;
	to->name = name_of(p->name, &err);
	to->device.name = name_of(p->device.name, &err);
	to->signatures = copy_of(
	        p->signatures, p->n_signatures, sizeof(*p->signatures), &err);
	for (uint32_t i = 0; to->signatures && i < p->n_signatures; i++)
		to->signatures[i].name = name_of(p->signatures[i].name, &err);
	to->ops = copy_of(p->ops, p->n_ops, sizeof(*p->ops), &err);
	to->values = copy_of(p->values, p->n_values, sizeof(*p->values), &err);
	to->rebuilds =
	        copy_of(p->rebuilds, p->n_rebuilds, sizeof(*p->rebuilds), &err);
	to->uses = copy_of(p->uses, p->n_uses, sizeof(*p->uses), &err);
	to->regions =
	        copy_of(p->regions, p->n_regions, sizeof(*p->regions), &err);
	to->turns = copy_of(p->turns, p->n_turns, sizeof(*p->turns), &err);
	to->idle = copy_of(p->idle, p->n_idle, sizeof(*p->idle), &err);
	if (!to->signatures)
		to->n_signatures = 0;
	if (err)
		ts_profile_finish(to);
	return err;
}

int ts_bucket_scale(const struct ts_profile *p, uint64_t tokens,
        struct ts_profile *ret_profile)
{
	struct ts_input_error error;
	struct ts_profile to;
	uint8_t *fixed;
	int err;

	if (!p->tokens || !tokens)
		return -EINVAL;
	fixed = calloc(p->n_values + UINT64_C(1), 1);
	err = fixed ? find_fixed(p, fixed) : -ENOMEM;
	if (!err)
		err = copy_profile(p, &to);
	if (err) {
		free(fixed);
		return err;
	}
	find_gradients(p, fixed);
	for (uint32_t v = 0; v < to.n_values; v++) {
		if (fixed[v])
			continue;
		to.values[v].size_bytes =
		        scale(p->values[v].size_bytes, tokens, p->tokens);
		/* It lies elsewhere then. */
		to.values[v].address = 0;
	}
	for (uint32_t i = 0; i < to.n_ops; i++) {
		if (!is_fixed_op(p, fixed, &p->ops[i]))
			to.ops[i].duration_ns =
			        scale(p->ops[i].duration_ns, tokens, p->tokens);
	}
	for (uint32_t i = 0; i < to.n_rebuilds; i++)
		to.rebuilds[i].duration_ns =
		        scale(p->rebuilds[i].duration_ns, tokens, p->tokens);
	to.forward_flops = scale(p->forward_flops, tokens, p->tokens);
	to.tokens = tokens;
	free(fixed);
	err = ts_profile_check(&to, &error);
	if (err)
		ts_profile_finish(&to);
	else
		*ret_profile = to;
	return err;
}
