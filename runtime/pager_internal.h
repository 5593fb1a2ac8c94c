/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What pager.c (ops), evict.c (finding memory) and move.c (driver calls) share.
 * "Guarded by lock" unless a field says otherwise.
 */
#ifndef TS_PAGER_INTERNAL_H
#define TS_PAGER_INTERNAL_H

#include <pthread.h>

#include "agent/base/lock.h"
#include "runtime/account.h"
#include "runtime/chunks.h"
#include "runtime/foresee.h"
#include "runtime/hostpool.h"
#include "runtime/pager.h"

/* A page on its way in or out. */
struct ts_move {
	struct ts_page *page;
	uint64_t address;
	CUmemGenericAllocationHandle handle;
	void *host;    /* slot to copy to or from */
	bool copy;     /* the content is needed on the other side */
	uint32_t life; /* the page's when the move began */
};

struct ts_moves {
	struct ts_move *items;
	size_t count, capacity;
};

struct ts_pager {
	/* Constant after creation. */
	const struct ts_gpu_ops *ops;
	int device;
	uint64_t page_bytes;

	struct ts_mutex lock, gate;
	pthread_cond_t idle; /* some op ended; with lock */

	struct ts_account account;
	struct ts_chunks chunks;
	struct ts_hostpool host;
	struct ts_streams streams;
	struct ts_foresee foresee;

	struct ts_map segments;     /* by base */
	struct ts_list slabs;       /* segments that small allocations share */
	struct ts_list deferred;    /* freed segments, to be taken away later */
	struct ts_list used, spare; /* resident pages, longest unused first */
	size_t spare_count;
	size_t busy_count; /* sum over all pages' busy */
	uint64_t op_number, slow_number;
	uint64_t other_bytes; /* not placed by the agent, when last measured */
	bool no_room;         /* the last measurement left no whole page */
	unsigned int skipped; /* measurements left out since then */
	struct ts_pager_stats stats;

	/* Guarded by gate; written with the lock too. */
	CUcontext context;

	/* Guarded by gate. */
	uint32_t peers;  /* devices beside its own that reach its memory */
	CUstream stream; /* for the agent's copies; created when first needed */
	struct ts_moves missing, victims;
};

static inline void ts_page_enlist(struct ts_pager *pager, struct ts_page *page)
{
	page->spare = !page->live_bytes;
	ts_list_append(page->spare ? &pager->spare : &pager->used, &page->list);
	pager->spare_count += page->spare;
}

static inline void ts_page_delist(struct ts_pager *pager, struct ts_page *page)
{
	pager->spare_count -= page->spare;
	page->spare = false;
	ts_list_remove(&page->list);
}

/* Drops the copy in host memory, if there is one. Lock held. */
void ts_page_forget_host(struct ts_pager *pager, struct ts_page *page);

/* An empty place at the end of @moves, or NULL without memory. */
struct ts_move *ts_moves_add(struct ts_moves *moves);

/*
 * Sees to it that @count chunks are idle, by creating them within the limit,
 * then by taking pages. @own_busy is how much of busy_count is the caller's.
 * Gate and lock held; the lock is let go for driver calls.
 */
int ts_pager_gather(struct ts_pager *pager, size_t count, size_t own_busy,
        unsigned int flags, struct ts_shortage *ret_shortage);

/* Takes up to @count pages from whoever has them; see ts_pager_gather. */
int ts_pager_take_pages(struct ts_pager *pager, size_t count,
        unsigned int flags, size_t *ret_taken,
        struct ts_shortage *ret_shortage);

/* Asks the driver what is in use; updates account. Gate and lock as above. */
int ts_pager_measure(struct ts_pager *pager, uint64_t *ret_used_bytes,
        struct ts_shortage *ret_shortage);

/* Gives up to @count idle chunks back to the driver. Gate and lock held. */
void ts_pager_release_idle(struct ts_pager *pager, size_t count);

/*
 * Driver work on @moves (move.c). Gate held, lock not. Out: copies what has to
 * be saved, then waits; nothing is unmapped. In: maps, opens, copies in, waits;
 * after a failure nothing of it is mapped.
 */
CUresult ts_move_out(struct ts_pager *pager, const struct ts_moves *moves);
CUresult ts_move_in(struct ts_pager *pager, const struct ts_moves *moves);

/* Opens mapped pages, @bytes from @address on, to those that may use them. */
CUresult ts_move_open(struct ts_pager *pager, uint64_t address, uint64_t bytes);

/* Takes the chunks from under @count pages, from @address on. */
CUresult ts_move_unmap(struct ts_pager *pager, uint64_t address, size_t count);

/* What @need_bytes at once take, for a line about it. Lock held. */
void ts_pager_describe(const struct ts_pager *pager, uint64_t need_bytes,
        struct ts_shortage *shortage);

/*
 * Takes every chunk from under @segment, which no op uses. After a failure the
 * pages not reached are as they were. Gate held, room for the chunks reserved.
 */
CUresult ts_pager_strip(struct ts_pager *pager, struct ts_segment *segment);

/* Makes the pager's context current; false where it already is. */
bool ts_pager_enter_context(struct ts_pager *pager);
void ts_pager_leave_context(struct ts_pager *pager, bool entered);

/*
 * The same around moving. While some stream captures in global mode, the
 * driver would refuse a mover's calls on this thread otherwise.
 */
bool ts_pager_enter_moving(
        struct ts_pager *pager, unsigned int flags, CUstreamCaptureMode *mode);
void ts_pager_leave_moving(struct ts_pager *pager, unsigned int flags,
        CUstreamCaptureMode mode, bool entered);

#endif
