/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Faults on request: SIMGPU_FAIL="symbol:N[:error]", a list separated by
 * commas, makes the Nth call (from 1) of an exported symbol return an error
 * (CUDA_ERROR_OUT_OF_MEMORY by default) without doing anything. Read at start,
 * consulted by sg_enter, under the lock.
 */
#include "tests/simgpu/driver/exports.h"
#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/start.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fault {
	char *symbol;
	uint64_t nth;
	CUresult error;
};
static struct fault *faults;
static int fault_count;

/* fault_slot of an api without faults */
#define NO_FAULT -1

static bool exported(const char *symbol)
{
	for (unsigned i = 0; i < sg_export_count; i++) {
		if (!strcmp(sg_exports[i].symbol, symbol))
			return true;
	}
	return false;
}

/* What is wrong with item, or NULL. */
static const char *add_fault(char *item)
{
	struct fault fault = {.error = CUDA_ERROR_OUT_OF_MEMORY};
	char *symbol = strsep(&item, ":"), *nth = strsep(&item, ":");

	if (!nth || sg_parse_number(nth, &fault.nth) || !fault.nth)
		return "want symbol:N[:error], a list separated by commas";
	if (!exported(symbol))
		return "the driver exports no such symbol";
	if (item && (sg_error_parse(item, &fault.error) ||
	                    fault.error == CUDA_SUCCESS))
		return "no such error";
	fault.symbol = sg_xstrdup(symbol);
	faults = sg_xrealloc(faults, (fault_count + 1) * sizeof(*faults));
	faults[fault_count++] = fault;
	return NULL;
}

int sg_fault_read(const char *list)
{
	char *copy = sg_xstrdup(list), *rest = copy, *item;

	while ((item = strsep(&rest, ","))) {
		char *whole = sg_xstrdup(item);
		const char *wrong = add_fault(item + strspn(item, " "));

		if (wrong)
			sg_say("SIMGPU_FAIL=\"%s\": \"%s\": %s", list, whole,
			        wrong);
		free(whole);
		if (wrong)
			break;
	}
	free(copy);
	return item ? -EINVAL : 0;
}

CUresult sg_fault_check(struct sg_api *api)
{
	if (api->fault_slot == NO_FAULT)
		return CUDA_SUCCESS;
	if (api->fault_slot == 0) {
		api->fault_slot = NO_FAULT;
		for (int i = fault_count; i > 0; i--) {
			if (!strcmp(faults[i - 1].symbol, api->name))
				api->fault_slot = i;
		}
	}
	for (int i = api->fault_slot; i > 0 && i <= fault_count; i++) {
		if (!strcmp(faults[i - 1].symbol, api->name) &&
		        faults[i - 1].nth == api->calls)
			return faults[i - 1].error;
	}
	return CUDA_SUCCESS;
}
