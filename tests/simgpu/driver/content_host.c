/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Content of host memory. Page-locked memory remembers what was copied into
 * it. Large copies into memory of our own leave its pages missing: their bytes
 * are made when somebody touches them (userfaultfd, a thread of ours), so that
 * memory which only goes out and in again costs nothing. On the way back,
 * untouched pages and unchanged bytes carry the same content; changed bytes
 * are new content.
 *
 * Maps are changed under sg_lock and the host lock; the thread takes only the
 * host lock, which is never held while memory is touched that may be missing.
 * A forked child has no such thread: there missing pages are zeros.
 */
#include "tests/simgpu/driver/content.h"
#include "tests/simgpu/driver/mutate.h"
#include "tests/simgpu/driver/races.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE_BYTES     ((uint64_t)4096)
#define GRANULE_PAGES  16 /* made at once */
#define LAZY_MIN_BYTES ((uint64_t)64 << 10)
#define COMPARE_BYTES  ((uint64_t)64 << 10)

static pthread_mutex_t host_lock = PTHREAD_MUTEX_INITIALIZER;
static int fault_fd = -1;
static bool fault_tried;
/* Guarded by host_lock. */
static unsigned char granule[GRANULE_PAGES * PAGE_BYTES]
        __attribute__((aligned(4096)));

void sg_host_lock(void)
{
	pthread_mutex_lock(&host_lock);
}

void sg_host_unlock(void)
{
	pthread_mutex_unlock(&host_lock);
}

/* ----------------------------------------------------------- missing pages */

static bool is_lazy(const struct sg_host *host, uint64_t page)
{
	return host->lazy && host->lazy[page / 64] >> (page % 64) & 1;
}

static void set_lazy(struct sg_host *host, uint64_t page, bool lazy)
{
	uint64_t bit = (uint64_t)1 << (page % 64);

	if (lazy)
		host->lazy[page / 64] |= bit;
	else
		host->lazy[page / 64] &= ~bit;
}

struct making {
	uint64_t at; /* of the granule, in the host range */
};

static void make_piece(
        void *arg, uint64_t at, uint64_t n, const struct sg_piece *piece)
{
	const struct making *making = arg;

	sg_piece_bytes(piece, 0, n, granule + (at - making->at));
}

/* Makes a run of missing pages, at most a granule. Host lock held. */
static void make_run(struct sg_host *host, uint64_t page, uint64_t n)
{
	struct making making = {.at = page * PAGE_BYTES};
	struct uffdio_copy copy = {
	        .dst = host->range.start + page * PAGE_BYTES,
	        .src = (uintptr_t)granule,
	        .len = n * PAGE_BYTES,
	};
	uint64_t bytes = n * PAGE_BYTES;

	memset(granule, 0, bytes);
	if (bytes > host->range.bytes - making.at)
		bytes = host->range.bytes - making.at;
	sg_map_each(&host->content, making.at, bytes, make_piece, &making);
	while (copy.len && ioctl(fault_fd, UFFDIO_COPY, &copy) != 0 &&
	        errno == EAGAIN) {
		uint64_t done = copy.copy > 0 ? (uint64_t)copy.copy : 0;

		copy.dst += done;
		copy.src += done;
		copy.len -= done;
		copy.copy = 0;
	}
	for (uint64_t i = 0; i < n; i++)
		set_lazy(host, page + i, false);
}

/* Makes what is missing of pages [first, end). Host lock held. */
static void make_pages(struct sg_host *host, uint64_t first, uint64_t end)
{
	while (first < end) {
		uint64_t n = 0;

		while (first + n < end && n < GRANULE_PAGES &&
		        is_lazy(host, first + n))
			n++;
		if (n)
			make_run(host, first, n);
		first += n ? n : 1;
	}
}

/* A thread waits for the page at address. */
static void page_fault(uint64_t address)
{
	struct uffdio_zeropage zero = {
	        .range = {address & ~(PAGE_BYTES - 1), PAGE_BYTES}};
	struct sg_host *host;
	uint64_t page, first, pages, n = GRANULE_PAGES;

	sg_host_lock();
	host = sg_host_at(address);
	if (host && host->lazy) {
		page = (address - host->range.start) / PAGE_BYTES;
		pages = host->map_bytes / PAGE_BYTES;
		if (is_lazy(host, page)) {
			sg_races_touched(
			        address & ~(PAGE_BYTES - 1), PAGE_BYTES);
			/* What is made along with it is not noticed. */
			if (sg_mutating())
				n = 1;
			first = page - page % n;
			make_pages(host, first,
			        first + n < pages ? first + n : pages);
			sg_host_unlock();
			return;
		}
	}
	/* Never used, or made in the meantime: then wake the thread. */
	if (ioctl(fault_fd, UFFDIO_ZEROPAGE, &zero) != 0)
		ioctl(fault_fd, UFFDIO_WAKE, &zero.range);
	sg_host_unlock();
}

static void *fault_thread(void *arg)
{
	struct uffd_msg msg;

	for (;;) {
		ssize_t n = read(fault_fd, &msg, sizeof(msg));

		if (n == (ssize_t)sizeof(msg) &&
		        msg.event == UFFD_EVENT_PAGEFAULT)
			page_fault(msg.arg.pagefault.address);
		else if (n < 0 && errno != EINTR && errno != EAGAIN)
			return NULL;
	}
}

/* Can missing pages be noticed? Tried once. */
static bool faults_start(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	pthread_t thread;
	sigset_t all, before;
	int r;

	if (fault_tried)
		return fault_fd >= 0;
	fault_tried = true;
	fault_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (fault_fd < 0 || ioctl(fault_fd, UFFDIO_API, &api) != 0)
		goto out_none;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, NULL, fault_thread, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r)
		goto out_none;
	pthread_detach(thread);
	return true;

out_none:
	sg_say("no userfaultfd: copies to the host are written at once and "
	       "cost memory");
	if (fault_fd >= 0)
		close(fault_fd);
	fault_fd = -1;
	return false;
}

/* Has the host range's missing pages noticed from now on. */
static bool watch(struct sg_host *host)
{
	struct uffdio_register reg = {
	        .range = {host->range.start, host->map_bytes},
	        .mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	if (host->lazy)
		return true;
	if (host->registered || host->managed || !faults_start())
		return false;
	if (ioctl(fault_fd, UFFDIO_REGISTER, &reg) != 0)
		return false;
	host->lazy = sg_xcalloc(
	        host->map_bytes / PAGE_BYTES / 64 + 1, sizeof(uint64_t));
	return true;
}

/* ----------------------------------------------------------------- reading */

struct run {
	uint64_t at, n; /* in the host range */
	bool defined, lazy;
	struct sg_piece piece;
};
struct runs {
	const struct sg_host *host;
	struct run *runs;
	unsigned n, cap;
};

static void add_run(struct runs *runs, const struct run *run)
{
	if (runs->n == runs->cap) {
		runs->cap = runs->cap ? 2 * runs->cap : 8;
		runs->runs = sg_xrealloc(
		        runs->runs, runs->cap * sizeof(*runs->runs));
	}
	runs->runs[runs->n++] = *run;
}

/* Splits a piece where missing pages begin and end. */
static void split_piece(
        void *arg, uint64_t at, uint64_t n, const struct sg_piece *piece)
{
	struct runs *runs = arg;
	uint64_t done = 0;

	while (done < n) {
		struct run run = {.at = at + done, .defined = piece != NULL};
		uint64_t page = run.at / PAGE_BYTES;
		uint64_t end;

		run.lazy = is_lazy(runs->host, page);
		end = at + n;
		if (runs->host->lazy)
			end = ++page * PAGE_BYTES;
		while (end < at + n && is_lazy(runs->host, page) == run.lazy)
			end = ++page * PAGE_BYTES;
		run.n = (end < at + n ? end : at + n) - run.at;
		if (piece)
			run.piece = sg_piece_later(piece, done);
		add_run(runs, &run);
		done += run.n;
	}
}

/* Real bytes as content: kept if few or all alike, else their hash. */
static void new_content(uint64_t va, uint64_t n, struct sg_parts *parts)
{
	const unsigned char *data = (const unsigned char *)(uintptr_t)va;
	struct sg_piece piece = {.kind = SG_PIECE_BYTES};
	uint32_t pattern;

	if (!n)
		return;
	if (n <= SG_BYTES_MAX) {
		piece.bytes = sg_bytes_new(data, n);
	} else if (memcmp(data, data + sizeof(pattern), n - sizeof(pattern)) ==
	           0) {
		memcpy(&pattern, data, sizeof(pattern));
		piece.kind = SG_PIECE_FILL;
		piece.tag = pattern;
	} else {
		piece.kind = SG_PIECE_TAG;
		piece.tag = sg_hash_bytes(n, data, n);
	}
	sg_parts_add(parts, va, n, &piece);
	sg_bytes_unref(piece.bytes);
}

/* Bytes from anywhere: what has been a device's before is known again. */
static void read_bytes(uint64_t va, uint64_t n, struct sg_parts *parts)
{
	uint64_t end = va + n, new = va;

	for (uint64_t step; va < end; va += step) {
		struct sg_parts known = {0};

		step = end - va < SG_BYTES_MAX ? end - va : SG_BYTES_MAX;
		if (!sg_recall_find(va, step, &known))
			continue;
		new_content(new, va - new, parts);
		new = va + step;
		for (unsigned i = 0; i < known.n; i++) {
			const struct sg_part *part = &known.parts[i];

			sg_parts_add(parts, part->at, part->n,
			        part->defined ? &part->piece : NULL);
		}
		sg_parts_free(&known);
	}
	new_content(new, end - new, parts);
}

/* Do the bytes still say what was copied there? */
static bool unchanged(const struct sg_host *host, const struct run *run)
{
	static unsigned char want[COMPARE_BYTES];
	const unsigned char *have =
	        (const unsigned char *)(uintptr_t)(host->range.start + run->at);

	for (uint64_t done = 0; done < run->n;) {
		uint64_t n = run->n - done;

		if (n > COMPARE_BYTES)
			n = COMPARE_BYTES;
		sg_piece_bytes(&run->piece, done, n, want);
		if (memcmp(have + done, want, n) != 0)
			return false;
		done += n;
	}
	return true;
}

static void read_known(
        struct sg_host *host, uint64_t at, uint64_t n, struct sg_parts *parts)
{
	struct runs runs = {.host = host};
	uint64_t start = host->range.start, raw = at;

	sg_host_lock();
	sg_map_each(&host->content, at, n, split_piece, &runs);
	sg_host_unlock();
	for (unsigned i = 0; i < runs.n; i++) {
		const struct run *run = &runs.runs[i];
		bool carries =
		        run->lazy || (run->defined && unchanged(host, run));

		if (!carries)
			continue;
		read_bytes(start + raw, run->at - raw, parts);
		sg_parts_add(parts, start + run->at, run->n,
		        run->defined ? &run->piece : NULL);
		raw = run->at + run->n;
	}
	read_bytes(start + raw, at + n - raw, parts);
	free(runs.runs);
}

void sg_host_read(uint64_t va, uint64_t n, struct sg_parts *parts)
{
	while (n) {
		struct sg_host *host = sg_host_at(va);
		uint64_t step = n;

		if (host) {
			uint64_t at = va - host->range.start;

			if (step > host->range.bytes - at)
				step = host->range.bytes - at;
			read_known(host, at, step, parts);
		} else {
			host = sg_host_next(va);
			if (host && step > host->range.start - va)
				step = host->range.start - va;
			read_bytes(va, step, parts);
		}
		va += step;
		n -= step;
	}
}

/* ----------------------------------------------------------------- writing */

/* Makes and forgets what is missing in [at, at+n). */
static void ready(struct sg_host *host, uint64_t at, uint64_t n)
{
	if (!host->lazy || !n)
		return;
	sg_host_lock();
	make_pages(
	        host, at / PAGE_BYTES, (at + n + PAGE_BYTES - 1) / PAGE_BYTES);
	sg_host_unlock();
}

/* The part of [va, va+n) in one known host range, or before the next one. */
static struct sg_host *first_host(uint64_t va, uint64_t *n)
{
	struct sg_host *host = sg_host_at(va), *next;

	if (host) {
		if (*n > host->range.bytes - (va - host->range.start))
			*n = host->range.bytes - (va - host->range.start);
		return host;
	}
	next = sg_host_next(va);
	if (next && *n > next->range.start - va)
		*n = next->range.start - va;
	return NULL;
}

void sg_host_ready(uint64_t va, uint64_t n)
{
	for (uint64_t step; n; va += step, n -= step) {
		struct sg_host *host;

		step = n;
		host = first_host(va, &step);
		if (host)
			ready(host, va - host->range.start, step);
	}
}

void sg_host_changed(uint64_t va, uint64_t n)
{
	for (uint64_t step; n; va += step, n -= step) {
		struct sg_host *host;

		step = n;
		host = first_host(va, &step);
		if (!host)
			continue;
		sg_host_lock();
		sg_map_write(
		        &host->content, va - host->range.start, step, NULL);
		sg_host_unlock();
	}
}

void sg_host_forget(struct sg_host *host)
{
	sg_map_clear(&host->content);
	free(host->lazy);
	host->lazy = NULL;
}

/* Writes the bytes of [skip, skip+n) of parts to va. */
static void write_bytes(
        uint64_t va, const struct sg_parts *parts, uint64_t skip, uint64_t n)
{
	uint64_t first = parts->parts[0].at + skip, end = first + n;

	for (unsigned i = 0; i < parts->n; i++) {
		const struct sg_part *part = &parts->parts[i];
		uint64_t from = part->at > first ? part->at : first;
		uint64_t to =
		        part->at + part->n < end ? part->at + part->n : end;

		if (from >= to)
			continue;
		sg_piece_bytes(part->defined ? &part->piece : NULL,
		        from - part->at, to - from,
		        (void *)(uintptr_t)(va + (from - first)));
	}
}

/* Remembers parts as the content of the range. Host lock held. */
static void remember(
        struct sg_host *host, uint64_t at, const struct sg_parts *parts)
{
	for (unsigned i = 0; i < parts->n; i++) {
		const struct sg_part *part = &parts->parts[i];

		sg_map_write(&host->content,
		        at + (part->at - parts->parts[0].at), part->n,
		        part->defined ? &part->piece : NULL);
	}
}

/* All of [at, at+n) lies in host, which watches its pages. */
static void write_lazily(struct sg_host *host, uint64_t at, uint64_t n,
        const struct sg_parts *parts)
{
	uint64_t start = host->range.start;
	uint64_t first = sg_round_up(at, PAGE_BYTES);
	uint64_t last = (at + n) & ~(PAGE_BYTES - 1);

	ready(host, at, first - at);
	ready(host, last, at + n - last);
	write_bytes(start + at, parts, 0, first - at);
	write_bytes(start + last, parts, last - at, at + n - last);
	sg_host_lock();
	madvise((void *)(uintptr_t)(start + first), last - first,
	        MADV_DONTNEED);
	for (uint64_t p = first / PAGE_BYTES; p < last / PAGE_BYTES; p++)
		set_lazy(host, p, true);
	remember(host, at, parts);
	sg_host_unlock();
}

void sg_host_write(uint64_t va, uint64_t n, const struct sg_parts *parts)
{
	struct sg_host *host = sg_host_at(va);
	uint64_t at = host ? va - host->range.start : 0;

	if (host && n > host->range.bytes - at)
		host = NULL;
	if (host && n >= LAZY_MIN_BYTES && watch(host)) {
		write_lazily(host, at, n, parts);
		return;
	}
	sg_host_ready(va, n);
	write_bytes(va, parts, 0, n);
	if (!host) {
		sg_host_changed(va, n);
		sg_recall_note(va, n, parts);
		return;
	}
	sg_host_lock();
	remember(host, at, parts);
	sg_host_unlock();
}

/* Are the bytes of all of [at, at+n) still to be made? */
static bool untouched(const struct sg_host *host, uint64_t at, uint64_t n)
{
	uint64_t page = at / PAGE_BYTES;

	sg_host_lock();
	while (page * PAGE_BYTES < at + n && is_lazy(host, page))
		page++;
	sg_host_unlock();
	return page * PAGE_BYTES >= at + n;
}

bool sg_host_hide(uint64_t va, uint64_t n)
{
	struct sg_host *host = sg_host_at(va);
	uint64_t at = host ? va - host->range.start : 0;
	uint64_t end = (at + n) & ~(PAGE_BYTES - 1), step;

	if (!host || n > host->range.bytes - at || !watch(host))
		return false;
	if (untouched(host, at, n))
		return true;
	/* In parts of which all real bytes are kept. */
	for (uint64_t from = sg_round_up(at, PAGE_BYTES); from < end;
	        from += step) {
		struct sg_parts parts = {0};

		step = end - from < SG_BYTES_MAX ? end - from : SG_BYTES_MAX;
		read_known(host, from, step, &parts);
		write_lazily(host, from, step, &parts);
		sg_parts_free(&parts);
	}
	return untouched(host, at, n);
}
