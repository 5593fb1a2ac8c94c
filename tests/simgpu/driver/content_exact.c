/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Exact content: one unnamed file holds the physical memory of all devices, a
 * range for each chunk, and mapping a chunk maps that range at the device
 * address. So aliases agree by themselves, an unmapped address cannot be
 * touched, and copies, sets and kernels work on plain pointers.
 *
 * Kernels are in libsimgpu_exact.so beside this library, loaded on the first
 * launch. Under sg_lock.
 */
#include "tests/simgpu/driver/content_exact.h"
#include "tests/simgpu/driver/collective.h"
#include "tests/simgpu/driver/exact_check.h"
#include "tests/simgpu/driver/kernel_proof.h"
#include "tests/simgpu/exact/exact.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(struct sgx_param) == sizeof(struct sg_param),
        "parameters are handed over as they are");

static struct {
	int fd; /* + 1; 0: not yet made */
	uint64_t end;
} store;

bool sg_content_exact(void)
{
	return sg_settings.content && !strcmp(sg_settings.content, "exact");
}

static _Noreturn void die(const char *what)
{
	sg_say("exact content: %s: %s", what, strerror(errno));
	abort();
}

/* Where a chunk's bytes begin in the file. Ranges are used once; what is given
 * up becomes a hole. */
static uint64_t place_of(struct sg_chunk *chunk)
{
	if (chunk->exact_end)
		return chunk->exact_end - chunk->bytes;
	if (!store.fd) {
		int fd = memfd_create("simgpu", MFD_CLOEXEC);

		if (fd < 0)
			die("no file for device memory");
		store.fd = fd + 1;
	}
	store.end += chunk->bytes;
	if (ftruncate(store.fd - 1, (off_t)store.end))
		die("no room for device memory");
	chunk->exact_end = store.end;
	return chunk->exact_end - chunk->bytes;
}

/* The system call itself: sanitizers would take the range for memory of the
 * program's. */
static void map_fixed(uint64_t va, uint64_t bytes, int protection, int flags,
        int fd, uint64_t offset)
{
	long r = syscall(
	        SYS_mmap, va, bytes, protection, MAP_FIXED | flags, fd, offset);

	if (r == -1)
		die("cannot map device memory");
}

static int file_of(const struct sg_chunk *chunk)
{
	return (chunk->imported ? chunk->exact_file : store.fd) - 1;
}

int sg_exact_place(struct sg_chunk *chunk, uint64_t *ret_place)
{
	*ret_place = 0;
	if (!sg_content_exact())
		return -1;
	*ret_place = place_of(chunk);
	return file_of(chunk);
}

void sg_exact_map(struct sg_mapping *mapping)
{
	uint64_t offset;

	if (!sg_content_exact())
		return;
	offset = place_of(mapping->chunk);
	map_fixed(mapping->va, mapping->bytes, PROT_READ | PROT_WRITE,
	        MAP_SHARED, file_of(mapping->chunk), offset);
}

void sg_exact_unmap(const struct sg_mapping *mapping)
{
	if (!sg_content_exact())
		return;
	map_fixed(mapping->va, mapping->bytes, PROT_NONE,
	        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

void sg_exact_chunk_gone(struct sg_chunk *chunk)
{
	if (chunk->exact_file)
		close(chunk->exact_file - 1);
	if (!chunk->exact_end || chunk->imported)
		return;
	if (fallocate(store.fd - 1, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
	            (off_t)place_of(chunk), (off_t)chunk->bytes))
		die("cannot give device memory back");
}

/* ------------------------------------------------------------------ kernels */

static sgx_run_fn find_run(void)
{
	char path[PATH_MAX];
	const char *slash;
	Dl_info self;
	void *library, *run;

	if (!dladdr(&store, &self) || !self.dli_fname)
		return NULL;
	slash = strrchr(self.dli_fname, '/');
	if (!slash)
		return NULL;
	snprintf(path, sizeof(path), "%.*s/libsimgpu_exact.so",
	        (int)(slash - self.dli_fname), self.dli_fname);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		sg_say("exact content: %s", dlerror());
		return NULL;
	}
	run = dlsym(library, SGX_RUN_NAME);
	return (sgx_run_fn)(uintptr_t)run;
}

/*
 * A kernel that touches what is not mapped is the program's defect and not a
 * crash. What it has allocated is lost then; the device takes no more work.
 */
static struct {
	sigjmp_buf back;
	volatile sig_atomic_t armed;
	pid_t thread;
	uint64_t address;
	struct sigaction before;
	bool installed;
} guard;

static void on_fault(int number, siginfo_t *info, void *context)
{
	uint64_t address = (uint64_t)(uintptr_t)info->si_addr;

	if (guard.armed && guard.thread == (pid_t)syscall(SYS_gettid) &&
	        sg_is_device_va(address)) {
		if (sg_exact_check_fault(address))
			return;
		guard.address = address;
		siglongjmp(guard.back, 1);
	}
	/* Somebody else's: it comes again, to the handler before ours. */
	sigaction(number, &guard.before, NULL);
	guard.installed = false;
}

static void install_guard(void)
{
	struct sigaction action = {
	        .sa_sigaction = on_fault,
	        .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK,
	};

	if (guard.installed)
		return;
	guard.installed = true;
	sigemptyset(&action.sa_mask);
	sigaction(SIGSEGV, &action, &guard.before);
}

void sg_exact_launch(const struct sg_launch *launch, const struct sg_op *op)
{
	static sgx_run_fn run;
	static bool looked;
	struct sgx_launch exact = {
	        .function = launch->fn,
	        .params = (const struct sgx_param *)launch->fn->params,
	        .n_params = launch->fn->n_params,
	        .bytes = launch->params,
	};
	struct sg_device *dev = op->dev;
	bool done;

	if (!looked) {
		looked = true;
		run = find_run();
	}
	sg_kernel_find(launch->fn); /* demangles */
	exact.name = launch->fn->demangled;
	memcpy(exact.grid, launch->grid, sizeof(exact.grid));
	memcpy(exact.block, launch->block, sizeof(exact.block));
	install_guard();
	guard.thread = (pid_t)syscall(SYS_gettid);
	if (sigsetjmp(guard.back, 1)) {
		guard.armed = 0;
		if (sg_settings.check_ranges)
			sg_exact_check_end(op, launch->fn->demangled);
		sg_sticky_error(dev, CUDA_ERROR_ILLEGAL_ADDRESS,
		        "illegal address 0x%llx: touched by kernel %s",
		        (unsigned long long)guard.address,
		        launch->fn->demangled);
		return;
	}
	guard.armed = 1;
	if (sg_settings.check_ranges)
		sg_exact_check_begin(op);
	done = sg_proof_run(launch) || sg_collective_run(launch) ||
	       (run && run(&exact));
	guard.armed = 0;
	if (sg_settings.check_ranges)
		sg_exact_check_end(op, launch->fn->demangled);
	if (done)
		return;
	sg_say("exact content: no implementation of kernel %s",
	        launch->fn->demangled);
	sg_sticky_error(dev, CUDA_ERROR_NOT_SUPPORTED,
	        "no implementation of kernel %s", launch->fn->demangled);
}
