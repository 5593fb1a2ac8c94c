/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Wrappers of graphs and instances that come and go: as long as there is one,
 * what graphs use stays resident. An instance takes device memory of a size
 * that is not told, as code does: placed memory makes room for the least piece
 * before, and for what it was more than that after.
 */
#include "intercept/wrapper.h"

/* The call makes the handle that its first argument points to. */
#define MAKE(symbol, parameters, arguments, made, before, after)               \
	CUresult ts_hook_##symbol parameters                                   \
	{                                                                      \
		CUresult rc;                                                   \
                                                                               \
		if (!ts_enter())                                               \
			return ts_driver.fn_##symbol arguments;                \
		before;                                                        \
		rc = ts_driver.fn_##symbol arguments;                          \
		if (rc == CUDA_SUCCESS) {                                      \
			ts_agent_graph_made(*(made));                          \
			after;                                                 \
		}                                                              \
		ts_leave();                                                    \
		return rc;                                                     \
	}

MAKE(cuGraphCreate, (CUgraph * ret_graph, unsigned int flags),
        (ret_graph, flags), ret_graph, , )
MAKE(cuGraphClone, (CUgraph * ret_graph, CUgraph original),
        (ret_graph, original), ret_graph, , )
MAKE(cuGraphInstantiate,
        (CUgraphExec * ret_instance, CUgraph graph, CUgraphNode *ret_bad,
                char *log, size_t log_bytes),
        (ret_instance, graph, ret_bad, log, log_bytes), ret_instance,
        ts_agent_before_code(), ts_agent_instance_made())
MAKE(cuGraphInstantiate_v2,
        (CUgraphExec * ret_instance, CUgraph graph, CUgraphNode *ret_bad,
                char *log, size_t log_bytes),
        (ret_instance, graph, ret_bad, log, log_bytes), ret_instance,
        ts_agent_before_code(), ts_agent_instance_made())
MAKE(cuGraphInstantiateWithFlags,
        (CUgraphExec * ret_instance, CUgraph graph, unsigned long long flags),
        (ret_instance, graph, flags), ret_instance, ts_agent_before_code(),
        ts_agent_instance_made())
MAKE(cuGraphInstantiateWithParams,
        (CUgraphExec * ret_instance, CUgraph graph,
                CUDA_GRAPH_INSTANTIATE_PARAMS *params),
        (ret_instance, graph, params), ret_instance, ts_agent_before_code(),
        ts_agent_instance_made())
MAKE(cuGraphInstantiateWithParams_ptsz,
        (CUgraphExec * ret_instance, CUgraph graph,
                CUDA_GRAPH_INSTANTIATE_PARAMS *params),
        (ret_instance, graph, params), ret_instance, ts_agent_before_code(),
        ts_agent_instance_made())

/* What still runs of an instance keeps its place in its stream. */
#define END(symbol, type, after)                                               \
	CUresult ts_hook_##symbol(type handle)                                 \
	{                                                                      \
		CUresult rc;                                                   \
                                                                               \
		if (!ts_enter())                                               \
			return ts_driver.fn_##symbol(handle);                  \
		/* Before: another may get the handle as soon as it is gone.   \
		 */                                                            \
		ts_agent_graph_ends(handle);                                   \
		rc = ts_driver.fn_##symbol(handle);                            \
		if (rc == CUDA_SUCCESS)                                        \
			ts_agent_graph_gone();                                 \
		else                                                           \
			ts_agent_graph_made(handle);                           \
		after;                                                         \
		ts_leave();                                                    \
		return rc;                                                     \
	}

END(cuGraphDestroy, CUgraph, )
END(cuGraphExecDestroy, CUgraphExec, ts_agent_after_unmanaged())

#define UPLOAD(symbol)                                                         \
	CUresult ts_hook_##symbol(CUgraphExec instance, CUstream stream)       \
	{                                                                      \
		CUresult rc;                                                   \
                                                                               \
		if (!ts_enter())                                               \
			return ts_driver.fn_##symbol(instance, stream);        \
		rc = ts_driver.fn_##symbol(instance, stream);                  \
		ts_agent_after_unmanaged();                                    \
		ts_leave();                                                    \
		return rc;                                                     \
	}

UPLOAD(cuGraphUpload)
UPLOAD(cuGraphUpload_ptsz)
