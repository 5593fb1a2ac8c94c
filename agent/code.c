/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/list.h"
#include "agent/cubin.h"
#include "agent/hash.h"

struct kernel {
	struct ts_map_node node; /* by hash of the name */
	struct kernel *next;
	char *name;
	size_t count;
	struct ts_param params[];
};

/* What one load brought; a library's module shares it. */
struct image {
	struct ts_map kernels;
	struct kernel *all;
	unsigned int users;
	int rc;
};

struct owner {
	struct ts_map_node node;
	struct image *image;
	struct ts_list functions; /* go with it */
};

struct function {
	struct ts_map_node node;
	struct ts_list of_owner;
	struct owner *owner; /* NULL where that is not known */
	char *name;
	bool known; /* its parameters are */
	size_t count;
	struct ts_param params[];
};

static uint64_t key_of(const void *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

static uint64_t name_key(const char *name, size_t length)
{
	return ts_hash(TS_HASH_START, name, length);
}

static void drop_image(struct image *image)
{
	if (!image || --image->users)
		return;
	while (image->all) {
		struct kernel *kernel = image->all;

		image->all = kernel->next;
		free(kernel->name);
		free(kernel);
	}
	free(image);
}

void ts_code_init(struct ts_code *code)
{
	ts_mutex_init(&code->lock, TS_RANK_CODE);
	ts_map_init(&code->images);
	ts_map_init(&code->functions);
}

static void remove_function(struct ts_code *code, uint64_t key)
{
	struct ts_map_node *node = ts_map_remove(&code->functions, key);
	struct function *function;

	if (!node)
		return;
	function = ts_container_of(node, struct function, node);
	ts_list_remove(&function->of_owner);
	free(function->name);
	free(function);
}

static void remove_owner(struct ts_code *code, uint64_t key)
{
	struct ts_map_node *node = ts_map_remove(&code->images, key);
	struct owner *owner;

	if (!node)
		return;
	owner = ts_container_of(node, struct owner, node);
	while (!ts_list_empty(&owner->functions))
		remove_function(code, ts_container_of(owner->functions.next,
		                              struct function, of_owner)
		                              ->node.key);
	drop_image(owner->image);
	free(owner);
}

void ts_code_finish(struct ts_code *code)
{
	while (code->images.root)
		remove_owner(code, code->images.root->key);
	while (code->functions.root)
		remove_function(code, code->functions.root->key);
	ts_mutex_finish(&code->lock);
}

/* ------------------------------------------------------------------- loads */

static void take(void *context, const char *name, size_t length,
        const struct ts_param *params, size_t count)
{
	struct image *image = context;
	struct kernel *kernel =
	        malloc(sizeof(*kernel) + count * sizeof(*params));

	if (!kernel || !(kernel->name = strndup(name, length))) {
		free(kernel);
		image->rc = -ENOMEM;
		return;
	}
	kernel->count = count;
	memcpy(kernel->params, params, count * sizeof(*params));
	if (ts_map_insert(
	            &image->kernels, &kernel->node, name_key(name, length))) {
		free(kernel->name);
		free(kernel);
		return;
	}
	kernel->next = image->all;
	image->all = kernel;
}

/* Under the lock; takes over one use of @image. */
static int add_owner(
        struct ts_code *code, const void *handle, struct image *image)
{
	struct owner *owner = calloc(1, sizeof(*owner));

	/* A handle comes again once what had it is gone. */
	remove_owner(code, key_of(handle));
	if (!owner) {
		drop_image(image);
		return -ENOMEM;
	}
	owner->image = image;
	ts_list_init(&owner->functions);
	return ts_map_insert(&code->images, &owner->node, key_of(handle));
}

int ts_code_loaded(struct ts_code *code, const void *handle, const void *data,
        size_t bytes, int sm)
{
	struct image *image = calloc(1, sizeof(*image));
	int rc, added;

	if (!image)
		return -ENOMEM;
	image->users = 1;
	ts_map_init(&image->kernels);
	rc = ts_code_read(data, bytes, sm, take, image);
	rc = rc ? rc : image->rc;
	ts_mutex_lock(&code->lock);
	added = add_owner(code, handle, image);
	ts_mutex_unlock(&code->lock);
	return rc ? rc : added;
}

void ts_code_shared(struct ts_code *code, const void *handle, const void *of)
{
	struct ts_map_node *node;

	ts_mutex_lock(&code->lock);
	node = ts_map_find(&code->images, key_of(of));
	if (node && handle != of) {
		struct image *image =
		        ts_container_of(node, struct owner, node)->image;

		image->users++;
		add_owner(code, handle, image);
	}
	ts_mutex_unlock(&code->lock);
}

void ts_code_unloaded(struct ts_code *code, const void *handle)
{
	ts_mutex_lock(&code->lock);
	remove_owner(code, key_of(handle));
	ts_mutex_unlock(&code->lock);
}

/* --------------------------------------------------------------- functions */

/*
 * Under the lock: a function that nothing is known of, in the place of what had
 * its handle before. NULL: there is no memory for it, nor one of that handle.
 */
static struct function *add_function(struct ts_code *code, const void *handle,
        const char *name, size_t count)
{
	struct function *function =
	        calloc(1, sizeof(*function) + count * sizeof(struct ts_param));
	char *copy = strdup(name);

	remove_function(code, key_of(handle));
	if (!function || !copy) {
		free(function);
		free(copy);
		return NULL;
	}
	function->name = copy;
	ts_list_init(&function->of_owner);
	ts_map_insert(&code->functions, &function->node, key_of(handle));
	return function;
}

static void set_params(
        struct function *function, const struct ts_param *params, size_t count)
{
	function->known = true;
	function->count = count;
	memcpy(function->params, params, count * sizeof(*params));
}

static void set_owner(struct function *function, struct owner *owner)
{
	function->owner = owner;
	if (owner)
		ts_list_append(&owner->functions, &function->of_owner);
}

void ts_code_named(struct ts_code *code, const void *function,
        const void *owner, const char *name)
{
	const struct kernel *kernel = NULL;
	struct owner *from = NULL;
	struct ts_map_node *node;
	struct function *made;

	ts_mutex_lock(&code->lock);
	node = ts_map_find(&code->images, key_of(owner));
	if (node) {
		from = ts_container_of(node, struct owner, node);
		node = ts_map_find(
		        &from->image->kernels, name_key(name, strlen(name)));
	}
	if (node)
		kernel = ts_container_of(node, struct kernel, node);
	made = add_function(code, function, name, kernel ? kernel->count : 0);
	if (made && kernel)
		set_params(made, kernel->params, kernel->count);
	if (made)
		set_owner(made, from);
	ts_mutex_unlock(&code->lock);
}

void ts_code_same(struct ts_code *code, const void *function, const void *of)
{
	struct ts_map_node *node;

	if (function == of)
		return;
	ts_mutex_lock(&code->lock);
	node = ts_map_find(&code->functions, key_of(of));
	if (node) {
		const struct function *other =
		        ts_container_of(node, struct function, node);
		struct function *made =
		        add_function(code, function, other->name, other->count);

		if (made && other->known)
			set_params(made, other->params, other->count);
		if (made)
			set_owner(made, other->owner);
	} else {
		remove_function(code, key_of(function));
	}
	ts_mutex_unlock(&code->lock);
}

bool ts_code_find(struct ts_code *code, const void *handle, char **ret_name,
        struct ts_param *params, size_t max, size_t *ret_count)
{
	struct ts_map_node *node;
	bool known = false;

	*ret_name = NULL;
	ts_mutex_lock(&code->lock);
	node = ts_map_find(&code->functions, key_of(handle));
	if (node) {
		const struct function *function =
		        ts_container_of(node, struct function, node);

		*ret_name = strdup(function->name);
		known = function->known && function->count <= max;
		*ret_count = known ? function->count : 0;
		memcpy(params, function->params, *ret_count * sizeof(*params));
	}
	ts_mutex_unlock(&code->lock);
	return known;
}
