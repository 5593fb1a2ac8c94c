/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which image the simulated driver takes out of a container, what it reads in
 * it, and that damaged input is refused without harm.
 */
#include "code_common.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t sizes_small[] = {8, 4, 2, 8};
static const uint32_t sizes_large[] = {6000, 8, 4};

/* A cubin with one kernel whose register count tells images apart. */
static struct buffer cubin_with(int sm, unsigned regs)
{
	struct image_kernel kernels[] = {
	        {.name = "small",
	                .param_bytes = sizes_small,
	                .n_params = 4,
	                .regs = regs,
	                .shared_bytes = 1536,
	                .local_bytes = 400,
	                .max_threads = 128},
	        {.name = "large",
	                .param_bytes = sizes_large,
	                .n_params = 3,
	                .regs = regs},
	        {.name = "empty", .regs = regs},
	};
	struct image_variable variables[] = {
	        {"counter", 4, false, false},
	        {"table", 4096, false, false},
	        {"coefficients", 64, false, true},
	};

	return image_cubin(sm, kernels, 3, variables, 3);
}

static int regs_of(CUmodule module)
{
	CUfunction fn;
	int regs;

	ck_cu(cuModuleGetFunction(&fn, module, "small"));
	ck_cu(cuFuncGetAttribute(&regs, CU_FUNC_ATTRIBUTE_NUM_REGS, fn));
	return regs;
}

START_TEST(cubin_layout)
{
	struct buffer cubin = cubin_with(80, 24);
	CUfunction fn;
	CUmodule module;
	size_t offset, size, bytes[3];
	CUdeviceptr va[3];
	int value;

	ck_cu(cuModuleLoadData(&module, cubin.data));
	buffer_free(&cubin);
	ck_cu(cuModuleGetFunction(&fn, module, "small"));
	ck_cu(cuFuncGetParamInfo(fn, 2, &offset, &size));
	ck_assert_uint_eq(offset, 12);
	ck_assert_uint_eq(size, 2);
	ck_cu(cuFuncGetParamInfo(fn, 3, &offset, &size));
	ck_assert_uint_eq(offset, 16);
	ck_assert_uint_eq(size, 8);
	ck_cu_is(cuFuncGetParamInfo(fn, 4, &offset, &size),
	        CUDA_ERROR_INVALID_VALUE);
	ck_cu(cuFuncGetAttribute(
	        &value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, fn));
	ck_assert_int_eq(value, 1536);
	ck_cu(cuFuncGetAttribute(
	        &value, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, fn));
	ck_assert_int_eq(value, 400);
	ck_cu(cuFuncGetAttribute(
	        &value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, fn));
	ck_assert_int_eq(value, 128);
	ck_cu(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, fn));
	ck_assert_int_eq(value, 80);
	ck_cu(cuFuncGetAttribute(
	        &value, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, fn));
	ck_assert_int_eq(value, 64);

	/* Parameters beyond 4 KB are described by another attribute. */
	ck_cu(cuModuleGetFunction(&fn, module, "large"));
	ck_cu(cuFuncGetParamInfo(fn, 0, &offset, &size));
	ck_assert_uint_eq(size, 6000);
	ck_cu(cuFuncGetParamInfo(fn, 2, &offset, &size));
	ck_assert_uint_eq(offset, 6008);
	ck_assert_uint_eq(size, 4);

	ck_cu(cuModuleGetGlobal(&va[0], &bytes[0], module, "counter"));
	ck_cu(cuModuleGetGlobal(&va[1], &bytes[1], module, "table"));
	ck_cu(cuModuleGetGlobal(&va[2], &bytes[2], module, "coefficients"));
	ck_assert_uint_eq(bytes[0], 4);
	ck_assert_uint_eq(bytes[1], 4096);
	ck_assert_uint_eq(bytes[2], 64);
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++)
			ck_assert(i == j || va[i] + bytes[i] <= va[j] ||
			          va[j] + bytes[j] <= va[i]);
	ck_cu_is(cuModuleGetGlobal(&va[0], &bytes[0], module, "nothing"),
	        CUDA_ERROR_NOT_FOUND);
	ck_cu(cuMemsetD8(va[1], 0, bytes[1]));
	ck_cu(cuModuleUnload(module));
}
END_TEST

START_TEST(packed_fat_binaries)
{
	static const enum image_packing packings[] = {
	        IMAGE_PLAIN, IMAGE_LZ4, IMAGE_ZSTD};

	for (int i = 0; i < 3; i++) {
		struct buffer cubin = cubin_with(80, 24);
		struct buffer fatbin = image_fatbin();
		struct image_wrapper wrapper;
		CUmodule module;

		image_fatbin_add(&fatbin, IMAGE_IS_CUBIN, 80, 0x11, cubin.data,
		        cubin.bytes, packings[i]);
		wrapper = image_wrap(&fatbin);
		ck_cu(cuModuleLoadFatBinary(&module, &wrapper));
		ck_assert_int_eq(regs_of(module), 24);
		ck_cu(cuModuleUnload(module));
		ck_cu(cuModuleLoadData(&module, fatbin.data));
		ck_assert_int_eq(regs_of(module), 24);
		ck_cu(cuModuleUnload(module));
		buffer_free(&fatbin);
		buffer_free(&cubin);
	}
}
END_TEST

static const char ptx[] = ".version 8.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry small(.param .u64 a) { ret; }\n";

/* Adds a cubin for sm with regs registers. */
static void add_cubin(
        struct buffer *fatbin, int sm, uint64_t flags, unsigned regs)
{
	struct buffer cubin = cubin_with(sm, regs);

	image_fatbin_add(fatbin, IMAGE_IS_CUBIN, sm, flags, cubin.data,
	        cubin.bytes, IMAGE_ZSTD);
	buffer_free(&cubin);
}

/* Device: sm_89. The best cubin has the same major version and the highest
 * minor one that is not above the device's. */
START_TEST(choice_of_image)
{
	struct buffer fatbin = image_fatbin();
	CUmodule module;

	add_cubin(&fatbin, 75, 0x11, 10);
	ck_cu_is(cuModuleLoadData(&module, fatbin.data),
	        CUDA_ERROR_NO_BINARY_FOR_GPU);
	image_fatbin_add(&fatbin, IMAGE_IS_PTX, 70, 0x11, ptx, sizeof(ptx) - 1,
	        IMAGE_ZSTD);
	ck_cu(cuModuleLoadData(&module, fatbin.data));
	ck_assert_int_eq(regs_of(module), 32);
	ck_cu(cuModuleUnload(module));
	add_cubin(&fatbin, 80, 0x11, 20);
	ck_cu(cuModuleLoadData(&module, fatbin.data));
	ck_assert_int_eq(regs_of(module), 20);
	ck_cu(cuModuleUnload(module));
	add_cubin(&fatbin, 89, 0x11, 30);
	add_cubin(&fatbin, 90, 0x11, 40);
	ck_cu(cuModuleLoadData(&module, fatbin.data));
	ck_assert_int_eq(regs_of(module), 30);
	ck_cu(cuModuleUnload(module));
	add_cubin(&fatbin, 89, IMAGE_SPECIFIC, 50);
	ck_cu(cuModuleLoadData(&module, fatbin.data));
	ck_assert_int_eq(regs_of(module), 50);
	ck_cu(cuModuleUnload(module));
	buffer_free(&fatbin);

	/* For one capability only, and not for this one. */
	fatbin = image_fatbin();
	add_cubin(&fatbin, 80, IMAGE_SPECIFIC, 20);
	ck_cu_is(cuModuleLoadData(&module, fatbin.data),
	        CUDA_ERROR_NO_BINARY_FOR_GPU);
	add_cubin(&fatbin, 80, IMAGE_FAMILY, 60);
	ck_cu(cuModuleLoadData(&module, fatbin.data));
	ck_assert_int_eq(regs_of(module), 60);
	ck_cu(cuModuleUnload(module));
	buffer_free(&fatbin);
}
END_TEST

START_TEST(cubin_of_another_generation)
{
	struct buffer cubin = cubin_with(90, 24);
	CUmodule module;

	ck_cu_is(cuModuleLoadData(&module, cubin.data),
	        CUDA_ERROR_NO_BINARY_FOR_GPU);
	buffer_free(&cubin);
}
END_TEST

/* Every shortened form of an image is refused, never read beyond its end. */
static void refuse_truncated(const struct buffer *image)
{
	uint8_t *copy = malloc(image->bytes);
	struct image_file file;
	CUmodule module;
	CUresult r;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, image->data, image->bytes);
	file = file_of(copy, image->bytes);
	ck_cu(cuModuleLoad(&module, file.path));
	ck_cu(cuModuleUnload(module));
	for (size_t bytes = image->bytes; bytes-- > 0;) {
		ck_assert_int_eq(ftruncate(file.fd, (off_t)bytes), 0);
		r = cuModuleLoad(&module, file.path);
		ck_assert_msg(r == CUDA_ERROR_INVALID_IMAGE ||
		                      r == CUDA_ERROR_NO_BINARY_FOR_GPU,
		        "%zu of %zu bytes: %d", bytes, image->bytes, (int)r);
	}
	close(file.fd);
	free(copy);
}

START_TEST(truncated_cubin)
{
	struct buffer cubin = cubin_with(80, 24);

	refuse_truncated(&cubin);
	buffer_free(&cubin);
}
END_TEST

START_TEST(truncated_fat_binary)
{
	struct buffer fatbin = image_fatbin();

	add_cubin(&fatbin, 80, 0x11, 24);
	refuse_truncated(&fatbin);
	buffer_free(&fatbin);
}
END_TEST

/* Payloads cut short inside a container whose sizes agree. */
START_TEST(truncated_payloads)
{
	static const enum image_packing packings[] = {
	        IMAGE_PLAIN, IMAGE_LZ4, IMAGE_ZSTD};
	struct buffer cubin = cubin_with(80, 24);

	for (int i = 0; i < 3; i++) {
		for (size_t bytes = 8; bytes < 240; bytes += 8) {
			struct buffer fatbin = image_fatbin();
			uint64_t payload = bytes, total = 64 + bytes;
			CUmodule module;
			CUresult r;

			image_fatbin_add(&fatbin, IMAGE_IS_CUBIN, 80, 0x11,
			        cubin.data, cubin.bytes, packings[i]);
			memcpy(fatbin.data + 8, &total, 8);
			memcpy(fatbin.data + 24, &payload, 8);
			if (packings[i] != IMAGE_PLAIN)
				memcpy(fatbin.data + 32, &bytes, 4);
			/* Exactly as long, so that a read past it shows. */
			fatbin.data = realloc(fatbin.data, 16 + total);
			ck_assert_ptr_nonnull(fatbin.data);
			r = cuModuleLoadData(&module, fatbin.data);
			ck_assert_int_eq((int)r, CUDA_ERROR_INVALID_IMAGE);
			buffer_free(&fatbin);
		}
	}
	buffer_free(&cubin);
}
END_TEST

/* Bytes changed anywhere: any result, but no crash (see the ASan build). */
static void survive_damage(const struct buffer *image)
{
	static const uint8_t masks[] = {0xff, 0x80, 0x01};
	struct image_file file = file_of(image->data, image->bytes);
	unsigned loaded = 0, refused = 0;

	for (size_t i = 0; i < image->bytes; i++) {
		for (int m = 0; m < 3; m++) {
			uint8_t byte = image->data[i] ^ masks[m];
			CUmodule module;

			ck_assert_int_eq(
			        pwrite(file.fd, &byte, 1, (off_t)i), 1);
			if (cuModuleLoad(&module, file.path) == CUDA_SUCCESS) {
				ck_cu(cuModuleUnload(module));
				loaded++;
			} else {
				refused++;
			}
		}
		ck_assert_int_eq(
		        pwrite(file.fd, &image->data[i], 1, (off_t)i), 1);
	}
	/* Some bytes matter, some do not. */
	ck_assert_uint_gt(loaded, 0);
	ck_assert_uint_gt(refused, 0);
	close(file.fd);
}

START_TEST(damaged_cubin)
{
	struct buffer cubin = cubin_with(80, 24);

	survive_damage(&cubin);
	buffer_free(&cubin);
}
END_TEST

START_TEST(damaged_fat_binary)
{
	struct buffer fatbin = image_fatbin();

	add_cubin(&fatbin, 80, 0x11, 24);
	image_fatbin_add(&fatbin, IMAGE_IS_PTX, 70, 0x11, ptx, sizeof(ptx) - 1,
	        IMAGE_LZ4);
	survive_damage(&fatbin);
	buffer_free(&fatbin);
}
END_TEST

START_TEST(not_an_image)
{
	struct image_file file = file_of("hello", 5);
	CUmodule module;

	ck_cu_is(cuModuleLoadData(&module, "hello"), CUDA_ERROR_INVALID_IMAGE);
	ck_cu_is(cuModuleLoadData(&module, ""), CUDA_ERROR_INVALID_IMAGE);
	ck_cu_is(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_cu_is(cuModuleLoad(&module, file.path), CUDA_ERROR_INVALID_IMAGE);
	ck_cu_is(cuModuleLoad(&module, "/nonexistent/image"),
	        CUDA_ERROR_FILE_NOT_FOUND);
	close(file.fd);
}
END_TEST

static void setup(void)
{
	use_device();
}

int main(void)
{
	Suite *suite = suite_create("code_fatbin");
	TCase *tests = tcase_create("images");

	tcase_add_checked_fixture(tests, setup, leave_device);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, cubin_layout);
	tcase_add_test(tests, packed_fat_binaries);
	tcase_add_test(tests, choice_of_image);
	tcase_add_test(tests, cubin_of_another_generation);
	tcase_add_test(tests, truncated_cubin);
	tcase_add_test(tests, truncated_fat_binary);
	tcase_add_test(tests, truncated_payloads);
	tcase_add_test(tests, damaged_cubin);
	tcase_add_test(tests, damaged_fat_binary);
	tcase_add_test(tests, not_an_image);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
