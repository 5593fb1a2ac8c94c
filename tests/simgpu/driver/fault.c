/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Faults on request: SIMGPU_FAIL="symbol:N[:error]", a list separated by
 * commas, makes the Nth call (from 1) of an exported symbol return an error
 * (CUDA_ERROR_OUT_OF_MEMORY by default) without doing anything. Read at start,
 * consulted by sg_enter, under the lock.
 */
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

static int add_fault(char *item)
{
	struct fault fault = {.error = CUDA_ERROR_OUT_OF_MEMORY};
	char *save, *end;
	char *symbol = strtok_r(item, ":", &save);
	char *nth = strtok_r(NULL, ":", &save);
	char *error = strtok_r(NULL, ":", &save);

	if (!symbol || !nth)
		return -EINVAL;
	fault.nth = strtoull(nth, &end, 10);
	if (*end || !fault.nth)
		return -EINVAL;
	if (error && sg_error_parse(error, &fault.error))
		return -EINVAL;
	fault.symbol = sg_xstrdup(symbol);
	faults = sg_xrealloc(faults, (fault_count + 1) * sizeof(*faults));
	faults[fault_count++] = fault;
	return 0;
}

int sg_fault_read(const char *list)
{
	char *copy = sg_xstrdup(list), *save;
	int err = 0;

	for (char *item = strtok_r(copy, ", ", &save); item && !err;
	        item = strtok_r(NULL, ", ", &save))
		err = add_fault(item);
	if (err)
		sg_say("SIMGPU_FAIL=\"%s\": want symbol:N[:error], a list "
		       "separated by commas",
		        list);
	free(copy);
	return err;
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
