/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Race detection between a copy and the host: the CPU reads page-locked memory
 * before anybody has waited for the copy into it. Seen with tagged content.
 */
#include "race_client.h"

#include <sys/syscall.h>

#define BYTES (4 * MIB)

static bool synchronises, small_part;
static volatile unsigned char sink;

static void read_after_copy(void)
{
	CUstream stream;
	CUdeviceptr p;
	unsigned char *host;

	client_start();
	stream = race_stream(CU_STREAM_NON_BLOCKING);
	p = race_device(BYTES);
	host = race_pinned(BYTES);
	OK(cuMemsetD8Async(p, 7, BYTES, stream));
	OK(cuMemcpyDtoHAsync(host, p, small_part ? BYTES / 2 : BYTES, stream));
	if (synchronises)
		OK(cuStreamSynchronize(stream));
	sink = host[small_part ? BYTES - 1 : 12345];
	OK(cuCtxSynchronize());
	sink = host[BYTES / 2];
}

static json_int_t races(void)
{
	json_t *report = race_report(read_after_copy, "SIMGPU_CONTENT", "tags");
	json_int_t count = race_number(report, "races");
	json_t *texts = json_object_get(report, "race_texts");

	ck_assert_int_eq(race_number(report, "possible_races"), 0);
	if (count)
		ck_assert_ptr_nonnull(
		        strstr(json_string_value(json_array_get(texts, 0)),
		                "the host touches"));
	json_decref(report);
	return count;
}

START_TEST(reading_before_waiting_is_a_race)
{
	ck_assert_int_eq(races(), 1);
}
END_TEST

START_TEST(reading_after_waiting_is_none)
{
	synchronises = true;
	ck_assert_int_eq(races(), 0);
}
END_TEST

START_TEST(reading_beside_the_copy_is_none)
{
	small_part = true;
	ck_assert_int_eq(races(), 0);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("race_host");
	int fd = (int)syscall(SYS_userfaultfd, 0);

	if (fd < 0)
		return 77; /* the kernel does not let us see touches */
	close(fd);
	tcase_add_test(tests, reading_before_waiting_is_a_race);
	tcase_add_test(tests, reading_after_waiting_is_none);
	tcase_add_test(tests, reading_beside_the_copy_is_none);
	return client_run(tests, "race_host");
}
