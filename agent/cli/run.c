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

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/output.h"
#include "agent/cli/models.h"
#include "agent/cli/target.h"
#include "agent/config.h"

enum {
	EXIT_FAILED = 125,
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
};

#define MAX_SETTINGS   32
#define OPTION_BYTES   40
#define HELP_INDENT    20
#define HELP_WIDTH     78
#define SETTING_PREFIX "TAPESWAP_"
#define OPT_SIM        MAX_SETTINGS
#define OPT_SIM_EXACT  (MAX_SETTINGS + 1)
#define OPT_HELP       (MAX_SETTINGS + 2)

struct options {
	const char *values[MAX_SETTINGS]; /* by place in the table */
	const char *sim;
	bool sim_exact;
	char **command;
};

/* Where the files that run needs lie, found from the executable's place. */
struct places {
	char self[PATH_MAX];
	char library[PATH_MAX];
	char simgpu[PATH_MAX];
};

/* TAPESWAP_HOST_LIMIT becomes host-limit. */
static void option_name(const struct ts_setting *setting, char *ret)
{
	const char *from = setting->name + strlen(SETTING_PREFIX);
	size_t i;

	for (i = 0; from[i] && i + 1 < OPTION_BYTES; i++)
		ret[i] = from[i] == '_' ? '-' : (char)tolower(from[i]);
	ret[i] = '\0';
}

static const char *value_name(const struct ts_setting *setting)
{
	switch (setting->type) {
	case TS_SETTING_SIZE:
	case TS_SETTING_LIMIT:
		return "SIZE";
	case TS_SETTING_CHOICE:
		return "WORD";
	case TS_SETTING_BOOLEAN:
		return "0|1";
	case TS_SETTING_COUNT:
		return "NUMBER";
	case TS_SETTING_FILE:
		return "FILE";
	case TS_SETTING_TEXT:
		return "NAME";
	}
	return "VALUE";
}

/* Prints @text in lines of whole words, those after the first indented. */
static void print_wrapped(const char *text)
{
	int column = HELP_INDENT;

	while (*text) {
		int length = (int)strcspn(text, " ");

		if (column > HELP_INDENT && column + 1 + length > HELP_WIDTH) {
			printf("\n%*s", HELP_INDENT, "");
			column = HELP_INDENT;
		} else if (column > HELP_INDENT) {
			putchar(' ');
			column++;
		}
		printf("%.*s", length, text);
		column += length;
		text += length;
		text += strspn(text, " ");
	}
	putchar('\n');
}

static void print_help(void)
{
	size_t count;
	const struct ts_setting *table = ts_config_table(&count);

	fputs("usage: tapeswap run [OPTIONS] [--] COMMAND [ARGUMENTS]\n\n"
	      "Runs COMMAND inside a device-memory limit. COMMAND needs no "
	      "change.\n\noptions:\n",
	        stdout);
	for (size_t i = 0; i < count; i++) {
		char name[OPTION_BYTES], head[OPTION_BYTES + 16];
		char words[128] = "", text[512];

		option_name(&table[i], name);
		snprintf(head, sizeof(head), "--%s %s", name,
		        value_name(&table[i]));
		if (table[i].choices)
			snprintf(words, sizeof(words), " (%s; default: %s)",
			        table[i].choices, table[i].default_text);
		snprintf(text, sizeof(text), "%s%s [%s]", table[i].help, words,
		        table[i].name);
		printf("  %-*s", HELP_INDENT - 2, head);
		print_wrapped(text);
	}
	fputs("  --sim MODEL       run on the simulated GPU, a device of "
	      "MODEL;\n"
	      "                    what memory holds stands for numbers "
	      "(SIMGPU_CONTENT=tags)\n"
	      "  --sim-exact       there, compute real numbers, on this "
	      "machine's processor\n"
	      "  --help            this text\n\n"
	      "An option wins over the variable in brackets. A size is in "
	      "bytes "
	      "or has KiB,\nMiB or GiB; the limit may be a share, as in 60%. "
	      "In file names %p stands for\nthe process id and %r for the "
	      "local "
	      "rank.\n\n"
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
	size_t count;
	const struct ts_setting *settings = ts_config_table(&count);
	struct option table[MAX_SETTINGS + 4] = {{NULL, 0, NULL, 0}};
	char names[MAX_SETTINGS][OPTION_BYTES];
	int found;

	if (count > MAX_SETTINGS)
		return fail(EXIT_FAILED, NULL, "too many settings");
	for (size_t i = 0; i < count; i++) {
		option_name(&settings[i], names[i]);
		table[i].name = names[i];
		table[i].has_arg = required_argument;
		table[i].val = (int)i;
	}
	table[count] = (struct option){"sim", required_argument, NULL, OPT_SIM};
	table[count + 1] =
	        (struct option){"sim-exact", no_argument, NULL, OPT_SIM_EXACT};
	table[count + 2] = (struct option){"help", no_argument, NULL, OPT_HELP};

	while ((found = ts_cli_option(argc, argv, "+:h", table)) != -1) {
		if (found == 'h' || found == OPT_HELP) {
			print_help();
			return -1;
		}
		if (found == '?')
			return EXIT_FAILED;
		if (found == OPT_SIM_EXACT) {
			ret->sim_exact = true;
			continue;
		}
		/* An empty one is a shell variable that is not set. */
		if (!*optarg) {
			ts_cli_bad("tapeswap run --help lists the options",
			        "option '--%s' wants a value",
			        found == OPT_SIM ? "sim" : names[found]);
			return EXIT_FAILED;
		}
		if (found == OPT_SIM)
			ret->sim = optarg;
		else
			ret->values[found] = optarg;
	}
	if (ret->sim_exact && !ret->sim)
		return fail(EXIT_FAILED,
		        "tapeswap run --sim MODEL --sim-exact -- python "
		        "train.py",
		        "--sim-exact wants --sim");
	if (optind == argc)
		return fail(EXIT_FAILED,
		        "tapeswap run [OPTIONS] -- python train.py",
		        "no command given");
	ret->command = argv + optind;
	return 0;
}

static void warn(const char *message)
{
	fprintf(stderr, "tapeswap: warning: %s\n", message);
}

/* @message begins with a variable's name: the option's, where that was given.
 */
static int refuse_value(const struct options *options, const char *message)
{
	size_t count, length = strcspn(message, "=");
	const struct ts_setting *table = ts_config_table(&count);
	char name[OPTION_BYTES];

	for (size_t i = 0; i < count; i++) {
		if (!options->values[i] || strlen(table[i].name) != length ||
		        strncmp(table[i].name, message, length))
			continue;
		option_name(&table[i], name);
		ts_cli_bad(NULL, "--%s %s", name, message + length + 1);
		return EXIT_FAILED;
	}
	return fail(EXIT_FAILED, NULL, message);
}

/* A plan that is only to be read may lie where nothing can be written. */
static bool is_to_read(const struct ts_setting *setting, const char *path)
{
	return !strcmp(setting->name, "TAPESWAP_PLAN") && !access(path, R_OK);
}

/* The library would name these too, with the program already running. */
static int check_files(
        const struct options *options, const struct ts_config *config)
{
	size_t count;
	const struct ts_setting *table = ts_config_table(&count);
	char message[PATH_MAX + TS_CONFIG_MESSAGE_BYTES];

	for (size_t i = 0; i < count; i++) {
		const char *path = (const char *)config + table[i].offset;
		int rc;

		if (table[i].type != TS_SETTING_FILE || !*path)
			continue;
		rc = ts_output_check(path);
		if (!rc || (rc != -EISDIR && is_to_read(&table[i], path)))
			continue;
		snprintf(message, sizeof(message),
		        "%s=\"%s\": cannot be written: %s", table[i].name, path,
		        strerror(-rc));
		return refuse_value(options, message);
	}
	return 0;
}

/*
 * Puts the options into the environment and reads it as the library will. A
 * bad value would only switch the library off, with the program already
 * running; here there is somebody to tell, so it is an error.
 */
static int set_values(const struct options *options, bool *ret_off)
{
	size_t count;
	const struct ts_setting *table = ts_config_table(&count);
	char message[TS_CONFIG_MESSAGE_BYTES];
	struct ts_config *config = malloc(sizeof(*config));
	int status = 0;

	if (!config)
		return fail(EXIT_FAILED, NULL, "out of memory");
	for (size_t i = 0; i < count && !status; i++)
		if (options->values[i] &&
		        setenv(table[i].name, options->values[i], 1))
			status = fail(EXIT_FAILED, NULL, "out of memory");
	if (!status && ts_config_parse(config, environ, message, warn))
		status = refuse_value(options, message);
	*ret_off = config->mode == TS_MODE_OFF;
	if (!status && !*ret_off)
		status = check_files(options, config);
	free(config);
	return status;
}

/* Joins @folder and @name to @ret; whether such a file can be read. */
static bool find_file(char *ret, const char *folder, const char *name)
{
	int length = snprintf(ret, PATH_MAX, "%s/%s", folder, name);

	return length > 0 && length < PATH_MAX && !access(ret, R_OK);
}

static int find_places(struct places *ret)
{
	static const char *const libraries[] = {TS_CLI_LIBRARY_PLACES};
	char folder[PATH_MAX], probe[PATH_MAX];
	ssize_t length =
	        readlink("/proc/self/exe", ret->self, sizeof(ret->self) - 1);

	if (length < 0)
		return fail(EXIT_FAILED, NULL, "cannot read /proc/self/exe");
	ret->self[length] = '\0';
	strcpy(folder, ret->self);
	*strrchr(folder, '/') = '\0';

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]) &&
	                   !find_file(ret->library, folder, libraries[i]);
	        i++)
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

/* The driver would refuse it too, but with the program already running. */
static int check_model(const struct places *places, const char *name)
{
	char folder[PATH_MAX], *names;

	if (!find_file(folder, places->simgpu, "models"))
		return fail(EXIT_FAILED, NULL,
		        "the simulated GPU has no device models beside it");
	if (ts_cli_model_exists(folder, name))
		return 0;
	names = ts_cli_model_names(folder);
	ts_cli_bad(NULL,
	        "--sim %s: no such device model; want %s, or the path of a "
	        "JSON file",
	        name, names ? names : "one of the simulated GPU's");
	free(names);
	return EXIT_FAILED;
}

static int set_sim(const struct options *options, const struct places *places)
{
	/* Without content losses are 0; tags cost no time worth naming. */
	const char *content = options->sim_exact ? "exact" : "tags";
	int status;

	if (!places->simgpu[0])
		return fail(EXIT_FAILED,
		        "build tapeswap with -Dsimgpu=true and run it from "
		        "the build folder",
		        "the simulated GPU is not beside this program");
	status = check_model(places, options->sim);
	if (status)
		return status;
	if (prepend("LD_LIBRARY_PATH", places->simgpu) ||
	        setenv("SIMGPU_DEVICE", options->sim, 1) ||
	        setenv("SIMGPU_CONTENT", content, options->sim_exact))
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

bool ts_cli_can_sim(void)
{
	struct places places;

	return !find_places(&places) && places.simgpu[0];
}

int ts_cli_run(int argc, char **argv)
{
	struct options options = {.sim = NULL};
	struct places places;
	bool off = false;
	int status;

	if (argc == 3 && !strcmp(argv[1], "--probe"))
		return probe_child(argv[2]);
	status = parse(argc, argv, &options);
	if (status)
		return status < 0 ? 0 : status;
	status = set_values(&options, &off);
	if (!status)
		status = find_places(&places);
	if (!status && (!off || options.sim))
		status = check_target(options.command[0]);
	if (!status && options.sim)
		status = set_sim(&options, &places);
	if (!status && !off)
		status = set_preload(&places);
	if (status)
		return status;

	execvp(options.command[0], options.command);
	status = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
	ts_cli_bad(NULL, "'%s': %s", options.command[0], strerror(errno));
	return status;
}
