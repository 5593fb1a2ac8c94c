/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tapeswap run`: sets the environment of a command and becomes it, so that
 * its exit status, signals and terminal stay its own. Own failures end with
 * 125, 126 or 127, as env(1) and stdbuf(1) do.
 *
 * The loader goes on when it cannot preload a library; a training run would
 * then start without its limit. So the library is tried first, in a child of
 * this very program that looks whether it was mapped.
 */
#include "agent/cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/cli/target.h"

enum {
	EXIT_FAILED = 125,
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
};

/* A setting that run passes on as it is: --NAME VALUE sets VARIABLE. */
struct setting {
	const char *option;
	const char *variable;
	const char *value_name;
	const char *help;
};

static const struct setting settings[] = {
        {"limit", "TAPESWAP_LIMIT", "SIZE",
                "device memory to stay inside: bytes, KiB, MiB, GiB, or % of\n"
                "the device (default: the whole device)"},
        {"mode", "TAPESWAP_MODE", "MODE",
                "off: no library is preloaded; cap: keep the limit"},
        {"plan", "TAPESWAP_PLAN", "FILE",
                "where to write what was moved in the last step (JSON)"},
        {"status", "TAPESWAP_STATUS", "FILE",
                "where to write the status at exit (JSON)"},
        {"log", "TAPESWAP_LOG", "LEVEL", "error, warn, info or debug"},
};

#define N_SETTINGS (sizeof(settings) / sizeof(settings[0]))

enum { OPT_SIM = N_SETTINGS, OPT_HELP };

struct options {
	const char *values[N_SETTINGS];
	const char *sim;
	char **command;
};

/* Where the files that run needs lie, found from the executable's place. */
struct places {
	char self[PATH_MAX];
	char library[PATH_MAX];
	char simgpu[PATH_MAX];
};

static void print_help(void)
{
	fputs("usage: tapeswap run [OPTIONS] [--] COMMAND [ARGUMENTS]\n\n"
	      "Runs COMMAND inside a device-memory limit. COMMAND needs no "
	      "change.\n\noptions:\n",
	        stdout);
	for (size_t i = 0; i < N_SETTINGS; i++) {
		const char *line = settings[i].help;
		char head[32];

		snprintf(head, sizeof(head), "--%s %s", settings[i].option,
		        settings[i].value_name);
		printf("  %-16s ", head);
		for (;;) {
			int length = (int)strcspn(line, "\n");

			printf("%.*s\n", length, line);
			if (!line[length])
				break;
			line += length + 1;
			printf("%19s", "");
		}
		printf("%19s[%s]\n", "", settings[i].variable);
	}
	fputs("  --sim MODEL      run on the simulated GPU, a device of MODEL\n"
	      "  --help           this text\n\n"
	      "An option wins over the variable beside it; %p in a file name "
	      "is the\nprocess id.\n\n"
	      "exit status:\n"
	      "  125 where tapeswap itself fails, 126 where COMMAND cannot be "
	      "executed,\n  127 where it is not found, else COMMAND's own\n\n"
	      "examples:\n"
	      "  tapeswap run --limit 12GiB -- python train.py\n"
	      "  tapeswap run --sim a100-80g-pcie4 --limit 60% -- python "
	      "train.py\n"
	      "  tapeswap run --sim tiny-1g --mode off -- python train.py\n",
	        stdout);
}

static int fail(int status, const char *hint, const char *message)
{
	ts_cli_bad(hint, "%s", message);
	return status;
}

/* 0; -1: help was asked for and given; else an exit status. */
static int parse(int argc, char **argv, struct options *ret)
{
	struct option table[N_SETTINGS + 3] = {{NULL, 0, NULL, 0}};
	int found;

	for (size_t i = 0; i < N_SETTINGS; i++) {
		table[i].name = settings[i].option;
		table[i].has_arg = required_argument;
		table[i].val = (int)i;
	}
	table[N_SETTINGS] =
	        (struct option){"sim", required_argument, NULL, OPT_SIM};
	table[N_SETTINGS + 1] =
	        (struct option){"help", no_argument, NULL, OPT_HELP};

	opterr = 0;
	while ((found = getopt_long(argc, argv, "+:h", table, NULL)) != -1) {
		switch (found) {
		case 'h':
		case OPT_HELP:
			print_help();
			return -1;
		case OPT_SIM:
			ret->sim = optarg;
			break;
		case ':':
			ts_cli_bad("tapeswap run --help lists the options",
			        "option '%s' wants a value", argv[optind - 1]);
			return EXIT_FAILED;
		case '?':
			ts_cli_bad("tapeswap run --help lists the options",
			        "unknown option '%s'", argv[optind - 1]);
			return EXIT_FAILED;
		default:
			ret->values[found] = optarg;
		}
	}
	if (optind == argc)
		return fail(EXIT_FAILED,
		        "tapeswap run [OPTIONS] -- python train.py",
		        "no command given");
	ret->command = argv + optind;
	return 0;
}

static const char *value_of(const struct options *options, const char *name)
{
	for (size_t i = 0; i < N_SETTINGS; i++)
		if (!strcmp(settings[i].option, name))
			return options->values[i]
			               ? options->values[i]
			               : getenv(settings[i].variable);
	return NULL;
}

/*
 * A bad value would only switch the library off, with the program already
 * running; here there is somebody to tell, so it is an error.
 */
static int check_values(const struct options *options)
{
	const char *limit = value_of(options, "limit");
	const char *mode = value_of(options, "mode");
	/* The share of a device is the library's to work out. */
	const uint64_t any_device_bytes = 1ULL << 40;
	uint64_t bytes;

	if (limit && (ts_cli_parse_bytes(limit, any_device_bytes, &bytes) ||
	                     !bytes)) {
		ts_cli_bad("a limit is written 12GiB, 800MiB, 60% or in bytes",
		        "limit '%s': want bytes, KiB/MiB/GiB or %%", limit);
		return EXIT_FAILED;
	}
	if (mode && strcmp(mode, "off") && strcmp(mode, "cap") &&
	        strcmp(mode, "observe") && strcmp(mode, "plan")) {
		ts_cli_bad(NULL, "mode '%s': want off, observe, cap or plan",
		        mode);
		return EXIT_FAILED;
	}
	return 0;
}

/* Joins @folder and @name to @ret; whether such a file can be read. */
static bool find_file(char *ret, const char *folder, const char *name)
{
	int length = snprintf(ret, PATH_MAX, "%s/%s", folder, name);

	return length > 0 && length < PATH_MAX && !access(ret, R_OK);
}

static int find_places(struct places *ret)
{
	char folder[PATH_MAX], probe[PATH_MAX];
	ssize_t length =
	        readlink("/proc/self/exe", ret->self, sizeof(ret->self) - 1);

	if (length < 0)
		return fail(EXIT_FAILED, NULL, "cannot read /proc/self/exe");
	ret->self[length] = '\0';
	strcpy(folder, ret->self);
	*strrchr(folder, '/') = '\0';

	/* In the build folder all lie together; installed, in bin and lib. */
	if (!find_file(ret->library, folder, "libtapeswap.so") &&
	        !find_file(ret->library, folder, "../lib/libtapeswap.so"))
		ret->library[0] = '\0';
	if (find_file(probe, folder, "simgpu/libcuda.so.1"))
		snprintf(ret->simgpu, sizeof(ret->simgpu), "%.*s/simgpu",
		        PATH_MAX - 8, folder);
	else
		ret->simgpu[0] = '\0';
	return 0;
}

/* Puts @entry before what @variable, a list of paths, has; 0 or -errno. */
static int prepend(const char *variable, const char *entry)
{
	const char *old = getenv(variable);
	char *value;
	int err = 0;

	if (!old || !*old)
		return setenv(variable, entry, 1) ? -errno : 0;
	if (asprintf(&value, "%s:%s", entry, old) < 0)
		return -ENOMEM;
	if (setenv(variable, value, 1))
		err = -errno;
	free(value);
	return err;
}

/* In the child: whether @library is among this process's mappings. */
static int probe_child(const char *library)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t size = 0;
	int found = 1;

	if (!maps)
		return EXIT_FAILED;
	while (found && getline(&line, &size, maps) > 0) {
		char *path = strchr(line, '/');

		if (!path)
			continue;
		path[strcspn(path, "\n")] = '\0';
		found = strcmp(path, library);
	}
	free(line);
	fclose(maps);
	return found ? EXIT_FAILED : 0;
}

/* Whether the loader takes the library; LD_PRELOAD is set by now. */
static bool probe_library(const struct places *places)
{
	char *path = realpath(places->library, NULL);
	pid_t child = path ? fork() : -1;
	int status = -1;

	if (!child) {
		execl(places->self, "tapeswap", "run", "--probe", path,
		        (char *)NULL);
		_exit(EXIT_FAILED);
	}
	if (child > 0)
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
	free(path);
	return child > 0 && !status;
}

static int check_target(const char *command)
{
	static const char *const problems[] = {
	        [TS_TARGET_NOT_EXECUTABLE] = "cannot be executed",
	        [TS_TARGET_STATIC] = "is statically linked: the loader "
	                             "preloads nothing there",
	        [TS_TARGET_SETUID] = "is setuid or setgid: the loader "
	                             "preloads nothing there",
	        [TS_TARGET_FOREIGN] = "is for another architecture than "
	                              "tapeswap",
	};
	char *path = NULL;
	enum ts_target target = ts_target_check(command, &path);

	if (target == TS_TARGET_NOT_FOUND) {
		ts_cli_bad(NULL, "command '%s' not found", command);
		return EXIT_NOT_FOUND;
	}
	if (target != TS_TARGET_GOOD)
		ts_cli_bad(NULL, "'%s' %s", path ? path : command,
		        problems[target]);
	free(path);
	if (target == TS_TARGET_NOT_EXECUTABLE)
		return EXIT_NOT_EXECUTABLE;
	return target == TS_TARGET_GOOD ? 0 : EXIT_FAILED;
}

static int set_sim(const struct options *options, const struct places *places)
{
	if (!places->simgpu[0])
		return fail(EXIT_FAILED,
		        "build tapeswap with -Dsimgpu=true and run it from "
		        "the build folder",
		        "the simulated GPU is not beside this program");
	if (prepend("LD_LIBRARY_PATH", places->simgpu) ||
	        setenv("SIMGPU_DEVICE", options->sim, 1))
		return fail(EXIT_FAILED, NULL, "out of memory");
	return 0;
}

static int set_preload(const struct places *places)
{
	if (!places->library[0])
		return fail(EXIT_FAILED, NULL,
		        "libtapeswap.so is not beside this program");
	if (strpbrk(places->library, " :"))
		return fail(EXIT_FAILED,
		        "LD_PRELOAD cannot name such a file; move it",
		        "the path of libtapeswap.so has a space or a colon");
	if (prepend("LD_PRELOAD", places->library))
		return fail(EXIT_FAILED, NULL, "out of memory");
	if (!probe_library(places))
		return fail(EXIT_FAILED, NULL,
		        "the loader does not preload libtapeswap.so");
	return 0;
}

int ts_cli_run(int argc, char **argv)
{
	struct options options = {.sim = NULL};
	struct places places;
	const char *mode;
	bool preload;
	int status;

	if (argc == 3 && !strcmp(argv[1], "--probe"))
		return probe_child(argv[2]);
	status = parse(argc, argv, &options);
	if (status)
		return status < 0 ? 0 : status;
	status = check_values(&options);
	if (!status)
		status = find_places(&places);
	if (status)
		return status;

	mode = value_of(&options, "mode");
	preload = !mode || strcmp(mode, "off");
	if (preload || options.sim)
		status = check_target(options.command[0]);
	for (size_t i = 0; i < N_SETTINGS && !status; i++)
		if (options.values[i] &&
		        setenv(settings[i].variable, options.values[i], 1))
			status = fail(EXIT_FAILED, NULL, "out of memory");
	if (!status && options.sim)
		status = set_sim(&options, &places);
	if (!status && preload)
		status = set_preload(&places);
	if (status)
		return status;

	execvp(options.command[0], options.command);
	status = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
	ts_cli_bad(NULL, "'%s': %s", options.command[0], strerror(errno));
	return status;
}
