/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the helper does for the pager, or who asks it where there is none. */
#include <errno.h>

#include "runtime/pager_internal.h"

/* Ops between two looks at what can be done ahead. */
#define AHEAD_INTERVAL 8
/* A plan does that itself: of so many looks one, at what is done. */
#define PLAN_LOOKS 8

/* Host memory that shall be free to take, as a part of the limit. */
#define HOST_RESERVE 32

static size_t reserve_slots(const struct ts_pager *pager)
{
	return pager->account.limit_bytes / HOST_RESERVE / pager->unit_bytes +
	       1;
}

/* Only where something was moved before, and the driver still pins. */
static bool short_of_slots(const struct ts_pager *pager)
{
	const struct ts_hostpool *host = &pager->host;

	return host->pinned_bytes && !host->plain_bytes &&
	       !pager->pins_no_more &&
	       host->free_slots < reserve_slots(pager) &&
	       host->pinned_bytes + host->slot_bytes <= host->limit_bytes;
}

static bool may_capture(const struct ts_pager *pager)
{
	return pager->captures || pager->op_number < pager->near_capture;
}

unsigned int ts_pager_chores(struct ts_pager *pager)
{
	unsigned int what = 0;

	if (!pager->streams.marks || may_capture(pager) ||
	        ++pager->since_ahead < AHEAD_INTERVAL)
		return 0;
	pager->since_ahead = 0;
	if (short_of_slots(pager))
		what |= TS_HELP_PIN;
	if (pager->enforce && ++pager->looks % PLAN_LOOKS)
		return what;
	if (atomic_load(&pager->foresee.period))
		what |= TS_HELP_AHEAD;
	return what;
}

/* With `pinning`, under which the pager's context stays what it is. */
static int grow_host(struct ts_pager *pager, size_t slots, bool plain)
{
	struct ts_hostslab *slab;
	int rc = 0;

	ts_mutex_lock(&pager->lock);
	/* Another thread may just have done it. */
	if (slots <= pager->host.free_slots)
		goto out;
	ts_mutex_unlock(&pager->lock);
	rc = ts_hostpool_grow(&pager->host, plain, &slab);
	ts_mutex_lock(&pager->lock);
	if (!rc)
		ts_hostpool_add(&pager->host, slab);
	pager->pins_no_more = rc && !plain;
out:
	ts_mutex_unlock(&pager->lock);
	return rc;
}

int ts_pager_grow_host(struct ts_pager *pager, size_t slots, bool plain)
{
	int rc;

	ts_mutex_lock(&pager->pinning);
	rc = grow_host(pager, slots, plain);
	ts_mutex_unlock(&pager->pinning);
	return rc;
}

static void pin(struct ts_pager *pager)
{
	CUstreamCaptureMode mode;
	size_t slots;
	bool entered;

	ts_mutex_lock(&pager->lock);
	slots = short_of_slots(pager) ? reserve_slots(pager) : 0;
	ts_mutex_unlock(&pager->lock);
	if (!slots)
		return;
	ts_mutex_lock(&pager->pinning);
	entered = ts_pager_enter_moving(pager, TS_BEGIN_BESIDE_CAPTURE, &mode);
	grow_host(pager, slots, false);
	ts_pager_leave_moving(pager, TS_BEGIN_BESIDE_CAPTURE, mode, entered);
	ts_mutex_unlock(&pager->pinning);
}

/* As the mover, unless another thread is it: it is soon asked for again. */
static void move(struct ts_pager *pager)
{
	bool entered;

	if (!ts_mutex_try_lock(&pager->gate))
		return;
	entered = ts_pager_enter_context(pager);
	ts_mutex_lock(&pager->lock);
	if (!may_capture(pager))
		ts_pager_ahead(pager);
	ts_mutex_unlock(&pager->lock);
	ts_pager_leave_context(pager, entered);
	ts_mutex_unlock(&pager->gate);
}

void ts_pager_help(void *data, unsigned int what)
{
	struct ts_pager *pager = data;

	if (what & TS_HELP_PIN)
		pin(pager);
	if (what & TS_HELP_AHEAD)
		move(pager);
}
