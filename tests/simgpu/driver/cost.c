/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What kernels cost in virtual time: the roofline, and the arithmetic of
 * attention kernels from their parameter structs. Pure; called under sg_lock.
 */
#include "tests/simgpu/driver/code.h"
#include "tests/simgpu/driver/collective.h"
#include "tests/simgpu/driver/kernels.h"

#include <stdlib.h>
#include <string.h>

uint64_t sg_cost_bytes_ns(const struct sg_model *model, double bytes)
{
	double rate = model->memory_bytes_per_s * model->memory_efficiency;

	return model->kernel_latency_ns + (uint64_t)(bytes / rate * 1e9);
}

uint64_t sg_cost_roofline_ns(const struct sg_model *model, double flops,
        enum sg_dtype type, double efficiency, double bytes)
{
	double seconds =
	        bytes / (model->memory_bytes_per_s * model->memory_efficiency);
	double peak = model->flops[type];

	/* A type the device has no units for runs as single precision. */
	if (peak <= 0)
		peak = model->flops[SG_F32];
	if (flops / (peak * efficiency) > seconds)
		seconds = flops / (peak * efficiency);
	return model->kernel_latency_ns + (uint64_t)(seconds * 1e9);
}

/* Sizes of one attention problem. */
struct attention {
	double batches, heads, kv_heads, queries, keys, dim, value_dim;
	bool causal;
};

static double read_int(const struct sg_launch *launch, uint32_t offset)
{
	int32_t v;

	sg_param_read(launch, 0, offset, &v, sizeof(v));
	return v > 0 ? v : 0;
}

/* The template argument after the kernel's traits, counted from 0. */
static bool template_flag(const struct sg_function *fn, int index)
{
	const char *at = NULL;

	for (const char *p = fn->demangled; (p = strstr(p, "> >, "));)
		at = p += 5;
	while (at && index-- > 0) {
		at = strchr(at, ',');
		at = at ? at + 2 : NULL;
	}
	return at && !strncmp(at, "true", 4);
}

/* flash.h: heads 96, key heads 100, batch 176, queries 180, keys 184,
 * dimension 192; the same in FlashAttention 2.5 to 2.8. */
static struct attention flash_sizes(
        const struct sg_kernel_row *row, const struct sg_launch *launch)
{
	return (struct attention){
	        .batches = read_int(launch, 176),
	        .heads = read_int(launch, 96),
	        .kv_heads = read_int(launch, 100),
	        .queries = read_int(launch, 180),
	        .keys = read_int(launch, 184),
	        .dim = read_int(launch, 192),
	        .value_dim = read_int(launch, 192),
	        .causal = template_flag(launch->fn, row->argument),
	};
}

/* Dimensions stand from 96 in kernel_forward.h and from 144 in
 * kernel_backward.h. The grid holds heads and batches. */
static struct attention efficient_sizes(const struct sg_kernel_row *row,
        const struct sg_launch *launch, bool backward)
{
	uint32_t at = backward ? 144 : 96;
	uint8_t mask;

	sg_param_read(launch, 0, (uint32_t)row->argument, &mask, sizeof(mask));
	return (struct attention){
	        .batches = launch->grid[2],
	        .heads = launch->grid[1],
	        .kv_heads = launch->grid[1],
	        .queries = read_int(launch, at + 8),
	        .keys = read_int(launch, at + 12),
	        .dim = read_int(launch, at),
	        .value_dim = read_int(launch, at + 4),
	        .causal = mask != 0,
	};
}

/* Pairs of a query and a key that attend to each other. */
static double attention_pairs(const struct attention *a)
{
	double pairs = a->queries * a->keys;

	if (a->causal) {
		/* The last query sees all keys, each earlier one less. */
		double shortest = a->keys - a->queries + 1;

		if (shortest >= 1)
			pairs = a->queries * (shortest + a->keys) / 2;
		else
			pairs = a->keys * (a->keys + 1) / 2;
	}
	return pairs * a->heads * a->batches;
}

static uint64_t attention_ns(const struct sg_kernel_row *row,
        const struct sg_launch *launch, const struct sg_model *model,
        const struct attention *a, bool backward)
{
	bool single = strstr(launch->fn->demangled, "_f32_") != NULL;
	double element = single ? 4 : 2;
	double efficiency = backward ? model->flash_backward_efficiency
	                             : model->flash_forward_efficiency;
	/* Two products forward; five backward, three of them over dim. */
	double per_pair = backward ? 2 * (3 * a->dim + 2 * a->value_dim)
	                           : 2 * (a->dim + a->value_dim);
	double q = a->batches * a->heads * a->queries;
	double k = a->batches * a->kv_heads * a->keys;
	/* q, o and k, v once; backward their gradients and do as well. */
	double bytes = element * (q + k) * (a->dim + a->value_dim) *
	               (backward ? 2.5 : 1);

	/* Single precision is made of three TF32 products. */
	return sg_cost_roofline_ns(model,
	        attention_pairs(a) * per_pair * (single ? 3 : 1),
	        single ? SG_TF32 : SG_F16, efficiency, bytes);
}

uint64_t sg_cost_kernel_ns(const struct sg_kernel_row *row,
        const struct sg_launch *launch, const struct sg_model *model,
        uint64_t bytes)
{
	bool backward = row->rule == SG_RULE_FLASH_BACKWARD ||
	                row->rule == SG_RULE_EFFICIENT_BACKWARD;
	struct attention sizes;

	switch (row->rule) {
	case SG_RULE_COLLECTIVE:
		return sg_collective_ns(launch, model, bytes);
	case SG_RULE_FLASH_FORWARD:
	case SG_RULE_FLASH_BACKWARD:
		sizes = flash_sizes(row, launch);
		break;
	case SG_RULE_EFFICIENT_FORWARD:
	case SG_RULE_EFFICIENT_BACKWARD:
		sizes = efficient_sizes(row, launch, backward);
		break;
	default:
		return sg_cost_bytes_ns(model, (double)bytes);
	}
	return attention_ns(row, launch, model, &sizes, backward);
}
