/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Products of the simulated cuBLAS, by simblas_params.h: single-threaded
 * OpenBLAS in fp32 or fp64 on packed copies of the operands, then the epilogue
 * in fp32, then one rounding to the type of the result.
 */
#include "tests/simgpu/blas/simblas_params.h"
#include "tests/simgpu/exact/layout.h"

#include <cblas.h>
#include <cmath>

namespace sgx
{

/* cudaDataType of a real element type. */
static Type type_of_data(uint32_t type)
{
	switch (type) {
	case 0:
		return Type::F32;
	case 1:
		return Type::F64;
	case 2:
		return Type::F16;
	case 14:
		return Type::BF16;
	default:
		return Type::NONE;
	}
}

/* A matrix as it lies in memory; rows and columns before transposition. */
struct Matrix {
	uint64_t address;
	Type type;
	int64_t ld;
	bool row_major;
	int64_t at(int64_t row, int64_t column) const
	{
		return row_major ? row * ld + column : column * ld + row;
	}
};

/* A matrix packed column by column into M. */
template <class M>
static void pack(
        const Matrix &from, int64_t rows, int64_t columns, std::vector<M> *to)
{
	to->resize((size_t)(rows * columns));
	with_float(from.type, [&](auto t) {
		using T = decltype(t);
		const T *data = at_address<const T>(from.address);

		for (int64_t c = 0; c < columns; c++)
			for (int64_t r = 0; r < rows; r++)
				(*to)[(size_t)(c * rows + r)] =
				        (M)data[from.at(r, c)];
	});
}

template <class M>
static void unpack(
        const M *from, int64_t rows, int64_t columns, const Matrix &to)
{
	with_float(to.type, [&](auto t) {
		using T = decltype(t);
		T *data = at_address<T>(to.address);

		for (int64_t c = 0; c < columns; c++)
			for (int64_t r = 0; r < rows; r++)
				data[to.at(r, c)] =
				        convert<T>(from[c * rows + r]);
	});
}

static void multiply(bool ta, bool tb, int m, int n, int k, const float *a,
        int lda, const float *b, int ldb, float *out)
{
	cblas_sgemm(CblasColMajor, ta ? CblasTrans : CblasNoTrans,
	        tb ? CblasTrans : CblasNoTrans, m, n, k, 1, a, lda, b, ldb, 0,
	        out, m);
}

static void multiply(bool ta, bool tb, int m, int n, int k, const double *a,
        int lda, const double *b, int ldb, double *out)
{
	cblas_dgemm(CblasColMajor, ta ? CblasTrans : CblasNoTrans,
	        tb ? CblasTrans : CblasNoTrans, m, n, k, 1, a, lda, b, ldb, 0,
	        out, m);
}

/* op(a) op(b) without alpha, for one product of the batch. */
template <class M>
static void product(const struct simblas_gemm &p, Matrix a, Matrix b,
        int64_t k_from, int64_t k_count, std::vector<M> *out)
{
	static std::vector<M> packed_a, packed_b;
	const M *pa, *pb;
	int64_t lda, ldb;
	Type direct = std::is_same_v<M, float> ? Type::F32 : Type::F64;
	bool ta = p.trans_a != 0, tb = p.trans_b != 0;

	/* A part of k is a part of the columns of op(a), the rows of op(b). */
	a.address += size_of(a.type) *
	             (uint64_t)(ta ? a.at(k_from, 0) : a.at(0, k_from));
	b.address += size_of(b.type) *
	             (uint64_t)(tb ? b.at(0, k_from) : b.at(k_from, 0));
	/* A row-major matrix is its transpose, column-major. */
	if (a.row_major) {
		a.row_major = false;
		ta = !ta;
	}
	if (b.row_major) {
		b.row_major = false;
		tb = !tb;
	}
	if (a.type == direct) {
		pa = at_address<const M>(a.address);
		lda = a.ld;
	} else {
		pack(a, ta ? k_count : p.m, ta ? p.m : k_count, &packed_a);
		pa = packed_a.data();
		lda = ta ? k_count : p.m;
	}
	if (b.type == direct) {
		pb = at_address<const M>(b.address);
		ldb = b.ld;
	} else {
		pack(b, tb ? p.n : k_count, tb ? k_count : p.n, &packed_b);
		pb = packed_b.data();
		ldb = tb ? p.n : k_count;
	}
	out->assign((size_t)p.m * p.n, M(0));
	if (k_count)
		multiply(ta, tb, (int)p.m, (int)p.n, (int)k_count, pa, (int)lda,
		        pb, (int)ldb, out->data());
}

/* cublasLtEpilogue_t, by its bits. */
enum {
	EPILOGUE_RELU = 2,
	EPILOGUE_BIAS = 4,
	EPILOGUE_GELU = 32,
};

template <class M> static M gelu(M x)
{
	return M(0.5) * x *
	       (1 + std::tanh(M(0.79788456080286535588) *
	                      (x + M(0.044715) * x * x * x)));
}

/* What an epilogue beyond a bias needs is not there yet. */
static bool epilogue_known(const struct simblas_gemm &p)
{
	return p.epilogue == 1 || p.epilogue == EPILOGUE_BIAS ||
	       p.epilogue == EPILOGUE_RELU ||
	       p.epilogue == (EPILOGUE_RELU | EPILOGUE_BIAS) ||
	       p.epilogue == EPILOGUE_GELU ||
	       p.epilogue == (EPILOGUE_GELU | EPILOGUE_BIAS);
}

/* n factors of one product: one for all, or one for each row or column. */
template <class M>
static void load_factors(uint64_t address, Type type, bool vector, M immediate,
        int64_t n, std::vector<M> *to)
{
	if (!address) {
		to->assign((size_t)n, immediate);
		return;
	}
	with_float(type, [&](auto t) {
		using T = decltype(t);
		const T *data = at_address<const T>(address);

		to->resize((size_t)n);
		for (int64_t i = 0; i < n; i++)
			(*to)[(size_t)i] = (M)data[vector ? i : 0];
	});
}

/* alpha * out + beta * c + bias through the epilogue to d. */
template <class M>
static void finish(const struct simblas_gemm &p, std::vector<M> &out,
        const Matrix &c, const Matrix &d, uint64_t bias)
{
	static std::vector<M> before, alphas, betas, biases;
	Type scale = type_of_data(p.type_scale);
	bool vector = p.flags & SIMBLAS_ALPHA_VECTOR;
	bool reads_c = simblas_gemm_reads_c(&p);
	bool by_column = p.flags & SIMBLAS_BIAS_COLS;

	load_factors(p.alpha_ptr, scale, vector, (M)p.alpha_re, p.m, &alphas);
	if (reads_c) {
		load_factors(
		        p.beta_ptr, scale, vector, (M)p.beta_re, p.m, &betas);
		pack(c, p.m, p.n, &before);
	}
	if (bias)
		load_factors(bias, type_of_data(p.type_bias), true, M(0),
		        by_column ? p.n : p.m, &biases);
	for (int64_t j = 0; j < p.n; j++) {
		M *x = out.data() + j * p.m;

		for (int64_t i = 0; i < p.m; i++)
			x[i] = alphas[i] * x[i];
		if (reads_c)
			for (int64_t i = 0; i < p.m; i++)
				x[i] += betas[i] * before[j * p.m + i];
		if (bias)
			for (int64_t i = 0; i < p.m; i++)
				x[i] += biases[by_column ? j : i];
		if (p.epilogue & EPILOGUE_RELU)
			for (int64_t i = 0; i < p.m; i++)
				x[i] = x[i] > 0 ? x[i] : 0;
		if (p.epilogue & EPILOGUE_GELU)
			for (int64_t i = 0; i < p.m; i++)
				x[i] = gelu(x[i]);
	}
	unpack(out.data(), p.m, p.n, d);
}

static Matrix matrix(uint64_t address, uint32_t type, int64_t ld, bool row)
{
	return {address, type_of_data(type), ld, row};
}

/* The i-th product's operand: by stride, or by an array of pointers. */
static uint64_t nth(uint64_t address, uint32_t i, int64_t stride, uint32_t type,
        bool pointers)
{
	if (!address)
		return 0;
	if (pointers)
		return at_address<const uint64_t>(address)[i];
	return address + (uint64_t)(stride * (int64_t)i *
	                            (int64_t)simblas_type_bytes(type));
}

template <class M>
static bool gemm(const struct simblas_gemm &p, enum simblas_family family)
{
	static std::vector<M> out;
	bool pointers = family == SIMBLAS_GEMM_BATCHED;
	M *partial = at_address<M>(p.workspace);
	size_t mn = (size_t)p.m * p.n;

	if (!epilogue_known(p) || p.aux)
		return false;
	for (uint32_t i = 0; i < p.batch; i++) {
		Matrix a = matrix(nth(p.a, i, p.stride_a, p.type_a, pointers),
		        p.type_a, p.lda, p.flags & SIMBLAS_ROW_A);
		Matrix b = matrix(nth(p.b, i, p.stride_b, p.type_b, pointers),
		        p.type_b, p.ldb, p.flags & SIMBLAS_ROW_B);
		Matrix c = matrix(nth(p.c, i, p.stride_c, p.type_c, pointers),
		        p.type_c, p.ldc, p.flags & SIMBLAS_ROW_C);
		Matrix d = matrix(nth(p.d, i, p.stride_d, p.type_d, pointers),
		        p.type_d, p.ldd, p.flags & SIMBLAS_ROW_D);
		uint64_t bias =
		        nth(p.bias, i, p.stride_bias, p.type_bias, false);

		if (family == SIMBLAS_GEMM_SPLITK) {
			for (uint32_t s = 0; s < p.splits; s++) {
				int64_t from = (int64_t)p.k * s / p.splits;
				int64_t to = (int64_t)p.k * (s + 1) / p.splits;

				product(p, a, b, from, to - from, &out);
				memcpy(partial + (i * p.splits + s) * mn,
				        out.data(), mn * sizeof(M));
			}
			continue;
		}
		if (family == SIMBLAS_SPLITK_REDUCE) {
			out.assign(mn, M(0));
			for (uint32_t s = 0; s < p.splits; s++)
				for (size_t j = 0; j < mn; j++)
					out[j] += partial[(i * p.splits + s) *
					                          mn +
					                  j];
		} else {
			product(p, a, b, 0, p.k, &out);
		}
		finish(p, out, c, d, bias);
	}
	return true;
}

static enum simblas_family family_of(const std::string &name)
{
	if (name.find("_splitk_") != std::string::npos)
		return name.find("gemm_") != std::string::npos
		               ? SIMBLAS_GEMM_SPLITK
		               : SIMBLAS_SPLITK_REDUCE;
	if (name.find("splitk_reduce") != std::string::npos)
		return SIMBLAS_SPLITK_REDUCE;
	if (name.find("_batched_") != std::string::npos)
		return SIMBLAS_GEMM_BATCHED;
	return SIMBLAS_GEMM;
}

static bool run_gemm(const Launch &launch)
{
	struct simblas_gemm p = {};
	size_t end =
	        launch.raw.n_params
	                ? launch.raw.params[launch.raw.n_params - 1]
	                                  .offset_bytes +
	                          launch.raw.params[launch.raw.n_params - 1]
	                                  .size_bytes
	                : 0;

	if (end < SIMBLAS_GEMM_BYTES)
		return false;
	openblas_set_num_threads(1);
	memcpy((void *)&p, launch.raw.bytes, SIMBLAS_GEMM_BYTES);
	enum simblas_family family = family_of(launch.kernel.family);
	if (type_of_data(p.type_d) == Type::NONE)
		return false;
	return p.type_d == 1 ? gemm<double>(p, family) : gemm<float>(p, family);
}

template <class T> static bool run_gemv(const Launch &launch)
{
	struct simblas_gemv p;

	memcpy((void *)&p, launch.raw.bytes, SIMBLAS_GEMV_BYTES);
	int64_t outputs = p.trans ? p.n : p.m, inputs = p.trans ? p.m : p.n;
	const T *a = at_address<const T>(p.a), *x = at_address<const T>(p.x);
	T *y = at_address<T>(p.y);
	T alpha =
	        p.alpha_ptr ? *at_address<const T>(p.alpha_ptr) : (T)p.alpha_re;
	T beta = p.beta_ptr ? *at_address<const T>(p.beta_ptr) : (T)p.beta_re;

	if (p.incx < 0 || p.incy < 0)
		return false;
	for (int64_t o = 0; o < outputs; o++) {
		double sum = 0;

		for (int64_t i = 0; i < inputs; i++)
			sum += (double)(p.trans ? a[o * p.lda + i]
			                        : a[i * p.lda + o]) *
			       (double)x[i * p.incx];
		T old = beta != 0 ? beta * y[o * p.incy] : T(0);
		y[o * p.incy] = alpha * (T)sum + old;
	}
	return true;
}

static bool run_vector(const Launch &launch)
{
	struct simblas_vec p;
	const std::string &name = launch.kernel.family;

	memcpy((void *)&p, launch.raw.bytes, SIMBLAS_VEC_BYTES);
	Type type = type_of_data(p.type);
	if (p.incx < 0 || p.incy < 0)
		return false;
	return with_float(type, [&](auto t) {
		using T = decltype(t);
		using M = Math<T>;
		T *x = at_address<T>(p.x), *y = at_address<T>(p.y);
		M alpha = p.alpha_ptr ? (M)*at_address<T>(p.alpha_ptr)
		                      : (M)p.alpha_re;
		double sum = 0;

		for (int64_t i = 0; i < p.n; i++) {
			T &xi = x[i * p.incx], &yi = y[i * p.incy];

			if (name == "simblas_axpy")
				yi = convert<T>(alpha * (M)xi + (M)yi);
			else if (name == "simblas_scal")
				xi = convert<T>(alpha * (M)xi);
			else if (name == "simblas_copy")
				yi = xi;
			else if (name == "simblas_swap")
				std::swap(xi, yi);
			else if (name == "simblas_dot")
				sum += (double)(M)xi * (double)(M)yi;
			else if (name == "simblas_nrm2")
				sum += (double)(M)xi * (double)(M)xi;
			else
				sum += std::fabs((double)(M)xi);
		}
		if (name == "simblas_nrm2")
			sum = std::sqrt(sum);
		if (p.result)
			*at_address<T>(p.result) = convert<T>((M)sum);
	});
}

#define GEMM_NAMES(suffix)                                                     \
	{"simblas_gemm_" suffix, run_gemm},                                    \
	        {"simblas_gemm_strided_" suffix, run_gemm},                    \
	        {"simblas_gemm_batched_" suffix, run_gemm},                    \
	        {"simblas_gemm_splitk_" suffix, run_gemm},                     \
	{                                                                      \
		"simblas_splitk_reduce_" suffix, run_gemm                      \
	}

const Family blas_families[] = {
        GEMM_NAMES("f32"),
        GEMM_NAMES("tf32"),
        GEMM_NAMES("f16"),
        GEMM_NAMES("bf16"),
        GEMM_NAMES("f64"),
        {"simblas_gemv_f32", run_gemv<float>},
        {"simblas_gemv_f64", run_gemv<double>},
        {"simblas_axpy", run_vector},
        {"simblas_scal", run_vector},
        {"simblas_copy", run_vector},
        {"simblas_swap", run_vector},
        {"simblas_dot", run_vector},
        {"simblas_nrm2", run_vector},
        {"simblas_asum", run_vector},
        {nullptr, nullptr},
};

} // namespace sgx
