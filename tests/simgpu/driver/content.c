/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Content of memory, in order of arrival. By default device memory has none:
 * what the host reads of it is zeros. With SIMGPU_CONTENT=tags it holds tagged
 * values, by chunk, so that all addresses of a chunk show the same. Under
 * sg_lock.
 */
#include "tests/simgpu/driver/content.h"
#include "tests/simgpu/driver/collective.h"
#include "tests/simgpu/driver/content_exact.h"
#include "tests/simgpu/driver/content_values.h"
#include "tests/simgpu/driver/mutate.h"

#include <stdlib.h>
#include <string.h>

bool sg_content_tagged(void)
{
	return sg_settings.content && !strcmp(sg_settings.content, "tags");
}

/* ----------------------------------------------------------- device memory */

static struct sg_map *map_of(struct sg_chunk *chunk)
{
	if (!chunk->content)
		chunk->content = sg_xcalloc(1, sizeof(struct sg_map));
	return chunk->content;
}

void sg_content_chunk_gone(struct sg_chunk *chunk)
{
	sg_exact_chunk_gone(chunk);
	if (!chunk->content)
		return;
	sg_map_clear(chunk->content);
	free(chunk->content);
}

/* Reads a stretch of one mapping that is written, for read_stretch. */
struct reading {
	const struct sg_mapping *mapping;
	uint64_t to_va; /* address minus position in the map being read */
	struct sg_parts *parts;
};

static void read_piece(
        void *arg, uint64_t at, uint64_t n, const struct sg_piece *piece)
{
	struct reading *reading = arg;

	sg_parts_add(reading->parts, at + reading->mapping->va, n, piece);
}

/* A part of a block: content where it has been written. */
static void read_written(
        void *arg, uint64_t at, uint64_t n, const struct sg_piece *written)
{
	struct reading *reading = arg;
	uint64_t va = at + reading->to_va;

	if (written)
		sg_map_each(map_of(reading->mapping->chunk),
		        va - reading->mapping->va, n, read_piece, reading);
	else
		sg_parts_add(reading->parts, va, n, NULL);
}

/* How far one mapping and one block, or none, reach from va. */
static uint64_t stretch(uint64_t va, uint64_t n,
        struct sg_mapping **ret_mapping, struct sg_map **ret_written,
        uint64_t *ret_block_va)
{
	struct sg_mapping *mapping = sg_mapping_at(va);
	uint64_t end;

	*ret_written = sg_block_written(va, ret_block_va, &end);
	if (n > end - va)
		n = end - va;
	if (mapping)
		end = mapping->va + mapping->bytes;
	else
		end = (va & ~(SG_PAGE_BYTES - 1)) + SG_PAGE_BYTES;
	*ret_mapping = mapping;
	return n < end - va ? n : end - va;
}

static void device_read(uint64_t va, uint64_t n, struct sg_parts *parts)
{
	while (n) {
		struct reading reading = {.parts = parts};
		struct sg_mapping *mapping;
		struct sg_map *written;
		uint64_t block_va;
		uint64_t step = stretch(va, n, &mapping, &written, &block_va);

		reading.mapping = mapping;
		reading.to_va = block_va;
		if (!mapping)
			sg_parts_add(parts, va, step, NULL);
		else if (written)
			sg_map_each(written, va - block_va, step, read_written,
			        &reading);
		else
			sg_map_each(map_of(mapping->chunk), va - mapping->va,
			        step, read_piece, &reading);
		va += step;
		n -= step;
	}
}

/* A copy to [va, va+bytes); NULL: something else writes. */
struct copied {
	uint64_t va, bytes;
};

/*
 * A copy that reaches over a framework's block is no program's doing: it brings
 * back whole pages, and what of the block was not written stays so.
 */
static bool is_of_pages(const struct copied *copy, uint64_t va)
{
	uint64_t block_va, block_end;

	sg_block_written(va, &block_va, &block_end);
	return copy &&
	       (copy->va < block_va || copy->va + copy->bytes > block_end);
}

/* Makes [va, va+n) hold piece; NULL: undefined. */
static void device_write(uint64_t va, uint64_t n, const struct sg_piece *piece,
        const struct copied *copy)
{
	uint64_t done = 0;

	while (done < n) {
		struct sg_mapping *mapping;
		struct sg_map *written;
		uint64_t at = va + done, block_va;
		uint64_t step =
		        stretch(at, n - done, &mapping, &written, &block_va);
		struct sg_piece rest, mark = {.from = at - block_va};

		if (piece)
			rest = sg_piece_later(piece, done);
		if (mapping)
			sg_map_write(map_of(mapping->chunk), at - mapping->va,
			        step, piece ? &rest : NULL);
		if (written && !is_of_pages(copy, at))
			sg_map_write(written, at - block_va, step,
			        piece ? &mark : NULL);
		done += step;
	}
}

static void device_write_parts(
        uint64_t va, const struct sg_parts *parts, const struct copied *copy)
{
	for (unsigned i = 0; i < parts->n; i++) {
		const struct sg_part *part = &parts->parts[i];

		device_write(va + (part->at - parts->parts[0].at), part->n,
		        part->defined ? &part->piece : NULL, copy);
	}
}

void sg_content_read(uint64_t va, uint64_t n, struct sg_parts *parts)
{
	device_read(va, n, parts);
}

void sg_content_write(uint64_t va, const struct sg_parts *parts)
{
	device_write_parts(va, parts, NULL);
}

/* ----------------------------------------------------------------- effects */

static void copy_host(uint64_t dst, uint64_t src, uint64_t n)
{
	if (sg_content_tagged()) {
		sg_host_ready(src, n);
		sg_host_ready(dst, n);
	}
	memmove((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, n);
	if (sg_content_tagged())
		sg_host_changed(dst, n);
}

void sg_content_copy(uint64_t dst, uint64_t src, uint64_t bytes)
{
	bool to_device = sg_is_device_va(dst), of_device = sg_is_device_va(src);
	const struct copied copy = {dst, bytes};
	struct sg_parts parts = {0};

	if (sg_content_exact() || (!to_device && !of_device)) {
		copy_host(dst, src, bytes);
		sg_taint_copied(dst, src, bytes);
		return;
	}
	if (!sg_content_tagged()) {
		if (!to_device)
			sg_host_zero((void *)(uintptr_t)dst, bytes);
		return;
	}
	if (of_device)
		device_read(src, bytes, &parts);
	else
		sg_host_read(src, bytes, &parts);
	if (to_device)
		device_write_parts(dst, &parts, &copy);
	else
		sg_host_write(dst, bytes, &parts);
	sg_parts_free(&parts);
	sg_taint_copied(dst, src, bytes);
}

static void fill_host(
        uint64_t dst, unsigned value, unsigned element_bytes, uint64_t count)
{
	unsigned char *to = (unsigned char *)(uintptr_t)dst;
	uint64_t n = count * element_bytes;

	if (sg_content_tagged())
		sg_host_ready(dst, n);
	if (element_bytes == 1)
		memset(to, (int)(value & 0xff), n);
	for (uint64_t i = 0; element_bytes > 1 && i < count; i++)
		memcpy(to + i * element_bytes, &value, element_bytes);
	if (sg_content_tagged())
		sg_host_changed(dst, n);
}

void sg_content_fill(
        uint64_t dst, unsigned value, unsigned element_bytes, uint64_t count)
{
	struct sg_piece piece = {.kind = SG_PIECE_FILL};

	sg_taint_clear(dst, count * element_bytes);
	if (sg_content_exact() || !sg_is_device_va(dst)) {
		fill_host(dst, value, element_bytes, count);
		return;
	}
	if (!sg_content_tagged())
		return;
	piece.tag = value;
	if (element_bytes == 1)
		piece.tag = (value & 0xff) * 0x01010101u;
	else if (element_bytes == 2)
		piece.tag = (value & 0xffff) * 0x00010001u;
	device_write(dst, count * element_bytes, &piece, NULL);
}

static void read_any(uint64_t va, uint64_t n, struct sg_parts *parts)
{
	if (sg_is_device_va(va))
		device_read(va, n, parts);
	else
		sg_host_read(va, n, parts);
}

bool sg_content_same(uint64_t a, uint64_t b, uint64_t bytes)
{
	struct sg_parts of_a = {0}, of_b = {0};
	bool same;

	read_any(a, bytes, &of_a);
	read_any(b, bytes, &of_b);
	same = sg_parts_hash(&of_a) == sg_parts_hash(&of_b);
	sg_parts_free(&of_a);
	sg_parts_free(&of_b);
	return same;
}

/* Numbers that are no more than tagged mean nothing as addresses. */
static bool has_bytes(const struct sg_part *part)
{
	return part->defined && (part->piece.kind != SG_PIECE_TAG ||
	                                part->piece.series == SG_SERIES_LINEAR);
}

bool sg_content_words(uint64_t va, unsigned n, uint64_t *words)
{
	struct sg_parts parts = {0};
	bool known = true;

	if (sg_content_exact() && sg_mapping_at(va)) {
		memcpy(words, (const void *)(uintptr_t)va, n * sizeof(*words));
		return true;
	}
	if (!sg_content_tagged() || !sg_is_device_va(va))
		return false;
	device_read(va, n * sizeof(*words), &parts);
	for (unsigned i = 0; i < parts.n && known; i++) {
		const struct sg_part *part = &parts.parts[i];

		known = has_bytes(part);
		if (known)
			sg_piece_bytes(&part->piece, 0, part->n,
			        (char *)words + (part->at - va));
	}
	sg_parts_free(&parts);
	return known;
}

struct sg_parts *sg_content_save(const struct sg_op *op)
{
	struct sg_parts *saved = sg_xcalloc(op->n_accesses, sizeof(*saved));

	for (unsigned i = 0; i < op->n_accesses; i++) {
		const struct sg_access *access = &op->accesses[i];

		if (access->write && sg_is_device_va(access->va))
			device_read(access->va, access->bytes, &saved[i]);
	}
	return saved;
}

bool sg_content_restore(const struct sg_access *access, struct sg_parts *saved)
{
	struct sg_parts now = {0};
	bool changed;

	device_read(access->va, access->bytes, &now);
	changed = sg_parts_hash(&now) != sg_parts_hash(saved);
	device_write_parts(access->va, saved, NULL);
	sg_parts_free(&now);
	sg_parts_free(saved);
	return changed;
}

/* Does the kernel's result vary, from its Nth launch on? */
static bool is_unstable(const struct sg_op *op)
{
	static uint64_t launches;

	return sg_settings.unstable && strstr(op->name, sg_settings.unstable) &&
	       ++launches >= sg_settings.unstable_from;
}

/*
 * What a kernel writes follows from its name, its grid, its declared scalars
 * and what it reads, by position; never from an address.
 */
void sg_content_launch(const struct sg_launch *launch, struct sg_op *op)
{
	static uint64_t launches;      /* of nondeterministic kernels */
	static struct sg_parts *parts; /* by access; used again */
	static unsigned cap_parts;
	uint64_t hash;

	if (!sg_content_tagged() || sg_collective_run(launch))
		return;
	if (cap_parts < op->n_accesses) {
		parts = sg_xrealloc(parts, op->n_accesses * sizeof(*parts));
		memset(parts + cap_parts, 0,
		        (op->n_accesses - cap_parts) * sizeof(*parts));
		cap_parts = op->n_accesses;
	}
	hash = sg_hash_bytes(0, op->name, strlen(op->name));
	for (int i = 0; i < 3; i++)
		hash = sg_mix(sg_mix(hash, op->grid[i]), op->block[i]);
	hash = sg_mix(hash, op->scalars);
	if (op->nondeterministic || is_unstable(op))
		hash = sg_mix(hash, ++launches);
	for (unsigned i = 0; i < op->n_accesses; i++) {
		const struct sg_access *access = &op->accesses[i];

		if (!access->read || access->addresses ||
		        !sg_is_device_va(access->va))
			continue;
		device_read(access->va, access->bytes, &parts[i]);
		hash = sg_mix(sg_mix(hash, i), sg_parts_hash(&parts[i]));
	}
	for (unsigned i = 0; i < op->n_accesses; i++) {
		const struct sg_access *access = &op->accesses[i];
		struct sg_piece piece = {.tag = sg_mix(hash, i)};

		if (!access->write || !sg_is_device_va(access->va) ||
		        !sg_values_piece(launch, op, i, parts, &piece))
			continue;
		device_write(access->va, access->bytes, &piece, NULL);
		sg_bytes_unref(piece.bytes);
	}
	for (unsigned i = 0; i < op->n_accesses; i++)
		sg_parts_free(&parts[i]);
}
