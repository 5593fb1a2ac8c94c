/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Words of a launch's parameters: each parameter cut where the parameter
 * buffer has a multiple of eight, so that an aligned 8-byte word, a 4-byte
 * scalar and what is left of a struct are a word each. Words of a function are
 * numbered from 0, in the order of the buffer. Pure; any thread.
 */
#ifndef TS_WORDS_H
#define TS_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ts_func;
struct ts_param;

/*
 * Launches with more bytes of parameters have no words: they are lists of a
 * multi-tensor optimizer, many megabytes of them in a step, and never issued
 * again. Their operands are known by their uses.
 */
#define TS_WORDS_BYTES_MAX 4096u

/* What a word of one coordinate is, over all steps that were recorded. */
enum ts_word_class {
	/* Differs (dropout offsets, corrections of Adam), or has no meaning:
	 * slots of lists that are not in use. */
	TS_WORD_VARYING,
	TS_WORD_CONSTANT,
	/* Leads to the same operand at the same place in it. */
	TS_WORD_POINTER,
};

struct ts_word {
	uint16_t param;
	uint8_t bytes;   /* 1 to 8 */
	uint32_t offset; /* in the parameter */
};

/* How many words a function with these parameters has. */
uint32_t ts_words_count(const struct ts_param *params, size_t count);

/* Calls nothing, allocates nothing: fills @ret_words with func->word_count. */
void ts_words_read(
        const struct ts_func *func, void *const *params, uint64_t *ret_words);

/* Word @index of @func's, which has that many. */
struct ts_word ts_words_at(const struct ts_func *func, uint32_t index);

/* The value of a pointer: which use of the op, and how far into its block. */
#define TS_WORD_OFFSET_BITS 48

static inline uint64_t ts_word_pointer(uint32_t use, uint64_t offset)
{
	return (uint64_t)use << TS_WORD_OFFSET_BITS | offset;
}

static inline uint32_t ts_word_use(uint64_t pointer)
{
	return (uint32_t)(pointer >> TS_WORD_OFFSET_BITS);
}

static inline uint64_t ts_word_offset(uint64_t pointer)
{
	return pointer & ((1ull << TS_WORD_OFFSET_BITS) - 1);
}

#endif
