/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The simulated driver's shared state and the calls its parts make to each
 * other. One recursive lock (sg_lock) guards everything reachable from here;
 * SG_API takes it on entry of every exported function and drops it on return,
 * so that host calls are ordered by arrival. Functions below expect it held
 * unless they say otherwise.
 *
 * Who owns what:
 *   control  init.c settings.c model.c device.c ctx.c stream.c event.c
 *            engine.c (virtual time) capture.c graph.c procaddr.c report.c
 *            fault.c clocks.c races.c mutate.c taint.c
 *   memory   vaspace.c chunk.c alloc.c vmm.c pool.c host.c pointer.c copy.c
 *            memset.c block.c content.c
 *   code     fatbin.c cubin.c ptx.c module.c library.c function.c occupancy.c
 *            launch.c kernels.def kernels.c cost.c
 */
#ifndef SG_H
#define SG_H

/* Old and new versions of every function are declared, no macro renames. */
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
/* Everything cuda.h declares is exported. */
#define __CUDA_API_PUSH_VISIBILITY_DEFAULT
#include <cuda.h>

#include "tests/simgpu/driver/tags.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/simgpu/driver/simgpu_private.h"

#define SG_EXPORT     __attribute__((visibility("default")))
#define SG_PAGE_BYTES ((uint64_t)2 << 20) /* granularity of physical memory */

/* ---------------------------------------------------------------- settings */

/* All SIMGPU_* variables, read once; the table stands in settings.c. */
/*
 * A factor on a speed, from an operation on; or from a launch of kernels with
 * `part` in their names on, then of no kernels but these.
 */
struct sg_slow {
	double factor; /* 0 to 1 */
	/* Sequence number of the first op, or of those launches. */
	uint64_t from;
	const char *part;  /* or NULL */
	uint64_t launches; /* of those, so far */
};
struct sg_settings {
	const char *device;       /* SIMGPU_DEVICE: model name or JSON path */
	unsigned device_count;    /* SIMGPU_DEVICES */
	const char *report;       /* SIMGPU_REPORT: file, %p is the pid */
	const char *fail;         /* SIMGPU_FAIL: symbol:N[:error], list */
	const char *unmap_sync;   /* SIMGPU_UNMAP_SYNC: model, none, device */
	const char *content;      /* SIMGPU_CONTENT: none, tags, exact */
	bool check_ranges;        /* SIMGPU_CHECK_RANGES: of exact kernels */
	const char *trace;        /* SIMGPU_TRACE: file of launches */
	const char *unstable;     /* SIMGPU_UNSTABLE: a part of names */
	uint64_t unstable_from;   /* launches of such kernels before */
	bool verbose;             /* SIMGPU_VERBOSE: name unknown kernels */
	bool launch_blocking;     /* CUDA_LAUNCH_BLOCKING */
	const char *cupti;        /* SIMGPU_CUPTI: free, taken; for libcupti */
	bool races;               /* SIMGPU_RACES */
	struct sg_slow slow_link; /* SIMGPU_SLOW_LINK */
	struct sg_slow slow_kernel; /* SIMGPU_SLOW_KERNEL */
	CUresult sticky_error;      /* SIMGPU_STICKY_ERROR */
	uint64_t sticky_error_from; /* sequence number of the first op */
	uint64_t oom_bytes;         /* SIMGPU_OOM_BYTES; 0: the model's */
	uint64_t graph_node_bytes;  /* SIMGPU_GRAPH_NODE_BYTES */
	uint64_t random_address;    /* SIMGPU_RANDOM_ADDRESS; 0: none */
	uint64_t found_inf;         /* SIMGPU_FOUND_INF; 0: none */
	const char *mutate;         /* SIMGPU_MUTATE: kind:k, list */
};
extern struct sg_settings sg_settings;

/* ------------------------------------------------------------ device model */

/* Rates of one numeric type on one device. */
enum sg_dtype {
	SG_F32,
	SG_TF32,
	SG_F16,
	SG_BF16,
	SG_F64,
	SG_I8,
	SG_FP8,
	SG_DTYPE_COUNT,
};

/* Read from models/NAME.json (schemas/device-model.schema.json). */
struct sg_model {
	char name[64];        /* a100-80g-pcie4 */
	char device_name[96]; /* NVIDIA A100-SXM4-80GB */
	int sm_major, sm_minor;
	int sm_count, clock_khz, memory_clock_khz, bus_width_bits;
	int l2_bytes, shared_per_sm_bytes, shared_per_block_optin_bytes;
	int regs_per_sm, threads_per_sm, blocks_per_sm;
	uint64_t memory_bytes, context_bytes;
	double flops[SG_DTYPE_COUNT]; /* dense peak per second */
	double gemm_efficiency;       /* share of the peak a GEMM sustains */
	double flash_forward_efficiency, flash_backward_efficiency;
	double memory_bytes_per_s, memory_efficiency;
	double h2d_bytes_per_s, d2h_bytes_per_s;           /* one way alone */
	double h2d_both_bytes_per_s, d2h_both_bytes_per_s; /* both at once */
	uint64_t copy_latency_ns;   /* added to each link copy */
	uint64_t kernel_latency_ns; /* added to each kernel */
	uint64_t launch_host_ns, copy_host_ns, event_host_ns, api_host_ns;
	uint64_t vmm_create_ns, vmm_map_ns, vmm_access_ns, vmm_unmap_ns;
	uint64_t vmm_release_ns, vmm_reserve_ns;
	uint64_t malloc_ns, free_ns, host_alloc_ns_per_gib;
	bool unmap_sync;  /* unmapping waits for the device to be idle */
	bool peer_access; /* devices of this model reach each other's memory */
};

/* ----------------------------------------------------- objects and handles */

/* Every handle given out begins with this; destroyed ones are kept, dead. */
enum sg_magic {
	SG_MAGIC_CTX = 0x53474358,
	SG_MAGIC_STREAM,
	SG_MAGIC_EVENT,
	SG_MAGIC_MODULE,
	SG_MAGIC_FUNCTION,
	SG_MAGIC_LIBRARY,
	SG_MAGIC_KERNEL,
	SG_MAGIC_GRAPH,
	SG_MAGIC_GRAPH_NODE,
	SG_MAGIC_GRAPH_EXEC,
	SG_MAGIC_USER_OBJECT,
	SG_MAGIC_POOL,
	SG_MAGIC_DEAD = 0x44454144,
};
struct sg_handle {
	uint32_t magic;
	uint32_t was; /* the magic before destruction */
	uint64_t id;  /* counts from 1 per kind, in order of creation */
};
/* A zeroed object of bytes that begins with a struct sg_handle; never freed and
 * known to the driver for good, so that leak checkers find no fault. */
void *sg_handle_new(size_t bytes, enum sg_magic magic);
/* The object is destroyed: its handle is dead. */
void sg_handle_kill(void *p);
/* True if p is a live handle of that kind; records a memory error ("use of
 * destroyed stream") if it was one. NULL is false. */
bool sg_handle_ok(const void *p, enum sg_magic magic);

/* ------------------------------------------------------------ device state */

enum sg_engine_id {
	SG_ENGINE_COMPUTE,
	SG_ENGINE_D2H,
	SG_ENGINE_H2D,
	SG_ENGINE_COUNT,
	SG_ENGINE_NONE = SG_ENGINE_COUNT, /* takes no time */
};

struct sg_counters {
	uint64_t launches, copies, memsets, bytes_h2d, bytes_d2h, bytes_d2d;
	uint64_t locked_copies; /* between a device and page-locked memory */
	uint64_t vmm_calls, memory_errors, unknown_kernels, unknown_launches;
	uint64_t api_calls;
	uint64_t races, possible_races, event_waits;
};

struct sg_device {
	int ordinal;  /* as the process counts them */
	int physical; /* as the machine does */
	struct sg_model model;
	unsigned char uuid[16];
	/* control */
	struct sg_ctx *primary;
	unsigned primary_refs, primary_flags;
	unsigned contexts; /* alive; each takes context_bytes */
	CUresult sticky;   /* CUDA_SUCCESS, or what every call returns */
	struct sg_op *unfinished, *unfinished_tail; /* in order of arrival */
	uint64_t last_end_ns;                       /* latest end of an op */
	struct sg_engine *engines;
	uint64_t busy_ns[SG_ENGINE_COUNT];
	struct sg_counters count;
	/* memory */
	uint64_t physical_bytes, physical_peak_bytes;   /* with contexts */
	uint64_t allocated_bytes, allocated_peak_bytes; /* driver allocations */
};
/* Those the process sees come first. */
extern struct sg_device *sg_devices;
extern unsigned sg_device_count;

struct sg_ctx {
	struct sg_handle h;
	struct sg_device *dev;
	struct sg_stream *legacy; /* the null stream */
	unsigned flags;
	bool primary;
	size_t limits[16];
	CUfunc_cache cache_config;
	uint64_t peers; /* ordinals of the devices with peer access, as bits */
	uint64_t graph_bytes;      /* of instances of graphs */
	struct sg_stream *streams; /* alive, the null stream included */
	unsigned blocking_streams; /* of them, that the null stream waits for */
	struct sg_ctx *next;
};
/* The calling thread's current context, or NULL. */
struct sg_ctx *sg_ctx_current(void);

/* ------------------------------------------------------ entry of API calls */

/* What a call costs the host in virtual time. */
enum sg_cost {
	SG_COST_NONE,
	SG_COST_API,
	SG_COST_LAUNCH,
	SG_COST_COPY,
	SG_COST_EVENT,
};
/* Needs of a call, or'ed into flags. */
enum {
	SG_NEED_INIT = 1, /* CUDA_ERROR_NOT_INITIALIZED before cuInit */
	SG_NEED_CTX = 2,  /* CUDA_ERROR_INVALID_CONTEXT without one */
	SG_NO_STICKY = 4, /* answers even after a sticky error */
};
struct sg_guard {
	bool locked;
};
struct sg_api {
	const char *name;
	enum sg_cost cost;
	unsigned flags;
	int fault_slot; /* 0: not yet looked up (fault.c) */
	uint64_t calls;
	bool listed; /* in the list the report reads */
	struct sg_api *next;
};
/* Takes the lock, starts the driver if needed, counts the call, lets
 * SIMGPU_FAIL answer, checks needs and sticky errors, charges the host. */
CUresult sg_enter(struct sg_guard *guard, struct sg_api *api);
void sg_leave(struct sg_guard *guard);
/* First statement of every exported function:
 *	SG_API(cuMemAlloc_v2, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX); */
#define SG_API(fn, cost_, flags_)                                              \
	static struct sg_api sg_api_ = {                                       \
	        .name = #fn, .cost = cost_, .flags = flags_};                  \
	struct sg_guard sg_guard_ __attribute__((cleanup(sg_leave))) = {0};    \
	{                                                                      \
		CUresult sg_r_ = sg_enter(&sg_guard_, &sg_api_);               \
		if (sg_r_ != CUDA_SUCCESS)                                     \
			return sg_r_;                                          \
	}
void sg_lock(void);
void sg_unlock(void);
/* Lets go of the lock however often this thread holds it, and takes it as
 * often again: for waits and for code of the program's. */
unsigned sg_unlock_all(void);
void sg_lock_again(unsigned depth);
/* CUDA_ERROR_NOT_SUPPORTED; names the feature once on stderr. */
CUresult sg_not_supported(const char *what);
/* One line on stderr, prefixed "simgpu: ". */
void sg_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A defect of the program: counted in memory_errors, kept for the report
 * (first 100 with their text). */
void sg_memory_error(struct sg_device *dev, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
/* The same, and the device's error from now on (700 and the like). */
void sg_sticky_error(struct sg_device *dev, CUresult error, const char *fmt,
        ...) __attribute__((format(printf, 3, 4)));

/* ------------------------------------------------ virtual time and streams */

/*
 * An event-driven simulation, advanced lazily. Host calls enqueue ops with the
 * host's virtual time as their earliest start; the engines advance only up to
 * the host's clock (queries) or to the end of an op (synchronisation), so both
 * link directions slow each other exactly as long as they overlap. Deps form a
 * DAG: previous op of the stream, legacy-stream rules, event waits.
 */
enum sg_op_kind {
	SG_OP_KERNEL,
	SG_OP_COPY_H2D,
	SG_OP_COPY_D2H,
	SG_OP_COPY_D2D, /* on the compute engine at memory bandwidth / 2 */
	SG_OP_COPY_H2H,
	SG_OP_MEMSET,
	SG_OP_HOST_FN,
	SG_OP_MARKER, /* event record, join; no time */
};

/* One range of device memory an op touches. */
struct sg_access {
	uint64_t va, bytes;
	bool read, write;
	bool certain;            /* declared by the kernel table, not guessed */
	bool addresses;          /* a table: what lies where decides nothing */
	uint8_t type;            /* enum sg_piece_type of its elements */
	uint8_t element_bytes;   /* 0: not known */
	struct sg_values values; /* of what is written */
};

/* What a kernel does that its integers follow from (content_values.c). */
enum sg_meaning {
	SG_MEANS_NOTHING,
	SG_MEANS_FILL,   /* writes value */
	SG_MEANS_EQUAL,  /* compares with value, or two tensors */
	SG_MEANS_ORDER,  /* the same for < and the like */
	SG_MEANS_NOT,    /* of a truth value */
	SG_MEANS_ADD,    /* adds value */
	SG_MEANS_DIVIDE, /* by value, rounding */
	SG_MEANS_REMAINDER,
	SG_MEANS_SCALE, /* updates a gradient scaler's factor */
	SG_MEANS_PROOF, /* looks at memory; kernel_proof.h */
};
struct sg_action {
	enum sg_meaning meaning;
	int operation;   /* PyTorch's number of the comparison */
	bool value_left; /* value stands left of the operator */
	uint8_t bytes;   /* of value; 0: there is none */
	uint64_t value;
};

struct sg_op {
	uint64_t seq; /* order of arrival, from 1 */
	uint64_t correlation;
	uint64_t external[SIMGPU_EXTERNAL_KINDS]; /* simgpu_set_external() */
	int refs;
	enum sg_op_kind kind;
	enum sg_engine_id engine;
	struct sg_device *dev;
	struct sg_stream *stream;
	uint64_t issue_ns, start_ns, end_ns; /* end valid once done */
	uint64_t fixed_ns;                   /* latency, or a kernel's time */
	uint64_t bytes;                      /* of a copy */
	double remaining;                    /* engine.c: bytes left to move */
	uint64_t ready_ns;                   /* deps done and issued */
	uint64_t host_gate;                  /* host functions it comes after */
	unsigned pending;                    /* deps not yet done */
	bool queued, running, done;
	struct sg_op **dependents;
	unsigned n_dependents, cap_dependents;
	struct sg_access *accesses;
	unsigned n_accesses, cap_accesses;
	struct sg_op *previous, *next; /* unfinished ops of the device */
	const char *name;              /* kernel's mangled name, or NULL */
	uint32_t grid[3], block[3];    /* of a kernel */
	struct simgpu_details details; /* for profilers */
	uint64_t scalars;              /* hash of a kernel's declared ones */
	bool nondeterministic;         /* a kernel's result varies */
	struct sg_action action;
	CUhostFn host_fn;
	void *host_arg;
	void *clock; /* clocks.c; kept when the op is used again */
};

#define SG_STREAM_ATTRIBUTES 16
struct sg_stream {
	struct sg_handle h;
	struct sg_ctx *ctx;
	bool legacy, per_thread, non_blocking;
	bool of_graph; /* a branch of an instantiated graph */
	int priority;
	struct sg_op *last;   /* tail; ref held */
	struct sg_op **waits; /* event waits the next op depends on; refs */
	unsigned n_waits, cap_waits;
	unsigned outstanding;          /* ops not yet done */
	unsigned clock_component;      /* clocks.c, from 1; 0: none yet */
	struct sg_capture *capture;    /* non-NULL while capturing */
	struct sg_node **capture_deps; /* what the next node depends on */
	unsigned n_capture_deps, cap_capture_deps;
	CUstreamAttrValue attributes[SG_STREAM_ATTRIBUTES]; /* as set */
	struct sg_stream *next;
};

struct sg_event {
	struct sg_handle h;
	struct sg_ctx *ctx;
	unsigned flags;
	struct sg_op *op; /* the marker last recorded; ref held */
	/* Recorded while capturing: the nodes a wait for it depends on. */
	uint64_t capture_id;
	struct sg_node **capture_nodes;
	unsigned n_capture_nodes;
	struct sg_event *next_dead;
};

/* The calling thread's virtual time, one clock for all host threads. */
uint64_t sg_host_now(void);
void sg_host_advance(uint64_t ns);      /* host busy for ns */
void sg_host_advance_to(uint64_t when); /* host waited until then */

/* Resolves a stream argument: NULL or CU_STREAM_LEGACY -> the context's null
 * stream (per_thread false), CU_STREAM_PER_THREAD or NULL with per_thread true
 * -> the thread's own stream. CUDA_ERROR_INVALID_HANDLE for a dead one. */
CUresult sg_stream_resolve(
        CUstream stream, bool per_thread, struct sg_stream **ret_stream);

/* A new op, refs 1, not yet enqueued. Never NULL (aborts without memory: this
 * is a test tool). */
struct sg_op *sg_op_new(enum sg_op_kind kind, struct sg_stream *stream);
void sg_op_add_access(struct sg_op *op, uint64_t va, uint64_t bytes, bool read,
        bool write, bool certain);
/* A kernel's name, or what the op is. */
const char *sg_op_title(enum sg_op_kind kind, const char *name);
void sg_op_ref(struct sg_op *op);
void sg_op_unref(struct sg_op *op);
/* Puts op at the tail of its stream (which must not be capturing), checks that
 * its accesses are mapped (block.c) and applies its effect on content. Takes
 * over the caller's reference. Returns the device's sticky error if the op
 * was refused. */
CUresult sg_op_enqueue(struct sg_op *op);
/* Advances virtual time until op is done and moves the host's clock there.
 * Drops the lock while host functions run. */
void sg_op_wait(struct sg_op *op);
bool sg_op_done(struct sg_op *op); /* as of sg_host_now() */
void sg_stream_wait(struct sg_stream *stream);
void sg_device_wait(struct sg_device *dev);
/* The same for the driver's own ends: the program has not seen it, so that it
 * is no order among accesses. */
bool sg_op_over(struct sg_op *op);
void sg_device_drain(struct sg_device *dev);
/* Is any unfinished op touching [va, va+bytes)? Names it; for unmap and free.
 */
const struct sg_op *sg_range_busy(
        struct sg_device *dev, uint64_t va, uint64_t bytes);
/* Called by memory functions that synchronise the whole device implicitly. */
#define sg_implicit_sync sg_device_wait

/* ------------------------------------------------------------ capture, graph
 */

/*
 * While stream->capture is set, callers do not make an op: they describe the
 * work as a node. A node is replayed by sg_node_issue for every graph launch.
 */
enum sg_node_kind {
	SG_NODE_KERNEL,
	SG_NODE_MEMCPY,
	SG_NODE_MEMSET,
	SG_NODE_HOST,
	SG_NODE_EMPTY,
	SG_NODE_EVENT_RECORD,
	SG_NODE_EVENT_WAIT,
	SG_NODE_CHILD,
	SG_NODE_MEM_ALLOC,
	SG_NODE_MEM_FREE,
};
struct sg_node_work {
	enum sg_node_kind kind;
	union {
		struct sg_launch *launch; /* owned copy (launch.c) */
		CUDA_MEMCPY3D copy;       /* any copy in its general form */
		CUDA_MEMSET_NODE_PARAMS set;
		struct {
			CUhostFn fn;
			void *arg;
		} host;
		struct sg_event *event;
		struct sg_graph *child;
	};
};
/* Appends work to the stream's capture; takes over work's pointers. */
CUresult sg_capture_add(
        struct sg_stream *stream, const struct sg_node_work *work);
/* Marks the capture invalid; returns the error the call must give. */
CUresult sg_capture_break(struct sg_stream *stream, CUresult error);
/* Is the calling thread forbidden unsafe calls (a global or thread-local
 * capture is under way)? Then the caller returns
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED through sg_capture_unsafe. */
CUresult sg_capture_unsafe(void);

/* ------------------------------------------------------------------ memory */

/* Device addresses lie in one window of PROT_NONE address space. */
bool sg_is_device_va(uint64_t va);

/* What stands at a device address. */
struct sg_where {
	struct sg_device *dev;
	uint64_t alloc_va, alloc_bytes; /* driver allocation or reservation */
	uint64_t block_va, block_bytes; /* framework block, else allocation */
	uint64_t map_va, map_bytes;     /* mapped extent around va, 0 if none */
	struct sg_chunk *chunk;         /* NULL if not mapped */
	uint64_t chunk_offset;
	bool accessible, managed, from_pool, vmm;
};
/* False if va lies in no allocation or reservation. */
bool sg_where(uint64_t va, struct sg_where *ret_where);
/* First byte of [va, va+bytes) that is not mapped with access for dev, or 0. */
uint64_t sg_first_unmapped(struct sg_device *dev, uint64_t va, uint64_t bytes);
/* Part of sg_op_enqueue: may op touch all that it says it touches? If not:
 * sticky error 700, naming the op, the address and what stands there. */
CUresult sg_op_check(const struct sg_op *op);
/* A context is being destroyed (its work is done): frees its allocations. */
void sg_memory_ctx_gone(struct sg_ctx *ctx);
/* The live block (framework's, else the allocation) that holds va. */
bool sg_block_at(uint64_t va, uint64_t *ret_va, uint64_t *ret_bytes);
/* Is host memory page-locked (allocated or registered)? */
bool sg_host_is_pinned(const void *p, size_t bytes);
/* Memory of a module's variables (memory half): mapped and accessible, packed
 * into chunks shared by all modules of the device; physical memory, but no
 * driver allocation (allocated_bytes does not count it). -ENOMEM. */
int sg_static_alloc(struct sg_device *dev, uint64_t bytes, uint64_t *ret_va);
void sg_static_free(struct sg_device *dev, uint64_t va);
/* Physical memory: -ENOMEM when the device is full. */
int sg_physical_take(struct sg_device *dev, uint64_t bytes);
void sg_physical_give(struct sg_device *dev, uint64_t bytes);
/* Instances of graphs lose their memory with the context. */
void sg_graph_memory_ctx_gone(struct sg_ctx *ctx);

/* Issues a copy described in general form onto a stream (also from graphs).
 * sync: the host waits as the synchronous functions do. */
CUresult sg_copy_issue(
        const CUDA_MEMCPY3D *copy, struct sg_stream *stream, bool sync);
CUresult sg_memset_issue(const CUDA_MEMSET_NODE_PARAMS *set,
        struct sg_stream *stream, bool sync);

/* Content of device memory (content.c); effects apply in order of arrival.
 * Host reads of device memory give zeros for now. */
void sg_content_copy(uint64_t dst, uint64_t src, uint64_t bytes);
void sg_content_fill(
        uint64_t dst, unsigned value, unsigned element_bytes, uint64_t count);
void sg_content_launch(const struct sg_launch *launch, struct sg_op *op);
void sg_content_chunk_gone(struct sg_chunk *chunk);

/* -------------------------------------------------------------------- code */

struct sg_param {
	uint32_t offset_bytes, size_bytes;
};
/* A kernel function in a context. */
struct sg_function {
	struct sg_handle h;
	struct sg_module *module;
	const char *name;      /* mangled */
	const char *demangled; /* made on first need, else NULL */
	struct sg_param *params;
	unsigned n_params;
	uint32_t params_bytes;
	int regs, static_shared_bytes, max_dynamic_shared_bytes, local_bytes;
	int const_bytes, max_threads, ptx_version, binary_version;
	int attributes[32];              /* as set, else INT32_MIN */
	const struct sg_kernel_row *row; /* NULL: unknown kernel */
	struct sg_operands *operands;    /* kernel_operands.c */
	struct sg_functor *functor;      /* kernel_iter.c */
	struct sg_unknown *unknown;      /* kernels.c */
	bool row_looked_up;
	bool loaded;    /* cuFuncIsLoaded */
	unsigned index; /* in the module's code */
};

/* A launch with its own copy of the parameters. */
struct sg_launch {
	struct sg_function *fn;
	uint32_t grid[3], block[3], shared_bytes, cluster[3];
	bool cooperative, programmatic;
	uint8_t *params; /* params_bytes of fn */
};
/* A function argument: a CUfunction, or a CUkernel given for one, which means
 * its function in the current context. INVALID_HANDLE for anything else. */
CUresult sg_function_resolve(CUfunction handle, struct sg_function **ret_fn);
/* A launch of shape's grid, block, shared memory and cluster with a copy of the
 * parameters, checked as the launch functions do; fn may be a CUkernel. */
CUresult sg_launch_make(CUfunction fn, const struct sg_launch *shape,
        void **params, void **extra, struct sg_launch **ret_launch);
/* Unloads every module of a context that is being destroyed. */
void sg_code_ctx_gone(struct sg_ctx *ctx);
struct sg_launch *sg_launch_dup(const struct sg_launch *launch);
void sg_launch_free(struct sg_launch *launch);
/* Finds operands and cost, makes the op and enqueues it. */
CUresult sg_launch_issue(
        const struct sg_launch *launch, struct sg_stream *stream);
/* Issues a captured kernel, copy, set or host function on a stream; the other
 * kinds are the graph's own. */
CUresult sg_node_issue(
        const struct sg_node_work *work, struct sg_stream *stream);

/* One row of the kernel table (kernels.def): pattern over the demangled name,
 * operand roles, cost. */
struct sg_kernel_row;
/* Looks fn up; NULL if no row of its own. */
const struct sg_kernel_row *sg_kernel_find(struct sg_function *fn);
/* The op's time and accesses from the row, or, without one: every aligned
 * 8-byte parameter word that points into a live block touches from there to
 * the end of the block, read and written; time = those bytes at memory
 * bandwidth. */
void sg_kernel_describe(const struct sg_launch *launch, struct sg_op *op);

/* ------------------------------------------------------------------ report */

/* Writes SIMGPU_REPORT; at exit and, atomically, on demand. */
void sg_report_write(void);
/* SIMGPU_TRACE: one line about a launch. */
void sg_trace_launch(const struct sg_launch *launch, const struct sg_op *op);
void sg_activity(const struct sg_op *op); /* hands a done op to the sink */
/* The calling thread's external ids, SIMGPU_EXTERNAL_KINDS of them. */
void sg_activity_external(uint64_t *ret_ids);

/* Aborting allocation helpers: the simulator is a test tool. */
void *sg_xcalloc(size_t n, size_t bytes);
void *sg_xrealloc(void *p, size_t bytes);
char *sg_xstrdup(const char *s);

#endif
