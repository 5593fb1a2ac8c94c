/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runtime/pager.h"

#include <errno.h>

#include "agent/base/log.h"
#include "runtime/enforce.h"
#include "runtime/pager_internal.h"

void ts_unit_forget(struct ts_pager *pager, struct ts_unit *unit)
{
	if (unit->slot)
		ts_hostpool_put(&pager->host, unit->slot);
	unit->slot = NULL;
}

/* ------------------------------------------------------------------ blocks */

static void change_unit(
        struct ts_pager *pager, struct ts_unit *unit, uint32_t bytes, bool live)
{
	bool was = unit->live_bytes != 0;

	ts_assert(live || unit->live_bytes >= bytes);
	unit->live_bytes += live ? bytes : -bytes;
	if (!unit->live_bytes)
		ts_unit_forget(pager, unit);
	unit->page->live_units += (unit->live_bytes != 0) - was;
}

/* After some of its units came to life or died. */
static void change_page(struct ts_pager *pager, struct ts_page *page)
{
	if (!page->live_units) {
		page->written = false;
		page->pins &= ~TS_PIN_ESCAPED;
	}
	if (page->resident && page->spare != !page->live_units) {
		ts_page_delist(pager, page);
		ts_page_enlist(pager, page);
	}
	/* Nothing of it is in host memory any more. */
	if (!page->resident && !page->live_units)
		ts_list_remove(&page->list);
}

static void change_live(
        struct ts_pager *pager, uint64_t address, uint64_t bytes, bool live)
{
	const struct ts_range range = {
	        .address = address, .bytes = bytes, .device = pager->device};
	struct ts_cursor cursor = ts_cursor_at(&range, 1);
	struct ts_page *page;

	while ((page = ts_cursor_next(pager, &cursor))) {
		for (size_t i = 0; i < page->count; i++) {
			uint64_t from = page->address + i * pager->unit_bytes;
			uint64_t to = from + pager->unit_bytes;

			if (from < address)
				from = address;
			if (to > address + bytes)
				to = address + bytes;
			if (from < to)
				change_unit(pager, &page->units[i],
				        (uint32_t)(to - from), live);
		}
		change_page(pager, page);
	}
}

void ts_pager_live(struct ts_pager *pager, uint64_t address, uint64_t bytes)
{
	ts_mutex_lock(&pager->lock);
	change_live(pager, address, bytes, true);
	ts_mutex_unlock(&pager->lock);
}

void ts_pager_dead(struct ts_pager *pager, uint64_t address, uint64_t bytes)
{
	ts_mutex_lock(&pager->lock);
	change_live(pager, address, bytes, false);
	ts_mutex_unlock(&pager->lock);
}

/* --------------------------------------------------------------------- ops */

/* What an op does to a page it finds resident. Lock held. */
static void touch(struct ts_pager *pager, struct ts_page *page,
        enum ts_access access, unsigned int flags)
{
	if (access != TS_ACCESS_READ)
		page->written = true;
	if (flags & TS_BEGIN_CAPTURING)
		page->pins |= TS_PIN_CAPTURED;
	ts_foresee_use(&pager->foresee, page);
	ts_page_renew(pager, page);
}

static void hold(struct ts_pager *pager, struct ts_page *page)
{
	page->busy++;
	pager->busy_count++;
}

static void let_go(struct ts_pager *pager, struct ts_page *page)
{
	ts_assert(page->busy);
	page->busy--;
	pager->busy_count--;
}

/* Adds what an op on @page has to come after, as far as it is not over. */
static void add_fence(struct ts_pager *pager, struct ts_page *page,
        enum ts_access access, struct ts_fence *fence)
{
	struct ts_fence own = {0, 0, page->fence.in};

	/* What is being copied out may be read all the same. */
	if (page->former || access != TS_ACCESS_READ)
		own.out = page->fence.out;
	if (page->former)
		own.op = page->former_op;
	if (own.in <= pager->in.done)
		own.in = 0;
	if (own.out <= pager->out.done)
		own.out = 0;
	if (own.op && ts_streams_done(&pager->streams, own.op))
		own.op = 0;
	if (page->former && !own.op && !own.out)
		page->former = false;
	ts_fence_join(fence, &own);
}

static void touch_all(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, unsigned int flags, struct ts_fence *fence)
{
	struct ts_cursor cursor = ts_cursor_at(ranges, count);
	struct ts_page *page;

	while ((page = ts_cursor_next(pager, &cursor))) {
		touch(pager, page, cursor.range->access, flags);
		add_fence(pager, page, cursor.range->access, fence);
	}
}

static bool all_resident(
        struct ts_pager *pager, const struct ts_range *ranges, size_t count)
{
	struct ts_cursor cursor = ts_cursor_at(ranges, count);
	struct ts_page *page;

	while ((page = ts_cursor_next(pager, &cursor)))
		if (!page->resident)
			return false;
	return true;
}

/* Undoes what was held before @missing, the first that is not resident. */
static void let_go_before(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, const struct ts_page *missing)
{
	struct ts_cursor cursor = ts_cursor_at(ranges, count);
	struct ts_page *page;

	while ((page = ts_cursor_next(pager, &cursor)) != missing)
		let_go(pager, page);
}

/* In one walk: most ops find all that they use. */
static bool begin_resident(struct ts_pager *pager,
        const struct ts_range *ranges, size_t count, unsigned int flags,
        struct ts_fence *fence)
{
	struct ts_cursor cursor = ts_cursor_at(ranges, count);
	struct ts_page *page;

	/* What is touched for an op that cannot run would stay pinned. */
	if (flags & TS_BEGIN_CAPTURING && !all_resident(pager, ranges, count))
		return false;
	while ((page = ts_cursor_next(pager, &cursor))) {
		if (!page->resident) {
			let_go_before(pager, ranges, count, page);
			return false;
		}
		hold(pager, page);
		touch(pager, page, cursor.range->access, flags);
		add_fence(pager, page, cursor.range->access, fence);
	}
	return true;
}

struct need {
	uint64_t bytes; /* of distinct pages */
	uint64_t least; /* the same with pages of one unit */
	size_t held;    /* how often a page was made busy */
	bool large;     /* some page is more than a unit */
};

/*
 * Bytes of the units of @page that @range makes wanted. Two ranges may want the
 * same one: no more than all are counted.
 */
static uint64_t want(const struct ts_pager *pager, struct ts_page *page,
        const struct ts_range *range)
{
	uint64_t from = range->address, to = range->address + range->bytes;
	size_t before = page->wanted;

	if (from < page->address)
		from = page->address;
	if (to > page->address + page->bytes)
		to = page->address + page->bytes;
	page->wanted += (to - 1 - page->address) / pager->unit_bytes -
	                (from - page->address) / pager->unit_bytes + 1;
	if (page->wanted > page->count)
		page->wanted = page->count;
	return (page->wanted - before) * pager->unit_bytes;
}

/* Makes every page busy and notes those that are missing. Lock held. */
static int collect(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, struct need *need)
{
	struct ts_cursor cursor = ts_cursor_at(ranges, count);
	struct ts_page *page;

	*need = (struct need){0};
	pager->missing.count = 0;
	pager->slow_number++;
	while ((page = ts_cursor_next(pager, &cursor))) {
		hold(pager, page);
		need->held++;
		if (page->mark != pager->slow_number)
			page->wanted = 0;
		need->least += want(pager, page, cursor.range);
		if (page->mark == pager->slow_number)
			continue;
		page->mark = pager->slow_number;
		need->bytes += page->bytes;
		need->large |= page->count > 1;
		if (page->resident)
			continue;
		if (ts_pages_add(&pager->missing, page))
			return -ENOMEM;
	}
	return 0;
}

/* Undoes what collect held. Lock held. */
static void release(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, size_t held)
{
	struct ts_cursor cursor = ts_cursor_at(ranges, count);

	while (held--)
		let_go(pager, ts_cursor_next(pager, &cursor));
	pthread_cond_broadcast(&pager->idle);
}

/* What stays beside the pages that have the mark @mark. */
static uint64_t pinned_beside(const struct ts_list *list, uint64_t mark)
{
	uint64_t bytes = 0;

	for (const struct ts_list *at = list->next; at != list; at = at->next) {
		const struct ts_page *page =
		        ts_container_of(at, struct ts_page, list);

		if (page->pins && page->mark != mark)
			bytes += page->bytes;
	}
	return bytes;
}

/* Likewise all that has content, and is not free for whoever comes. */
static uint64_t kept_beside(
        struct ts_pager *pager, const struct ts_list *list, uint64_t mark)
{
	uint64_t bytes = 0;

	for (const struct ts_list *at = list->next; at != list; at = at->next) {
		const struct ts_page *page =
		        ts_container_of(at, struct ts_page, list);

		if (page->mark != mark &&
		        (page->live_units || page->pins ||
		                !ts_streams_done(
		                        &pager->streams, page->fence.op)))
			bytes += page->bytes;
	}
	return bytes;
}

/*
 * What had to leave before the capture would be missing in it as well: with
 * less than all some may have to.
 */
static uint64_t least_to_capture(
        struct ts_pager *pager, uint64_t need_bytes, uint64_t mark)
{
	return pager->other_bytes + need_bytes +
	       kept_beside(pager, &pager->used, mark) +
	       kept_beside(pager, &pager->spare, mark) +
	       kept_beside(pager, &pager->away, mark);
}

void ts_pager_describe(const struct ts_pager *pager, uint64_t need_bytes,
        uint64_t mark, struct ts_shortage *shortage)
{
	uint64_t period = atomic_load(&pager->foresee.period);

	shortage->need_bytes = need_bytes;
	shortage->other_bytes = pager->other_bytes;
	shortage->limit_bytes = pager->account.limit_bytes;
	shortage->device_bytes = pager->account.total_bytes;
	shortage->least_limit_bytes =
	        pager->other_bytes + pinned_beside(&pager->used, mark) +
	        pinned_beside(&pager->spare, mark) +
	        (need_bytes > pager->most_bytes ? need_bytes
	                                        : pager->most_bytes);
	shortage->whole_step = period && pager->op_number > period;
}

bool ts_pager_could_hold(
        struct ts_pager *pager, const struct ts_range *ranges, size_t count)
{
	struct ts_cursor cursor = ts_cursor_at(ranges, count);
	struct ts_page *page;
	uint64_t bytes = 0;
	bool fits;

	ts_mutex_lock(&pager->gate);
	ts_mutex_lock(&pager->lock);
	pager->slow_number++;
	while ((page = ts_cursor_next(pager, &cursor))) {
		if (page->mark != pager->slow_number)
			page->wanted = 0;
		page->mark = pager->slow_number;
		bytes += want(pager, page, cursor.range);
	}
	bytes += pager->other_bytes +
	         pinned_beside(&pager->used, pager->slow_number) +
	         pinned_beside(&pager->spare, pager->slow_number);
	fits = bytes <= pager->account.limit_bytes;
	ts_mutex_unlock(&pager->lock);
	ts_mutex_unlock(&pager->gate);
	return fits;
}

static int bring_missing(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, unsigned int flags, struct ts_shortage *ret_shortage)
{
	struct need need = {0};
	int rc = ts_pager_cut(pager, ranges, count, ret_shortage);

	if (!rc)
		rc = collect(pager, ranges, count, &need);
	if (!rc && pager->enforce && flags & TS_BEGIN_BY_PLAN &&
	        !(flags & TS_BEGIN_ANY_CAPTURE))
		ts_enforce_make_way(pager, ranges, count);
	/* Again where the device turns out to be fuller than it says. */
	do {
		if (!rc || rc == -EAGAIN)
			rc = ts_pager_gather(pager, &pager->missing, need.held,
			        flags, ret_shortage);
		if (!rc)
			rc = ts_pager_bring(
			        pager, &pager->missing, flags, ret_shortage);
	} while (rc == -EAGAIN && !(flags & TS_BEGIN_NO_EVICT));
	if (!rc) {
		/* All of an allocation need not be there at once. */
		if (!(flags & TS_BEGIN_NO_EVICT) &&
		        need.least > pager->most_bytes)
			pager->most_bytes = need.least;
		return 0;
	}
	release(pager, ranges, count, need.held);
	ts_pager_describe(pager, need.bytes, pager->slow_number, ret_shortage);
	if (flags & TS_BEGIN_CAPTURING)
		ret_shortage->least_limit_bytes =
		        least_to_capture(pager, need.bytes, pager->slow_number);
	/* With smaller pages less would be needed. */
	if (rc == -ENOMEM && ret_shortage->short_of == TS_SHORT_OF_DEVICE &&
	        need.large)
		return -ERANGE;
	return rc;
}

/*
 * The op's pages together do not fit, but they hold more than its blocks: all
 * goes out, and comes back unit by unit, now and later.
 */
static int begin_small(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, unsigned int flags, struct ts_shortage *ret_shortage)
{
	uint64_t taken;
	int rc;

	pager->page_bytes = pager->unit_bytes;
	rc = ts_pager_take_pages(pager, &(struct ts_take){UINT64_MAX, NULL, 0},
	        flags, &taken, ret_shortage);
	if (!rc)
		rc = bring_missing(pager, ranges, count, flags, ret_shortage);
	return rc == -ERANGE ? -ENOMEM : rc;
}

/* With something missing: moves, as the only mover. Gate and lock held. */
static int begin_missing(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, unsigned int flags, struct ts_fence *fence,
        struct ts_shortage *ret_shortage)
{
	int rc = bring_missing(pager, ranges, count, flags, ret_shortage);

	if (rc == -ERANGE)
		rc = begin_small(pager, ranges, count, flags, ret_shortage);
	if (!rc)
		touch_all(pager, ranges, count, flags, fence);
	return rc;
}

/* What this thread's own stream waits for: threads' streams have one key. */
static __thread struct {
	uint64_t life;
	ts_stream_key key;
	struct ts_fence waits;
} own_stream __attribute__((tls_model("initial-exec")));

/* What the stream waits for already; NULL: nobody knows. Lock held. */
static struct ts_fence *waits_of(struct ts_pager *pager, ts_stream_key key)
{
	struct ts_stream *entry = ts_streams_entry(&pager->streams, key);

	if (!(key & TS_STREAM_PER_THREAD))
		return entry ? &entry->waits : NULL;
	if (own_stream.life != pager->life || own_stream.key != key) {
		own_stream.life = pager->life;
		own_stream.key = key;
		own_stream.waits = (struct ts_fence){0};
	}
	return &own_stream.waits;
}

/* Takes what the stream waits for already off @fence. */
static void less_known(struct ts_pager *pager, ts_stream_key key,
        const struct ts_fence *fence, struct ts_fence *rest)
{
	const struct ts_fence *waits = waits_of(pager, key);

	*rest = *fence;
	if (!waits)
		return;
	if (rest->op <= waits->op)
		rest->op = 0;
	if (rest->out <= waits->out)
		rest->out = 0;
	if (rest->in <= waits->in)
		rest->in = 0;
}

static CUresult order(
        struct ts_pager *pager, ts_stream_key stream, struct ts_fence fence)
{
	CUstream handle = ts_stream_handle(stream);
	CUcontext context = NULL;
	struct ts_fence rest, *waits;
	CUresult rc = CUDA_SUCCESS;
	ts_stream_key key;

	if (!ts_stream_is_in(stream))
		pager->ops->ctx_get_current(&context);
	key = ts_stream_in(stream, context);
	ts_mutex_lock(&pager->lock);
	less_known(pager, key, &fence, &rest);
	if (rest.op)
		rc = ts_streams_order(
		        &pager->streams, rest.op, key, handle, &pager->lock);
	ts_mutex_unlock(&pager->lock);
	if (rc == CUDA_SUCCESS && rest.out)
		rc = ts_copyq_order(&pager->out, rest.out, handle);
	if (rc == CUDA_SUCCESS && rest.in)
		rc = ts_copyq_order(&pager->in, rest.in, handle);
	if (rc != CUDA_SUCCESS)
		return rc;
	ts_mutex_lock(&pager->lock);
	waits = waits_of(pager, key);
	if (waits)
		ts_fence_join(waits, &rest);
	ts_mutex_unlock(&pager->lock);
	return rc;
}

/* The pages are held: what the next op of @stream must come after. */
static CUresult come_after(struct ts_pager *pager, unsigned int flags,
        ts_stream_key stream, const struct ts_fence *fence)
{
	CUstreamCaptureMode mode;
	CUresult rc;
	bool entered;

	if (!(flags & TS_BEGIN_ANY_CAPTURE) && stream != TS_STREAM_HOST &&
	        order(pager, stream, *fence) == CUDA_SUCCESS)
		return CUDA_SUCCESS;
	/* What goes into a graph, or no event can order. */
	entered = ts_pager_enter_moving(pager, flags, &mode);
	ts_mutex_lock(&pager->lock);
	rc = ts_pager_wait_fence(pager, fence);
	ts_mutex_unlock(&pager->lock);
	ts_pager_leave_moving(pager, flags, mode, entered);
	return rc;
}

static int begin_slowly(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, unsigned int flags, struct ts_fence *fence,
        uint64_t *ret_in_bytes, uint64_t *ret_out_bytes,
        struct ts_shortage *ret_shortage)
{
	CUstreamCaptureMode mode;
	uint64_t in, out;
	bool entered;
	int rc;

	*ret_shortage = (struct ts_shortage){0};
	ts_mutex_lock(&pager->gate);
	entered = ts_pager_enter_moving(pager, flags, &mode);
	ts_mutex_lock(&pager->lock);
	in = pager->stats.in_bytes;
	out = pager->stats.out_bytes;
	rc = begin_missing(pager, ranges, count, flags, fence, ret_shortage);
	*ret_in_bytes += pager->stats.in_bytes - in;
	*ret_out_bytes += pager->stats.out_bytes - out;
	ts_mutex_unlock(&pager->lock);
	ts_pager_leave_moving(pager, flags, mode, entered);
	ts_mutex_unlock(&pager->gate);
	return rc;
}

int ts_pager_begin(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, unsigned int flags, ts_stream_key stream,
        uint64_t *ret_in_bytes, uint64_t *ret_out_bytes,
        struct ts_shortage *ret_shortage)
{
	struct ts_fence fence = {0};
	CUresult result;
	int rc = 0;

	ts_mutex_lock(&pager->lock);
	pager->captures = flags & TS_BEGIN_ANY_CAPTURE;
	if (pager->captures)
		pager->near_capture = 0;
	if (!begin_resident(pager, ranges, count, flags, &fence))
		rc = -EAGAIN;
	/* Of most ops the stream waits for all that already. */
	else if (!pager->captures && stream != TS_STREAM_HOST &&
	         ts_stream_is_in(stream))
		less_known(pager, stream, &fence, &fence);
	ts_mutex_unlock(&pager->lock);
	if (rc)
		rc = begin_slowly(pager, ranges, count, flags, &fence,
		        ret_in_bytes, ret_out_bytes, ret_shortage);
	if (rc || flags & TS_BEGIN_NO_EVICT ||
	        !(fence.op || fence.out || fence.in))
		return rc;
	result = come_after(pager, flags, stream, &fence);
	if (result == CUDA_SUCCESS)
		return 0;
	ts_pager_end(pager, ranges, count, stream, false);
	*ret_shortage = (struct ts_shortage){0};
	ts_short_of_driver(ret_shortage, result);
	return ts_gpu_errno(result);
}

void ts_pager_end(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, ts_stream_key stream, bool issued)
{
	struct ts_cursor cursor = ts_cursor_at(ranges, count);
	bool noted = true, mark = false;
	unsigned int chores = 0;
	struct ts_page *page;
	uint64_t number;

	ts_mutex_lock(&pager->lock);
	number = issued ? ++pager->op_number : 0;
	while ((page = ts_cursor_next(pager, &cursor))) {
		let_go(pager, page);
		if (issued)
			page->fence.op = number;
	}
	if (issued) {
		noted = !ts_streams_issued(&pager->streams, stream, number);
		mark = ts_streams_mark_due(&pager->streams, stream);
		chores = ts_pager_chores(pager);
	}
	pthread_cond_broadcast(&pager->idle);
	ts_mutex_unlock(&pager->lock);
	/* Nobody could wait for it later. */
	if (!noted)
		pager->ops->ctx_synchronize();
	else if (mark)
		ts_streams_mark(&pager->streams, stream, number, &pager->lock);
	if (chores)
		ts_helper_ask(&pager->helper, chores);
}

bool ts_pager_pin(
        struct ts_pager *pager, const struct ts_range *range, enum ts_pin pin)
{
	struct ts_cursor cursor = ts_cursor_at(range, 1);
	struct ts_page *page;
	bool is_new = false;

	ts_mutex_lock(&pager->lock);
	while ((page = ts_cursor_next(pager, &cursor))) {
		ts_assert(page->busy);
		is_new |= !(page->pins & pin);
		page->pins |= pin;
	}
	ts_mutex_unlock(&pager->lock);
	return is_new;
}

static uint64_t unpin_captured(struct ts_pager *pager, struct ts_list *list)
{
	uint64_t bytes = 0;

	for (struct ts_list *at = list->next; at != list; at = at->next) {
		struct ts_page *page =
		        ts_container_of(at, struct ts_page, list);

		if (!(page->pins & TS_PIN_CAPTURED))
			continue;
		page->pins &= ~TS_PIN_CAPTURED;
		/* What a graph wrote nobody saw. */
		page->written = page->live_units != 0;
		page->fence.op = pager->op_number;
		bytes += page->bytes;
	}
	return bytes;
}

uint64_t ts_pager_unpin_captured(struct ts_pager *pager)
{
	uint64_t bytes;

	ts_mutex_lock(&pager->lock);
	bytes = unpin_captured(pager, &pager->used) +
	        unpin_captured(pager, &pager->spare);
	ts_mutex_unlock(&pager->lock);
	return bytes;
}
