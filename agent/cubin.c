/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * By hand rather than through libelf: a preloaded library brings what it needs
 * into every program, and sections and two kinds of records are all there is to
 * read.
 */
#include "agent/cubin.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MACHINE_CUDA 190
#define TYPE_INFO    0x70000000u
#define INFO_PREFIX  ".nv.info."

/* Records of .nv.info: format, attribute, then a value or a length. */
enum {
	FORMAT_SIZED = 4,
	ATTR_PARAM = 0x17,
	ATTR_PARAM_LARGE = 0x45,
	PARAM_BYTES = 12,
};

struct elf {
	const uint8_t *data;
	size_t bytes;
	Elf64_Ehdr head;
};

static bool is_within(const struct elf *elf, uint64_t at, uint64_t length)
{
	return at <= elf->bytes && length <= elf->bytes - at;
}

static bool read_section(
        const struct elf *elf, unsigned int index, Elf64_Shdr *ret)
{
	uint64_t at = elf->head.e_shoff + (uint64_t)index * sizeof(*ret);

	if (index >= elf->head.e_shnum || at < elf->head.e_shoff ||
	        !is_within(elf, at, sizeof(*ret)))
		return false;
	memcpy(ret, elf->data + at, sizeof(*ret));
	return ret->sh_type == SHT_NOBITS ||
	       is_within(elf, ret->sh_offset, ret->sh_size);
}

/* A string of the table @names, or NULL where it does not end there. */
static const char *string_at(
        const struct elf *elf, const Elf64_Shdr *names, uint32_t at)
{
	const char *text;

	if (names->sh_type == SHT_NOBITS || at >= names->sh_size)
		return NULL;
	text = (const char *)elf->data + names->sh_offset + at;
	return memchr(text, 0, names->sh_size - at) ? text : NULL;
}

static bool open_elf(const uint8_t *data, size_t bytes, struct elf *ret)
{
	*ret = (struct elf){.data = data, .bytes = bytes};
	if (bytes < sizeof(ret->head))
		return false;
	memcpy(&ret->head, data, sizeof(ret->head));
	return !memcmp(ret->head.e_ident, ELFMAG, SELFMAG) &&
	       ret->head.e_ident[EI_CLASS] == ELFCLASS64 &&
	       ret->head.e_ident[EI_DATA] == ELFDATA2LSB &&
	       ret->head.e_machine == MACHINE_CUDA &&
	       ret->head.e_shentsize == sizeof(Elf64_Shdr);
}

/* Parameters as records name them, in any order. */
struct kernel {
	struct ts_param *params; /* of TS_CUBIN_PARAMS_MAX */
	size_t count, told;
};

static bool add_param(struct kernel *kernel, const uint8_t *record, bool large)
{
	uint16_t ordinal, offset;
	uint32_t word;

	memcpy(&ordinal, record + 4, sizeof(ordinal));
	memcpy(&offset, record + 6, sizeof(offset));
	memcpy(&word, record + 8, sizeof(word));
	if (ordinal >= TS_CUBIN_PARAMS_MAX)
		return false;
	for (; kernel->count <= ordinal; kernel->count++)
		kernel->params[kernel->count].bytes = 0;
	kernel->told += !kernel->params[ordinal].bytes;
	/* The size lies above alignment, space and bank where 4 KiB do. */
	kernel->params[ordinal] =
	        (struct ts_param){offset, large ? word : word >> 18};
	return kernel->params[ordinal].bytes > 0;
}

static bool read_records(
        struct kernel *kernel, const uint8_t *data, size_t bytes)
{
	size_t at = 0;

	kernel->count = kernel->told = 0;
	while (bytes - at >= 4) {
		unsigned int format = data[at], attribute = data[at + 1];
		uint16_t length;

		memcpy(&length, data + at + 2, sizeof(length));
		at += 4;
		if (format != FORMAT_SIZED)
			continue;
		if (length > bytes - at)
			return false;
		if (attribute == ATTR_PARAM || attribute == ATTR_PARAM_LARGE) {
			if (length < PARAM_BYTES ||
			        !add_param(kernel, data + at,
			                attribute == ATTR_PARAM_LARGE))
				return false;
		}
		at += length;
	}
	/* None is left out. */
	return kernel->told == kernel->count;
}

int ts_cubin_read(
        const uint8_t *data, size_t bytes, ts_cubin_found found, void *context)
{
	const size_t prefix = strlen(INFO_PREFIX);
	struct kernel kernel;
	Elf64_Shdr names, section;
	struct elf elf;
	int rc = 0;

	if (!open_elf(data, bytes, &elf) ||
	        !read_section(&elf, elf.head.e_shstrndx, &names))
		return -EINVAL;
	kernel.params = malloc(TS_CUBIN_PARAMS_MAX * sizeof(*kernel.params));
	if (!kernel.params)
		return -ENOMEM;
	for (unsigned int i = 0; i < elf.head.e_shnum; i++) {
		const char *name;

		if (!read_section(&elf, i, &section)) {
			rc = -EINVAL;
			continue;
		}
		name = string_at(&elf, &names, section.sh_name);
		if (section.sh_type != TYPE_INFO || !name ||
		        strncmp(name, INFO_PREFIX, prefix))
			continue;
		if (read_records(
		            &kernel, data + section.sh_offset, section.sh_size))
			found(context, name + prefix, strlen(name + prefix),
			        kernel.params, kernel.count);
		else
			rc = -EINVAL;
	}
	free(kernel.params);
	return rc;
}

/* --------------------------------------------------------------------- PTX */

struct text {
	const char *at, *end;
};

static bool begins_with(const struct text *text, const char *mark)
{
	return (size_t)(text->end - text->at) >= strlen(mark) &&
	       !memcmp(text->at, mark, strlen(mark));
}

/* Past the comment or the string that begins here; false: none does. */
static bool skip_unread(struct text *text)
{
	static const char *const marks[][2] = {
	        {"//", "\n"}, {"/*", "*/"}, {"\"", "\""}};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		const char *after = text->at + strlen(marks[i][0]);
		const char *last = marks[i][1];

		if (!begins_with(text, marks[i][0]))
			continue;
		after = memmem(
		        after, (size_t)(text->end - after), last, strlen(last));
		text->at = after ? after + strlen(last) : text->end;
		return true;
	}
	return false;
}

/* The next word: a run of what is no blank, comma, bracket or parenthesis. */
static size_t next_word(struct text *text, const char **ret_word)
{
	const char *begin;

	while (text->at < text->end && *text->at) {
		if (strchr(" \t\r\n", *text->at))
			text->at++;
		else if (!skip_unread(text))
			break;
	}
	begin = text->at;
	while (text->at < text->end && *text->at &&
	        !strchr(" \t\r\n,()[]/", *text->at))
		text->at++;
	/* A mark is a word of its own. */
	if (text->at == begin && text->at < text->end)
		text->at++;
	*ret_word = begin;
	return (size_t)(text->at - begin);
}

static bool is_word(const char *word, size_t length, const char *wanted)
{
	return length == strlen(wanted) && !memcmp(word, wanted, length);
}

static uint32_t number_of(const char *word, size_t length)
{
	uint32_t number = 0;

	for (size_t i = 0; i < length && word[i] >= '0' && word[i] <= '9' &&
	                   number < 1u << 24;
	        i++)
		number = number * 10 + (uint32_t)(word[i] - '0');
	return number;
}

/* Bytes of a type as ".u64" or ".b8"; 0: it is none. */
static uint32_t type_bytes(const char *word, size_t length)
{
	uint32_t bits;

	if (length < 3 || word[0] != '.' || !strchr("bsuf", word[1]))
		return 0;
	bits = number_of(word + 2, length - 2);
	return bits % 8 || bits > 128 ? 0 : bits / 8;
}

/*
 * One parameter up to the comma or the parenthesis after it, at @offset or, as
 * its alignment wants it, later. False where the text is none.
 */
static bool read_param(struct text *text, uint32_t offset,
        struct ts_param *ret_param, bool *ret_last)
{
	uint32_t align = 0, bytes = 0, items = 1;
	const char *word;
	size_t length;

	while ((length = next_word(text, &word))) {
		if (*word == ',' || *word == ')')
			break;
		if (is_word(word, length, ".align")) {
			length = next_word(text, &word);
			/* After the type it is that of what it points to. */
			if (!bytes)
				align = number_of(word, length);
		} else if (*word == '[') {
			length = next_word(text, &word);
			items = number_of(word, length);
		} else if (!bytes) {
			bytes = type_bytes(word, length);
		}
	}
	*ret_last = length && *word == ')';
	align = align ? align : bytes;
	if (!length || !bytes || !items || align & (align - 1))
		return false;
	*ret_param = (struct ts_param){
	        (offset + align - 1) & ~(align - 1), bytes * items};
	return true;
}

static bool read_entry(struct text *text, struct ts_param *params,
        const char **ret_name, size_t *ret_length, size_t *ret_count)
{
	struct text ahead;
	const char *word;
	uint32_t end = 0;
	bool last = false;

	*ret_length = next_word(text, ret_name);
	*ret_count = 0;
	ahead = *text;
	if (next_word(&ahead, &word) != 1 || *word != '(')
		return *ret_length > 0;
	*text = ahead;
	if (next_word(&ahead, &word) == 1 && *word == ')')
		return *ret_length > 0;
	while (!last) {
		struct ts_param *param = &params[*ret_count];

		if (*ret_count == TS_CUBIN_PARAMS_MAX ||
		        !read_param(text, end, param, &last))
			return false;
		end = param->offset + param->bytes;
		++*ret_count;
	}
	return *ret_length > 0;
}

/* Past the word that begins a kernel; false: none follows. */
static bool next_entry(struct text *text)
{
	static const char mark[] = ".entry";

	while (text->at < text->end) {
		if (begins_with(text, mark)) {
			text->at += strlen(mark);
			return true;
		}
		if (!skip_unread(text))
			text->at++;
	}
	return false;
}

int ts_ptx_read(
        const char *text, size_t bytes, ts_cubin_found found, void *context)
{
	struct text rest = {text, text + bytes};
	struct ts_param *params = malloc(TS_CUBIN_PARAMS_MAX * sizeof(*params));
	int rc = 0;

	if (!params)
		return -ENOMEM;
	while (next_entry(&rest)) {
		const char *name;
		size_t length, count;

		if (read_entry(&rest, params, &name, &length, &count))
			found(context, name, length, params, count);
		else
			rc = -EINVAL;
	}
	free(params);
	return rc;
}
