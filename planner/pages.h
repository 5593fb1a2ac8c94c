/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Static page assignment. What is on the device when follows from a plan;
 * pages that are never on the device together may share a chunk, one handle
 * mapped at the addresses of both, so that a steady step maps nothing and
 * only waits for events where a chunk changes its tenant. Steps repeat: what
 * is resident at the end of a step is so at the start of the next. Pure, the
 * same input gives the same result, no locks.
 */
#ifndef TS_PLANNER_PAGES_H
#define TS_PLANNER_PAGES_H

#include "planner/plan.h"
#include "planner/program.h"

#define TS_PAGE_BYTES (UINT64_C(2) << 20)

/*
 * Bytes that are on the device from before op @from_op until after @to_op.
 * from_op < n_ops; where to_op >= n_ops they stay over the end of the step,
 * until op to_op - n_ops of the next one (< from_op, else: always).
 */
struct ts_stay {
	uint64_t address;
	uint64_t size_bytes;
	uint32_t from_op;
	uint32_t to_op;
};

/* What to assign chunks to; nothing is owned. */
struct ts_paging {
	uint32_t n_ops;
	uint64_t page_bytes; /* a power of two */
	const struct ts_stay *stays;
	uint32_t n_stays;
	/*
	 * Ranges whose pages never leave: those of small blocks, whose
	 * addresses change from step to step. Ops are of no matter.
	 */
	const struct ts_stay *resident;
	uint32_t n_resident;
	/*
	 * No more chunks than these to save remaps; as many as pages are there
	 * at once may be needed for all that. 0: no such limit.
	 */
	uint32_t most_chunks;
};

/* A page has a chunk to itself from before @from_op until after @to_op. */
struct ts_tenancy {
	uint32_t page;  /* index into ts_pages.places */
	uint32_t chunk; /* below ts_pages.n_chunks */
	uint32_t from_op;
	uint32_t to_op; /* >= n_ops: in the next step, as in ts_stay */
	/*
	 * Tenancies of the same chunk before and after this one, around the
	 * step; itself where the chunk has but one. The page may be touched
	 * from from_op on as soon as all that @previous's page was used for is
	 * done, its copy out included. Both are of one page only where that is
	 * elsewhere in between.
	 */
	uint32_t previous;
	uint32_t next;
	/* The page had another chunk before: it has to be mapped anew. */
	bool remap;
	/*
	 * It had it until this tenancy begins, and its bytes stay: they have
	 * to be copied from there. All such tenancies begin at the same op,
	 * and chunks may change their pages in a ring: before it, what is
	 * copied first has to be kept somewhere else.
	 */
	bool moved;
};

/* A page and its tenancies, in order of from_op. */
struct ts_page_place {
	uint64_t address; /* a multiple of page_bytes */
	uint32_t first_tenancy;
	uint32_t n_tenancies;
};

struct ts_pages {
	/* By ascending address. */
	struct ts_page_place *places;
	uint32_t n_places;
	struct ts_tenancy *tenancies;
	uint32_t n_tenancies;
	uint32_t n_chunks;
	/* Most pages that are on the device at one op: no fewer chunks can do.
	 */
	uint32_t peak_pages;
	/* Pages that never leave, part of both figures above. */
	uint32_t resident_pages;
	/* Tenancies with remap set: pages mapped anew in every steady step. */
	uint32_t remaps;
	/* Those among them with moved set. */
	uint32_t moves;
};

/*
 * Assigns. 0, -ENOMEM, -EINVAL where @paging breaks the rules above, -E2BIG
 * where it speaks of more pages than any device has. The caller finishes
 * @ret_pages after success.
 */
int ts_pages_place(const struct ts_paging *paging, struct ts_pages *ret_pages);

/*
 * Assigns chunks to what @choice leaves on the device. @left and @back give
 * per gap that is not kept the ops between which it is off the device
 * (ts_model_left(), ts_model_back()). No more chunks than fit in @limit_bytes
 * are had to save remaps. Values without an address get pages of
 * their own, above TS_INVENTED_ADDRESS; scratch of replays is left out.
 * Errors as above.
 */
#define TS_INVENTED_ADDRESS (UINT64_C(1) << 62)
int ts_pages_assign(const struct ts_graph *graph,
        const struct ts_choice *choice, const uint32_t *left,
        const uint32_t *back, uint64_t limit_bytes, struct ts_pages *ret_pages);

/*
 * The same from a plan, made now or read from a file: runs it on the event
 * model first. -EINVAL where @plan is not one of @profile, too.
 */
int ts_pages_of_plan(const struct ts_profile *profile,
        const struct ts_plan *plan, struct ts_pages *ret_pages);

void ts_pages_finish(struct ts_pages *pages);

#endif
