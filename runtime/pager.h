/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pager of one device: before an op is issued every page it touches is
 * resident. Short of chunks it takes those of free pages (nothing to save),
 * then moves to pinned host memory what the tape says is needed last, or was
 * used longest ago.
 *
 * Copies run on two streams of the agent's. An op waits on the device for those
 * that it needs, a copy for the ops before it; the host waits only before it
 * unmaps something. Chunks stay mapped where they were (chunks.h), so that this
 * is rare once the program repeats itself.
 *
 * Locks: `lock` guards every field and is held for short work only, never
 * across a driver call. `gate` is held by the one thread that moves pages (the
 * mover), across driver calls; begin takes it only where a page is missing.
 * A page that is busy (between begin and end of an op) is no victim. `pinning`
 * is held by who pins host memory, taken under the gate or without it. A helper
 * (helper.h) does what can be done apart from the program's threads.
 *
 * No function logs. Where memory is short the caller gets a ts_shortage to
 * make its one line from.
 */
#ifndef TS_PAGER_H
#define TS_PAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/ops.h"
#include "runtime/segment.h"
#include "runtime/streams.h"

struct ts_pager;

enum ts_access {
	TS_ACCESS_READ,      /* reads, nothing else */
	TS_ACCESS_WRITE,     /* writes every byte of the range */
	TS_ACCESS_READWRITE, /* may do both: what is not known */
};

/* What an op touches: @bytes from @address on. */
struct ts_range {
	uint64_t address, bytes;
	enum ts_access access;
	int device;    /* ranges of other devices are skipped */
	bool doubtful; /* the op may not use it after all */
};

enum ts_short_of {
	TS_SHORT_OF_DEVICE, /* need_bytes do not fit under the limit */
	TS_SHORT_OF_HOST,   /* no pinned host memory to move out to */
	TS_SHORT_CAPTURING, /* nothing may be moved while a graph is captured */
	TS_SHORT_DRIVER,    /* @result is what the driver answered to @call */
};

struct ts_shortage {
	enum ts_short_of short_of;
	CUresult result;
	const char *call;      /* a constant, or NULL where it is not known */
	uint64_t need_bytes;   /* of the op or allocation, at once */
	uint64_t other_bytes;  /* context and what the agent did not place */
	uint64_t limit_bytes;  /* now */
	uint64_t device_bytes; /* that the device has: no limit is higher */
	/*
	 * The smallest limit that would do, for this and for whatever op needed
	 * more before, beside what cannot be moved. While it is captured:
	 * beside all that has content.
	 */
	uint64_t least_limit_bytes;
	bool whole_step; /* ops repeat themselves: none will need more */
	uint64_t host_used_bytes, host_limit_bytes;
};

/* What the driver answered, other than success, to a call of this thread's. */
static inline void ts_short_of_driver(
        struct ts_shortage *shortage, CUresult result)
{
	shortage->short_of = TS_SHORT_DRIVER;
	shortage->result = result;
	shortage->call = ts_gpu_call_that_said(result);
}

struct ts_pager_options {
	int device;
	uint64_t limit_bytes; /* 0: the device's memory */
	uint64_t host_limit_bytes;
	uint64_t unit_bytes; /* at least; rounded up to the granularity */
	uint64_t page_bytes; /* the most that moves as one; 0: 16 units */
	bool unmaps;         /* what leaves is unmapped at once: for tests */
	bool helper_thread;  /* see helper.h; else everything is done inline */
};

struct ts_pager_stats {
	uint64_t total_bytes, limit_bytes, page_bytes;
	uint64_t peak_bytes;   /* highest physical use seen */
	uint64_t pinned_bytes; /* now resident for good */
	uint64_t out_bytes, in_bytes;
	uint64_t copies_out, copies_in; /* driver calls */
	uint64_t evicted_pages;   /* that were moved out or dropped when live */
	uint64_t reclaimed_pages; /* of free blocks: nothing to move */
	/* Time that threads of the program were kept waiting, by cause. */
	uint64_t wait_ops_ns;     /* for ops, before something is unmapped */
	uint64_t wait_copies_ns;  /* for copies, likewise */
	uint64_t wait_pinning_ns; /* for pinned host memory */
	uint64_t host_pinned_bytes, host_peak_bytes, host_limit_bytes;
};

enum ts_begin_flags {
	TS_BEGIN_CAPTURING = 1, /* pin what is touched, move nothing out */
	/* No op: -EAGAIN rather than taking a page, and no waiting. */
	TS_BEGIN_NO_EVICT = 2,
	/* Others capture: only what surely no op uses may be moved out. */
	TS_BEGIN_BESIDE_CAPTURE = 4,
	TS_BEGIN_ANY_CAPTURE = TS_BEGIN_CAPTURING | TS_BEGIN_BESIDE_CAPTURE,
	TS_BEGIN_BY_PLAN = 8, /* of the step that the plan in force is for */
};

/*
 * A pager for the device of the current context, which must stay current or
 * alive: moving is done in it. Returns a negative errno.
 */
int ts_pager_create(const struct ts_gpu_ops *ops,
        const struct ts_pager_options *options, struct ts_pager **ret_pager);

/* Of no other pager of the process, also when it is gone; never 0. */
uint64_t ts_pager_id(const struct ts_pager *pager);

/* Until the next op no thread of the agent's makes calls. */
void ts_pager_rest(struct ts_pager *pager);

/* The process ends: no thread of the agent's makes calls from now on. */
void ts_pager_quiet(struct ts_pager *pager);

/* Frees everything, in the driver too where @driver_alive. NULL is fine. */
void ts_pager_destroy(struct ts_pager *pager, bool driver_alive);

/*
 * Places an allocation. All of it is live until the caller says otherwise.
 * Memory is put under it at once where that takes nothing from others.
 * -ENOMEM with @ret_shortage where it can never fit under the limit; up to
 * TS_PAGER_CUT_BYTES it may be cut into blocks that do, and is placed.
 */
#define TS_PAGER_CUT_BYTES (20ull << 20) /* PyTorch's segments of blocks */

int ts_pager_alloc(struct ts_pager *pager, uint64_t bytes, unsigned int flags,
        uint64_t *ret_address, struct ts_shortage *ret_shortage);

/*
 * Waits for all ops, then takes an allocation away. The caller has said of
 * every block in it that it is dead. While something captures nothing is waited
 * for, and the memory goes with the next free.
 */
CUresult ts_pager_free(struct ts_pager *pager, uint64_t address, uint64_t bytes,
        unsigned int flags);

/* A block came to life, or died, in placed memory. Leaf lock only. */
void ts_pager_live(struct ts_pager *pager, uint64_t address, uint64_t bytes);
void ts_pager_dead(struct ts_pager *pager, uint64_t address, uint64_t bytes);

/*
 * What live blocks hold in [address, address + bytes) need not be kept: pages
 * without others' blocks leave without a copy, and come back with anything in
 * them. Until an op writes it. Leaf lock only.
 */
void ts_pager_discard(struct ts_pager *pager, uint64_t address, uint64_t bytes);

/*
 * Makes @ranges resident and keeps them so until ts_pager_end() with the same
 * ranges. The next op of @stream, a handle of the current context or one of
 * the TS_STREAM_ constants, alone or in that context, then comes after all that
 * was done for that; TS_STREAM_HOST waits for it on the host. Adds what was
 * moved to
 * @ret_in_bytes and @ret_out_bytes. On failure nothing is kept.
 */
#define TS_STREAM_HOST ((ts_stream_key)0)

int ts_pager_begin(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, unsigned int flags, ts_stream_key stream,
        uint64_t *ret_in_bytes, uint64_t *ret_out_bytes,
        struct ts_shortage *ret_shortage);

/*
 * True where all of @ranges could be there at once, by what is in other use and
 * has to stay just now.
 */
bool ts_pager_could_hold(
        struct ts_pager *pager, const struct ts_range *ranges, size_t count);

/* The op was issued on @stream, or not at all. */
void ts_pager_end(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, ts_stream_key stream, bool issued);

/*
 * The next op is the @now-th of all (from 1 on), and the step repeats itself
 * every @period ops; 0 where it does not. Takes no lock.
 */
void ts_pager_tell_time(struct ts_pager *pager, uint64_t now, uint64_t period);

/*
 * Keeps the pages of a range, which must be busy, resident from now on. True
 * where some page was not kept for that reason before.
 */
bool ts_pager_pin(
        struct ts_pager *pager, const struct ts_range *range, enum ts_pin pin);

/*
 * No graph is left that could use what was captured: it may be moved as soon as
 * the ops issued so far are done, the launches of graphs among them. Returns
 * the bytes of such pages.
 */
uint64_t ts_pager_unpin_captured(struct ts_pager *pager);

/*
 * Makes sure that @bytes more can be allocated by others within the limit;
 * 0 brings the agent's own use down to what the limit leaves.
 */
int ts_pager_make_room(struct ts_pager *pager, uint64_t bytes,
        unsigned int flags, struct ts_shortage *ret_shortage);

/* Memory the agent did not place may have become less. */
void ts_pager_room_changed(struct ts_pager *pager);

/* Every address that the pager placed and still holds. */
bool ts_pager_owns(struct ts_pager *pager, uint64_t address);

/* Waits on the host for every op up to @number. Nothing may be capturing. */
CUresult ts_pager_wait_op(struct ts_pager *pager, uint64_t number);

/* For ts_streams: see streams.h. @number from ts_pager_last_op(). */
uint64_t ts_pager_last_op(struct ts_pager *pager);
void ts_pager_synchronized(
        struct ts_pager *pager, ts_stream_key stream, uint64_t number);
void ts_pager_stream_destroyed(
        struct ts_pager *pager, ts_stream_key stream, CUcontext context);

/*
 * A stream begins to capture, the first one: what was issued so far can be
 * waited for by events from now on, for the stream itself cannot be.
 */
void ts_pager_capture_begins(struct ts_pager *pager);

/*
 * @context, which is not the pager's, goes with its streams: all they ran is
 * done.
 */
void ts_pager_context_gone(struct ts_pager *pager, CUcontext context);

/* Bit n of @peers: device n may access everything that is placed. */
CUresult ts_pager_set_peers(struct ts_pager *pager, uint32_t peers);

/* The context that the pager works in. */
CUcontext ts_pager_context(struct ts_pager *pager);

/*
 * The pager's context is about to go: works in @context from now on, where
 * what was moved out goes too. After a failure it is as it was.
 */
CUresult ts_pager_rebind(struct ts_pager *pager, CUcontext context);

/* What cuMemGetInfo shall say: total = min(limit, physical). */
int ts_pager_mem_info(struct ts_pager *pager, uint64_t *ret_free_bytes,
        uint64_t *ret_total_bytes);

/* Host memory that the agent holds though the driver would not pin it. */
uint64_t ts_pager_plain_bytes(struct ts_pager *pager);

void ts_pager_stats(struct ts_pager *pager, struct ts_pager_stats *ret_stats);

#endif
