/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names and descriptions of CUresult values. Constant; no lock.
 */
#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/start.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct error {
	CUresult value;
	const char *name, *text;
} errors[] = {
#define SG_ERROR(value, text) {value, #value, text},
#include "tests/simgpu/driver/errors.def"
#undef SG_ERROR
};

static const struct error *find(CUresult value)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].value == value)
			return &errors[i];
	}
	return NULL;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
	const struct error *found = find(error);

	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = found ? found->name : NULL;
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
	const struct error *found = find(error);

	if (!text)
		return CUDA_ERROR_INVALID_VALUE;
	*text = found ? found->text : NULL;
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int sg_error_parse(const char *text, CUresult *ret_error)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (end != text && !*end && find((CUresult)number)) {
		*ret_error = (CUresult)number;
		return 0;
	}
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (!strcmp(errors[i].name, text)) {
			*ret_error = errors[i].value;
			return 0;
		}
	}
	return -EINVAL;
}
