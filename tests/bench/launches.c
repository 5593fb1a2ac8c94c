/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Median cost of one launch, or one dlsym, in ns: launches PARAMETERS BYTES,
 * or launches dlsym. With a third argument "new" no launch is ever repeated, so
 * that no step is found and all are recorded; with "many" each launch of the
 * step has blocks of its own, as many as a model has. With "start" alone it
 * makes one launch and ends. What is preloaded and set is the caller's choice.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS      61
#define BATCH       500
#define PARAMS_MAX  64
#define BLOCK_BYTES (1u << 20)
/* With "many": more than what is looked into for addresses. */
#define MANY_BLOCKS 1000u
#define MANY_BYTES  (3u << 20)
/* Launches that differ, as those of a training step do; then again. */
#define STEP       2000u
#define WARM_STEPS 14u
#define NEVER      UINT_MAX
/* More than the agent keeps of ops that belong to no step. */
#define WARM_NEW 600000u

/* The thread's: a round may be longer than others let it run at a time. */
static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare);
	return values[ROUNDS / 2];
}

static double time_dlsym(void)
{
	double rounds[ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		double start = now_ns();

		for (int i = 0; i < BATCH; i++)
			if (!dlsym(RTLD_DEFAULT, "printf"))
				return -1;
		rounds[round] = (now_ns() - start) / BATCH;
	}
	return median(rounds);
}

typedef CUresult init_function(unsigned int flags);
typedef CUresult alloc_function(CUdeviceptr *address, size_t bytes);
typedef CUresult launch_function(CUfunction function, unsigned int,
        unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
        unsigned int, CUstream, void **, void **);

/* What wakes the library up; the status to end with. */
static int start(void)
{
	struct {
		size_t count, bytes;
	} function = {0, 0};
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	init_function *init;
	launch_function *launch;

	if (!driver)
		return 2;
	init = (init_function *)dlsym(driver, "cuInit");
	launch = (launch_function *)dlsym(driver, "cuLaunchKernel");
	if (!init || !launch || init(0))
		return 2;
	return launch((CUfunction)&function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL,
	               NULL)
	               ? 2
	               : 0;
}

struct launches {
	struct {
		size_t count, bytes;
	} function; /* the null driver's */
	launch_function *launch;
	unsigned int step; /* launches until they come again */
	void *params[PARAMS_MAX];
	CUdeviceptr *blocks; /* that each launch takes its own from, or NULL */
};

static void one_launch(struct launches *launches, unsigned int number)
{
	unsigned int at = number % launches->step;

	for (size_t i = 0; launches->blocks && i < launches->function.count;
	        i++)
		memcpy(launches->params[i],
		        &launches->blocks[(at + i * STEP / 7) % MANY_BLOCKS],
		        sizeof(CUdeviceptr));
	launches->launch((CUfunction)&launches->function, at, 1, 1, 1, 1, 1, 0,
	        NULL, launches->params, NULL);
}

/* One parameter in eight bytes of each is an address, as a rule of thumb. */
static bool set_up(struct launches *launches, void *driver, bool many)
{
	static CUdeviceptr blocks[MANY_BLOCKS];
	alloc_function *alloc =
	        (alloc_function *)dlsym(driver, "cuMemAlloc_v2");

	launches->launch = (launch_function *)dlsym(driver, "cuLaunchKernel");
	for (size_t i = 0; many && i < MANY_BLOCKS; i++)
		if (alloc(&blocks[i], MANY_BYTES))
			return false;
	launches->blocks = many ? blocks : NULL;
	for (size_t i = 0; i < launches->function.count; i++) {
		CUdeviceptr address;

		launches->params[i] = calloc(1, launches->function.bytes);
		if (!launches->params[i] || alloc(&address, BLOCK_BYTES))
			return false;
		memcpy(launches->params[i], &address, sizeof(address));
	}
	return true;
}

static double time_launches(
        size_t count, size_t bytes, unsigned int step, bool many)
{
	struct launches launches = {.function = {count, bytes}, .step = step};
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	double rounds[ROUNDS];
	unsigned int grid = 0;

	if (!driver || !count || count > PARAMS_MAX || bytes < 8 ||
	        !set_up(&launches, driver, many))
		return -1;
	/* Steps are found and timed, memory is taken, once. */
	for (; grid < (step == NEVER ? WARM_NEW : WARM_STEPS * STEP); grid++)
		one_launch(&launches, grid);
	for (int round = 0; round < ROUNDS; round++) {
		double start = now_ns();

		for (int i = 0; i < BATCH; i++)
			one_launch(&launches, ++grid);
		rounds[round] = (now_ns() - start) / BATCH;
	}
	for (size_t i = 0; i < count; i++)
		free(launches.params[i]);
	return median(rounds);
}

int main(int argc, char **argv)
{
	bool new = argc == 4 && !strcmp(argv[3], "new");
	bool many = argc == 4 && !strcmp(argv[3], "many");
	double ns = -1;

	if (argc == 2 && !strcmp(argv[1], "start"))
		return start();
	if (argc == 2 && !strcmp(argv[1], "dlsym"))
		ns = time_dlsym();
	else if (argc == 3 || new || many)
		ns = time_launches(strtoul(argv[1], NULL, 10),
		        strtoul(argv[2], NULL, 10), new ? NEVER : STEP, many);
	if (ns < 0)
		return 2;
	printf("%.1f\n", ns);
	return 0;
}
