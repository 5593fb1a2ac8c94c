/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/base/peek.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

int ts_peek(const void *source, size_t bytes, void *ret_data)
{
	struct iovec to = {.iov_base = ret_data, .iov_len = bytes};
	struct iovec from = {.iov_base = (void *)source, .iov_len = bytes};
	ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);

	if (got < 0)
		return -errno;
	return (size_t)got == bytes ? 0 : -EFAULT;
}
