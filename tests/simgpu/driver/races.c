/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Races: two operations touch the same physical memory, one of them writes, and
 * nothing that the program asked for puts one before the other. Every chunk and
 * every range of page-locked memory has a history: intervals with the accesses
 * that later ones must come after. An access is dropped when a write comes
 * after it, when the same stream reads again, or when the host knows that it is
 * done; so a history stays as small as the memory's division into blocks.
 *
 * Both accesses declared: a race; one of them only guessed (an unknown
 * kernel's): a possible race. The host's accesses are seen where the content of
 * page-locked memory is made on first touch (content_host.c).
 *
 * Guarded by the lock; the queue of touches by a mutex of its own, under which
 * nothing else is taken.
 */
#include "tests/simgpu/driver/races.h"
#include "tests/simgpu/driver/memory.h"
#include "tests/simgpu/driver/mutate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXTS     100
#define TOUCHES   4096
#define SWEEP_MIN 512 /* intervals before done accesses are looked for */
#define INLINE    2

/* An op, as long as a record names it. */
struct who {
	unsigned refs;
	struct sg_moment moment;
	uint64_t seq, stream;
	enum sg_op_kind kind;
	const char *name; /* of a kernel: lives as long as the process */
};
struct record {
	struct who *who;
	uint64_t va; /* as it named the first byte of the interval */
	bool write, certain;
};
struct interval {
	struct sg_range range; /* offsets in the memory */
	unsigned n, cap;       /* cap 0: they lie in few */
	struct record *many;
	struct record few[INLINE];
};
struct history {
	struct sg_ranges intervals;
	unsigned count, sweep_at;
};

/* --------------------------------------------------------------- intervals */

static struct interval *interval_of(struct sg_range *range)
{
	return range ? sg_range_entry(range, struct interval, range) : NULL;
}

static struct record *records(struct interval *interval)
{
	return interval->cap ? interval->many : interval->few;
}

static void who_unref(struct who *who)
{
	if (--who->refs == 0)
		free(who);
}

static void record_add(struct interval *interval, struct record record)
{
	unsigned cap = interval->cap ? interval->cap : INLINE;

	if (interval->n == cap) {
		struct record *more = interval->cap ? interval->many : NULL;

		more = sg_xrealloc(more, 2 * cap * sizeof(*more));
		if (!interval->cap)
			memcpy(more, interval->few, sizeof(interval->few));
		interval->many = more;
		interval->cap = 2 * cap;
	}
	records(interval)[interval->n++] = record;
	record.who->refs++;
}

static void record_remove(struct interval *interval, unsigned i)
{
	struct record *all = records(interval);

	who_unref(all[i].who);
	all[i] = all[--interval->n];
}

static struct interval *interval_add(
        struct history *history, uint64_t start, uint64_t bytes)
{
	struct interval *interval = sg_xcalloc(1, sizeof(*interval));

	interval->range.start = start;
	interval->range.bytes = bytes;
	sg_ranges_insert(&history->intervals, &interval->range);
	history->count++;
	return interval;
}

static void interval_free(struct history *history, struct interval *interval)
{
	sg_ranges_remove(&history->intervals, &interval->range);
	history->count--;
	while (interval->n)
		record_remove(interval, interval->n - 1);
	if (interval->cap)
		free(interval->many);
	free(interval);
}

static void resize(
        struct history *history, struct interval *interval, uint64_t bytes)
{
	sg_ranges_remove(&history->intervals, &interval->range);
	interval->range.bytes = bytes;
	sg_ranges_insert(&history->intervals, &interval->range);
}

/* Cuts interval at an offset inside it; returns the part behind. */
static struct interval *split(
        struct history *history, struct interval *interval, uint64_t at)
{
	uint64_t first = at - interval->range.start;
	uint64_t rest = interval->range.bytes - first;
	struct interval *behind;

	resize(history, interval, first);
	behind = interval_add(history, at, rest);
	for (unsigned i = 0; i < interval->n; i++) {
		struct record record = records(interval)[i];

		record.va += first;
		record_add(behind, record);
	}
	return behind;
}

static bool continues(struct interval *a, struct interval *b)
{
	if (a->range.start + a->range.bytes != b->range.start || a->n != b->n)
		return false;
	for (unsigned i = 0; i < a->n; i++) {
		const struct record *x = &records(a)[i], *y = &records(b)[i];

		if (x->who != y->who || x->write != y->write ||
		        x->certain != y->certain ||
		        x->va + a->range.bytes != y->va)
			return false;
	}
	return true;
}

/* Joins interval to the one before it if they say the same. */
static struct interval *merge(
        struct history *history, struct interval *interval)
{
	struct interval *before;
	uint64_t bytes;

	if (!interval->range.start)
		return interval;
	before = interval_of(
	        sg_ranges_at(&history->intervals, interval->range.start - 1));
	if (!before || !continues(before, interval))
		return interval;
	bytes = before->range.bytes + interval->range.bytes;
	interval_free(history, interval);
	resize(history, before, bytes);
	return before;
}

/* Forgets what the host knows to be done. */
static void sweep(struct history *history)
{
	struct sg_range *range = sg_ranges_ceil(&history->intervals, 0);

	while (range) {
		struct interval *interval = interval_of(range);
		uint64_t next = range->start + range->bytes;

		for (unsigned i = interval->n; i-- > 0;) {
			if (sg_clock_host_covers(
			            records(interval)[i].who->moment))
				record_remove(interval, i);
		}
		if (!interval->n)
			interval_free(history, interval);
		range = sg_ranges_ceil(&history->intervals, next);
	}
	history->sweep_at = 2 * history->count;
	if (history->sweep_at < SWEEP_MIN)
		history->sweep_at = SWEEP_MIN;
}

void sg_races_forget(void **place)
{
	struct history *history = *place;
	struct sg_range *range;

	if (!history)
		return;
	while ((range = sg_ranges_ceil(&history->intervals, 0)))
		interval_free(history, interval_of(range));
	free(history);
	*place = NULL;
}

static struct history *history_of(void **place)
{
	if (!*place) {
		struct history *history = sg_xcalloc(1, sizeof(*history));

		history->sweep_at = SWEEP_MIN;
		*place = history;
	}
	return *place;
}

/* --------------------------------------------------------------- reporting */

static struct {
	const struct sg_device *dev;
	char *text;
} texts[TEXTS];
static unsigned n_texts;

const char *sg_race_text(const struct sg_device *dev, unsigned i)
{
	for (unsigned t = 0; t < n_texts; t++) {
		if (texts[t].dev == dev && i-- == 0)
			return texts[t].text;
	}
	return NULL;
}

static void keep_text(struct sg_device *dev, bool certain, const char *first,
        const char *second)
{
	char text[1200];

	if (certain)
		dev->count.races++;
	else
		dev->count.possible_races++;
	if (n_texts == TEXTS)
		return;
	snprintf(text, sizeof(text), "%s: %s; no order with: %s",
	        certain ? "race" : "possible race", second, first);
	if (certain || sg_settings.verbose)
		sg_say("%s on device %d", text, dev->ordinal);
	texts[n_texts].dev = dev;
	texts[n_texts++].text = sg_xstrdup(text);
}

static void describe(
        const struct record *record, uint64_t bytes, char *text, size_t size)
{
	const struct who *who = record->who;

	snprintf(text, size,
	        "%.400s (operation %llu, stream %llu) %s%s 0x%llx+0x%llx",
	        sg_op_title(who->kind, who->name), (unsigned long long)who->seq,
	        (unsigned long long)who->stream,
	        record->certain ? "" : "perhaps ",
	        record->write ? "writes" : "reads",
	        (unsigned long long)record->va, (unsigned long long)bytes);
}

/* ------------------------------------------------------------------- checks */

/* The op under check and whom it has been reported with. */
struct check {
	struct sg_op *op;
	struct who *who;
	const struct sg_access *access;
	uint64_t *reported; /* by seq, certain ones with the lowest bit */
	unsigned n_reported, cap_reported;
};
static struct check check; /* its array is used again */

/* One pair of ops counts once. */
static bool first_report(uint64_t seq, bool certain)
{
	uint64_t key = seq << 1 | certain;

	for (unsigned i = 0; i < check.n_reported; i++) {
		if (check.reported[i] == key)
			return false;
	}
	if (check.n_reported == check.cap_reported) {
		check.cap_reported = 2 * check.cap_reported + 8;
		check.reported = sg_xrealloc(check.reported,
		        check.cap_reported * sizeof(*check.reported));
	}
	check.reported[check.n_reported++] = key;
	return true;
}

static void report(const struct interval *interval, const struct record *before,
        const struct record *now)
{
	bool certain = before->certain && now->certain;
	char first[512], second[512];

	if (!first_report(before->who->seq, certain))
		return;
	describe(before, interval->range.bytes, first, sizeof(first));
	describe(now, interval->range.bytes, second, sizeof(second));
	keep_text(check.op->dev, certain, first, second);
}

/* Does the new access stand for the older one from now on? */
static bool replaces(const struct record *now, const struct record *before)
{
	if (before->certain && !now->certain)
		return false;
	/* Unmapping one address asks for accesses through that one. */
	if (before->va != now->va)
		return false;
	return now->write ||
	       (!before->write && before->who->moment.component ==
	                                  now->who->moment.component);
}

static void touch(struct interval *interval, struct record now)
{
	for (unsigned i = interval->n; i-- > 0;) {
		const struct record *before = &records(interval)[i];

		if (!sg_clock_covers(check.op, before->who->moment)) {
			if (before->write || now.write)
				report(interval, before, &now);
		} else if (sg_clock_host_covers(before->who->moment) ||
		           replaces(&now, before)) {
			record_remove(interval, i);
		}
	}
	record_add(interval, now);
}

static void touch_stretch(void *arg, struct sg_place *place, uint64_t offset,
        uint64_t va, uint64_t bytes)
{
	struct history *history = history_of(place->races);
	uint64_t at = offset, end = offset + bytes;

	while (at < end) {
		struct record now = {check.who, va + (at - offset),
		        check.access->write, check.access->certain};
		struct interval *interval =
		        interval_of(sg_ranges_at(&history->intervals, at));

		if (!interval) {
			struct sg_range *next =
			        sg_ranges_ceil(&history->intervals, at);
			uint64_t stop =
			        next && next->start < end ? next->start : end;

			interval = interval_add(history, at, stop - at);
		}
		if (interval->range.start < at)
			interval = split(history, interval, at);
		if (interval->range.start + interval->range.bytes > end)
			split(history, interval, end);
		at = interval->range.start + interval->range.bytes;
		touch(interval, now);
		merge(history, interval);
	}
	if (history->count > history->sweep_at)
		sweep(history);
}

void sg_stretches(uint64_t va, uint64_t bytes, sg_stretch_fn fn, void *arg)
{
	while (bytes) {
		struct sg_mapping *mapping = NULL;
		struct sg_host *host = NULL;
		uint64_t end, n;

		if (sg_is_device_va(va)) {
			mapping = sg_mapping_at(va);
			end = mapping ? mapping->va + mapping->bytes
			              : (va | (SG_PAGE_BYTES - 1)) + 1;
		} else {
			host = sg_host_at(va);
			if (!host)
				return;
			end = host->range.start + host->range.bytes;
		}
		n = bytes < end - va ? bytes : end - va;
		if (mapping)
			fn(arg,
			        &(struct sg_place){&mapping->chunk->races,
			                &mapping->chunk->taint},
			        va - mapping->va, va, n);
		else if (host)
			fn(arg, &(struct sg_place){&host->races, &host->taint},
			        va - host->range.start, va, n);
		va += n;
		bytes -= n;
	}
}

void sg_races_check(struct sg_op *op)
{
	struct who *who;

	/* Markers only write words that are there to be waited for. */
	if (!op->n_accesses || op->kind == SG_OP_MARKER)
		return;
	who = sg_xcalloc(1, sizeof(*who));
	*who = (struct who){
	        .refs = 1,
	        .moment = sg_clock_moment(op),
	        .seq = op->seq,
	        .stream = op->stream->h.id,
	        .kind = op->kind,
	        .name = op->name,
	};
	check.op = op;
	check.who = who;
	check.n_reported = 0;
	for (unsigned i = 0; i < op->n_accesses; i++) {
		check.access = &op->accesses[i];
		sg_stretches(check.access->va, check.access->bytes,
		        touch_stretch, NULL);
	}
	who_unref(who);
}

/* -------------------------------------------------- memory that goes or comes
 */

/* An address range that is about to end: after op, or as soon as the host gets
 * to it. */
struct ending {
	struct sg_device *dev;
	const struct sg_op *op;
	const char *what;
	uint64_t va, bytes;
};

static bool over(const struct ending *ending, struct sg_moment moment)
{
	return ending->op ? sg_clock_covers(ending->op, moment)
	                  : sg_clock_host_covers(moment);
}

static void judge_ending(const struct ending *ending,
        const struct interval *interval, const struct record *before)
{
	char first[512], second[128];

	/* Through another address it may go on. */
	if (before->va - ending->va >= ending->bytes ||
	        over(ending, before->who->moment) ||
	        !first_report(before->who->seq, before->certain))
		return;
	describe(before, interval->range.bytes, first, sizeof(first));
	snprintf(second, sizeof(second), "%s of 0x%llx+0x%llx", ending->what,
	        (unsigned long long)ending->va,
	        (unsigned long long)ending->bytes);
	keep_text(ending->dev, before->certain, first, second);
}

static void end_stretch(void *arg, struct sg_place *place, uint64_t offset,
        uint64_t va, uint64_t bytes)
{
	struct history *history = *place->races;
	uint64_t end = offset + bytes;
	struct sg_range *range = NULL;

	if (history)
		range = sg_ranges_overlap(&history->intervals, offset, bytes);
	while (range && range->start < end) {
		struct interval *interval = interval_of(range);

		for (unsigned i = 0; i < interval->n; i++)
			judge_ending(arg, interval, &records(interval)[i]);
		range = sg_ranges_ceil(
		        &history->intervals, range->start + range->bytes);
	}
}

void sg_races_ending(struct sg_device *dev, const struct sg_op *op, uint64_t va,
        uint64_t bytes, const char *what)
{
	struct ending ending = {dev, op, what, va, bytes};

	check.n_reported = 0;
	sg_stretches(va, bytes, end_stretch, &ending);
}

static void settle_stretch(void *arg, struct sg_place *place, uint64_t offset,
        uint64_t va, uint64_t bytes)
{
	struct history *history = *place->races;
	uint64_t end = offset + bytes;
	struct sg_range *range;

	while (history && (range = sg_ranges_overlap(
	                           &history->intervals, offset, bytes))) {
		struct interval *interval = interval_of(range);

		if (range->start < offset)
			interval = split(history, interval, offset);
		if (interval->range.start + interval->range.bytes > end)
			split(history, interval, end);
		interval_free(history, interval);
	}
}

void sg_races_settled(uint64_t va, uint64_t bytes)
{
	sg_stretches(va, bytes, settle_stretch, NULL);
}

/* ------------------------------------------------------- touches by the host
 */

static pthread_mutex_t touch_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint64_t va, bytes;
} touches[TOUCHES];
static atomic_uint n_touches; /* written under touch_mutex */
static bool touches_lost;     /* guarded by touch_mutex */

void sg_races_touched(uint64_t va, uint64_t bytes)
{
	unsigned n;

	pthread_mutex_lock(&touch_mutex);
	n = atomic_load(&n_touches);
	if (n && touches[n - 1].va + touches[n - 1].bytes == va) {
		touches[n - 1].bytes += bytes;
	} else if (n == TOUCHES) {
		touches_lost = true;
	} else {
		touches[n].va = va;
		touches[n].bytes = bytes;
		atomic_store(&n_touches, n + 1);
	}
	pthread_mutex_unlock(&touch_mutex);
}

static void judge(struct interval *interval, uint64_t va, uint64_t bytes)
{
	for (unsigned i = 0; i < interval->n; i++) {
		const struct record *before = &records(interval)[i];
		char first[512], second[128];

		if (!before->write || sg_clock_host_covers(before->who->moment))
			continue;
		describe(before, interval->range.bytes, first, sizeof(first));
		snprintf(second, sizeof(second),
		        "the host touches 0x%llx+0x%llx",
		        (unsigned long long)va, (unsigned long long)bytes);
		keep_text(&sg_devices[0], before->certain, first, second);
		/* Once for each copy. */
		record_remove(interval, i--);
	}
}

static void judge_stretch(void *arg, struct sg_place *place, uint64_t offset,
        uint64_t va, uint64_t bytes)
{
	struct history *history = *place->races;
	struct sg_range *range;

	if (!history)
		return;
	while (bytes && (range = sg_ranges_overlap(
	                         &history->intervals, offset, bytes))) {
		uint64_t end = range->start + range->bytes;
		uint64_t step = end < offset + bytes ? end - offset : bytes;

		judge(interval_of(range), va, bytes);
		offset += step;
		va += step;
		bytes -= step;
	}
}

void sg_races_judge_touches(void)
{
	if (!atomic_load_explicit(&n_touches, memory_order_relaxed))
		return;
	pthread_mutex_lock(&touch_mutex);
	for (unsigned i = 0; i < atomic_load(&n_touches); i++) {
		sg_stretches(
		        touches[i].va, touches[i].bytes, judge_stretch, NULL);
		sg_taint_touched(touches[i].va, touches[i].bytes);
	}
	if (touches_lost)
		sg_taint_touches_lost();
	touches_lost = false;
	atomic_store(&n_touches, 0);
	pthread_mutex_unlock(&touch_mutex);
}
