/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/roles.h"

#include "agent/funcs.h"
#include "agent/layout.h"

/* TensorListMetadata holds so many tensors a list, by the number of lists. */
static const uint32_t small_lists[] = {110, 64, 48, 36, 30};
static const uint32_t large_lists[] = {770, 448, 336, 252, 210};
#define SMALL_PARAM_BYTES 4096u
#define LISTS_MAX         (sizeof(small_lists) / sizeof(small_lists[0]))

static bool any_fresh(
        const struct ts_recording *recording, const struct ts_rec_op *op)
{
	for (uint32_t i = 0; i < op->use_count; i++)
		if (ts_recording_use(recording, op, i)->fresh)
			return true;
	return false;
}

static enum ts_param_type type_of(
        const struct ts_kernel *kernel, const struct ts_rec_use *use)
{
	return use->param < kernel->param_count
	               ? (enum ts_param_type)kernel->param_type[use->param]
	               : TS_PARAM_OTHER;
}

/* Which of the lists the use stands in; -1 where that is not known. */
static int list_of(const struct ts_rec_op *op, unsigned int lists,
        const struct ts_rec_use *use)
{
	uint32_t bytes;

	if (!op->func || !op->func->param_count || !lists || lists > LISTS_MAX)
		return -1;
	bytes = op->func->params[0].bytes;
	return (int)(use->offset / 8 /
	             (bytes > SMALL_PARAM_BYTES ? large_lists
	                                        : small_lists)[lists - 1]);
}

/* Adam's lists: parameters, gradients, averages (two or three). */
static enum ts_role adam_role(const struct ts_rec_op *op,
        const struct ts_kernel *kernel, const struct ts_rec_use *use)
{
	int list = list_of(op, kernel->lists, use);

	return use->param || list == 1 ? TS_ROLE_READ : TS_ROLE_BOTH;
}

/*
 * In place, by an iterator: the first pointer. Words before it, in the
 * offset calculator, point to nothing that was meant.
 */
static enum ts_role iterator_role(const struct ts_recording *recording,
        const struct ts_rec_op *op, const struct ts_rec_use *use)
{
	for (uint32_t i = 0; i < op->use_count; i++) {
		const struct ts_rec_use *other =
		        ts_recording_use(recording, op, i);

		if (other->param < use->param ||
		        (other->param == use->param &&
		                other->offset < use->offset))
			return TS_ROLE_READ;
	}
	return TS_ROLE_BOTH;
}

static enum ts_role plain_role(const struct ts_rec_op *op,
        const struct ts_kernel *kernel, const struct ts_rec_use *use,
        bool has_output, bool old)
{
	enum ts_param_type type = type_of(kernel, use);

	if (type == TS_PARAM_CONST)
		return TS_ROLE_READ;
	if (kernel->added_offset && use->offset == kernel->added_offset)
		return TS_ROLE_BOTH;
	if (kernel->adds && type == TS_PARAM_WRITABLE && !old)
		return TS_ROLE_BOTH;
	/* Something must be written; what the step made is likelier. */
	if (has_output || (old && !op->updating))
		return TS_ROLE_READ;
	return TS_ROLE_BOTH;
}

/*
 * The library's caller has said what is written. A kernel that does not write
 * that yet puts parts of it into the work space.
 */
static enum ts_role declared_role(const struct ts_recording *recording,
        const struct ts_rec_op *op, const struct ts_rec_use *use)
{
	bool writes_it = false;

	for (uint32_t i = 0; i < op->use_count; i++)
		writes_it |= ts_recording_use(recording, op, i)->role !=
		             TS_ROLE_READ;
	if (use->role != TS_ROLE_READ ||
	        (!writes_it && recording->blocks[use->block].scratch))
		return TS_ROLE_BOTH;
	return TS_ROLE_READ;
}

static enum ts_role launch_role(const struct ts_recording *recording,
        const struct ts_rec_op *op, const struct ts_kernel *kernel,
        const struct ts_rec_use *use, bool has_output, bool old)
{
	if (use->fresh)
		return TS_ROLE_WRITE;
	if (op->declared)
		return declared_role(recording, op, use);
	switch (kernel->family) {
	case TS_FAMILY_ADAM:
		return adam_role(op, kernel, use);
	case TS_FAMILY_LISTS:
		return kernel->written_list >= 0 &&
		                       list_of(op, kernel->lists, use) ==
		                               kernel->written_list
		               ? TS_ROLE_BOTH
		               : TS_ROLE_READ;
	case TS_FAMILY_ITERATOR:
		if (kernel->outputs)
			return use->offset < 8 * kernel->outputs ? TS_ROLE_BOTH
			                                         : TS_ROLE_READ;
		return has_output ? TS_ROLE_READ
		                  : iterator_role(recording, op, use);
	case TS_FAMILY_REDUCE:
		/* Buffers and semaphores of the blocks that work together. */
		return op->func->param_count &&
		                       use->offset + TS_REDUCE_TAIL >
		                               op->func->params[0].bytes
		               ? TS_ROLE_BOTH
		               : TS_ROLE_READ;
	case TS_FAMILY_PLAIN:
		break;
	}
	return plain_role(op, kernel, use, has_output, old);
}

void ts_roles_guess(const struct ts_recording *recording,
        const struct ts_rec_op *op, const struct ts_kernel *kernel,
        const bool *old, uint8_t *ret_roles)
{
	bool has_output = any_fresh(recording, op);

	for (uint32_t i = 0; i < op->use_count; i++) {
		const struct ts_rec_use *use =
		        ts_recording_use(recording, op, i);

		if (op->kind == TS_REC_LAUNCH && kernel)
			ret_roles[i] = (uint8_t)launch_role(recording, op,
			        kernel, use, has_output, old[use->block]);
		else if (use->fresh || use->whole || use->role == TS_ROLE_READ)
			ret_roles[i] = use->role == TS_ROLE_READ && !use->fresh
			                       ? TS_ROLE_READ
			                       : TS_ROLE_WRITE;
		else
			ret_roles[i] = TS_ROLE_BOTH;
	}
}
