/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reference workloads as profiles made from formulas: op times by roofline,
 * saved values and transients by first and last use. Pure functions.
 */
#ifndef TS_PLANNER_WORKLOADS_H
#define TS_PLANNER_WORKLOADS_H

#include "planner/profile.h"

/* A machine for the formulas: sustained shares of datasheet peaks. */
struct ts_machine {
	const char *name;
	double gemm_flops; /* per second, peak */
	double gemm_share;
	double attention_forward_share;
	double attention_backward_share;
	double convolution_forward_share;
	double convolution_backward_share;
	double memory_bytes_per_s;
	double memory_share;
	double launch_ns;
	/* Bytes of one element of an activation. */
	unsigned element_bytes;
	uint64_t memory_bytes;
	uint64_t link_bytes_per_s;
	/* What is left of each way when both run, in percent. */
	unsigned link_both_percent;
	uint64_t copy_latency_ns;
};

/* "a100", "v100", "h100", "titan-x"; NULL where there is none such. */
const struct ts_machine *ts_machine_find(const char *name);

enum ts_transformer_style {
	/* Pre-norm, dropout, GELU, causal attention, final norm. */
	TS_STYLE_GPT,
	/* As GPT, but full attention, no final norm, 15 % of tokens decoded. */
	TS_STYLE_BERT,
	/* No dropout, gated MLP, causal attention, final norm. */
	TS_STYLE_LLAMA,
};

struct ts_transformer {
	const char *name;
	enum ts_transformer_style style;
	unsigned layers;
	unsigned hidden;
	unsigned heads;
	unsigned sequence;
	unsigned batch;
	unsigned feed_forward;
	unsigned vocabulary;
};

/* Both return 0, -EINVAL (zero or absurd sizes) or -ENOMEM. */
int ts_workload_transformer(const struct ts_transformer *shape,
        const struct ts_machine *machine, struct ts_profile *ret_profile);
int ts_workload_vgg16(unsigned batch, const struct ts_machine *machine,
        struct ts_profile *ret_profile);

/* The named transformer's shape, or NULL. */
const struct ts_transformer *ts_transformer_find(const char *name);

/*
 * "bert-large", "gpt2-xl", "llama-7b", "vgg-16".
 * 0, -ENOENT (no such workload), -EINVAL or -ENOMEM.
 */
int ts_workload(const char *name, const struct ts_machine *machine,
        struct ts_profile *ret_profile);

#endif
