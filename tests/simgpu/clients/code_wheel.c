/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads every fat binary of an installed PyTorch wheel through the simulated
 * driver: each must hold code for the device, and each kernel's layout must
 * make sense. Usage: code_wheel VENV; exit status 77 without a wheel there.
 */
#include "code_common.h"

#include <fcntl.h>
#include <gelf.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CONTAINER_MAGIC 0xba55ed50u

static glob_t libraries;
static unsigned containers, kernels_seen;

static void check_kernel(CUkernel kernel, const char *library)
{
	size_t offset, size, end = 0, i = 0;
	const char *name;
	int regs;

	kernels_seen++;
	ck_cu(cuKernelGetName(&name, kernel));
	ck_cu(cuKernelGetAttribute(
	        &regs, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 0));
	ck_assert_msg(regs > 0 && regs <= 255, "%s: %s: %d registers", library,
	        name, regs);
	while (cuKernelGetParamInfo(kernel, i, &offset, &size) ==
	        CUDA_SUCCESS) {
		ck_assert_msg(offset >= end && size > 0,
		        "%s: %s: parameter %zu at %zu, %zu bytes", library,
		        name, i, offset, size);
		end = offset + size;
		i++;
	}
	/* The structs whose fields the kernel table reads. */
	if (strstr(name, "pytorch_flash") && strstr(name, "_fwd_kernel"))
		ck_assert_uint_eq(end, 472);
	if (strstr(name, "flash_bwd_dq_dk_dv"))
		ck_assert_uint_eq(end, 648);
	if (strstr(name, "fmha_cutlassF_"))
		ck_assert(end == 280 || end == 272);
	if (strstr(name, "fmha_cutlassB_"))
		ck_assert(end == 480 || end == 464);
}

static void check_container(const uint8_t *data, const char *path)
{
	CUlibraryOption preserved = CU_LIBRARY_BINARY_IS_PRESERVED;
	CUkernel *kernels;
	CUlibrary library;
	unsigned n;

	containers++;
	ck_cu(cuLibraryLoadData(&library, data, NULL, NULL, 0, &preserved,
	        (void *[]){(void *)1}, 1));
	ck_cu(cuLibraryGetKernelCount(&n, library));
	kernels = calloc(n + 1, sizeof(CUkernel));
	ck_assert_ptr_nonnull(kernels);
	if (n)
		ck_cu(cuLibraryEnumerateKernels(kernels, n, library));
	for (unsigned i = 0; i < n; i++)
		check_kernel(kernels[i], path);
	free(kernels);
	ck_cu(cuLibraryUnload(library));
}

static void check_section(const uint8_t *data, size_t bytes, const char *path)
{
	size_t at = 0;

	while (bytes - at >= 16) {
		uint32_t magic;
		uint64_t size;

		memcpy(&magic, data + at, sizeof(magic));
		if (magic != CONTAINER_MAGIC) {
			at += 8;
			continue;
		}
		memcpy(&size, data + at + 8, sizeof(size));
		ck_assert_uint_le(size, bytes - at - 16);
		check_container(data + at, path);
		at += (16 + size + 7) & ~(size_t)7;
	}
}

static void check_library(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf_Scn *section = NULL;
	size_t names;
	struct stat st;
	uint8_t *file;
	Elf *elf;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	ck_assert_ptr_ne(file, MAP_FAILED);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	ck_assert_ptr_nonnull(elf);
	ck_assert_int_eq(elf_getshdrstrndx(elf, &names), 0);
	while ((section = elf_nextscn(elf, section))) {
		const char *name;
		GElf_Shdr sh;

		ck_assert_ptr_nonnull(gelf_getshdr(section, &sh));
		name = elf_strptr(elf, names, sh.sh_name);
		if (name && !strcmp(name, ".nv_fatbin"))
			check_section(file + sh.sh_offset, sh.sh_size, path);
	}
	elf_end(elf);
	munmap(file, (size_t)st.st_size);
	close(fd);
}

START_TEST(every_kernel_has_a_layout)
{
	use_device();
	for (size_t i = 0; i < libraries.gl_pathc; i++) {
		unsigned before = kernels_seen;

		check_library(libraries.gl_pathv[i]);
		printf("%s: %u kernels\n", libraries.gl_pathv[i],
		        kernels_seen - before);
	}
	printf("%u fat binaries, %u kernels\n", containers, kernels_seen);
	ck_assert_uint_gt(kernels_seen, 1000);
	leave_device();
}
END_TEST

int main(int argc, char **argv)
{
	char pattern[4096];
	Suite *suite;
	TCase *tests;

	snprintf(pattern, sizeof(pattern),
	        "%s/lib/python3*/site-packages/torch/lib/libtorch_cuda*.so",
	        argc > 1 ? argv[1] : ".");
	if (glob(pattern, 0, NULL, &libraries)) {
		printf("no PyTorch in %s\n", argc > 1 ? argv[1] : ".");
		return 77;
	}
	suite = suite_create("code_wheel");
	tests = tcase_create("wheel");
	tcase_set_timeout(tests, 300);
	tcase_add_test(tests, every_kernel_has_a_layout);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
