/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/allocator_conf.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/log.h"

#define ON          "expandable_segments:True"
#define OFF         "expandable_segments:False"
#define VALUE_BYTES 4096

bool ts_allocator_conf_plain(const char *value, char *ret, size_t size)
{
	size_t length = 0;
	bool found = false;

	while (*value) {
		bool here = !strncmp(value, ON, strlen(ON));
		const char *text = here ? OFF : value;
		size_t bytes = here ? strlen(OFF) : 1;

		if (length + bytes >= size)
			return false;
		memcpy(ret + length, text, bytes);
		length += bytes;
		value += here ? strlen(ON) : 1;
		found |= here;
	}
	ret[length] = '\0';
	return found;
}

void ts_allocator_conf_amend(void)
{
	static const char *const names[] = {
	        "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);
		char plain[VALUE_BYTES];

		if (!value ||
		        !ts_allocator_conf_plain(value, plain, sizeof(plain)) ||
		        setenv(names[i], plain, 1))
			continue;
		ts_log(TS_LOG_WARN,
		        "%s: expandable_segments taken off: memory that is "
		        "placed here does not fragment, and what they map "
		        "could not be moved",
		        names[i]);
	}
}
