/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/plan_json.h"
#include "planner/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const ts_action_names[] = {"keep", "swap", "replay", NULL};

/* Times and sizes in a plan are bounded like those of a profile. */
#define MAX_TOTAL_NS INT64_MAX

static int read_decision(const struct ts_json_at *at,
        const struct ts_plan *plan, struct ts_decision *d)
{
	unsigned action;
	int err = ts_json_want_object(at);

	*d = (struct ts_decision){.from_operand = TS_NONE,
	        .to_operand = TS_NONE,
	        .offload_op = TS_NONE,
	        .prefetch_op = TS_NONE,
	        .due_op = TS_NONE};
	if (!err)
		err = ts_json_u32(at, "value", false, &d->value);
	if (!err && d->value >= plan->n_values)
		err = ts_json_bad(at, "value", "no such value");
	if (!err)
		err = ts_json_enum(at, "action", ts_action_names, &action);
	if (!err)
		err = ts_json_u32(at, "from_op", false, &d->from_op);
	if (!err && d->from_op >= plan->n_ops)
		err = ts_json_bad(at, "from_op", "no such op");
	if (!err)
		err = ts_json_u32(at, "to_op", false, &d->to_op);
	if (!err &&
	        (d->to_op <= d->from_op || d->to_op > d->from_op + plan->n_ops))
		err = ts_json_bad(at, "to_op", "not after from_op in a step");
	if (!err)
		err = ts_json_u32(at, "from_operand", true, &d->from_operand);
	if (!err)
		err = ts_json_u32(at, "to_operand", true, &d->to_operand);
	if (!err)
		err = ts_json_u32(at, "offload_op", true, &d->offload_op);
	if (!err && d->offload_op != TS_NONE && d->offload_op > d->from_op)
		err = ts_json_bad(at, "offload_op", "after the gap began");
	if (!err)
		err = ts_json_u32(at, "prefetch_op", true, &d->prefetch_op);
	if (!err)
		err = ts_json_u32(at, "due_op", true, &d->due_op);
	if (!err && d->due_op != TS_NONE &&
	        (d->due_op <= d->from_op || d->due_op > d->to_op))
		err = ts_json_bad(at, "due_op", "outside the gap");
	if (!err && d->prefetch_op != TS_NONE &&
	        (d->prefetch_op <= d->from_op || d->due_op == TS_NONE ||
	                d->prefetch_op > d->due_op))
		err = ts_json_bad(at, "prefetch_op", "outside the gap");
	if (!err)
		err = ts_json_u64(
		        at, "cost_ns", MAX_TOTAL_NS, true, &d->cost_ns);
	if (err)
		return err;
	d->action = (enum ts_action)action;
	if (d->action == TS_SWAP && d->prefetch_op == TS_NONE)
		return ts_json_bad(at, "prefetch_op", "missing");
	if (d->action != TS_KEEP && d->due_op == TS_NONE)
		return ts_json_bad(at, "due_op", "missing");
	return 0;
}

static int read_decisions(const struct ts_json_at *root, struct ts_plan *plan)
{
	struct ts_json_at list;
	size_t n;
	int err = ts_json_array(root, "decisions", false, &list);

	if (err)
		return err;
	n = json_array_size(list.node);
	if (n > TS_MAX_USES)
		return ts_json_bad(&list, NULL, "too many");
	plan->decisions = calloc(n ? n : 1, sizeof(*plan->decisions));
	if (!plan->decisions)
		return -ENOMEM;
	plan->n_decisions = (uint32_t)n;
	for (size_t i = 0; !err && i < n; i++) {
		struct ts_json_at at = ts_json_item(&list, i);

		err = read_decision(&at, plan, &plan->decisions[i]);
	}
	return err;
}

static int read_replays(const struct ts_json_at *root, struct ts_plan *plan)
{
	struct ts_json_at list;
	size_t n;
	int err = ts_json_array(root, "replays", false, &list);

	if (err)
		return err;
	n = json_array_size(list.node);
	if (n > TS_MAX_USES)
		return ts_json_bad(&list, NULL, "too many");
	plan->replays = calloc(n ? n : 1, sizeof(*plan->replays));
	if (!plan->replays)
		return -ENOMEM;
	plan->n_replays = (uint32_t)n;
	for (size_t i = 0; !err && i < n; i++) {
		struct ts_json_at at = ts_json_item(&list, i);
		struct ts_replay *r = &plan->replays[i];

		r->op = TS_NONE;
		err = ts_json_want_object(&at);
		if (!err)
			err = ts_json_u32(
			        &at, "before_op", false, &r->before_op);
		if (!err && r->before_op >= plan->n_ops)
			err = ts_json_bad(&at, "before_op", "no such op");
		if (!err && i && r->before_op < plan->replays[i - 1].before_op)
			err = ts_json_bad(&at, "before_op", "not ascending");
		if (!err)
			err = ts_json_u32(&at, "value", false, &r->value);
		if (!err && r->value >= plan->n_values)
			err = ts_json_bad(&at, "value", "no such value");
		if (!err)
			err = ts_json_u32(&at, "op", true, &r->op);
		if (!err && r->op != TS_NONE && r->op >= r->before_op)
			err = ts_json_bad(
			        &at, "op", "not an op that ran before");
		if (!err)
			err = ts_json_u64(&at, "duration_ns", TS_MAX_DURATION,
			        false, &r->duration_ns);
	}
	return err;
}

static int read_totals(const struct ts_json_at *root, struct ts_plan *plan)
{
	struct ts_json_at at;
	int err = ts_json_u64(
	        root, "limit_bytes", TS_MAX_BYTES, false, &plan->limit_bytes);

	if (!err)
		err = ts_json_u64(root, "swap_bytes", INT64_MAX, false,
		        &plan->swap_bytes);
	if (!err)
		err = ts_json_u64(root, "replay_ns", MAX_TOTAL_NS, false,
		        &plan->replay_ns);
	if (!err)
		err = ts_json_u64(root, "smallest_feasible_limit_bytes",
		        TS_MAX_BYTES, false,
		        &plan->smallest_feasible_limit_bytes);
	if (!err)
		err = ts_json_member(root, "predicted", &at);
	if (!err)
		err = ts_json_u64(&at, "step_ns", MAX_TOTAL_NS, false,
		        &plan->predicted_step_ns);
	if (!err)
		err = ts_json_u64(&at, "peak_bytes", TS_MAX_BYTES, false,
		        &plan->predicted_peak_bytes);
	if (!err)
		err = ts_json_member(root, "bound", &at);
	if (!err)
		err = ts_json_u64(&at, "step_ns", MAX_TOTAL_NS, false,
		        &plan->bound_step_ns);
	if (!err)
		err = ts_json_member(root, "unlimited", &at);
	if (!err)
		err = ts_json_u64(&at, "step_ns", MAX_TOTAL_NS, false,
		        &plan->unlimited_step_ns);
	if (!err)
		err = ts_json_u64(&at, "peak_bytes", TS_MAX_BYTES, false,
		        &plan->unlimited_peak_bytes);
	return err;
}

int ts_plan_from_json(const json_t *root, struct ts_plan *ret_plan,
        struct ts_input_error *error)
{
	struct ts_plan plan = {0};
	struct ts_json_at at = {.node = root, .error = error};
	const char *name = "";
	uint64_t n_ops = 0, n_values = 0;
	int err = ts_json_check(root, "tapeswap-plan", error);

	if (err)
		return err;
	err = ts_json_text(&at, "profile", true, &name);
	if (!err) {
		plan.profile_name = strdup(name);
		err = plan.profile_name ? 0 : -ENOMEM;
	}
	if (!err)
		err = ts_json_u64(&at, "n_ops", TS_MAX_OPS, false, &n_ops);
	if (!err)
		err = ts_json_u64(
		        &at, "n_values", TS_MAX_VALUES, false, &n_values);
	plan.n_ops = (uint32_t)n_ops;
	plan.n_values = (uint32_t)n_values;
	if (!err)
		err = read_totals(&at, &plan);
	if (!err)
		err = read_decisions(&at, &plan);
	if (!err)
		err = read_replays(&at, &plan);
	if (err)
		ts_plan_finish(&plan);
	else
		*ret_plan = plan;
	return err;
}

int ts_plan_parse(const char *text, size_t length, struct ts_plan *ret_plan,
        struct ts_input_error *error)
{
	json_t *root;
	int err = ts_json_tree(text, length, &root, error);

	if (err)
		return err;
	err = ts_plan_from_json(root, ret_plan, error);
	json_decref(root);
	return err;
}

int ts_plan_read_tree(
        const char *path, json_t **ret_root, struct ts_input_error *error)
{
	char *text;
	size_t length;
	int err = ts_json_read_file(path, &text, &length, error);

	if (err)
		return err;
	err = ts_json_tree(text, length, ret_root, error);
	free(text);
	return err;
}

int ts_plan_load(const char *path, struct ts_plan *ret_plan,
        struct ts_input_error *error)
{
	json_t *root;
	int err = ts_plan_read_tree(path, &root, error);

	if (err)
		return err;
	err = ts_plan_from_json(root, ret_plan, error);
	json_decref(root);
	return err;
}

/* The replays are those that the decisions ask for, in the same order. */
static int check_replays(const struct ts_plan *plan, const struct ts_graph *g,
        const struct ts_choice *choice, const struct ts_json_at *root)
{
	struct ts_json_at list = {NULL, root, "replays", 0, root->error};
	struct ts_program program;
	uint32_t at = 0;
	int err = ts_program_init(&program, g);

	if (err)
		return err;
	err = ts_program_compile(&program, choice);
	if (err == -EINVAL)
		err = ts_json_bad(root, "decisions",
		        "a replay needs what nothing can make");
	for (uint32_t i = 0; !err && i < program.n_instrs; i++) {
		const struct ts_instr *instr = &program.instrs[i];
		struct ts_producer producer;

		if (instr->value == TS_NONE ||
		        !ts_graph_producer(g, instr->value, &producer))
			continue;
		if (at == plan->n_replays)
			err = ts_json_bad(
			        &list, NULL, "the decisions ask for more");
		else if (plan->replays[at].before_op != instr->op ||
		         plan->replays[at].value != instr->value ||
		         plan->replays[at].op != producer.op)
			err = ts_json_bad(&(struct ts_json_at){NULL, &list,
			                          NULL, at, root->error},
			        NULL, "not what the decisions ask for");
		at++;
	}
	if (!err && at < plan->n_replays)
		err = ts_json_bad(
		        &list, NULL, "more than the decisions ask for");
	ts_program_finish(&program);
	return err;
}

int ts_plan_to_choice(const struct ts_plan *plan, const struct ts_graph *g,
        struct ts_choice *choice, struct ts_input_error *error)
{
	struct ts_json_at root = {.error = error};

	if (plan->n_ops != g->n_ops || plan->n_values != g->profile->n_values)
		return ts_json_bad(&root, "n_ops",
		        "the plan is for another tape; those that runs leave "
		        "are for their own: make one with tapeswap plan");
	memset(choice->action, TS_KEEP, choice->n_gaps);
	memset(choice->window, 0, choice->n_gaps * sizeof(*choice->window));
	memset(choice->late, 0, choice->n_gaps * sizeof(*choice->late));
	for (uint32_t i = 0; i < plan->n_decisions; i++) {
		const struct ts_decision *d = &plan->decisions[i];
		struct ts_json_at list = {NULL, &root, "decisions", 0, error};
		struct ts_json_at at = {NULL, &list, NULL, i, error};
		uint32_t op = d->from_op + 1, gap;

		gap = ts_graph_gap_at(g, d->value, op < g->n_ops ? op : 0);
		if (gap == TS_NONE || g->gaps[gap].version != d->value ||
		        g->gaps[gap].from_op != d->from_op ||
		        g->gaps[gap].to_op != d->to_op)
			return ts_json_bad(
			        &at, NULL, "the profile has no such gap");
		if (d->action == TS_REPLAY &&
		        g->gaps[gap].replay_ns == TS_NEVER)
			return ts_json_bad(
			        &at, NULL, "this value cannot be replayed");
		choice->action[gap] = (uint8_t)d->action;
		choice->late[gap] = d->offload_op == d->from_op;
		choice->window[gap] =
		        d->prefetch_op == TS_NONE ? 0 : d->prefetch_op;
	}
	return check_replays(plan, g, choice, &root);
}

static void set_op(json_t *node, const char *key, uint32_t op)
{
	if (op != TS_NONE)
		json_object_set_new(node, key, json_integer(op));
}

static json_t *decision_to_json(
        const struct ts_decision *d, const struct ts_profile *p)
{
	const struct ts_value *value = &p->values[d->value];
	json_t *node = json_pack("{s:I, s:s, s:I, s:I, s:I, s:I}", "value",
	        (json_int_t)d->value, "action", ts_action_names[d->action],
	        "from_op", (json_int_t)d->from_op, "to_op",
	        (json_int_t)d->to_op, "size_bytes",
	        (json_int_t)value->size_bytes, "cost_ns",
	        (json_int_t)d->cost_ns);

	if (value->signature != TS_NONE)
		json_object_set_new(node, "coordinate",
		        json_pack("{s:s, s:I, s:I}", "signature",
		                p->signatures[value->signature].name, "ordinal",
		                (json_int_t)value->ordinal, "output",
		                (json_int_t)value->output));
	set_op(node, "from_operand", d->from_operand);
	set_op(node, "to_operand", d->to_operand);
	set_op(node, "offload_op", d->offload_op);
	set_op(node, "prefetch_op", d->prefetch_op);
	set_op(node, "due_op", d->due_op);
	return node;
}

json_t *ts_plan_to_json(const struct ts_plan *plan, const struct ts_profile *p)
{
	json_t *decisions = json_array(), *replays = json_array(), *root;

	for (uint32_t i = 0; i < plan->n_decisions; i++)
		json_array_append_new(
		        decisions, decision_to_json(&plan->decisions[i], p));
	for (uint32_t i = 0; i < plan->n_replays; i++) {
		const struct ts_replay *r = &plan->replays[i];
		json_t *node = json_pack("{s:I, s:I, s:I}", "before_op",
		        (json_int_t)r->before_op, "value", (json_int_t)r->value,
		        "duration_ns", (json_int_t)r->duration_ns);

		set_op(node, "op", r->op);
		json_array_append_new(replays, node);
	}
	root = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}",
	        "schema", "tapeswap-plan", "schema_version", "1.0", "profile",
	        plan->profile_name, "limit_bytes",
	        (json_int_t)plan->limit_bytes, "n_ops", (json_int_t)plan->n_ops,
	        "n_values", (json_int_t)plan->n_values, "swap_bytes",
	        (json_int_t)plan->swap_bytes, "replay_ns",
	        (json_int_t)plan->replay_ns, "smallest_feasible_limit_bytes",
	        (json_int_t)plan->smallest_feasible_limit_bytes);
	if (!root) {
		json_decref(decisions);
		json_decref(replays);
		return NULL;
	}
	json_object_set_new(root, "predicted",
	        json_pack("{s:I, s:I}", "step_ns",
	                (json_int_t)plan->predicted_step_ns, "peak_bytes",
	                (json_int_t)plan->predicted_peak_bytes));
	json_object_set_new(root, "bound",
	        json_pack("{s:I}", "step_ns", (json_int_t)plan->bound_step_ns));
	json_object_set_new(root, "unlimited",
	        json_pack("{s:I, s:I}", "step_ns",
	                (json_int_t)plan->unlimited_step_ns, "peak_bytes",
	                (json_int_t)plan->unlimited_peak_bytes));
	if (plan->page_bytes)
		json_object_set_new(root, "pages",
		        json_pack("{s:I, s:I, s:I, s:I, s:I}", "page_bytes",
		                (json_int_t)plan->page_bytes, "chunks",
		                (json_int_t)plan->page_chunks, "peak_pages",
		                (json_int_t)plan->page_peak, "remaps",
		                (json_int_t)plan->page_remaps, "static_chunks",
		                (json_int_t)plan->page_static_chunks));
	json_object_set_new(root, "decisions", decisions);
	json_object_set_new(root, "replays", replays);
	return root;
}
