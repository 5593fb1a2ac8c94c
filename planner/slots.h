/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Time of one copy engine over a step that repeats, cut into slots: how much
 * is free between two moments, and taking some of it early or late. Moments
 * count from the start of the step and may lie up to one step further on.
 * Belongs to one planner call; no locks.
 */
#ifndef TS_PLANNER_SLOTS_H
#define TS_PLANNER_SLOTS_H

#include <stdint.h>

struct ts_slots {
	uint32_t n;
	double width_ns;
	double *free_ns;  /* by slot */
	double *sum_ns;   /* Fenwick tree over free_ns */
	uint32_t *after;  /* by slot: itself or a later one that has time */
	uint32_t *before; /* by slot + 1: the same, backwards; 0: none */
};

/* 0 or -ENOMEM. */
int ts_slots_init(struct ts_slots *slots);
void ts_slots_finish(struct ts_slots *slots);
/* All time of a step of that length is free again. */
void ts_slots_clear(struct ts_slots *slots, double step_ns);

/* Free time in the whole slots between the two moments. */
double ts_slots_free(
        const struct ts_slots *slots, double from_ns, double to_ns);

/*
 * Takes up to @need_ns, the earliest (or the latest) there is. *ret_ns is the
 * end of what was taken (or its begin); left alone where nothing was.
 * Returns what could not be had.
 */
double ts_slots_take_early(struct ts_slots *slots, double from_ns, double to_ns,
        double need_ns, double *ret_ns);
double ts_slots_take_late(struct ts_slots *slots, double from_ns, double to_ns,
        double need_ns, double *ret_ns);

#endif
