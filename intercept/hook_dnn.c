/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cuDNN: what a plan is executed on. The variant pack names every operand, and
 * the work space, which is scratch; no kernel of the plan touches anything
 * else. Which operands are written stands in descriptors that are gone by then
 * and is guessed as for any launch. Enums are ints here and structs pointers,
 * so that no header of the library's is needed.
 */
#include <stdint.h>
#include <stdlib.h>

#include "agent/agent.h"
#include "agent/base/log.h"
#include "agent/declared.h"
#include "intercept/guard.h"
#include "intercept/library.h"
#include "intercept/real_dlsym.h"

/* cudnnStatus_t of version 9, cudnnBackendAttributeName_t and so on. */
#define STATUS_NOT_SUPPORTED 3000
#define STATUS_SUCCESS       0
#define PACK_DATA_POINTERS   1001
#define PACK_WORKSPACE       1003
#define TYPE_VOID_PTR        6

typedef int execute(void *handle, void *plan, void *pack);
typedef int get_attribute(const void *descriptor, int name, int type,
        int64_t wanted, int64_t *ret_count, void *items);

extern execute ts_hook_execute __asm__("cudnnBackendExecute")
        __attribute__((visibility("default")));

static struct ts_operand *read_pack(
        get_attribute *get, const void *pack, size_t *ret_count)
{
	int64_t count = 0, given = 0;
	void **addresses, *workspace = NULL;
	struct ts_operand *operands;

	if (get(pack, PACK_DATA_POINTERS, TYPE_VOID_PTR, 0, &count, NULL) ||
	        count <= 0)
		return NULL;
	addresses = calloc((size_t)count, sizeof(*addresses));
	operands = calloc((size_t)count + 1, sizeof(*operands));
	if (!addresses || !operands ||
	        get(pack, PACK_DATA_POINTERS, TYPE_VOID_PTR, count, &given,
	                addresses) ||
	        given != count) {
		free(addresses);
		free(operands);
		return NULL;
	}
	for (int64_t i = 0; i < count; i++)
		operands[i].address = (uint64_t)(uintptr_t)addresses[i];
	free(addresses);
	*ret_count = (size_t)count;
	if (!get(pack, PACK_WORKSPACE, TYPE_VOID_PTR, 1, &given, &workspace) &&
	        given == 1 && workspace) {
		operands[(*ret_count)++].address =
		        (uint64_t)(uintptr_t)workspace;
		ts_agent_scratch((CUdeviceptr)(uintptr_t)workspace);
	}
	for (size_t i = 0; i < *ret_count; i++)
		operands[i].access = TS_ACCESS_READWRITE;
	return operands;
}

/* NULL where the pack does not tell: operands are guessed then. */
static struct ts_operand *operands_of(
        const void *pack, const void *caller, size_t *ret_count)
{
	get_attribute *get = (get_attribute *)ts_next_for(
	        caller, "cudnnBackendGetAttribute");
	struct ts_operand *operands;

	if (!get || !ts_enter())
		return NULL;
	operands = read_pack(get, pack, ret_count);
	if (!operands)
		ts_log(TS_LOG_DEBUG,
		        "cudnnBackendExecute: operands are not told");
	ts_leave();
	return operands;
}

int ts_hook_execute(void *handle, void *plan, void *pack)
{
	const void *caller = __builtin_return_address(0);
	execute *real = (execute *)ts_library_real(
	        TS_LIBRARY_cudnnBackendExecute, caller);
	struct ts_declaration declaration = {.complete = true, .unseen = true};
	struct ts_operand *operands;
	int status;

	if (!real)
		return STATUS_NOT_SUPPORTED;
	operands = operands_of(pack, caller, &declaration.count);
	if (!operands)
		return real(handle, plan, pack);
	declaration.operands = operands;
	ts_declared_begin(&declaration);
	status = real(handle, plan, pack);
	ts_declared_end();
	free(operands);
	return status;
}
