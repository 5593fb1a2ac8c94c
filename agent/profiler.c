/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/profiler.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/cycle.h"
#include "agent/jsonfile.h"
#include "agent/memline.h"
#include "agent/observed.h"
#include "agent/profile.h"
#include "agent/proof.h"
#include "agent/recorder.h"
#include "agent/shapes.h"
#include "agent/timing.h"

/* Steps of a shape that are timed; the shorter time of each op counts. */
#define REFERENCE_STEPS 2
/* After so many, large blocks have the same addresses in each. */
#define SETTLED_STEPS 4
/* Nothing else is waited for where another run has timed the steps. */
#define SETTLED_TOLD 2
/* Or take turns in them; after so many more it is not waited for that. */
#define UNSETTLED_STEPS 8
/* A program whose every step differs is not timed for ever. */
#define TIMED_MAX 64
/* Among so many steps shapes are looked for that take turns. */
#define RECENT_STEPS 12

/* Steps told by the period of ops alone may be preparation: more are wanted. */
#define PERIODS_MIN 8
/* So many ops that stand in no known step are a step to be recorded. */
#define ASTRAY_MAX 4096

static struct {
	/* Constant after start. */
	bool on;
	struct ts_watch watch;

	atomic_bool taking; /* a thread takes a step, pauses or resumes */
	atomic_bool wanted; /* to record again, at the next op's end */
	atomic_bool marked; /* the program tells its steps */
	atomic_bool stale;  /* what was timed; to be timed anew */
	atomic_bool anew;   /* known steps are to be told once more */
	/* Taken from the recorder, and followed while it was paused. */
	atomic_uint_least64_t taken, followed;

	/* Kernels launched before the step that is followed; TS_NEVER: it was
	 * not seen to begin. */
	atomic_uint_least64_t began;

	/* Steps by their length: by what was first seen. */
	struct {
		atomic_uint_least64_t ops, steps;
	} lengths[TS_SHAPES_MAX];

	/* Of the thread that takes a step. */
	struct ts_shapes shapes;
	struct ts_cycles cycles; /* kept for who plans */
	struct ts_device_facts facts[TS_AGENT_DEVICES];
	uint64_t timed;        /* steps */
	size_t done_in_row;    /* steps of shapes that need no more times */
	uint64_t written_peak; /* of the shape in the file */
	uint64_t written_hash;
	bool written_again; /* that shape came more than once */
	bool by_period;     /* steps so far were told by periods */
	atomic_bool wrote;  /* a file */
	atomic_bool failed; /* one could not be written, which was said */
} profiler;

void ts_profiler_watch(const struct ts_watch *watch)
{
	profiler.watch = *watch;
	profiler.on = true;
}

void ts_profiler_init(void)
{
	const struct ts_config *config = &ts_agent.config;

	profiler.on |= *config->profile != '\0';
	if (!profiler.on)
		return;
	atomic_store(&profiler.began, TS_NEVER);
	ts_recorder_init();
	ts_track_init();
	ts_timing_init(ts_agent.ops, config->timing == TS_TIMING_CUPTI);
}

bool ts_profiler_is_on(void)
{
	return profiler.on;
}

uint64_t ts_profiler_steps(void)
{
	return atomic_load(&profiler.taken) + atomic_load(&profiler.followed);
}

static void count_length(uint64_t ops)
{
	for (size_t i = 0; i < TS_SHAPES_MAX; i++) {
		uint_least64_t none = 0;

		if (!atomic_compare_exchange_strong(
		            &profiler.lengths[i].ops, &none, ops) &&
		        none != ops)
			continue;
		atomic_fetch_add(&profiler.lengths[i].steps, 1);
		return;
	}
}

uint64_t ts_profiler_step_ops(uint64_t *ret_steps)
{
	uint64_t most = 0, ops = 0;

	for (size_t i = 0; i < TS_SHAPES_MAX; i++) {
		uint64_t steps = atomic_load(&profiler.lengths[i].steps);

		if (steps > most)
			ops = atomic_load(&profiler.lengths[i].ops);
		if (steps > most)
			most = steps;
	}
	*ret_steps = most;
	return 2 * most > ts_profiler_steps() ? ops : 0;
}

bool ts_profiler_wrote(void)
{
	return atomic_load(&profiler.wrote);
}

bool ts_profiler_failed(void)
{
	return atomic_load(&profiler.failed);
}

void ts_profiler_resume(void)
{
	if (!profiler.on)
		return;
	if (ts_recorder_is_recording())
		atomic_store(&profiler.anew, true);
	else
		atomic_store(&profiler.wanted, true);
}

void ts_profiler_remeasure(void)
{
	if (!profiler.on)
		return;
	atomic_store(&profiler.stale, true);
	ts_profiler_resume();
}

static void call(void (*told)(const struct ts_op *op, void *data),
        const struct ts_op *op)
{
	if (told)
		told(op, profiler.watch.data);
}

static uint64_t launches_so_far(void)
{
	return atomic_load_explicit(
	        &ts_agent.tape.totals[TS_OP_LAUNCH], memory_order_relaxed);
}

/* The step may be recognised late. */
static void step_begins(const struct ts_op *op)
{
	atomic_store_explicit(&profiler.began,
	        launches_so_far() - ts_recording_launches(
	                                    &op->spot.step->step, op->spot.op),
	        memory_order_relaxed);
	call(profiler.watch.step_begins, op);
}

static void say_step(uint64_t first_launch)
{
	if (first_launch == TS_NEVER)
		ts_log(TS_LOG_DEBUG,
		        "step %" PRIu64 " is over, which was recognised late",
		        ts_profiler_steps());
	else
		ts_log(TS_LOG_DEBUG,
		        "step %" PRIu64 " begins at launch %" PRIu64,
		        ts_profiler_steps(), first_launch);
}

void ts_profiler_begin(struct ts_op *op)
{
	if (!profiler.on)
		return;
	ts_track_op(op->signature, &op->spot);
	if (op->spot.begins)
		step_begins(op);
	if (op->spot.turns)
		call(profiler.watch.turn, op);
	/* Events would become part of the graph. */
	if (op->recorded && ts_recorder_is_timing() &&
	        !atomic_load(&ts_agent.capturing))
		op->timer = ts_timing_begin(op->stream);
}

/* Programs without a backward: as the period of their ops has it. */
static bool ends_period(void)
{
	struct ts_tape *tape = &ts_agent.tape;
	uint64_t first, length, whole;
	bool ends;

	if (ts_recorder_saw_backward() || atomic_load(&profiler.marked))
		return false;
	ts_mutex_lock(&tape->lock);
	whole = ts_step_last(&tape->step, &first, &length);
	ends = whole >= 3 && first + length == tape->op_count;
	ts_mutex_unlock(&tape->lock);
	return ends;
}

/* The other devices' files stand beside the first one's. */
static void path_for(
        const struct ts_observed *observed, size_t index, char *ret_path)
{
	const char *path = ts_agent.config.profile;
	const char *name = strrchr(path, '/');
	const char *end = strrchr(name ? name : path, '.');
	size_t stem = end ? (size_t)(end - path) : strlen(path);

	if (index)
		snprintf(ret_path, TS_CONFIG_PATH_BYTES, "%.*s-device%d%s",
		        (int)stem, path, observed->devices[index].device,
		        path + stem);
	else
		strcpy(ret_path, path);
}

static double ms_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - start->tv_sec) * 1e3 +
	       (double)(now.tv_nsec - start->tv_nsec) * 1e-6;
}

static void write_profiles(
        const struct ts_observed *observed, const struct ts_shape *shape)
{
	struct ts_profile_context context = {.facts = profiler.facts,
	        .steps = ts_profiler_steps(),
	        .same_steps = shape->seen,
	        .timed_steps = shape->timed,
	        .shapes = profiler.shapes.count};

	for (size_t i = 0; i < observed->device_count; i++) {
		char path[TS_CONFIG_PATH_BYTES];
		struct timespec start;
		json_t *json;
		int rc;

		clock_gettime(CLOCK_MONOTONIC, &start);
		path_for(observed, i, path);
		json = ts_profile_make(observed, i, &context);
		rc = ts_json_write_setting(
		        json, "TAPESWAP_PROFILE", path, JSON_COMPACT);
		if (rc) {
			atomic_store(&profiler.failed, true);
			continue;
		}
		atomic_store(&profiler.wrote, true);
		ts_log(TS_LOG_DEBUG, "%s written in %.1f ms", path,
		        ms_since(&start));
	}
}

/* The shape is followed from now on, and the watcher may plan for it. */
static void publish(struct ts_observed *observed, struct ts_shape *shape)
{
	uint64_t *since;
	size_t count = ts_recorder_signatures(&since);
	int rc = since ? ts_track_add(observed, since, count) : -ENOMEM;

	free(since);
	if (rc) {
		ts_log(TS_LOG_DEBUG, "a step is not followed: %s",
		        strerror(-rc));
		ts_observed_destroy(observed);
		return;
	}
	ts_log(TS_LOG_DEBUG, "a step of %" PRIu32 " ops is known",
	        observed->op_count);
	shape->published = true;
	ts_proof_of(observed);
	if (profiler.watch.ready)
		profiler.watch.ready(observed, profiler.watch.data);
}

void ts_profiler_rewrite(const struct ts_observed *observed)
{
	if (!*ts_agent.config.profile ||
	        atomic_exchange(&profiler.taking, true))
		return;
	for (size_t i = 0; i < profiler.shapes.count; i++) {
		const struct ts_shape *shape = &profiler.shapes.shapes[i];

		if (shape->hash == observed->hash &&
		        shape->hash == profiler.written_hash)
			write_profiles(observed, shape);
	}
	atomic_store(&profiler.taking, false);
}

/*
 * Of shapes that came again the one that needs most memory is to be planned
 * for; before one did, any step is better than none.
 */
static bool is_worth_writing(
        const struct ts_recording *step, const struct ts_shape *shape)
{
	uint64_t peak = ts_memline_peak(step);
	bool again = shape->seen > 1;

	if (!shape->timed || !*ts_agent.config.profile)
		return false;
	if (shape->hash != profiler.written_hash &&
	        (again < profiler.written_again ||
	                (again == profiler.written_again &&
	                        peak <= profiler.written_peak)))
		return false;
	profiler.written_hash = shape->hash;
	profiler.written_again = again;
	profiler.written_peak = peak;
	return true;
}

static bool is_timed(const struct ts_shape *shape)
{
	return shape->told || shape->timed >= REFERENCE_STEPS;
}

/* Another run may have timed steps of a shape that was not seen before. */
static void ask_for_times(struct ts_shape *shape, struct ts_recording *step)
{
	int device = ts_memline_device(step);
	const uint64_t *ops_ns;
	uint64_t step_ns;

	/* A profile tells what was measured in this run. */
	if (!profiler.watch.times || *ts_agent.config.profile ||
	        shape->seen > 1 || device < 0 || device >= TS_AGENT_DEVICES ||
	        !profiler.facts[device].known)
		return;
	ops_ns = profiler.watch.times(shape->hash, shape->op_count,
	        profiler.facts[device].name, &step_ns, profiler.watch.data);
	if (ops_ns)
		ts_shape_tell(shape, step, ops_ns, step_ns);
}

/* Times are taken until every shape that comes again has enough of them. */
static void decide_timing(const struct ts_shape *shape)
{
	size_t wanted = ts_shapes_recent(&profiler.shapes, RECENT_STEPS);
	bool done = shape->told;

	profiler.timed += ts_recorder_is_timing();
	if (is_timed(shape))
		profiler.done_in_row++;
	else
		profiler.done_in_row = 0;
	/* At first none has come again: one that was told may be all. */
	if (wanted)
		done = profiler.done_in_row >= wanted;
	ts_recorder_set_timing(!done && profiler.timed < TIMED_MAX);
}

/* What repeated before the first backward was no step but preparation. */
static void forget_periods(void)
{
	ts_log(TS_LOG_DEBUG,
	        "what went for %zu steps before the first backward was none",
	        (size_t)profiler.shapes.steps);
	ts_shapes_finish(&profiler.shapes);
	ts_cycles_forget(&profiler.cycles);
	ts_track_clear();
	profiler.shapes.steps = 0;
	atomic_store(&profiler.followed, 0);
	profiler.timed = 0;
	profiler.done_in_row = 0;
	profiler.written_hash = 0;
	profiler.written_peak = 0;
	profiler.written_again = false;
	profiler.by_period = false;
}

/* Blocks that die after the last op die with the program, not the step. */
static void revive(struct ts_recording *step)
{
	uint64_t end = step->first_op + step->op_count;

	for (size_t i = 0; i < step->block_count; i++) {
		if (step->blocks[i].died != end)
			continue;
		step->blocks[i].died = TS_NEVER;
		step->blocks[i].died_event = TS_NEVER;
	}
}

/* Asked while the device is idle anyway: a step was waited for. */
static void look_at_devices(const struct ts_recording *step)
{
	bool seen[TS_AGENT_DEVICES] = {false};

	if (atomic_load(&ts_agent.capturing))
		return;
	for (size_t i = 0; i < step->block_count; i++) {
		int device = step->blocks[i].device;

		if (device >= 0 && device < TS_AGENT_DEVICES && !seen[device])
			ts_device_look(device, &profiler.facts[device]);
		if (device >= 0 && device < TS_AGENT_DEVICES)
			seen[device] = true;
	}
}

/* Addresses move in the first steps: who plans waits for the last. */
static bool has_settled(const struct ts_shape *shape)
{
	struct ts_cycle_found found = ts_cycles_find(&profiler.cycles);

	return shape->seen >= (shape->told ? SETTLED_TOLD : SETTLED_STEPS) &&
	       ((found.steps && ts_cycles_begins(&profiler.cycles, &found)) ||
	               profiler.cycles.noted >= UNSETTLED_STEPS);
}

static bool is_to_publish(const struct ts_shape *shape)
{
	if (profiler.watch.ready && !has_settled(shape))
		return false;
	return !shape->published && is_timed(shape) &&
	       (!profiler.by_period || shape->seen >= PERIODS_MIN);
}

/* Who plans has to know of all that comes until a step comes again. */
static void add_cycle(struct ts_observed *observed)
{
	struct ts_cycle_found found = ts_cycles_find(&profiler.cycles);
	struct ts_recording joined;
	int rc;

	observed->in_turn = found.shapes > 1;
	if (!profiler.watch.ready || found.steps < 2 || found.torn ||
	        !observed->device_count)
		return;
	rc = ts_cycles_join(&profiler.cycles, &found, &joined);
	if (!rc)
		rc = ts_observed_add_cycle(
		        observed, &joined, &found, profiler.facts);
	ts_log(TS_LOG_DEBUG,
	        "large blocks are where they were after %u steps%s",
	        found.steps, rc ? ", which is not made use of" : "");
}

/* What is to be done with a step of a known shape. Takes over its content. */
static void use_step(
        struct ts_recording *step, struct ts_shape *shape, bool write)
{
	bool publishes = is_to_publish(shape);
	struct ts_observed *observed;

	if (!write && !publishes) {
		ts_recording_finish(step);
		return;
	}
	observed = ts_observed_create(step, shape, profiler.facts);
	if (!observed)
		return;
	if (write)
		write_profiles(observed, shape);
	if (publishes)
		add_cycle(observed);
	if (publishes)
		publish(observed, shape);
	else
		ts_observed_destroy(observed);
}

/*
 * Every shape that comes again is followed, and none needs more times; nor has
 * another come in between.
 */
static bool may_pause(const struct ts_shape *shape)
{
	size_t wanted = ts_shapes_recent(&profiler.shapes, RECENT_STEPS);

	return shape->published && wanted && profiler.done_in_row > wanted &&
	       !ts_recorder_is_timing();
}

/* Nothing is known of how fast the device is. */
static void forget_times(void)
{
	ts_shapes_forget_times(&profiler.shapes);
	for (int i = 0; i < TS_AGENT_DEVICES; i++)
		profiler.facts[i].known = false;
	profiler.timed = 0;
	profiler.done_in_row = 0;
	ts_recorder_set_timing(true);
}

/* A step that began before that tells nothing either. */
static void forget_times_of(struct ts_recording *step)
{
	for (size_t i = 0; i < step->op_count; i++) {
		step->ops[i].duration_ns = TS_UNKNOWN_NS;
		step->ops[i].gap_ns = TS_UNKNOWN_NS;
	}
	step->duration_ns = TS_UNKNOWN_NS;
}

static void take_step(bool wait)
{
	struct ts_recording step;
	struct ts_shape *shape;
	uint64_t timed;
	bool write, was_again = profiler.written_again;

	if (!ts_recorder_take(wait, &step))
		return;
	if (atomic_exchange(&profiler.stale, false)) {
		forget_times();
		forget_times_of(&step);
	}
	if (atomic_exchange(&profiler.anew, false)) {
		ts_shapes_unpublish(&profiler.shapes);
		profiler.done_in_row = 0;
	}
	if (!wait)
		revive(&step);
	else
		look_at_devices(&step);
	if (!ts_recorder_saw_backward() && !atomic_load(&profiler.marked))
		profiler.by_period = true;
	else if (profiler.by_period) {
		forget_periods();
		/* Layers of the first forward went for steps. */
		step.partial = true;
	}
	timed = profiler.shapes.timed;
	shape = ts_shapes_note(&profiler.shapes, &step);
	timed = profiler.shapes.timed - timed;
	atomic_store(&profiler.taken, profiler.shapes.steps);
	say_step(step.first_launch);
	if (shape)
		count_length(shape->op_count);
	if (!shape) {
		profiler.done_in_row = 0;
		ts_cycles_forget(&profiler.cycles);
		ts_recording_finish(&step);
		return;
	}
	ask_for_times(shape, &step);
	if (profiler.watch.ready)
		ts_cycles_note(&profiler.cycles, &step, shape->hash);
	write = timed && is_worth_writing(&step, shape);
	if (wait)
		decide_timing(shape);
	else
		write &= !was_again;
	use_step(&step, shape, write);
	if (wait && may_pause(shape)) {
		ts_log(TS_LOG_DEBUG, "steps are followed, no longer recorded");
		ts_recorder_pause();
		ts_cycles_forget(&profiler.cycles);
	}
}

/* Everything that is alive now may be used by what is recorded next. */
static void resume(void)
{
	struct ts_blocks *blocks = &ts_agent.blocks;
	struct ts_block *block;

	atomic_store(&profiler.wanted, false);
	if (ts_recorder_is_recording())
		return;
	ts_log(TS_LOG_DEBUG, "ops are recorded again");
	profiler.done_in_row = 0;
	ts_cycles_forget(&profiler.cycles);
	/* What is seen from now on is told anew. */
	ts_shapes_unpublish(&profiler.shapes);
	if (atomic_exchange(&profiler.stale, false))
		forget_times();
	ts_recorder_resume(launches_so_far());
	ts_mutex_lock(&blocks->lock);
	for (block = ts_blocks_next_locked(blocks, 0); block;
	        block = ts_blocks_next_locked(blocks, block->address)) {
		block->touched = true;
		ts_recorder_knows(block);
	}
	ts_mutex_unlock(&blocks->lock);
}

/* An op that was followed only. */
static void follow(const struct ts_op *op)
{
	bool lost;

	if (op->spot.ends) {
		atomic_fetch_add_explicit(
		        &profiler.followed, 1, memory_order_relaxed);
		count_length(op->spot.step->op_count);
		say_step(atomic_exchange_explicit(
		        &profiler.began, TS_NEVER, memory_order_relaxed));
		call(profiler.watch.step_ends, op);
	}
	/* A backward outside all steps that are known belongs to a new one. */
	lost = !op->spot.sure &&
	       (op->backward || ts_track_astray() > ASTRAY_MAX);
	if (!lost &&
	        !atomic_load_explicit(&profiler.wanted, memory_order_relaxed))
		return;
	if (atomic_exchange(&profiler.taking, true))
		return;
	resume();
	atomic_store(&profiler.taking, false);
}

static void take(bool wait)
{
	if (atomic_exchange(&profiler.taking, true))
		return;
	take_step(wait);
	atomic_store(&profiler.taking, false);
}

void ts_profiler_end(struct ts_op *op, bool issued)
{
	if (!profiler.on)
		return;
	if (!issued) {
		ts_track_lose();
		ts_timing_release(op->timer);
		return;
	}
	if (!op->recorded) {
		follow(op);
		return;
	}
	ts_timing_end(op->timer, op->stream);
	if (op->spot.ends)
		call(profiler.watch.step_ends, op);
	if (ts_recorder_op(op, ends_period()))
		take(true);
}

void ts_profiler_mark(void)
{
	if (!profiler.on)
		return;
	atomic_store(&profiler.marked, true);
	ts_track_mark();
	if (ts_recorder_mark())
		take(true);
}

void ts_profiler_synchronized(void)
{
	if (profiler.on)
		ts_recorder_settle();
}

void ts_agent_yield_cupti(void)
{
	ts_timing_yield_cupti();
}

void ts_profiler_stop(void)
{
	if (profiler.on)
		take(false);
}
