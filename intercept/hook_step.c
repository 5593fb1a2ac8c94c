/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Steps as the program tells them: tapeswap_step(), or an NVTX range.
 *
 * NVTX 3 is a header: each library of the program has a table of its own that
 * is filled when the library first uses it, by the shared object that
 * NVTX_INJECTION64_PATH names. Its functions are hidden, so that nothing but
 * that variable leads there; it is set where TAPESWAP_STEP_RANGE asks for it,
 * unless another tool has it already.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "agent/agent.h"
#include "agent/base/log.h"
#include "agent/tapeswap.h"
#include "intercept/guard.h"
#include "intercept/hook_step.h"

#define PATH_VARIABLE "NVTX_INJECTION64_PATH"

/* As nvtxTypes.h has them: tables by id, functions by module and index. */
#define TABLE_CALLBACKS    1u
#define MODULE_CORE        1
#define MODULE_CORE2       5
#define RANGE_START_EX     4
#define RANGE_START_A      5
#define RANGE_PUSH_EX      8
#define RANGE_PUSH_A       9
#define DOMAIN_START_EX    2
#define DOMAIN_PUSH_EX     4
#define DOMAIN_REGISTER_A  10
#define MESSAGE_ASCII      1
#define MESSAGE_REGISTERED 3
/* What push and pop answer where nobody keeps count of ranges. */
#define NO_LEVELS (-2)

typedef void any_function(void);
typedef const void *get_export_table(uint32_t id);

struct callbacks {
	size_t bytes;
	int (*get_module)(
	        int module, any_function ****ret_table, unsigned int *ret_size);
};

/* nvtxEventAttributes_t, version 2 and later. */
struct attributes {
	uint16_t version, bytes;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	const char *message;
};

int InitializeInjectionNvtx2(get_export_table *get)
        __attribute__((visibility("default")));

/* Outside of CUDA calls; the agent's own are not to be seen. */
static bool enter(void)
{
	return ts_phase == TS_PHASE_ACTIVE && ts_enter();
}

__attribute__((visibility("default"))) void tapeswap_step(void)
{
	if (!enter())
		return;
	ts_agent_step();
	ts_leave();
}

static void range_begins(const char *name)
{
	if (!name || !enter())
		return;
	ts_agent_range(name);
	ts_leave();
}

/* Registered strings are handles: here, what register_string() returned. */
static void range_begins_ex(const struct attributes *event)
{
	if (event && (event->message_type == MESSAGE_ASCII ||
	                     event->message_type == MESSAGE_REGISTERED))
		range_begins(event->message);
}

static int push(const char *name)
{
	range_begins(name);
	return NO_LEVELS;
}

static int push_ex(const struct attributes *event)
{
	range_begins_ex(event);
	return NO_LEVELS;
}

static uint64_t start_range(const char *name)
{
	range_begins(name);
	return 0;
}

static uint64_t start_range_ex(const struct attributes *event)
{
	range_begins_ex(event);
	return 0;
}

static int domain_push_ex(void *domain, const struct attributes *event)
{
	(void)domain;
	return push_ex(event);
}

static uint64_t domain_start_ex(void *domain, const struct attributes *event)
{
	(void)domain;
	return start_range_ex(event);
}

/* Lives as long as the process, as the handle does. */
static const char *register_string(void *domain, const char *text)
{
	(void)domain;
	return text ? strdup(text) : NULL;
}

struct place {
	unsigned int index;
	any_function *function;
};

static const struct place core[] = {
        {RANGE_START_EX, (any_function *)start_range_ex},
        {RANGE_START_A, (any_function *)start_range},
        {RANGE_PUSH_EX, (any_function *)push_ex},
        {RANGE_PUSH_A, (any_function *)push},
};

static const struct place core2[] = {
        {DOMAIN_START_EX, (any_function *)domain_start_ex},
        {DOMAIN_PUSH_EX, (any_function *)domain_push_ex},
        {DOMAIN_REGISTER_A, (any_function *)register_string},
};

static void fill(const struct callbacks *callbacks, int module,
        const struct place *places, size_t count)
{
	any_function ***table;
	unsigned int size;

	if (!callbacks->get_module(module, &table, &size))
		return;
	for (size_t i = 0; i < count; i++)
		if (places[i].index <= size && table[places[i].index])
			*table[places[i].index] = places[i].function;
}

int InitializeInjectionNvtx2(get_export_table *get)
{
	const struct callbacks *callbacks = get(TABLE_CALLBACKS);

	if (!callbacks || callbacks->bytes < sizeof(*callbacks))
		return 0;
	fill(callbacks, MODULE_CORE, core, sizeof(core) / sizeof(core[0]));
	fill(callbacks, MODULE_CORE2, core2, sizeof(core2) / sizeof(core2[0]));
	return 1;
}

static const char *wanted_range(void)
{
	const char *wanted =
	        getauxval(AT_SECURE) ? NULL : getenv("TAPESWAP_STEP_RANGE");

	return wanted && *wanted ? wanted : NULL;
}

/* This library's file; the caller frees it. */
static char *own_path(void)
{
	Dl_info self;

	if (!dladdr((void *)own_path, &self) || !self.dli_fname)
		return NULL;
	return realpath(self.dli_fname, NULL);
}

void ts_step_check_range(void)
{
	const char *wanted = wanted_range(), *there = getenv(PATH_VARIABLE);
	char *own = wanted ? own_path() : NULL;

	if (own && there && strcmp(there, own))
		ts_log(TS_LOG_WARN,
		        "TAPESWAP_STEP_RANGE=\"%s\" has no "
		        "effect: " PATH_VARIABLE " names another tool",
		        wanted);
	free(own);
}

/* Before there are threads, since it changes the environment. */
__attribute__((constructor)) static void offer(void)
{
	char *own = wanted_range() ? own_path() : NULL;

	if (own)
		setenv(PATH_VARIABLE, own, 0);
	free(own);
}
