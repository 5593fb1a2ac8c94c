/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * User objects: references counted for the program and for graphs; the
 * destructor runs on the driver's thread when the last one goes. Guarded by the
 * lock.
 */
#include "tests/simgpu/driver/engine.h"
#include "tests/simgpu/driver/graph.h"
#include "tests/simgpu/driver/sg.h"

#include <limits.h>
#include <stdlib.h>

struct object {
	struct sg_handle h;
	CUhostFn destroy;
	void *data;
	uint64_t refs;
};
struct sg_kept_object {
	struct object *object;
	uint64_t refs;
	struct sg_kept_object *next;
};

static uint64_t next_id;

static void release(struct object *object, uint64_t count)
{
	object->refs -= count;
	if (object->refs)
		return;
	sg_handle_kill(object);
	sg_hostfn_call(object->destroy, object->data);
}

static struct sg_kept_object *kept(
        const struct sg_graph *graph, const struct object *object)
{
	struct sg_kept_object *entry = graph->objects;

	while (entry && entry->object != object)
		entry = entry->next;
	return entry;
}

/* References already counted in object->refs become the graph's. */
static void keep(struct sg_graph *graph, struct object *object, uint64_t count)
{
	struct sg_kept_object *entry = kept(graph, object);

	if (!entry) {
		entry = sg_xcalloc(1, sizeof(*entry));
		entry->object = object;
		entry->next = graph->objects;
		graph->objects = entry;
	}
	entry->refs += count;
}

static void drop(struct sg_graph *graph, struct sg_kept_object *entry)
{
	struct sg_kept_object **link = &graph->objects;

	while (*link != entry)
		link = &(*link)->next;
	*link = entry->next;
	free(entry);
}

void sg_graph_objects_release(struct sg_graph *graph)
{
	while (graph->objects) {
		struct sg_kept_object *entry = graph->objects;
		struct object *object = entry->object;
		uint64_t count = entry->refs;

		drop(graph, entry);
		release(object, count);
	}
}

void sg_graph_objects_share(struct sg_graph *graph, const struct sg_graph *from)
{
	for (const struct sg_kept_object *entry = from->objects; entry;
	        entry = entry->next) {
		entry->object->refs += entry->refs;
		keep(graph, entry->object, entry->refs);
	}
}

CUresult cuUserObjectCreate(CUuserObject *ret_object, void *data,
        CUhostFn destroy, unsigned refs, unsigned flags)
{
	struct object *object;
	SG_API(cuUserObjectCreate, SG_COST_NONE, SG_NEED_INIT);
	if (!ret_object || !destroy || !refs || refs > INT_MAX ||
	        flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	object = sg_handle_new(sizeof(*object), SG_MAGIC_USER_OBJECT);
	object->h.id = ++next_id;
	object->destroy = destroy;
	object->data = data;
	object->refs = refs;
	*ret_object = (CUuserObject)object;
	return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject handle, unsigned count)
{
	struct object *object = (struct object *)handle;
	SG_API(cuUserObjectRetain, SG_COST_NONE, SG_NEED_INIT);
	if (!sg_handle_ok(object, SG_MAGIC_USER_OBJECT) || !count ||
	        count > INT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	object->refs += count;
	return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject handle, unsigned count)
{
	struct object *object = (struct object *)handle;
	SG_API(cuUserObjectRelease, SG_COST_NONE, SG_NEED_INIT);
	if (!sg_handle_ok(object, SG_MAGIC_USER_OBJECT) || !count ||
	        count > object->refs)
		return CUDA_ERROR_INVALID_VALUE;
	release(object, count);
	return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(
        CUgraph graph, CUuserObject handle, unsigned count, unsigned flags)
{
	struct object *object = (struct object *)handle;
	SG_API(cuGraphRetainUserObject, SG_COST_NONE, SG_NEED_INIT);
	if (!sg_handle_ok(graph, SG_MAGIC_GRAPH) ||
	        !sg_handle_ok(object, SG_MAGIC_USER_OBJECT) || !count ||
	        count > INT_MAX ||
	        (flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE))
		return CUDA_ERROR_INVALID_VALUE;
	if (!(flags & CU_GRAPH_USER_OBJECT_MOVE))
		object->refs += count;
	else if (count > object->refs)
		return CUDA_ERROR_INVALID_VALUE;
	keep((struct sg_graph *)graph, object, count);
	return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(
        CUgraph handle, CUuserObject object_handle, unsigned count)
{
	struct object *object = (struct object *)object_handle;
	struct sg_graph *graph = (struct sg_graph *)handle;
	struct sg_kept_object *entry;
	SG_API(cuGraphReleaseUserObject, SG_COST_NONE, SG_NEED_INIT);
	if (!sg_handle_ok(graph, SG_MAGIC_GRAPH) ||
	        !sg_handle_ok(object, SG_MAGIC_USER_OBJECT))
		return CUDA_ERROR_INVALID_VALUE;
	entry = kept(graph, object);
	if (!entry || !count || count > entry->refs)
		return CUDA_ERROR_INVALID_VALUE;
	entry->refs -= count;
	if (!entry->refs)
		drop(graph, entry);
	release(object, count);
	return CUDA_SUCCESS;
}
