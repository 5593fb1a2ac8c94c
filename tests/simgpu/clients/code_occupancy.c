/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Occupancy on a device before sm_80 (v100); code_module.c has later ones. */
#include "code_common.h"

/* 96 KiB of shared memory, given by 256 bytes and not by 128. */
START_TEST(older_devices_give_shared_memory_by_larger_parts)
{
	static const uint32_t params[] = {8};
	struct image_kernel image = {.name = "zeta",
	        .param_bytes = params,
	        .n_params = 1,
	        .regs = 32};
	struct buffer cubin = image_cubin(70, &image, 1, NULL, 0);
	CUfunction zeta;
	CUmodule module;
	int blocks;

	use_device();
	ck_cu(cuModuleLoadData(&module, cubin.data));
	ck_cu(cuModuleGetFunction(&zeta, module, "zeta"));
	ck_cu(cuOccupancyMaxActiveBlocksPerMultiprocessor(
	        &blocks, zeta, 32, 7424));
	ck_assert_int_eq(blocks, 13);
	ck_cu(cuOccupancyMaxActiveBlocksPerMultiprocessor(
	        &blocks, zeta, 32, 7425));
	ck_assert_int_eq(blocks, 12);
	buffer_free(&cubin);
	ck_cu(cuModuleUnload(module));
	leave_device();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("code_occupancy");
	TCase *tests = tcase_create("older");

	tcase_add_test(tests, older_devices_give_shared_memory_by_larger_parts);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
