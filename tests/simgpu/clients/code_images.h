/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes program images for the tests of the simulated driver: minimal cubins
 * with the sections that carry layouts, and fat binaries around images. The
 * caller owns every buffer returned (free). Aborts without memory.
 */
#ifndef CODE_IMAGES_H
#define CODE_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image_kernel {
	const char *name;
	const uint32_t *param_bytes; /* n_params sizes, naturally aligned */
	unsigned n_params;
	unsigned regs, shared_bytes, local_bytes;
	unsigned max_threads;  /* launch bound, 0 for none */
	unsigned cluster_size; /* in x, 0 for none */
};

struct image_variable {
	const char *name;
	uint64_t bytes;
	bool managed, constant;
};

struct buffer {
	uint8_t *data;
	size_t bytes, cap;
};
void buffer_add(struct buffer *buffer, const void *data, size_t bytes);
void buffer_free(struct buffer *buffer);

/* A cubin for compute capability sm (80 and the like). */
struct buffer image_cubin(int sm, const struct image_kernel *kernels,
        unsigned n_kernels, const struct image_variable *variables,
        unsigned n_variables);

enum image_packing {
	IMAGE_PLAIN,
	IMAGE_LZ4,
	IMAGE_ZSTD,
};
enum {
	IMAGE_IS_PTX = 1,
	IMAGE_IS_CUBIN = 2,
};
/* Flags of an entry: for this capability only, for its family. */
#define IMAGE_SPECIFIC 0x100000u
#define IMAGE_FAMILY   0x200000u

/* An empty fat binary, and one more image in it. */
struct buffer image_fatbin(void);
void image_fatbin_add(struct buffer *fatbin, unsigned kind, int sm,
        uint64_t flags, const void *data, size_t bytes,
        enum image_packing packing);

/* What cudart hands over: points to a fat binary. */
struct image_wrapper {
	uint32_t magic, version;
	const void *data;
	const void *name;
};
struct image_wrapper image_wrap(const struct buffer *fatbin);

#endif
