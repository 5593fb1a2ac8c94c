/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parameter layouts out of cubins, fat binaries and PTX, damaged ones too. */
#include "agent/code.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/cubin.h"
#include "tests/simgpu/clients/code_images.h"
#include "tests/unit/suite.h"

#define MANY 700u

static const uint32_t mixed[] = {8, 4, 2, 8};
static const uint32_t large[] = {6000, 8, 4};

/* What was told, a line a kernel: "name(offset:bytes ...)". */
static char told[4096];

static void note(void *context, const char *name, size_t length,
        const struct ts_param *params, size_t count)
{
	size_t used = strlen(told);

	ck_assert_ptr_null(context);
	used += (size_t)snprintf(
	        told + used, sizeof(told) - used, "%.*s(", (int)length, name);
	for (size_t i = 0; i < count && i < 8; i++)
		used += (size_t)snprintf(told + used, sizeof(told) - used,
		        "%s%u:%u", i ? " " : "", params[i].offset,
		        params[i].bytes);
	snprintf(told + used, sizeof(told) - used, ")\n");
}

static int read_code(const void *code, size_t bytes, int sm)
{
	*told = '\0';
	return ts_code_read(code, bytes, sm, note, NULL);
}

static struct buffer make_cubin(int sm, const char *extra)
{
	const struct image_kernel kernels[] = {
	        {.name = "mixed", .param_bytes = mixed, .n_params = 4},
	        {.name = "large", .param_bytes = large, .n_params = 3},
	        {.name = "none"},
	        {.name = extra},
	};

	return image_cubin(sm, kernels, extra ? 4 : 3, NULL, 0);
}

#define BOTH "mixed(0:8 8:4 12:2 16:8)\nlarge(0:6000 6000:8 6008:4)\nnone()\n"

START_TEST(layouts_of_a_cubin)
{
	struct buffer cubin = make_cubin(80, NULL);

	ck_assert_int_eq(read_code(cubin.data, cubin.bytes, 80), 0);
	ck_assert_str_eq(told, BOTH);
	ck_assert_int_eq(read_code(cubin.data, SIZE_MAX, 80), 0);
	ck_assert_str_eq(told, BOTH);
	buffer_free(&cubin);
}
END_TEST

START_TEST(image_of_the_device_out_of_a_fat_binary)
{
	static const enum image_packing ways[] = {
	        IMAGE_PLAIN, IMAGE_LZ4, IMAGE_ZSTD};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct buffer fatbin = image_fatbin();
		struct image_wrapper wrapper;

		for (int sm = 70; sm <= 90; sm += 10) {
			char name[32];
			struct buffer cubin;

			snprintf(name, sizeof(name), "only_%d", sm);
			cubin = make_cubin(sm, name);
			image_fatbin_add(&fatbin, IMAGE_IS_CUBIN, sm, 0,
			        cubin.data, cubin.bytes, ways[i]);
			buffer_free(&cubin);
		}
		ck_assert_int_eq(read_code(fatbin.data, fatbin.bytes, 86), 0);
		ck_assert_str_eq(told, BOTH "only_80()\n");
		wrapper = image_wrap(&fatbin);
		ck_assert_int_eq(read_code(&wrapper, SIZE_MAX, 90), 0);
		ck_assert_str_eq(told, BOTH "only_90()\n");
		/* Of one that none is for: layouts are the same. */
		ck_assert_int_eq(read_code(&wrapper, SIZE_MAX, 120), 0);
		ck_assert_int_eq(strncmp(told, BOTH, strlen(BOTH)), 0);
		/* What was read from a file has no pointers. */
		ck_assert_int_eq(
		        read_code(&wrapper, sizeof(wrapper), 90), -EINVAL);
		buffer_free(&fatbin);
	}
}
END_TEST

START_TEST(layouts_of_ptx)
{
	static const char text[] =
	        ".version 8.0\n.target sm_80\n.address_size 64\n"
	        "// no .param here, nor a kernel: entry\n"
	        ".visible .entry first(\n"
	        "\t.param .u64 first_0,\n"
	        "\t.param .u8 first_1,\n"
	        "\t.param .align 16 .b8 first_2[20],\n"
	        "\t.param .u64 .ptr .global .align 1 first_3,\n"
	        "\t.param .f16 first_4\n"
	        ")\n.maxntid 128, 1, 1\n{ ret; }\n"
	        ".entry second()\n{ ret; }\n.entry third\n{ ret; }\n"
	        ".entry fourth ( .param .b32 x[3] ) { ret; }\n";
	struct buffer fatbin = image_fatbin();

	ck_assert_int_eq(read_code(text, SIZE_MAX, 80), 0);
	ck_assert_str_eq(told,
	        "first(0:8 8:1 16:20 40:8 48:2)\nsecond()\nthird()\n"
	        "fourth(0:12)\n");
	image_fatbin_add(
	        &fatbin, IMAGE_IS_PTX, 80, 0, text, sizeof(text), IMAGE_ZSTD);
	*told = '\0';
	ck_assert_int_eq(read_code(fatbin.data, fatbin.bytes, 90), 0);
	ck_assert_int_eq(strncmp(told, "first(0:8", 9), 0);
	buffer_free(&fatbin);
	ck_assert_int_eq(
	        read_code(".entry a(.param .u6 x)", SIZE_MAX, 80), -EINVAL);
	ck_assert_int_eq(
	        read_code(".entry a(.param .u64 x", SIZE_MAX, 80), -EINVAL);
}
END_TEST

START_TEST(comments_of_ptx_have_no_kernels)
{
	static const char text[] =
	        "// not one: .entry at_all\n"
	        ".file 1 \"/a//.entry/b/*.cu\"\n"
	        "/* .entry neither(.param .x\n.entry nor */\n"
	        ".entry first( // takes (one,\n"
	        "\t.param .u64/* of */first_0 /* , */\n) { ret; }\n"
	        ".entry second() { ret; } // .entry";

	ck_assert_int_eq(read_code(text, SIZE_MAX, 80), 0);
	ck_assert_str_eq(told, "first(0:8)\nsecond()\n");
}
END_TEST

START_TEST(one_kernel_that_cannot_be_read_hides_no_other)
{
	static const char text[] = ".entry first(.param .u6 x)\n"
	                           ".entry second(.param .u32 y)";
	/* A record without an ordinal that could be: of the first kernel. */
	const uint16_t wrong = 0xffff;
	struct buffer cubin = make_cubin(80, NULL);
	uint8_t *record =
	        memmem(cubin.data, cubin.bytes, (uint8_t[]){4, 0x17, 12, 0}, 4);

	ck_assert_int_eq(read_code(text, SIZE_MAX, 80), -EINVAL);
	ck_assert_str_eq(told, "second(0:4)\n");
	ck_assert_ptr_nonnull(record);
	memcpy(record + 8, &wrong, sizeof(wrong));
	ck_assert_int_eq(read_code(cubin.data, cubin.bytes, 80), -EINVAL);
	ck_assert_str_eq(told, strchr(BOTH, '\n') + 1);
	buffer_free(&cubin);
}
END_TEST

static void ignore(void *context, const char *name, size_t length,
        const struct ts_param *params, size_t count)
{
	size_t *sum = context;

	/* What is told can be read. */
	for (size_t i = 0; i < length; i++)
		*sum += (size_t)name[i];
	for (size_t i = 0; i < count; i++)
		*sum += params[i].offset;
}

/* Each end, and each byte changed: no more than an error. */
START_TEST(damaged_code_does_no_harm)
{
	struct buffer cubin = make_cubin(80, NULL), fatbin = image_fatbin();
	size_t sum = 0, refused = 0;

	image_fatbin_add(&fatbin, IMAGE_IS_CUBIN, 80, 0, cubin.data,
	        cubin.bytes, IMAGE_ZSTD);
	for (int which = 0; which < 2; which++) {
		struct buffer *whole = which ? &fatbin : &cubin;

		for (size_t i = 0; i < whole->bytes; i++) {
			/* Of its own, so that a sanitizer sees its end. */
			uint8_t *part = malloc(i + 1);

			ck_assert_ptr_nonnull(part);
			memcpy(part, whole->data, i);
			refused += ts_code_read(part, i, 80, ignore, &sum) < 0;
			free(part);
			part = malloc(whole->bytes);
			ck_assert_ptr_nonnull(part);
			memcpy(part, whole->data, whole->bytes);
			part[i] ^= 0xff;
			ts_code_read(part, whole->bytes, 80, ignore, &sum);
			free(part);
		}
	}
	ck_assert_uint_gt(refused, cubin.bytes / 2);
	buffer_free(&cubin);
	buffer_free(&fatbin);
}
END_TEST

static int handles[8];

static bool find(struct ts_code *code, const void *handle, const char *name,
        size_t count)
{
	struct ts_param params[8];
	size_t found = 0;
	char *called;
	bool known = ts_code_find(code, handle, &called, params, 8, &found);

	if (called || name)
		ck_assert_str_eq(called ? called : "?", name ? name : "?");
	free(called);
	if (known)
		ck_assert_uint_eq(found, count);
	return known;
}

START_TEST(functions_are_known_by_their_modules)
{
	struct buffer cubin = make_cubin(80, NULL), other;
	const void *library = &handles[0], *module = &handles[1];
	const void *kernel = &handles[2], *function = &handles[3];
	const struct image_kernel two[] = {
	        {.name = "mixed", .param_bytes = mixed, .n_params = 2}};
	struct ts_code code;

	other = image_cubin(80, two, 1, NULL, 0);
	ts_code_init(&code);
	ck_assert_int_eq(
	        ts_code_loaded(&code, library, cubin.data, cubin.bytes, 80), 0);
	ts_code_named(&code, kernel, library, "mixed");
	ck_assert(find(&code, kernel, "mixed", 4));
	ts_code_same(&code, function, kernel);
	ck_assert(find(&code, function, "mixed", 4));
	/* Triton gives kernels of several modules one name. */
	ck_assert_int_eq(
	        ts_code_loaded(&code, module, other.data, other.bytes, 80), 0);
	ts_code_named(&code, &handles[4], module, "mixed");
	ck_assert(find(&code, &handles[4], "mixed", 2));
	ck_assert(find(&code, kernel, "mixed", 4));
	/* A module of a library has its kernels, and outlives it. */
	ts_code_shared(&code, &handles[5], library);
	ts_code_unloaded(&code, library);
	ts_code_named(&code, &handles[6], &handles[5], "large");
	ck_assert(find(&code, &handles[6], "large", 3));
	/* What was the library's own is gone, what was not is not. */
	ck_assert(!find(&code, kernel, NULL, 0));
	ck_assert(!find(&code, function, NULL, 0));
	ck_assert(find(&code, &handles[4], "mixed", 2));
	/* A name is known where a layout is not. */
	ts_code_named(&code, kernel, library, "mixed");
	ck_assert(!find(&code, kernel, "mixed", 0));
	ck_assert(!find(&code, &handles[7], NULL, 0));
	/* A handle that comes again is what it is now, or unknown. */
	ts_code_named(&code, &handles[6], library, "other");
	ck_assert(!find(&code, &handles[6], "other", 0));
	ts_code_same(&code, &handles[4], &handles[7]);
	ck_assert(!find(&code, &handles[4], NULL, 0));
	ts_code_finish(&code);
	buffer_free(&cubin);
	buffer_free(&other);
}
END_TEST

START_TEST(more_parameters_than_there_is_room_for)
{
	static uint32_t bytes[MANY];
	const struct image_kernel kernel = {
	        .name = "many", .param_bytes = bytes, .n_params = MANY};
	struct ts_param params[8];
	struct buffer cubin;
	struct ts_code code;
	size_t count;
	char *name;

	for (size_t i = 0; i < MANY; i++)
		bytes[i] = 4;
	cubin = image_cubin(80, &kernel, 1, NULL, 0);
	ts_code_init(&code);
	ck_assert_int_eq(
	        ts_code_loaded(&code, &handles[0], cubin.data, cubin.bytes, 80),
	        0);
	ts_code_named(&code, &handles[1], &handles[0], "many");
	ck_assert(!ts_code_find(&code, &handles[1], &name, params, 8, &count));
	ck_assert_str_eq(name, "many");
	free(name);
	ts_code_finish(&code);
	buffer_free(&cubin);
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(tests, layouts_of_a_cubin);
	tcase_add_test(tests, image_of_the_device_out_of_a_fat_binary);
	tcase_add_test(tests, layouts_of_ptx);
	tcase_add_test(tests, comments_of_ptx_have_no_kernels);
	tcase_add_test(tests, one_kernel_that_cannot_be_read_hides_no_other);
	tcase_add_test(tests, damaged_code_does_no_harm);
	tcase_add_test(tests, functions_are_known_by_their_modules);
	tcase_add_test(tests, more_parameters_than_there_is_room_for);
}

int main(void)
{
	return run_suite("code", add_tests);
}
