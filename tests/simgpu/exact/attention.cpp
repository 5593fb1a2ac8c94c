/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fused attention, forward and backward: FlashAttention and the
 * memory-efficient kernels. Scores of one head are made whole, in fp32; the
 * log of their sums stands where the real kernels leave it, since the backward
 * pass reads it there. Dropout numbers the elements as the memory-efficient
 * kernels do; FlashAttention's own order, by tiles, is not followed.
 */
#include "tests/simgpu/exact/random.h"

#include <cblas.h>
#include <cmath>

namespace sgx
{

/* A matrix of `rows` rows of `width` elements, `stride` apart. */
struct Rows {
	uint64_t address;
	int64_t stride;
};

/* One head of one example. */
struct Head {
	int64_t queries, keys, width, value_width;
	float scale;
	/* Keys a query may see: from the first to before the last. */
	int64_t left, right; /* behind and ahead of the diagonal; -1: all */
	int64_t diagonal;    /* key that query 0 stands at */
	float dropout;       /* probability to drop */
	Seed seed;
	uint64_t index; /* of the head in the batch */
	Rows bias;      /* address 0: none */
};

template <class T>
static std::vector<float> load_rows(
        const Rows &from, int64_t rows, int64_t width)
{
	std::vector<float> to((size_t)(rows * width));
	const T *data = at_address<const T>(from.address);

	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < width; c++)
			to[(size_t)(r * width + c)] =
			        (float)(Math<T>)data[r * from.stride + c];
	return to;
}

template <class T>
static void store_rows(const std::vector<float> &from, int64_t rows,
        int64_t width, const Rows &to, float scale = 1)
{
	T *data = at_address<T>(to.address);

	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < width; c++)
			data[r * to.stride + c] = convert<T>(
			        from[(size_t)(r * width + c)] * scale);
}

/* to = op(a) op(b), all row by row: to is m x n. */
static void multiply(bool ta, bool tb, int64_t m, int64_t n, int64_t k,
        const std::vector<float> &a, const std::vector<float> &b,
        std::vector<float> *to)
{
	to->assign((size_t)(m * n), 0);
	if (m && n && k)
		cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans,
		        tb ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k,
		        1, a.data(), (int)(ta ? m : k), b.data(),
		        (int)(tb ? k : n), 0, to->data(), (int)n);
}

static int64_t first_key(const Head &head, int64_t query)
{
	int64_t first = query + head.diagonal - head.left;

	return head.left < 0 || first < 0 ? 0 : first;
}

static int64_t end_key(const Head &head, int64_t query)
{
	int64_t end = query + head.diagonal + head.right + 1;

	if (head.right < 0 || end > head.keys)
		return head.keys;
	return end < 0 ? 0 : end;
}

/* What a score is multiplied by: 0, or 1 / (1 - p). An element of all scores
 * of the batch takes the random word of its own position. */
static void dropout_factors(const Head &head, std::vector<float> *factors)
{
	size_t n = (size_t)(head.queries * head.keys);
	uint64_t first = head.seed.offset + head.index * n;
	float keep = 1 / (1 - head.dropout), random[4] = {};

	factors->resize(n);
	for (size_t i = 0; i < n; i++) {
		uint64_t word = first + i;

		if (i == 0 || word % 4 == 0)
			Philox({head.seed.seed, word / 4 * 4}, 0)
			        .uniform(random);
		(*factors)[i] = random[word % 4] > head.dropout ? keep : 0;
	}
}

/* Probabilities from scores, by their log sums if they are known. */
template <class T>
static void probabilities(const Head &head, std::vector<float> *scores,
        std::vector<float> *log_sums, bool known)
{
	log_sums->resize((size_t)head.queries);
	for (int64_t q = 0; q < head.queries; q++) {
		float *row = scores->data() + q * head.keys;
		int64_t first = first_key(head, q), end = end_key(head, q);
		float most = -INFINITY, &log_sum = (*log_sums)[(size_t)q];
		double sum = 0;

		for (int64_t k = 0; k < head.keys; k++) {
			row[k] *= head.scale;
			if (head.bias.address)
				row[k] += (float)(Math<T>)at_address<const T>(
				        head.bias
				                .address)[q * head.bias.stride +
				                          k];
			if (k < first || k >= end)
				row[k] = -INFINITY;
			if (row[k] > most)
				most = row[k];
		}
		if (!known) {
			for (int64_t k = first; k < end; k++)
				if (most > -INFINITY)
					sum += (double)std::exp(row[k] - most);
			log_sum = sum > 0 ? most + (float)std::log(sum)
			                  : INFINITY;
		}
		for (int64_t k = 0; k < head.keys; k++)
			row[k] = row[k] == -INFINITY
			                 ? 0
			                 : std::exp(row[k] - log_sum);
	}
}

template <class T>
static void attend(const Head &head, const Rows &q, const Rows &k,
        const Rows &v, const Rows &out, float *log_sums)
{
	std::vector<float> queries = load_rows<T>(q, head.queries, head.width);
	std::vector<float> keys = load_rows<T>(k, head.keys, head.width);
	std::vector<float> values =
	        load_rows<T>(v, head.keys, head.value_width);
	std::vector<float> scores, result, sums, factors;

	multiply(false, true, head.queries, head.keys, head.width, queries,
	        keys, &scores);
	probabilities<T>(head, &scores, &sums, false);
	if (log_sums)
		memcpy(log_sums, sums.data(), sums.size() * sizeof(float));
	if (head.dropout > 0) {
		dropout_factors(head, &factors);
		for (size_t i = 0; i < scores.size(); i++)
			scores[i] *= factors[i];
	}
	multiply(false, false, head.queries, head.value_width, head.keys,
	        scores, values, &result);
	store_rows<T>(result, head.queries, head.value_width, out);
}

/* Gradients; delta is the sum of dO * O by row. */
template <class T>
static void attend_backward(const Head &head, const Rows &q, const Rows &k,
        const Rows &v, const Rows &grad, const float *log_sums,
        const float *delta, std::vector<float> *dq, std::vector<float> *dk,
        std::vector<float> *dv, const Rows &grad_bias)
{
	std::vector<float> queries = load_rows<T>(q, head.queries, head.width);
	std::vector<float> keys = load_rows<T>(k, head.keys, head.width);
	std::vector<float> values =
	        load_rows<T>(v, head.keys, head.value_width);
	std::vector<float> grads =
	        load_rows<T>(grad, head.queries, head.value_width);
	std::vector<float> sums(log_sums, log_sums + head.queries);
	std::vector<float> scores, dropped, slopes, factors;

	multiply(false, true, head.queries, head.keys, head.width, queries,
	        keys, &scores);
	probabilities<T>(head, &scores, &sums, true);
	dropped = scores;
	if (head.dropout > 0) {
		dropout_factors(head, &factors);
		for (size_t i = 0; i < scores.size(); i++)
			dropped[i] *= factors[i];
	}
	multiply(true, false, head.keys, head.value_width, head.queries,
	        dropped, grads, dv);
	multiply(false, true, head.queries, head.keys, head.value_width, grads,
	        values, &slopes);
	for (int64_t r = 0; r < head.queries; r++)
		for (int64_t c = 0; c < head.keys; c++) {
			size_t i = (size_t)(r * head.keys + c);

			if (head.dropout > 0)
				slopes[i] *= factors[i];
			slopes[i] = scores[i] * (slopes[i] - delta[r]);
		}
	if (grad_bias.address)
		store_rows<T>(slopes, head.queries, head.keys, grad_bias);
	multiply(false, false, head.queries, head.width, head.keys, slopes,
	        keys, dq);
	multiply(true, false, head.keys, head.width, head.queries, slopes,
	        queries, dk);
}

/* ---------------------------------------------------------- FlashAttention */

/* Flash_fwd_params, and what Flash_bwd_params adds, by the offsets of
 * flash.h. */
struct Flash {
	const Launch &launch;
	int batch, heads, kv_heads, queries, keys, width;

	explicit Flash(const Launch &l)
	    : launch(l), batch(word(176)), heads(word(96)), kv_heads(word(100)),
	      queries(word(180)), keys(word(184)), width(word(192))
	{
	}
	int32_t word(size_t at) const
	{
		return launch.param<int32_t>(0, at);
	}
	int64_t wide(size_t at) const
	{
		return launch.param<int64_t>(0, at);
	}
	uint64_t address(size_t at) const
	{
		return launch.param<uint64_t>(0, at);
	}
	bool bf16() const
	{
		return launch.param<bool>(0, 440);
	}
	/* Sequences of one length, nothing paged, capped or biased. */
	bool plain() const
	{
		return !address(224) && !address(232) && !address(240) &&
		       !address(248) && !address(352) && !address(448) &&
		       launch.param<float>(0, 396) == 0;
	}
	/* An operand that has its strides of batch, row and head in a row of
	 * three, each `step` bytes after the one before. */
	Rows rows(
	        size_t pointer, size_t strides, size_t step, int b, int h) const
	{
		return {address(pointer) +
		                2 * (uint64_t)(wide(strides) * b +
		                               wide(strides + 2 * step) * h),
		        wide(strides + step)};
	}
	Rows q(int b, int h) const
	{
		return rows(0, 24, 24, b, h);
	}
	Rows k(int b, int h) const
	{
		return rows(8, 32, 24, b, h / (heads / kv_heads));
	}
	Rows v(int b, int h) const
	{
		return rows(16, 40, 24, b, h / (heads / kv_heads));
	}
	Rows o(int b, int h) const
	{
		return rows(112, 128, 8, b, h);
	}
	Rows grad(int b, int h) const
	{
		return rows(472, 528, 8, b, h);
	}
	Rows dq(int b, int h) const
	{
		return rows(480, 552, 24, b, h);
	}
	Rows dk(int b, int h) const
	{
		return rows(488, 560, 24, b, h);
	}
	Rows dv(int b, int h) const
	{
		return rows(496, 568, 24, b, h);
	}
	float *log_sums(int b, int h) const
	{
		return at_address<float>(address(160)) +
		       (int64_t)(b * heads + h) * queries;
	}
	float *delta(int b, int h) const
	{
		return at_address<float>(address(624)) +
		       (int64_t)(b * heads + h) * word(196);
	}
	/* fp32, batch, row, head. */
	float *dq_sums(int b, int h, int row) const
	{
		return at_address<float>(address(504)) +
		       (((int64_t)b * word(196) + row) * heads + h) * word(204);
	}
	Head head(int b, int h) const
	{
		Head head = {};
		float keep = launch.param<float>(0, 372);

		head.queries = queries;
		head.keys = keys;
		head.width = head.value_width = width;
		head.scale = launch.param<float>(0, 216);
		head.left = word(388);
		head.right = word(392);
		head.diagonal = keys - queries;
		head.dropout = 1 - keep;
		head.index = (uint64_t)(b * heads + h);
		return head;
	}
	bool drops() const
	{
		return launch.param<float>(0, 372) < 1;
	}
};

template <class Fn> static bool flash(const Launch &launch, Fn &&fn)
{
	Flash f(launch);

	if (!f.plain())
		return false;
	return with_float(f.bf16() ? Type::BF16 : Type::F16, [&](auto t) {
		for (int b = 0; b < f.batch; b++)
			for (int h = 0; h < f.heads; h++)
				fn(f, b, h, t);
	});
}

static bool run_flash_forward(const Launch &launch)
{
	Flash all(launch);
	Seed seed = {};

	if (launch.param_bytes(0) != 472 || all.address(152))
		return false;
	if (all.drops()) {
		seed = Seed::unpack(launch.param_data(0) + 400);
		uint64_t *state = at_address<uint64_t>(all.address(432));

		if (state) { /* for the backward pass */
			state[0] = seed.seed;
			state[1] = seed.offset;
		}
	}
	return flash(launch, [&](const Flash &f, int b, int h, auto t) {
		Head head = f.head(b, h);

		head.seed = seed;
		attend<decltype(t)>(head, f.q(b, h), f.k(b, h), f.v(b, h),
		        f.o(b, h), f.log_sums(b, h));
	});
}

/* Sums of dO * O, and zeros for the sums of dq. */
static bool run_flash_dot(const Launch &launch)
{
	if (launch.param_bytes(0) != 648)
		return false;
	return flash(launch, [&](const Flash &f, int b, int h, auto t) {
		using T = decltype(t);
		std::vector<float> o =
		        load_rows<T>(f.o(b, h), f.queries, f.width);
		std::vector<float> grad =
		        load_rows<T>(f.grad(b, h), f.queries, f.width);

		for (int row = 0; row < f.queries; row++) {
			double sum = 0;

			for (int c = 0; c < f.width; c++) {
				size_t i = (size_t)row * (size_t)f.width +
				           (size_t)c;

				sum += (double)o[i] * (double)grad[i];
			}
			f.delta(b, h)[row] = (float)sum;
			if (f.address(504))
				memset(f.dq_sums(b, h, row), 0,
				        (size_t)f.width * sizeof(float));
		}
	});
}

static bool run_flash_backward(const Launch &launch)
{
	Flash all(launch);
	Seed seed = {};

	if (launch.param_bytes(0) != 648)
		return false;
	if (all.drops()) {
		const uint64_t *state = at_address<uint64_t>(all.address(432));

		seed = {state[0], state[1]};
	}
	return flash(launch, [&](const Flash &f, int b, int h, auto t) {
		using T = decltype(t);
		std::vector<float> dq, dk, dv;
		Head head = f.head(b, h);

		head.seed = seed;
		attend_backward<T>(head, f.q(b, h), f.k(b, h), f.v(b, h),
		        f.grad(b, h), f.log_sums(b, h), f.delta(b, h), &dq, &dk,
		        &dv, Rows{});
		store_rows<T>(dk, f.keys, f.width, f.dk(b, h), head.scale);
		store_rows<T>(dv, f.keys, f.width, f.dv(b, h));
		for (int row = 0; row < f.queries; row++)
			for (int c = 0; c < f.width; c++)
				f.dq_sums(b, h, row)[c] +=
				        dq[(size_t)row * (size_t)f.width +
				                (size_t)c];
	});
}

static bool run_flash_convert(const Launch &launch)
{
	if (launch.param_bytes(0) != 648)
		return false;
	return flash(launch, [&](const Flash &f, int b, int h, auto t) {
		Rows sums = {(uint64_t)(uintptr_t)f.dq_sums(b, h, 0),
		        (int64_t)f.heads * f.word(204)};

		store_rows<decltype(t)>(
		        load_rows<float>(sums, f.queries, f.width), f.queries,
		        f.width, f.dq(b, h), launch.param<float>(0, 216));
	});
}

/* ------------------------------------------------------- memory-efficient */

/* Masks of the memory-efficient kernels. */
enum { MASK_NONE, MASK_TOP_LEFT, MASK_BOTTOM_RIGHT };

static void set_mask(Head *head, uint8_t mask, int32_t window)
{
	head->left = window > 0 ? window - 1 : -1;
	head->right = mask == MASK_NONE ? -1 : 0;
	head->diagonal =
	        mask == MASK_BOTTOM_RIGHT ? head->keys - head->queries : 0;
}

/* Rows of log sums are padded to multiples of this. */
constexpr int64_t LOG_SUM_ROWS = 32;

/* AttentionKernel<T, ...>::Params, by the offsets of kernel_forward.h. Before
 * PyTorch 2.15 there were neither groups of heads nor parts of a batch. */
static bool run_efficient_forward(const Launch &launch)
{
	auto word = [&](size_t at) { return launch.param<int32_t>(0, at); };
	auto wide = [&](size_t at) { return launch.param<int64_t>(0, at); };
	bool older = launch.param_bytes(0) == 272;
	size_t shift = older ? 8 : 0; /* of what follows the heads */
	int batches = word(192), heads = word(204 - shift);
	int group = older ? 1 : word(208);
	bool drops = launch.param<bool>(0, older ? 200 : 212);
	uint8_t mask = launch.param<uint8_t>(0, 116);
	Seed seed = {};

	if ((launch.param_bytes(0) != 280 && !older) || wide(32) || wide(40) ||
	        wide(48) || mask > MASK_BOTTOM_RIGHT)
		return false;
	if (!older && (word(196) || word(200)))
		return false;
	if (drops) {
		seed = Seed::unpack(launch.param_data(0) + 232 - shift);
		if (launch.param<bool>(0, 256 - shift)) {
			/* In a graph; for the backward pass. */
			*at_address<uint64_t>((uint64_t)wide(272 - shift)) =
			        seed.seed;
			*at_address<uint64_t>((uint64_t)wide(264 - shift)) =
			        seed.offset;
		}
	}
	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		Head head = {};

		head.queries = word(104);
		head.keys = word(108);
		head.width = word(96);
		head.value_width = word(100);
		head.scale = launch.param<float>(0, 92);
		head.dropout = drops ? launch.param<float>(0, 224 - shift) : 0;
		head.seed = seed;
		set_mask(&head, mask, word(88));
		auto rows = [&](size_t pointer, size_t batch, size_t row,
		                    size_t column, int b, int h) {
			return Rows{(uint64_t)(wide(pointer) +
			                       (int64_t)sizeof(T) *
			                               (wide(batch) * b +
			                                       (int64_t)word(
			                                               column) *
			                                               h)),
			        word(row)};
		};
		int64_t sums = (head.queries + LOG_SUM_ROWS - 1) /
		               LOG_SUM_ROWS * LOG_SUM_ROWS;

		for (int b = 0; b < batches; b++)
			for (int h = 0; h < heads; h++) {
				float *log_sums =
				        at_address<float>((uint64_t)wide(80));
				int64_t index = (int64_t)b * heads + h;
				Rows out = {
				        (uint64_t)(wide(64) +
				                   (int64_t)sizeof(T) *
				                           (b * head.queries *
				                                           word(136) +
				                                   h * head.value_width)),
				        word(136)};

				head.index = (uint64_t)index;
				if (wide(24))
					head.bias = {
					        (uint64_t)(wide(24) +
					                   (int64_t)sizeof(T) *
					                           (wide(184) * b +
					                                   wide(152) *
					                                           h)),
					        word(132)};
				if (log_sums) {
					log_sums += index * sums;
					for (int64_t i = head.queries; i < sums;
					        i++)
						log_sums[i] = INFINITY;
				}
				attend<T>(head, rows(0, 160, 120, 140, b, h),
				        rows(8, 168, 124, 144, b, h / group),
				        rows(16, 176, 128, 148, b, h / group),
				        out, log_sums);
			}
	});
}

/* AttentionBackwardKernel<T, ...>::Params, by kernel_backward.h; offsets are
 * those of PyTorch 2.15, see above. */
static bool run_efficient_backward(const Launch &launch)
{
	bool older = launch.param_bytes(0) == 464;
	auto moved = [&](size_t at) {
		return !older || at < 164 ? at : at < 400 ? at - 8 : at - 16;
	};
	auto word = [&](size_t at) {
		return launch.param<int32_t>(0, moved(at));
	};
	auto wide = [&](size_t at) {
		return launch.param<int64_t>(0, moved(at));
	};
	int batches = word(384), heads = word(160);
	int group = older ? 1 : word(164);
	uint8_t mask = launch.param<uint8_t>(0, older ? 164 : 168);
	float dropout = launch.param<float>(0, moved(272));
	Seed seed = {};

	if ((launch.param_bytes(0) != 480 && !older) || wide(64) || wide(72) ||
	        mask > MASK_BOTTOM_RIGHT)
		return false;
	if (!older && (word(388) || word(392)))
		return false;
	if (dropout > 0)
		seed = Seed::unpack(launch.param_data(0) + moved(232));
	return with_float(launch.kernel.type(1), [&](auto t) {
		using T = decltype(t);
		Head head = {};

		head.queries = word(152);
		head.keys = word(156);
		head.width = word(144);
		head.value_width = word(148);
		head.scale = launch.param<float>(0, 140);
		head.dropout = dropout;
		head.seed = seed;
		set_mask(&head, mask, word(136));
		auto rows = [&](size_t pointer, int64_t offset, int64_t row) {
			return Rows{(uint64_t)(wide(pointer) +
			                       (int64_t)sizeof(T) * offset),
			        row};
		};
		int64_t multiplier = launch.param<int8_t>(0, moved(224));
		int64_t row = multiplier * heads * head.width;
		int64_t value_row = multiplier * heads * head.value_width;

		for (int b = 0; b < batches; b++)
			for (int h = 0; h < heads; h++) {
				Rows grad =
				        rows(48, wide(400) * b + wide(440) * h,
				                wide(208));
				Rows out =
				        rows(40, wide(312) * b + wide(280) * h,
				                head.value_width * heads);
				std::vector<float> o = load_rows<T>(
				        out, head.queries, head.value_width);
				std::vector<float> g = load_rows<T>(
				        grad, head.queries, head.value_width);
				std::vector<float> delta((size_t)head.queries);
				std::vector<float> dq, dk, dv;
				Rows grad_bias = {};

				for (size_t i = 0; i < o.size(); i++)
					delta[i / (size_t)head.value_width] +=
					        o[i] * g[i];
				head.index = (uint64_t)((int64_t)b * heads + h);
				if (wide(24))
					head.bias = rows(24,
					        wide(344) * b + wide(304) * h,
					        wide(200));
				if (wide(104))
					grad_bias = rows(104,
					        wide(432) * b + wide(472) * h,
					        wide(216));
				attend_backward<T>(head,
				        rows(0,
				                wide(320) * b +
				                        (int64_t)word(288) * h,
				                wide(176)),
				        rows(8,
				                wide(328) * b +
				                        (int64_t)word(292) *
				                                (h / group),
				                wide(184)),
				        rows(16,
				                wide(336) * b +
				                        (int64_t)word(296) *
				                                (h / group),
				                wide(192)),
				        grad,
				        at_address<float>((uint64_t)wide(32)) +
				                wide(352) * b + wide(360) * h,
				        delta.data(), &dq, &dk, &dv, grad_bias);
				store_rows<T>(dq, head.queries, head.width,
				        rows(80, wide(408) * b + wide(448) * h,
				                row),
				        head.scale);
				store_rows<T>(dk, head.keys, head.width,
				        rows(88, wide(416) * b + wide(456) * h,
				                row),
				        head.scale);
				store_rows<T>(dv, head.keys, head.value_width,
				        rows(96, wide(424) * b + wide(464) * h,
				                value_row));
			}
	});
}

const Family attention_families[] = {
        {"flash_fwd_kernel", run_flash_forward},
        {"flash_bwd_dot_do_o_kernel", run_flash_dot},
        {"flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", run_flash_backward},
        {"flash_bwd_convert_dq_kernel", run_flash_convert},
        /* The functions are no templates; their parameter's type is. */
        {"AttentionKernel", run_efficient_forward},
        {"AttentionBackwardKernel", run_efficient_backward},
        {nullptr, nullptr},
};

} // namespace sgx
