/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/beside.h"

#include <stdatomic.h>

/* Streams that kernels are launched on: more are not told apart. */
#define STREAMS 256u

/* Keys, each once, from any place on; 0: free. They are never taken out. */
static _Atomic uint64_t launched_on[STREAMS];
static atomic_bool kernels_seen, full, copies_beside;

static __thread bool has_launched __attribute__((tls_model("initial-exec")));
static __thread uint64_t last_stream __attribute__((tls_model("initial-exec")));

/* The legacy stream's key may be 0. */
static uint64_t key_of(const struct ts_op *op)
{
	return (uint64_t)op->stream + 1;
}

/* One of STREAMS. */
static size_t place_of(uint64_t key)
{
	return key * 0x9fb21c651e98df25ull >> 56;
}

static void note_launch(uint64_t key)
{
	if (has_launched && last_stream == key)
		return;
	has_launched = true;
	last_stream = key;
	if (atomic_load_explicit(&full, memory_order_relaxed))
		return;
	for (size_t i = 0; i < STREAMS; i++) {
		uint64_t found = 0;

		if (atomic_compare_exchange_strong(
		            &launched_on[(place_of(key) + i) % STREAMS], &found,
		            key) ||
		        found == key) {
			atomic_store(&kernels_seen, true);
			return;
		}
	}
	atomic_store(&full, true);
}

static bool was_launched_on(uint64_t key)
{
	if (atomic_load(&full))
		return true;
	for (size_t i = 0; i < STREAMS; i++) {
		uint64_t found = atomic_load_explicit(
		        &launched_on[(place_of(key) + i) % STREAMS],
		        memory_order_relaxed);

		if (found == key || !found)
			return found;
	}
	return false;
}

bool ts_beside_any(void)
{
	return atomic_load_explicit(&copies_beside, memory_order_relaxed);
}

bool ts_beside_op(const struct ts_op *op)
{
	uint64_t key = key_of(op);
	bool beside = ts_beside_any();

	if (op->kind != TS_OP_COPY) {
		if (op->kind != TS_OP_SET)
			note_launch(key);
		return false;
	}
	/* Threads that launch are mostly here. */
	if (has_launched && !beside)
		return false;
	if (!atomic_load(&kernels_seen) || was_launched_on(key))
		return false;
	if (!has_launched)
		atomic_store(&copies_beside, true);
	return true;
}
