/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_file.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/jsonfile.h"
#include "planner/plan_json.h"

#define HASH_TEXT 24

static bool looked_at;
/* What was found in the file is somebody's, and stays. */
static bool is_kept;
/* The file that is written instead. */
static char other_path[PATH_MAX];

static void write_hash(const struct ts_observed *observed, char *ret_text)
{
	snprintf(ret_text, HASH_TEXT, "%016" PRIx64, observed->hash);
}

/* Somebody made it, or it is no plan at all: it is not for us to replace. */
static void keep_file(const char *path)
{
	int length = snprintf(other_path, sizeof(other_path), "%s.new", path);

	is_kept = true;
	if (length < 0 || (size_t)length >= sizeof(other_path))
		*other_path = '\0';
	ts_log(TS_LOG_WARN,
	        "plan: %s was not left by a run of this program: it stays, one "
	        "is made and written to %s",
	        path, other_path);
}

const char *ts_planned_file_path(void)
{
	return is_kept ? other_path : ts_agent.config.plan;
}

bool ts_planned_file_offer(const struct ts_observed *observed,
        const struct ts_enforce_survey *survey, struct ts_plan *ret_plan,
        uint64_t *ret_moving_bytes)
{
	const char *path = ts_agent.config.plan, *tape = "", *why = NULL;
	struct ts_input_error error;
	json_int_t bytes = 0;
	char hash[HASH_TEXT];
	json_t *json;

	if (looked_at)
		return false;
	looked_at = true;
	if (!*path || access(path, R_OK))
		return false;
	json = json_load_file(path, 0, NULL);
	write_hash(observed, hash);
	if (!ts_json_is_of_run(json)) {
		keep_file(path);
		json_decref(json);
		return false;
	}
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
	*ret_moving_bytes = (uint64_t)bytes;
	return !why;
}

void ts_planned_file_say(bool taken)
{
	ts_log(TS_LOG_INFO,
	        taken ? "plan: that in %s is taken"
	              : "plan: that in %s does not fit, one is made",
	        ts_agent.config.plan);
}

json_t *ts_planned_file_json(
        const struct ts_planned_plan *made, const struct ts_observed *observed)
{
	json_t *root = ts_plan_to_json(&made->plan, &made->view.profile);
	char hash[HASH_TEXT];

	write_hash(observed, hash);
	json_object_set_new(root, "tape", json_string(hash));
	if (observed->cycle && observed->cycle->rounds > 1)
		json_object_set_new(root, "cycle_steps",
		        json_integer(observed->cycle->rounds));
	json_object_set_new(root, "chunks",
	        json_pack("{s:I, s:I, s:I, s:I, s:I}", "moving_bytes",
	                (json_int_t)made->moving_bytes, "needed",
	                (json_int_t)made->pages.n_chunks, "there",
	                (json_int_t)made->chunks_there, "peak",
	                (json_int_t)made->pages.peak_pages, "remaps",
	                (json_int_t)made->pages.remaps));
	if (!made->n_replays)
		return root;
	json_object_set_new(root, "made_again",
	        json_pack("{s:I, s:I, s:I, s:I}", "values",
	                (json_int_t)made->n_replays, "bytes",
	                (json_int_t)made->replayed_bytes, "scratch_bytes",
	                (json_int_t)made->scratch_bytes, "without_ns",
	                (json_int_t)made->kept_ns));
	return root;
}

void ts_planned_file_write(json_t *json)
{
	const char *path = ts_planned_file_path();

	if (json && *path)
		ts_json_write_setting(
		        json, "TAPESWAP_PLAN", path, JSON_COMPACT);
	else
		json_decref(json);
}
