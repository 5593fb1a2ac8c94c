/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/base/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *local_rank(void)
{
	const char *rank = getenv("LOCAL_RANK");

	return rank && *rank ? rank : "0";
}

int ts_path_expand(const char *pattern, char *ret_path, size_t size)
{
	size_t used = 0;

	for (const char *at = pattern; *at; at++) {
		char text[24] = {*at};

		if (*at == '%') {
			at++;
			if (*at == 'p')
				snprintf(text, sizeof(text), "%d",
				        (int)getpid());
			else if (*at == 'r')
				snprintf(text, sizeof(text), "%.16s",
				        local_rank());
			else if (*at != '%')
				return -EINVAL;
		}
		if (used + strlen(text) >= size)
			return -ENAMETOOLONG;
		memcpy(ret_path + used, text, strlen(text));
		used += strlen(text);
	}
	if (used >= size)
		return -ENAMETOOLONG;
	ret_path[used] = '\0';
	return 0;
}
