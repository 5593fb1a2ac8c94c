/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/cli/doctor.h"

#include <cuda.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/units.h"
#include "agent/cli/cli.h"
#include "agent/config.h"
#include "agent/hostmem.h"

static struct ts_finding *add(struct ts_findings *findings,
        enum ts_verdict verdict, const char *subject)
{
	struct ts_finding *finding = &findings->list[findings->count];

	/* The last place is written over rather than run past. */
	if (findings->count < TS_FINDINGS_MAX - 1)
		findings->count++;
	memset(finding, 0, sizeof(*finding));
	finding->verdict = verdict;
	snprintf(finding->subject, sizeof(finding->subject), "%s", subject);
	return finding;
}

__attribute__((format(printf, 2, 3))) static void tell(
        struct ts_finding *finding, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(finding->detail, sizeof(finding->detail), format, args);
	va_end(args);
}

static void advise(struct ts_finding *finding, const char *remedy)
{
	snprintf(finding->remedy, sizeof(finding->remedy), "%s", remedy);
}

void ts_doctor_library(struct ts_findings *findings)
{
	static const char *const places[] = {TS_CLI_LIBRARY_PLACES};
	char self[PATH_MAX], path[PATH_MAX + 64], *slash;
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct ts_finding *finding;

	self[length > 0 ? length : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", self, places[i]);
		if (access(path, R_OK))
			continue;
		tell(add(findings, TS_SUPPORTED, "library"), "%.300s", path);
		return;
	}
	finding = add(findings, TS_REFUSED, "library");
	finding->fatal = true;
	tell(finding, "libtapeswap.so is not beside %.200s/tapeswap", self);
	advise(finding, "meson install, or run it from the build folder");
}

static struct ts_findings *warned;

static void warn(const char *message)
{
	struct ts_finding *finding = add(warned, TS_PASSED, "setting");

	tell(finding, "%.300s", message);
}

void ts_doctor_settings(struct ts_findings *findings)
{
	static struct ts_config config;
	char message[TS_CONFIG_MESSAGE_BYTES];
	const struct ts_setting *table;
	struct ts_finding *finding;
	size_t count;

	warned = findings;
	if (ts_config_parse(&config, environ, message, warn)) {
		finding = add(findings, TS_REFUSED, "setting");
		finding->fatal = true;
		tell(finding, "%.300s", message);
		return;
	}
	table = ts_config_table(&count);
	for (size_t i = 0; i < count; i++) {
		const char *value = getenv(table[i].name);

		if (value && *value)
			tell(add(findings, TS_SUPPORTED, "setting"),
			        "%s=%.200s (environment)", table[i].name,
			        value);
	}
}

struct driver {
	void *library;
	CUresult (*init)(unsigned int flags);
	CUresult (*version)(int *version);
	CUresult (*device_count)(int *count);
	CUresult (*device_name)(char *name, int length, CUdevice device);
	CUresult (*total_mem)(size_t *bytes, CUdevice device);
	CUresult (*attribute)(
	        int *value, CUdevice_attribute attribute, CUdevice device);
};

static void *function(const struct driver *driver, const char *name)
{
	return dlsym(driver->library, name);
}

static bool open_driver(struct driver *driver)
{
	driver->library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver->library)
		return false;
	driver->init = function(driver, "cuInit");
	driver->version = function(driver, "cuDriverGetVersion");
	driver->device_count = function(driver, "cuDeviceGetCount");
	driver->device_name = function(driver, "cuDeviceGetName");
	driver->total_mem = function(driver, "cuDeviceTotalMem_v2");
	driver->attribute = function(driver, "cuDeviceGetAttribute");
	return driver->init && driver->version && driver->device_count &&
	       driver->device_name && driver->total_mem && driver->attribute;
}

/* What the runtime calls must be there, whatever the version. */
static const char *missing_function(const struct driver *driver)
{
	static const char *const needed[] = {
#define TS_GPU_OP(member, symbol, type) #symbol,
#include "runtime/gpu_ops.def"
	};
	/* Without these, names and layouts are those that code tells. */
	static const char *const optional[] = {"cuFuncGetParamInfo",
	        "cuKernelGetParamInfo", "cuFuncGetName", "cuKernelGetName"};

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		bool skip = false;

		for (size_t k = 0; k < sizeof(optional) / sizeof(optional[0]);
		        k++)
			skip |= !strcmp(needed[i], optional[k]);
		if (!skip && !function(driver, needed[i]))
			return needed[i];
	}
	return NULL;
}

static void look_at_device(struct ts_findings *findings,
        const struct driver *driver, CUdevice device)
{
	struct ts_finding *finding;
	char name[128] = "?", subject[32];
	size_t bytes = 0;
	int vmm = 0;

	driver->device_name(name, sizeof(name), device);
	driver->total_mem(&bytes, device);
	driver->attribute(&vmm,
	        CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
	        device);
	snprintf(subject, sizeof(subject), "device %d", device);
	finding = add(findings, vmm ? TS_SUPPORTED : TS_REFUSED, subject);
	finding->fatal = !vmm;
	tell(finding, "%s, %s%s", name, ts_size(bytes).text,
	        vmm ? "" : ", no virtual memory management");
	if (!vmm)
		advise(finding, "TAPESWAP_MODE=observe works without it");
}

static struct ts_finding *refuse_driver(struct ts_findings *findings)
{
	struct ts_finding *finding = add(findings, TS_REFUSED, "driver");

	finding->fatal = true;
	return finding;
}

static bool is_there(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	if (handle)
		dlclose(handle);
	return handle;
}

/* Of a driver that does not tell the layout of parameters. */
static void look_at_code(struct ts_findings *findings)
{
	bool zstd = is_there("libzstd.so.1"), lz4 = is_there("liblz4.so.1");
	struct ts_finding *finding = add(findings,
	        zstd && lz4 ? TS_SUPPORTED : TS_PASSED, "kernel parameters");

	if (zstd && lz4) {
		tell(finding, "this driver does not tell their layout: it is "
		              "read from the program's code");
		return;
	}
	tell(finding,
	        "this driver does not tell their layout, and without %s%s%s "
	        "packed code cannot be read: its kernels count as using every "
	        "block",
	        zstd ? "" : "libzstd.so.1", zstd || lz4 ? "" : " and ",
	        lz4 ? "" : "liblz4.so.1");
	advise(finding, "install the library (Debian: libzstd1, liblz4-1), or "
	                "a driver of CUDA 12.4 or later");
}

void ts_doctor_driver(struct ts_findings *findings)
{
	struct driver driver = {NULL};
	struct ts_finding *finding;
	const char *missing;
	int version = 0, count = 0;
	CUresult rc;

	if (!open_driver(&driver)) {
		finding = refuse_driver(findings);
		tell(finding, "no libcuda.so.1 that can be loaded");
		advise(finding, "install NVIDIA's driver, or use tapeswap run "
		                "--sim MODEL for the simulated GPU");
		return;
	}
	rc = driver.init(0);
	if (rc == CUDA_SUCCESS)
		rc = driver.device_count(&count);
	if (rc != CUDA_SUCCESS || !count) {
		finding = refuse_driver(findings);
		tell(finding, "%d devices, error %d", count, (int)rc);
		advise(finding,
		        "nvidia-smi and CUDA_VISIBLE_DEVICES tell more");
		return;
	}
	driver.version(&version);
	missing = missing_function(&driver);
	if (missing) {
		finding = refuse_driver(findings);
		tell(finding, "CUDA %d.%d has no %s", version / 1000,
		        version % 1000 / 10, missing);
		advise(finding, "a driver of CUDA 11.2 or later");
		return;
	}
	finding = add(findings, TS_SUPPORTED, "driver");
	tell(finding, "CUDA %d.%d", version / 1000, version % 1000 / 10);
	if (!function(&driver, "cuFuncGetParamInfo"))
		look_at_code(findings);
	for (int device = 0; device < count && device < 8; device++)
		look_at_device(findings, &driver, device);
}

/* What a command prints first; false where it fails or prints nothing. */
static bool first_line(const char *command, char *ret, size_t bytes)
{
	FILE *pipe = popen(command, "re");
	bool got;

	if (!pipe)
		return false;
	got = fgets(ret, (int)bytes, pipe);
	if (pclose(pipe))
		got = false;
	if (got)
		ret[strcspn(ret, "\n")] = '\0';
	return got && *ret;
}

void ts_doctor_torch(struct ts_findings *findings, const char *python)
{
	struct ts_finding *finding;
	char command[PATH_MAX + 160], version[128];
	int major = 0, minor = 0;

	/* Not imported: that would take seconds and may use the device. */
	snprintf(command, sizeof(command),
	        "'%s' -c \"import importlib.metadata as m; "
	        "print(m.version('torch'))\" 2>/dev/null",
	        python);
	if (strchr(python, '\'') ||
	        !first_line(command, version, sizeof(version))) {
		finding = add(findings, TS_PASSED, "PyTorch");
		tell(finding,
		        "not found by %.200s: each driver allocation counts as "
		        "one block",
		        python);
		advise(finding, "--python PATH names the program's own Python");
		return;
	}
	sscanf(version, "%d.%d", &major, &minor);
	if (major < 1 || (major == 1 && minor < 12)) {
		finding = add(findings, TS_PASSED, "PyTorch");
		tell(finding,
		        "%s does not report its blocks: each driver allocation "
		        "counts as one",
		        version);
		advise(finding, "PyTorch 1.12 or later");
		return;
	}
	tell(add(findings, TS_SUPPORTED, "PyTorch"), "%s%s", version,
	        (major == 2 && (minor == 11 || minor == 15))
	                ? ""
	                : " (tested are 2.11 and 2.15)");
}

/* True where the allocator's settings hold @setting. */
static bool allocator_has(const char *setting)
{
	static const char *const names[] = {
	        "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		if (value && strstr(value, setting))
			return true;
	}
	return false;
}

void ts_doctor_allocator(struct ts_findings *findings)
{
	struct ts_finding *finding;

	if (allocator_has("expandable_segments:True")) {
		tell(add(findings, TS_SUPPORTED, "allocator"),
		        "expandable segments: what PyTorch maps in them is "
		        "placed, and moves");
		return;
	}
	if (allocator_has("backend:cudaMallocAsync")) {
		finding = add(findings, TS_PASSED, "allocator");
		tell(finding,
		        "the driver's pools hold the memory: it counts against "
		        "the limit but is not moved");
		advise(finding, "backend:native");
		return;
	}
	tell(add(findings, TS_SUPPORTED, "allocator"),
	        "PyTorch's native allocator, plain segments");
}

void ts_doctor_libraries(struct ts_findings *findings)
{
	const char *blocking = getenv("NCCL_COMM_BLOCKING");
	const char *timing = getenv("TAPESWAP_TIMING");
	struct ts_finding *finding;

	tell(add(findings, TS_PASSED, "pluggable allocators"),
	        "a program that brings its own does not report blocks: each "
	        "driver allocation counts as one");
	if (blocking && !strcmp(blocking, "0")) {
		finding = add(findings, TS_PASSED, "NCCL");
		tell(finding, "NCCL_COMM_BLOCKING=0: collective buffers stay "
		              "resident till they are freed");
		advise(finding,
		        "unset it: they are resident while in use then");
	} else {
		tell(add(findings, TS_SUPPORTED, "NCCL"),
		        "collective buffers are resident while in use and "
		        "never replayed; what is registered stays, and NCCL's "
		        "own memory only counts");
	}
	if (timing && !strcmp(timing, "cupti"))
		tell(add(findings, TS_SUPPORTED, "CUPTI"),
		        "times ops till the program profiles itself; pairs of "
		        "events from then on");
	else
		tell(add(findings, TS_PASSED, "CUPTI"),
		        "left to the program's profilers: ops are timed by "
		        "pairs of events");
}

void ts_doctor_sharing(struct ts_findings *findings)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	struct ts_finding *finding;

	if (visible && !strncmp(visible, "MIG-", strlen("MIG-")))
		tell(add(findings, TS_SUPPORTED, "MIG"),
		        "the instance is the device: %% of TAPESWAP_LIMIT is "
		        "of its memory (never checked on hardware)");
	if (getenv("CUDA_MPS_PIPE_DIRECTORY") ||
	        getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT") ||
	        getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE")) {
		finding = add(findings, TS_PASSED, "MPS");
		tell(finding,
		        "each client holds its own limit and knows nothing of "
		        "the others' (never checked on hardware)");
		advise(finding, "limits that together fit the device");
	}
}

void ts_doctor_features(struct ts_findings *findings)
{
	const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");
	const char *ipc = getenv("TAPESWAP_IPC");
	struct ts_finding *finding;

	tell(add(findings, TS_PASSED, "CUDA graphs"),
	        "what a graph touches stays resident while the graph lives; "
	        "inside it nothing is moved");
	tell(add(findings, TS_SUPPORTED, "addresses in memory"),
	        "tables that copies bring or kernels write (up to 1 MiB), "
	        "those "
	        "of cuBLAS and tensor maps: what they name stays resident");
	tell(add(findings, TS_PASSED, "several processes"),
	        "each keeps to its own limit and counts what the others use");
	if (ipc && !strcmp(ipc, "1")) {
		tell(add(findings, TS_PASSED, "IPC"),
		        "TAPESWAP_IPC=1: allocations count against the limit "
		        "but are not moved");
	} else {
		finding = add(findings, TS_REFUSED, "IPC");
		tell(finding, "cuIpcGetMemHandle is refused: memory that moves "
		              "cannot be shared so");
		advise(finding, "TAPESWAP_IPC=1 leaves allocations unmanaged");
	}
	if (blocking && strcmp(blocking, "0")) {
		finding = add(findings, TS_PASSED, "launches");
		tell(finding,
		        "CUDA_LAUNCH_BLOCKING=%.16s: copies cannot "
		        "overlap with kernels",
		        blocking);
		advise(finding, "unset it");
	}
}

void ts_doctor_host(struct ts_findings *findings)
{
	tell(add(findings, TS_SUPPORTED, "host memory"),
	        "up to %s pinned unless TAPESWAP_HOST_LIMIT says otherwise",
	        ts_size(ts_hostmem_default_limit()).text);
}
