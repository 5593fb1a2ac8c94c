/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Small programs that come to their end in different ways, or run into the same
 * trouble again and again: one a command.
 */
#include <cuda.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1ull << 20)

static CUdeviceptr block;

static int fail(const char *what)
{
	printf("ends: %s\n", what);
	return 1;
}

static int prepare(void)
{
	CUcontext context;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
	        cuCtxSetCurrent(context) || cuMemAlloc(&block, 4 * MIB))
		return fail("no memory");
	return 0;
}

static int set_often(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (cuMemsetD8(block, (unsigned char)i, 4096))
			return fail("set");
	return 0;
}

/* A watchdog in C: what it interrupts may hold any lock. */
static void bark(int number)
{
	(void)number;
	kill(getpid(), SIGTERM);
}

static int watched(void)
{
	void *volatile part;

	if (prepare() || set_often(3))
		return 1;
	signal(SIGALRM, bark);
	ualarm(20000, 0);
	for (;;) {
		part = malloc(64);
		free(part);
	}
}

static void again(int number)
{
	signal(number, SIG_DFL);
	/* Blocked for now: it comes when this function is left. */
	kill(getpid(), number);
}

/* A handler may have interrupted anything: nothing can be said there. */
static int handled(void)
{
	if (prepare() || set_often(3))
		return 1;
	signal(SIGINT, again);
	raise(SIGINT);
	return fail("still there");
}

/* Signals that do not end the program. */
static int unhurt(void)
{
	if (prepare() || set_often(3))
		return 1;
	signal(SIGTERM, SIG_IGN);
	if (kill(getpid(), SIGTERM) || kill(getpid(), SIGCHLD) ||
	        kill(getpid(), 0) || set_often(2))
		return fail("kill");
	return kill(getpid(), 4711) == -1 ? 0 : fail("a signal that is none");
}

static int killed(void)
{
	const char *status = getenv("TAPESWAP_STATUS");

	if (!status || prepare() || set_often(3000))
		return 1;
	/* Which another thread may be about to write. */
	while (strcmp(status, "nowhere/status.json") && access(status, F_OK))
		usleep(1000);
	raise(SIGKILL);
	return fail("still there");
}

/* The same refusals over and over, as of a program that tries again. */
static int refused(void)
{
	CUdeviceptr more;

	if (prepare())
		return 1;
	for (int i = 0; i < 20; i++)
		if (cuMemAlloc(&more, 2048 * MIB) != CUDA_ERROR_OUT_OF_MEMORY)
			return fail("2 GiB");
	for (int i = 0; i < 20; i++)
		if (cuMemAlloc(&more, 3072 * MIB) != CUDA_ERROR_OUT_OF_MEMORY)
			return fail("3 GiB");
	return 0;
}

/* Content goes out and comes back, until the driver answers an error. */
static int sticky(void)
{
	CUdeviceptr blocks[8];
	CUresult rc = CUDA_SUCCESS;

	if (prepare())
		return 1;
	for (int i = 0; i < 8; i++)
		if (cuMemAlloc(&blocks[i], 4 * MIB))
			return fail("no memory");
	for (int i = 0; i < 64 && !rc; i++)
		rc = cuMemsetD8(blocks[i % 8], 1, 4 * MIB);
	/* And again, though the context is lost. */
	for (int i = 0; i < 8; i++)
		if (cuMemsetD8(blocks[i], 1, 4 * MIB) != rc)
			return fail("another error");
	printf("%d\n", (int)rc);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} commands[] = {{"watched", watched}, {"handled", handled},
	        {"unhurt", unhurt}, {"killed", killed}, {"refused", refused},
	        {"sticky", sticky}};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (argc == 2 && !strcmp(argv[1], commands[i].name))
			return commands[i].run();
	return 2;
}
