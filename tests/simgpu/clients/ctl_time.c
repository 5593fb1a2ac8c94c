/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Virtual time: what copies and sets take, alone and side by side, against the
 * numbers of the device model.
 */
#include "ctl_client.h"

#include <jansson.h>
#include <stdio.h>

#define NEAR(value, wanted) ck_assert_double_eq_tol(value, wanted, 0.01)

static double model_number(const char *model, const char *key)
{
	char path[512];
	json_error_t error;
	json_t *root;
	double value;

	snprintf(path, sizeof(path), MODEL_DIR "/%s.json", model);
	root = json_load_file(path, 0, &error);
	ck_assert_msg(root != NULL, "%s", error.text);
	value = json_number_value(json_object_get(root, key));
	ck_assert_double_gt(value, 0);
	json_decref(root);
	return value;
}

static const char *const models[] = {
        "a100-80g-pcie4", "a100-80g-pcie4-duplex", "titan-x"};

START_TEST(a_copy_alone_takes_latency_and_bytes)
{
	const char *model = models[_i];
	const double bytes = (double)COPY_BYTES;
	CUevent before, between, after;
	double latency, host, us;
	CUstream stream;
	CUdeviceptr a;
	void *p;

	client_start(model);
	stream = client_stream(CU_STREAM_NON_BLOCKING);
	a = client_device(COPY_BYTES);
	p = client_pinned(COPY_BYTES);
	before = client_mark(stream);
	OK(cuMemcpyHtoDAsync_v2(a, p, COPY_BYTES, stream));
	between = client_mark(stream);
	OK(cuMemcpyDtoHAsync_v2(p, a, COPY_BYTES, stream));
	after = client_mark(stream);
	latency = model_number(model, "copy_latency_ns") / 1e3;
	/* The host comes to the copy that much later than to the event. */
	host = model_number(model, "copy_host_ns") / 1e3;
	us = bytes / model_number(model, "h2d_bytes_per_s") * 1e6;
	NEAR(client_us(before, between), host + latency + us);
	us = bytes / model_number(model, "d2h_bytes_per_s") * 1e6;
	NEAR(client_us(between, after), latency + us);
}
END_TEST

/* Two copies, one each way, the second a little later. While both move bytes
 * each has its slower rate; the one left alone is fast again. */
START_TEST(both_ways_slow_each_other_exactly_while_they_overlap)
{
	const char *model = models[_i];
	double h2d, d2h, h2d_both, d2h_both, latency, host, late;
	double h2d_alone_bytes, h2d_both_s, d2h_left, d2h_us;
	CUevent up0, up1, down0, down1;
	CUdeviceptr a, b;
	CUstream up, down;
	void *p, *q;

	client_start(model);
	up = client_stream(CU_STREAM_NON_BLOCKING);
	down = client_stream(CU_STREAM_NON_BLOCKING);
	a = client_device(COPY_BYTES);
	b = client_device(3 * COPY_BYTES);
	p = client_pinned(COPY_BYTES);
	q = client_pinned(3 * COPY_BYTES);
	up0 = client_mark(up);
	OK(cuMemcpyHtoDAsync_v2(a, p, COPY_BYTES, up));
	up1 = client_mark(up);
	down0 = client_mark(down);
	OK(cuMemcpyDtoHAsync_v2(q, b, 3 * COPY_BYTES, down));
	down1 = client_mark(down);

	h2d = model_number(model, "h2d_bytes_per_s");
	d2h = model_number(model, "d2h_bytes_per_s");
	h2d_both = model_number(model, "h2d_both_bytes_per_s");
	d2h_both = model_number(model, "d2h_both_bytes_per_s");
	latency = model_number(model, "copy_latency_ns") / 1e3;
	host = model_number(model, "copy_host_ns") / 1e3;
	late = client_us(up0, down0);
	ck_assert_double_gt(late, 0);
	/* Upwards: alone until the other starts, then both. */
	h2d_alone_bytes = h2d * late / 1e6;
	h2d_both_s = ((double)COPY_BYTES - h2d_alone_bytes) / h2d_both;
	NEAR(client_us(up0, up1), host + latency + late + h2d_both_s * 1e6);
	/* Downwards: both until the first ends, then alone. */
	d2h_left = 3 * (double)COPY_BYTES - d2h_both * h2d_both_s;
	d2h_us = h2d_both_s * 1e6 + d2h_left / d2h * 1e6;
	NEAR(client_us(down0, down1), host + latency + d2h_us);
}
END_TEST

START_TEST(one_way_takes_turns)
{
	const char *model = models[0];
	CUstream first, second;
	CUevent begin, end1, end2;
	CUdeviceptr a;
	void *p;

	client_start(model);
	first = client_stream(CU_STREAM_NON_BLOCKING);
	second = client_stream(CU_STREAM_NON_BLOCKING);
	a = client_device(2 * COPY_BYTES);
	p = client_pinned(2 * COPY_BYTES);
	begin = client_mark(first);
	OK(cuMemcpyHtoDAsync_v2(a, p, COPY_BYTES, first));
	end1 = client_mark(first);
	OK(cuMemcpyHtoDAsync_v2(a + COPY_BYTES, p, COPY_BYTES, second));
	end2 = client_mark(second);
	NEAR(client_us(begin, end1), 5 + 10 + 2000);
	NEAR(client_us(end1, end2), 10 + 2000);
}
END_TEST

START_TEST(sets_and_device_copies_take_memory_time)
{
	const char *model = models[0];
	CUstream stream;
	CUevent m0, m1, m2;
	CUdeviceptr a;
	double rate, kernel;

	client_start(model);
	stream = client_stream(CU_STREAM_NON_BLOCKING);
	a = client_device(2 * SET_BYTES);
	rate = model_number(model, "memory_bytes_per_s") *
	       model_number(model, "memory_efficiency");
	kernel = model_number(model, "kernel_latency_ns") / 1e3;
	/* The host is well ahead of the device after the first set. */
	OK(cuMemsetD8Async(a, 1, 2 * SET_BYTES, stream));
	m0 = client_mark(stream);
	OK(cuMemsetD8Async(a, 1, SET_BYTES, stream));
	m1 = client_mark(stream);
	OK(cuMemcpyDtoDAsync_v2(a + SET_BYTES, a, SET_BYTES, stream));
	m2 = client_mark(stream);
	NEAR(client_us(m0, m1), kernel + (double)SET_BYTES / rate * 1e6);
	NEAR(client_us(m1, m2), kernel + 2 * (double)SET_BYTES / rate * 1e6);
}
END_TEST

/* Copies, the compute engine and both ways of the link run side by side. */
START_TEST(engines_overlap)
{
	CUstream up, work;
	CUevent u0, u1, w0, w1;
	CUdeviceptr a;
	void *p;

	client_start(models[0]);
	up = client_stream(CU_STREAM_NON_BLOCKING);
	work = client_stream(CU_STREAM_NON_BLOCKING);
	a = client_device(SET_BYTES + COPY_BYTES);
	p = client_pinned(COPY_BYTES);
	u0 = client_mark(up);
	OK(cuMemcpyHtoDAsync_v2(a + SET_BYTES, p, COPY_BYTES, up));
	u1 = client_mark(up);
	w0 = client_mark(work);
	for (int i = 0; i < 16; i++)
		OK(cuMemsetD8Async(a, 0, SET_BYTES, work));
	w1 = client_mark(work);
	NEAR(client_us(u0, u1), 5 + 10 + 2000);
	ck_assert_double_gt(client_us(w0, w1), 1900);
	ck_assert_double_lt(client_us(u0, w1), client_us(w0, w1) + 100);
}
END_TEST

START_TEST(a_higher_priority_goes_first)
{
	CUstream busy, low, high;
	CUevent e_low, e_high;
	CUdeviceptr a;
	int least, greatest;

	client_start(models[0]);
	OK(cuCtxGetStreamPriorityRange(&least, &greatest));
	ck_assert_int_lt(greatest, least);
	busy = client_stream(CU_STREAM_NON_BLOCKING);
	OK(cuStreamCreateWithPriority(&low, CU_STREAM_NON_BLOCKING, least));
	OK(cuStreamCreateWithPriority(&high, CU_STREAM_NON_BLOCKING, greatest));
	a = client_device(SET_BYTES);
	OK(cuMemsetD8Async(a, 0, SET_BYTES, busy));
	OK(cuMemsetD8Async(a, 0, SET_BYTES, low));
	e_low = client_mark(low);
	OK(cuMemsetD8Async(a, 0, SET_BYTES, high));
	e_high = client_mark(high);
	ck_assert_double_gt(client_us(e_high, e_low), 100);
}
END_TEST

/* A stream takes 1024 ops, then the host waits: memory stays flat. */
START_TEST(millions_of_ops_stay_cheap)
{
	CUstream stream;
	CUdeviceptr a;

	client_start(models[0]);
	stream = client_stream(CU_STREAM_NON_BLOCKING);
	a = client_device(1 << 20);
	for (int i = 0; i < 300000; i++)
		OK(cuMemsetD8Async(a, 0, 1 << 20, stream));
	FAILS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	OK(cuStreamSynchronize(stream));
	OK(cuStreamQuery(stream));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl_time");
	TCase *tests = tcase_create("all");

	tcase_set_timeout(tests, 60);
	tcase_add_loop_test(tests, a_copy_alone_takes_latency_and_bytes, 0, 3);
	tcase_add_loop_test(tests,
	        both_ways_slow_each_other_exactly_while_they_overlap, 0, 3);
	tcase_add_test(tests, one_way_takes_turns);
	tcase_add_test(tests, sets_and_device_copies_take_memory_time);
	tcase_add_test(tests, engines_overlap);
	tcase_add_test(tests, a_higher_priority_goes_first);
	tcase_add_test(tests, millions_of_ops_stay_cheap);
	suite_add_tcase(suite, tests);
	return client_run(suite);
}
