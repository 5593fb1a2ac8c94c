/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tagged content where it meets memory: the device's (content.c), the host's
 * (content_host.c, content_recall.c) and the blocks' (block.c). Under sg_lock;
 * host content has a lock of its own besides, see content_host.c.
 */
#ifndef SG_CONTENT_H
#define SG_CONTENT_H

#include "tests/simgpu/driver/memory.h"
#include "tests/simgpu/driver/tags.h"

/* Uploads up to this size keep their bytes. */
#define SG_BYTES_MAX ((uint64_t)1 << 20)

/* SIMGPU_CONTENT=tags. */
bool sg_content_tagged(void);

/* Reads a table of n words in device memory. False where it holds no numbers
 * that are known. */
bool sg_content_words(uint64_t va, unsigned n, uint64_t *words);
/* Appends what device memory holds to parts; makes it hold them from va on, as
 * a kernel does. */
void sg_content_read(uint64_t va, uint64_t n, struct sg_parts *parts);
void sg_content_write(uint64_t va, const struct sg_parts *parts);
/* Do two ranges hold the same, as far as is known? */
bool sg_content_same(uint64_t a, uint64_t b, uint64_t bytes);
/* What the device memory that op writes holds now: as many as op has accesses,
 * for sg_content_restore, which puts it back and says whether it had changed.
 * The caller frees the array. */
struct sg_parts *sg_content_save(const struct sg_op *op);
bool sg_content_restore(const struct sg_access *access, struct sg_parts *saved);

/*
 * What of a framework's block has been written since it was allocated. To
 * *ret_end goes where this answer ends; NULL: no block, all counts as written.
 */
struct sg_map *sg_block_written(
        uint64_t va, uint64_t *ret_start, uint64_t *ret_end);

/* [va, va+n) of pageable memory has been given parts' bytes. */
void sg_recall_note(uint64_t va, uint64_t n, const struct sg_parts *parts);
/* Are these bytes what a stretch of such a copy held? Then adds it to parts. */
bool sg_recall_find(uint64_t va, uint64_t n, struct sg_parts *parts);

/* Reads host memory as content; parts carry host addresses. */
void sg_host_read(uint64_t va, uint64_t n, struct sg_parts *parts);
/* Writes content into host memory: at once, or, where it is large and the
 * memory our own, when somebody touches it. */
void sg_host_write(uint64_t va, uint64_t n, const struct sg_parts *parts);
/* Before the driver itself touches host memory, and after it has changed it. */
void sg_host_ready(uint64_t va, uint64_t n);
void sg_host_changed(uint64_t va, uint64_t n);
/* From now on the host cannot look at it unnoticed (sg_races_touched): its
 * bytes go away and are made again when it does. False where that cannot be:
 * memory not our own, or pages of which this is only a part. */
bool sg_host_hide(uint64_t va, uint64_t n);
/* Host memory ceases to be known. */
void sg_host_forget(struct sg_host *host);

#endif
