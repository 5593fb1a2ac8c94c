/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/checksum.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/checksum_ptx.h"

#define THREADS    256u
#define WORD_BYTES 8u
/* Enough to fill a device; each takes as many words as are left. */
#define BLOCKS_MAX 2048u
/* Where the kernels are tried: four areas behind the results. */
#define TRY_AREA  1024u
#define TRY_BYTES (4u * TRY_AREA)

struct ts_checks {
	const struct ts_gpu_ops *ops;
	CUmodule module;
	CUfunction sum, compare;
	CUstream copies; /* brings results */
	CUevent copied;
	CUdeviceptr results;
	struct ts_check_result *host; /* page-locked, as long as results */
	uint32_t used, most;
	struct {
		ts_stream_key key;
		CUevent event;
	} streams[TS_CHECK_STREAMS];
	unsigned int stream_count;
};

static uint64_t results_bytes(uint32_t most)
{
	return most * sizeof(struct ts_check_result);
}

uint64_t ts_checks_bytes(uint32_t most)
{
	return results_bytes(most) + TRY_BYTES;
}

uint32_t ts_checks_most(uint64_t bytes)
{
	return (uint32_t)((bytes - TRY_BYTES) / sizeof(struct ts_check_result));
}

static CUresult load(struct ts_checks *checks)
{
	const struct ts_gpu_ops *ops = checks->ops;
	CUresult rc = ops->module_load_data(&checks->module, checksum_ptx);

	if (rc == CUDA_SUCCESS)
		rc = ops->module_get_function(
		        &checks->sum, checks->module, "ts_checksum");
	if (rc == CUDA_SUCCESS)
		rc = ops->module_get_function(
		        &checks->compare, checks->module, "ts_compare");
	return rc;
}

static CUresult make_room(struct ts_checks *checks)
{
	const struct ts_gpu_ops *ops = checks->ops;
	uint64_t bytes = results_bytes(checks->most);
	void *host = NULL;
	CUresult rc =
	        ops->mem_alloc(&checks->results, ts_checks_bytes(checks->most));

	if (rc == CUDA_SUCCESS)
		rc = ops->host_alloc(&host, bytes, 0);
	checks->host = host;
	if (rc == CUDA_SUCCESS)
		rc = ops->stream_create(
		        &checks->copies, CU_STREAM_NON_BLOCKING);
	if (rc == CUDA_SUCCESS)
		rc = ops->event_create(
		        &checks->copied, CU_EVENT_DISABLE_TIMING);
	return rc;
}

/* ------------------------------------------------------ do they see it all */

/*
 * What kernels get wrong is what is left over by whole words. So
 * [PART, PART + PART_BYTES), which is written of what is tried, begins two
 * bytes into a word and ends six into one, and all of it ends three into one.
 */
#define LOOKED_BYTES 1003u
#define PART         26u
#define PART_BYTES   500u

enum { BEFORE, AFTER, FIRST, SECOND, AREAS };
enum { SUM_BEFORE, SUM_AFTER, SUM_BACK, SUM_LAST, SUMS };
enum { ALIKE, ONE_BYTE, UNWRITTEN, COMPARISONS };

struct trial {
	struct ts_checks *checks;
	uint64_t area[AREAS];
	uint32_t sums[SUMS], comparisons[COMPARISONS];
	int rc; /* nothing after the first failure is done */
};

static void put(struct trial *trial, int area, uint64_t offset, uint64_t bytes,
        unsigned char with)
{
	if (!trial->rc)
		trial->rc = ts_gpu_errno(trial->checks->ops->set_bytes(
		        trial->area[area] + offset, with, bytes,
		        trial->checks->copies));
}

static void try_sum(struct trial *trial, int area, int which)
{
	if (!trial->rc)
		trial->rc = ts_checks_sum(trial->checks, trial->area[area],
		        LOOKED_BYTES,
		        (ts_stream_key)(uintptr_t)trial->checks->copies,
		        &trial->sums[which]);
}

static void try_compare(struct trial *trial, int which)
{
	struct ts_comparison all = {trial->area[BEFORE], trial->area[AFTER],
	        trial->area[FIRST], trial->area[SECOND], LOOKED_BYTES};

	if (!trial->rc)
		trial->rc = ts_checks_compare(trial->checks, &all,
		        (ts_stream_key)(uintptr_t)trial->checks->copies,
		        &trial->comparisons[which]);
}

static void issue_tries(struct trial *trial)
{
	static const unsigned char fills[AREAS] = {
	        0x11, 0x11, TS_FILL_FIRST, TS_FILL_SECOND};

	for (int i = 0; i < AREAS; i++)
		put(trial, i, 0, LOOKED_BYTES, fills[i]);
	for (int i = AFTER; i < AREAS; i++)
		put(trial, i, PART, PART_BYTES, 0x33);
	try_sum(trial, BEFORE, SUM_BEFORE);
	try_sum(trial, AFTER, SUM_AFTER);
	try_compare(trial, ALIKE);
	put(trial, SECOND, PART + 4, 1, 0x34);
	try_compare(trial, ONE_BYTE);
	put(trial, SECOND, PART + 4, 1, 0x33);
	put(trial, AFTER, PART + PART_BYTES, 1, 0x12);
	try_compare(trial, UNWRITTEN);
	put(trial, AFTER, 0, LOOKED_BYTES, 0x11);
	try_sum(trial, AFTER, SUM_BACK);
	put(trial, AFTER, LOOKED_BYTES - 1, 1, 0x12);
	try_sum(trial, AFTER, SUM_LAST);
}

static bool tell_right(const struct trial *trial)
{
	struct ts_check_result sums[SUMS], comparisons[COMPARISONS];

	for (int i = 0; i < SUMS; i++)
		sums[i] = ts_checks_result(trial->checks, trial->sums[i]);
	for (int i = 0; i < COMPARISONS; i++)
		comparisons[i] =
		        ts_checks_result(trial->checks, trial->comparisons[i]);
	return ts_check_same(sums[SUM_BEFORE], sums[SUM_BACK]) &&
	       !ts_check_same(sums[SUM_BEFORE], sums[SUM_AFTER]) &&
	       !ts_check_same(sums[SUM_BEFORE], sums[SUM_LAST]) &&
	       !comparisons[ALIKE].word[0] &&
	       comparisons[ALIKE].word[1] == PART_BYTES &&
	       comparisons[ONE_BYTE].word[0] && comparisons[UNWRITTEN].word[0];
}

/*
 * All that is proved is proved by what they tell, and the driver has translated
 * them: what they are to find has been put there before they are believed.
 */
static int try_kernels(struct ts_checks *checks)
{
	struct trial trial = {.checks = checks};

	if (checks->most < SUMS + COMPARISONS)
		return -ENOSPC;
	for (int i = 0; i < AREAS; i++)
		trial.area[i] = checks->results + results_bytes(checks->most) +
		                (unsigned int)i * TRY_AREA;
	issue_tries(&trial);
	if (!trial.rc)
		trial.rc = ts_checks_collect(checks);
	if (!trial.rc)
		trial.rc = ts_checks_wait(checks);
	if (!trial.rc && !tell_right(&trial))
		trial.rc = -ENOTSUP;
	return trial.rc;
}

int ts_checks_create(const struct ts_gpu_ops *ops, uint32_t most,
        struct ts_checks **ret_checks)
{
	struct ts_checks *checks = calloc(1, sizeof(*checks));
	CUresult result;
	int rc = 0;

	if (!checks)
		return -ENOMEM;
	checks->ops = ops;
	checks->most = most;
	result = load(checks);
	if (result != CUDA_SUCCESS)
		rc = result == CUDA_ERROR_OUT_OF_MEMORY ? -ENOMEM : -ENOTSUP;
	if (!rc)
		rc = ts_gpu_errno(make_room(checks));
	if (!rc)
		rc = ts_checks_clear(checks);
	if (!rc)
		rc = try_kernels(checks);
	if (!rc)
		rc = ts_checks_clear(checks);
	if (rc) {
		ts_checks_destroy(checks, true);
		return rc;
	}
	*ret_checks = checks;
	return 0;
}

void ts_checks_destroy(struct ts_checks *checks, bool driver_alive)
{
	const struct ts_gpu_ops *ops;

	if (!checks)
		return;
	ops = checks->ops;
	for (unsigned int i = 0; driver_alive && i < checks->stream_count; i++)
		ops->event_destroy(checks->streams[i].event);
	if (driver_alive && checks->copied)
		ops->event_destroy(checks->copied);
	if (driver_alive && checks->copies)
		ops->stream_destroy(checks->copies);
	if (driver_alive && checks->host)
		ops->host_free(checks->host);
	if (driver_alive && checks->results)
		ops->mem_free(checks->results);
	if (driver_alive && checks->module)
		ops->module_unload(checks->module);
	free(checks);
}

static int know_stream(struct ts_checks *checks, ts_stream_key key)
{
	unsigned int at = checks->stream_count;
	CUresult rc;

	for (unsigned int i = 0; i < at; i++)
		if (checks->streams[i].key == key)
			return 0;
	if (at == TS_CHECK_STREAMS)
		return -ENOSPC;
	rc = checks->ops->event_create(
	        &checks->streams[at].event, CU_EVENT_DISABLE_TIMING);
	if (rc != CUDA_SUCCESS)
		return ts_gpu_errno(rc);
	checks->streams[at].key = key;
	checks->stream_count++;
	return 0;
}

static int issue(struct ts_checks *checks, CUfunction function, uint64_t bytes,
        void **params, uint64_t *result, ts_stream_key stream,
        uint32_t *ret_slot)
{
	uint64_t words = (bytes + WORD_BYTES - 1) / WORD_BYTES;
	uint64_t blocks = (words + THREADS - 1) / THREADS;
	int rc;

	if (checks->used == checks->most)
		return -ENOSPC;
	rc = know_stream(checks, stream);
	if (rc)
		return rc;
	if (blocks > BLOCKS_MAX)
		blocks = BLOCKS_MAX;
	*result = checks->results + results_bytes(checks->used);
	rc = ts_gpu_errno(checks->ops->launch(function,
	        blocks ? (unsigned int)blocks : 1, 1, 1, THREADS, 1, 1, 0,
	        (CUstream)(uintptr_t)stream, params, NULL));
	if (!rc)
		*ret_slot = checks->used++;
	return rc;
}

int ts_checks_sum(struct ts_checks *checks, uint64_t address, uint64_t bytes,
        ts_stream_key stream, uint32_t *ret_slot)
{
	uint64_t result;
	void *params[] = {&address, &bytes, &result};

	if (address % WORD_BYTES)
		return -EINVAL;
	return issue(
	        checks, checks->sum, bytes, params, &result, stream, ret_slot);
}

int ts_checks_compare(struct ts_checks *checks,
        const struct ts_comparison *comparison, ts_stream_key stream,
        uint32_t *ret_slot)
{
	struct ts_comparison copy = *comparison;
	uint64_t first = TS_FILL_FIRST * 0x0101010101010101ull;
	uint64_t second = TS_FILL_SECOND * 0x0101010101010101ull;
	uint64_t result;
	void *params[] = {&copy.before, &copy.after, &copy.first, &copy.second,
	        &copy.bytes, &first, &second, &result};

	if ((copy.before | copy.after | copy.first | copy.second) % WORD_BYTES)
		return -EINVAL;
	return issue(checks, checks->compare, copy.bytes, params, &result,
	        stream, ret_slot);
}

uint32_t ts_checks_used(const struct ts_checks *checks)
{
	return checks->used;
}

int ts_checks_collect(struct ts_checks *checks)
{
	const struct ts_gpu_ops *ops = checks->ops;
	CUresult rc = CUDA_SUCCESS;

	for (unsigned int i = 0; rc == CUDA_SUCCESS && i < checks->stream_count;
	        i++) {
		rc = ops->event_record(checks->streams[i].event,
		        (CUstream)(uintptr_t)checks->streams[i].key);
		if (rc == CUDA_SUCCESS)
			rc = ops->stream_wait_event(
			        checks->copies, checks->streams[i].event, 0);
	}
	if (rc == CUDA_SUCCESS && checks->used)
		rc = ops->copy_out(checks->host, checks->results,
		        results_bytes(checks->used), checks->copies);
	if (rc == CUDA_SUCCESS)
		rc = ops->event_record(checks->copied, checks->copies);
	return ts_gpu_errno(rc);
}

bool ts_checks_ready(struct ts_checks *checks)
{
	return checks->ops->event_query(checks->copied) == CUDA_SUCCESS;
}

int ts_checks_wait(struct ts_checks *checks)
{
	return ts_gpu_errno(checks->ops->event_synchronize(checks->copied));
}

struct ts_check_result ts_checks_result(
        const struct ts_checks *checks, uint32_t slot)
{
	return checks->host[slot];
}

int ts_checks_clear(struct ts_checks *checks)
{
	CUresult rc = checks->ops->set_bytes(checks->results, 0,
	        results_bytes(checks->most), checks->copies);

	/* Whatever stream comes next must find it done. */
	if (rc == CUDA_SUCCESS)
		rc = checks->ops->stream_synchronize(checks->copies);
	checks->used = 0;
	for (unsigned int i = 0; i < checks->stream_count; i++)
		checks->ops->event_destroy(checks->streams[i].event);
	checks->stream_count = 0;
	return ts_gpu_errno(rc);
}
