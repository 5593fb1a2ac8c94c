/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Look-up of driver functions by name, CUDA version and kind of default
 * stream. Reads the constant table only; callable before cuInit.
 */
#include "tests/simgpu/driver/exports.h"
#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/start.h"

#include <string.h>

int sg_stub_called(const char *symbol)
{
	return sg_not_supported(symbol);
}

/* First row of that name, or sg_export_count. */
static unsigned first_row(const char *name)
{
	unsigned low = 0, high = sg_export_count;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (strcmp(sg_exports[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < sg_export_count && strcmp(sg_exports[low].name, name))
		return sg_export_count;
	return low;
}

static CUresult look_up(const char *name, void **pfn, int version,
        cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	const struct sg_export *legacy = NULL, *per_thread = NULL, *best;
	unsigned row;
	int driver_version;

	if (!name || !pfn ||
	        flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	cuDriverGetVersion(&driver_version);
	if (version > driver_version)
		return CUDA_ERROR_INVALID_VALUE;
	*pfn = NULL;
	row = first_row(name);
	*status = row == sg_export_count
	                  ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
	                  : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
	for (; row < sg_export_count && !strcmp(sg_exports[row].name, name);
	        row++) {
		if (sg_exports[row].version > version)
			continue;
		if (sg_exports[row].per_thread)
			per_thread = &sg_exports[row];
		else
			legacy = &sg_exports[row];
	}
	best = legacy;
	if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) &&
	        per_thread)
		best = per_thread;
	if (best) {
		memcpy(pfn, &best->function, sizeof(*pfn));
		*status = CU_GET_PROC_ADDRESS_SUCCESS;
	}
	return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version,
        cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	CUdriverProcAddressQueryResult ignored;
	SG_API(cuGetProcAddress_v2, SG_COST_NONE, 0);
	return look_up(symbol, pfn, version, flags, status ? status : &ignored);
}

/* The form of CUDA 11.3: no status, a missing symbol is an error. */
CUresult cuGetProcAddress(
        const char *symbol, void **pfn, int version, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult status;
	CUresult r;
	SG_API(cuGetProcAddress, SG_COST_NONE, 0);
	r = look_up(symbol, pfn, version, flags, &status);
	if (!r && status != CU_GET_PROC_ADDRESS_SUCCESS)
		r = CUDA_ERROR_NOT_FOUND;
	return r;
}

/* The driver's internal tables are not part of its public interface. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	SG_API(cuGetExportTable, SG_COST_NONE, 0);
	if (!table || !id)
		return CUDA_ERROR_INVALID_VALUE;
	*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}
