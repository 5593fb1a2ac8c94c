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

#include <stdlib.h>
#include <string.h>

#define IN(param, offset)                                                      \
	{                                                                      \
		param, offset, SG_OPERAND_READ                                 \
	}
#define OUT(param, offset)                                                     \
	{                                                                      \
		param, offset, SG_OPERAND_WRITE                                \
	}
#define INOUT(param, offset)                                                   \
	{                                                                      \
		param, offset, SG_OPERAND_READ | SG_OPERAND_WRITE              \
	}
#define IN_IF(param, offset)                                                   \
	{                                                                      \
		param, offset, SG_OPERAND_READ | SG_OPERAND_IF_LIVE            \
	}
#define INOUT_IF(param, offset)                                                \
	{                                                                      \
		param, offset,                                                 \
		        SG_OPERAND_READ | SG_OPERAND_WRITE |                   \
		                SG_OPERAND_IF_LIVE                             \
	}
#define SG_KERNEL(pattern_, bytes_, rule_, argument_, ...)                     \
	{.pattern = pattern_,                                                  \
	        .first_param_bytes = bytes_,                                   \
	        .rule = SG_RULE_##rule_,                                       \
	        .argument = argument_,                                         \
	        .operands = (const struct sg_operand[]){__VA_ARGS__},          \
	        .n_operands =                                                  \
	                sizeof((const struct sg_operand[]){__VA_ARGS__}) /     \
	                sizeof(struct sg_operand)},
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

bool sg_glob(const char *pattern, const char *text)
{
	const char *star = NULL, *resume = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			resume = text;
		} else if (*pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			/* Let the last star take one character more. */
			pattern = star;
			text = ++resume;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

static bool row_fits(
        const struct sg_kernel_row *row, const struct sg_function *fn)
{
	uint32_t first = fn->n_params ? fn->params[0].size_bytes : 0;

	return (!row->first_param_bytes || row->first_param_bytes == first) &&
	       sg_glob(row->pattern, fn->demangled);
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

/* ----------------------------------------------------- names without a row */

struct unknown {
	const char *name; /* lives as long as the process: modules keep code */
	int device;
	struct unknown *next;
};
#define UNKNOWN_BUCKETS 1024u
static struct unknown *unknown[UNKNOWN_BUCKETS];

/* The same name in two modules counts once. */
static void count_unknown(struct sg_function *fn, struct sg_device *dev)
{
	unsigned hash = 5381;
	struct unknown *u;

	fn->named_unknown = true;
	for (const char *p = fn->name; *p; p++)
		hash = hash * 33 + (unsigned char)*p;
	for (u = unknown[hash % UNKNOWN_BUCKETS]; u; u = u->next)
		if (u->device == dev->ordinal && !strcmp(u->name, fn->name))
			return;
	u = sg_xcalloc(1, sizeof(*u));
	u->name = fn->name;
	u->device = dev->ordinal;
	u->next = unknown[hash % UNKNOWN_BUCKETS];
	unknown[hash % UNKNOWN_BUCKETS] = u;
	dev->count.unknown_kernels++;
	if (sg_settings.verbose)
		sg_say("no row for kernel %s", fn->demangled);
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
		uint64_t word;

		memcpy(&word, launch->params + i * 8, 8);
		if (!sg_is_device_va(word))
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

/* Adds one operand, offset_bytes further on than its row says; returns the
 * bytes it reaches. */
static uint64_t add_operand(const struct sg_operand *operand,
        uint32_t offset_bytes, const struct sg_launch *launch, struct sg_op *op)
{
	uint64_t va, block_va, block_bytes, length;

	sg_param_read(launch, operand->param,
	        operand->offset_bytes + offset_bytes, &va, sizeof(va));
	if (!va)
		return 0;
	if (sg_block_at(va, &block_va, &block_bytes))
		length = block_va + block_bytes - va;
	else if (operand->roles & SG_OPERAND_IF_LIVE)
		return 0;
	else /* touched all the same, and noticed */
		length = 1;
	sg_op_add_access(op, va, length, operand->roles & SG_OPERAND_READ,
	        operand->roles & SG_OPERAND_WRITE, true);
	return length;
}

/* The operands a row lists; returns the bytes they reach. */
static uint64_t list_operands(const struct sg_kernel_row *row,
        const struct sg_launch *launch, struct sg_op *op)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < row->n_operands; i++)
		bytes += add_operand(&row->operands[i], 0, launch, op);
	if (row->rule == SG_RULE_CONCATENATE)
		for (unsigned i = 1; i < launch->grid[1]; i++)
			bytes += add_operand(&row->operands[1],
			        i * (uint32_t)sizeof(uint64_t), launch, op);
	return bytes;
}

void sg_kernel_describe(const struct sg_launch *launch, struct sg_op *op)
{
	const struct sg_kernel_row *row = sg_kernel_find(launch->fn);
	const struct sg_model *model = &op->dev->model;
	uint64_t bytes;

	if (!row) {
		if (!launch->fn->named_unknown)
			count_unknown(launch->fn, op->dev);
		bytes = scan_params(launch, op);
		op->fixed_ns = sg_cost_bytes_ns(model, (double)bytes);
	} else if (row->rule == SG_RULE_BLAS) {
		sg_blas_describe(row, launch, op);
	} else {
		bytes = list_operands(row, launch, op);
		op->fixed_ns = sg_cost_kernel_ns(row, launch, model, bytes);
	}
}
