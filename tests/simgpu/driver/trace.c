/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SIMGPU_TRACE: a file of JSON lines, one a kernel launch, with the accesses
 * the kernel table gives it and the raw parameters. For tests of the table and
 * for adding rows to it. Owns the open file; under sg_lock.
 */
#include "tests/simgpu/driver/kernels.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *file;
static bool failed;

static json_t *accesses_json(const struct sg_op *op)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < op->n_accesses; i++) {
		const struct sg_access *access = &op->accesses[i];

		json_array_append_new(
		        list, json_pack("{s:I, s:I, s:b, s:b, s:b}", "va",
		                      (json_int_t)access->va, "bytes",
		                      (json_int_t)access->bytes, "read",
		                      access->read, "write", access->write,
		                      "certain", access->certain));
	}
	return list;
}

/* Each parameter as hexadecimal digits, in memory order. */
static json_t *params_json(const struct sg_launch *launch)
{
	static const char digits[] = "0123456789abcdef";
	const struct sg_function *fn = launch->fn;
	json_t *list = json_array();

	for (unsigned i = 0; i < fn->n_params; i++) {
		const uint8_t *from =
		        launch->params + fn->params[i].offset_bytes;
		size_t n = fn->params[i].size_bytes;
		char *text = sg_xcalloc(2, n + 1);

		for (size_t j = 0; j < n; j++) {
			text[2 * j] = digits[from[j] >> 4];
			text[2 * j + 1] = digits[from[j] & 15];
		}
		json_array_append_new(list, json_string(text));
		free(text);
	}
	return list;
}

static bool open_file(void)
{
	if (file || failed)
		return file;
	file = fopen(sg_settings.trace, "ae");
	if (!file) {
		failed = true;
		sg_say("SIMGPU_TRACE: cannot write %s: %s", sg_settings.trace,
		        strerror(errno));
	}
	return file;
}

void sg_trace_launch(const struct sg_launch *launch, const struct sg_op *op)
{
	char scalars[17];
	json_t *line;

	if (!sg_settings.trace || !open_file())
		return;
	snprintf(scalars, sizeof(scalars), "%016llx",
	        (unsigned long long)op->scalars);
	line = json_pack("{s:s, s:b, s:s, s:[iii], s:[iii], s:I, s:o, s:o}",
	        "name", launch->fn->demangled, "known",
	        launch->fn->unknown == NULL, "scalars", scalars, "grid",
	        (int)op->grid[0], (int)op->grid[1], (int)op->grid[2], "block",
	        (int)op->block[0], (int)op->block[1], (int)op->block[2], "ns",
	        (json_int_t)op->fixed_ns, "accesses", accesses_json(op),
	        "params", params_json(launch));
	json_dumpf(line, file, JSON_COMPACT);
	fputc('\n', file);
	fflush(file);
	json_decref(line);
}
