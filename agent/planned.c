/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/base/units.h"
#include "agent/jsonfile.h"
#include "agent/observed.h"
#include "agent/planned_clock.h"
#include "agent/planned_follow.h"
#include "agent/planned_make.h"
#include "agent/profiler.h"
#include "agent/proof.h"
#include "planner/plan_json.h"

/*
 * After so many steps in a row in which pages were not where the plan has them
 * it is put into force anew; after one more it is made anew.
 */
#define BAD_STEPS_MAX 2
/* So many ops of a step, and one in so many, may need the pager's help. */
#define FEW    2
#define FEW_OF 256
/* Steps are timed over so many ops between them. */
#define BETWEEN_TIMED 64
/* After so many the program may have gone over to other steps. */
#define BETWEEN_OTHER 1000
/* Plans that never carried a step through; then the pager stays alone. */
#define PLANS_IN_VAIN_MAX 6
/* So often in a row the device may not be done when a plan is taken up. */
#define WAITS_IN_VAIN_MAX 3
/* Who wants the plan's file waits for other threads a second at most. */
#define LOCK_TRIES   1000
#define LOCK_WAIT_US 1000

static struct {
	bool on; /* constant after start */
	atomic_bool has_plan;
	atomic_uint missed;  /* ops the pager had to help, on the step */
	atomic_uint doubted; /* of these, with doubtful uses */

	struct ts_mutex lock;
	/* Guarded by lock. */
	int device;
	struct ts_follow follow;
	struct ts_planned_plan made;
	json_t *json; /* the plan, as it is written */
	bool adopted; /* pages are as the plan wants them */
	bool on_step; /* op `at` of the step comes next */
	bool to_join; /* at its start the plan has to come into force */
	uint32_t at;
	uint64_t between;       /* ops since the last step ended */
	unsigned int bad_steps; /* in a row, in which it did not hold */
	unsigned int in_vain;   /* plans without a good step, in a row */
	unsigned int waits;     /* for the device, in vain, in a row */
	bool rewrite;           /* the file offers what was dropped */
	bool carried;           /* this plan carried a step through */
	bool said;
	bool read_plan; /* TAPESWAP_PLAN was looked at */
	struct ts_planned_figures figures;
} planned;

/* Lock held. */
static void drop_plan(void)
{
	struct ts_pager *pager = ts_agent_pager(planned.device);

	if (pager)
		ts_enforce_end(pager);
	atomic_store(&planned.has_plan, false);
	ts_follow_finish(&planned.follow);
	ts_planned_plan_finish(&planned.made);
	/* Nor is it offered to the next run. */
	planned.rewrite |=
	        planned.json && !json_object_del(planned.json, "tape");
	planned.on_step = false;
	planned.adopted = false;
	planned.waits = 0;
	planned.in_vain = planned.carried ? 0 : planned.in_vain + 1;
	if (planned.in_vain < PLANS_IN_VAIN_MAX)
		ts_profiler_resume();
}

/* Off the step, for whatever reason. Lock held. */
static void leave(void)
{
	planned.figures.left += planned.on_step;
	ts_planned_clock_stop();
	planned.on_step = false;
	ts_follow_reset(&planned.follow);
}

/* The first op of the step comes next. 0 or a negative errno. Lock held. */
static int join(struct ts_pager *pager)
{
	int rc;

	planned.figures.joins++;
	if (planned.adopted) {
		ts_enforce_resume(pager);
		return 0;
	}
	rc = ts_enforce_adopt(pager, &planned.made.pages);
	planned.adopted = !rc;
	planned.figures.adopted += !rc;
	if (rc)
		ts_log(TS_LOG_DEBUG, "plan: not taken up: %s", strerror(-rc));
	return rc;
}

/* The step begins with the op that comes. Lock held. False: without plan. */
static bool begin_step(struct ts_pager *pager)
{
	int rc;

	if (!planned.to_join && !planned.between)
		return true;
	rc = join(pager);
	/* After this step it may do. */
	if (rc == -EAGAIN && ++planned.waits < WAITS_IN_VAIN_MAX) {
		leave();
		return false;
	}
	if (rc) {
		drop_plan();
		return false;
	}
	planned.waits = 0;
	if (planned.between > BETWEEN_TIMED)
		ts_planned_clock_stop();
	planned.to_join = false;
	planned.between = 0;
	atomic_store(&planned.missed, 0);
	atomic_store(&planned.doubted, 0);
	ts_enforce_astray(pager);
	return true;
}

/* A step went by: did pages come and go as planned? Lock held. */
static void end_step(struct ts_pager *pager)
{
	uint64_t astray = ts_enforce_astray(pager);
	unsigned int missed = atomic_exchange(&planned.missed, 0);

	planned.at = 0;
	planned.figures.steps++;
	planned.figures.astray += astray;
	planned.figures.missed += missed;
	planned.figures.doubted += atomic_exchange(&planned.doubted, 0);
	/* The pager helps out; that is dear only where it is often. */
	if (astray + missed <= planned.follow.n_ops / FEW_OF + FEW) {
		planned.carried = true;
		planned.bad_steps = 0;
		return;
	}
	planned.bad_steps++;
	ts_log(TS_LOG_DEBUG,
	        "plan: %u ops found pages missing, %u pages astray", missed,
	        (unsigned int)astray);
	if (planned.bad_steps < BAD_STEPS_MAX)
		return;
	/* Chunks may have changed hands; then addresses may have moved. */
	if (planned.bad_steps == BAD_STEPS_MAX) {
		planned.adopted = false;
		planned.to_join = true;
		return;
	}
	ts_log(TS_LOG_DEBUG, "plan: does not hold, a new one follows");
	drop_plan();
}

/* A whole step has just passed: the next one may go by the plan. Lock held. */
static void look_for_step(const struct ts_follow_op *op)
{
	if (!ts_follow_push(&planned.follow, op))
		return;
	planned.on_step = true;
	planned.to_join = true;
	planned.between = 0;
	planned.at = 0;
}

/* Lock held. */
static void follow_op(struct ts_pager *pager, struct ts_op *item,
        const struct ts_follow_op *op)
{
	if (!planned.on_step) {
		look_for_step(op);
		return;
	}
	if (!ts_follow_is(&planned.follow, planned.at, op)) {
		/* Between steps there may be anything. */
		if (!planned.at) {
			planned.between++;
			return;
		}
		leave();
		look_for_step(op);
		return;
	}
	if (!planned.at && !begin_step(pager)) {
		if (atomic_load(&planned.has_plan))
			look_for_step(op);
		return;
	}
	/*
	 * The plan has no word that is taken for none. What else than unused
	 * slots is behind one stays, or comes by the pager all the same.
	 */
	item->doubted = ts_op_skip_unused(item);
	if (!planned.at)
		ts_planned_clock_step(ts_agent.ops, (CUstream)op->stream);
	ts_enforce_op(pager, planned.at);
	if (++planned.at == planned.follow.n_ops)
		end_step(pager);
}

void ts_planned_missed(const struct ts_op *op)
{
	atomic_fetch_add_explicit(&planned.missed, 1, memory_order_relaxed);
	if (op->doubted)
		atomic_fetch_add_explicit(
		        &planned.doubted, 1, memory_order_relaxed);
}

static void write_plan(void)
{
	const char *path = ts_agent.config.plan;
	json_t *json;
	int rc;

	if (!*path)
		return;
	json = ts_planned_json();
	/* At exit it is written in any case. */
	if (!json)
		return;
	rc = ts_json_write(json, path, JSON_COMPACT);
	json_decref(json);
	if (rc)
		ts_log(TS_LOG_ERROR, "TAPESWAP_PLAN=\"%s\" was not written: %s",
		        path, strerror(-rc));
}

void ts_planned_op(struct ts_op *op)
{
	struct ts_follow_op at = {.stream = op->stream};
	struct ts_pager *pager;
	bool rewrite;

	if (!atomic_load_explicit(&planned.has_plan, memory_order_acquire))
		return;
	at.signature = op->signature;
	ts_mutex_lock(&planned.lock);
	pager = ts_agent_pager(planned.device);
	if (atomic_load(&planned.has_plan) && pager) {
		/* Shadow steps are the pager's. */
		if (atomic_load(&ts_agent.capturing) || ts_proof_is_pending())
			leave();
		else
			follow_op(pager, op, &at);
	}
	rewrite = planned.rewrite;
	planned.rewrite = false;
	ts_mutex_unlock(&planned.lock);
	if (rewrite)
		write_plan();
}

static int start_following(const struct ts_recording *step)
{
	uint32_t n = (uint32_t)step->op_count;
	struct ts_follow_op *ops = malloc(n * sizeof(*ops));
	int rc;

	if (!ops)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		ops[i] = (struct ts_follow_op){
		        step->ops[i].signature, step->ops[i].stream};
	rc = ts_follow_init(&planned.follow, ops, n);
	free(ops);
	return rc;
}

/* The ops since the step, as far as the tape has them. */
static void catch_up(const struct ts_recording *step)
{
	struct ts_tape *tape = &ts_agent.tape;
	uint64_t at = step->first_op + step->op_count;

	ts_mutex_lock(&tape->lock);
	for (; at < tape->op_count; at++) {
		const struct ts_tape_op *op;

		if (at < tape->oldest_op)
			continue;
		op = ts_tape_op(tape, at);
		ts_follow_push(&planned.follow,
		        &(struct ts_follow_op){op->signature, op->stream});
	}
	ts_mutex_unlock(&tape->lock);
}

static void say_plan(void)
{
	const struct ts_plan *plan = &planned.made.plan;

	if (planned.said)
		return;
	planned.said = true;
	ts_log(TS_LOG_INFO,
	        "plan: step %.1f ms, %.1f unlimited; %s of %s leaves and comes "
	        "back a step",
	        (double)plan->predicted_step_ns * 1e-6,
	        (double)plan->unlimited_step_ns * 1e-6,
	        ts_size(plan->swap_bytes).text,
	        ts_size(plan->unlimited_peak_bytes).text);
}

/* Lock held. */
static bool is_followed(const struct ts_recording *step)
{
	bool same = step->op_count == planned.follow.n_ops;

	for (uint32_t i = 0; same && i < planned.follow.n_ops; i++)
		same = ts_follow_is(&planned.follow, i,
		        &(struct ts_follow_op){
		                step->ops[i].signature, step->ops[i].stream});
	return same;
}

/* The planner knew of pages that move; people know the whole device. */
static void tell_all(
        struct ts_planned_plan *made, const struct ts_enforce_survey *survey)
{
	struct ts_plan *plan = &made->plan;
	uint64_t others =
	        survey->other_bytes + survey->fixed_pages * survey->page_bytes;

	plan->limit_bytes = survey->limit_bytes;
	plan->predicted_peak_bytes += others;
	/* One that was read has the others in these. */
	if (made->was_offered)
		return;
	plan->unlimited_peak_bytes += others;
	plan->smallest_feasible_limit_bytes += others;
}

/* The plan that an earlier process left in TAPESWAP_PLAN, if it was such. */
static bool load_offered(const struct ts_observed *observed,
        const struct ts_enforce_survey *survey, struct ts_plan *ret_plan,
        uint64_t *ret_bytes)
{
	const char *path = ts_agent.config.plan, *tape = "", *why = NULL;
	struct ts_input_error error;
	json_int_t bytes = 0;
	json_t *json;
	char hash[24];

	if (!*path || planned.read_plan || access(path, R_OK))
		return false;
	planned.read_plan = true;
	json = json_load_file(path, 0, NULL);
	snprintf(hash, sizeof(hash), "%016" PRIx64, observed->hash);
	if (ts_plan_load(path, ret_plan, &error)) {
		ts_log(TS_LOG_INFO, "plan: %s holds none (%s: %s), one is made",
		        path, error.path, error.message);
		json_decref(json);
		return false;
	}
	json_unpack(json, "{s?:s, s?:{s?:I}}", "tape", &tape, "chunks",
	        "moving_bytes", &bytes);
	if (strcmp(tape, hash))
		why = "other steps";
	else if (ret_plan->limit_bytes != survey->limit_bytes)
		why = "another limit";
	if (why) {
		ts_log(TS_LOG_INFO, "plan: that in %s is for %s, one is made",
		        path, why);
		ts_plan_finish(ret_plan);
	}
	json_decref(json);
	*ret_bytes = (uint64_t)bytes;
	return !why;
}

static void say_offered(void)
{
	ts_log(TS_LOG_INFO,
	        planned.made.was_offered
	                ? "plan: that in %s is taken"
	                : "plan: that in %s does not fit, one is made",
	        ts_agent.config.plan);
}

/* Lock held. */
static int make_plan(struct ts_pager *pager, const struct ts_observed *observed)
{
	const struct ts_observed_device *device = &observed->devices[0];
	struct ts_planned_step input = {.step = &observed->step,
	        .profile = &device->profile,
	        .values = &device->values};
	struct ts_enforce_survey survey;
	struct ts_plan offered;
	char hash[24];
	int rc;

	rc = ts_enforce_survey(pager, &survey);
	if (rc)
		return rc;
	input.survey = &survey;
	if (load_offered(observed, &survey, &offered, &input.offered_bytes))
		input.offered = &offered;
	rc = ts_planned_make(&input, &planned.made);
	free(survey.segments);
	if (input.offered) {
		ts_plan_finish(&offered);
		if (!rc)
			say_offered();
	}
	if (rc)
		return rc;
	tell_all(&planned.made, &survey);
	rc = start_following(&observed->step);
	if (rc) {
		ts_planned_plan_finish(&planned.made);
		return rc;
	}
	json_decref(planned.json);
	planned.json =
	        ts_plan_to_json(&planned.made.plan, &planned.made.view.profile);
	ts_planned_view_finish(&planned.made.view);
	snprintf(hash, sizeof(hash), "%016" PRIx64, observed->hash);
	json_object_set_new(planned.json, "tape", json_string(hash));
	return 0;
}

/* Lock held. True where a plan was made. */
static bool plan_for(struct ts_pager *pager, const struct ts_observed *observed)
{
	int rc;

	if (planned.in_vain >= PLANS_IN_VAIN_MAX)
		return false;
	if (atomic_load(&planned.has_plan)) {
		if ((planned.on_step && planned.between < BETWEEN_OTHER) ||
		        is_followed(&observed->step))
			return false;
		drop_plan();
	}
	planned.device = observed->devices[0].device;
	planned.bad_steps = 0;
	planned.carried = false;
	planned.adopted = false;
	rc = make_plan(pager, observed);
	if (rc) {
		planned.in_vain++;
		ts_log(TS_LOG_DEBUG, "plan: none made: %s", strerror(-rc));
		return false;
	}
	catch_up(&observed->step);
	planned.figures.plans++;
	say_plan();
	atomic_store(&planned.has_plan, true);
	return true;
}

/* On the thread that issues ops, without any lock of the agent's. */
static void ready(const struct ts_observed *observed, void *data)
{
	struct ts_pager *pager;
	bool made;

	(void)data;
	/* What repeats without a backward may be preparation. */
	if (!observed->turn_count || !observed->device_count)
		return;
	pager = ts_agent_pager(observed->devices[0].device);
	if (!pager)
		return;
	ts_mutex_lock(&planned.lock);
	made = plan_for(pager, observed) || planned.rewrite;
	planned.rewrite = false;
	ts_mutex_unlock(&planned.lock);
	if (made)
		write_plan();
}

void ts_planned_init(void)
{
	static const struct ts_watch watch = {.ready = ready};

	planned.on = ts_agent.config.mode == TS_MODE_PLAN && ts_agent_places();
	if (!planned.on)
		return;
	ts_mutex_init(&planned.lock, TS_RANK_PLAN);
	ts_profiler_watch(&watch);
}

json_t *ts_planned_status(void)
{
	const struct ts_planned_figures *figures = &planned.figures;

	if (!planned.on || !figures->plans)
		return NULL;
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "plans",
	        (json_int_t)figures->plans, "adopted",
	        (json_int_t)figures->adopted, "joins",
	        (json_int_t)figures->joins, "left", (json_int_t)figures->left,
	        "steps", (json_int_t)figures->steps, "missed",
	        (json_int_t)figures->missed, "doubted",
	        (json_int_t)figures->doubted, "astray",
	        (json_int_t)figures->astray);
}

/* Lock held. */
static json_t *plan_json(void)
{
	json_t *root = json_deep_copy(planned.json), *part;
	struct ts_planned_clock clock;

	if (!root)
		return NULL;
	json_object_set_new(root, "tool_version", json_string(TS_VERSION));
	part = ts_planned_status();
	ts_planned_clock_read(&clock);
	if (part) {
		json_object_set_new(part, "timed_steps",
		        json_integer((json_int_t)clock.steps));
		if (clock.steps) {
			json_object_set_new(part, "step_ns",
			        json_integer((json_int_t)clock.last_ns));
			json_object_set_new(part, "shortest_step_ns",
			        json_integer((json_int_t)clock.shortest_ns));
		}
		json_object_set_new(root, "measured", part);
	}
	json_object_set_new(root, "chunks",
	        json_pack("{s:I, s:I, s:I, s:I}", "moving_bytes",
	                (json_int_t)planned.made.moving_bytes, "needed",
	                (json_int_t)planned.made.pages.n_chunks, "there",
	                (json_int_t)planned.made.chunks_there, "peak",
	                (json_int_t)planned.made.pages.peak_pages));
	return root;
}

json_t *ts_planned_json(void)
{
	bool locked = false;
	json_t *json;

	/* At exit a thread may hold it that never comes back. */
	for (int i = 0; planned.on && !locked && i < LOCK_TRIES; i++) {
		locked = ts_mutex_try_lock(&planned.lock);
		if (!locked)
			usleep(LOCK_WAIT_US);
	}
	if (!locked)
		return NULL;
	json = plan_json();
	ts_mutex_unlock(&planned.lock);
	return json;
}
