/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Graphs and instances that exist. What they use cannot be told apart, so that
 * it stays resident until none is left and nothing captures. Guarded by
 * ts_agent.graphs.lock, which whoever begins to capture takes too: nothing is
 * captured while pages are let go.
 */
#include <stdint.h>
#include <stdlib.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"

struct graph {
	struct ts_map_node node; /* by handle */
};

void ts_graphs_init(struct ts_graphs *graphs)
{
	ts_mutex_init(&graphs->lock, TS_RANK_GRAPHS);
	ts_map_init(&graphs->all);
}

void ts_agent_graph_made(const void *handle)
{
	struct ts_graphs *graphs = &ts_agent.graphs;
	uint64_t key = (uint64_t)(uintptr_t)handle;
	struct graph *graph = malloc(sizeof(*graph));

	ts_mutex_lock(&graphs->lock);
	/* One that nobody could tell the end of keeps all for good. */
	if (!graph)
		graphs->lost = true;
	else if (ts_map_find(&graphs->all, key) ||
	         ts_map_insert(&graphs->all, &graph->node, key))
		free(graph);
	ts_mutex_unlock(&graphs->lock);
}

void ts_agent_instance_made(void)
{
	struct ts_graphs *graphs = &ts_agent.graphs;

	ts_mutex_lock(&graphs->lock);
	graphs->instances = true;
	ts_mutex_unlock(&graphs->lock);
	ts_agent_after_unmanaged();
}

void ts_agent_graph_ends(const void *handle)
{
	struct ts_graphs *graphs = &ts_agent.graphs;
	struct ts_map_node *node;

	ts_mutex_lock(&graphs->lock);
	node = ts_map_remove(&graphs->all, (uint64_t)(uintptr_t)handle);
	/* Others may be about that nobody saw being made either. */
	if (!node)
		graphs->lost = true;
	ts_mutex_unlock(&graphs->lock);
	/* The node is the graph's first member. */
	free(node);
}

void ts_agent_graph_gone(void)
{
	struct ts_graphs *graphs = &ts_agent.graphs;
	uint64_t bytes = 0;

	ts_mutex_lock(&graphs->lock);
	/* Where none is seen the program makes them some other way. */
	if (graphs->instances && !graphs->lost &&
	        !ts_map_ceiling(&graphs->all, 0) &&
	        !atomic_load(&ts_agent.capturing)) {
		ts_agent_tables_of_graphs_end();
		for (int device = 0; device < TS_AGENT_DEVICES; device++) {
			struct ts_pager *pager = ts_agent_pager(device);

			if (pager)
				bytes += ts_pager_unpin_captured(pager);
		}
	}
	ts_mutex_unlock(&graphs->lock);
	if (bytes)
		ts_log(TS_LOG_DEBUG, "no graph is left: %llu bytes may move",
		        (unsigned long long)bytes);
}
