/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/in_place.h"

#include <errno.h>
#include <stdlib.h>

static bool reads(const struct ts_profile *profile,
        const struct ts_profile_op *op, uint32_t value)
{
	for (uint32_t k = 0; k < op->n_reads; k++)
		if (profile->uses[op->first_read + k] == value)
			return true;
	return false;
}

static bool is_in_place(const struct ts_profile *profile,
        const struct ts_profile_op *op, const bool *made)
{
	for (uint32_t k = 0; k < op->n_writes; k++) {
		const struct ts_value *value =
		        &profile->values[profile->uses[op->first_write + k]];
		uint32_t older = value->in_place_of;

		if (older == TS_NONE || value->pinned || !made[older] ||
		        !reads(profile, op, older))
			return false;
	}
	return op->n_writes;
}

int ts_in_place_find(const struct ts_profile *profile, bool *ret_by_op)
{
	bool *made = calloc(profile->n_values + 1ull, sizeof(*made));

	if (!made)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->n_ops; i++) {
		const struct ts_profile_op *op = &profile->ops[i];

		ret_by_op[i] = is_in_place(profile, op, made);
		for (uint32_t k = 0; k < op->n_writes; k++)
			made[profile->uses[op->first_write + k]] = true;
	}
	free(made);
	return 0;
}
