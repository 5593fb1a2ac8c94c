/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of the pager share: pager.c (ops), pager_life.c (its beginning
 * and end), pages.c (how segments are cut), evict.c (who goes), find.c (memory
 * for pages), move.c (driver calls), ahead.c (work before it is needed),
 * chores.c (what the helper does), place.c (allocations), adopt.c (the
 * program's own address ranges), rebind.c (contexts) and pager_info.c.
 * "Guarded by lock" unless a field says otherwise.
 */
#ifndef TS_PAGER_INTERNAL_H
#define TS_PAGER_INTERNAL_H

#include <pthread.h>

#include "agent/base/clock.h"
#include "agent/base/lock.h"
#include "runtime/account.h"
#include "runtime/chunks.h"
#include "runtime/copyq.h"
#include "runtime/foresee.h"
#include "runtime/helper.h"
#include "runtime/hostpool.h"
#include "runtime/pager.h"

/* Pages that something is done with; guarded by gate. */
struct ts_pages {
	struct ts_page **items;
	size_t count, capacity;
};

/* One copy: units that are neighbours on both sides. */
struct ts_copy {
	uint64_t address, bytes;
	void *host;
	uint64_t most_bytes; /* to the end of the slab on the host */
};

struct ts_copies {
	struct ts_copy *items;
	size_t count, capacity;
	struct ts_fence after; /* what must be over before they begin */
};

#define TS_SEGMENTS_RECENT 4096u /* a power of two */

struct ts_pager {
	/* Constant after creation. */
	const struct ts_gpu_ops *ops;
	uint64_t id;
	int device;
	uint64_t unit_bytes;
	unsigned int unit_shift; /* 0: units are no power of two */
	bool unmaps;             /* what leaves is unmapped at once */

	uint64_t life; /* differs between pagers, and when a context goes */

	struct ts_mutex lock, gate, pinning;
	struct ts_helper helper;
	pthread_cond_t idle; /* some op ended; with lock */

	struct ts_account account;
	struct ts_chunks chunks;
	struct ts_hostpool host;
	struct ts_streams streams;
	struct ts_foresee foresee;
	struct ts_copyq out, in;

	struct ts_map segments; /* by base */
	/* Found of late, by unit: each op asks for each of its ranges twice. */
	struct ts_segment *recent[TS_SEGMENTS_RECENT];
	struct ts_list slabs;       /* segments that small allocations share */
	struct ts_list deferred;    /* freed segments, to be taken away later */
	struct ts_list used, spare; /* resident pages, longest unused first */
	struct ts_list away; /* pages whose content is in host memory alone */
	uint64_t spare_bytes;
	uint64_t page_bytes; /* the most of a new page */
	size_t busy_count;   /* sum over all pages' busy */
	uint64_t op_number;
	uint64_t slow_number; /* marks pages; guarded by the gate as well */
	uint64_t removed;     /* segments taken out of the map so far */
	uint64_t moved;       /* how often pages came or left */
	uint64_t other_bytes; /* not placed by the agent, when last measured */
	uint64_t told_bytes;  /* the same, not raised where it was more */
	uint64_t most_bytes;  /* that an op had resident at once */
	bool no_room;         /* the last measurement left no whole unit */
	unsigned int skipped; /* measurements left out since then */
	unsigned int leaves_out; /* before the next */
	unsigned int refused;    /* chunks in a row, by the driver */
	struct ts_pager_stats stats;
	unsigned int since_ahead; /* ops since work was done ahead */
	unsigned int looks;       /* that might have been, beside a plan */
	bool captures;         /* something captured when the last op began */
	uint64_t near_capture; /* it may have begun to up to this op */
	bool pins_no_more;     /* the driver refused to pin ahead of need */

	/* Guarded by gate or pinning; written with both, and the lock. */
	CUcontext context;

	/* Guarded by gate. */
	uint32_t peers; /* devices beside its own that reach its memory */
	struct ts_pages missing, victims, early;
	/* The plan in force, or NULL; enforce.h. Changed with the lock, too. */
	struct ts_enforce *enforce;
	struct ts_copies copies;
};

static inline void ts_page_enlist(struct ts_pager *pager, struct ts_page *page)
{
	page->spare = !page->live_units;
	ts_list_append(page->spare ? &pager->spare : &pager->used, &page->list);
	pager->spare_bytes += page->spare ? page->bytes : 0;
}

static inline void ts_page_delist(struct ts_pager *pager, struct ts_page *page)
{
	pager->spare_bytes -= page->spare ? page->bytes : 0;
	page->spare = false;
	ts_list_remove(&page->list);
}

/* A resident page is used: of those in its list it is the last to go. */
static inline void ts_page_renew(struct ts_pager *pager, struct ts_page *page)
{
	ts_list_remove(&page->list);
	ts_list_append(page->spare ? &pager->spare : &pager->used, &page->list);
}

/* Whole units; dividing costs as much as finding the page. */
static inline uint64_t ts_pager_units(
        const struct ts_pager *pager, uint64_t bytes)
{
	return pager->unit_shift ? bytes >> pager->unit_shift
	                         : bytes / pager->unit_bytes;
}

/* What the limit leaves beside everything that exists. */
static inline uint64_t ts_pager_room(const struct ts_pager *pager)
{
	uint64_t used = pager->other_bytes + pager->chunks.created_bytes;

	return used < pager->account.limit_bytes
	               ? pager->account.limit_bytes - used
	               : 0;
}

/* Drops the copy of a unit in host memory, if there is one. */
void ts_unit_forget(struct ts_pager *pager, struct ts_unit *unit);

/* Adds @page; -ENOMEM without host memory. */
int ts_pages_add(struct ts_pages *pages, struct ts_page *page);

/* ---------------------------------------------------------------- pages.c */

/* Walks the pages of an op's ranges; pages of two ranges come twice. */
struct ts_cursor {
	const struct ts_range *range, *end;
	struct ts_segment *segment;
	size_t unit, last;
};

static inline struct ts_cursor ts_cursor_at(
        const struct ts_range *ranges, size_t count)
{
	return (struct ts_cursor){.range = ranges, .end = ranges + count};
}

/* The first page of the next range that has any. */
struct ts_page *ts_cursor_enter(
        struct ts_pager *pager, struct ts_cursor *cursor);

/* Takes @segment out of the map. */
void ts_pager_remove_segment(
        struct ts_pager *pager, struct ts_segment *segment);

/* The next page, with its range in cursor->range; NULL at the end. */
static inline struct ts_page *ts_cursor_next(
        struct ts_pager *pager, struct ts_cursor *cursor)
{
	if (cursor->segment) {
		cursor->unit = cursor->segment->units[cursor->unit].page->end;
		if (cursor->unit <= cursor->last)
			return cursor->segment->units[cursor->unit].page;
		cursor->segment = NULL;
		cursor->range++;
	}
	return ts_cursor_enter(pager, cursor);
}

/*
 * Cuts and joins the pages of @ranges that are not resident, so that they hold
 * as little else as may be. Gate and lock held, the lock let go meanwhile.
 */
int ts_pager_cut(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, struct ts_shortage *ret_shortage);

/* ---------------------------------------------------------------- evict.c */

/* Who is asked for memory, and for how much. */
struct ts_take {
	uint64_t bytes;
	const struct ts_pages *wanted; /* what for; may be NULL */
	/* Not 0: nothing that has to be copied, or is used before that op. */
	uint64_t clean_until;
};

/*
 * Takes about so much from whoever has it: at least a page, or nothing with
 * *ret_taken = 0. Of those that may go about as well as others, it prefers what
 * the wanted can have without a call: the chunks that are mapped there still,
 * then others of the same sizes. Nothing is waited for but memory to copy to.
 * Gate and lock held; the lock is let go for driver calls.
 */
int ts_pager_take_pages(struct ts_pager *pager, const struct ts_take *take,
        unsigned int flags, uint64_t *ret_taken,
        struct ts_shortage *ret_shortage);

/*
 * The pages in pager->victims leave: what has to be saved by copies that are
 * issued as one batch, and waited for by nobody. After a failure all are
 * resident. Gate and lock held; the lock is let go for driver calls.
 */
int ts_pager_evict(struct ts_pager *pager, struct ts_shortage *ret_shortage);

/*
 * Copies out, ahead of need, what would be taken next: at most @most_bytes of
 * the first @reserve_bytes that would go. The pages stay where they are. Gate
 * and lock as above.
 */
CUresult ts_pager_clean(
        struct ts_pager *pager, uint64_t reserve_bytes, uint64_t most_bytes);

/* ---------------------------------------------------------------- ahead.c */

/*
 * Work that can be done before it is needed. Gate and lock held; the lock is
 * let go for driver calls.
 */
void ts_pager_ahead(struct ts_pager *pager);

/* --------------------------------------------------------------- chores.c */

/* What is to be asked of the helper after an op, as bits. Lock held. */
unsigned int ts_pager_chores(struct ts_pager *pager);

/* For ts_helper_init(). */
void ts_pager_help(void *pager, unsigned int what);

/*
 * Host memory for @slots more slots, or one slab more; of plain memory, if
 * @plain, where the driver pins none. Gate or none, lock not held.
 */
int ts_pager_grow_host(struct ts_pager *pager, size_t slots, bool plain);

/* ----------------------------------------------------------------- find.c */

/*
 * What is missing for @pages: those for which there is no idle chunk of their
 * size, less what can be created. Chunks of other sizes count where they are
 * more than @scraps.
 */
uint64_t ts_pager_missing(const struct ts_pager *pager,
        const struct ts_pages *pages, unsigned int flags, uint64_t scraps);

/*
 * Sees to it that there is memory for @pages, idle or to be created, by taking
 * other pages where that is needed. @own_busy is how much of busy_count is the
 * caller's. Gate and lock held; the lock is let go for driver calls.
 */
int ts_pager_gather(struct ts_pager *pager, const struct ts_pages *pages,
        size_t own_busy, unsigned int flags, struct ts_shortage *ret_shortage);

/*
 * Puts a chunk under every page of @pages, of what gather found, and copies
 * in what is in host memory. After a failure none of them is resident.
 */
int ts_pager_bring(struct ts_pager *pager, struct ts_pages *pages,
        unsigned int flags, struct ts_shortage *ret_shortage);

/* Asks the driver what is in use; updates account. Gate and lock as above. */
int ts_pager_measure(struct ts_pager *pager, uint64_t *ret_used_bytes,
        struct ts_shortage *ret_shortage);

/*
 * Gives idle chunks back to the driver until @bytes are given or no more are
 * idle. Gate and lock held; the lock is let go for driver calls.
 */
CUresult ts_pager_release_idle(struct ts_pager *pager, uint64_t bytes);

/* ----------------------------------------------------------------- move.c */

/* Driver calls; the gate is held, and the lock let go for each. */
CUresult ts_move_map(struct ts_pager *pager, struct ts_page *page);
CUresult ts_move_unmap(struct ts_pager *pager, struct ts_page *page);

/* Opens mapped pages, @bytes from @address on, to those that may use them. */
CUresult ts_move_open(struct ts_pager *pager, uint64_t address, uint64_t bytes);

/* Notes the copies that @page needs; out: what is live, with slots for it. */
int ts_copies_add(struct ts_pager *pager, struct ts_page *page, bool out);

/*
 * Issues pager->copies, behind what they come after, as one batch; none if
 * there are none. *ret_batch is its number, the last one's else. After a
 * failure nothing of it is under way.
 */
CUresult ts_copies_issue(struct ts_pager *pager, bool out, uint64_t *ret_batch);

/* Waits on the host. Lock held, and let go. */
CUresult ts_pager_wait_fence(
        struct ts_pager *pager, const struct ts_fence *fence);

/* ---------------------------------------------------------------- others */

/* No page has it. */
#define TS_NO_MARK UINT64_MAX

/*
 * What @need_bytes at once take, for a line about it: of pages with the mark
 * @mark, which takes the gate unless it is TS_NO_MARK. Lock held.
 */
void ts_pager_describe(const struct ts_pager *pager, uint64_t need_bytes,
        uint64_t mark, struct ts_shortage *shortage);

/*
 * Takes every chunk from under @segment, which no op uses. After a failure the
 * pages not reached are as they were. Gate and lock held, the lock let go.
 */
CUresult ts_pager_strip(struct ts_pager *pager, struct ts_segment *segment);

/* The same of one page, whose content is no longer wanted. */
CUresult ts_pager_strip_page(struct ts_pager *pager, struct ts_page *page);

/* True where an allocation of so much can be placed; says why not. */
bool ts_pager_can_ever_fit(struct ts_pager *pager, uint64_t bytes,
        struct ts_shortage *ret_shortage);

/* What threads know of their streams is forgotten. Lock held, or none yet. */
void ts_pager_new_life(struct ts_pager *pager);

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
