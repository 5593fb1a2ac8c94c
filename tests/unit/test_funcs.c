/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/funcs.h"

#include <pthread.h>
#include <stdio.h>

#include "tests/unit/suite.h"

#define HANDLES 5000u
#define THREADS 3

/* Code that was loaded: what a handle is called depends on when it was. */
static _Atomic unsigned int loads;
static _Atomic unsigned int asked;
static __thread char told[64];

static CUfunction handle_of(uintptr_t number)
{
	/* As an allocator's: multiples of 16. */
	return (CUfunction)(0x7f0000001000 + number * 16);
}

static uintptr_t number_of(CUfunction handle)
{
	return ((uintptr_t)handle - 0x7f0000001000) / 16;
}

static CUresult func_name(const char **ret_name, CUfunction handle)
{
	asked++;
	snprintf(told, sizeof(told), "k%zu_%u", (size_t)number_of(handle),
	        (unsigned int)loads);
	*ret_name = told;
	return CUDA_SUCCESS;
}

/* As many parameters as the last digit says. */
static CUresult func_param_info(
        CUfunction handle, size_t index, size_t *ret_offset, size_t *ret_bytes)
{
	if (index >= number_of(handle) % 10)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_offset = 8 * index;
	*ret_bytes = 8;
	return CUDA_SUCCESS;
}

static CUresult kernel_param_info(
        CUkernel kernel, size_t index, size_t *ret_offset, size_t *ret_bytes)
{
	return CUDA_ERROR_INVALID_HANDLE;
}

static CUresult kernel_name(const char **ret_name, CUkernel kernel)
{
	return CUDA_ERROR_INVALID_HANDLE;
}

static const struct ts_gpu_ops ops = {.func_name = func_name,
        .func_param_info = func_param_info,
        .kernel_param_info = kernel_param_info,
        .kernel_name = kernel_name};

static struct ts_funcs funcs;

static void start(void)
{
	loads = 0;
	asked = 0;
	ts_funcs_init(&funcs, &ops);
}

static void check_name(uintptr_t number, unsigned int load)
{
	const struct ts_func *func = ts_funcs_get(&funcs, handle_of(number));
	char name[64];

	ck_assert_ptr_nonnull(func);
	snprintf(name, sizeof(name), "k%zu_%u", (size_t)number, load);
	ck_assert_str_eq(func->name, name);
	ck_assert_uint_eq(func->param_count, number % 10);
}

START_TEST(function_is_asked_for_once)
{
	const struct ts_func *first;

	start();
	first = ts_funcs_get(&funcs, handle_of(7));
	for (int i = 0; i < 100; i++)
		ck_assert_ptr_eq(ts_funcs_get(&funcs, handle_of(7)), first);
	ck_assert_uint_eq(asked, 1);
	ck_assert_uint_eq(first->number, 0);
	ck_assert_uint_eq(ts_funcs_get(&funcs, handle_of(8))->number, 1);
	ts_funcs_finish(&funcs);
}
END_TEST

START_TEST(more_functions_than_are_found_fast_are_all_right)
{
	start();
	for (unsigned int round = 0; round < 2; round++)
		for (uintptr_t i = 0; i < HANDLES; i++)
			check_name(i, 0);
	ck_assert_uint_eq(asked, HANDLES);
	ts_funcs_finish(&funcs);
}
END_TEST

START_TEST(handle_that_comes_again_after_an_unload_is_another_function)
{
	const struct ts_func *first;

	start();
	first = ts_funcs_get(&funcs, handle_of(3));
	loads++;
	ts_funcs_forget_handles(&funcs);
	check_name(3, 1);
	check_name(3, 1);
	ck_assert_uint_eq(asked, 2);
	/* The tape may still point to it. */
	ck_assert_str_eq(first->name, "k3_0");
	ts_funcs_finish(&funcs);
}
END_TEST

/* Each thread's own handles, while another unloads code all the time. */
static void *look_up(void *data)
{
	uintptr_t first = (uintptr_t)data * 100;

	for (int round = 0; round < 300; round++)
		for (uintptr_t i = first; i < first + 20; i++) {
			const struct ts_func *func =
			        ts_funcs_get(&funcs, handle_of(i));
			size_t number = 0;

			if (!func ||
			        sscanf(func->name, "k%zu_", &number) != 1 ||
			        number != i)
				return "wrong function";
		}
	return NULL;
}

START_TEST(threads_find_their_functions_while_code_is_unloaded)
{
	pthread_t threads[THREADS];
	void *wrong;

	start();
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(
		        pthread_create(&threads[i], NULL, look_up, (void *)i),
		        0);
	for (int i = 0; i < 50; i++) {
		loads++;
		ts_funcs_forget_handles(&funcs);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &wrong);
		ck_assert_ptr_null(wrong);
	}
	ts_funcs_finish(&funcs);
}
END_TEST

static void add(TCase *tests)
{
	tcase_add_test(tests, function_is_asked_for_once);
	tcase_add_test(tests, more_functions_than_are_found_fast_are_all_right);
	tcase_add_test(tests,
	        handle_that_comes_again_after_an_unload_is_another_function);
	tcase_add_test(
	        tests, threads_find_their_functions_while_code_is_unloaded);
}

int main(void)
{
	return run_suite("funcs", add);
}
