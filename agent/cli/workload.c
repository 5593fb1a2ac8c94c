/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `tapeswap workload NAME -o profile.json`: a reference workload. */
#include "agent/cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "planner/json.h"
#include "planner/profile_json.h"
#include "planner/workloads.h"

static const char usage[] =
        "usage: tapeswap workload NAME [-o FILE] [--device NAME|FILE]\n"
        "\n"
        "Writes profile.json of a reference workload: bert-large, gpt2-xl,\n"
        "llama-7b, vgg-16, or transformer with\n"
        "  --style gpt|bert|llama --layers N --hidden N --heads N\n"
        "  --sequence N --batch N --feed-forward N --vocabulary N\n"
        "--batch and --sequence also change the named ones.\n"
        "--device: a100 (default), v100, h100, titan-x, or a JSON file with\n"
        "  gemm_flops, memory_bytes_per_s, link_bytes_per_s and the like.\n"
        "--link BYTES: bytes per second each way instead of the device's.\n";

enum {
	OPT_STYLE = 256,
	OPT_LAYERS,
	OPT_HIDDEN,
	OPT_HEADS,
	OPT_SEQUENCE,
	OPT_BATCH,
	OPT_FEED_FORWARD,
	OPT_VOCABULARY,
	OPT_DEVICE,
	OPT_LINK,
};

static const struct option options[] = {
        {"style", required_argument, NULL, OPT_STYLE},
        {"layers", required_argument, NULL, OPT_LAYERS},
        {"hidden", required_argument, NULL, OPT_HIDDEN},
        {"heads", required_argument, NULL, OPT_HEADS},
        {"sequence", required_argument, NULL, OPT_SEQUENCE},
        {"batch", required_argument, NULL, OPT_BATCH},
        {"feed-forward", required_argument, NULL, OPT_FEED_FORWARD},
        {"vocabulary", required_argument, NULL, OPT_VOCABULARY},
        {"device", required_argument, NULL, OPT_DEVICE},
        {"link", required_argument, NULL, OPT_LINK},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
};

struct request {
	const char *name;
	const char *output;
	struct ts_transformer shape;
	struct ts_machine machine;
	unsigned batch;
	unsigned sequence;
};

static int read_count(const char *text, unsigned *ret_count)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || !value || value > 10000000)
		return ts_cli_bad(NULL, "'%s' is not a count", text);
	*ret_count = (unsigned)value;
	return TS_EXIT_YES;
}

/* A device file: the fields of struct ts_machine; missing ones as a100. */
static int read_machine_file(const char *path, struct ts_machine *machine)
{
	struct ts_input_error error;
	struct ts_json_at at = {.error = &error};
	uint64_t both = machine->link_both_percent;
	char *text;
	size_t length;
	json_t *root;
	int err = ts_json_read_file(path, &text, &length, &error);

	if (!err) {
		err = ts_json_load(
		        text, length, "tapeswap-device", &root, &error);
		free(text);
	}
	if (err)
		return ts_cli_bad(
		        NULL, "%s: %s: %s", path, error.path, error.message);
	at.node = root;
	struct {
		const char *key;
		double *value;
		double least, most;
	} numbers[] = {
	        {"gemm_flops", &machine->gemm_flops, 1e9, 1e18},
	        {"gemm_share", &machine->gemm_share, 0.01, 1},
	        {"attention_forward_share", &machine->attention_forward_share,
	                0.01, 1},
	        {"attention_backward_share", &machine->attention_backward_share,
	                0.01, 1},
	        {"convolution_forward_share",
	                &machine->convolution_forward_share, 0.01, 1},
	        {"convolution_backward_share",
	                &machine->convolution_backward_share, 0.01, 1},
	        {"memory_bytes_per_s", &machine->memory_bytes_per_s, 1e9, 1e15},
	        {"memory_share", &machine->memory_share, 0.01, 1},
	        {"launch_ns", &machine->launch_ns, 0, 1e9},
	};
	for (size_t i = 0; !err && i < sizeof(numbers) / sizeof(numbers[0]);
	        i++) {
		err = ts_json_number(
		        &at, numbers[i].key, true, numbers[i].value);
		if (!err && !(*numbers[i].value >= numbers[i].least &&
		                    *numbers[i].value <= numbers[i].most))
			err = ts_json_bad(&at, numbers[i].key, "outside %g..%g",
			        numbers[i].least, numbers[i].most);
	}
	if (!err)
		err = ts_json_u64(&at, "memory_bytes", TS_MAX_BYTES, true,
		        &machine->memory_bytes);
	if (!err)
		err = ts_json_u64(&at, "link_bytes_per_s", TS_MAX_BYTES, true,
		        &machine->link_bytes_per_s);
	if (!err)
		err = ts_json_u64(&at, "link_both_percent", 100, true, &both);
	if (!err)
		err = ts_json_u64(&at, "copy_latency_ns", 1000000000, true,
		        &machine->copy_latency_ns);
	machine->link_both_percent = (unsigned)both;
	json_decref(root);
	if (err)
		return ts_cli_bad(
		        NULL, "%s: %s: %s", path, error.path, error.message);
	machine->name = path;
	return TS_EXIT_YES;
}

static int read_machine(const char *text, struct ts_machine *machine)
{
	const struct ts_machine *known = ts_machine_find(text);

	if (!known)
		return read_machine_file(text, machine);
	*machine = *known;
	return TS_EXIT_YES;
}

static int read_style(const char *text, enum ts_transformer_style *ret_style)
{
	static const char *const names[] = {"gpt", "bert", "llama"};

	for (unsigned i = 0; i < 3; i++) {
		if (!strcmp(text, names[i])) {
			*ret_style = (enum ts_transformer_style)i;
			return TS_EXIT_YES;
		}
	}
	return ts_cli_bad("gpt, bert or llama", "unknown style '%s'", text);
}

static int read_option(struct request *r, int opt)
{
	switch (opt) {
	case 'o':
		r->output = optarg;
		return TS_EXIT_YES;
	case OPT_STYLE:
		return read_style(optarg, &r->shape.style);
	case OPT_LAYERS:
		return read_count(optarg, &r->shape.layers);
	case OPT_HIDDEN:
		return read_count(optarg, &r->shape.hidden);
	case OPT_HEADS:
		return read_count(optarg, &r->shape.heads);
	case OPT_SEQUENCE:
		return read_count(optarg, &r->sequence);
	case OPT_BATCH:
		return read_count(optarg, &r->batch);
	case OPT_FEED_FORWARD:
		return read_count(optarg, &r->shape.feed_forward);
	case OPT_VOCABULARY:
		return read_count(optarg, &r->shape.vocabulary);
	case OPT_DEVICE:
		return read_machine(optarg, &r->machine);
	case OPT_LINK:
		if (ts_cli_parse_bytes(optarg, 0, &r->machine.link_bytes_per_s))
			return ts_cli_bad(
			        NULL, "--link: cannot read '%s'", optarg);
		return TS_EXIT_YES;
	default:
		return TS_EXIT_BAD;
	}
}

static int make(const struct request *r, struct ts_profile *ret_profile)
{
	const struct ts_transformer *named = ts_transformer_find(r->name);
	struct ts_transformer shape = named ? *named : r->shape;

	if (r->sequence)
		shape.sequence = r->sequence;
	if (r->batch)
		shape.batch = r->batch;
	if (!strcmp(r->name, "vgg-16"))
		return ts_workload_vgg16(
		        r->batch ? r->batch : 128, &r->machine, ret_profile);
	if (!named && strcmp(r->name, "transformer"))
		return -ENOENT;
	shape.name = r->name;
	return ts_workload_transformer(&shape, &r->machine, ret_profile);
}

int ts_cli_workload(int argc, char **argv)
{
	struct request r = {.output = "-", .machine = *ts_machine_find("a100")};
	struct ts_input_error error;
	struct ts_profile profile;
	json_t *root;
	int opt, err, status;

	r.shape = *ts_transformer_find("gpt2-xl");
	while ((opt = ts_cli_option(argc, argv, ":ho:", options)) != -1) {
		if (opt == 'h') {
			fputs(usage, stdout);
			return TS_EXIT_YES;
		}
		status = read_option(&r, opt);
		if (status)
			return status;
	}
	if (ts_cli_check_names(argc, argv, "NAME"))
		return TS_EXIT_BAD;
	r.name = argv[optind];
	status = ts_cli_check_output(r.output, NULL);
	if (status)
		return status;
	err = make(&r, &profile);
	if (err == -ENOENT)
		return ts_cli_bad("tapeswap workload --help lists them",
		        "unknown workload '%s'", r.name);
	if (!err && ts_profile_check(&profile, &error)) {
		ts_profile_finish(&profile);
		return ts_cli_bad("smaller sizes, or a faster link", "%s: %s",
		        error.path, error.message);
	}
	if (err)
		return ts_cli_bad(NULL, "%s: %s", r.name, strerror(-err));
	root = ts_profile_to_json(&profile);
	ts_profile_finish(&profile);
	if (!root)
		return ts_cli_bad(NULL, "out of memory");
	json_object_set_new(root, "tool_version", json_string(TS_VERSION));
	err = ts_cli_write_json(r.output, root);
	json_decref(root);
	if (err)
		return ts_cli_bad_output(r.output, err);
	return TS_EXIT_YES;
}
