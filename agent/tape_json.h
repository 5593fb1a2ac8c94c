/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tape as JSON: schemas/tape.schema.json. */
#ifndef TS_TAPE_JSON_H
#define TS_TAPE_JSON_H

#include <jansson.h>
#include <stdint.h>

/*
 * The last whole step, or every op that is still kept where no step was found:
 * ops, the blocks they touched, what was moved. NULL without memory. The
 * caller owns the result.
 */
json_t *ts_tape_json(void);

/* Counts of all ops by kind (enum ts_op_kind), and of those into graphs. */
json_t *ts_tape_totals(
        const uint64_t *totals, uint64_t captured, uint64_t collectives);

#endif
