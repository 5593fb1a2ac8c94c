/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tapeswap doctor`: whether this machine and environment can be worked with,
 * item by item: supported, passed through or refused, and why.
 */
#include "agent/cli/doctor.h"

#include <getopt.h>
#include <string.h>

#include "agent/cli/cli.h"

static const char usage[] =
        "usage: tapeswap doctor [--python PATH] [--json]\n"
        "\n"
        "Looks at driver, devices, PyTorch, allocator and settings as a "
        "program started\nhere would find them. Exit status 1: tapeswap "
        "cannot do its work here.\n"
        "\n"
        "  --python PATH  the Python whose PyTorch is meant (default: "
        "python3)\n"
        "  --json         the findings as JSON; can_work says what the exit "
        "status does,\n"
        "                 can_simulate whether `tapeswap run --sim` would do\n";

static const char *const verdicts[] = {
        [TS_SUPPORTED] = "supported",
        [TS_PASSED] = "passed through",
        [TS_REFUSED] = "refused",
};

static bool is_fatal(const struct ts_findings *findings)
{
	bool fatal = false;

	for (size_t i = 0; i < findings->count; i++)
		fatal |= findings->list[i].fatal;
	return fatal;
}

/* All that is amiss is that there is no GPU, and the simulated one is there. */
static bool can_simulate(const struct ts_findings *findings)
{
	for (size_t i = 0; i < findings->count; i++)
		if (findings->list[i].fatal &&
		        strcmp(findings->list[i].subject, "driver"))
			return false;
	return ts_cli_can_sim();
}

static void print_text(const struct ts_findings *findings)
{
	for (size_t i = 0; i < findings->count; i++) {
		const struct ts_finding *finding = &findings->list[i];

		printf("%-14s  %-17s  %s\n", verdicts[finding->verdict],
		        finding->subject, finding->detail);
		if (*finding->remedy)
			printf("%35s  hint: %s\n", "", finding->remedy);
	}
	if (!is_fatal(findings))
		puts("tapeswap can work here");
	else if (can_simulate(findings))
		puts("tapeswap cannot work on a GPU here; on the simulated one "
		     "it can: tapeswap run --sim a100-80g-pcie4 -- PROGRAM");
	else
		puts("tapeswap cannot work here");
}

static int print_json(const struct ts_findings *findings)
{
	json_t *root = ts_cli_json_object("tapeswap-doctor");
	json_t *list = json_array();
	int rc;

	for (size_t i = 0; i < findings->count; i++) {
		const struct ts_finding *finding = &findings->list[i];

		json_array_append_new(list,
		        json_pack("{s:s, s:s, s:s, s:b, s:o}", "subject",
		                finding->subject, "verdict",
		                verdicts[finding->verdict], "detail",
		                finding->detail, "fatal", finding->fatal,
		                "remedy",
		                *finding->remedy ? json_string(finding->remedy)
		                                 : json_null()));
	}
	json_object_set_new(
	        root, "can_work", json_boolean(!is_fatal(findings)));
	json_object_set_new(
	        root, "can_simulate", json_boolean(can_simulate(findings)));
	json_object_set_new(root, "findings", list);
	rc = ts_cli_write_json("-", root);
	json_decref(root);
	return rc ? ts_cli_bad_output("-", rc) : 0;
}

int ts_cli_doctor(int argc, char **argv)
{
	static const struct option options[] = {
	        {"python", required_argument, NULL, 'p'},
	        {"json", no_argument, NULL, 'j'},
	        {"help", no_argument, NULL, 'h'},
	        {NULL, 0, NULL, 0},
	};
	static struct ts_findings findings;
	const char *python = "python3";
	bool as_json = false;
	int opt, status = 0;

	while ((opt = ts_cli_option(argc, argv, ":h", options)) != -1) {
		switch (opt) {
		case 'p':
			python = optarg;
			break;
		case 'j':
			as_json = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return TS_EXIT_YES;
		default:
			return TS_EXIT_BAD;
		}
	}
	if (ts_cli_check_names(argc, argv, ""))
		return TS_EXIT_BAD;
	ts_doctor_library(&findings);
	ts_doctor_settings(&findings);
	ts_doctor_driver(&findings);
	ts_doctor_torch(&findings, python);
	ts_doctor_allocator(&findings);
	ts_doctor_features(&findings);
	ts_doctor_libraries(&findings);
	ts_doctor_sharing(&findings);
	ts_doctor_host(&findings);
	if (as_json)
		status = print_json(&findings);
	else
		print_text(&findings);
	if (status)
		return status;
	return is_fatal(&findings) ? TS_EXIT_NO : TS_EXIT_YES;
}
