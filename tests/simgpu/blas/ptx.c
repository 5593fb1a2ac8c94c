/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The PTX module of the simulated cuBLAS: one entry a kernel, with the
 * parameters of simblas_params.h and an empty body. What a kernel does and
 * costs, the simulated device knows by its name. Constant data.
 */
#include "simblas.h"

#define PARAM_PTR(name) "\t.param .u64 .ptr .global .align 1 " #name
#define PARAM_S64(name) "\t.param .s64 " #name
#define PARAM_U64(name) "\t.param .u64 " #name
#define PARAM_F64(name) "\t.param .f64 " #name
#define PARAM_U32(name) "\t.param .u32 " #name
#define PARAMS(LIST)                                                           \
	LIST(PARAM_PTR, PARAM_S64, PARAM_U64, PARAM_F64, PARAM_U32, ",\n")

#define PARAMS_SIMBLAS_GEMM          PARAMS(SIMBLAS_GEMM_PARAMS)
#define PARAMS_SIMBLAS_GEMM_STRIDED  PARAMS(SIMBLAS_GEMM_PARAMS)
#define PARAMS_SIMBLAS_GEMM_BATCHED  PARAMS(SIMBLAS_GEMM_PARAMS)
#define PARAMS_SIMBLAS_GEMM_SPLITK   PARAMS(SIMBLAS_GEMM_PARAMS)
#define PARAMS_SIMBLAS_SPLITK_REDUCE PARAMS(SIMBLAS_GEMM_PARAMS)
#define PARAMS_SIMBLAS_GEMV          PARAMS(SIMBLAS_GEMV_PARAMS)
#define PARAMS_SIMBLAS_VEC           PARAMS(SIMBLAS_VEC_PARAMS)

#define ENTRY(name, family, class)                                             \
	"\n.visible .entry " #name "(\n" PARAMS_##family "\n)\n{\n\tret;\n}\n"

const char sg_blas_ptx[] = ".version 7.8\n"
                           ".target sm_52\n"
                           ".address_size 64\n" SIMBLAS_KERNELS(ENTRY);

const char *sg_blas_kernel_name(enum sg_blas_kernel kernel)
{
#define NAME(name, family, class) [SG_BLAS_K_##name] = #name,
	static const char *const names[] = {SIMBLAS_KERNELS(NAME)};
#undef NAME
	return names[kernel];
}
