/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the simulated driver asks of libsimgpu_exact.so: to carry a launch out
 * on the host. Device addresses are host addresses then. Called under sg_lock,
 * one launch at a time.
 */
#ifndef SGX_EXACT_H
#define SGX_EXACT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sgx_param {
	uint32_t offset_bytes, size_bytes;
};

struct sgx_launch {
	const void *function; /* the same for all launches of a function */
	const char *name;     /* demangled; lives as long as the function */
	const struct sgx_param *params;
	uint32_t n_params;
	const uint8_t *bytes; /* of the parameters */
	uint32_t grid[3], block[3];
};

/* Carries the launch out. False, and nothing has been written, if there is no
 * implementation for this kernel. */
typedef bool (*sgx_run_fn)(const struct sgx_launch *launch);
#define SGX_RUN_NAME "sgx_run"
__attribute__((visibility("default"))) bool sgx_run(
        const struct sgx_launch *launch);

#ifdef __cplusplus
}
#endif

#endif
