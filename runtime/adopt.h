/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Address ranges that the program reserved itself, as PyTorch's expandable
 * segments are. What it maps there is the pager's memory all the same: nothing
 * of a range is live until blocks in it are told of (ts_pager_live()).
 *
 * Any thread of the program; takes the pager's locks as pager.h says.
 */
#ifndef TS_ADOPT_H
#define TS_ADOPT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/pager.h"

/*
 * Takes a range of whole units over, of which nothing is mapped. False without
 * host memory for it, or where it is none of whole units.
 */
bool ts_pager_adopt(struct ts_pager *pager, uint64_t base, uint64_t bytes);

/*
 * A request for @bytes at once that the program will have its blocks in: false
 * where they can never fit under the limit, with the reason.
 */
bool ts_pager_could_map(struct ts_pager *pager, uint64_t bytes,
        struct ts_shortage *ret_shortage);

/*
 * The program takes a part of such a range away, in which no block is alive:
 * memory under it goes back to the driver, as far as it is under nothing else.
 * Waits for all ops; while something captures it does nothing, and the memory
 * is used for other pages. What the driver refuses is tried again later.
 */
CUresult ts_pager_unmapped(struct ts_pager *pager, uint64_t address,
        uint64_t bytes, unsigned int flags);

/* The range goes; no block in it is alive. The addresses are not freed. */
CUresult ts_pager_abandon(struct ts_pager *pager, uint64_t base);

#endif
