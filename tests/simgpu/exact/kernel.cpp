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

/* A type by name, AccumulateType<...>::type among them. */
static Type named_type(const std::string &name)
{
	static const char accumulate[] = "at::AccumulateType<";
	size_t open = name.find(accumulate);

	if (open == std::string::npos)
		return type_of(name);
	Type type = type_of(name.substr(open + sizeof(accumulate) - 1,
	        name.find(',', open) - open - sizeof(accumulate) + 1));
	if (type == Type::NONE || type == Type::F64)
		return type;
	return is_float(type) ? Type::F32 : Type::I64;
}

Type Kernel::pointee(size_t i) const
{
	size_t open = name.size();
	int depth = 0;

	if (name.empty() || name.back() != ')')
		return Type::NONE;
	while (open--) {
		if (closes(name[open]))
			depth++;
		if (opens(name[open]) && --depth == 0)
			break;
	}
	std::vector<std::string> parameters =
	        split_arguments(bracketed(name, open));
	if (i >= parameters.size() || parameters[i].back() != '*')
		return Type::NONE;
	std::string type = parameters[i].substr(0, parameters[i].size() - 1);
	for (const char *qualifier : {" const", " volatile"}) {
		size_t at = type.rfind(qualifier);

		if (at != std::string::npos &&
		        at + strlen(qualifier) == type.size())
			type.resize(at);
	}
	return named_type(type);
}

Type Kernel::first_float() const
{
	for (const std::string &argument : arguments)
		if (is_float(type_of(argument)))
			return type_of(argument);
	return Type::NONE;
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
	                sort_families, scan_families, lookup_families,
	                embedding_families, select_families,
	                group_norm_families, window_families, resize_families,
	                depthwise_families}) {
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
