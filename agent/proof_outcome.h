/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What came of the proofs and of what was made again by them, for who tells it
 * as the process ends. Takes the proof's lock.
 */
#ifndef TS_PROOF_OUTCOME_H
#define TS_PROOF_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

enum ts_proof_outcome {
	TS_PROOF_NOT_BEGUN, /* nobody asked for it, or no step was known */
	TS_PROOF_NOT_ENDED, /* shadow steps were to come, or were left */
	TS_PROOF_OF_NONE,   /* no value may be made again */
	TS_PROOF_OF_SOME,
};

/* @ret_made: how often a value was made again, @ret_bytes of those given up. */
enum ts_proof_outcome ts_proof_outcome(uint64_t *ret_made, uint64_t *ret_bytes);

#endif
