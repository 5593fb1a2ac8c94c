/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/words.h"

#include <string.h>

#include "agent/funcs.h"

/* Into how many words the buffer's alignment cuts the parameter. */
static uint32_t words_of(const struct ts_param *param)
{
	return param->bytes ? (param->offset % 8 + param->bytes + 7) / 8 : 0;
}

/* Word @index of @param: where it begins in it, and in @ret_bytes its size. */
static uint32_t piece(
        const struct ts_param *param, uint32_t index, uint32_t *ret_bytes)
{
	uint32_t lead = param->offset % 8;
	uint32_t begin = index ? 8 * index - lead : 0;
	uint32_t end = 8 * (index + 1) - lead;

	*ret_bytes = (end < param->bytes ? end : param->bytes) - begin;
	return begin;
}

uint32_t ts_words_count(const struct ts_param *params, size_t count)
{
	uint64_t bytes = 0;
	uint32_t words = 0;

	for (size_t i = 0; i < count; i++) {
		bytes += params[i].bytes;
		words += words_of(&params[i]);
	}
	return bytes > TS_WORDS_BYTES_MAX ? 0 : words;
}

static uint64_t *read_param(
        const struct ts_param *param, const char *data, uint64_t *ret_words)
{
	uint32_t count = words_of(param);

	/* By far the most parameters are one word. */
	if (param->bytes == 8 && count == 1) {
		memcpy(ret_words, data, 8);
		return ret_words + 1;
	}
	if (param->offset % 8 == 0) {
		if (param->bytes % 8)
			ret_words[count - 1] = 0;
		memcpy(ret_words, data, param->bytes);
		return ret_words + count;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t bytes, begin = piece(param, i, &bytes);

		*ret_words = 0;
		memcpy(ret_words++, data + begin, bytes);
	}
	return ret_words;
}

void ts_words_read(
        const struct ts_func *func, void *const *params, uint64_t *ret_words)
{
	if (!func->word_count)
		return;
	for (size_t i = 0; i < func->param_count; i++)
		ret_words = read_param(&func->params[i], params[i], ret_words);
}

struct ts_word ts_words_at(const struct ts_func *func, uint32_t index)
{
	struct ts_word word = {0};
	uint32_t bytes;

	for (size_t i = 0; i < func->param_count; i++) {
		uint32_t count = words_of(&func->params[i]);

		if (index < count) {
			word.param = (uint16_t)i;
			word.offset = piece(&func->params[i], index, &bytes);
			word.bytes = (uint8_t)bytes;
			return word;
		}
		index -= count;
	}
	return word;
}
