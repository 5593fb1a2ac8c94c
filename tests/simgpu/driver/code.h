/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the parts of the code half share among themselves: parsed program
 * images, modules, libraries and kernels. Guarded by sg_lock; called by API
 * functions on any thread.
 *
 * An image (cubin or PTX) is parsed once into a struct sg_code and then
 * dropped: only layouts and names are kept. A module is that code in one
 * context, with functions and addresses of variables; a library holds the
 * image and makes a module in each context that wants one.
 */
#ifndef SG_CODE_H
#define SG_CODE_H

#include "tests/simgpu/driver/sg.h"

/* Parameters of one kernel end at most here (32,764 bytes, and padding). */
#define SG_PARAMS_MAX_BYTES 32768u

/* Compute capability as the tool chain writes it: 10 * major + minor. */
static inline int sg_model_sm(const struct sg_model *model)
{
	return model->sm_major * 10 + model->sm_minor;
}

/* ------------------------------------------------------------------ images */

enum sg_image_kind {
	SG_IMAGE_CUBIN,
	SG_IMAGE_PTX,
};

/* One image as it is stored; data belongs to whoever owns the container. */
struct sg_image {
	enum sg_image_kind kind;
	const uint8_t *data;
	size_t bytes;          /* as stored */
	size_t unpacked_bytes; /* 0: stored as it is */
	bool lz4, zstd;
	int sm; /* compute capability, 0 if only the image knows */
};

/*
 * Finds the image that fits a device of capability sm in a cubin, a PTX text,
 * a fat binary or its wrapper. bytes is SIZE_MAX where the caller cannot know
 * (an API pointer): then the formats' own sizes hold, and PTX ends with a NUL.
 * CUDA_ERROR_INVALID_IMAGE, or CUDA_ERROR_NO_BINARY_FOR_GPU.
 */
CUresult sg_image_find(
        const void *code, size_t bytes, int sm, struct sg_image *ret_image);
/* A malloc'ed plain copy, with a NUL after it. -EINVAL: damaged; -ENOMEM. */
int sg_image_unpack(
        const struct sg_image *image, uint8_t **ret_data, size_t *ret_bytes);

/* ------------------------------------------------------------- parsed code */

struct sg_code_kernel {
	char *name; /* mangled */
	struct sg_param *params;
	unsigned n_params;
	uint32_t params_bytes;
	int regs, shared_bytes, local_bytes;
	int max_threads; /* launch bound, 0 if none */
	bool cluster_required;
	uint32_t cluster[3]; /* compiled in, 0 if not */
};

struct sg_code_variable {
	char *name;
	uint64_t bytes;
	bool managed, constant;
};

struct sg_code {
	int refs;
	int sm; /* binary version */
	int ptx_version, const_bytes;
	struct sg_code_kernel *kernels; /* sorted by name */
	unsigned n_kernels, cap_kernels;
	struct sg_code_variable *variables; /* sorted by name */
	unsigned n_variables, cap_variables;
};

/* Unpacks and parses; refs is 1. INVALID_IMAGE, INVALID_PTX, ... */
CUresult sg_code_load(
        const struct sg_image *image, int sm, struct sg_code **ret_code);
struct sg_code *sg_code_ref(struct sg_code *code);
void sg_code_unref(struct sg_code *code);
/* Index by name, or -ENOENT. */
int sg_code_find_kernel(const struct sg_code *code, const char *name);
int sg_code_find_variable(const struct sg_code *code, const char *name);

/* For the parsers: an empty code, new zeroed members, and the end of it
 * (sorts; -EINVAL if a kernel's parameters make no sense). Pointers to members
 * hold until the next one is added. */
struct sg_code *sg_code_new(void);
struct sg_code_kernel *sg_code_add_kernel(
        struct sg_code *code, const char *name, size_t name_bytes);
struct sg_code_variable *sg_code_add_variable(
        struct sg_code *code, const char *name, size_t name_bytes);
int sg_code_finish(struct sg_code *code);

/* -EINVAL for anything damaged; the input is not kept. */
int sg_cubin_parse(
        const uint8_t *data, size_t bytes, struct sg_code **ret_code);
/* Also -ENOTSUP: a PTX version newer than this driver. */
int sg_ptx_parse(
        const char *text, size_t bytes, int sm, struct sg_code **ret_code);

/* ------------------------------------------------------ modules, libraries */

struct sg_module {
	struct sg_handle h;
	struct sg_ctx *ctx;
	struct sg_code *code;           /* ref held */
	struct sg_library *library;     /* that made it, or NULL */
	struct sg_function **functions; /* by kernel, NULL until wanted */
	uint64_t variables_va;          /* one range for all, 0 if none */
	uint64_t *variable_offsets;
	struct sg_module *next;
};

struct sg_library {
	struct sg_handle h;
	struct sg_image image;
	uint8_t *copy; /* of the image, unless the program preserves it */
	struct sg_code *code; /* NULL until something is asked of it */
	struct sg_kernel **kernels;
	struct sg_library *next;
};

/* Attributes a program may set lie below this index. */
#define SG_FUNCTION_ATTRIBUTES 16
#define SG_ATTRIBUTE_UNSET     INT32_MIN

struct sg_kernel {
	struct sg_handle h;
	struct sg_library *library;
	unsigned index;                            /* in library->code */
	int (*attributes)[SG_FUNCTION_ATTRIBUTES]; /* per device, or NULL */
};

/* Makes a module of code in ctx; takes its own reference. OUT_OF_MEMORY. */
CUresult sg_module_new(struct sg_ctx *ctx, struct sg_code *code,
        struct sg_library *library, struct sg_module **ret_module);
void sg_module_unload(struct sg_module *module);
/* The module of library in ctx, or NULL. */
struct sg_module *sg_module_of_library(
        const struct sg_library *library, const struct sg_ctx *ctx);
void sg_module_unload_library(const struct sg_library *library);
/* The function of kernel index; made on first use. */
struct sg_function *sg_module_function(
        struct sg_module *module, unsigned index);
CUresult sg_module_variable(const struct sg_module *module, const char *name,
        CUdeviceptr *ret_va, size_t *ret_bytes);
/* Clears the log sizes that just-in-time options ask for: there is no log. */
CUresult sg_jit_options(
        unsigned count, const CUjit_option *options, void **values);
/* A whole file, malloc'ed, with a NUL after it. FILE_NOT_FOUND. */
CUresult sg_read_file(const char *path, uint8_t **ret_data, size_t *ret_bytes);

/* The kernel's function in the current context; loads its module there. */
CUresult sg_kernel_function(
        struct sg_kernel *kernel, struct sg_function **ret_fn);

/* A function's attribute as it stands, and checks of a value to be set. */
int sg_function_attribute(const struct sg_function *fn, int attribute);
int sg_kernel_attribute(const struct sg_kernel *kernel,
        const struct sg_device *dev, int attribute);
CUresult sg_attribute_check(const struct sg_code_kernel *kernel,
        const struct sg_model *model, int attribute, int value);

/* Blocks of that size resident on one multiprocessor; 0 if none fits. */
int sg_occupancy_blocks(
        const struct sg_function *fn, unsigned threads, uint64_t dynamic_bytes);
/* The largest cluster the device and the function allow, in blocks. */
unsigned sg_cluster_limit(const struct sg_function *fn);

/* -------------------------------------------------------- cost of a kernel */

/* Time to move bytes, and to do operations of a type at an efficiency. */
uint64_t sg_cost_bytes_ns(const struct sg_model *model, double bytes);
uint64_t sg_cost_roofline_ns(const struct sg_model *model, double flops,
        enum sg_dtype type, double efficiency, double bytes);

#endif
