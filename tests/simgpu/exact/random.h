/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The Philox4x32-10 generator with CUDA's counters, as every random kernel of
 * PyTorch uses it: one subsequence a thread.
 */
#ifndef SGX_RANDOM_H
#define SGX_RANDOM_H

#include "tests/simgpu/exact/layout.h"

namespace sgx
{

/* Seed and offset of a launch, unpacked from a PhiloxCudaState. */
struct Seed {
	uint64_t seed, offset;

	/* bytes: 32, or 24 before PyTorch 2.15. */
	static Seed unpack(const uint8_t *state, size_t bytes = 32);
};

/* The four words for one value of the counter. */
void philox(uint64_t seed, uint64_t subsequence, uint64_t position,
        uint32_t words[4]);

/* One thread's generator. Offsets are multiples of 4. */
class Philox
{
      public:
	Philox(const Seed &seed, uint64_t subsequence)
	    : seed_(seed.seed), subsequence_(subsequence),
	      position_(seed.offset / 4)
	{
	}
	void next(uint32_t words[4])
	{
		philox(seed_, subsequence_, position_++, words);
	}
	/* In (0, 1]. */
	void uniform(float out[4]);
	void normal(float out[4]);

      private:
	uint64_t seed_, subsequence_, position_;
};

} // namespace sgx

#endif
