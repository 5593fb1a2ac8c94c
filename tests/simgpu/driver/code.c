/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parsed program code: owns struct sg_code, from its building by the parsers
 * to the look-up of kernels and variables by name. Called under sg_lock.
 */
#include "tests/simgpu/driver/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sg_code *sg_code_new(void)
{
	struct sg_code *code = sg_xcalloc(1, sizeof(*code));

	code->refs = 1;
	return code;
}

struct sg_code *sg_code_ref(struct sg_code *code)
{
	code->refs++;
	return code;
}

void sg_code_unref(struct sg_code *code)
{
	if (!code || --code->refs > 0)
		return;
	for (unsigned i = 0; i < code->n_kernels; i++) {
		free(code->kernels[i].name);
		free(code->kernels[i].params);
	}
	for (unsigned i = 0; i < code->n_variables; i++)
		free(code->variables[i].name);
	free(code->kernels);
	free(code->variables);
	free(code);
}

static char *copy_name(const char *name, size_t bytes)
{
	char *copy = sg_xcalloc(1, bytes + 1);

	memcpy(copy, name, bytes);
	return copy;
}

struct sg_code_kernel *sg_code_add_kernel(
        struct sg_code *code, const char *name, size_t name_bytes)
{
	struct sg_code_kernel *kernel;

	if (code->n_kernels == code->cap_kernels) {
		code->cap_kernels = code->cap_kernels * 2 + 8;
		code->kernels = sg_xrealloc(code->kernels,
		        code->cap_kernels * sizeof(*code->kernels));
	}
	kernel = &code->kernels[code->n_kernels++];
	memset(kernel, 0, sizeof(*kernel));
	kernel->name = copy_name(name, name_bytes);
	return kernel;
}

struct sg_code_variable *sg_code_add_variable(
        struct sg_code *code, const char *name, size_t name_bytes)
{
	struct sg_code_variable *variable;

	if (code->n_variables == code->cap_variables) {
		code->cap_variables = code->cap_variables * 2 + 8;
		code->variables = sg_xrealloc(code->variables,
		        code->cap_variables * sizeof(*code->variables));
	}
	variable = &code->variables[code->n_variables++];
	memset(variable, 0, sizeof(*variable));
	variable->name = copy_name(name, name_bytes);
	return variable;
}

static int by_kernel_name(const void *a, const void *b)
{
	const struct sg_code_kernel *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int by_variable_name(const void *a, const void *b)
{
	const struct sg_code_variable *x = a, *y = b;

	return strcmp(x->name, y->name);
}

int sg_code_finish(struct sg_code *code)
{
	for (unsigned k = 0; k < code->n_kernels; k++) {
		struct sg_code_kernel *kernel = &code->kernels[k];
		uint32_t end = 0;

		for (unsigned i = 0; i < kernel->n_params; i++) {
			const struct sg_param *p = &kernel->params[i];

			/* Parameters follow each other and do not overlap. */
			if (p->offset_bytes < end || !p->size_bytes ||
			        p->size_bytes > SG_PARAMS_MAX_BYTES ||
			        p->offset_bytes > SG_PARAMS_MAX_BYTES)
				return -EINVAL;
			end = p->offset_bytes + p->size_bytes;
		}
		if (end > SG_PARAMS_MAX_BYTES ||
		        kernel->params_bytes > SG_PARAMS_MAX_BYTES)
			return -EINVAL;
		if (kernel->params_bytes < end)
			kernel->params_bytes = end;
	}
	if (code->n_kernels)
		qsort(code->kernels, code->n_kernels, sizeof(*code->kernels),
		        by_kernel_name);
	if (code->n_variables)
		qsort(code->variables, code->n_variables,
		        sizeof(*code->variables), by_variable_name);
	return 0;
}

int sg_code_find_kernel(const struct sg_code *code, const char *name)
{
	unsigned low = 0, high = code->n_kernels;

	while (low < high) {
		unsigned mid = low + (high - low) / 2;
		int order = strcmp(name, code->kernels[mid].name);

		if (order == 0)
			return (int)mid;
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return -ENOENT;
}

int sg_code_find_variable(const struct sg_code *code, const char *name)
{
	unsigned low = 0, high = code->n_variables;

	while (low < high) {
		unsigned mid = low + (high - low) / 2;
		int order = strcmp(name, code->variables[mid].name);

		if (order == 0)
			return (int)mid;
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return -ENOENT;
}

/* Cubins run on devices of their generation, of at least their revision. */
static bool cubin_fits(int cubin_sm, int sm)
{
	return cubin_sm / 10 == sm / 10 && cubin_sm <= sm;
}

CUresult sg_code_load(
        const struct sg_image *image, int sm, struct sg_code **ret_code)
{
	struct sg_code *code = NULL;
	uint8_t *data = NULL;
	size_t bytes = 0;
	int r = sg_image_unpack(image, &data, &bytes);

	if (r == -ENOMEM)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (r < 0)
		return CUDA_ERROR_INVALID_IMAGE;
	if (image->kind == SG_IMAGE_PTX)
		r = sg_ptx_parse((const char *)data, bytes, sm, &code);
	else
		r = sg_cubin_parse(data, bytes, &code);
	free(data);
	if (r == -ENOTSUP)
		return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
	if (r < 0)
		return image->kind == SG_IMAGE_PTX ? CUDA_ERROR_INVALID_PTX
		                                   : CUDA_ERROR_INVALID_IMAGE;
	if (image->sm)
		code->sm = image->sm;
	if (image->kind == SG_IMAGE_CUBIN && !cubin_fits(code->sm, sm)) {
		sg_code_unref(code);
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	*ret_code = code;
	return CUDA_SUCCESS;
}
