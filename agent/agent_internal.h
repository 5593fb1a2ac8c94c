/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The one agent of the process, as the files of agent/ share it. */
#ifndef TS_AGENT_INTERNAL_H
#define TS_AGENT_INTERNAL_H

#include <stdatomic.h>

#include "agent/agent.h"
#include "agent/code.h"
#include "agent/config.h"
#include "agent/downloads.h"
#include "agent/tape.h"

struct ts_agent_device {
	/* NULL until the first allocation there; then until its context goes.
	 */
	_Atomic(struct ts_pager *) pager;
	CUcontext primary; /* as last retained; guarded by ts_agent.lock */
	uint32_t peers;    /* bit n: device n reaches it; guarded likewise */
	/* Guarded by ts_agent.reading: figures of pagers that are gone. */
	struct ts_pager_stats past;
	bool has_past;
};

/* A stream that captures. */
struct ts_capture {
	ts_stream_key stream;
	pthread_t thread; /* that began it */
	CUcontext context;
};

/* Guarded by ts_agent.lock. */
struct ts_captures {
	struct ts_capture *items;
	size_t count, capacity;
	pthread_cond_t fewer;
};

/* Graphs and instances that exist; see agent_graphs.c. */
struct ts_graphs {
	struct ts_mutex lock;
	struct ts_map all; /* by handle */
	bool lost;         /* the end of one would not be noticed */
	bool instances;    /* one was seen being made */
};

/* A table that names what could not be made to stay. */
struct ts_open_table {
	struct ts_open_table *next;
	uint64_t number; /* from 1 on */
	CUdeviceptr table;
	size_t bytes;
	CUdevice device; /* whose ops wait for it */
};

/* Tables of addresses in device memory; see agent_scan.c. */
struct ts_tables {
	struct ts_mutex lock;
	struct ts_map writers;      /* ops by signature; guarded by lock */
	struct ts_open_table *open; /* guarded by lock; freed when settled */
	uint64_t opened;            /* so far; guarded by lock */
	bool lost;                  /* one was not noted; guarded by lock */
	atomic_bool any_open;
	struct ts_map in_graphs, due;  /* guarded by lock; see agent_scan.c */
	atomic_bool graphs_collective; /* some graph has collectives */
	atomic_ulong reads;            /* copies made to look into memory */
	atomic_ulong pinned; /* blocks that stay since they are pointed to */
};

struct ts_agent {
	/* Constant after start. */
	const struct ts_gpu_ops *ops;
	const struct ts_gpu_ops *pager_ops; /* the same, counted */
	struct ts_config config;
	uint64_t host_limit_bytes;
	/* Nothing is moved, planned or proved: what is not recorded is only
	 * followed through the steps that are known. */
	bool follows;

	struct ts_mutex lock;
	struct ts_mutex reading; /* a pager goes while nobody reads of it */
	struct ts_agent_device devices[TS_AGENT_DEVICES];
	struct ts_blocks blocks;
	struct ts_funcs funcs;
	struct ts_code code;
	struct ts_tape tape;
	struct ts_captures captures;
	struct ts_downloads downloads;
	struct ts_graphs graphs;
	struct ts_tables tables;
	atomic_int capturing; /* captures begun and not ended */
	atomic_bool put_off;  /* making room, till none captures */
	atomic_bool started;
	atomic_uint functions;     /* launched so far: numbers below this */
	atomic_uint shortages;     /* calls refused for want of memory */
	atomic_uint driver_errors; /* and for any other error of the driver */
	atomic_bool stopped;
};

extern struct ts_agent ts_agent;

/* True where allocations get their memory from the pager. */
static inline bool ts_agent_places(void)
{
	return ts_agent.config.mode >= TS_MODE_CAP && !ts_agent.config.ipc;
}

/*
 * Whether blocks are looked for while nothing is recorded: they are to be made
 * resident, or kept on the tape. Where steps are only followed signatures do.
 */
static inline bool ts_agent_wants_blocks(void)
{
	return !ts_agent.follows;
}

/* The pager of @device, or NULL. */
static inline struct ts_pager *ts_agent_pager(int device)
{
	if (device < 0 || device >= TS_AGENT_DEVICES)
		return NULL;
	return atomic_load_explicit(
	        &ts_agent.devices[device].pager, memory_order_acquire);
}

/*
 * The pager of the current device, made where there is none; NULL without a
 * current context, or in a mode without a limit.
 */
struct ts_pager *ts_agent_current_pager(int *ret_device);

/* Flags for the pager: whether something captures now. */
unsigned int ts_agent_begin_flags(void);

void ts_captures_init(struct ts_captures *captures);
void ts_graphs_init(struct ts_graphs *graphs);

/* A block is no more: its pages hold nothing of it. */
void ts_agent_tell_dead(const struct ts_stretch *stretch, void *data);

/* Memory placed on device @owner may, or need not, be reached by @device. */
CUresult ts_agent_set_peer(int owner, int device, bool enable);

/* The line for a call that would share placed memory; once. */
void ts_agent_say_not_shared(const char *call);

/* Streams that are gone capture no more. */
void ts_captures_of_stream_end(ts_stream_key stream);
void ts_captures_of_context_end(CUcontext context);

/*
 * Waits until no stream captures: false where this thread's own does, or
 * others go on for too long, as where they need this thread to end.
 */
bool ts_captures_wait(void);

void ts_tables_init(struct ts_tables *tables);

/*
 * After a launch was issued: what it may have written is looked into where no
 * op of its signature was before, and where one was seen to write addresses.
 */
void ts_agent_scan_written(const struct ts_op *op);

/* No graph is left: what they wrote is looked into no more. */
void ts_agent_tables_of_graphs_end(void);

/*
 * Before an op: that what written tables name stays. CUDA_ERROR_OUT_OF_MEMORY
 * as long as it cannot; the program may free memory and try again. Or what the
 * driver answers. Where there is nothing to settle it is one load.
 */
CUresult ts_agent_tables_settle(void);

/* Pins a block that an address in memory names; @data is a CUresult. */
void ts_agent_pin_found(const struct ts_range *block, void *data);

/*
 * The line for an op that cannot run, or an allocation (@what): one for each
 * cause, however often the program tries.
 */
void ts_agent_say_shortage(
        const char *what, const struct ts_shortage *shortage);

/* What the program gets for it. */
CUresult ts_agent_shortage_result(const struct ts_shortage *shortage);

/* The setting in bytes for a device of @total_bytes. */
uint64_t ts_agent_limit_bytes(uint64_t total_bytes);

#endif
