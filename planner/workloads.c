/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/workloads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GIB (UINT64_C(1) << 30)

static const struct ts_machine machines[] = {
        {"a100", 312e12, 0.75, 0.62, 0.48, 0.60, 0.545, 2.039e12, 0.85, 5000, 2,
                80 * GIB, 25000000000, 85, 10000},
        {"v100", 125e12, 0.72, 0.62, 0.48, 0.60, 0.545, 0.9e12, 0.85, 5000, 2,
                32 * GIB, 12000000000, 85, 10000},
        {"h100", 989e12, 0.70, 0.62, 0.48, 0.60, 0.545, 3.35e12, 0.85, 5000, 2,
                80 * GIB, 50000000000, 85, 10000},
        {"titan-x", 7e12, 0.75, 0.62, 0.48, 0.60, 0.545, 336e9, 0.85, 5000, 4,
                12 * GIB, 12800000000, 85, 10000},
};

static const struct ts_transformer transformers[] = {
        {"bert-large", TS_STYLE_BERT, 24, 1024, 16, 512, 32, 4096, 30522},
        {"gpt2-xl", TS_STYLE_GPT, 48, 1600, 25, 1024, 8, 6400, 50257},
        {"llama-7b", TS_STYLE_LLAMA, 32, 4096, 32, 4096, 2, 11008, 32000},
};

const struct ts_machine *ts_machine_find(const char *name)
{
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		if (!strcmp(machines[i].name, name))
			return &machines[i];
	}
	return NULL;
}

const struct ts_transformer *ts_transformer_find(const char *name)
{
	size_t n = sizeof(transformers) / sizeof(transformers[0]);

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(transformers[i].name, name))
			return &transformers[i];
	}
	return NULL;
}

/* The profile under construction and what its formulas need. */
struct maker {
	struct ts_profile_builder b;
	const struct ts_machine *machine;
	double forward_flops;
	bool forward;
};

static uint64_t compute_ns(const struct maker *m, double flops, double share)
{
	return (uint64_t)(flops / (share * m->machine->gemm_flops) * 1e9 +
	                  m->machine->launch_ns + 0.5);
}

static uint64_t memory_ns(const struct maker *m, double bytes)
{
	double rate = m->machine->memory_bytes_per_s * m->machine->memory_share;

	return (uint64_t)(bytes / rate * 1e9 + m->machine->launch_ns + 0.5);
}

/* Convolutions of few channels are bound by memory. */
static uint64_t convolution_ns(
        const struct maker *m, double flops, double share, double bytes)
{
	uint64_t compute = compute_ns(m, flops, share);
	uint64_t memory = memory_ns(m, bytes);

	return compute > memory ? compute : memory;
}

static uint32_t activation(struct maker *m, double bytes)
{
	return ts_builder_value(&m->b, (uint64_t)bytes, TS_KIND_ACTIVATION);
}

static uint32_t gradient(struct maker *m, double bytes)
{
	return ts_builder_value(&m->b, (uint64_t)bytes, TS_KIND_GRADIENT);
}

/* Up to three reads and two writes; TS_NONE ends a list early. */
static uint32_t op(struct maker *m, const char *name, enum ts_op_class c,
        uint64_t ns, const uint32_t reads[3], const uint32_t writes[2])
{
	uint32_t n_reads = 0, n_writes = 0;

	while (n_reads < 3 && reads[n_reads] != TS_NONE)
		n_reads++;
	while (n_writes < 2 && writes[n_writes] != TS_NONE)
		n_writes++;
	return ts_builder_op(&m->b, ts_builder_signature(&m->b, name, c, true),
	        ns, reads, n_reads, writes, n_writes);
}

#define R(...) ((const uint32_t[3]){__VA_ARGS__})
#define X      TS_NONE

static void gemm(struct maker *m, const char *name, double flops, uint32_t in,
        uint32_t out)
{
	if (m->forward)
		m->forward_flops += flops;
	op(m, name, TS_CLASS_GEMM, compute_ns(m, flops, m->machine->gemm_share),
	        R(in, X, X), (const uint32_t[2]){out, X});
}

/* The two launches of a GEMM's backward: input gradient, weight gradient. */
static void gemm_backward(struct maker *m, const char *dgrad, const char *wgrad,
        double flops, uint32_t grad_out, uint32_t in, uint32_t grad_in)
{
	uint64_t ns = compute_ns(m, flops, m->machine->gemm_share);

	op(m, dgrad, TS_CLASS_GEMM, ns, R(grad_out, X, X),
	        (const uint32_t[2]){grad_in, X});
	op(m, wgrad, TS_CLASS_GEMM, ns, R(grad_out, in, X),
	        (const uint32_t[2]){X, X});
}

static void pass(struct maker *m, const char *name, enum ts_op_class c,
        double bytes, const uint32_t reads[3], uint32_t out)
{
	op(m, name, c, memory_ns(m, bytes), reads, (const uint32_t[2]){out, X});
}

/* What the backward of one layer reads. */
struct layer {
	struct ts_region region;
	uint32_t in, norm1, qkv, att, mask1, mid, norm2;
	uint32_t fc1, act, mask2; /* GPT and BERT */
	uint32_t gate, up, gated; /* Llama */
};

struct sizes {
	double n, h, hidden; /* tokens, width, bytes of one hidden state */
	double ff, mask, lse;
	double attention_flops;
};

static uint32_t dropout(
        struct maker *m, const struct sizes *z, uint32_t in, uint32_t *ret_mask)
{
	uint32_t out = activation(m, z->hidden);

	*ret_mask = activation(m, z->mask);
	op(m, "dropout", TS_CLASS_DROPOUT,
	        memory_ns(m, 2 * z->hidden + z->mask), R(in, X, X),
	        (const uint32_t[2]){out, *ret_mask});
	/* The generator's state is a launch parameter: nothing is read. */
	ts_builder_rebuild(&m->b, *ret_mask, memory_ns(m, z->mask), NULL, 0);
	return out;
}

static void block_input(struct maker *m, uint32_t value)
{
	if (!m->b.err)
		m->b.profile.values[value].no_replay = true;
}

static uint32_t mlp_forward(struct maker *m, const struct sizes *z,
        enum ts_transformer_style style, struct layer *l)
{
	double flops = 2 * z->h * z->ff / m->machine->element_bytes;
	uint32_t out = activation(m, z->hidden);

	if (style == TS_STYLE_LLAMA) {
		l->gate = activation(m, z->ff);
		l->up = activation(m, z->ff);
		l->gated = activation(m, z->ff);
		gemm(m, "gate", flops, l->norm2, l->gate);
		gemm(m, "up", flops, l->norm2, l->up);
		pass(m, "swiglu", TS_CLASS_ELEMENTWISE, 3 * z->ff,
		        R(l->gate, l->up, X), l->gated);
		gemm(m, "down", flops, l->gated, out);
		return out;
	}
	l->fc1 = activation(m, z->ff);
	l->act = activation(m, z->ff);
	gemm(m, "fc1", flops, l->norm2, l->fc1);
	pass(m, "gelu", TS_CLASS_ELEMENTWISE, 2 * z->ff, R(l->fc1, X, X),
	        l->act);
	gemm(m, "fc2", flops, l->act, out);
	return dropout(m, z, out, &l->mask2);
}

static uint32_t layer_forward(struct maker *m, const struct sizes *z,
        enum ts_transformer_style style, uint32_t in, struct layer *l)
{
	double square = 2 * z->n * z->h * z->h;
	uint32_t projected, out;

	l->region.first_op = m->b.profile.n_ops;
	l->in = in;
	l->norm1 = activation(m, z->hidden);
	pass(m, "norm", TS_CLASS_NORM, 2 * z->hidden, R(in, X, X), l->norm1);
	l->qkv = activation(m, 3 * z->hidden);
	gemm(m, "qkv", 3 * square, l->norm1, l->qkv);
	l->att = activation(m, z->hidden + z->lse);
	m->forward_flops += z->attention_flops;
	op(m, "attention", TS_CLASS_ATTENTION,
	        compute_ns(m, z->attention_flops,
	                m->machine->attention_forward_share),
	        R(l->qkv, X, X), (const uint32_t[2]){l->att, X});
	projected = activation(m, z->hidden);
	gemm(m, "proj", square, l->att, projected);
	if (style != TS_STYLE_LLAMA)
		projected = dropout(m, z, projected, &l->mask1);
	l->mid = activation(m, z->hidden);
	pass(m, "add", TS_CLASS_ELEMENTWISE, 3 * z->hidden, R(projected, in, X),
	        l->mid);
	l->norm2 = activation(m, z->hidden);
	pass(m, "norm", TS_CLASS_NORM, 2 * z->hidden, R(l->mid, X, X),
	        l->norm2);
	projected = mlp_forward(m, z, style, l);
	out = activation(m, z->hidden);
	block_input(m, out);
	pass(m, "add", TS_CLASS_ELEMENTWISE, 3 * z->hidden,
	        R(projected, l->mid, X), out);
	l->region.end_op = m->b.profile.n_ops;
	return out;
}

/* Gradient at the input of the MLP, from the gradient @g of the block. */
static uint32_t mlp_backward(struct maker *m, const struct sizes *z,
        enum ts_transformer_style style, uint32_t g, const struct layer *l)
{
	double flops = 2 * z->h * z->ff / m->machine->element_bytes;
	uint32_t g_norm2 = gradient(m, z->hidden);

	if (style == TS_STYLE_LLAMA) {
		uint32_t g_gated = gradient(m, z->ff);
		uint32_t g_gate = gradient(m, z->ff);
		uint32_t g_up = gradient(m, z->ff);
		uint32_t part = gradient(m, z->hidden);
		uint64_t ns = compute_ns(m, flops, m->machine->gemm_share);

		gemm_backward(m, "down_dgrad", "down_wgrad", flops, g, l->gated,
		        g_gated);
		op(m, "swiglu_backward", TS_CLASS_ELEMENTWISE,
		        memory_ns(m, 5 * z->ff), R(g_gated, l->gate, l->up),
		        (const uint32_t[2]){g_gate, g_up});
		gemm_backward(m, "gate_dgrad", "gate_wgrad", flops, g_gate,
		        l->norm2, part);
		/* The second GEMM adds to the first one's result. */
		if (!m->b.err)
			m->b.profile.values[g_norm2].in_place_of = part;
		op(m, "up_dgrad", TS_CLASS_GEMM, ns, R(g_up, part, X),
		        (const uint32_t[2]){g_norm2, X});
		op(m, "up_wgrad", TS_CLASS_GEMM, ns, R(g_up, l->norm2, X),
		        (const uint32_t[2]){X, X});
		return g_norm2;
	}
	uint32_t g_fc2 = gradient(m, z->hidden);
	uint32_t g_act = gradient(m, z->ff);
	uint32_t g_fc1 = gradient(m, z->ff);

	pass(m, "dropout_backward", TS_CLASS_DROPOUT, 2 * z->hidden + z->mask,
	        R(g, l->mask2, X), g_fc2);
	gemm_backward(m, "fc2_dgrad", "fc2_wgrad", flops, g_fc2, l->act, g_act);
	pass(m, "gelu_backward", TS_CLASS_ELEMENTWISE, 3 * z->ff,
	        R(g_act, l->fc1, X), g_fc1);
	gemm_backward(
	        m, "fc1_dgrad", "fc1_wgrad", flops, g_fc1, l->norm2, g_norm2);
	return g_norm2;
}

static uint32_t layer_backward(struct maker *m, const struct sizes *z,
        enum ts_transformer_style style, uint32_t g, struct layer *l)
{
	double square = 2 * z->n * z->h * z->h;
	uint32_t g_norm2, g_mid, g_proj, g_att, g_qkv, g_norm1, g_in;

	l->region.backward_first_op = m->b.profile.n_ops;
	g_norm2 = mlp_backward(m, z, style, g, l);
	g_mid = gradient(m, z->hidden);
	pass(m, "norm_backward", TS_CLASS_NORM, 4 * z->hidden,
	        R(l->mid, g_norm2, g), g_mid);
	g_proj = g_mid;
	if (style != TS_STYLE_LLAMA) {
		g_proj = gradient(m, z->hidden);
		pass(m, "dropout_backward", TS_CLASS_DROPOUT,
		        2 * z->hidden + z->mask, R(g_mid, l->mask1, X), g_proj);
	}
	g_att = gradient(m, z->hidden);
	gemm_backward(
	        m, "proj_dgrad", "proj_wgrad", square, g_proj, l->att, g_att);
	g_qkv = gradient(m, 3 * z->hidden);
	op(m, "attention_backward", TS_CLASS_ATTENTION,
	        compute_ns(m, 2.5 * z->attention_flops,
	                m->machine->attention_backward_share),
	        R(l->qkv, l->att, g_att), (const uint32_t[2]){g_qkv, X});
	g_norm1 = gradient(m, z->hidden);
	gemm_backward(m, "qkv_dgrad", "qkv_wgrad", 3 * square, g_qkv, l->norm1,
	        g_norm1);
	g_in = gradient(m, z->hidden);
	pass(m, "norm_backward", TS_CLASS_NORM, 4 * z->hidden,
	        R(l->in, g_norm1, g_mid), g_in);
	l->region.backward_end_op = m->b.profile.n_ops;
	return g_in;
}

/* Final norm, head and loss, and their backward: the gradient of @in. */
static uint32_t ends(struct maker *m, const struct sizes *z,
        const struct ts_transformer *shape, uint32_t in)
{
	bool bert = shape->style == TS_STYLE_BERT;
	/* 15 % of the tokens are masked and decoded. */
	double rows = bert ? (double)(uint64_t)(z->n * 0.15 + 0.5) : z->n;
	double logits_bytes =
	        rows * shape->vocabulary * m->machine->element_bytes;
	double flops = 2 * rows * z->h * shape->vocabulary;
	uint32_t head_in = in, logits, g_logits, g_head, g_in;

	if (!bert) {
		head_in = activation(m, z->hidden);
		pass(m, "norm", TS_CLASS_NORM, 2 * z->hidden, R(in, X, X),
		        head_in);
	}
	logits = activation(m, logits_bytes);
	gemm(m, "head", flops, head_in, logits);
	pass(m, "loss", TS_CLASS_LOSS, 2 * logits_bytes, R(logits, X, X), X);
	m->forward = false;
	ts_builder_turn(&m->b, m->b.profile.n_ops);
	g_logits = gradient(m, logits_bytes);
	pass(m, "loss_backward", TS_CLASS_LOSS, 4 * logits_bytes,
	        R(logits, X, X), g_logits);
	g_head = gradient(m, z->hidden);
	gemm_backward(m, "head_dgrad", "head_wgrad", flops, g_logits, head_in,
	        g_head);
	if (bert)
		return g_head;
	g_in = gradient(m, z->hidden);
	pass(m, "norm_backward", TS_CLASS_NORM, 4 * z->hidden, R(in, g_head, X),
	        g_in);
	return g_in;
}

static int finish_maker(
        struct maker *m, const char *name, struct ts_profile *ret_profile)
{
	const struct ts_machine *machine = m->machine;
	struct ts_profile *p = &m->b.profile;
	uint64_t both =
	        machine->link_bytes_per_s / 100 * machine->link_both_percent;

	p->name = strdup(name);
	p->device.name = strdup(machine->name);
	if (!p->name || !p->device.name)
		m->b.err = -ENOMEM;
	p->device.memory_bytes = machine->memory_bytes;
	p->device.d2h_bytes_per_s = machine->link_bytes_per_s;
	p->device.h2d_bytes_per_s = machine->link_bytes_per_s;
	p->device.d2h_both_bytes_per_s = both;
	p->device.h2d_both_bytes_per_s = both;
	p->device.copy_latency_ns = machine->copy_latency_ns;
	p->forward_flops = (uint64_t)m->forward_flops;
	return ts_builder_take(&m->b, ret_profile);
}

int ts_workload_transformer(const struct ts_transformer *shape,
        const struct ts_machine *machine, struct ts_profile *ret_profile)
{
	struct maker m = {.machine = machine, .forward = true};
	struct sizes z = {0};
	struct layer *layers;
	uint32_t x, g, tokens;

	if (!shape->layers || shape->layers > 100000 || !shape->hidden ||
	        !shape->sequence || !shape->batch || !shape->feed_forward ||
	        !shape->vocabulary || !shape->heads)
		return -EINVAL;
	layers = calloc(shape->layers, sizeof(*layers));
	if (!layers)
		return -ENOMEM;
	z.n = (double)shape->sequence * shape->batch;
	z.h = shape->hidden;
	z.hidden = z.n * z.h * machine->element_bytes;
	z.ff = z.n * shape->feed_forward * machine->element_bytes;
	z.mask = z.n * z.h;
	z.lse = 4.0 * shape->heads * z.n;
	z.attention_flops = (shape->style == TS_STYLE_BERT ? 4.0 : 2.0) * z.n *
	                    shape->sequence * z.h;
	ts_builder_init(&m.b);
	/* Token numbers, 8 bytes each: the embedding's backward reads them. */
	tokens = ts_builder_value(&m.b, (uint64_t)(8 * z.n), TS_KIND_INPUT);
	x = activation(&m, z.hidden);
	block_input(&m, x);
	pass(&m, "embedding", TS_CLASS_ELEMENTWISE, 2 * z.hidden,
	        R(tokens, X, X), x);
	for (unsigned i = 0; i < shape->layers; i++)
		x = layer_forward(&m, &z, shape->style, x, &layers[i]);
	g = ends(&m, &z, shape, x);
	for (unsigned i = shape->layers; i-- > 0;)
		g = layer_backward(&m, &z, shape->style, g, &layers[i]);
	pass(&m, "embedding_backward", TS_CLASS_ELEMENTWISE, 2 * z.hidden,
	        R(g, tokens, X), X);
	for (unsigned i = 0; i < shape->layers; i++)
		ts_builder_region(&m.b, &layers[i].region);
	free(layers);
	m.b.profile.tokens = (uint64_t)z.n;
	return finish_maker(&m, shape->name, ret_profile);
}

/* One convolution with its ReLU, or one pool, of VGG. */
struct stage {
	uint32_t in, raw, out;
	double in_bytes, out_bytes, flops;
	bool pool;
};

static void vgg_stage_forward(struct maker *m, struct stage *s)
{
	s->out = activation(m, s->out_bytes);
	if (s->pool) {
		pass(m, "pool", TS_CLASS_POOL, 1.25 * s->in_bytes,
		        R(s->in, X, X), s->out);
		return;
	}
	s->raw = activation(m, s->out_bytes);
	if (!m->b.err)
		m->b.profile.values[s->out].in_place_of = s->raw;
	m->forward_flops += s->flops;
	op(m, "convolution", TS_CLASS_CONVOLUTION,
	        convolution_ns(m, s->flops,
	                m->machine->convolution_forward_share,
	                s->in_bytes + s->out_bytes),
	        R(s->in, X, X), (const uint32_t[2]){s->raw, X});
	pass(m, "relu", TS_CLASS_ELEMENTWISE, 2 * s->out_bytes, R(s->raw, X, X),
	        s->out);
}

static uint32_t vgg_stage_backward(
        struct maker *m, const struct stage *s, uint32_t g, bool first)
{
	uint32_t g_in = first ? X : gradient(m, s->in_bytes);
	uint64_t ns = convolution_ns(m, s->flops,
	        m->machine->convolution_backward_share,
	        s->in_bytes + s->out_bytes);
	uint32_t g_raw;

	if (s->pool) {
		pass(m, "pool_backward", TS_CLASS_POOL, 2.5 * s->in_bytes,
		        R(s->in, s->out, g), g_in);
		return g_in;
	}
	g_raw = gradient(m, s->out_bytes);
	pass(m, "relu_backward", TS_CLASS_ELEMENTWISE, 3 * s->out_bytes,
	        R(s->out, g, X), g_raw);
	if (!first)
		op(m, "convolution_dgrad", TS_CLASS_CONVOLUTION, ns,
		        R(g_raw, X, X), (const uint32_t[2]){g_in, X});
	op(m, "convolution_wgrad", TS_CLASS_CONVOLUTION, ns, R(g_raw, s->in, X),
	        (const uint32_t[2]){X, X});
	return g_in;
}

int ts_workload_vgg16(unsigned batch, const struct ts_machine *machine,
        struct ts_profile *ret_profile)
{
	/* Channels of each convolution, 0 for a pool. */
	static const unsigned plan[] = {64, 64, 0, 128, 128, 0, 256, 256, 256,
	        0, 512, 512, 512, 0, 512, 512, 512, 0};
	enum { STAGES = sizeof(plan) / sizeof(plan[0]) };
	static const double fc_width[] = {512 * 7 * 7, 4096, 4096, 1000};
	struct maker m = {.machine = machine, .forward = true};
	struct stage stages[STAGES] = {0};
	double side = 224, channels = 3, fc_flops[3];
	uint32_t fc[4], g, x;

	if (!batch || batch > 65536)
		return -EINVAL;
	ts_builder_init(&m.b);
	x = ts_builder_value(&m.b,
	        (uint64_t)(batch * channels * side * side *
	                   machine->element_bytes),
	        TS_KIND_INPUT);
	for (unsigned i = 0; i < STAGES; i++) {
		struct stage *s = &stages[i];
		double wide = plan[i] ? plan[i] : channels;

		s->in = x;
		s->pool = !plan[i];
		s->in_bytes =
		        batch * channels * side * side * machine->element_bytes;
		s->flops = 2 * 9 * batch * channels * wide * side * side;
		if (s->pool)
			side /= 2;
		channels = wide;
		s->out_bytes =
		        batch * channels * side * side * machine->element_bytes;
		vgg_stage_forward(&m, s);
		x = s->out;
	}
	fc[0] = x;
	for (unsigned i = 0; i < 3; i++) {
		fc_flops[i] = 2 * batch * fc_width[i] * fc_width[i + 1];
		fc[i + 1] = activation(
		        &m, batch * fc_width[i + 1] * machine->element_bytes);
		gemm(&m, "fc", fc_flops[i], fc[i], fc[i + 1]);
	}
	m.forward = false;
	ts_builder_turn(&m.b, m.b.profile.n_ops);
	g = gradient(&m, batch * fc_width[3] * machine->element_bytes);
	pass(&m, "loss_backward", TS_CLASS_LOSS,
	        4 * batch * fc_width[3] * machine->element_bytes,
	        R(fc[3], X, X), g);
	for (unsigned i = 3; i-- > 0;) {
		uint32_t g_in = gradient(
		        &m, batch * fc_width[i] * machine->element_bytes);

		gemm_backward(&m, "fc_dgrad", "fc_wgrad", fc_flops[i], g, fc[i],
		        g_in);
		g = g_in;
	}
	for (unsigned i = STAGES; i-- > 0;)
		g = vgg_stage_backward(&m, &stages[i], g, i == 0);
	m.b.profile.tokens = batch;
	return finish_maker(&m, "vgg-16", ret_profile);
}

int ts_workload(const char *name, const struct ts_machine *machine,
        struct ts_profile *ret_profile)
{
	const struct ts_transformer *shape = ts_transformer_find(name);

	if (shape)
		return ts_workload_transformer(shape, machine, ret_profile);
	if (!strcmp(name, "vgg-16"))
		return ts_workload_vgg16(128, machine, ret_profile);
	return -ENOENT;
}
