/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bytes of live blocks over a recorded step. Pure functions. */
#ifndef TS_MEMLINE_H
#define TS_MEMLINE_H

#include "agent/recording.h"

struct ts_memline {
	uint64_t *live_bytes; /* by op: most since the op before was issued */
	uint64_t peak_bytes;
	uint64_t peak_op; /* index of the op about to be issued at the peak */
	uint64_t peak_event; /* last birth or death before it */
};

/* Of reported blocks on @device. 0, or -ENOMEM. */
int ts_memline_make(const struct ts_recording *recording, int device,
        struct ts_memline *ret_line);
void ts_memline_finish(struct ts_memline *line);

/* The most that is live on the device that holds most; 0 without memory. */
uint64_t ts_memline_peak(const struct ts_recording *recording);

/* True where the block is alive when the peak is reached. */
bool ts_memline_at_peak(
        const struct ts_memline *line, const struct ts_rec_block *block);

/* The device that holds most. */
int ts_memline_device(const struct ts_recording *recording);

#endif
