/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_file.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/hash.h"
#include "agent/jsonfile.h"
#include "agent/jsonlook.h"
#include "planner/plan_json.h"

#define HASH_TEXT 24

/*
 * What an earlier run, or somebody else, left in the file; read once, before
 * this run writes its own.
 */
static struct {
	pthread_once_t once;
	json_t *json; /* until it was offered; NULL: it cannot be read */
	struct ts_input_error error; /* why */
	/* What a run says of the times of one kind of step. */
	char tape[HASH_TEXT], device[256];
	uint64_t *ops_ns, step_ns;
	size_t count;
} found = {.once = PTHREAD_ONCE_INIT};

static bool looked_at;
/* No plan can be in the file. */
static bool has_none;
/* What was found in the file is somebody's, and stays. */
static bool is_kept;
/* The file that is written instead. */
static char other_path[PATH_MAX];

/* Numbers of @list, which has @count of them. */
static uint64_t *read_times(json_t *list, size_t count)
{
	uint64_t *times;
	json_t *item;
	size_t i;

	if (!count || json_array_size(list) != count)
		return NULL;
	times = malloc(count * sizeof(*times));
	json_array_foreach (list, i, item) {
		if (!times || !json_is_integer(item) ||
		        json_integer_value(item) < 0) {
			free(times);
			return NULL;
		}
		times[i] = (uint64_t)json_integer_value(item);
	}
	return times;
}

/* Pipes and devices are written to only; an empty file is as good as none. */
static bool has_content(const char *path)
{
	struct stat there;

	return !stat(path, &there) && S_ISREG(there.st_mode) && there.st_size;
}

/* Once. */
static void read_file(void)
{
	const char *path = ts_agent.config.plan, *tape, *device;
	json_int_t step_ns;
	json_t *list;

	if (has_none || !has_content(path) || access(path, R_OK) ||
	        ts_plan_read_tree(path, &found.json, &found.error) ||
	        json_unpack(found.json, "{s:s, s:{s:s, s:o, s:I}}", "tape",
	                &tape, "timed", "device", &device, "ops_ns", &list,
	                "step_ns", &step_ns) ||
	        step_ns <= 0)
		return;
	snprintf(found.tape, sizeof(found.tape), "%s", tape);
	snprintf(found.device, sizeof(found.device), "%s", device);
	found.count = json_array_size(list);
	found.ops_ns = read_times(list, found.count);
	found.step_ns = (uint64_t)step_ns;
}

/* Of shapes that take turns it counts which of them begins, too. */
static void write_hash(const struct ts_observed *observed, char *ret_text)
{
	uint64_t hash = observed->hash;

	if (observed->in_turn && observed->cycle)
		hash = ts_hash_word(observed->cycle->id, hash);
	snprintf(ret_text, HASH_TEXT, "%016" PRIx64, hash);
}

static unsigned int rounds_of(const struct ts_observed *observed)
{
	return observed->cycle ? observed->cycle->rounds : 1;
}

/* Somebody made it, or it is no plan at all: it is not for us to replace. */
static void keep_file(const char *path)
{
	int length = snprintf(other_path, sizeof(other_path), "%s.new", path);

	is_kept = true;
	if (length < 0 || (size_t)length >= sizeof(other_path))
		*other_path = '\0';
}

/*
 * Why nothing in the file can be a plan; "" where something may be. What would
 * take a tree to find out is found when the plan is wanted.
 */
static void find_fault(const char *path, char *ret_why, size_t size)
{
	struct ts_jsonlook look;
	int rc = access(path, R_OK) ? -errno : 0;

	if (!rc)
		rc = ts_jsonlook(path, true, &look);
	if (rc == -EINVAL)
		snprintf(ret_why, size, "it is no JSON object");
	else if (rc == -ENODATA)
		snprintf(ret_why, size, "it is cut off, or no JSON");
	else if (rc == -EFBIG)
		snprintf(ret_why, size, "it is larger than any");
	else if (rc)
		snprintf(ret_why, size, "it cannot be read: %s", strerror(-rc));
	else if (!*look.schema)
		snprintf(ret_why, size, "it names no schema");
	else if (strcmp(look.schema, "tapeswap-plan") != 0)
		snprintf(ret_why, size, "its schema is \"%s\"", look.schema);
	else if (strncmp(look.version, "1.", 2) != 0)
		snprintf(ret_why, size,
		        "its schema_version is \"%s\", and 1 is read",
		        look.version);
}

static bool is_tape(const char *path)
{
	struct ts_jsonlook look;

	return !ts_jsonlook(path, false, &look) && !strcmp(look.schema, "tape");
}

int ts_planned_file_begin(void)
{
	const char *path = ts_agent.config.plan;
	bool strict = ts_agent.config.strict, there = has_content(path);
	char why[96] = "";

	if (there && is_tape(path)) {
		has_none = true;
		ts_log(TS_LOG_INFO,
		        "plan: %s holds what a run in mode cap did: one is "
		        "made, and written there",
		        path);
	} else if (there) {
		find_fault(path, why, sizeof(why));
	}
	if (*why && strict) {
		ts_log(TS_LOG_ERROR,
		        "CUDA refused: TAPESWAP_PLAN=\"%.200s\" holds no plan: "
		        "%s",
		        path, why);
		return -EINVAL;
	}
	if (*why) {
		has_none = true;
		keep_file(path);
		ts_log(TS_LOG_WARN,
		        "TAPESWAP_PLAN=\"%.200s\" holds no plan: %s; it stays, "
		        "and what is made is written to %.200s",
		        path, why, other_path);
	}
	path = ts_planned_file_path();
	if (*path)
		ts_json_check_place("TAPESWAP_PLAN", path);
	return *why ? -EINVAL : 0;
}

/* True where the values that @json decides on are those of @profile. */
static bool has_values_of(json_t *json, const struct ts_profile *profile)
{
	json_t *decision;
	size_t i;

	json_array_foreach (json_object_get(json, "decisions"), i, decision) {
		const struct ts_value *value;
		const char *name = NULL;
		json_int_t index, ordinal = -1;

		json_unpack(decision, "{s:I, s?:{s:s, s:I}}", "value", &index,
		        "coordinate", "signature", &name, "ordinal", &ordinal);
		if (!name)
			continue;
		if (index >= profile->n_values)
			return false;
		value = &profile->values[index];
		if (value->signature == TS_NONE || value->ordinal != ordinal ||
		        strcmp(profile->signatures[value->signature].name,
		                name) != 0)
			return false;
	}
	return true;
}

/* Why the plan that @json holds is none for the step at hand; or NULL. */
static const char *not_for(const struct ts_observed *observed,
        const struct ts_enforce_survey *survey, json_t *json,
        const struct ts_plan *plan)
{
	const struct ts_profile *profile = &observed->devices[0].profile;
	const char *tape = NULL;
	char hash[HASH_TEXT];
	json_int_t rounds = 1;

	write_hash(observed, hash);
	json_unpack(
	        json, "{s?:s, s?:I}", "tape", &tape, "cycle_steps", &rounds);
	if (tape && (strcmp(tape, hash) != 0 || rounds != rounds_of(observed)))
		return "other steps";
	if (!tape && json_object_get(json, "measured"))
		return "steps that it did not hold for";
	/* Made from a profile, without a look at pages. */
	if (!tape && (plan->n_ops != observed->op_count ||
	                     plan->n_values != profile->n_values ||
	                     !has_values_of(json, profile)))
		return "other steps";
	if (plan->limit_bytes != survey->limit_bytes &&
	        (tape || plan->limit_bytes > survey->limit_bytes))
		return "another limit";
	return NULL;
}

const char *ts_planned_file_path(void)
{
	return is_kept ? other_path : ts_agent.config.plan;
}

bool ts_planned_file_is_of_run(void)
{
	return looked_at && !is_kept;
}

bool ts_planned_file_offer(const struct ts_observed *observed,
        const struct ts_enforce_survey *survey, struct ts_plan *ret_plan,
        uint64_t *ret_moving_bytes)
{
	const char *path = ts_agent.config.plan, *why;
	json_int_t bytes = 0;
	json_t *json;

	if (looked_at)
		return false;
	looked_at = true;
	pthread_once(&found.once, read_file);
	json = found.json;
	found.json = NULL;
	if (!json && !*found.error.path)
		return false;
	if (!ts_json_is_of_run(json)) {
		keep_file(path);
		ts_log(TS_LOG_WARN,
		        "plan: %s was not left by a run of this program: it "
		        "stays, and what is made is written to %s until it is "
		        "removed",
		        path, other_path);
	}
	if (!json || ts_plan_from_json(json, ret_plan, &found.error)) {
		ts_log(TS_LOG_INFO, "plan: %s holds none (%s: %s), one is made",
		        path, found.error.path, found.error.message);
		json_decref(json);
		return false;
	}
	json_unpack(json, "{s?:{s?:I}}", "chunks", "moving_bytes", &bytes);
	why = not_for(observed, survey, json, ret_plan);
	if (why) {
		ts_log(TS_LOG_INFO, "plan: that in %s is for %s, one is made",
		        path, why);
		ts_plan_finish(ret_plan);
	}
	json_decref(json);
	*ret_moving_bytes = (uint64_t)bytes;
	return !why;
}

void ts_planned_file_say(const struct ts_planned_plan *made)
{
	const char *path = ts_agent.config.plan;

	if (made->was_offered)
		ts_log(TS_LOG_INFO, "plan: that in %s is taken", path);
	else if (made->offered_chunks)
		ts_log(TS_LOG_INFO,
		        "plan: that in %s does not fit: %" PRIu64
		        " pages of memory are needed, %" PRIu64
		        " are there; one is made",
		        path, made->offered_chunks, made->chunks_there);
	else if (made->offered_rc == -ENOTSUP)
		ts_log(TS_LOG_INFO,
		        "plan: that in %s has values made again, which is to "
		        "be proved first; one is made without",
		        path);
	else if (made->offered_rc == -EINVAL)
		ts_log(TS_LOG_INFO,
		        "plan: that in %s does not fit: its values are none of "
		        "this run's; one is made",
		        path);
	else
		ts_log(TS_LOG_INFO,
		        "plan: that in %s does not fit: more is needed at once "
		        "than there is; one is made",
		        path);
}

const uint64_t *ts_planned_file_times(
        uint64_t hash, size_t count, const char *device, uint64_t *ret_step_ns)
{
	char text[HASH_TEXT];

	pthread_once(&found.once, read_file);
	snprintf(text, sizeof(text), "%016" PRIx64, hash);
	if (!found.ops_ns || found.count != count ||
	        strcmp(found.tape, text) != 0)
		return NULL;
	if (strcmp(found.device, device) != 0) {
		ts_log(TS_LOG_INFO,
		        "plan: steps in %s were timed on a %s: they are timed",
		        ts_agent.config.plan, found.device);
		return NULL;
	}
	*ret_step_ns = found.step_ns;
	ts_log(TS_LOG_DEBUG, "plan: steps were timed by the run that left %s",
	        ts_agent.config.plan);
	return found.ops_ns;
}

/* What was measured of the step, for the next run; NULL where some is not. */
static json_t *times_json(
        const struct ts_recording *step, const struct ts_device *device)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < step->op_count; i++)
		if (step->ops[i].duration_ns == TS_UNKNOWN_NS ||
		        json_array_append_new(
		                list, json_integer((json_int_t)step->ops[i]
		                                           .duration_ns))) {
			json_decref(list);
			return NULL;
		}
	if (!list || step->duration_ns == TS_UNKNOWN_NS) {
		json_decref(list);
		return NULL;
	}
	return json_pack("{s:s, s:o, s:I}", "device", device->name, "ops_ns",
	        list, "step_ns", (json_int_t)step->duration_ns);
}

json_t *ts_planned_file_json(
        const struct ts_planned_plan *made, const struct ts_observed *observed)
{
	json_t *root = ts_plan_to_json(&made->plan, &made->view.profile);
	char hash[HASH_TEXT];

	write_hash(observed, hash);
	json_object_set_new(root, "tape", json_string(hash));
	json_object_set_new(root, "timed",
	        times_json(
	                &observed->step, &observed->devices[0].profile.device));
	if (rounds_of(observed) > 1)
		json_object_set_new(
		        root, "cycle_steps", json_integer(rounds_of(observed)));
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
