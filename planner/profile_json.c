/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/profile_json.h"
#include "planner/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *const ts_op_class_names[] = {"other", "gemm", "attention",
        "convolution", "norm", "elementwise", "dropout", "pool", "loss",
        "optimizer", "collective", "copy", NULL};
const char *const ts_value_kind_names[] = {"activation", "parameter",
        "gradient", "optimizer", "input", "scratch", "other", NULL};

static int read_device(const struct ts_json_at *root, struct ts_profile *p)
{
	struct ts_device *device = &p->device;
	struct ts_json_at at;
	const char *name = "";
	int err = ts_json_member(root, "device", &at);

	if (!err)
		err = ts_json_text(&at, "name", true, &name);
	if (!err)
		err = ts_json_u64(&at, "memory_bytes", TS_MAX_BYTES, true,
		        &device->memory_bytes);
	if (!err)
		err = ts_json_u64(&at, "d2h_bytes_per_s", TS_MAX_BYTES, false,
		        &device->d2h_bytes_per_s);
	if (!err)
		err = ts_json_u64(&at, "h2d_bytes_per_s", TS_MAX_BYTES, false,
		        &device->h2d_bytes_per_s);
	if (err)
		return err;
	device->d2h_both_bytes_per_s = device->d2h_bytes_per_s;
	device->h2d_both_bytes_per_s = device->h2d_bytes_per_s;
	err = ts_json_u64(&at, "d2h_both_bytes_per_s", TS_MAX_BYTES, true,
	        &device->d2h_both_bytes_per_s);
	if (!err)
		err = ts_json_u64(&at, "h2d_both_bytes_per_s", TS_MAX_BYTES,
		        true, &device->h2d_both_bytes_per_s);
	if (!err)
		err = ts_json_u64(&at, "copy_latency_ns", 1000000000, true,
		        &device->copy_latency_ns);
	if (err)
		return err;
	device->name = strdup(name);
	return device->name ? 0 : -ENOMEM;
}

static int read_signatures(const struct ts_json_at *root, struct ts_profile *p)
{
	struct ts_json_at list;
	size_t n;
	int err = ts_json_array(root, "signatures", false, &list);

	if (err)
		return err;
	n = json_array_size(list.node);
	if (n > TS_MAX_OPS)
		return ts_json_bad(&list, NULL, "too many");
	p->signatures = calloc(n ? n : 1, sizeof(*p->signatures));
	if (!p->signatures)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct ts_json_at at = ts_json_item(&list, i);
		struct ts_signature *sig = &p->signatures[i];
		const char *name;
		unsigned op_class;

		err = ts_json_want_object(&at);
		if (!err)
			err = ts_json_text(&at, "name", false, &name);
		if (!err)
			err = ts_json_enum(
			        &at, "class", ts_op_class_names, &op_class);
		if (!err)
			err = ts_json_bool(&at, "replayable", &sig->replayable);
		if (err)
			return err;
		sig->op_class = (enum ts_op_class)op_class;
		sig->name = strdup(name);
		if (!sig->name)
			return -ENOMEM;
		p->n_signatures++;
	}
	return 0;
}

/* Appends an array of value indices to p->uses. */
static int read_uses(const struct ts_json_at *at, const char *key,
        struct ts_profile *p, uint32_t *room, uint32_t *ret_first,
        uint32_t *ret_n)
{
	struct ts_json_at list;
	size_t n;
	int err = ts_json_array(at, key, true, &list);

	*ret_first = p->n_uses;
	*ret_n = 0;
	if (err || !list.node)
		return err;
	n = json_array_size(list.node);
	if (n > TS_MAX_USES - p->n_uses)
		return ts_json_bad(&list, NULL, "too many uses");
	if (p->n_uses + n > *room) {
		uint32_t *more;
		size_t next = 2 * (p->n_uses + n) + 64;

		more = realloc(p->uses, next * sizeof(*more));
		if (!more)
			return -ENOMEM;
		p->uses = more;
		*room = (uint32_t)next;
	}
	for (size_t i = 0; i < n; i++) {
		const json_t *node = json_array_get(list.node, i);
		struct ts_json_at item;

		if (json_is_integer(node) && json_integer_value(node) >= 0 &&
		        json_integer_value(node) < p->n_values) {
			p->uses[p->n_uses++] =
			        (uint32_t)json_integer_value(node);
			continue;
		}
		item = ts_json_item(&list, i);
		return ts_json_bad(&item, NULL, "no such value");
	}
	*ret_n = (uint32_t)n;
	return 0;
}

static int read_value(const struct ts_json_at *at, struct ts_profile *p,
        struct ts_value *value, uint32_t *uses_room, uint32_t *rebuilds_room)
{
	struct ts_json_at rebuild;
	unsigned kind;
	bool replayable = true;
	int err = ts_json_want_object(at);

	*value = (struct ts_value){.signature = TS_NONE,
	        .in_place_of = TS_NONE,
	        .rebuild = TS_NONE,
	        .died = TS_NONE};
	if (!err)
		err = ts_json_u64(at, "size_bytes", TS_MAX_BYTES, false,
		        &value->size_bytes);
	if (!err)
		err = ts_json_enum(at, "kind", ts_value_kind_names, &kind);
	if (!err)
		err = ts_json_u32(at, "signature", true, &value->signature);
	if (!err)
		err = ts_json_u32(at, "ordinal", true, &value->ordinal);
	if (!err)
		err = ts_json_u32(at, "output", true, &value->output);
	if (!err)
		err = ts_json_u32(at, "in_place_of", true, &value->in_place_of);
	if (!err)
		err = ts_json_address(at, "address", &value->address);
	if (!err)
		err = ts_json_u32(at, "died", true, &value->died);
	if (!err)
		err = ts_json_bool(at, "persistent", &value->persistent);
	if (!err)
		err = ts_json_bool(at, "pinned", &value->pinned);
	if (!err)
		err = ts_json_bool(at, "replayable", &replayable);
	if (err)
		return err;
	value->kind = (enum ts_value_kind)kind;
	value->no_replay = !replayable;
	if (!json_object_get(at->node, "rebuild"))
		return 0;
	err = ts_json_member(at, "rebuild", &rebuild);
	if (err)
		return err;
	if (p->n_rebuilds == *rebuilds_room) {
		uint32_t next = 2 * p->n_rebuilds + 16;
		struct ts_rebuild *more =
		        realloc(p->rebuilds, next * sizeof(*more));

		if (!more)
			return -ENOMEM;
		p->rebuilds = more;
		*rebuilds_room = next;
	}
	struct ts_rebuild *made = &p->rebuilds[p->n_rebuilds];

	err = ts_json_u64(&rebuild, "duration_ns", TS_MAX_DURATION, false,
	        &made->duration_ns);
	if (!err)
		err = read_uses(&rebuild, "reads", p, uses_room,
		        &made->first_read, &made->n_reads);
	if (!err)
		value->rebuild = p->n_rebuilds++;
	return err;
}

static int read_values(const struct ts_json_at *root, struct ts_profile *p,
        uint32_t *uses_room)
{
	struct ts_json_at list;
	uint32_t rebuilds_room = 0;
	size_t n;
	int err = ts_json_array(root, "values", false, &list);

	if (err)
		return err;
	n = json_array_size(list.node);
	if (n > TS_MAX_VALUES)
		return ts_json_bad(&list, NULL, "too many");
	p->values = calloc(n ? n : 1, sizeof(*p->values));
	if (!p->values)
		return -ENOMEM;
	/* Rebuilds refer to values by index, so the count comes first. */
	p->n_values = (uint32_t)n;
	for (size_t i = 0; !err && i < n; i++) {
		struct ts_json_at at = ts_json_item(&list, i);

		err = read_value(
		        &at, p, &p->values[i], uses_room, &rebuilds_room);
	}
	return err;
}

static int read_ops(const struct ts_json_at *root, struct ts_profile *p,
        uint32_t *uses_room)
{
	struct ts_json_at list;
	size_t n;
	int err = ts_json_array(root, "ops", false, &list);

	if (err)
		return err;
	n = json_array_size(list.node);
	if (n > TS_MAX_OPS)
		return ts_json_bad(&list, NULL, "too many");
	p->ops = calloc(n ? n : 1, sizeof(*p->ops));
	if (!p->ops)
		return -ENOMEM;
	p->n_ops = (uint32_t)n;
	for (size_t i = 0; !err && i < n; i++) {
		struct ts_json_at at = ts_json_item(&list, i);
		struct ts_profile_op *op = &p->ops[i];

		err = ts_json_want_object(&at);
		if (!err)
			err = ts_json_u32(
			        &at, "signature", false, &op->signature);
		if (!err)
			err = ts_json_u64(&at, "duration_ns", TS_MAX_DURATION,
			        false, &op->duration_ns);
		if (!err)
			err = read_uses(&at, "reads", p, uses_room,
			        &op->first_read, &op->n_reads);
		if (!err)
			err = read_uses(&at, "writes", p, uses_room,
			        &op->first_write, &op->n_writes);
	}
	return err;
}

static int read_regions(const struct ts_json_at *root, struct ts_profile *p)
{
	struct ts_json_at list;
	size_t n;
	int err = ts_json_array(root, "regions", true, &list);

	if (err || !list.node)
		return err;
	n = json_array_size(list.node);
	if (n > TS_MAX_OPS)
		return ts_json_bad(&list, NULL, "too many");
	p->regions = calloc(n ? n : 1, sizeof(*p->regions));
	if (!p->regions)
		return -ENOMEM;
	p->n_regions = (uint32_t)n;
	for (size_t i = 0; !err && i < n; i++) {
		struct ts_json_at at = ts_json_item(&list, i);
		struct ts_region *region = &p->regions[i];

		region->backward_first_op = region->backward_end_op = TS_NONE;
		err = ts_json_want_object(&at);
		if (!err)
			err = ts_json_u32(&at, "type", false, &region->type);
		if (!err)
			err = ts_json_u32(
			        &at, "first_op", false, &region->first_op);
		if (!err)
			err = ts_json_u32(
			        &at, "end_op", false, &region->end_op);
		if (!err)
			err = ts_json_u32(&at, "backward_first_op", true,
			        &region->backward_first_op);
		if (!err)
			err = ts_json_u32(&at, "backward_end_op", true,
			        &region->backward_end_op);
	}
	return err;
}

static int read_idle(const struct ts_json_at *root, struct ts_profile *p)
{
	struct ts_json_at list;
	size_t n;
	int err = ts_json_array(root, "idle", true, &list);

	if (err || !list.node)
		return err;
	n = json_array_size(list.node);
	if (n > TS_MAX_VALUES)
		return ts_json_bad(&list, NULL, "too many");
	p->idle = calloc(n ? n : 1, sizeof(*p->idle));
	if (!p->idle)
		return -ENOMEM;
	p->n_idle = (uint32_t)n;
	for (size_t i = 0; !err && i < n; i++) {
		struct ts_json_at at = ts_json_item(&list, i);
		struct ts_idle *idle = &p->idle[i];

		idle->died = TS_NONE;
		err = ts_json_want_object(&at);
		if (!err)
			err = ts_json_u64(&at, "size_bytes", TS_MAX_BYTES,
			        false, &idle->size_bytes);
		if (!err)
			err = ts_json_address(&at, "address", &idle->address);
		if (!err)
			err = ts_json_u32(&at, "died", true, &idle->died);
	}
	return err;
}

static int read_turns(const struct ts_json_at *root, struct ts_profile *p)
{
	struct ts_json_at list;
	size_t n;
	int err = ts_json_array(root, "turns", true, &list);

	if (err || !list.node)
		return err;
	n = json_array_size(list.node);
	if (n > TS_MAX_OPS)
		return ts_json_bad(&list, NULL, "too many");
	p->turns = calloc(n ? n : 1, sizeof(*p->turns));
	if (!p->turns)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const json_t *node = json_array_get(list.node, i);
		struct ts_json_at item = ts_json_item(&list, i);

		if (!json_is_integer(node) || json_integer_value(node) < 0 ||
		        json_integer_value(node) >= p->n_ops)
			return ts_json_bad(&item, NULL, "no such op");
		p->turns[p->n_turns++] = (uint32_t)json_integer_value(node);
	}
	return 0;
}

int ts_profile_from_json(const json_t *root, struct ts_profile *ret_profile,
        struct ts_input_error *error)
{
	struct ts_profile p = {0};
	struct ts_json_at at = {.node = root, .error = error};
	const char *name = "";
	uint32_t uses_room = 0;
	int err = ts_json_check(root, "tapeswap-profile", error);

	if (err)
		return err;
	err = ts_json_text(&at, "name", true, &name);
	if (!err) {
		p.name = strdup(name);
		err = p.name ? 0 : -ENOMEM;
	}
	if (!err)
		err = ts_json_u64(&at, "resident_bytes", TS_MAX_BYTES, true,
		        &p.resident_bytes);
	if (!err)
		err = ts_json_u64(&at, "tokens", TS_MAX_BYTES, true, &p.tokens);
	if (!err)
		err = ts_json_u64(&at, "forward_flops", INT64_MAX, true,
		        &p.forward_flops);
	if (!err)
		err = read_device(&at, &p);
	if (!err)
		err = read_signatures(&at, &p);
	if (!err)
		err = read_values(&at, &p, &uses_room);
	if (!err)
		err = read_ops(&at, &p, &uses_room);
	if (!err)
		err = read_regions(&at, &p);
	if (!err)
		err = read_turns(&at, &p);
	if (!err)
		err = read_idle(&at, &p);
	if (!err)
		err = ts_profile_check(&p, error);
	if (err)
		ts_profile_finish(&p);
	else
		*ret_profile = p;
	return err;
}

int ts_profile_parse(const char *text, size_t length,
        struct ts_profile *ret_profile, struct ts_input_error *error)
{
	json_t *root;
	int err = ts_json_tree(text, length, &root, error);

	if (err)
		return err;
	err = ts_profile_from_json(root, ret_profile, error);
	json_decref(root);
	return err;
}

int ts_profile_load(const char *path, struct ts_profile *ret_profile,
        struct ts_input_error *error)
{
	char *text;
	size_t length;
	int err = ts_json_read_file(path, &text, &length, error);

	if (err)
		return err;
	err = ts_profile_parse(text, length, ret_profile, error);
	free(text);
	return err;
}

static json_t *uses_to_json(
        const struct ts_profile *p, uint32_t first, uint32_t n)
{
	json_t *list = json_array();

	for (uint32_t i = 0; list && i < n; i++) {
		if (json_array_append_new(
		            list, json_integer(p->uses[first + i]))) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static void set_index(json_t *node, const char *key, uint32_t index)
{
	if (index != TS_NONE)
		json_object_set_new(node, key, json_integer(index));
}

static void set_address(json_t *node, uint64_t address)
{
	char text[24];

	if (!address)
		return;
	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	json_object_set_new(node, "address", json_string(text));
}

static json_t *idle_to_json(const struct ts_profile *p)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < p->n_idle; i++) {
		const struct ts_idle *idle = &p->idle[i];
		json_t *node = json_pack(
		        "{s:I}", "size_bytes", (json_int_t)idle->size_bytes);

		set_address(node, idle->address);
		set_index(node, "died", idle->died);
		json_array_append_new(list, node);
	}
	return list;
}

static json_t *value_to_json(
        const struct ts_profile *p, const struct ts_value *value)
{
	json_t *node = json_pack("{s:I, s:s}", "size_bytes",
	        (json_int_t)value->size_bytes, "kind",
	        ts_value_kind_names[value->kind]);

	set_index(node, "signature", value->signature);
	if (value->signature != TS_NONE) {
		set_index(node, "ordinal", value->ordinal);
		set_index(node, "output", value->output);
	}
	set_index(node, "in_place_of", value->in_place_of);
	set_address(node, value->address);
	set_index(node, "died", value->died);
	if (value->persistent)
		json_object_set_new(node, "persistent", json_true());
	if (value->pinned)
		json_object_set_new(node, "pinned", json_true());
	if (value->no_replay)
		json_object_set_new(node, "replayable", json_false());
	if (value->rebuild != TS_NONE) {
		const struct ts_rebuild *r = &p->rebuilds[value->rebuild];

		json_object_set_new(node, "rebuild",
		        json_pack("{s:I, s:o}", "duration_ns",
		                (json_int_t)r->duration_ns, "reads",
		                uses_to_json(p, r->first_read, r->n_reads)));
	}
	return node;
}

static json_t *device_to_json(const struct ts_device *d)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "name",
	        d->name ? d->name : "", "memory_bytes",
	        (json_int_t)d->memory_bytes, "d2h_bytes_per_s",
	        (json_int_t)d->d2h_bytes_per_s, "h2d_bytes_per_s",
	        (json_int_t)d->h2d_bytes_per_s, "d2h_both_bytes_per_s",
	        (json_int_t)d->d2h_both_bytes_per_s, "h2d_both_bytes_per_s",
	        (json_int_t)d->h2d_both_bytes_per_s, "copy_latency_ns",
	        (json_int_t)d->copy_latency_ns);
}

static void lists_to_json(const struct ts_profile *p, json_t *root)
{
	json_t *signatures = json_array(), *values = json_array();
	json_t *ops = json_array(), *regions = json_array();
	json_t *turns = json_array();

	for (uint32_t i = 0; i < p->n_signatures; i++) {
		const struct ts_signature *sig = &p->signatures[i];

		json_array_append_new(signatures,
		        json_pack("{s:s, s:s, s:b}", "name", sig->name, "class",
		                ts_op_class_names[sig->op_class], "replayable",
		                sig->replayable));
	}
	for (uint32_t i = 0; i < p->n_values; i++)
		json_array_append_new(values, value_to_json(p, &p->values[i]));
	for (uint32_t i = 0; i < p->n_ops; i++) {
		const struct ts_profile_op *op = &p->ops[i];

		json_array_append_new(ops,
		        json_pack("{s:i, s:I, s:o, s:o}", "signature",
		                op->signature, "duration_ns",
		                (json_int_t)op->duration_ns, "reads",
		                uses_to_json(p, op->first_read, op->n_reads),
		                "writes",
		                uses_to_json(
		                        p, op->first_write, op->n_writes)));
	}
	for (uint32_t i = 0; i < p->n_regions; i++) {
		const struct ts_region *r = &p->regions[i];
		json_t *node = json_pack("{s:i, s:i, s:i}", "type", r->type,
		        "first_op", r->first_op, "end_op", r->end_op);

		set_index(node, "backward_first_op", r->backward_first_op);
		set_index(node, "backward_end_op", r->backward_end_op);
		json_array_append_new(regions, node);
	}
	for (uint32_t i = 0; i < p->n_turns; i++)
		json_array_append_new(turns, json_integer(p->turns[i]));
	json_object_set_new(root, "signatures", signatures);
	json_object_set_new(root, "values", values);
	json_object_set_new(root, "ops", ops);
	json_object_set_new(root, "regions", regions);
	json_object_set_new(root, "turns", turns);
	if (p->n_idle)
		json_object_set_new(root, "idle", idle_to_json(p));
}

json_t *ts_profile_to_json(const struct ts_profile *p)
{
	json_t *root = json_pack("{s:s, s:s, s:s, s:o, s:I, s:I, s:I}",
	        "schema", "tapeswap-profile", "schema_version", "1.0", "name",
	        p->name ? p->name : "", "device", device_to_json(&p->device),
	        "resident_bytes", (json_int_t)p->resident_bytes, "tokens",
	        (json_int_t)p->tokens, "forward_flops",
	        (json_int_t)p->forward_flops);

	if (root)
		lists_to_json(p, root);
	return root;
}
