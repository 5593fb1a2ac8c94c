/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ranks of the simulated NCCL: two devices of one thread in groups, and two
 * processes with one rank each. SIMGPU_DEVICES=2; what is sent is uploaded, so
 * that the same numbers come of tagged and of exact content.
 */
#include "race_client.h"
#include "tests/simgpu/nccl/nccl_api.h"

#define RANKS      2
#define COUNT      1024u /* elements of what a rank gives another */
#define DONE(call) ck_assert_int_eq((int)(call), ncclSuccess)

static CUcontext ctx[RANKS];
static CUstream stream[RANKS];
static CUdeviceptr from[RANKS], to[RANKS]; /* RANKS * COUNT floats each */
static ncclComm_t comm[RANKS];

/* Element i of what a rank holds before. */
static float given(int rank, unsigned i)
{
	return (float)(rank + 1) * 1000 + (float)i;
}

static void start_rank(int rank, int device)
{
	float values[RANKS * COUNT];

	OK(cuDevicePrimaryCtxRetain(&ctx[rank], device));
	OK(cuCtxSetCurrent(ctx[rank]));
	OK(cuStreamCreate(&stream[rank], CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&from[rank], sizeof(values)));
	OK(cuMemAlloc(&to[rank], sizeof(values)));
	for (unsigned i = 0; i < RANKS * COUNT; i++)
		values[i] = given(rank, i);
	OK(cuMemcpyHtoD(from[rank], values, sizeof(values)));
	OK(cuMemsetD32(to[rank], 0, RANKS * COUNT));
	OK(cuCtxSynchronize());
}

static void start(void)
{
	OK(cuInit(0));
	for (int i = 0; i < RANKS; i++)
		start_rank(i, i);
	DONE(ncclCommInitAll(comm, RANKS, NULL));
}

static uint32_t word(int rank, unsigned i)
{
	uint32_t bits;

	OK(cuCtxSetCurrent(ctx[rank]));
	OK(cuMemcpyDtoHAsync(&bits, to[rank] + i * sizeof(bits), sizeof(bits),
	        stream[rank]));
	OK(cuStreamSynchronize(stream[rank]));
	return bits;
}

static void holds(int rank, unsigned i, float value)
{
	uint32_t bits = word(rank, i);
	float found;

	memcpy(&found, &bits, sizeof(found));
	ck_assert_float_eq(found, value);
}

/* The same call of each rank, in a group. */
#define EACH(call)                                                             \
	do {                                                                   \
		DONE(ncclGroupStart());                                        \
		for (int r = 0; r < RANKS; r++)                                \
			DONE(call);                                            \
		DONE(ncclGroupEnd());                                          \
	} while (0)
#define FROM(r) ((const void *)(uintptr_t)from[r])
#define TO(r)   ((void *)(uintptr_t)to[r])

START_TEST(ranks_know_their_places)
{
	int number, version;

	start();
	for (int i = 0; i < RANKS; i++) {
		DONE(ncclCommCount(comm[i], &number));
		ck_assert_int_eq(number, RANKS);
		DONE(ncclCommUserRank(comm[i], &number));
		ck_assert_int_eq(number, i);
		DONE(ncclCommCuDevice(comm[i], &number));
		ck_assert_int_eq(number, i);
	}
	DONE(ncclGetVersion(&version));
	ck_assert_int_ge(version, 20000);
	for (int i = 0; i < RANKS; i++)
		DONE(ncclCommDestroy(comm[i]));
}
END_TEST

START_TEST(reductions)
{
	static const float of_5[] = {3010, 1005.f * 2005.f, 2005, 1005, 1505};

	start();
	for (int op = ncclSum; op <= ncclAvg; op++) {
		EACH(ncclAllReduce(FROM(r), TO(r), COUNT, ncclFloat32,
		        (ncclRedOp_t)op, comm[r], stream[r]));
		for (int i = 0; i < RANKS; i++) {
			holds(i, 5, of_5[op]);
			holds(i, COUNT, 0);
		}
	}
	EACH(ncclReduce(FROM(r), TO(r), COUNT, ncclFloat32, ncclMax, 1, comm[r],
	        stream[r]));
	holds(0, 7, 1507);
	holds(1, 7, 2007);
	EACH(ncclReduceScatter(FROM(r), TO(r), COUNT, ncclFloat32, ncclSum,
	        comm[r], stream[r]));
	holds(0, 7, 3014);
	holds(1, 7, 3014 + 2 * COUNT);
}
END_TEST

START_TEST(what_is_only_moved)
{
	start();
	EACH(ncclBroadcast(
	        FROM(r), TO(r), COUNT, ncclFloat32, 1, comm[r], stream[r]));
	holds(0, 3, given(1, 3));
	holds(1, 3, given(1, 3));
	EACH(ncclAllGather(
	        FROM(r), TO(r), COUNT, ncclFloat32, comm[r], stream[r]));
	holds(0, COUNT + 3, given(1, 3));
	holds(1, 3, given(0, 3));
	EACH(ncclAlltoAll(
	        FROM(r), TO(r), COUNT, ncclFloat32, comm[r], stream[r]));
	holds(0, COUNT + 3, given(1, 3));
	holds(1, 3, given(0, COUNT + 3));
	EACH(ncclGather(
	        FROM(r), TO(r), COUNT, ncclFloat32, 0, comm[r], stream[r]));
	holds(0, COUNT + 4, given(1, 4));
	EACH(ncclScatter(
	        FROM(r), TO(r), COUNT, ncclFloat32, 0, comm[r], stream[r]));
	holds(1, 4, given(0, COUNT + 4));
	DONE(ncclGroupStart());
	for (int r = 0; r < RANKS; r++) {
		DONE(ncclSend(FROM(r), COUNT, ncclFloat32, 1 - r, comm[r],
		        stream[r]));
		DONE(ncclRecv(
		        TO(r), COUNT, ncclFloat32, 1 - r, comm[r], stream[r]));
	}
	DONE(ncclGroupEnd());
	holds(0, 9, given(1, 9));
	holds(1, 9, given(0, 9));
}
END_TEST

/* 16-bit numbers, two of them in each word that is read back. */
START_TEST(half_precision)
{
	static const struct {
		ncclDataType_t type;
		unsigned word; /* what each rank gives */
		uint32_t sum, mean;
	} rows[] = {
	        /* 1.5 and -2 */
	        {ncclFloat16, 0xc0003e00, 0xc4004200, 0xc0003e00},
	        {ncclBfloat16, 0xc0003fc0, 0xc0804040, 0xc0003fc0},
	        /* the greatest, and the smallest that is not normal */
	        {ncclFloat16, 0x00017bff, 0x00027c00, 0x00017bff},
	};

	start();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int r = 0; r < RANKS; r++) {
			OK(cuCtxSetCurrent(ctx[r]));
			OK(cuMemsetD32Async(
			        from[r], rows[i].word, COUNT, stream[r]));
		}
		EACH(ncclAllReduce(FROM(r), TO(r), 2 * COUNT, rows[i].type,
		        ncclSum, comm[r], stream[r]));
		ck_assert_uint_eq(word(1, 3), rows[i].sum);
		EACH(ncclAllReduce(FROM(r), TO(r), 2 * COUNT, rows[i].type,
		        ncclAvg, comm[r], stream[r]));
		ck_assert_uint_eq(word(0, 3), rows[i].mean);
	}
}
END_TEST

/* The second one reads what the first has written on another stream. */
static void two_streams(void)
{
	CUstream other[RANKS];

	start();
	for (int i = 0; i < RANKS; i++) {
		OK(cuCtxSetCurrent(ctx[i]));
		other[i] = race_stream(CU_STREAM_NON_BLOCKING);
	}
	EACH(ncclAllReduce(FROM(r), TO(r), COUNT, ncclFloat32, ncclSum, comm[r],
	        stream[r]));
	EACH(ncclAllReduce(
	        TO(r), TO(r), COUNT, ncclFloat32, ncclSum, comm[r], other[r]));
	for (int i = 0; i < RANKS; i++) {
		OK(cuCtxSetCurrent(ctx[i]));
		OK(cuStreamSynchronize(other[i]));
		holds(i, 5, 2 * 3010);
	}
}

static json_int_t races(const char *name, const char *value)
{
	json_t *report = race_report(two_streams, name, value);
	json_int_t count = race_number(report, "races");

	json_decref(report);
	return count;
}

/* What comes on another stream of the communicator is after what came before
 * it. */
START_TEST(order_of_streams)
{
	ck_assert_int_eq(races(NULL, NULL), 0);
	if (!strcmp(getenv("SIMGPU_CONTENT"), "tags"))
		ck_assert_int_gt(races("SIMGPU_MUTATE", "wait:1"), 0);
}
END_TEST

START_TEST(wrong_arguments)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUgraph graph;

	start();
	ck_assert_int_eq(ncclAllReduce(FROM(0), TO(0), COUNT, ncclFloat32,
	                         ncclNumOps, comm[0], stream[0]),
	        ncclInvalidArgument);
	ck_assert_int_eq(ncclSend(FROM(0), COUNT, ncclFloat32, RANKS, comm[0],
	                         stream[0]),
	        ncclInvalidArgument);
	ck_assert_int_eq(ncclBroadcast(FROM(0), TO(0), COUNT, ncclNumTypes, 0,
	                         comm[0], stream[0]),
	        ncclInvalidArgument);
	ck_assert_int_eq(ncclCommDestroy((ncclComm_t)ctx), ncclInvalidArgument);
	ck_assert_int_eq(ncclGroupEnd(), ncclInvalidUsage);
	OK(cuCtxSetCurrent(ctx[0]));
	OK(cuStreamBeginCapture(stream[0], mode));
	ck_assert_int_eq(ncclAllReduce(FROM(0), TO(0), COUNT, ncclFloat32,
	                         ncclSum, comm[0], stream[0]),
	        ncclInvalidUsage);
	OK(cuStreamEndCapture(stream[0], &graph));
}
END_TEST

/* --------------------------------------------------------- two processes */

static int pipes[2];

/* Rank 1 of two, on device 1 of its own process; 0 is in the parent. */
static void work(int rank)
{
	ncclComm_t half;
	int count;

	DONE(ncclAllReduce(FROM(rank), TO(rank), COUNT, ncclFloat32, ncclSum,
	        comm[rank], stream[rank]));
	holds(rank, 5, 3010);
	/* More letters than have room on the way. */
	for (unsigned i = 0; i < 100 && rank == 0; i++)
		DONE(ncclSend((const char *)FROM(0) + i * sizeof(float), 1,
		        ncclFloat32, 1, comm[0], stream[0]));
	for (unsigned i = 0; i < 100 && rank == 1; i++)
		DONE(ncclRecv((char *)TO(1) + i * sizeof(float), 1, ncclFloat32,
		        0, comm[1], stream[1]));
	if (rank == 1)
		holds(1, 99, given(0, 99));
	DONE(ncclCommSplit(comm[rank], 0, 1 - rank, &half, NULL));
	DONE(ncclCommUserRank(half, &count));
	ck_assert_int_eq(count, 1 - rank);
	DONE(ncclCommDestroy(half));
	DONE(ncclCommSplit(comm[rank], rank ? 3 : -1, 0, &half, NULL));
	ck_assert_int_eq(half != NULL, rank == 1);
	if (half)
		DONE(ncclCommDestroy(half));
}

static void tell(const ncclUniqueId *id)
{
	ck_assert_int_eq(write(pipes[1], id, sizeof(*id)), (int)sizeof(*id));
}

static void hear(ncclUniqueId *id)
{
	ck_assert_int_eq(read(pipes[0], id, sizeof(*id)), (int)sizeof(*id));
}

static void begin(int rank)
{
	ncclUniqueId id;

	OK(cuInit(0));
	start_rank(rank, rank);
	if (rank == 0) {
		DONE(ncclGetUniqueId(&id));
		tell(&id);
	} else {
		hear(&id);
	}
	DONE(ncclCommInitRank(&comm[rank], RANKS, id, rank));
}

/* A process that is rank 1 and does @what. */
static pid_t start_other(void (*what)(void))
{
	pid_t other;

	ck_assert_int_eq(pipe(pipes), 0);
	fflush(NULL);
	other = fork();
	if (!other) {
		what();
		exit(0);
	}
	return other;
}

static void work_to_the_end(void)
{
	begin(1);
	work(1);
	DONE(ncclCommDestroy(comm[1]));
}

/* What a graph adds up is what is there when it is launched. */
static void launch_graphs(int rank)
{
	static const uint32_t ones = 0x3f800000; /* 1.f */
	CUstream at = stream[rank];
	CUgraphExec instance;
	CUgraph graph;

	OK(cuStreamBeginCapture(at, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	DONE(ncclAllReduce(FROM(rank), TO(rank), COUNT, ncclFloat32, ncclSum,
	        comm[rank], at));
	DONE(ncclAllReduce(TO(rank), TO(rank), COUNT / 2, ncclFloat32, ncclSum,
	        comm[rank], at));
	OK(cuStreamEndCapture(at, &graph));
	OK(cuGraphInstantiate(&instance, graph, 0));
	OK(cuGraphDestroy(graph));
	holds(rank, 5, 0);
	OK(cuGraphLaunch(instance, at));
	holds(rank, 5, 2 * 3010);
	holds(rank, COUNT - 1, 3000 + 2 * (COUNT - 1));
	OK(cuMemsetD32Async(from[rank], ones, COUNT, at));
	/* One that is in no graph comes between. */
	DONE(ncclAllReduce(FROM(rank), TO(rank), COUNT, ncclFloat32, ncclMax,
	        comm[rank], at));
	holds(rank, 5, 1);
	for (int i = 0; i < 100; i++)
		OK(cuGraphLaunch(instance, at));
	holds(rank, 5, 4);
	holds(rank, COUNT - 1, 2);
	OK(cuGraphExecDestroy(instance));
}

static void launch_graphs_to_the_end(void)
{
	begin(1);
	launch_graphs(1);
	DONE(ncclCommDestroy(comm[1]));
}

static void end_at_once(void)
{
	begin(1);
	_exit(0);
}

/* This process is rank 0, @other does as much as rank 1; both end well. */
static void in_two_processes(void (*other)(void), void (*work_as)(int))
{
	pid_t pid = start_other(other);
	int status;

	begin(0);
	work_as(0);
	DONE(ncclCommDestroy(comm[0]));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

START_TEST(processes_exchange_what_they_hold)
{
	in_two_processes(work_to_the_end, work);
}
END_TEST

START_TEST(collectives_in_graphs)
{
	in_two_processes(launch_graphs_to_the_end, launch_graphs);
}
END_TEST

START_TEST(a_process_that_ends_is_noticed)
{
	pid_t other = start_other(end_at_once);
	ncclResult_t error;

	begin(0);
	ck_assert_int_eq(ncclAllReduce(FROM(0), TO(0), COUNT, ncclFloat32,
	                         ncclSum, comm[0], stream[0]),
	        ncclRemoteError);
	DONE(ncclCommGetAsyncError(comm[0], &error));
	ck_assert_int_eq(error, ncclRemoteError);
	DONE(ncclCommAbort(comm[0]));
	ck_assert_int_eq(waitpid(other, NULL, 0), other);
}
END_TEST

static void sum(int rank)
{
	DONE(ncclAllReduce(FROM(rank), TO(rank), COUNT, ncclFloat32, ncclSum,
	        comm[rank], stream[rank]));
	holds(rank, 5, 3010);
	DONE(ncclCommDestroy(comm[rank]));
}

/* Who comes too late for a place leaves it as it was. */
static void come_late(void)
{
	ncclUniqueId id;

	OK(cuInit(0));
	start_rank(1, 1);
	hear(&id);
	ck_assert_int_eq(
	        ncclCommInitRank(&comm[0], RANKS, id, 0), ncclInvalidUsage);
	DONE(ncclCommInitRank(&comm[1], RANKS, id, 1));
	sum(1);
}

START_TEST(a_place_is_one_rank_s)
{
	pid_t other = start_other(come_late);
	ncclUniqueId id;
	int status;

	OK(cuInit(0));
	start_rank(0, 0);
	DONE(ncclGetUniqueId(&id));
	/* In a group the place is taken before the others are waited for. */
	DONE(ncclGroupStart());
	DONE(ncclCommInitRank(&comm[0], RANKS, id, 0));
	tell(&id);
	DONE(ncclGroupEnd());
	sum(0);
	ck_assert_int_eq(waitpid(other, &status, 0), other);
	ck_assert_int_eq(status, 0);
}
END_TEST

int main(int argc, char **argv)
{
	TCase *tests = tcase_create("nccl");

	if (argc > 1 && !strcmp(argv[1], "processes")) {
		tcase_add_test(tests, processes_exchange_what_they_hold);
		tcase_add_test(tests, collectives_in_graphs);
		tcase_add_test(tests, a_process_that_ends_is_noticed);
		tcase_add_test(tests, a_place_is_one_rank_s);
	} else {
		tcase_add_test(tests, ranks_know_their_places);
		tcase_add_test(tests, reductions);
		tcase_add_test(tests, what_is_only_moved);
		tcase_add_test(tests, half_precision);
		tcase_add_test(tests, order_of_streams);
		tcase_add_test(tests, wrong_arguments);
	}
	return client_run(tests, "nccl");
}
