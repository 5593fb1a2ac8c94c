/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/demangle.h"

struct pattern {
	const char *part;
	enum ts_op_class op_class;
};

/* The first part that occurs in the name decides. */
static const struct pattern classes[] = {
        {"multi_tensor_apply", TS_CLASS_OPTIMIZER},
        {"nccl", TS_CLASS_COLLECTIVE},
        {"flash_", TS_CLASS_ATTENTION},
        {"fmha_", TS_CLASS_ATTENTION},
        {"dropout", TS_CLASS_DROPOUT},
        {"masked_scale", TS_CLASS_DROPOUT},
        {"layer_norm", TS_CLASS_NORM},
        {"GammaBeta", TS_CLASS_NORM},
        {"batch_norm", TS_CLASS_NORM},
        {"RowwiseMoments", TS_CLASS_NORM},
        {"rms_norm", TS_CLASS_NORM},
        {"GroupNorm", TS_CLASS_NORM},
        {"nll_loss", TS_CLASS_LOSS},
        {"LogSoftMax", TS_CLASS_LOSS},
        {"mse_", TS_CLASS_LOSS},
        {"pool", TS_CLASS_POOL},
        {"gemm", TS_CLASS_GEMM},
        {"cutlass", TS_CLASS_GEMM},
        {"gemv", TS_CLASS_GEMM},
        {"splitk", TS_CLASS_GEMM},
        {"conv_", TS_CLASS_CONVOLUTION},
        {"convolve", TS_CLASS_CONVOLUTION},
        {"im2col", TS_CLASS_CONVOLUTION},
        {"col2im", TS_CLASS_CONVOLUTION},
        {"conv_depthwise", TS_CLASS_CONVOLUTION},
        {"CatArray", TS_CLASS_COPY},
        {"copy_kernel", TS_CLASS_COPY},
        {"Memcpy", TS_CLASS_COPY},
        {"elementwise", TS_CLASS_ELEMENTWISE},
        {"SoftMax", TS_CLASS_ELEMENTWISE},
        {"softmax", TS_CLASS_ELEMENTWISE},
        {"Memset", TS_CLASS_ELEMENTWISE},
        {"reduce_kernel", TS_CLASS_ELEMENTWISE},
};

/* Kernels that add to what their output holds. */
static const char *const adding[] = {"scatter", "index_add", "index_put",
        "indexing_backward", "embedding_backward", "atomic", "Atomic",
        "backward_data_accumulate", "col2im_batched"};

/* Offsets in the one struct of attention's backwards that are added to. */
struct added {
	const char *part;
	uint16_t offset;
};

static const struct added added_words[] = {
        {"flash_bwd_dq_dk_dv", 504}, {"fmha_cutlassB_", 112}};

static enum ts_op_class class_of(const char *name)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (strstr(name, classes[i].part))
			return classes[i].op_class;
	return TS_CLASS_OTHER;
}

/*
 * The outermost parentheses that hold the parameters: the last pair at the
 * outermost level. "(anonymous namespace)" is no list.
 */
static const char *find_list(const char *text)
{
	const char *found = NULL;
	int depth = 0;

	for (const char *at = text; *at; at++) {
		if (*at == '(' && !depth && strncmp(at, "(anon", 5))
			found = at;
		if (*at == '(' || *at == '<')
			depth++;
		/* "operator()" and "->" do not nest. */
		else if (*at == ')' || (*at == '>' && at[-1] != '-'))
			depth--;
	}
	return found;
}

static enum ts_param_type type_of(const char *text, size_t length)
{
	static const char constant[] = " const*";
	size_t tail = sizeof(constant) - 1;

	while (length && text[length - 1] == ' ')
		length--;
	if (!length || text[length - 1] != '*')
		return TS_PARAM_OTHER;
	if (length > tail && !strncmp(text + length - tail, constant, tail))
		return TS_PARAM_CONST;
	return TS_PARAM_WRITABLE;
}

/* Calls for each type of the list that begins at @list, "(". */
static size_t read_types(const char *list, uint8_t *types)
{
	const char *start = list + 1;
	size_t count = 0;
	int depth = 0;

	for (const char *at = list; *at; at++) {
		if (*at == '(' || *at == '<')
			depth++;
		else if (*at == ')' || (*at == '>' && at[-1] != '-'))
			depth--;
		if ((*at == ',' && depth == 1) || (*at == ')' && !depth)) {
			if (at == start)
				break;
			if (types)
				types[count] = (uint8_t)type_of(
				        start, (size_t)(at - start));
			count++;
			start = at + 1;
		}
		if (!depth)
			break;
	}
	return count;
}

/* "BinaryOpScalarFunctor<float, 2, 1, 1>": depth, and the list written to. */
static void read_lists(struct ts_kernel *kernel, const char *text)
{
	const char *functor = strstr(text, "Functor<");
	int depth, read, written;
	const char *comma;

	kernel->family = TS_FAMILY_LISTS;
	kernel->written_list = -1;
	if (!functor || !(comma = strchr(functor, ',')) ||
	        sscanf(comma, ", %d", &depth) != 1)
		return;
	kernel->lists = (unsigned int)depth;
	if (strstr(text, "FusedAdam"))
		kernel->family = TS_FAMILY_ADAM;
	else if (sscanf(comma, ", %*d, %d, %d", &read, &written) == 2 &&
	         !strstr(text, "LpNorm"))
		kernel->written_list = written;
}

/* The function's own name, without return type, namespaces, arguments. */
static char *plain_name(const char *text)
{
	const char *list = find_list(text), *end, *start;
	int depth = 0;

	end = list ? list : text + strlen(text);
	if (list && end > text && end[-1] == '>') {
		do {
			end--;
			if (*end == '>' && end[-1] != '-')
				depth++;
			else if (*end == '<')
				depth--;
		} while (depth && end > text);
	}
	start = end;
	while (start > text && start[-1] != ':' && start[-1] != ' ')
		start--;
	return strndup(start, (size_t)(end - start));
}

/* The name at @at without the namespaces in front of it. */
static void last_name(const char *at, char *ret, size_t bytes)
{
	static const char unnamed[] = "(anonymous namespace)::";
	const char *end;

	while (!strncmp(at, unnamed, sizeof(unnamed) - 1) ||
	        !strncmp(at, "at::native::", 12))
		at += *at == '(' ? sizeof(unnamed) - 1 : 12;
	for (end = at; *end && !strchr("<,( >", *end); end++)
		if (end[0] == ':' && end[1] == ':')
			at = end + 2;
	snprintf(ret, bytes, "%.*s", (int)(end - at), at);
}

/* What the kernel works out: "GeluCUDAKernelImpl", "std::multiplies". */
static void find_functor(const struct ts_kernel *kernel, const char *text,
        char *ret, size_t bytes)
{
	static const char *const wrappers[] = {"gpu_kernel_impl_nocast<",
	        "gpu_kernel_impl<", "BinaryFunctor<", "BUnaryFunctor<",
	        "AUnaryFunctor<"};
	const char *at;

	*ret = '\0';
	if (kernel->family == TS_FAMILY_LISTS) {
		/* The argument after the functor's own. */
		at = strstr(text, "Functor<");
		at = at ? strstr(at, ">, ") : NULL;
		if (at)
			last_name(at + 3, ret, bytes);
		return;
	}
	/* Numbers come first: "vectorized_elementwise_kernel<4, ...". */
	at = strchr(text, '<');
	while (at && (*at == '<' || *at == ' ' || *at == ',' ||
	                     (*at >= '0' && *at <= '9')))
		at++;
	for (size_t i = 0; at && i < sizeof(wrappers) / sizeof(wrappers[0]);
	        i++) {
		const char *inside = strstr(text, wrappers[i]);
		const char *functor =
		        inside ? strstr(inside, "Functor<") : NULL;

		if (inside && i < 2)
			at = inside + strlen(wrappers[i]);
		/* The last of its arguments is what is worked out. */
		else if (inside && functor) {
			const char *comma = strchr(functor, '>');

			while (comma && comma > functor && *comma != ' ')
				comma--;
			if (comma && *comma == ' ')
				at = comma + 1;
		}
	}
	if (at)
		last_name(at, ret, bytes);
}

static char *make_label(const struct ts_kernel *kernel, const char *text)
{
	char *name = plain_name(text), *label = NULL;
	char functor[64] = "";

	if (!name)
		return NULL;
	if (kernel->family == TS_FAMILY_ITERATOR ||
	        kernel->family == TS_FAMILY_LISTS)
		find_functor(kernel, text, functor, sizeof(functor));
	if (!*functor)
		return name;
	if (asprintf(&label, "%s<%s>",
	            kernel->family == TS_FAMILY_ITERATOR ? "elementwise"
	                                                 : "foreach",
	            functor) < 0)
		label = NULL;
	free(name);
	return label;
}

static const char multi_outputs[] = "elementwise_kernel_for_multi_outputs<";

struct ts_kernel *ts_kernel_create(const char *name)
{
	struct ts_kernel *kernel = calloc(1, sizeof(*kernel));
	char *text = ts_demangle(name);
	const char *list;

	if (!kernel || !text)
		goto fail;
	kernel->written_list = -1;
	for (size_t i = 0; i < sizeof(added_words) / sizeof(added_words[0]);
	        i++)
		if (strstr(text, added_words[i].part))
			kernel->added_offset = added_words[i].offset;
	kernel->op_class = class_of(text);
	for (size_t i = 0; i < sizeof(adding) / sizeof(adding[0]); i++)
		kernel->adds |= strstr(text, adding[i]) != NULL;
	if (strstr(text, "multi_tensor_apply"))
		read_lists(kernel, text);
	else if (strstr(text, "elementwise_kernel<") ||
	         strstr(text, multi_outputs))
		kernel->family = TS_FAMILY_ITERATOR;
	if (strstr(text, multi_outputs))
		sscanf(strstr(text, multi_outputs) + strlen(multi_outputs),
		        "%u", &kernel->outputs);
	if (strstr(text, "::reduce_kernel<"))
		kernel->family = TS_FAMILY_REDUCE;
	list = find_list(text);
	if (list) {
		kernel->param_count = read_types(list, NULL);
		kernel->param_type = calloc(kernel->param_count + 1, 1);
		if (!kernel->param_type)
			goto fail;
		read_types(list, kernel->param_type);
	}
	kernel->label = make_label(kernel, text);
	if (!kernel->label)
		goto fail;
	free(text);
	return kernel;
fail:
	free(text);
	ts_kernel_destroy(kernel);
	return NULL;
}

void ts_kernel_destroy(struct ts_kernel *kernel)
{
	if (!kernel)
		return;
	free(kernel->label);
	free(kernel->param_type);
	free(kernel);
}
