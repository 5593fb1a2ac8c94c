/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Speeds of the link between host and device, each way alone and both at
 * once, by copies of the agent's own. Makes driver calls and waits for them;
 * the current context's device is measured.
 */
#ifndef TS_BANDWIDTH_H
#define TS_BANDWIDTH_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/ops.h"

/* Device memory that the measuring takes meanwhile: for figures that are good
 * to the percent, and at least. */
#define TS_BANDWIDTH_BYTES (2 * (32u << 20))
#define TS_BANDWIDTH_LEAST (2 * (2u << 20))

struct ts_bandwidth {
	uint64_t d2h_bytes_per_s, h2d_bytes_per_s;
	uint64_t d2h_both_bytes_per_s, h2d_both_bytes_per_s;
	uint64_t latency_ns;  /* of a small copy */
	uint32_t copies;      /* made to find out, */
	uint64_t moved_bytes; /* and what they moved each way */
};

/*
 * By copies within @bytes of device memory. 0; -ENOMEM, or another errno where
 * the driver refused something.
 */
int ts_bandwidth_measure(const struct ts_gpu_ops *ops, size_t bytes,
        struct ts_bandwidth *ret_bandwidth);

#endif
