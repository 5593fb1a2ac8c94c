/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/funcs.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/list.h"
#include "agent/code.h"
#include "agent/hash.h"
#include "agent/layout.h"
#include "agent/numbers.h"
#include "agent/words.h"

/* The driver's own limit is 4 KiB of parameters, 32 KiB with CUDA 12.1. */
#define PARAMS_MAX 8192

void ts_funcs_init(struct ts_funcs *funcs, const struct ts_gpu_ops *ops)
{
	funcs->ops = ops;
	funcs->code = NULL;
	ts_mutex_init(&funcs->lock, TS_RANK_FUNCS);
	ts_map_init(&funcs->by_handle);
	funcs->all = NULL;
	funcs->count = 0;
	atomic_init(&funcs->generation, 0);
	for (size_t i = 0; i < TS_FUNCS_RECENT; i++)
		atomic_init(&funcs->recent[i], NULL);
}

static void destroy(struct ts_func *func)
{
	ts_layout_destroy(func->layout);
	free(func->name);
	free(func);
}

void ts_funcs_finish(struct ts_funcs *funcs)
{
	while (funcs->all) {
		struct ts_func *func = funcs->all;

		funcs->all = func->next;
		destroy(func);
	}
	ts_map_init(&funcs->by_handle);
	ts_mutex_finish(&funcs->lock);
}

/*
 * A launch takes a CUkernel as a CUfunction; the queries do not. What answers
 * to the first parameter as a kernel is asked as one. That there is none is
 * believed of a function only where it is no kernel.
 */
static bool is_kernel(const struct ts_gpu_ops *ops, CUfunction handle)
{
	size_t offset, bytes;
	CUresult rc = ops->func_param_info(handle, 0, &offset, &bytes);

	if (rc != CUDA_ERROR_INVALID_HANDLE && rc != CUDA_ERROR_INVALID_VALUE)
		return false;
	return ops->kernel_param_info((CUkernel)handle, 0, &offset, &bytes) ==
	               CUDA_SUCCESS ||
	       rc == CUDA_ERROR_INVALID_HANDLE;
}

static CUresult param_info(const struct ts_gpu_ops *ops, CUfunction handle,
        bool kernel, size_t index, struct ts_param *ret_param)
{
	size_t offset = 0, bytes = 0;
	CUresult rc =
	        kernel ? ops->kernel_param_info(
	                         (CUkernel)handle, index, &offset, &bytes)
	               : ops->func_param_info(handle, index, &offset, &bytes);

	ret_param->offset = (uint32_t)offset;
	ret_param->bytes = (uint32_t)bytes;
	return rc;
}

static char *name_of(const struct ts_gpu_ops *ops, CUfunction handle)
{
	const char *name = NULL;

	if (ops->func_name(&name, handle) != CUDA_SUCCESS || !name)
		if (ops->kernel_name(&name, (CUkernel)handle) != CUDA_SUCCESS)
			name = NULL;
	return strdup(name ? name : "?");
}

/*
 * The first index without a parameter is answered with INVALID_VALUE. Another
 * answer, as that of a driver without the query, leaves the layout unknown.
 */
static bool read_layout(const struct ts_gpu_ops *ops, CUfunction handle,
        struct ts_param *params, size_t *ret_count)
{
	bool kernel = is_kernel(ops, handle);
	CUresult rc = CUDA_SUCCESS;
	size_t count = 0;

	while (count < PARAMS_MAX) {
		rc = param_info(ops, handle, kernel, count, &params[count]);
		if (rc != CUDA_SUCCESS)
			break;
		count++;
	}
	*ret_count = count;
	return rc == CUDA_ERROR_INVALID_VALUE;
}

static struct ts_func *make(const struct ts_funcs *funcs, CUfunction handle)
{
	const struct ts_gpu_ops *ops = funcs->ops;
	char *name = NULL;
	struct ts_param *params = malloc(PARAMS_MAX * sizeof(*params));
	struct ts_func *func = NULL;
	size_t count = 0;
	bool known = false;

	if (!params)
		return NULL;
	if (ops->func_param_info)
		known = read_layout(ops, handle, params, &count);
	else if (funcs->code)
		known = ts_code_find(
		        funcs->code, handle, &name, params, PARAMS_MAX, &count);
	func = calloc(1, sizeof(*func) + count * sizeof(*params));
	if (!func) {
		free(name);
		goto out;
	}
	func->name = name ? name : name_of(ops, handle);
	if (!func->name) {
		free(func);
		func = NULL;
		goto out;
	}
	func->has_layout = known;
	func->writes_numbers = ts_writes_numbers(func->name);
	func->layout = ts_layout_create(func->name, params, count);
	func->param_count = count;
	func->word_count = known ? ts_words_count(params, count) : 0;
	memcpy(func->params, params, count * sizeof(*params));
	func->name_hash =
	        ts_hash(TS_HASH_START, func->name, strlen(func->name));
	func->name_hash =
	        ts_hash(func->name_hash, params, count * sizeof(*params));
out:
	free(params);
	return func;
}

static struct ts_func *find(struct ts_funcs *funcs, CUfunction handle)
{
	struct ts_map_node *node =
	        ts_map_find(&funcs->by_handle, (uint64_t)(uintptr_t)handle);

	return node ? ts_container_of(node, struct ts_func, node) : NULL;
}

/* Takes @func in, unless another thread was first: then the other's counts. */
static const struct ts_func *add(struct ts_funcs *funcs, struct ts_func *func)
{
	const struct ts_func *other;

	ts_mutex_lock(&funcs->lock);
	other = find(funcs, func->handle);
	if (!other) {
		func->number = funcs->count++;
		func->next = funcs->all;
		funcs->all = func;
		if (func->generation == atomic_load(&funcs->generation))
			ts_map_insert(&funcs->by_handle, &func->node,
			        (uint64_t)(uintptr_t)func->handle);
	}
	ts_mutex_unlock(&funcs->lock);
	if (other)
		destroy(func);
	return other ? other : func;
}

static const struct ts_func *look_up(struct ts_funcs *funcs, CUfunction handle)
{
	struct ts_func *func;
	uint64_t generation;

	ts_mutex_lock(&funcs->lock);
	func = find(funcs, handle);
	generation = atomic_load(&funcs->generation);
	ts_mutex_unlock(&funcs->lock);
	if (func)
		return func;
	func = make(funcs, handle);
	if (!func)
		return NULL;
	func->handle = handle;
	func->generation = generation;
	return add(funcs, func);
}

const struct ts_func *ts_funcs_get(struct ts_funcs *funcs, CUfunction handle)
{
	/* Handles are addresses of what the driver has allocated. */
	uint64_t hash = (uint64_t)(uintptr_t)handle * 0x9fb21c651e98df25ull;
	_Atomic(const struct ts_func *) *recent =
	        &funcs->recent[hash >> 40 & (TS_FUNCS_RECENT - 1)];
	const struct ts_func *func =
	        atomic_load_explicit(recent, memory_order_acquire);

	if (func && func->handle == handle &&
	        func->generation == atomic_load_explicit(&funcs->generation,
	                                    memory_order_acquire))
		return func;
	func = look_up(funcs, handle);
	atomic_store_explicit(recent, func, memory_order_release);
	return func;
}

void ts_funcs_forget_handles(struct ts_funcs *funcs)
{
	ts_mutex_lock(&funcs->lock);
	ts_map_init(&funcs->by_handle);
	atomic_fetch_add(&funcs->generation, 1);
	ts_mutex_unlock(&funcs->lock);
}
