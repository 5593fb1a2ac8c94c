/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mutations on request (mutate.c) and what becomes of the wrong bytes they
 * leave (taint.c). Guarded by the lock.
 */
#ifndef SG_MUTATE_H
#define SG_MUTATE_H

#include "tests/simgpu/driver/sg.h"

#include <jansson.h>

/* Parses SIMGPU_MUTATE. 0 or -EINVAL, after one line. */
int sg_mutate_read(const char *list);
/* SIMGPU_MUTATE is set. */
bool sg_mutating(void);

/* The next copy, of so many bytes in one row or several; locked: between a
 * device and page-locked memory. How many rows, or of a single row how many
 * bytes, are to be kept. */
uint64_t sg_mutate_copy(uint64_t bytes, uint64_t rows, bool locked);
/* A piece of that copy is left out. */
void sg_mutate_lose(uint64_t dst, uint64_t src, uint64_t bytes);
/* The next launch, described but not enqueued: gives it its effect, or takes
 * its accesses away. */
void sg_mutate_launch(const struct sg_launch *launch, struct sg_op *op);
/* The next event wait: true if it is to be left out. */
bool sg_mutate_wait(struct sg_stream *stream, struct sg_op *op);
/* op has its place in the order; judges waits left out. */
void sg_mutate_ordered(const struct sg_op *op);
/* For the report; new. */
json_t *sg_mutations_json(void);

/* ------------------------------------------------------------------- taint */

/* [va, va+bytes) holds wrong bytes. */
void sg_taint_add(uint64_t va, uint64_t bytes);
/* It has been overwritten. */
void sg_taint_clear(uint64_t va, uint64_t bytes);
/* A framework's block of device memory begins or ends: nobody reads what it
 * held through its address. */
void sg_taint_block_gone(uint64_t va, uint64_t bytes);
/* Content has been copied. */
void sg_taint_copied(uint64_t dst, uint64_t src, uint64_t bytes);
/* A kernel has read and written its accesses. */
void sg_taint_launched(const struct sg_op *op);
/* The host has touched page-locked memory. */
void sg_taint_touched(uint64_t va, uint64_t bytes);
/* More of it than was noted. */
void sg_taint_touches_lost(void);
/* Memory is gone. *set becomes NULL. */
void sg_taint_forget(void **set);
/* How wrong bytes came to the host, or NULL: they have not. */
const char *sg_taint_reached(void);

#endif
