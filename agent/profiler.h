/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Profiles the program: takes steps from the recorder until the shapes that
 * come again were timed often enough, writes TAPESWAP_PROFILE after each that
 * was timed, and tells a watcher. Then it pauses: ops are only followed through
 * the known steps (track.h), until a step is none of these or somebody asks for
 * more. Functions run on the program's threads inside its CUDA calls; one lock
 * keeps steps in order, and no lock is held across driver calls or the
 * watcher's.
 */
#ifndef TS_PROFILER_H
#define TS_PROFILER_H

#include "agent/op.h"

struct ts_observed;

/*
 * Told of what happens, on the thread that issues the op it happens at, without
 * any lock of the agent's: driver calls may be made, ops of the watcher's own
 * are not seen. Any may be NULL.
 */
struct ts_watch {
	/*
	 * How long the @count ops of steps with the hash @hash take on a device
	 * of that name, and a step of them, where another run left that; or
	 * NULL. Holds until the next call.
	 */
	const uint64_t *(*times)(uint64_t hash, size_t count,
	        const char *device, uint64_t *ret_step_ns, void *data);
	/* A step was timed and is known from now on (observed.h). It stays. */
	void (*ready)(const struct ts_observed *step, void *data);
	/*
	 * Of known steps only. Before the op is issued that begins the step
	 * (op->spot.op may be > 0 where it was recognised late), before the
	 * first op of a backward, and after the last op of the step.
	 */
	void (*step_begins)(const struct ts_op *op, void *data);
	void (*turn)(const struct ts_op *op, void *data);
	void (*step_ends)(const struct ts_op *op, void *data);
	void *data;
};

/* Before ts_profiler_init(): turns profiling on whatever the settings say. */
void ts_profiler_watch(const struct ts_watch *watch);

void ts_profiler_init(void);

/* True where ops are profiled, if only followed. */
bool ts_profiler_is_on(void);

/* Ops are recorded again from one of the next on: addresses have moved, say. */
void ts_profiler_resume(void);

/*
 * The same, and all that is timed by then is timed anew, the links' speed too:
 * the device is not what it was. Steps that are known are told anew.
 */
void ts_profiler_remeasure(void);

/*
 * A step ends here and another begins, says the program: from the first such
 * call on nothing else ends a step.
 */
void ts_profiler_mark(void);

/* Around the issue of an op, which may have failed. It is signed. */
void ts_profiler_begin(struct ts_op *op);
void ts_profiler_end(struct ts_op *op, bool issued);

/* The program has waited for the device. */
void ts_profiler_synchronized(void);

/* The last step, without any driver call. */
void ts_profiler_stop(void);

/*
 * More is known of a step: its profile is written again, if it is the one in
 * the file and no other thread is at that just now.
 */
void ts_profiler_rewrite(const struct ts_observed *step);

/* Steps seen so far. */
uint64_t ts_profiler_steps(void);

/* Of how many ops most of these were, and how many of them; 0: of none. */
uint64_t ts_profiler_step_ops(uint64_t *ret_steps);

/* Was a profile written? */
bool ts_profiler_wrote(void);

/* Was there one that could not be written? It was said why. */
bool ts_profiler_failed(void);

#endif
