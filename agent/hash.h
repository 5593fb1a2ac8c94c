/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A 64-bit hash (FNV-1a over words) for signatures; not against attackers. */
#ifndef TS_HASH_H
#define TS_HASH_H

#include <stddef.h>
#include <stdint.h>

#define TS_HASH_START 0xcbf29ce484222325ull

static inline uint64_t ts_hash_word(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9fb21c651e98df25ull;
	return hash ^ hash >> 32;
}

static inline uint64_t ts_hash(uint64_t hash, const void *data, size_t bytes)
{
	const unsigned char *at = data;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ at[i]) * 0x100000001b3ull;
	return hash;
}

#endif
