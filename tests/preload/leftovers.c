/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sets blocks in turn that do not fit together, and looks at its own stack
 * after each call: what the agent moved for it may have left no address there,
 * since the next kernel's parameters come to lie over it.
 */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MIB    (1ull << 20)
#define BYTES  (4 * MIB)
#define BLOCKS 32
#define ROUNDS 4
/* 12 KiB: parameters of 4 KiB, and how much deeper they are made. */
#define WORDS 1536

static CUdeviceptr blocks[BLOCKS];

/* Words that lead to other blocks than the one that was just set, and to more
 * than its end. */
static unsigned int __attribute__((noinline)) left_behind(int set)
{
	uint64_t words[WORDS];
	unsigned int count = 0;

	/* As if it had been filled: it holds what was there before. */
	__asm__ volatile("" : : "r"(words) : "memory");
	for (int i = 0; i < WORDS; i++)
		for (int k = 0; k < BLOCKS; k++)
			count += words[i] - blocks[k] < BYTES && k != set &&
			         words[i] != blocks[set] + BYTES;
	return count;
}

/* What allocations left is not asked for. */
static void __attribute__((noinline)) clear(void)
{
	uint64_t words[2 * WORDS];

	memset(words, 0, sizeof(words));
	__asm__ volatile("" : : "r"(words) : "memory");
}

static int fail(const char *what)
{
	printf("leftovers: %s\n", what);
	return 1;
}

int main(void)
{
	unsigned int found = 0;
	CUcontext context;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
	        cuCtxSetCurrent(context))
		return fail("no context");
	for (int i = 0; i < BLOCKS; i++)
		if (cuMemAlloc(&blocks[i], BYTES))
			return fail("no memory");
	clear();
	for (int i = 0; i < ROUNDS * BLOCKS; i++) {
		if (cuMemsetD8(blocks[i % BLOCKS], (unsigned char)i, BYTES))
			return fail("set");
		found += left_behind(i % BLOCKS);
	}
	printf("leftovers: %u addresses\n", found);
	return found != 0;
}
