/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* As Knuth, Morris and Pratt match a text. */
static void fill_overlap(struct ts_follow *follow)
{
	uint32_t length = 0;

	follow->overlap[0] = 0;
	for (uint32_t i = 1; i < follow->n_ops; i++) {
		while (length && !ts_follow_is(follow, length, &follow->ops[i]))
			length = follow->overlap[length - 1];
		length += ts_follow_is(follow, length, &follow->ops[i]);
		follow->overlap[i] = length;
	}
}

int ts_follow_init(struct ts_follow *follow, const struct ts_follow_op *ops,
        uint32_t n_ops)
{
	memset(follow, 0, sizeof(*follow));
	follow->ops = malloc(n_ops * sizeof(*follow->ops));
	follow->overlap = malloc(n_ops * sizeof(*follow->overlap));
	if (!follow->ops || !follow->overlap) {
		ts_follow_finish(follow);
		return -ENOMEM;
	}
	memcpy(follow->ops, ops, n_ops * sizeof(*ops));
	follow->n_ops = n_ops;
	fill_overlap(follow);
	return 0;
}

void ts_follow_finish(struct ts_follow *follow)
{
	free(follow->ops);
	free(follow->overlap);
	memset(follow, 0, sizeof(*follow));
}

void ts_follow_reset(struct ts_follow *follow)
{
	follow->matched = 0;
}

bool ts_follow_push(struct ts_follow *follow, const struct ts_follow_op *op)
{
	uint32_t matched = follow->matched;

	if (matched == follow->n_ops)
		matched = follow->overlap[matched - 1];
	while (matched && !ts_follow_is(follow, matched, op))
		matched = follow->overlap[matched - 1];
	matched += ts_follow_is(follow, matched, op);
	follow->matched = matched;
	return matched == follow->n_ops;
}
