/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Looks at device memory with the agent's own kernels (checksum.ptx): sums
 * that tell whether content is the same, and what a kernel did against what it
 * did again. Kernels are issued on the program's streams, behind what is there;
 * results stay on the device until they are asked for, all at once.
 *
 * A set of checks belongs to the context that was current when it was made,
 * which is current in every call; the caller sees to it that calls do not
 * overlap.
 */
#ifndef TS_CHECKSUM_H
#define TS_CHECKSUM_H

#include <stdbool.h>

#include "runtime/ops.h"
#include "runtime/streams.h"

/* Each byte of a block that is to be written holds one of these before. */
#define TS_FILL_FIRST  0x5a
#define TS_FILL_SECOND 0xa5

/* Streams that one set may be issued on. */
#define TS_CHECK_STREAMS 16

struct ts_checks;

struct ts_check_result {
	uint64_t word[2]; /* of a sum: both; of a comparison: see below */
};

/* What a kernel did to a block against what it did again to two others. */
struct ts_comparison {
	uint64_t before, after;
	uint64_t first;  /* held TS_FILL_FIRST */
	uint64_t second; /* held TS_FILL_SECOND */
	uint64_t bytes;
};

/*
 * Room for @most results. Tries whether the kernels see what they are to see,
 * and waits for that. 0; -ENOMEM, on the device as well; -ENOTSUP where the
 * driver cannot load the kernels, or they do not; or another negative errno.
 * Memory that it takes on the device: ts_checks_bytes(@most).
 */
int ts_checks_create(const struct ts_gpu_ops *ops, uint32_t most,
        struct ts_checks **ret_checks);
uint64_t ts_checks_bytes(uint32_t most);

/* For how many results @bytes of device memory are enough. */
uint32_t ts_checks_most(uint64_t bytes);

/* Waits for nothing: what was issued must be over. NULL is fine. */
void ts_checks_destroy(struct ts_checks *checks, bool driver_alive);

/*
 * Issues a sum over [address, address + bytes) on @stream; *ret_slot says where
 * its result will be. 0; -ENOSPC without room for it; or a negative errno.
 * @address is a multiple of eight.
 */
int ts_checks_sum(struct ts_checks *checks, uint64_t address, uint64_t bytes,
        ts_stream_key stream, uint32_t *ret_slot);

/*
 * Issues a comparison likewise. Its result: how many words do not agree, and
 * how many bytes were written. A byte that holds its pattern in both others
 * was not written there, and must be as it was; one that was written must be
 * the same in all three.
 */
int ts_checks_compare(struct ts_checks *checks,
        const struct ts_comparison *comparison, ts_stream_key stream,
        uint32_t *ret_slot);

/* How many results were issued since the set was made or cleared. */
uint32_t ts_checks_used(const struct ts_checks *checks);

/*
 * Issues the copy that brings all results, behind what was issued on every
 * stream; waits for nothing. ts_checks_ready() says without waiting whether
 * they are there, ts_checks_wait() waits.
 */
int ts_checks_collect(struct ts_checks *checks);
bool ts_checks_ready(struct ts_checks *checks);
int ts_checks_wait(struct ts_checks *checks);

/* Of what was collected and is ready. */
struct ts_check_result ts_checks_result(
        const struct ts_checks *checks, uint32_t slot);

/* Forgets all results; what was collected must be ready. */
int ts_checks_clear(struct ts_checks *checks);

static inline bool ts_check_same(
        struct ts_check_result a, struct ts_check_result b)
{
	return a.word[0] == b.word[0] && a.word[1] == b.word[1];
}

#endif
