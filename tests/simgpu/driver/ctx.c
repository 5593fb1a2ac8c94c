/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Contexts: creation, the stacks of current contexts, primary contexts, and
 * their settings. A context takes context_bytes of its device's memory while
 * it is alive. Guarded by the lock, the stacks by their thread.
 */
#include "tests/simgpu/driver/ctx.h"
#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/simgpu_private.h"
#include "tests/simgpu/driver/start.h"
#include "tests/simgpu/driver/stream.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK_DEPTH 64
#define API_VERSION 3020 /* what every driver since answers */

static __thread struct {
	struct sg_ctx *ctx[STACK_DEPTH];
	unsigned depth;
} stack;

/* Guarded by the lock. */
static struct sg_ctx *contexts;
static uint64_t next_id;
static bool shim_loaded;

struct sg_ctx *sg_ctx_current(void)
{
	return stack.depth ? stack.ctx[stack.depth - 1] : NULL;
}

struct sg_ctx *sg_ctx_first(void)
{
	return contexts;
}

struct sg_ctx *sg_ctx_resolve(CUcontext handle)
{
	struct sg_ctx *ctx = (struct sg_ctx *)handle;

	if (!ctx)
		ctx = sg_ctx_current();
	return sg_handle_ok(ctx, SG_MAGIC_CTX) ? ctx : NULL;
}

CUresult sg_ctx_error(void)
{
	const struct sg_ctx *ctx = sg_ctx_current();

	if (!ctx)
		return CUDA_SUCCESS;
	if (ctx->h.magic != SG_MAGIC_CTX)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return ctx->dev->sticky;
}

/* --------------------------------------------------------- creation, death */

/* Loads a library that lies beside this one. */
static void *load_beside(const char *name)
{
	char path[PATH_MAX];
	const char *slash;
	Dl_info self;
	size_t folder;

	if (!dladdr(&next_id, &self) || !self.dli_fname)
		return NULL;
	slash = strrchr(self.dli_fname, '/');
	folder = slash ? (size_t)(slash + 1 - self.dli_fname) : 0;
	if (folder + strlen(name) >= sizeof(path))
		return NULL;
	memcpy(path, self.dli_fname, folder);
	strcpy(path + folder, name);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* PyTorch's bounds of blocks reach the simulator through a small library on
 * top of PyTorch, which says so when it is in place. The lock is dropped:
 * loading it runs code that calls back. */
static void load_shim(void)
{
	const char *why = NULL;
	unsigned depth;
	void *torch;

	if (shim_loaded)
		return;
	torch = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD);
	if (!torch)
		return;
	dlclose(torch);
	shim_loaded = true;
	depth = sg_unlock_all();
	simgpu_set_bounds(SIMGPU_BOUNDS_MISSING);
	if (!load_beside("libsimgpu_torch.so"))
		why = dlerror();
	sg_lock_again(depth);
	if (sg_block_bounds() == SIMGPU_BOUNDS_MISSING)
		sg_say("the bounds of PyTorch's blocks are missing (%s): races "
		       "reported may be none, cuDNN stays on; remedy: run "
		       "scripts/setup, or meson setup --reconfigure on the "
		       "build folder, with PyTorch in build/venv",
		        why ? why : "the line above says why");
}

/* Brings a new or released context to life. */
static CUresult activate(struct sg_ctx *ctx)
{
	static const size_t defaults[] = {
	        [CU_LIMIT_STACK_SIZE] = 1024,
	        [CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
	        [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
	        [CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
	        [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
	        [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
	        [CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED] = 0,
	};

	if (sg_physical_take(ctx->dev, ctx->dev->model.context_bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	ctx->dev->contexts++;
	ctx->h.magic = SG_MAGIC_CTX;
	ctx->h.id = ++next_id;
	memset(ctx->limits, 0, sizeof(ctx->limits));
	memcpy(ctx->limits, defaults, sizeof(defaults));
	ctx->peers = 0;
	ctx->legacy = sg_stream_new(ctx, SG_STREAM_LEGACY, 0);
	ctx->next = contexts;
	contexts = ctx;
	load_shim();
	return CUDA_SUCCESS;
}

static void deactivate(struct sg_ctx *ctx)
{
	struct sg_ctx **link = &contexts;

	sg_device_wait(ctx->dev);
	sg_code_ctx_gone(ctx);
	sg_memory_ctx_gone(ctx);
	sg_graph_memory_ctx_gone(ctx);
	sg_streams_destroy(ctx);
	ctx->legacy = NULL;
	while (*link != ctx)
		link = &(*link)->next;
	*link = ctx->next;
	sg_handle_kill(ctx);
	ctx->dev->contexts--;
	sg_physical_give(ctx->dev, ctx->dev->model.context_bytes);
}

static bool flags_ok(unsigned flags)
{
	unsigned schedule = flags & CU_CTX_SCHED_MASK;

	return !(flags & ~(unsigned)CU_CTX_FLAGS_MASK) &&
	       (schedule == 0 || schedule == CU_CTX_SCHED_SPIN ||
	               schedule == CU_CTX_SCHED_YIELD ||
	               schedule == CU_CTX_SCHED_BLOCKING_SYNC);
}

static CUresult create(CUcontext *ret_ctx, unsigned flags, CUdevice device)
{
	struct sg_device *dev = sg_device_get(device);
	struct sg_ctx *ctx;
	CUresult r;

	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!ret_ctx || !flags_ok(flags) || stack.depth == STACK_DEPTH)
		return CUDA_ERROR_INVALID_VALUE;
	ctx = sg_handle_new(sizeof(*ctx), SG_MAGIC_DEAD);
	ctx->dev = dev;
	ctx->flags = flags;
	r = activate(ctx);
	if (r)
		return r;
	stack.ctx[stack.depth++] = ctx;
	*ret_ctx = (CUcontext)ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext *ctx, unsigned flags, CUdevice device)
{
	SG_API(cuCtxCreate, SG_COST_API, SG_NEED_INIT);
	return create(ctx, flags, device);
}

CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned flags, CUdevice device)
{
	SG_API(cuCtxCreate_v2, SG_COST_API, SG_NEED_INIT);
	return create(ctx, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext *ctx, CUexecAffinityParam *params, int count,
        unsigned flags, CUdevice device)
{
	SG_API(cuCtxCreate_v3, SG_COST_API, SG_NEED_INIT);
	if (params || count)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return create(ctx, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *ctx, CUctxCreateParams *params,
        unsigned flags, CUdevice device)
{
	SG_API(cuCtxCreate_v4, SG_COST_API, SG_NEED_INIT);
	if (params && params->numExecAffinityParams)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	if (params && params->cigParams)
		return sg_not_supported("a context shared with graphics");
	return create(ctx, flags, device);
}

static CUresult destroy(CUcontext handle)
{
	struct sg_ctx *ctx = (struct sg_ctx *)handle;

	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_handle_ok(ctx, SG_MAGIC_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (ctx->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	deactivate(ctx);
	if (sg_ctx_current() == ctx)
		stack.depth--;
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	SG_API(cuCtxDestroy_v2, SG_COST_API, SG_NEED_INIT);
	return destroy(ctx);
}

CUresult cuCtxDestroy(CUcontext ctx)
{
	SG_API(cuCtxDestroy, SG_COST_API, SG_NEED_INIT);
	return destroy(ctx);
}

/* --------------------------------------------------------- current context */

static CUresult push(CUcontext handle)
{
	struct sg_ctx *ctx = (struct sg_ctx *)handle;

	if (!sg_handle_ok(ctx, SG_MAGIC_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (stack.depth == STACK_DEPTH)
		return CUDA_ERROR_INVALID_VALUE;
	stack.ctx[stack.depth++] = ctx;
	return CUDA_SUCCESS;
}

static CUresult pop(CUcontext *ret_ctx)
{
	if (!stack.depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	stack.depth--;
	if (ret_ctx)
		*ret_ctx = (CUcontext)stack.ctx[stack.depth];
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	SG_API(cuCtxPushCurrent_v2, SG_COST_NONE, SG_NEED_INIT);
	return push(ctx);
}

CUresult cuCtxPushCurrent(CUcontext ctx)
{
	SG_API(cuCtxPushCurrent, SG_COST_NONE, SG_NEED_INIT);
	return push(ctx);
}

CUresult cuCtxPopCurrent_v2(CUcontext *ctx)
{
	SG_API(cuCtxPopCurrent_v2, SG_COST_NONE, SG_NEED_INIT);
	return pop(ctx);
}

CUresult cuCtxPopCurrent(CUcontext *ctx)
{
	SG_API(cuCtxPopCurrent, SG_COST_NONE, SG_NEED_INIT);
	return pop(ctx);
}

CUresult cuCtxSetCurrent(CUcontext handle)
{
	struct sg_ctx *ctx = (struct sg_ctx *)handle;
	SG_API(cuCtxSetCurrent, SG_COST_NONE, SG_NEED_INIT);
	if (!ctx) {
		if (stack.depth)
			stack.depth--;
		return CUDA_SUCCESS;
	}
	if (!sg_handle_ok(ctx, SG_MAGIC_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!stack.depth)
		stack.depth = 1;
	stack.ctx[stack.depth - 1] = ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *ctx)
{
	SG_API(cuCtxGetCurrent, SG_COST_NONE, SG_NEED_INIT);
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	*ctx = (CUcontext)sg_ctx_current();
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	SG_API(cuCtxGetDevice, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX | SG_NO_STICKY);
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = sg_ctx_current()->dev->ordinal;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext handle)
{
	const struct sg_ctx *ctx;
	SG_API(cuCtxGetDevice_v2, SG_COST_NONE, SG_NEED_INIT);
	ctx = sg_ctx_resolve(handle);
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = ctx->dev->ordinal;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long *id)
{
	const struct sg_ctx *ctx;
	SG_API(cuCtxGetId, SG_COST_NONE, SG_NEED_INIT);
	ctx = sg_ctx_resolve(handle);
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	*id = ctx->h.id;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned *version)
{
	SG_API(cuCtxGetApiVersion, SG_COST_NONE, SG_NEED_INIT);
	if (!sg_ctx_resolve(handle))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = API_VERSION;
	return CUDA_SUCCESS;
}

static CUresult synchronize(CUcontext handle)
{
	struct sg_ctx *ctx = sg_ctx_resolve(handle);
	CUresult r;

	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	r = sg_capture_unsafe();
	if (r)
		return r;
	sg_device_wait(ctx->dev);
	return ctx->dev->sticky;
}

CUresult cuCtxSynchronize(void)
{
	SG_API(cuCtxSynchronize, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return synchronize(NULL);
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	SG_API(cuCtxSynchronize_v2, SG_COST_API, SG_NEED_INIT);
	return synchronize(ctx);
}

/* -------------------------------------------------------- primary contexts */

CUresult cuDevicePrimaryCtxRetain(CUcontext *ret_ctx, CUdevice device)
{
	struct sg_device *dev;
	CUresult r;
	SG_API(cuDevicePrimaryCtxRetain, SG_COST_API, SG_NEED_INIT);
	dev = sg_device_get(device);
	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!ret_ctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (!dev->primary) {
		dev->primary =
		        sg_handle_new(sizeof(*dev->primary), SG_MAGIC_DEAD);
		dev->primary->dev = dev;
		dev->primary->primary = true;
	}
	if (dev->primary->h.magic != SG_MAGIC_CTX) {
		dev->primary->flags = dev->primary_flags;
		r = activate(dev->primary);
		if (r)
			return r;
	}
	/* PyTorch may have come after the context. */
	load_shim();
	dev->primary_refs++;
	*ret_ctx = (CUcontext)dev->primary;
	return CUDA_SUCCESS;
}

static CUresult primary_release(CUdevice device)
{
	struct sg_device *dev = sg_device_get(device);

	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!dev->primary_refs)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (--dev->primary_refs == 0)
		deactivate(dev->primary);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	SG_API(cuDevicePrimaryCtxRelease_v2, SG_COST_API, SG_NEED_INIT);
	return primary_release(device);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	SG_API(cuDevicePrimaryCtxRelease, SG_COST_API, SG_NEED_INIT);
	return primary_release(device);
}

static CUresult primary_reset(CUdevice device)
{
	struct sg_device *dev = sg_device_get(device);

	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	dev->primary_refs = 0;
	if (dev->primary && dev->primary->h.magic == SG_MAGIC_CTX)
		deactivate(dev->primary);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	SG_API(cuDevicePrimaryCtxReset_v2, SG_COST_API, SG_NEED_INIT);
	return primary_reset(device);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
	SG_API(cuDevicePrimaryCtxReset, SG_COST_API, SG_NEED_INIT);
	return primary_reset(device);
}

static CUresult primary_set_flags(CUdevice device, unsigned flags)
{
	struct sg_device *dev = sg_device_get(device);

	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!flags_ok(flags))
		return CUDA_ERROR_INVALID_VALUE;
	dev->primary_flags = flags;
	if (dev->primary)
		dev->primary->flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
	SG_API(cuDevicePrimaryCtxSetFlags_v2, SG_COST_NONE, SG_NEED_INIT);
	return primary_set_flags(device, flags);
}

/* Before CUDA 11 the flags of an active context could not change. */
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags)
{
	const struct sg_device *dev;
	SG_API(cuDevicePrimaryCtxSetFlags, SG_COST_NONE, SG_NEED_INIT);
	dev = sg_device_get(device);
	if (dev && dev->primary_refs)
		return CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
	return primary_set_flags(device, flags);
}

CUresult cuDevicePrimaryCtxGetState(
        CUdevice device, unsigned *flags, int *active)
{
	const struct sg_device *dev;
	SG_API(cuDevicePrimaryCtxGetState, SG_COST_NONE, SG_NEED_INIT);
	dev = sg_device_get(device);
	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = dev->primary_flags;
	*active = dev->primary && dev->primary->h.magic == SG_MAGIC_CTX;
	return CUDA_SUCCESS;
}
