/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "intercept/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
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
static bool resolved;              /* Guarded by resolve_mutex. */
static const char *missing_symbol; /* Guarded by resolve_mutex. */
static struct ts_gpu_ops gpu_ops;

bool ts_driver_has(const void *entry)
{
	void *function;

	memcpy(&function, entry, sizeof(function));
	return function != (void *)missing;
}

static void resolve_from(void *library)
{
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		void *function = ts_real_dlsym(library, entries[i].symbol);

		if (function) {
			memcpy((char *)&ts_driver + entries[i].offset,
			        &function, sizeof(function));
		} else if (entries[i].need == REQUIRED && !missing_symbol) {
			missing_symbol = entries[i].symbol;
		}
	}
}

/* What the runtime may call, all of it from the one table. */
static void fill_gpu_ops(void)
{
	gpu_ops = (struct ts_gpu_ops){
#define TS_GPU_OP(member, symbol, type) .member = ts_driver.fn_##symbol,
#include "runtime/gpu_ops.def"
	};
}

int ts_driver_resolve(bool load, const char **ret_missing)
{
	void *library;
	int rc = 0;

	pthread_mutex_lock(&resolve_mutex);
	if (resolved)
		goto out;
	/* The handle is kept: the functions must not go away. */
	library = dlopen("libcuda.so.1", RTLD_NOW | (load ? 0 : RTLD_NOLOAD));
	if (!library) {
		rc = -ENOENT;
		goto out;
	}
	resolve_from(library);
	ts_lookup_index();
	fill_gpu_ops();
	resolved = true;
out:
	*ret_missing = missing_symbol;
	if (missing_symbol)
		rc = -ENOSYS;
	pthread_mutex_unlock(&resolve_mutex);
	return rc;
}

const struct ts_gpu_ops *ts_driver_gpu_ops(void)
{
	return &gpu_ops;
}
