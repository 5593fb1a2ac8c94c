/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Code that is loaded under a driver that does not tell the parameters of
 * kernels. Called by the wrappers on the program's threads, after the driver.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/agent_internal.h"
#include "agent/base/log.h"

static bool is_wanted(void)
{
	return !ts_agent.ops->func_param_info;
}

static int attribute(CUdevice_attribute attribute, CUdevice device)
{
	int value = 0;

	if (ts_agent.ops->device_attribute(&value, attribute, device) !=
	        CUDA_SUCCESS)
		return 0;
	return value;
}

/*
 * That of the context's device, which a module's code is chosen for. A library
 * is for all devices, and may be loaded without a context: its kernels' layouts
 * are those for the current device then, or for the first.
 */
static int capability(void)
{
	CUdevice device;

	if (ts_agent.ops->ctx_get_device(&device) != CUDA_SUCCESS)
		device = 0;
	return 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
	                    device) +
	       attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

static void load(const void *handle, const void *image, size_t bytes)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	int rc = ts_code_loaded(
	        &ts_agent.code, handle, image, bytes, capability());

	if (rc && !atomic_flag_test_and_set(&said))
		ts_log(TS_LOG_WARN,
		        "code of the program cannot be read (%s): its kernels "
		        "count as using every block",
		        strerror(-rc));
}

void ts_agent_code_loaded(const void *handle, const void *image)
{
	if (is_wanted())
		load(handle, image, SIZE_MAX);
}

void ts_agent_code_file(const void *handle, const char *path)
{
	struct stat there;
	void *data;
	int fd;

	if (!is_wanted())
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &there) || there.st_size <= 0)
		goto out;
	data = mmap(NULL, (size_t)there.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data != MAP_FAILED) {
		load(handle, data, (size_t)there.st_size);
		munmap(data, (size_t)there.st_size);
	}
out:
	if (fd >= 0)
		close(fd);
}

void ts_agent_code_gone(const void *handle)
{
	if (is_wanted())
		ts_code_unloaded(&ts_agent.code, handle);
}

void ts_agent_code_named(
        const void *function, const void *owner, const char *name)
{
	if (is_wanted())
		ts_code_named(&ts_agent.code, function, owner, name);
}

void ts_agent_code_shared(const void *module, const void *library)
{
	if (is_wanted())
		ts_code_shared(&ts_agent.code, module, library);
}

void ts_agent_code_same(const void *function, const void *kernel)
{
	if (is_wanted())
		ts_code_same(&ts_agent.code, function, kernel);
}
