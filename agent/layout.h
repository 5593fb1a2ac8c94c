/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which words of a kernel's parameters may be operands, for structs that are
 * known: the rest of them holds what an earlier call left on the stack, some
 * of it addresses. Layouts follow PyTorch's public headers and are used only
 * where the sizes fit. Constant once made; any thread.
 */
#ifndef TS_LAYOUT_H
#define TS_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What stands last in the struct of PyTorch's reductions, in bytes: source,
 * outputs, buffers, semaphores, counts.
 */
#define TS_REDUCE_TAIL 64u

struct ts_param;
struct ts_layout;

/* NULL where nothing is known of @name: every word may be an operand. */
struct ts_layout *ts_layout_create(
        const char *name, const struct ts_param *params, size_t count);
void ts_layout_destroy(struct ts_layout *layout);

/*
 * What of the parameters this launch makes use of: how many tensors of a list
 * and the like. @params as a launch passes them.
 */
uint32_t ts_layout_used(const struct ts_layout *layout, void *const *params,
        const uint32_t *grid);

/* True where the word at @offset of parameter @param may be an operand. */
bool ts_layout_keeps(const struct ts_layout *layout, uint32_t used,
        uint16_t param, uint32_t offset);

/*
 * True where the word is none for certain: the struct is known by name, size
 * and what it holds, and the kernel goes by counts or a table that this launch
 * passes, which do not lead there. Of other words that are not kept only the
 * headers' text tells.
 */
bool ts_layout_is_unused(const struct ts_layout *layout, uint32_t used,
        uint16_t param, uint32_t offset);

#endif
