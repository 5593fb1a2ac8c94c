/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Launches of the simulated NCCL, through the public driver as the real one
 * makes them. The module has two kernels with empty bodies; what they do, the
 * simulated device knows by their names (simnccl_work.h). A communicator has a
 * module of its own in its context. No shared state.
 */
#include "tests/simgpu/blas/simblas.h"
#include "tests/simgpu/nccl/simnccl.h"

#include <errno.h>
#include <stdlib.h>

#define ENTRY(name)                                                            \
	"\n.visible .entry " name "(\n\t.param .u64 work,\n"                   \
	"\t.param .u64 .ptr .global .align 1 buffer\n)\n{\n\tret;\n}\n"

static const char ptx[] =
        ".version 7.8\n"
        ".target sm_52\n"
        ".address_size 64\n" ENTRY(SIMNCCL_SEND) ENTRY(SIMNCCL_RECEIVE);

#define CHANNELS 2
#define THREADS  256

int sg_nccl_load(struct sg_nccl_comm *comm)
{
	static const char *const names[SG_NCCL_KERNELS] = {
	        [SG_NCCL_K_SEND] = SIMNCCL_SEND,
	        [SG_NCCL_K_RECEIVE] = SIMNCCL_RECEIVE,
	};
	const struct sg_blas_driver *driver = sg_blas_driver();
	CUresult result;

	if (!driver)
		return -ENODEV;
	result = driver->cuCtxGetCurrent(&comm->context);
	if (result == CUDA_SUCCESS && !comm->context)
		return -ENODEV;
	if (result == CUDA_SUCCESS)
		result = driver->cuCtxGetDevice(&comm->device);
	if (result == CUDA_SUCCESS)
		result = driver->cuModuleLoadData(&comm->module, ptx);
	for (unsigned i = 0; i < SG_NCCL_KERNELS && result == CUDA_SUCCESS; i++)
		result = driver->cuModuleGetFunction(
		        &comm->functions[i], comm->module, names[i]);
	if (result == CUDA_SUCCESS)
		result =
		        driver->cuMemAlloc(&comm->buffer, SG_NCCL_BUFFER_BYTES);
	if (result == CUDA_SUCCESS)
		result = driver->cuEventCreate(
		        &comm->last, CU_EVENT_DISABLE_TIMING);
	if (result != CUDA_SUCCESS)
		sg_nccl_unload(comm);
	return sg_blas_errno(result);
}

/* Makes the communicator's context current; undone by leave(). */
static CUresult enter(const struct sg_nccl_comm *comm, CUcontext *ret_before)
{
	const struct sg_blas_driver *driver = sg_blas_driver();
	CUresult result = driver->cuCtxGetCurrent(ret_before);

	if (result == CUDA_SUCCESS && *ret_before != comm->context)
		result = driver->cuCtxSetCurrent(comm->context);
	return result;
}

static void leave(const struct sg_nccl_comm *comm, CUcontext before)
{
	if (before != comm->context)
		sg_blas_driver()->cuCtxSetCurrent(before);
}

void sg_nccl_unload(struct sg_nccl_comm *comm)
{
	const struct sg_blas_driver *driver = sg_blas_driver();
	CUcontext before;

	if (!comm->module || enter(comm, &before) != CUDA_SUCCESS)
		return;
	if (comm->last)
		driver->cuEventDestroy(comm->last);
	if (comm->buffer)
		driver->cuMemFree(comm->buffer);
	driver->cuModuleUnload(comm->module);
	sg_nccl_captured_free(comm);
	comm->module = NULL;
	comm->buffer = 0;
	leave(comm, before);
}

static CUresult issue(struct sg_nccl_task *task, enum sg_nccl_kernel kernel,
        const struct simnccl_work *work)
{
	struct sg_nccl_comm *comm = task->comm;
	uint64_t at = (uint64_t)(uintptr_t)work;
	void *params[] = {&at, &comm->buffer};

	return sg_blas_driver()->cuLaunchKernel(comm->functions[kernel],
	        CHANNELS, 1, 1, THREADS, 1, 1, 0, task->stream, params, NULL);
}

/* After what the communicator launched before. */
static CUresult launch_in_order(struct sg_nccl_task *task,
        enum sg_nccl_kernel kernel, const struct simnccl_work *work)
{
	struct sg_nccl_comm *comm = task->comm;
	const struct sg_blas_driver *driver = sg_blas_driver();
	CUresult result = CUDA_SUCCESS;

	if (comm->last_stream != task->stream)
		result = driver->cuStreamWaitEvent(
		        task->stream, comm->last, CU_EVENT_WAIT_DEFAULT);
	if (result == CUDA_SUCCESS)
		result = issue(task, kernel, work);
	if (result == CUDA_SUCCESS)
		result = driver->cuEventRecord(comm->last, task->stream);
	comm->last_stream = task->stream;
	return result;
}

static int launch(struct sg_nccl_task *task, enum sg_nccl_kernel kernel,
        const struct simnccl_work *work)
{
	CUcontext before;
	CUresult result = enter(task->comm, &before);

	if (result != CUDA_SUCCESS)
		return sg_blas_errno(result);
	result = launch_in_order(task, kernel, work);
	leave(task->comm, before);
	return sg_blas_errno(result);
}

/* @ret_captures: what is launched on the task's stream goes into a graph. */
static int look(const struct sg_nccl_task *task, bool *ret_captures)
{
	CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
	CUcontext before;
	CUresult result = enter(task->comm, &before);

	if (result != CUDA_SUCCESS)
		return sg_blas_errno(result);
	result = sg_blas_driver()->cuStreamIsCapturing(task->stream, &capture);
	leave(task->comm, before);
	*ret_captures = capture != CU_STREAM_CAPTURE_STATUS_NONE;
	return sg_blas_errno(result);
}

static int launch_captured(
        struct sg_nccl_task *task, enum sg_nccl_kernel kernel)
{
	struct sg_nccl_comm *comm = task->comm;
	const struct simnccl_work *work;
	CUcontext before;
	CUresult result;

	if (sg_nccl_room_has_beside(comm->room, comm->rank))
		return sg_blas_unsupported("nccl",
		        "a collective in a graph, of ranks that are "
		        "in one process");
	work = sg_nccl_capture(task, kernel);
	if (!work)
		return -ENOMEM;
	result = enter(comm, &before);
	if (result != CUDA_SUCCESS)
		return sg_blas_errno(result);
	result = issue(task, kernel, work);
	leave(comm, before);
	return sg_blas_errno(result);
}

struct simnccl_part *sg_nccl_ranges(
        const struct sg_nccl_part *parts, unsigned count)
{
	struct simnccl_part *made = calloc(count, sizeof(*made));

	for (unsigned i = 0; made && i < count; i++) {
		made[i] = parts[i].range;
		made[i].messages =
		        calloc(made[i].sources, sizeof(*made[i].messages));
	}
	return made;
}

void sg_nccl_ranges_free(struct simnccl_part *parts, unsigned count)
{
	for (unsigned i = 0; parts && i < count; i++) {
		for (unsigned k = 0; parts[i].messages && k < parts[i].sources;
		        k++)
			free(parts[i].messages[k].data);
		free(parts[i].messages);
	}
	free(parts);
}

int sg_nccl_task_send(struct sg_nccl_task *task)
{
	struct simnccl_work work = {
	        .magic = SIMNCCL_MAGIC, .count = task->sent};
	struct sg_nccl_comm *comm = task->comm;
	bool captures;
	int err;

	if (!task->sent)
		return 0;
	err = look(task, &captures);
	if (err || captures)
		return err ? err : launch_captured(task, SG_NCCL_K_SEND);
	work.parts = sg_nccl_ranges(task->sends, task->sent);
	err = work.parts ? launch(task, SG_NCCL_K_SEND, &work) : -ENOMEM;
	for (unsigned i = 0; i < task->sent && !err; i++)
		err = sg_nccl_send(comm->room, comm->rank,
		        task->sends[i].peers[0], work.parts[i].messages);
	sg_nccl_ranges_free(work.parts, task->sent);
	return err;
}

int sg_nccl_task_receive(struct sg_nccl_task *task)
{
	struct simnccl_work work = {.magic = SIMNCCL_MAGIC,
	        .wire_bytes = task->wire_bytes,
	        .count = task->received};
	struct sg_nccl_comm *comm = task->comm;
	bool captures;
	int err;

	if (!task->received)
		return 0;
	err = look(task, &captures);
	if (err || captures)
		return err ? err : launch_captured(task, SG_NCCL_K_RECEIVE);
	work.parts = sg_nccl_ranges(task->receives, task->received);
	if (!work.parts)
		return -ENOMEM;
	for (unsigned i = 0; i < task->received; i++)
		for (unsigned k = 0; k < work.parts[i].sources && !err; k++)
			err = sg_nccl_take(comm->room,
			        task->receives[i].peers[k], comm->rank,
			        &work.parts[i].messages[k]);
	if (!err)
		err = launch(task, SG_NCCL_K_RECEIVE, &work);
	sg_nccl_ranges_free(work.parts, task->received);
	return err;
}
