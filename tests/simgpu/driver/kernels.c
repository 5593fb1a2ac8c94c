/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Describes launches: looks a function up in the kernel table, once, and
 * finds the memory a launch touches. Owns the table and the set of names that
 * have no row. Called under sg_lock for every launch, so scanning parameters
 * takes no memory and looks only words up that are device addresses.
 */
#include "tests/simgpu/driver/kernels.h"
#include "tests/simgpu/blas/simblas_params.h"
#include "tests/simgpu/driver/code.h"
#include "tests/simgpu/driver/collective.h"
#include "tests/simgpu/driver/kernel_proof.h"
#include "tests/simgpu/driver/tags.h"

#include <stdlib.h>
#include <string.h>

#define SG_KERNEL(pattern_, bytes_, rule_, argument_, operands_)               \
	{.pattern = pattern_,                                                  \
	        .first_param_bytes = bytes_,                                   \
	        .rule = SG_RULE_##rule_,                                       \
	        .argument = argument_,                                         \
	        .operands = operands_},
#define SG_BLAS(name, family, class)                                           \
	{.pattern = #name,                                                     \
	        .rule = SG_RULE_BLAS,                                          \
	        .argument = (family)*16 + (class)},

static const struct sg_kernel_row rows[] = {
#include "tests/simgpu/driver/kernels.def"
};

/* In libstdc++, linked statically; declared in C++ headers only. */
char *__cxa_demangle(
        const char *mangled, char *buffer, size_t *length, int *status);

static bool row_fits(
        const struct sg_kernel_row *row, const struct sg_function *fn)
{
	uint32_t first = fn->n_params ? fn->params[0].size_bytes : 0;

	return (!row->first_param_bytes || row->first_param_bytes == first) &&
	       sg_text_like(sg_text(fn->demangled), row->pattern);
}

const struct sg_kernel_row *sg_kernel_find(struct sg_function *fn)
{
	if (fn->row_looked_up)
		return fn->row;
	fn->row_looked_up = true;
	if (!fn->demangled)
		fn->demangled = __cxa_demangle(fn->name, NULL, NULL, NULL);
	if (!fn->demangled) /* a C name */
		fn->demangled = fn->name;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && !fn->row; i++)
		if (row_fits(&rows[i], fn))
			fn->row = &rows[i];
	return fn->row;
}

void sg_param_read(const struct sg_launch *launch, unsigned param,
        uint32_t offset, void *out, size_t size)
{
	const struct sg_function *fn = launch->fn;

	memset(out, 0, size);
	if (param < fn->n_params &&
	        (uint64_t)offset + size <= fn->params[param].size_bytes)
		memcpy(out,
		        launch->params + fn->params[param].offset_bytes +
		                offset,
		        size);
}

int64_t sg_param_int(
        const struct sg_launch *launch, unsigned param, uint32_t offset)
{
	int32_t value;

	sg_param_read(launch, param, offset, &value, sizeof(value));
	return value;
}

uint64_t sg_param_word(
        const struct sg_launch *launch, unsigned param, uint32_t offset)
{
	uint64_t value;

	sg_param_read(launch, param, offset, &value, sizeof(value));
	return value;
}

uint32_t sg_param_bytes(const struct sg_launch *launch, unsigned param)
{
	const struct sg_function *fn = launch->fn;

	return param < fn->n_params ? fn->params[param].size_bytes : 0;
}

/* ----------------------------------------------------- names without a row */

#define UNKNOWN_BUCKETS 1024u
static struct sg_unknown *unknown[UNKNOWN_BUCKETS], *first_unknown;

/* The same name in two modules is one kernel. */
static struct sg_unknown *find_unknown(
        const struct sg_function *fn, struct sg_device *dev)
{
	unsigned hash = 5381;
	struct sg_unknown *u;

	for (const char *p = fn->name; *p; p++)
		hash = hash * 33 + (unsigned char)*p;
	for (u = unknown[hash % UNKNOWN_BUCKETS]; u; u = u->next_of_hash)
		if (u->device == dev->ordinal && !strcmp(u->mangled, fn->name))
			return u;
	u = sg_xcalloc(1, sizeof(*u));
	u->mangled = fn->name;
	u->name = fn->demangled;
	u->device = dev->ordinal;
	u->next_of_hash = unknown[hash % UNKNOWN_BUCKETS];
	unknown[hash % UNKNOWN_BUCKETS] = u;
	u->next = first_unknown;
	first_unknown = u;
	dev->count.unknown_kernels++;
	if (sg_settings.verbose)
		sg_say("no row for kernel %s", fn->demangled);
	return u;
}

static void count_unknown(struct sg_function *fn, struct sg_device *dev)
{
	if (!fn->unknown)
		fn->unknown = find_unknown(fn, dev);
	fn->unknown->launches++;
	dev->count.unknown_launches++;
}

const struct sg_unknown *sg_unknown_first(void)
{
	return first_unknown;
}

/* --------------------------------------------------------- scan for blocks */

/*
 * The blocks one launch points into, each with the lowest address given. Found
 * again through an open hash table whose slots carry the number of the scan
 * that filled them, so that nothing needs clearing.
 */
#define SCAN_MAX   (SG_PARAMS_MAX_BYTES / 8)
#define SCAN_SLOTS (SCAN_MAX * 2)
static struct {
	struct {
		uint64_t from, block_va, end;
	} found[SCAN_MAX];
	unsigned n_found;
	struct {
		uint32_t scan;
		uint32_t index;
	} slots[SCAN_SLOTS];
	uint32_t scan;
} scanner;

static void scan_add(uint64_t va, uint64_t block_va, uint64_t block_bytes)
{
	uint64_t hash = (block_va >> 9) * 0x9e3779b97f4a7c15u;
	unsigned slot = (unsigned)(hash >> 40) % SCAN_SLOTS;

	while (scanner.slots[slot].scan == scanner.scan) {
		unsigned i = scanner.slots[slot].index;

		if (scanner.found[i].block_va == block_va) {
			if (va < scanner.found[i].from)
				scanner.found[i].from = va;
			return;
		}
		slot = (slot + 1) % SCAN_SLOTS;
	}
	scanner.slots[slot].scan = scanner.scan;
	scanner.slots[slot].index = scanner.n_found;
	scanner.found[scanner.n_found].from = va;
	scanner.found[scanner.n_found].block_va = block_va;
	scanner.found[scanner.n_found].end = block_va + block_bytes;
	scanner.n_found++;
}

/* Every aligned word of the parameters that points into a live block. */
static uint64_t scan_params(const struct sg_launch *launch, struct sg_op *op)
{
	uint32_t words = launch->fn->params_bytes / 8;
	uint64_t block_va = 0, block_bytes = 0, bytes = 0;

	if (++scanner.scan == 0) {
		memset(scanner.slots, 0, sizeof(scanner.slots));
		scanner.scan = 1;
	}
	scanner.n_found = 0;
	for (uint32_t i = 0; i < words; i++) {
		uint64_t word, of_map;

		memcpy(&word, launch->params + i * 8, 8);
		of_map = sg_tensor_map_at(
		        launch->params + i * 8, (words - i) * 8, &word);
		if (of_map)
			scan_add(word, word, of_map);
		if (of_map || !sg_is_device_va(word))
			continue;
		/* Neighbouring words often point into one block. */
		if (word - block_va >= block_bytes &&
		        !sg_block_at(word, &block_va, &block_bytes)) {
			block_bytes = 0;
			continue;
		}
		scan_add(word, block_va, block_bytes);
	}
	for (unsigned i = 0; i < scanner.n_found; i++) {
		uint64_t from = scanner.found[i].from;
		uint64_t length = scanner.found[i].end - from;

		sg_op_add_access(op, from, length, true, true, false);
		bytes += length;
	}
	return bytes;
}

/* ----------------------------------------------------------- known operands */

void sg_touch(struct sg_sketch *sketch, uint64_t va, uint64_t bytes,
        unsigned roles, struct sg_type type)
{
	struct sg_op *op = sketch->op;
	uint64_t block_va, block_bytes, rest;
	bool certain = true;

	if (!va || !bytes)
		return;
	if (sg_block_at(va, &block_va, &block_bytes)) {
		rest = block_va + block_bytes - va;
		if (bytes > rest) {
			certain = bytes == SG_TO_BLOCK_END;
			bytes = rest;
		}
	} else if (roles & SG_OPERAND_IF_LIVE) {
		return;
	} else if (bytes == SG_TO_BLOCK_END) {
		bytes = 1; /* touched all the same, and noticed */
	}
	sg_op_add_access(op, va, bytes, roles & SG_OPERAND_READ,
	        roles & SG_OPERAND_WRITE, certain);
	op->accesses[op->n_accesses - 1].type = type.piece;
	op->accesses[op->n_accesses - 1].element_bytes = (uint8_t)type.bytes;
	op->accesses[op->n_accesses - 1].values = sketch->values;
	sketch->bytes += bytes * ((roles & 1) + (roles >> 1 & 1));
}

void sg_scalar(struct sg_sketch *sketch, const void *value, size_t bytes)
{
	sketch->op->scalars =
	        sg_hash_bytes(sg_mix(sketch->op->scalars, bytes), value, bytes);
}

/* Brings the dimensions with more than one element into order of their steps,
 * all positive; returns the lowest address. */
static uint64_t sort_shape(
        uint64_t va, const struct sg_shape *shape, struct sg_shape *ret_sorted)
{
	struct sg_shape sorted = {0};

	for (unsigned i = 0; i < shape->dims; i++) {
		int64_t step = shape->steps[i];
		uint64_t size = shape->sizes[i];
		unsigned at = sorted.dims;

		if (size < 2 || !step)
			continue;
		if (step < 0) {
			va += (uint64_t)(step * (int64_t)(size - 1));
			step = -step;
		}
		for (; at && sorted.steps[at - 1] > step; at--) {
			sorted.steps[at] = sorted.steps[at - 1];
			sorted.sizes[at] = sorted.sizes[at - 1];
		}
		sorted.steps[at] = step;
		sorted.sizes[at] = size;
		sorted.dims++;
	}
	*ret_sorted = sorted;
	return va;
}

/* Operands of at most so many runs are given run by run. */
#define MAX_RUNS 64

void sg_touch_shape(struct sg_sketch *sketch, uint64_t va,
        const struct sg_shape *shape, struct sg_type type, unsigned roles)
{
	uint64_t run = type.bytes ? type.bytes : 1, runs = 1, reach, moved;
	struct sg_shape sorted;
	unsigned inner = 0;

	if (!va)
		return;
	for (unsigned i = 0; i < shape->dims; i++)
		if (!shape->sizes[i])
			return;
	va = sort_shape(va, shape, &sorted);
	while (inner < sorted.dims && (uint64_t)sorted.steps[inner] <= run) {
		run += (sorted.sizes[inner] - 1) *
		       (uint64_t)sorted.steps[inner];
		inner++;
	}
	reach = run;
	for (unsigned i = inner; i < sorted.dims; i++) {
		runs *= sorted.sizes[i];
		reach += (sorted.sizes[i] - 1) * (uint64_t)sorted.steps[i];
	}
	if (runs > MAX_RUNS) {
		moved = sketch->bytes + run * runs;
		sg_touch(sketch, va, reach,
		        roles & SG_OPERAND_WRITE ? roles | SG_OPERAND_READ
		                                 : roles,
		        type);
		sketch->op->accesses[sketch->op->n_accesses - 1].certain =
		        false;
		sketch->bytes = moved;
		return;
	}
	for (uint64_t i = 0; i < runs; i++) {
		uint64_t rest = i, at = va;

		for (unsigned d = inner; d < sorted.dims; d++) {
			at += rest % sorted.sizes[d] *
			      (uint64_t)sorted.steps[d];
			rest /= sorted.sizes[d];
		}
		sg_touch(sketch, at, run, roles, type);
	}
}

/* ------------------------------------------------------------------ by rule */

/* False: the parameters are not laid out as the rule expects. */
static bool apply(const struct sg_kernel_row *row, struct sg_sketch *sketch)
{
	switch (row->rule) {
	case SG_RULE_VECTORIZED:
		return sg_rule_vectorized(sketch);
	case SG_RULE_UNROLLED:
		return sg_rule_unrolled(sketch);
	case SG_RULE_LEGACY:
		return sg_rule_legacy(sketch);
	case SG_RULE_INDEX:
		return sg_rule_index(sketch);
	case SG_RULE_GATHER:
		return sg_rule_gather(sketch);
	case SG_RULE_SCATTER_FILL:
		return sg_rule_scatter_fill(sketch);
	case SG_RULE_FLIP:
		return sg_rule_flip(sketch);
	case SG_RULE_CONCATENATE:
		return sg_rule_concatenate(sketch);
	case SG_RULE_REDUCE:
		return sg_rule_reduce(sketch);
	case SG_RULE_FOREACH:
		return sg_rule_foreach(sketch);
	case SG_RULE_COORDINATES:
		return sg_rule_coordinates(sketch);
	case SG_RULE_PROOF:
		return sg_rule_proof(sketch);
	case SG_RULE_COLLECTIVE:
		return sg_rule_collective(sketch);
	case SG_RULE_SCALE:
		sketch->op->action.meaning = SG_MEANS_SCALE;
		sg_list_operands(row, sketch);
		return true;
	default:
		sg_list_operands(row, sketch);
		return true;
	}
}

void sg_kernel_describe(const struct sg_launch *launch, struct sg_op *op)
{
	const struct sg_kernel_row *row = sg_kernel_find(launch->fn);
	const struct sg_model *model = &op->dev->model;
	struct sg_sketch sketch = {.launch = launch, .op = op};

	if (row && row->rule == SG_RULE_BLAS) {
		sg_blas_describe(row, launch, op);
		return;
	}
	if (row && apply(row, &sketch)) {
		op->fixed_ns =
		        sg_cost_kernel_ns(row, launch, model, sketch.bytes);
		return;
	}
	op->n_accesses = 0;
	op->scalars = 0;
	op->action = (struct sg_action){0};
	count_unknown(launch->fn, op->dev);
	op->fixed_ns = sg_cost_bytes_ns(model, (double)scan_params(launch, op));
}
