/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Race detection: the order of operations (clocks.c) and who touched which
 * memory (races.c). Guarded by the lock, but for sg_races_touched.
 */
#ifndef SG_RACES_H
#define SG_RACES_H

#include "tests/simgpu/driver/sg.h"

/* SIMGPU_RACES. Without it no op has a clock. */
static inline bool sg_races_on(void)
{
	return sg_settings.races;
}

/* ------------------------------------------------------------------- order */

/* One op of one stream. */
struct sg_moment {
	unsigned component;
	uint64_t tick;
};

/* op is issued: it comes after all that the host knows to be done. */
void sg_clock_start(struct sg_op *op);
/* And after this one, which has been started before. */
void sg_clock_join(struct sg_op *op, const struct sg_op *before);
struct sg_moment sg_clock_moment(const struct sg_op *op);
/* Does op come after that moment, or is it that moment? */
bool sg_clock_covers(const struct sg_op *op, struct sg_moment moment);
/* Does op come after other and everything that other comes after? */
bool sg_clock_covers_all(const struct sg_op *op, const struct sg_op *other);
/* The host has seen that op, or all of a device's work, is done. */
void sg_clock_host_knows(const struct sg_op *op);
void sg_clock_host_knows_device(const struct sg_device *dev);
bool sg_clock_host_covers(struct sg_moment moment);
/* Its component may go to another stream. */
void sg_clock_stream_gone(struct sg_stream *stream);

/* ------------------------------------------------------------------ memory */

/* op, started and joined, touches its accesses: reports those without order
 * and remembers all. */
void sg_races_check(struct sg_op *op);
/* Memory is gone, and what was remembered of it. *history becomes NULL. */
void sg_races_forget(void **history);
/* Access to [va, va+bytes) ends after op, or, op being NULL, at once: reports
 * what is not before op, or what the host does not know to be done. */
void sg_races_ending(struct sg_device *dev, const struct sg_op *op, uint64_t va,
        uint64_t bytes, const char *what);
/* The driver gives memory out again after its earlier use: that is forgotten.
 */
void sg_races_settled(uint64_t va, uint64_t bytes);
/* The host has touched a page of page-locked memory; any thread, no lock. Too
 * many at once are forgotten. */
void sg_races_touched(uint64_t va, uint64_t bytes);
/* Judges those touches; at the entry of a call, before it changes the order. */
void sg_races_judge_touches(void);
/* Text of the i-th race kept of the device, or NULL. */
const char *sg_race_text(const struct sg_device *dev, unsigned i);

/* What is remembered of a piece of physical or page-locked memory. */
struct sg_place {
	void **races, **taint;
};
/* Calls fn for every stretch of [va, va+bytes) in one piece of such memory
 * that is there: what is remembered of it, the offset in it, the address and
 * the length. */
typedef void (*sg_stretch_fn)(void *arg, struct sg_place *place,
        uint64_t offset, uint64_t va, uint64_t bytes);
void sg_stretches(uint64_t va, uint64_t bytes, sg_stretch_fn fn, void *arg);

#endif
