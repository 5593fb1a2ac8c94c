/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libsimgpu_torch.so: loaded by the simulated driver at the first context in a
 * process that holds PyTorch. PyTorch's C++ interface changes between
 * versions, so this library reads the version of the PyTorch that is loaded
 * and loads libsimgpu_torch-MAJOR.MINOR.so from beside itself.
 */
#include "tests/simgpu/driver/simgpu_private.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The folder of a loaded object, with its slash; -1 if it is too long. */
static int folder_of(const char *file, char *folder, size_t bytes)
{
	const char *slash = strrchr(file, '/');
	size_t length = slash ? (size_t)(slash + 1 - file) : 0;

	if (length >= bytes)
		return -1;
	memcpy(folder, file, length);
	folder[length] = '\0';
	return 0;
}

/* Version of the PyTorch in this process, from the version.py beside its lib
 * folder. */
static int torch_version(int *major, int *minor)
{
	char path[PATH_MAX], line[256];
	struct link_map *map = NULL;
	void *torch = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD);
	size_t length;
	FILE *file;
	int found = -1;

	if (!torch)
		return -1;
	if (!dlinfo(torch, RTLD_DI_LINKMAP, &map))
		found = folder_of(map->l_name, path, sizeof(path));
	dlclose(torch);
	length = found ? 0 : strlen(path);
	if (found || length + sizeof("../version.py") > sizeof(path))
		return -1;
	strcpy(path + length, "../version.py");
	file = fopen(path, "re");
	if (!file)
		return -1;
	found = -1;
	while (found && fgets(line, sizeof(line), file))
		if (sscanf(line, "__version__ = '%d.%d", major, minor) == 2)
			found = 0;
	fclose(file);
	return found;
}

static void *load(int major, int minor)
{
	char path[PATH_MAX];
	size_t length;
	Dl_info self;

	if (!dladdr((void *)(uintptr_t)torch_version, &self) ||
	        folder_of(self.dli_fname, path, sizeof(path)))
		return NULL;
	length = strlen(path);
	if (snprintf(path + length, sizeof(path) - length,
	            "libsimgpu_torch-%d.%d.so", major,
	            minor) >= (int)(sizeof(path) - length))
		return NULL;
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

__attribute__((constructor)) static void attach(void)
{
	int (*torch_attach)(void (*report)(int, uint64_t, int64_t)) = NULL;
	void (*set_bounds)(enum simgpu_bounds) = NULL;
	void *shim, *driver, *report = NULL;
	int major, minor;

	if (torch_version(&major, &minor)) {
		fprintf(stderr, "simgpu: PyTorch of unknown version\n");
		return;
	}
	shim = load(major, minor);
	if (!shim) {
		fprintf(stderr,
		        "simgpu: nothing built for PyTorch %d.%d (%s)\n", major,
		        minor, dlerror());
		return;
	}
	driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	if (driver) {
		report = dlsym(driver, "simgpu_block");
		*(void **)&set_bounds = dlsym(driver, "simgpu_set_bounds");
	}
	*(void **)&torch_attach = dlsym(shim, "simgpu_torch_attach");
	if (!report || !set_bounds || !torch_attach) {
		fprintf(stderr,
		        "simgpu: PyTorch %d.%d: the libraries are not "
		        "of one build\n",
		        major, minor);
		return;
	}
	set_bounds(torch_attach(
	                   (void (*)(int, uint64_t, int64_t))(uintptr_t)report)
	                   ? SIMGPU_BOUNDS_PYTORCH
	                   : SIMGPU_BOUNDS_ALLOCATIONS);
}
