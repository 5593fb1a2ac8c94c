/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a preloaded library costs a program that starts and ends, in ns:
 *
 *     starts LIBRARY ROUNDS AT_ONCE PROGRAM [ARGUMENT...]
 *
 * runs ROUNDS rounds of AT_ONCE programs at once, by turns without the library
 * and with it, and prints one line: least and median wall time of a round, and
 * median processor time of a program, each without and with. What else is set
 * is the caller's choice.
 */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#define ROUNDS_MAX  2000u
#define AT_ONCE_MAX 256u

enum { WITHOUT, WITH, WAYS };

struct figures {
	double wall_ns[ROUNDS_MAX];
	double cpu_ns[ROUNDS_MAX]; /* of one program of the round */
};

extern char **environ;

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double of_timeval(struct timeval time)
{
	return (double)time.tv_sec * 1e9 + (double)time.tv_usec * 1e3;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Processor time of all of them together; negative where one failed. */
static double wait_for_all(unsigned int count)
{
	double cpu_ns = 0;

	for (unsigned int i = 0; i < count; i++) {
		struct rusage usage;
		int status;

		if (wait4(-1, &status, 0, &usage) < 0 || status)
			return -1;
		cpu_ns +=
		        of_timeval(usage.ru_utime) + of_timeval(usage.ru_stime);
	}
	return cpu_ns;
}

/* False where a program could not be started or did not end well. */
static int run_round(char *const *command, char *const *environment,
        unsigned int at_once, double *ret_wall_ns, double *ret_cpu_ns)
{
	double started = now_ns(), cpu_ns;
	unsigned int count = 0;
	pid_t pid;

	while (count < at_once && !posix_spawnp(&pid, command[0], NULL, NULL,
	                                  command, environment))
		count++;
	cpu_ns = wait_for_all(count);
	*ret_wall_ns = now_ns() - started;
	*ret_cpu_ns = cpu_ns / at_once;
	return count == at_once && cpu_ns >= 0;
}

/* The environment with the library preloaded; never freed. */
static char **environment_with(const char *library)
{
	size_t count = 0;
	char **made, *setting;

	while (environ[count])
		count++;
	made = calloc(count + 2, sizeof(*made));
	if (!made || asprintf(&setting, "LD_PRELOAD=%s", library) < 0)
		return NULL;
	memcpy(made, environ, count * sizeof(*made));
	made[count] = setting;
	return made;
}

static double median(double *values, unsigned int count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

int main(int argc, char **argv)
{
	static struct figures figures[WAYS];
	unsigned int rounds, at_once;
	char **environments[WAYS];

	if (argc < 5)
		return 2;
	rounds = (unsigned int)strtoul(argv[2], NULL, 10);
	at_once = (unsigned int)strtoul(argv[3], NULL, 10);
	environments[WITHOUT] = environ;
	environments[WITH] = environment_with(argv[1]);
	if (!rounds || rounds > ROUNDS_MAX || !at_once ||
	        at_once > AT_ONCE_MAX || !environments[WITH])
		return 2;
	for (unsigned int round = 0; round < rounds; round++)
		for (int way = 0; way < WAYS; way++)
			if (!run_round(argv + 4, environments[way], at_once,
			            &figures[way].wall_ns[round],
			            &figures[way].cpu_ns[round]))
				return 1;
	for (int way = 0; way < WAYS; way++) {
		double wall = median(figures[way].wall_ns, rounds);

		printf("%.0f %.0f %.0f%c", figures[way].wall_ns[0], wall,
		        median(figures[way].cpu_ns, rounds),
		        way == WITH ? '\n' : ' ');
	}
	return 0;
}
