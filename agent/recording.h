/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One stretch of the program's device work as plain data: ops in issue order,
 * the blocks they touched, when blocks came and went. The recorder makes it,
 * one step at a time; whoever holds it owns it. No lock.
 */
#ifndef TS_RECORDING_H
#define TS_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ts_func;

#define TS_UNKNOWN_NS UINT64_MAX

enum ts_rec_kind {
	TS_REC_LAUNCH,
	TS_REC_COPY,
	TS_REC_SET,
	TS_REC_GRAPH,
};

enum ts_role {
	TS_ROLE_READ,
	TS_ROLE_WRITE, /* all of it, without a look at what it held */
	TS_ROLE_BOTH,  /* or not known */
};

struct ts_rec_use {
	uint32_t block; /* index into blocks */
	uint32_t offset;
	uint16_t param; /* TS_NO_PARAM where no parameter led to it */
	uint8_t role;   /* enum ts_role, as the op tells it */
	bool fresh;     /* the first op to touch the block */
	bool whole;     /* all of the block, as far as the op tells */
};

struct ts_rec_op {
	uint64_t signature;
	uint64_t family;            /* the same without geometry and sizes */
	const struct ts_func *func; /* NULL but for a launch */
	const char *name;           /* of a copy or set: constant text */
	uint64_t stream, bytes;
	uint64_t first_use; /* number of its first use */
	uint64_t duration_ns;
	uint64_t gap_ns;     /* from the start of the op before; or unknown */
	uint64_t first_word; /* number of its first word of parameters */
	uint32_t use_count;
	uint32_t doubt_count; /* uses after these: words led there that are
	                       * taken for no operands but may be some */
	uint32_t word_count;  /* words.h; 0: none were kept */
	uint32_t layout_used; /* layout.h */
	uint32_t grid[3], block[3], shared_bytes;
	int32_t timer;
	uint8_t kind; /* enum ts_rec_kind */
	bool backward;
	bool declared;   /* roles of its uses are what a library said */
	bool collective; /* other processes take part in it */
	bool captured;
	bool updating; /* part of the optimizer's phase */
};

#define TS_NEVER UINT64_MAX

struct ts_rec_block {
	uint64_t serial, address, bytes;
	uint64_t born; /* before the op of this number; 0: before any */
	uint64_t died; /* likewise; TS_NEVER while it lives */
	/* Order of births and deaths, which op numbers do not tell. */
	uint64_t born_event, died_event;
	int device;
	bool reported;
	bool from_backward;
	bool updated; /* touched by the optimizer's phase */
	bool scratch; /* a library's work space */
};

struct ts_recording {
	/* Ops [first_op, first_op + op_count); numbers count from the start of
	 * the process, and born and died use the same numbers. */
	uint64_t first_op;
	uint64_t first_launch; /* kernels that were launched before */
	struct ts_rec_op *ops;
	size_t op_count;
	/* Uses [first_use, first_use + use_count). */
	uint64_t first_use;
	struct ts_rec_use *uses;
	size_t use_count;
	/* Words [first_word, first_word + word_count). */
	uint64_t first_word;
	uint64_t *words;
	size_t word_count;
	struct ts_rec_block *blocks;
	size_t block_count;
	uint64_t duration_ns; /* first op to first op of what follows */
	bool partial;         /* its first ops were not recorded */
};

static inline const struct ts_rec_use *ts_recording_use(
        const struct ts_recording *recording, const struct ts_rec_op *op,
        uint32_t index)
{
	return &recording->uses[op->first_use - recording->first_use + index];
}

static inline uint64_t *ts_recording_words(
        const struct ts_recording *recording, const struct ts_rec_op *op)
{
	return &recording->words[op->first_word - recording->first_word];
}

/* From the first op to the first of what follows; or unknown. */
uint64_t ts_recording_duration(const struct ts_recording *recording);

/* How many kernels its first @count ops launch. */
uint64_t ts_recording_launches(
        const struct ts_recording *recording, size_t count);

/* A copy of one of its lists, the caller's; of an empty one not NULL. NULL
 * without memory. */
void *ts_recording_copy(const void *items, size_t count, size_t item_bytes);

/* Frees what it owns and clears it. */
void ts_recording_finish(struct ts_recording *recording);

/* Takes the first @count ops out; blocks keep their numbers. */
void ts_recording_cut(struct ts_recording *recording, size_t count);

#endif
