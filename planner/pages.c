/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/pages.h"
#include "planner/pages_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* More would be 16 TiB of address range in one step. */
#define MAX_PAGES (UINT32_C(1) << 23)
/* Stays by page run: what address ranges of one step never come near. */
#define MAX_COVERS (UINT64_C(1) << 27)
/* From so many ops on the step is cut open in one place only. */
#define LONG_TAPE 50000
/*
 * A packing may send as many pages elsewhere on the way as the best one so far
 * maps anew, and one in so many more: some find their way back.
 */
#define SENT_SHARE 4

void ts_pages_finish(struct ts_pages *pages)
{
	free(pages->places);
	free(pages->tenancies);
	memset(pages, 0, sizeof(*pages));
}

/* Between two neighbouring edges all pages see the same stays. */
struct cells {
	uint32_t cut;    /* spans count from this op on */
	uint64_t *edges; /* pages, ascending */
	uint32_t n_edges;
	uint64_t *first; /* by cell: slice of spans; one more than cells */
	struct ts_span *spans;
};

static uint64_t first_page(
        const struct ts_paging *paging, const struct ts_stay *stay)
{
	return stay->address / paging->page_bytes;
}

static uint64_t end_page(
        const struct ts_paging *paging, const struct ts_stay *stay)
{
	return (stay->address + stay->size_bytes - 1) / paging->page_bytes + 1;
}

static const struct ts_stay *stay_at(const struct ts_paging *paging, uint32_t i)
{
	return i < paging->n_stays ? &paging->stays[i]
	                           : &paging->resident[i - paging->n_stays];
}

static bool well_formed(const struct ts_paging *paging)
{
	uint32_t all = paging->n_stays + paging->n_resident;

	if (!paging->n_ops || !paging->page_bytes ||
	        paging->n_stays > TS_MAX_USES ||
	        paging->n_resident > TS_MAX_USES)
		return false;
	for (uint32_t i = 0; i < all; i++) {
		const struct ts_stay *stay = stay_at(paging, i);

		if (!stay->size_bytes || stay->size_bytes > TS_MAX_BYTES ||
		        stay->address > UINT64_MAX - TS_MAX_BYTES)
			return false;
		if (i < paging->n_stays && (stay->from_op >= paging->n_ops ||
		                                   stay->to_op < stay->from_op))
			return false;
	}
	return true;
}

static int by_page(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int find_edges(const struct ts_paging *paging, struct cells *cells)
{
	uint32_t all = paging->n_stays + paging->n_resident, n = 0;

	cells->edges = calloc(2 * (uint64_t)all + 1, sizeof(*cells->edges));
	if (!cells->edges)
		return -ENOMEM;
	for (uint32_t i = 0; i < all; i++) {
		const struct ts_stay *stay = stay_at(paging, i);

		cells->edges[n++] = first_page(paging, stay);
		cells->edges[n++] = end_page(paging, stay);
	}
	if (n)
		qsort(cells->edges, n, sizeof(*cells->edges), by_page);
	for (uint32_t i = 0; i < n; i++) {
		if (!i || cells->edges[i] != cells->edges[i - 1])
			cells->edges[cells->n_edges++] = cells->edges[i];
	}
	return 0;
}

static uint32_t cell_of(const struct cells *cells, uint64_t page)
{
	uint32_t low = 0, high = cells->n_edges;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (cells->edges[mid] < page)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Ops from the cut on that @stay is there for: one span, or two. */
static uint32_t spans_of_stay(const struct ts_paging *paging, uint32_t i,
        uint32_t cut, struct ts_span spans[2])
{
	const struct ts_stay *stay = stay_at(paging, i);
	uint32_t n = paging->n_ops, length = stay->to_op - stay->from_op, from;

	if (i >= paging->n_stays || length >= n - 1) {
		spans[0] = (struct ts_span){0, n - 1};
		return 1;
	}
	from = stay->from_op >= cut ? stay->from_op - cut
	                            : stay->from_op + n - cut;
	if (length < n - from) {
		spans[0] = (struct ts_span){from, from + length};
		return 1;
	}
	spans[0] = (struct ts_span){0, length - (n - from)};
	spans[1] = (struct ts_span){from, n - 1};
	return 2;
}

/* Lists per cell the spans of all stays that touch it. */
static int cover_cells(const struct ts_paging *paging, struct cells *cells)
{
	uint32_t all = paging->n_stays + paging->n_resident;
	uint64_t total = 0;

	cells->first =
	        calloc(cells->n_edges + UINT64_C(2), sizeof(*cells->first));
	if (!cells->first)
		return -ENOMEM;
	for (int fill = 0; fill < 2; fill++) {
		for (uint32_t i = 0; i < all; i++) {
			const struct ts_stay *stay = stay_at(paging, i);
			uint64_t end = end_page(paging, stay);
			struct ts_span spans[2];
			uint32_t n =
			        spans_of_stay(paging, i, cells->cut, spans);

			for (uint32_t c = cell_of(
			             cells, first_page(paging, stay));
			        cells->edges[c] < end; c++) {
				if (!fill) {
					cells->first[c + 2] += n;
					total += n;
					continue;
				}
				for (uint32_t k = 0; k < n; k++)
					cells->spans[cells->first[c + 1]++] =
					        spans[k];
			}
			if (total > MAX_COVERS)
				return -E2BIG;
		}
		if (fill)
			break;
		for (uint32_t c = 1; c < cells->n_edges + 1; c++)
			cells->first[c + 1] += cells->first[c];
		cells->spans = malloc((total + 1) * sizeof(*cells->spans));
		if (!cells->spans)
			return -ENOMEM;
	}
	return 0;
}

static int by_from(const void *a, const void *b)
{
	const struct ts_span *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

/* Joins what overlaps or touches; how many are left. */
static uint32_t join_spans(struct ts_span *spans, uint32_t n)
{
	uint32_t kept = 0;

	qsort(spans, n, sizeof(*spans), by_from);
	for (uint32_t i = 0; i < n; i++) {
		if (kept && spans[i].from <= spans[kept - 1].to + 1) {
			if (spans[i].to > spans[kept - 1].to)
				spans[kept - 1].to = spans[i].to;
		} else {
			spans[kept++] = spans[i];
		}
	}
	return kept;
}

static int measure_peak(struct ts_runs *runs)
{
	int64_t *change = calloc(runs->n_ops + UINT64_C(1), sizeof(*change));
	int64_t pages = 0;

	if (!change)
		return -ENOMEM;
	for (uint32_t r = 0; r < runs->n_runs; r++) {
		const struct ts_page_run *run = &runs->runs[r];

		for (uint32_t k = 0; k < run->n_spans; k++) {
			const struct ts_span *span =
			        &runs->spans[run->first_span + k];

			change[span->from] += run->count;
			change[span->to + 1] -= run->count;
		}
	}
	for (uint32_t i = 0; i < runs->n_ops; i++) {
		pages += change[i];
		if (pages > runs->peak_pages)
			runs->peak_pages = (uint32_t)pages;
	}
	free(change);
	return 0;
}

static bool same_spans(const struct ts_runs *runs, const struct ts_page_run *a,
        const struct ts_span *spans, uint32_t n)
{
	return a->n_spans == n &&
	       !memcmp(runs->spans + a->first_span, spans, n * sizeof(*spans));
}

/* Makes @cells' spans disjoint and puts neighbours that agree together. */
static int make_runs(struct cells *cells, struct ts_runs *runs)
{
	uint64_t pages = 0;
	uint32_t n_spans = 0;

	runs->spans = cells->spans;
	cells->spans = NULL;
	runs->runs = calloc(cells->n_edges + UINT64_C(1), sizeof(*runs->runs));
	if (!runs->runs)
		return -ENOMEM;
	for (uint32_t c = 0; c + 1 < cells->n_edges; c++) {
		/* Filling has moved the offsets on by one cell. */
		uint64_t from = cells->first[c], to = cells->first[c + 1];
		uint64_t count = cells->edges[c + 1] - cells->edges[c];
		struct ts_span *spans = runs->spans + from;
		struct ts_page_run *last =
		        runs->n_runs ? &runs->runs[runs->n_runs - 1] : NULL;
		uint32_t n;

		if (from == to)
			continue;
		n = join_spans(spans, (uint32_t)(to - from));
		pages += count;
		if (pages > MAX_PAGES)
			return -E2BIG;
		if (last && last->first_page + last->count == cells->edges[c] &&
		        same_spans(runs, last, spans, n)) {
			last->count += (uint32_t)count;
			continue;
		}
		memmove(runs->spans + n_spans, spans, n * sizeof(*spans));
		spans = runs->spans + n_spans;
		runs->runs[runs->n_runs++] = (struct ts_page_run){
		        .first_page = cells->edges[c],
		        .count = (uint32_t)count,
		        .first_span = n_spans,
		        .n_spans = n,
		        .wraps = n > 1 && !spans[0].from &&
		                 spans[n - 1].to + 1 == runs->n_ops,
		};
		n_spans += n;
	}
	return measure_peak(runs);
}

/* Each page for itself. */
struct entry {
	uint32_t place;
	uint32_t from;
	uint32_t to;
	uint32_t chunk;
	uint32_t span; /* of the page, and the one after it around the step */
	uint32_t next_span;
};

struct expansion {
	const struct ts_runs *runs;
	uint32_t cut;
	struct ts_pages *pages;
	uint32_t *chunks;
	uint64_t n_entries;
	struct entry *entries; /* by chunk, then by time */
	uint32_t *first_entry; /* by chunk; one more than chunks */
};

/* Where the chunk numbers of each run stand; how many there are. */
static uint64_t lay_out_chunks(struct ts_runs *runs)
{
	uint64_t n = 0;

	for (uint32_t r = 0; r < runs->n_runs; r++) {
		runs->runs[r].first_chunk = n;
		n += (uint64_t)runs->runs[r].n_spans * runs->runs[r].count;
	}
	return n;
}

struct ordered_span {
	uint32_t from;
	uint32_t run;
	uint32_t span;
};

static int by_time(const void *a, const void *b)
{
	const struct ordered_span *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->run > y->run) - (x->run < y->run);
}

/* Entries of every page and stay, sorted by chunk and time. */
static int list_entries(struct expansion *e, uint64_t page_bytes)
{
	const struct ts_runs *runs = e->runs;
	struct ts_pages *pages = e->pages;
	struct ordered_span *order;
	uint32_t *at = e->first_entry + 1, n = 0, *place;

	for (uint32_t r = 0; r < runs->n_runs; r++)
		n += runs->runs[r].n_spans;
	order = malloc((n + UINT64_C(1)) * sizeof(*order));
	place = malloc((runs->n_runs + UINT64_C(1)) * sizeof(*place));
	if (!order || !place) {
		free(order);
		free(place);
		return -ENOMEM;
	}
	n = 0;
	for (uint32_t r = 0; r < runs->n_runs; r++) {
		const struct ts_page_run *run = &runs->runs[r];

		place[r] = pages->n_places;
		for (uint32_t i = 0; i < run->count; i++)
			pages->places[pages->n_places++].address =
			        (run->first_page + i) * page_bytes;
		for (uint32_t k = 0; k < run->n_spans; k++)
			order[n++] = (struct ordered_span){
			        runs->spans[run->first_span + k].from, r, k};
	}
	qsort(order, n, sizeof(*order), by_time);
	for (uint64_t i = 0; i < e->n_entries; i++)
		at[e->chunks[i] + 1]++;
	for (uint32_t c = 0; c < pages->n_chunks; c++)
		at[c + 1] += at[c];
	for (uint32_t o = 0; o < n; o++) {
		const struct ts_page_run *run = &runs->runs[order[o].run];
		struct ts_span span =
		        runs->spans[run->first_span + order[o].span];
		const uint32_t *chunks = e->chunks + run->first_chunk +
		                         (uint64_t)order[o].span * run->count;

		for (uint32_t i = 0; i < run->count; i++)
			e->entries[at[chunks[i]]++] = (struct entry){
			        .place = place[order[o].run] + i,
			        .from = span.from,
			        .to = span.to,
			        .chunk = chunks[i],
			        .span = order[o].span,
			        .next_span = (order[o].span + 1) % run->n_spans,
			};
	}
	free(order);
	free(place);
	return 0;
}

/* From ops since the cut to ops of the step. */
static struct ts_tenancy tenancy(const struct expansion *e,
        const struct entry *first, const struct entry *last)
{
	uint32_t n = e->runs->n_ops;
	uint32_t from = first->from + e->cut < n ? first->from + e->cut
	                                         : first->from + e->cut - n;
	uint32_t length = last->to >= first->from ? last->to - first->from
	                                          : last->to + n - first->from;

	return (struct ts_tenancy){.page = first->place,
	        .chunk = first->chunk,
	        .from_op = from,
	        .to_op = from + length};
}

/* The page stays where it is, although it need not be there in between. */
static bool goes_on(const struct entry *a, const struct entry *b)
{
	return a->place == b->place && a->next_span == b->span;
}

/*
 * The tenancies of one chunk: stays of the same page with nobody in between
 * are one. The caller has room for as many as there are entries.
 */
static void list_tenancies(struct expansion *e, uint32_t chunk)
{
	struct ts_pages *pages = e->pages;
	const struct entry *all = e->entries + e->first_entry[chunk];
	uint32_t n = e->first_entry[chunk + 1] - e->first_entry[chunk];
	uint32_t first = pages->n_tenancies, begin = 0;

	while (begin < n &&
	        goes_on(&all[begin ? begin - 1 : n - 1], &all[begin]))
		begin++;
	if (begin == n) {
		/* One page alone: its chunk is never anybody else's. */
		pages->tenancies[first] =
		        (struct ts_tenancy){.page = all[0].place,
		                .chunk = chunk,
		                .to_op = e->runs->n_ops - 1,
		                .previous = first,
		                .next = first};
		pages->n_tenancies++;
		return;
	}
	for (uint32_t k = 0; k < n;) {
		const struct entry *from = &all[(begin + k) % n], *to = from;

		for (k++; k < n && goes_on(to, &all[(begin + k) % n]); k++)
			to = &all[(begin + k) % n];
		pages->tenancies[pages->n_tenancies++] = tenancy(e, from, to);
	}
	for (uint32_t i = first; i < pages->n_tenancies; i++) {
		pages->tenancies[i].next =
		        i + 1 < pages->n_tenancies ? i + 1 : first;
		pages->tenancies[i].previous =
		        i > first ? i - 1 : pages->n_tenancies - 1;
	}
}

static int by_page_and_time(const void *a, const void *b, void *data)
{
	const struct ts_tenancy *all = data;
	const struct ts_tenancy *x = &all[*(const uint32_t *)a];
	const struct ts_tenancy *y = &all[*(const uint32_t *)b];

	if (x->page != y->page)
		return x->page < y->page ? -1 : 1;
	return x->from_op < y->from_op ? -1 : x->from_op > y->from_op;
}

/* Tenancies by page, links renamed; counts pages that are mapped anew. */
static int sort_tenancies(struct ts_pages *pages, uint32_t n_ops)
{
	uint32_t n = pages->n_tenancies;
	uint32_t *order = malloc((n + UINT64_C(1)) * sizeof(*order));
	uint32_t *name = malloc((n + UINT64_C(1)) * sizeof(*name));
	struct ts_tenancy *sorted = malloc((n + UINT64_C(1)) * sizeof(*sorted));

	if (!order || !name || !sorted) {
		free(order);
		free(name);
		free(sorted);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), by_page_and_time, pages->tenancies);
	for (uint32_t i = 0; i < n; i++)
		name[order[i]] = i;
	for (uint32_t i = 0; i < n; i++) {
		sorted[i] = pages->tenancies[order[i]];
		sorted[i].previous = name[sorted[i].previous];
		sorted[i].next = name[sorted[i].next];
	}
	for (uint32_t i = 0, end; i < n; i = end) {
		struct ts_page_place *place = &pages->places[sorted[i].page];

		for (end = i; end < n && sorted[end].page == sorted[i].page;)
			end++;
		place->first_tenancy = i;
		place->n_tenancies = end - i;
		for (uint32_t k = i; k < end; k++) {
			uint32_t before = k > i ? k - 1 : end - 1;

			sorted[k].remap =
			        sorted[k].chunk != sorted[before].chunk;
			sorted[k].moved =
			        sorted[k].remap &&
			        (sorted[before].to_op + UINT64_C(1)) % n_ops ==
			                sorted[k].from_op;
			pages->remaps += sorted[k].remap;
			pages->moves += sorted[k].moved;
		}
	}
	free(pages->tenancies);
	pages->tenancies = sorted;
	free(order);
	free(name);
	return 0;
}

static int expand(struct expansion *e, uint64_t page_bytes)
{
	struct ts_pages *pages = e->pages;
	uint64_t n_places = 0;
	int err = 0;

	for (uint32_t r = 0; r < e->runs->n_runs; r++)
		n_places += e->runs->runs[r].count;
	pages->places = calloc(n_places + 1, sizeof(*pages->places));
	pages->tenancies =
	        malloc((e->n_entries + 1) * sizeof(*pages->tenancies));
	e->entries = malloc((e->n_entries + 1) * sizeof(*e->entries));
	/* Counting moves the offsets on by two chunks. */
	e->first_entry =
	        calloc(pages->n_chunks + UINT64_C(3), sizeof(*e->first_entry));
	if (!pages->places || !pages->tenancies || !e->entries ||
	        !e->first_entry)
		err = -ENOMEM;
	if (!err)
		err = list_entries(e, page_bytes);
	for (uint32_t c = 0; !err && c < pages->n_chunks; c++)
		list_tenancies(e, c);
	if (!err)
		err = sort_tenancies(pages, e->runs->n_ops);
	free(e->entries);
	free(e->first_entry);
	return err;
}

/* The peak's, and some more that save remaps where they fit. */
static uint32_t most_chunks(const struct ts_paging *paging, uint32_t peak)
{
	uint32_t most = peak + peak / TS_SPARE_SHARE;

	if (paging->most_chunks && most > paging->most_chunks)
		most = paging->most_chunks;
	return most > peak ? most : peak;
}

/* One way to place the pages. */
struct packing {
	struct ts_runs runs;
	uint32_t *chunks;
	uint64_t n_entries;
	uint32_t n_chunks;
	uint32_t cut;
	uint64_t cost; /* pages mapped anew, twice where they are copied */
};

static void packing_finish(struct packing *packing)
{
	free(packing->runs.runs);
	free(packing->runs.spans);
	free(packing->chunks);
	memset(packing, 0, sizeof(*packing));
}

static uint64_t cost_of_run(
        const struct ts_page_run *run, const uint32_t *chunks)
{
	uint64_t cost = 0;

	for (uint32_t k = 0; k < run->n_spans; k++) {
		uint32_t before = k ? k - 1 : run->n_spans - 1;
		const uint32_t *a = chunks + (uint64_t)before * run->count;
		const uint32_t *b = chunks + (uint64_t)k * run->count;

		for (uint32_t i = 0; i < run->count; i++)
			cost += (a[i] != b[i]) * (!k && run->wraps ? 2 : 1);
	}
	return cost;
}

/* Packs with the step cut open before @cut; -ECANCELED: as in packing. */
static int pack_from(const struct ts_paging *paging, uint32_t cut,
        uint64_t most_sent, struct packing *ret_packing)
{
	struct packing p = {.runs.n_ops = paging->n_ops, .cut = cut};
	struct cells cells = {.cut = cut};
	int err = find_edges(paging, &cells);

	if (!err)
		err = cover_cells(paging, &cells);
	if (!err)
		err = make_runs(&cells, &p.runs);
	if (!err) {
		p.runs.most_chunks = most_chunks(paging, p.runs.peak_pages);
		p.runs.most_sent = most_sent;
		p.n_entries = lay_out_chunks(&p.runs);
		p.chunks = calloc(p.n_entries + 1, sizeof(*p.chunks));
		err = p.chunks ? ts_pages_pack(&p.runs, p.chunks, &p.n_chunks)
		               : -ENOMEM;
	}
	for (uint32_t r = 0; !err && r < p.runs.n_runs; r++)
		p.cost += cost_of_run(
		        &p.runs.runs[r], p.chunks + p.runs.runs[r].first_chunk);
	free(cells.edges);
	free(cells.first);
	free(cells.spans);
	if (err)
		packing_finish(&p);
	else
		*ret_packing = p;
	return err;
}

/*
 * What is resident at the cut is placed first, so where the step is cut open
 * decides how well the rest fits: in the forward, when activations pile up,
 * it does well; other places are tried while there are pages left to be
 * mapped anew, and left when they begin to look worse.
 */
static int find_packing(
        const struct ts_paging *paging, struct packing *ret_packing)
{
	static const uint32_t tenths[] = {2, 5, 3, 0, 1};
	struct packing best = {0};
	uint64_t most_sent = UINT64_MAX;
	int err = 0;

	for (uint32_t i = 0; i < sizeof(tenths) / sizeof(tenths[0]); i++) {
		uint32_t cut =
		        (uint32_t)((uint64_t)paging->n_ops * tenths[i] / 10);
		struct packing packing;

		err = pack_from(paging, cut, most_sent, &packing);
		if (err == -ECANCELED)
			continue;
		if (err)
			break;
		if (!best.chunks || packing.cost < best.cost) {
			packing_finish(&best);
			best = packing;
		} else {
			packing_finish(&packing);
		}
		most_sent = best.cost + best.cost / SENT_SHARE;
		if (paging->n_ops > LONG_TAPE || !best.cost)
			break;
	}
	if (err && err != -ECANCELED) {
		packing_finish(&best);
		return err;
	}
	*ret_packing = best;
	return 0;
}

int ts_pages_place(const struct ts_paging *paging, struct ts_pages *ret_pages)
{
	struct ts_pages pages = {0};
	struct packing packing;
	int err =
	        well_formed(paging) ? find_packing(paging, &packing) : -EINVAL;

	if (err)
		return err;
	pages.peak_pages = packing.runs.peak_pages;
	pages.n_chunks = packing.n_chunks;
	err = expand(&(struct expansion){.runs = &packing.runs,
	                     .cut = packing.cut,
	                     .pages = &pages,
	                     .chunks = packing.chunks,
	                     .n_entries = packing.n_entries},
	        paging->page_bytes);
	packing_finish(&packing);
	if (err)
		ts_pages_finish(&pages);
	else
		*ret_pages = pages;
	return err;
}
