/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the wrappers call: one agent for the process, between ts_agent_start()
 * and ts_agent_stop(). Functions run on the program's threads, inside one of
 * its CUDA calls; they return what the program shall get.
 */
#ifndef TS_AGENT_H
#define TS_AGENT_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/op.h"
#include "runtime/ops.h"

enum ts_agent_start_result {
	TS_AGENT_ACTIVE,
	TS_AGENT_OFF,     /* told to be, or a bad setting: says so in a line */
	TS_AGENT_REFUSED, /* a bad setting and TAPESWAP_STRICT=1 */
};

/* Reads the settings. Makes no CUDA call. @ops must stay. */
enum ts_agent_start_result ts_agent_start(const struct ts_gpu_ops *ops);

/* Writes the exit line and the files. Makes no CUDA call. Once only. */
void ts_agent_stop(void);

/*
 * An op is about to be issued: finds its blocks and makes them resident.
 * Anything but CUDA_SUCCESS goes to the program, and the op is not issued.
 * ts_agent_op_end() follows in either case with the op's result.
 */
CUresult ts_agent_op_begin(struct ts_op *op);
void ts_agent_op_end(struct ts_op *op, CUresult result);

/* Notes for an op that it touches memory; see ts_op_touch(). */
void ts_agent_touch(struct ts_op *op, CUdeviceptr address, size_t bytes,
        enum ts_access access);

/*
 * What @op touches goes into a graph and stays resident for good. It is not
 * issued, and finished here.
 */
CUresult ts_agent_pin_op(struct ts_op *op);

/*
 * Host memory goes to @dst on the device: addresses in it pin what they point
 * to. @source that is no host memory is left alone. What cannot be pinned gives
 * the result the copy must have.
 */
CUresult ts_agent_scan_host(CUdeviceptr dst, const void *source, size_t bytes);

/*
 * A library will follow the addresses in @bytes of device memory, as they are
 * once @stream has come so far: what they point to is pinned. Waits for the
 * stream. False where the table cannot be read, as while the stream captures,
 * or what it names cannot stay: any block may be meant then.
 */
bool ts_agent_scan_device(
        CUdeviceptr table, size_t bytes, ts_stream_key stream);

/* What @address points into is known outside: stays resident till freed. */
CUresult ts_agent_pin(CUdeviceptr address);

/* The bytes are registered with a network card: they stay, used or not. */
CUresult ts_agent_pin_registered(CUdeviceptr address, size_t bytes);

/* Does @address lie in memory whose pages come and go? */
bool ts_agent_moves(CUdeviceptr address);

/* A library works in the block at @address: its content is no value. */
void ts_agent_scratch(CUdeviceptr address);

/*
 * An allocation of @bytes. True where the agent has placed it or refused it,
 * with the answer in @ret_result; false where the driver is to be asked, and
 * ts_agent_allocated() follows.
 */
bool ts_agent_alloc(
        size_t bytes, CUdeviceptr *ret_address, CUresult *ret_result);
void ts_agent_allocated(CUdeviceptr address, size_t bytes);

/* The same for a free; a false answer leaves the call to the driver. */
bool ts_agent_free(CUdeviceptr address, CUresult *ret_result);

/*
 * Memory the agent does not place is about to be taken (@bytes, 0 where the
 * size is not known), or was taken or given back, somewhere on the current
 * device. While something captures nothing is unmapped for what was taken: that
 * is put off, and whoever may have ended the last capture, as the driver sees
 * it, calls the third.
 */
CUresult ts_agent_before_unmanaged(size_t bytes, const char *what);
void ts_agent_after_unmanaged(void);
void ts_agent_after_captures(void);

/*
 * The driver may load code next, or instantiate a graph. How much memory it
 * takes for that is not told: there is room for the least piece that it takes.
 * Not beside a plan, whose chunks would have to go for what mostly comes to
 * nothing, nor beside a capture. What it took is made room for after it.
 */
void ts_agent_before_code(void);

/*
 * An allocation from a stream-ordered pool (NULL: the current device's) is
 * about to be made: what the pool holds already takes no more memory. Memory
 * that goes back to a pool asks for nothing; it may help the next one.
 */
CUresult ts_agent_before_pool(
        CUmemoryPool pool, size_t bytes, const char *what);
void ts_agent_room_changed(void);

/* A placed allocation around @address; false where there is none. */
bool ts_agent_find(CUdeviceptr address, struct ts_allocation *ret_allocation);

/* True where @address is in a range of the agent's, allocated or not. */
bool ts_agent_placed(CUdeviceptr address);

/* cuMemGetInfo: false leaves the driver's own answer. */
bool ts_agent_mem_info(size_t *ret_free, size_t *ret_total);

/*
 * The same of @device, for any thread: false too where the process holds no
 * memory there.
 */
bool ts_agent_device_mem_info(int device, size_t *ret_free, size_t *ret_total);

/* cuDeviceTotalMem: the limit of a device with @total_bytes. */
size_t ts_agent_total_mem(size_t total_bytes);

/* cuIpcGetMemHandle: true where it must be refused (the line is said). */
bool ts_agent_refuses_ipc(CUdeviceptr address);

/* The framework's allocator reports a block of @device. */
void ts_agent_report_block(uint64_t address, int64_t bytes, int device);

#define TS_AGENT_DEVICES 16

/* How far each device's ops had come when the program began to wait. */
struct ts_sync {
	uint64_t numbers[TS_AGENT_DEVICES];
};

/* A stream (0: the whole context) is waited for; end after success only. */
void ts_agent_sync_begin(struct ts_sync *sync);
void ts_agent_sync_end(ts_stream_key stream, const struct ts_sync *sync);
void ts_agent_stream_destroyed(ts_stream_key stream);

/*
 * The program is about to use CUPTI, which has one user at a time. May come
 * before the start.
 */
void ts_agent_yield_cupti(void);

/* A capture is about to begin. */
void ts_agent_before_capture(void);

/* A capture has begun on @stream, or @result was answered to its end. */
void ts_agent_capture_begins(ts_stream_key stream);
void ts_agent_capture_ends(ts_stream_key stream, CUresult result);

/*
 * A graph or an instance of one was made, is about to end, was ended: with the
 * last of them what graphs used may be moved again. After an instance was made
 * the second call follows, for the memory that it took.
 */
void ts_agent_graph_made(const void *handle);
void ts_agent_instance_made(void);
void ts_agent_graph_ends(const void *handle);
void ts_agent_graph_gone(void);

/* A context goes: what was placed in it goes with it, nothing else. */
void ts_agent_context_gone(CUcontext context);

/* The current context may, or may no longer, reach the memory of @peer's. */
void ts_agent_peer_access(CUcontext peer, bool enable);

/*
 * The primary context of @device is @context; it may go with the release or
 * reset that follows; it is gone with it.
 */
void ts_agent_primary_retained(CUdevice device, CUcontext context);
void ts_agent_primary_release(CUdevice device);
void ts_agent_primary_gone(CUdevice device);

/* A training step ends here and the next one begins. */
void ts_agent_step(void);

/* An NVTX range of that name begins: true where it is a step's. */
bool ts_agent_range(const char *name);

/* Code was unloaded: function handles may come again. */
void ts_agent_code_unloaded(void);

/*
 * What a driver that does not tell the parameters of kernels makes it necessary
 * to know (code.h); elsewhere these do nothing. A module or library was made of
 * @image, or of the file at @path; it goes.
 */
void ts_agent_code_loaded(const void *handle, const void *image);
void ts_agent_code_file(const void *handle, const char *path);
void ts_agent_code_gone(const void *handle);
/* A function or kernel is that of this name; a module is a library's; ... */
void ts_agent_code_named(
        const void *function, const void *owner, const char *name);
void ts_agent_code_shared(const void *module, const void *library);
/* ... a function is that of a kernel. */
void ts_agent_code_same(const void *function, const void *kernel);

#endif
