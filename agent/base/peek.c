/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/base/peek.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Works where the other is not allowed: the kernel reads as for any file. */
static int peek_by_pipe(const void *source, size_t bytes, void *ret_data)
{
	int ends[2], rc = -EFAULT;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	/* No wrapper of a sanitizer's shall look at @source before. */
	if (syscall(SYS_write, ends[1], source, bytes) == (long)bytes &&
	        read(ends[0], ret_data, bytes) == (ssize_t)bytes)
		rc = 0;
	close(ends[0]);
	close(ends[1]);
	return rc;
}

int ts_peek(const void *source, size_t bytes, void *ret_data)
{
	struct iovec to = {.iov_base = ret_data, .iov_len = bytes};
	struct iovec from = {.iov_base = (void *)source, .iov_len = bytes};
	ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);

	if (got == (ssize_t)bytes)
		return 0;
	return peek_by_pipe(source, bytes, ret_data);
}
