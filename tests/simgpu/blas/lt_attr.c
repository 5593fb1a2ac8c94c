/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Attributes of cublasLt's structures, set and read by table. No state of its
 * own.
 */
#include "lt.h"

#include <errno.h>
#include <string.h>

static const struct sg_lt_attr *attr_find(
        const struct sg_lt_attr *table, size_t count, int id)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (table[i].id == id)
			return &table[i];
	return NULL;
}

int sg_lt_attr_set(const struct sg_lt_attr *table, size_t count, void *at,
        int id, const void *buf, size_t bytes)
{
	const struct sg_lt_attr *attr = attr_find(table, count, id);

	if (!at || !attr || attr->read_only || !buf || bytes != attr->bytes)
		return -EINVAL;
	memcpy((char *)at + attr->offset, buf, bytes);
	return 0;
}

int sg_lt_attr_get(const struct sg_lt_attr *table, size_t count, const void *at,
        int id, void *buf, size_t bytes, size_t *ret_written)
{
	const struct sg_lt_attr *attr = attr_find(table, count, id);

	if (!at || !attr)
		return -EINVAL;
	if (!bytes) {
		if (!ret_written)
			return -EINVAL;
		*ret_written = attr->bytes;
		return 0;
	}
	if (!buf || bytes != attr->bytes)
		return -EINVAL;
	memcpy(buf, (const char *)at + attr->offset, bytes);
	if (ret_written)
		*ret_written = bytes;
	return 0;
}
