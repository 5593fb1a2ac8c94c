/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tagged content that went out to memory the driver does not know (pageable)
 * and comes back: it is known again by its bytes, wherever the program has put
 * them meanwhile, never by an address. Remembers, by their hash, what stretches
 * of SG_BYTES_MAX of each such copy, counted from its start, and its rest held.
 *
 * Only stretches that nothing else could look like are remembered: those with
 * enough numbers. Of copies up to SG_BYTES_MAX neither integers nor known bytes
 * are, since bytes are kept on the way back; those of programs that copy new
 * ones in every step would be held for ever. Called under sg_lock.
 */
#include "tests/simgpu/driver/content.h"
#include "tests/simgpu/driver/sg.h"

#include <stdlib.h>

/* So many bytes of numbers are not met twice by chance. */
#define TELLING_BYTES ((uint64_t)256)

struct memory {
	uint64_t key; /* 0: free */
	struct sg_parts parts;
};
static struct memory *memories;
static uint64_t n_memories, cap_memories; /* a power of two, or 0 */

static uint64_t key_of(const void *data, uint64_t n)
{
	uint64_t hash = sg_hash_bytes(n, data, n);

	return hash ? hash : 1;
}

/* Where key is, or would be. There is always a free place. */
static struct memory *place_of(uint64_t key)
{
	uint64_t at = key & (cap_memories - 1);

	while (memories[at].key && memories[at].key != key)
		at = (at + 1) & (cap_memories - 1);
	return &memories[at];
}

static void grow(void)
{
	struct memory *old = memories;
	uint64_t n = cap_memories;

	cap_memories = n ? 2 * n : 256;
	memories = sg_xcalloc(cap_memories, sizeof(*memories));
	for (uint64_t i = 0; i < n; i++) {
		if (old[i].key)
			*place_of(old[i].key) = old[i];
	}
	free(old);
}

/* Is it told from others by its bytes; is the copy long, then? */
static bool telling(const struct sg_part *part, bool is_long)
{
	if (!part->defined || part->n < TELLING_BYTES)
		return false;
	if (part->piece.kind == SG_PIECE_BYTES)
		return is_long;
	if (part->piece.kind != SG_PIECE_TAG)
		return false;
	switch (part->piece.type) {
	case SG_TYPE_F32:
	case SG_TYPE_F64:
	case SG_TYPE_F16:
	case SG_TYPE_BF16:
		return true;
	case SG_TYPE_I8:
	case SG_TYPE_I16:
	case SG_TYPE_I32:
	case SG_TYPE_I64:
		return is_long && part->piece.bound > 1;
	default:
		return false;
	}
}

/* The stretch [from, from+n) of the copy whose content parts is. */
static void note(const struct sg_parts *parts, uint64_t from, uint64_t n,
        const void *data, bool is_long)
{
	struct sg_parts held = {0};
	struct memory *memory;
	bool told = false;
	uint64_t key;

	for (unsigned i = 0; i < parts->n; i++) {
		const struct sg_part *part = &parts->parts[i];
		uint64_t at = part->at - parts->parts[0].at;
		uint64_t first = at > from ? at : from;
		uint64_t end =
		        at + part->n < from + n ? at + part->n : from + n;
		struct sg_piece piece;

		if (first >= end)
			continue;
		piece = sg_piece_later(&part->piece, first - at);
		sg_parts_add(&held, first - from, end - first,
		        part->defined ? &piece : NULL);
		told |= telling(&held.parts[held.n - 1], is_long);
	}
	if (!told) {
		sg_parts_free(&held);
		return;
	}
	if (n_memories >= cap_memories / 2)
		grow();
	key = key_of(data, n);
	memory = place_of(key);
	if (!memory->key)
		n_memories++;
	memory->key = key;
	sg_parts_free(&memory->parts);
	memory->parts = held;
}

void sg_recall_note(uint64_t va, uint64_t n, const struct sg_parts *parts)
{
	uint64_t step;

	for (uint64_t done = 0; done < n; done += step) {
		step = n - done < SG_BYTES_MAX ? n - done : SG_BYTES_MAX;
		note(parts, done, step, (const void *)(uintptr_t)(va + done),
		        n > SG_BYTES_MAX);
	}
}

bool sg_recall_find(uint64_t va, uint64_t n, struct sg_parts *parts)
{
	const struct memory *memory;

	if (!n_memories || n < TELLING_BYTES)
		return false;
	memory = place_of(key_of((const void *)(uintptr_t)va, n));
	for (unsigned i = 0; i < memory->parts.n; i++) {
		const struct sg_part *part = &memory->parts.parts[i];

		sg_parts_add(parts, va + part->at, part->n,
		        part->defined ? &part->piece : NULL);
	}
	return memory->key != 0;
}
