/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of kernels taken apart, and the choice of the implementation, made
 * once for each function.
 */
#include "tests/simgpu/exact/kernel.h"

#include <unordered_map>

namespace sgx
{

static bool opens(char c)
{
	return c == '<' || c == '(' || c == '{' || c == '[';
}

static bool closes(char c)
{
	return c == '>' || c == ')' || c == '}' || c == ']';
}

std::vector<std::string> split_arguments(const std::string &text)
{
	std::vector<std::string> parts;
	size_t start = 0;
	int depth = 0;

	for (size_t i = 0; i <= text.size(); i++) {
		if (i < text.size() && opens(text[i]))
			depth++;
		if (i < text.size() && closes(text[i]))
			depth--;
		if (i < text.size() && (depth || text[i] != ','))
			continue;
		while (start < i && text[start] == ' ')
			start++;
		size_t end = i;
		while (end > start && text[end - 1] == ' ')
			end--;
		if (end > start)
			parts.push_back(text.substr(start, end - start));
		start = i + 1;
	}
	return parts;
}

std::string bracketed(const std::string &text, size_t open)
{
	int depth = 0;

	for (size_t i = open; i < text.size(); i++) {
		if (opens(text[i]))
			depth++;
		if (closes(text[i]) && --depth == 0)
			return text.substr(open + 1, i - open - 1);
	}
	return "";
}

Kernel::Kernel(const char *demangled) : name(demangled)
{
	size_t open = name.find('<'), end = open, start;

	if (open == std::string::npos) {
		/* A C function, or one that is no template. */
		end = name.find('(');
		while (end != std::string::npos &&
		        !name.compare(end, 11, "(anonymous "))
			end = name.find('(', end + 1);
		if (end == std::string::npos)
			end = name.size();
	} else {
		arguments = split_arguments(bracketed(name, open));
	}
	start = name.rfind("::", end);
	start = start == std::string::npos ? name.rfind(' ', end) + 1
	                                   : start + 2;
	if (start > end)
		start = 0;
	family = name.substr(start, end - start);
}

/* The name in front of the arguments of a function that is no template. */
static std::string function_name(const std::string &name)
{
	size_t end = name.find('(');

	while (end != std::string::npos &&
	        !name.compare(end, 11, "(anonymous "))
		end = name.find('(', end + 1);
	if (end == std::string::npos || name.find('<') < end)
		return "";
	size_t start = name.rfind("::", end);
	return name.substr(start == std::string::npos ? 0 : start + 2,
	        end - (start == std::string::npos ? 0 : start + 2));
}

static Run find(const Kernel &kernel)
{
	std::string function = function_name(kernel.name);

	for (const Family *table :
	        {elementwise_families, reduce_families, random_families,
	                foreach_families, softmax_families, norm_families,
	                batch_norm_families, index_families, loss_families,
	                image_families, attention_families, blas_families,
	                sort_families, scan_families, lookup_families}) {
		for (; table->name; table++)
			if (kernel.family == table->name ||
			        function == table->name)
				return table->run;
	}
	return nullptr;
}

} // namespace sgx

bool sgx_run(const struct sgx_launch *raw)
{
	static std::unordered_map<const void *, std::unique_ptr<sgx::Kernel>>
	        kernels;
	auto &kernel = kernels[raw->function];

	if (!kernel || kernel->name != raw->name) {
		kernel = std::make_unique<sgx::Kernel>(raw->name);
		kernel->run = sgx::find(*kernel);
	}
	return kernel->run && kernel->run(sgx::Launch{*kernel, *raw});
}
