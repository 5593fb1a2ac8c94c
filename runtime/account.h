/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a device's memory is used for, against the limit. The driver's own
 * figure counts everything on the device (contexts, code, pools, arrays, what
 * other processes hold), so it is asked rather than kept.
 *
 * Guarded by the pager's lock but for the measuring itself, which calls the
 * driver and takes no lock.
 */
#ifndef TS_ACCOUNT_H
#define TS_ACCOUNT_H

#include <stdint.h>

#include "runtime/ops.h"

struct ts_account {
	const struct ts_gpu_ops *ops;
	uint64_t total_bytes; /* of the device */
	uint64_t limit_bytes; /* min(setting, total) */
	uint64_t peak_bytes;  /* highest use seen */
};

/* Asks the driver. Needs a current context on the device. */
CUresult ts_account_measure(const struct ts_account *account,
        uint64_t *ret_used_bytes, uint64_t *ret_total_bytes);

/* Notes that @used_bytes are in use. */
void ts_account_note(struct ts_account *account, uint64_t used_bytes);

#endif
