/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "intercept/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "intercept/lookup.h"
#include "intercept/real_dlsym.h"

enum need { REQUIRED, OPTIONAL };

/* In every entry the driver does not fill; ignores what it is given. */
static CUresult missing(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

struct ts_driver ts_driver = {
#define TS_HOOK(symbol, name, version, type, need)                             \
	.fn_##symbol = (type)(void *)missing,
#define TS_CALL(symbol, name, version, type, need)                             \
	.fn_##symbol = (type)(void *)missing,
#include "intercept/cuda_hooks.def"
};

static const struct entry {
	const char *symbol;
	size_t offset;
	enum need need;
} entries[] = {
#define TS_HOOK(symbol, name, version, type, need)                             \
	{#symbol, offsetof(struct ts_driver, fn_##symbol), need},
#define TS_CALL(symbol, name, version, type, need)                             \
	{#symbol, offsetof(struct ts_driver, fn_##symbol), need},
#include "intercept/cuda_hooks.def"
};

static pthread_mutex_t resolve_mutex = PTHREAD_MUTEX_INITIALIZER;
/* Written once with resolve_mutex; what it says is constant then. */
static atomic_bool resolved;
static const char *missing_symbol;
static struct ts_gpu_ops gpu_ops;

bool ts_driver_has(const void *entry)
{
	void *function;

	memcpy(&function, entry, sizeof(function));
	return function != (void *)missing;
}

/* Returns the first required function that @library lacks, or NULL. */
static const char *resolve_from(void *library, struct ts_driver *driver)
{
	const char *lacking = NULL;

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		void *function = ts_real_dlsym(library, entries[i].symbol);

		if (!function && entries[i].need == REQUIRED && !lacking)
			lacking = entries[i].symbol;
		if (!function)
			function = (void *)missing;
		memcpy((char *)driver + entries[i].offset, &function,
		        sizeof(function));
	}
	return lacking;
}

/* What the runtime may call, all of it from the one table. */
static void fill_gpu_ops(void)
{
	gpu_ops = (struct ts_gpu_ops){
#define TS_GPU_OP(member, symbol, type) .member = ts_driver.fn_##symbol,
#include "runtime/gpu_ops.def"
	};
	/* Before CUDA 12.4: the agent then reads the code itself. */
	if (!ts_driver_has(&ts_driver.fn_cuFuncGetParamInfo))
		gpu_ops.func_param_info = NULL;
}

int ts_driver_state(const char **ret_missing)
{
	*ret_missing = NULL;
	if (!atomic_load(&resolved))
		return -ENOENT;
	*ret_missing = missing_symbol;
	return missing_symbol ? -ENOSYS : 0;
}

/*
 * The loader's lock is held by whoever runs constructors, which may look up
 * functions here: it is waited for without a lock. Two threads may both fill
 * a table; the first one's counts.
 */
int ts_driver_resolve(bool load, const char **ret_missing)
{
	struct ts_driver driver;
	const char *lacking;
	void *library;

	if (atomic_load(&resolved))
		return ts_driver_state(ret_missing);
	/* The handle is kept: the functions must not go away. */
	library = dlopen("libcuda.so.1", RTLD_NOW | (load ? 0 : RTLD_NOLOAD));
	if (!library)
		return ts_driver_state(ret_missing);
	lacking = resolve_from(library, &driver);
	pthread_mutex_lock(&resolve_mutex);
	if (!atomic_load(&resolved)) {
		ts_driver = driver;
		missing_symbol = lacking;
		ts_lookup_index();
		fill_gpu_ops();
		atomic_store(&resolved, true);
	}
	pthread_mutex_unlock(&resolve_mutex);
	return ts_driver_state(ret_missing);
}

const struct ts_gpu_ops *ts_driver_gpu_ops(void)
{
	return &gpu_ops;
}
