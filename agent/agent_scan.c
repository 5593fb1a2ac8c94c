/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tables of addresses on the device: those that a library is about to follow,
 * and those that a kernel has written. Reading one back costs a wait: of a
 * kernel's small blocks, unless its name tells that it writes plain numbers, it
 * is done at the first op of each signature, again where its parameters hold
 * addresses elsewhere, and each time where addresses were found. What captured
 * kernels write is looked into once a graph was launched, likewise; which graph
 * it belongs to is not known. With collectives in some graph that waits for a
 * while only, and is left alone once it was in vain some times.
 *
 * What a table names may not fit beside what stays. The op that wrote it runs
 * already: those that come after it are refused until it does.
 */
#include <stdlib.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/hash.h"
#include "runtime/wait.h"

static bool captures(ts_stream_key stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	if (!atomic_load(&ts_agent.capturing) || stream == TS_STREAM_LEGACY)
		return false;
	ts_agent.ops->stream_is_capturing((CUstream)(uintptr_t)stream, &status);
	return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static bool read_back(
        void *words, CUdeviceptr table, size_t bytes, ts_stream_key stream)
{
	CUstream on = (CUstream)(uintptr_t)stream;

	atomic_fetch_add(&ts_agent.tables.reads, 1);
	return ts_agent.ops->copy_out(words, table, bytes, on) ==
	               CUDA_SUCCESS &&
	       ts_agent.ops->stream_synchronize(on) == CUDA_SUCCESS;
}

enum reading {
	READING_DONE,
	READING_NONE,  /* nothing is there, or it cannot be known */
	READING_SHORT, /* the table itself cannot be there now */
};

/*
 * The same with the table's own block resident, where it is the pager's;
 * @placed: not at all where it is not.
 */
static enum reading read_resident(void *words, CUdeviceptr table, size_t bytes,
        ts_stream_key stream, bool placed)
{
	struct ts_range range = {.address = table,
	        .bytes = bytes,
	        .access = TS_ACCESS_READ,
	        .device = -1};
	struct ts_pager *pager;
	struct ts_shortage shortage;
	struct ts_block *block;
	enum reading reading = READING_NONE;
	uint64_t in = 0, out = 0;

	ts_mutex_lock(&ts_agent.blocks.lock);
	block = ts_blocks_find_locked(&ts_agent.blocks, table);
	if (block && block->managed)
		range.device = block->device;
	if (block && bytes > block->address + block->bytes - table)
		range.bytes = 0;
	ts_mutex_unlock(&ts_agent.blocks.lock);
	if (!range.bytes)
		return READING_NONE;
	pager = ts_agent_pager(range.device);
	if (!pager)
		return !placed && read_back(words, table, bytes, stream)
		               ? READING_DONE
		               : READING_NONE;
	if (ts_pager_begin(pager, &range, 1, ts_agent_begin_flags(), stream,
	            &in, &out, &shortage)) {
		ts_agent_say_shortage("a table of addresses", &shortage);
		return READING_SHORT;
	}
	/* Its allocation may have been freed just now, but not from here on. */
	if (ts_pager_owns(pager, table))
		reading = read_back(words, table, bytes, stream)
		                  ? READING_DONE
		                  : READING_SHORT;
	ts_pager_end(pager, &range, 1, TS_STREAM_HOST, false);
	return reading;
}

struct hits {
	CUresult result;
	bool any;
};

static void pin_hit(const struct ts_range *block, void *data)
{
	struct hits *hits = data;

	hits->any = true;
	ts_agent_pin_found(block, &hits->result);
}

/* *ret_any, where the table could be read: addresses were found. */
static enum reading scan(CUdeviceptr table, size_t bytes, ts_stream_key stream,
        bool placed, bool *ret_any)
{
	struct hits hits = {CUDA_SUCCESS, false};
	void *words = malloc(bytes);
	enum reading reading;

	if (!words)
		return READING_SHORT;
	reading = read_resident(words, table, bytes, stream, placed);
	if (reading == READING_DONE)
		ts_scan_words(&ts_agent.blocks, words, bytes, pin_hit, &hits);
	free(words);
	*ret_any |= hits.any;
	return hits.result == CUDA_SUCCESS ? reading : READING_SHORT;
}

bool ts_agent_scan_device(CUdeviceptr table, size_t bytes, ts_stream_key stream)
{
	bool ignored = false;

	if (!table || !bytes || !ts_agent_places())
		return true;
	return !captures(stream) &&
	       scan(table, bytes, stream, false, &ignored) == READING_DONE;
}

/* ------------------------------------------------------- written by kernels */

/* Larger blocks are data, not tables. */
#define WRITTEN_BYTES_MAX (1u << 20)

/* Where in its parameters an op of one signature has addresses varies less. */
#define PATTERNS_MAX 8

/*
 * Keys of late that are not due: most launches find theirs here, in one line of
 * the cache.
 */
#define CLEAN_LINES 1024u /* a power of two */
#define CLEAN_WAYS  8u

static _Alignas(64) _Atomic uint64_t clean[CLEAN_LINES][CLEAN_WAYS];

/* Ops of one signature that were looked into. */
struct writer {
	struct ts_map_node node; /* by signature */
	bool of_addresses;
	unsigned int count;
	uint64_t patterns[PATTERNS_MAX];
};

void ts_tables_init(struct ts_tables *tables)
{
	ts_mutex_init(&tables->lock, TS_RANK_AGENT);
	ts_map_init(&tables->writers);
	ts_map_init(&tables->in_graphs);
	ts_map_init(&tables->due);
}

/*
 * Signature and where the addresses stand. A kernel that is given one as a
 * number, to make others from, differs from one that makes plain numbers.
 */
static uint64_t key_of(const struct ts_op *op)
{
	uint64_t key = ts_hash_word(TS_HASH_START, op->signature);

	for (size_t i = 0; i < op->count; i++)
		if (!op->uses[i].doubtful)
			key = ts_hash_word(
			        key, (uint64_t)op->uses[i].param << 32 |
			                     op->uses[i].offset);
	return key;
}

static _Atomic uint64_t *clean_line(uint64_t key)
{
	return clean[key >> 20 & (CLEAN_LINES - 1)];
}

static bool is_clean(uint64_t key)
{
	_Atomic uint64_t *line = clean_line(key);

	for (unsigned int i = 0; i < CLEAN_WAYS; i++)
		if (atomic_load_explicit(&line[i], memory_order_relaxed) == key)
			return true;
	return false;
}

/* In the place of some other key of its line, where that is full. */
static void note_clean_locked(uint64_t key)
{
	_Atomic uint64_t *line = clean_line(key);
	unsigned int way = 0;

	while (way < CLEAN_WAYS &&
	        atomic_load_explicit(&line[way], memory_order_relaxed))
		way++;
	if (way == CLEAN_WAYS)
		way = key % CLEAN_WAYS;
	atomic_store_explicit(&line[way], key, memory_order_relaxed);
}

static struct writer *find_writer(uint64_t signature)
{
	struct ts_map_node *node =
	        ts_map_find(&ts_agent.tables.writers, signature);

	return node ? ts_container_of(node, struct writer, node) : NULL;
}

static bool is_due_locked(const struct writer *writer, uint64_t key)
{
	if (!writer || writer->of_addresses)
		return true;
	for (unsigned int i = 0; i < writer->count; i++)
		if (writer->patterns[i] == key)
			return false;
	return writer->count < PATTERNS_MAX;
}

static bool is_due(uint64_t signature, uint64_t key)
{
	bool due;

	if (is_clean(key))
		return false;
	ts_mutex_lock(&ts_agent.tables.lock);
	due = is_due_locked(find_writer(signature), key);
	if (!due)
		note_clean_locked(key);
	ts_mutex_unlock(&ts_agent.tables.lock);
	return due;
}

/* A signature was found to write addresses: none of its keys may stay. */
static void forget_clean_locked(void)
{
	for (size_t i = 0; i < CLEAN_LINES * CLEAN_WAYS; i++)
		atomic_store_explicit(&clean[i / CLEAN_WAYS][i % CLEAN_WAYS], 0,
		        memory_order_relaxed);
}

/* Without memory for it the next one is looked into again. */
static void note_writer(uint64_t signature, uint64_t key, bool of_addresses)
{
	struct ts_tables *tables = &ts_agent.tables;
	struct writer *made = calloc(1, sizeof(*made)), *writer;

	ts_mutex_lock(&tables->lock);
	writer = find_writer(signature);
	if (!writer && made) {
		ts_map_insert(&tables->writers, &made->node, signature);
		writer = made;
		made = NULL;
	}
	if (writer && writer->count < PATTERNS_MAX)
		writer->patterns[writer->count++] = key;
	if (writer && of_addresses && !writer->of_addresses) {
		writer->of_addresses = true;
		forget_clean_locked();
	}
	ts_mutex_unlock(&tables->lock);
	free(made);
}

/* Without memory for it all ops are refused from then on. */
static void note_open(CUdeviceptr table, size_t bytes, CUdevice device)
{
	struct ts_tables *tables = &ts_agent.tables;
	struct ts_open_table *open = calloc(1, sizeof(*open));

	ts_mutex_lock(&tables->lock);
	if (open) {
		*open = (struct ts_open_table){
		        tables->open, ++tables->opened, table, bytes, device};
		tables->open = open;
	}
	tables->lost |= !open;
	atomic_store(&tables->any_open, true);
	ts_mutex_unlock(&tables->lock);
}

/*
 * Some table on @device that is open; false: none is, or was not noted:
 * *ret_lost.
 */
static bool find_open(
        CUdevice device, struct ts_open_table *ret_open, bool *ret_lost)
{
	struct ts_tables *tables = &ts_agent.tables;
	struct ts_open_table *open;
	bool found;

	ts_mutex_lock(&tables->lock);
	open = tables->open;
	while (open && open->device != device)
		open = open->next;
	found = open;
	if (found)
		*ret_open = *open;
	*ret_lost = tables->lost;
	ts_mutex_unlock(&tables->lock);
	return found;
}

/* What it names stays; another thread may just have found the same. */
static void close_table(uint64_t number)
{
	struct ts_tables *tables = &ts_agent.tables;
	struct ts_open_table **at, *closed;

	ts_mutex_lock(&tables->lock);
	at = &tables->open;
	while (*at && (*at)->number != number)
		at = &(*at)->next;
	closed = *at;
	if (closed)
		*at = closed->next;
	if (!tables->open && !tables->lost)
		atomic_store(&tables->any_open, false);
	ts_mutex_unlock(&tables->lock);
	free(closed);
}

/* Which stream wrote it may be gone: everything is waited for. */
static CUresult scan_again(const struct ts_open_table *open)
{
	bool ignored = false;
	CUresult rc;

	if (atomic_load(&ts_agent.capturing))
		return CUDA_ERROR_OUT_OF_MEMORY;
	rc = ts_agent.ops->ctx_synchronize();
	/* What ails the device the program has to know. */
	if (rc != CUDA_SUCCESS)
		return rc;
	return scan(open->table, open->bytes, TS_STREAM_LEGACY, true,
	               &ignored) == READING_SHORT
	               ? CUDA_ERROR_OUT_OF_MEMORY
	               : CUDA_SUCCESS;
}

CUresult ts_agent_tables_settle(void)
{
	struct ts_tables *tables = &ts_agent.tables;
	struct ts_open_table open;
	CUdevice device = -1;
	CUresult rc;
	bool lost;

	if (!atomic_load_explicit(&tables->any_open, memory_order_acquire))
		return CUDA_SUCCESS;
	/* What another device is at work on is not waited for here. */
	rc = ts_agent.ops->ctx_get_device(&device);
	while (rc == CUDA_SUCCESS && find_open(device, &open, &lost)) {
		rc = scan_again(&open);
		if (rc == CUDA_SUCCESS)
			close_table(open.number);
	}
	/* One that was never noted is open for good. */
	return rc == CUDA_SUCCESS && lost ? CUDA_ERROR_OUT_OF_MEMORY : rc;
}

/* ------------------------------------------------------- written in graphs */

/*
 * What some captured kernel writes: small, and maybe addresses. It is due, that
 * is in that map, until it was looked into, and for good once it had addresses;
 * otherwise it lies in in_graphs.
 */
struct written {
	struct ts_map_node node; /* by address */
	size_t bytes;
	CUdevice device;
	bool of_addresses;
};

static bool may_be_table(const struct ts_op *op, size_t use)
{
	return !op->uses[use].doubtful &&
	       op->uses[use].access != TS_ACCESS_READ &&
	       op->uses[use].bytes <= WRITTEN_BYTES_MAX;
}

/* Out of the map it is in; NULL: it is in none. */
static struct written *take_written_locked(uint64_t address)
{
	struct ts_tables *tables = &ts_agent.tables;
	struct ts_map_node *node = ts_map_remove(&tables->due, address);

	if (!node)
		node = ts_map_remove(&tables->in_graphs, address);
	return node ? ts_container_of(node, struct written, node) : NULL;
}

/* Without memory for it a table is not looked into, as if it were larger. */
static void note_captured(const struct ts_op *op, size_t use)
{
	struct ts_tables *tables = &ts_agent.tables;
	struct written *made = calloc(1, sizeof(*made)), *written;
	uint64_t address = op->uses[use].address;

	ts_mutex_lock(&tables->lock);
	written = take_written_locked(address);
	if (!written) {
		written = made;
		made = NULL;
	}
	if (written) {
		written->device = op->ranges[use].device;
		if (written->bytes < op->uses[use].bytes)
			written->bytes = op->uses[use].bytes;
		ts_map_insert(&tables->due, &written->node, address);
	}
	ts_mutex_unlock(&tables->lock);
	free(made);
}

/* The next that is due from *at on; false: there is none. */
static bool next_captured(
        CUdevice device, uint64_t *at, struct written *ret_written)
{
	struct ts_tables *tables = &ts_agent.tables;
	struct ts_map_node *node;
	bool due = false;

	ts_mutex_lock(&tables->lock);
	while (!due && (node = ts_map_ceiling(&tables->due, *at))) {
		*ret_written = *ts_container_of(node, struct written, node);
		*at = node->key + 1;
		due = ret_written->device == device;
	}
	ts_mutex_unlock(&tables->lock);
	return due;
}

static void note_looked(uint64_t address, bool of_addresses)
{
	struct ts_tables *tables = &ts_agent.tables;
	struct written *written;

	ts_mutex_lock(&tables->lock);
	written = take_written_locked(address);
	if (written) {
		written->of_addresses |= of_addresses;
		ts_map_insert(written->of_addresses ? &tables->due
		                                    : &tables->in_graphs,
		        &written->node, address);
	}
	ts_mutex_unlock(&tables->lock);
}

/* Graphs that were not done in time, before none is waited for any more. */
#define IN_VAIN_MAX 3

static bool is_done(ts_stream_key stream)
{
	struct ts_wait wait = ts_wait_begin(TS_WAIT_NS);
	CUresult rc;

	do {
		rc = ts_agent.ops->stream_query((CUstream)(uintptr_t)stream);
	} while (rc == CUDA_ERROR_NOT_READY && ts_wait_again(&wait, NULL));
	return rc == CUDA_SUCCESS;
}

/*
 * A collective in a graph ends when its peers begin, as those that are launched
 * do: this thread may be theirs. So it is looked whether it ends, for a while;
 * what is read then waits for nothing any more, unless another thread has just
 * put a collective behind it on that stream. What goes unread is told.
 */
static bool may_wait_for_graphs(CUdevice device, ts_stream_key stream)
{
	static atomic_uint in_vain;
	struct written ignored;
	uint64_t at = 0;

	if (!atomic_load(&ts_agent.tables.graphs_collective))
		return true;
	if (!next_captured(device, &at, &ignored) ||
	        atomic_load(&in_vain) >= IN_VAIN_MAX)
		return false;
	if (is_done(stream))
		return true;
	if (atomic_fetch_add(&in_vain, 1) + 1 == IN_VAIN_MAX)
		ts_log(TS_LOG_WARN,
		        "graphs with collectives do not end while they are "
		        "waited for: addresses that their kernels write are "
		        "not looked for");
	return false;
}

/* A graph was launched on @stream. */
static void scan_captured(ts_stream_key stream)
{
	struct written written;
	CUdevice device = -1;
	uint64_t at = 0;

	if (ts_agent.ops->ctx_get_device(&device) != CUDA_SUCCESS ||
	        !may_wait_for_graphs(device, stream))
		return;
	while (next_captured(device, &at, &written)) {
		bool any = false;

		if (scan(written.node.key, written.bytes, stream, true, &any) ==
		        READING_SHORT)
			note_open(written.node.key, written.bytes, device);
		note_looked(written.node.key, any);
	}
}

static void forget_written_locked(struct ts_map *map)
{
	struct ts_map_node *node;

	while ((node = ts_map_ceiling(map, 0))) {
		ts_map_remove(map, node->key);
		free(ts_container_of(node, struct written, node));
	}
}

void ts_agent_tables_of_graphs_end(void)
{
	struct ts_tables *tables = &ts_agent.tables;

	ts_mutex_lock(&tables->lock);
	forget_written_locked(&tables->due);
	forget_written_locked(&tables->in_graphs);
	atomic_store(&tables->graphs_collective, false);
	ts_mutex_unlock(&tables->lock);
}

/* ------------------------------------------------------------ after each op */

/* What goes into a graph is only noted. */
static void scan_launched(const struct ts_op *op)
{
	bool numbers = op->func && op->func->writes_numbers;

	if (op->kind == TS_OP_GRAPH && !op->capturing &&
	        !atomic_load(&ts_agent.capturing))
		scan_captured(op->stream);
	if (op->kind != TS_OP_LAUNCH || !op->capturing || numbers)
		return;
	for (size_t i = 0; i < op->count; i++)
		if (may_be_table(op, i))
			note_captured(op, i);
}

void ts_agent_scan_written(const struct ts_op *op)
{
	bool read = true, any = false, numbers;
	enum reading reading;
	CUdevice device = -1;
	uint64_t key;

	/* A collective ends when its peers begin: this thread may be theirs. */
	if (op->collective && op->capturing)
		atomic_store(&ts_agent.tables.graphs_collective, true);
	if (op->collective || !ts_agent_places())
		return;
	if (op->kind != TS_OP_LAUNCH || op->capturing ||
	        atomic_load(&ts_agent.capturing)) {
		scan_launched(op);
		return;
	}
	key = key_of(op);
	/* The op's stream reaches the memory of its own device for certain. */
	if (!is_due(op->signature, key) ||
	        ts_agent.ops->ctx_get_device(&device) != CUDA_SUCCESS)
		return;
	numbers = op->func && op->func->writes_numbers;
	for (size_t i = 0; i < op->count && read && !numbers; i++) {
		const struct ts_use *use = &op->uses[i];

		/* What another stream may be at work on is not read. */
		if (op->ranges[i].device != device || !may_be_table(op, i))
			continue;
		reading =
		        scan(use->address, use->bytes, op->stream, true, &any);
		if (reading == READING_SHORT)
			note_open(use->address, use->bytes, device);
		read = reading == READING_DONE;
	}
	/* Also where all of them were pinned before: others may follow. */
	if (read)
		note_writer(op->signature, key, any);
}
