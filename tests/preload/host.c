/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Small programs to preload the library into, one a command: each prints what
 * it saw and ends with 0 where that is right by itself.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1ull << 20)

typedef CUresult init_function(unsigned int flags);
typedef CUresult get_proc_function(const char *symbol, void **pfn, int version,
        cuuint64_t flags, CUdriverProcAddressQueryResult *status);

static int fail(const char *what)
{
	fprintf(stdout, "host: %s\n", what);
	return 1;
}

static const char *file_of(void *address)
{
	static Dl_info info;
	const char *slash;

	if (!address || !dladdr(address, &info))
		return "nowhere";
	slash = strrchr(info.dli_fname, '/');
	return slash ? slash + 1 : info.dli_fname;
}

static void *driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library) {
		fail("no libcuda.so.1");
		exit(1);
	}
	return library;
}

/* What other programs do with dlsym stays as it is. */
static int look_ups(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	void *self = dlopen(NULL, RTLD_NOW);

	dlerror();
	if (!dlsym(libc, "strlen") || !dlsym(RTLD_DEFAULT, "malloc"))
		return fail("libc not found");
	if (dlsym(libc, "no_such_symbol") || !dlerror())
		return fail("a symbol that is not there, or no error");
	if (dlsym(libc, "cuMemAlloc_v2"))
		return fail("a driver symbol in libc");
	if (!dlvsym(libc, "memcpy", "GLIBC_2.14"))
		return fail("dlvsym");
	if (dlvsym(libc, "memcpy", "GLIBC_9.9"))
		return fail("a version that is not there");
	if (!dlsym(self, "environ"))
		return fail("own scope");
	/* The caller is this program: the next after it. */
	if (!dlsym(RTLD_NEXT, "free"))
		return fail("RTLD_NEXT");
	return 0;
}

/* The same wrapper by every road. */
static int roads(void)
{
	void *library = driver(), *by_name = dlsym(library, "cuMemAlloc_v2");
	get_proc_function *get =
	        (get_proc_function *)dlsym(library, "cuGetProcAddress_v2");
	void *legacy = NULL, *per_thread = NULL, *old = NULL, *plain = NULL;

	printf("dlsym %s\n", file_of(by_name));
	if (get("cuMemAlloc", &legacy, 12000, 0, NULL) || legacy != by_name)
		return fail("cuGetProcAddress gives another cuMemAlloc");
	if (get("cuMemAlloc", &old, 3010, 0, NULL) == CUDA_SUCCESS &&
	        old == by_name)
		return fail("an old version gives the new function");
	get("cuMemcpyHtoDAsync", &legacy, 12000, 0, NULL);
	get("cuMemcpyHtoDAsync", &per_thread, 12000,
	        CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL);
	if (!legacy || !per_thread || legacy == per_thread)
		return fail("the per-thread flag is lost");
	if (legacy != dlsym(library, "cuMemcpyHtoDAsync_v2") ||
	        per_thread != dlsym(library, "cuMemcpyHtoDAsync_v2_ptsz"))
		return fail("dlsym and cuGetProcAddress differ");
	if (get("cuDeviceGetName", &plain, 12000, 0, NULL) ||
	        strcmp(file_of(plain), "libcuda.so.1"))
		return fail("a function without a wrapper is not the driver's");
	plain = NULL;
	get("cuNoSuchFunction", &plain, 12000, 0, NULL);
	if (plain)
		return fail("a function that is not there");
	printf("cuGetProcAddress %s\n", file_of(legacy));
	return 0;
}

/* Calls of a library to itself pass the wrappers and arrive. */
static int engine(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int (*calls)(void) = NULL;

	if (library)
		calls = (int (*)(void))dlsym(library, "engine_calls");
	if (!calls)
		return fail("no library");
	printf("%d\n", calls());
	return 0;
}

static void *open_library(void *path)
{
	return dlopen(path, RTLD_NOW);
}

/* One thread runs a constructor that looks up the driver, another does too. */
static int loader(const char *path)
{
	init_function *init;
	pthread_t opener;
	void *opened;

	if (pthread_create(&opener, NULL, open_library, (void *)path))
		return fail("thread");
	usleep(100000);
	init = (init_function *)dlsym(RTLD_DEFAULT, "cuInit");
	if (!init || init(0))
		return fail("cuInit");
	pthread_join(opener, &opened);
	printf("%s\n", opened ? "done" : "not opened");
	return 0;
}

/* No driver has been loaded, and nothing here stands in for one. */
static int absent(void)
{
	dlerror();
	if (dlsym(RTLD_DEFAULT, "cuInit") || !dlerror())
		return fail("cuInit of nobody");
	if (dlsym(RTLD_NEXT, "cuMemAlloc_v2") || !dlerror())
		return fail("cuMemAlloc_v2 of nobody");
	if (dlsym(RTLD_DEFAULT, "cublasSetWorkspace_v2") || !dlerror())
		return fail("cublasSetWorkspace_v2 of nobody");
	if (!dlsym(RTLD_DEFAULT, "malloc") ||
	        !dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL))
		return fail("no libcuda.so.1");
	if (strcmp(file_of(dlsym(RTLD_DEFAULT, "cuInit")), "libtapeswap.so"))
		return fail("not the wrapper");
	return 0;
}

static int initialize(void)
{
	init_function *init = (init_function *)dlsym(driver(), "cuInit");

	printf("cuInit %d\n", (int)init(0));
	return 0;
}

#define CALL(name, ...) ((__typeof__(&name))dlsym(library, #name))(__VA_ARGS__)

/* A copy in, a memset and copies out; nothing looks at the content. */
static int work(void)
{
	static unsigned char in[4096], out[4096];
	void *library = driver();
	CUcontext context;
	CUdeviceptr a, b;
	CUdevice device;

	memset(in, 7, sizeof(in));
	if (CALL(cuInit, 0) || CALL(cuDeviceGet, &device, 0) ||
	        CALL(cuDevicePrimaryCtxRetain, &context, device) ||
	        CALL(cuCtxSetCurrent, context))
		return fail("no context");
	if (CALL(cuMemAlloc_v2, &a, 4 * MIB) || CALL(cuMemAlloc_v2, &b, 100))
		return fail("no memory");
	if (CALL(cuMemcpyHtoD_v2, a, in, sizeof(in)) ||
	        CALL(cuMemsetD8_v2, b, 9, 100) ||
	        CALL(cuMemcpyDtoH_v2, out, a, sizeof(out)) ||
	        CALL(cuMemcpyDtoH_v2, out, b, 100))
		return fail("copies");
	if (CALL(cuMemFree_v2, a) || CALL(cuMemFree_v2, b))
		return fail("free");
	printf("done\n");
	return 0;
}

static bool make_context(void *library)
{
	CUcontext context;

	return !CALL(cuInit, 0) &&
	       !CALL(cuDevicePrimaryCtxRetain, &context, 0) &&
	       !CALL(cuCtxSetCurrent, context);
}

static int outcomes[3]; /* success, out of memory, anything else */

static bool count(CUresult result)
{
	int place = result == CUDA_ERROR_OUT_OF_MEMORY ? 1 : 2;

	outcomes[result == CUDA_SUCCESS ? 0 : place]++;
	return result == CUDA_SUCCESS;
}

#define BUFFERS 6

/* Six buffers of 4 MiB, set and copied in turn; for limits they exceed. */
static int pressure(void)
{
	void *library = driver();
	CUdeviceptr buffers[BUFFERS] = {0};

	if (!make_context(library))
		return fail("no context");
	for (int i = 0; i < BUFFERS; i++)
		count(CALL(cuMemAlloc_v2, &buffers[i], 4 * MIB));
	for (int i = 0; i < 4 * BUFFERS; i++) {
		CUdeviceptr to = buffers[i % BUFFERS];
		CUdeviceptr from = buffers[(i + 1) % BUFFERS];

		if (to)
			count(CALL(cuMemsetD8_v2, to, 1, 4 * MIB));
		if (to && from)
			count(CALL(cuMemcpyDtoD_v2, to, from, 3 * MIB));
	}
	for (int i = 0; i < BUFFERS; i++)
		if (buffers[i])
			count(CALL(cuMemFree_v2, buffers[i]));
	printf("%d %d %d\n", outcomes[0], outcomes[1], outcomes[2]);
	return 0;
}

/* A table of addresses goes to the device: what it names must stay. */
static int escape(void)
{
	void *library = driver();
	CUdeviceptr table, buffers[BUFFERS] = {0};

	if (!make_context(library) ||
	        CALL(cuMemAlloc_v2, &table, sizeof(buffers)))
		return fail("no memory");
	for (int i = 0; i < BUFFERS; i++)
		if (CALL(cuMemAlloc_v2, &buffers[i], 4 * MIB))
			return fail("no memory");
	if (CALL(cuMemcpyHtoD_v2, table, buffers, 2 * sizeof(buffers[0])))
		return fail("copy");
	for (int i = 2; i < BUFFERS; i++)
		count(CALL(cuMemsetD8_v2, buffers[i], 1, 4 * MIB));
	printf("%d %d %d\n", outcomes[0], outcomes[1], outcomes[2]);
	return 0;
}

/* What a graph was captured with is there when it is launched. */
static int graph(void)
{
	void *library = driver();
	CUdeviceptr buffers[BUFFERS] = {0};
	CUgraphExec executable;
	CUstream stream;
	CUgraph captured;

	if (!make_context(library) ||
	        CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING))
		return fail("no stream");
	for (int i = 0; i < BUFFERS; i++)
		if (CALL(cuMemAlloc_v2, &buffers[i], 4 * MIB))
			return fail("no memory");
	if (CALL(cuStreamBeginCapture_v2, stream,
	            CU_STREAM_CAPTURE_MODE_GLOBAL) ||
	        CALL(cuMemsetD8Async, buffers[0], 1, 4 * MIB, stream) ||
	        CALL(cuStreamEndCapture, stream, &captured) ||
	        CALL(cuGraphInstantiateWithFlags, &executable, captured, 0))
		return fail("no graph");
	for (int i = 1; i < BUFFERS; i++)
		count(CALL(cuMemsetD8_v2, buffers[i], 1, 4 * MIB));
	count(CALL(cuGraphLaunch, executable, stream));
	count(CALL(cuCtxSynchronize));
	printf("%d %d %d\n", outcomes[0], outcomes[1], outcomes[2]);
	return 0;
}

/* A capture whose stream is destroyed, or that was never begun, is over. */
static int dropped_capture(void)
{
	void *library = driver();
	CUdeviceptr buffers[BUFFERS] = {0};
	CUstream stream, other;
	CUgraph captured;

	if (!make_context(library) ||
	        CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING) ||
	        CALL(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING))
		return fail("no stream");
	for (int i = 0; i < BUFFERS; i++)
		if (CALL(cuMemAlloc_v2, &buffers[i], 4 * MIB))
			return fail("no memory");
	if (CALL(cuStreamBeginCapture_v2, stream,
	            CU_STREAM_CAPTURE_MODE_RELAXED))
		return fail("no capture");
	/* An end that is answered with an error of any kind changes nothing. */
	if (!CALL(cuStreamEndCapture, other, &captured))
		return fail("a capture that was not begun");
	if (CALL(cuStreamDestroy_v2, stream))
		return fail("stream");
	for (int i = 0; i < 2 * BUFFERS; i++)
		count(CALL(cuMemsetD8_v2, buffers[i % BUFFERS], 1, 4 * MIB));
	count(CALL(cuCtxSynchronize));
	printf("%d %d %d\n", outcomes[0], outcomes[1], outcomes[2]);
	return 0;
}

static pthread_barrier_t meeting;

/* Works with more than the limit on a stream of its own. */
static void *work_beside(void *data)
{
	CUdeviceptr *buffers = data;
	void *library = driver();
	CUstream stream;

	if (!make_context(library) ||
	        CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING)) {
		fail("no stream");
		exit(1);
	}
	pthread_barrier_wait(&meeting);
	for (int i = 0; i < 4 * (BUFFERS - 1); i++)
		count(CALL(cuMemsetD8Async, buffers[1 + i % (BUFFERS - 1)], 1,
		        4 * MIB, stream));
	return NULL;
}

/* While one thread captures another goes on, memory being short. */
static int beside_capture(void)
{
	void *library = driver();
	CUdeviceptr buffers[BUFFERS] = {0};
	CUgraphExec executable;
	CUstream stream;
	CUgraph captured;
	pthread_t worker;

	if (!make_context(library) ||
	        CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING))
		return fail("no stream");
	for (int i = 0; i < BUFFERS; i++)
		if (CALL(cuMemAlloc_v2, &buffers[i], 4 * MIB))
			return fail("no memory");
	pthread_barrier_init(&meeting, NULL, 2);
	pthread_create(&worker, NULL, work_beside, buffers);
	if (CALL(cuStreamBeginCapture_v2, stream,
	            CU_STREAM_CAPTURE_MODE_GLOBAL) ||
	        CALL(cuMemsetD8Async, buffers[0], 1, 4 * MIB, stream))
		return fail("no capture");
	pthread_barrier_wait(&meeting);
	pthread_join(worker, NULL);
	if (CALL(cuMemsetD8Async, buffers[0], 2, 4 * MIB, stream) ||
	        CALL(cuStreamEndCapture, stream, &captured) ||
	        CALL(cuGraphInstantiateWithFlags, &executable, captured, 0))
		return fail("no graph");
	count(CALL(cuGraphLaunch, executable, stream));
	count(CALL(cuCtxSynchronize));
	printf("%d %d %d\n", outcomes[0], outcomes[1], outcomes[2]);
	return 0;
}

/* The same for a node that was put into a graph by hand. */
static int node(void)
{
	void *library = driver();
	CUdeviceptr buffers[BUFFERS] = {0};
	CUDA_MEMSET_NODE_PARAMS set = {.elementSize = 1, .height = 1};
	CUgraphNode added;
	CUcontext context;
	CUgraph graph_made;

	if (!make_context(library) || CALL(cuCtxGetCurrent, &context) ||
	        CALL(cuGraphCreate, &graph_made, 0))
		return fail("no graph");
	for (int i = 0; i < BUFFERS; i++)
		if (CALL(cuMemAlloc_v2, &buffers[i], 4 * MIB))
			return fail("no memory");
	set.dst = buffers[0];
	set.width = 4 * MIB;
	/* Whether the device takes it or not, its block is there by then. */
	CALL(cuGraphAddMemsetNode, &added, graph_made, NULL, 0, &set, context);
	for (int i = 1; i < BUFFERS; i++)
		count(CALL(cuMemsetD8_v2, buffers[i], 1, 4 * MIB));
	printf("%d %d %d\n", outcomes[0], outcomes[1], outcomes[2]);
	return 0;
}

/* A pool keeps what it has: memory from it is there for the next caller. */
static int pool(void)
{
	void *library = driver();
	CUdeviceptr buffer, pooled;
	cuuint64_t keep = UINT64_MAX;
	CUmemoryPool default_pool;

	if (!make_context(library) ||
	        CALL(cuDeviceGetDefaultMemPool, &default_pool, 0) ||
	        CALL(cuMemPoolSetAttribute, default_pool,
	                CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep) ||
	        CALL(cuMemAlloc_v2, &buffer, 4 * MIB))
		return fail("no memory");
	for (int i = 0; i < 4; i++) {
		if (!count(CALL(cuMemAllocAsync, &pooled, 12 * MIB, NULL)))
			break;
		count(CALL(cuMemsetD8Async, pooled, 1, 12 * MIB, NULL));
		count(CALL(cuMemsetD8_v2, buffer, 1, 4 * MIB));
		count(CALL(cuMemFreeAsync, pooled, NULL));
	}
	/* What the pool has not is asked for. */
	count(CALL(cuMemAllocAsync, &pooled, 20 * MIB, NULL));
	printf("%d %d %d\n", outcomes[0], outcomes[1], outcomes[2]);
	return 0;
}

/* Placed memory answers questions as memory of cuMemAlloc does. */
static int questions(void)
{
	static CUpointer_attribute asked[] = {
	        (CUpointer_attribute)99, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
	void *library = driver();
	CUmemGenericAllocationHandle handle;
	int answers[2] = {7, 7}, ordinal = 7;
	void *places[] = {&answers[0], &ordinal};
	CUdeviceptr a;
	size_t pitch;

	if (!make_context(library) || CALL(cuMemAlloc_v2, &a, 4 * MIB))
		return fail("no memory");
	if (CALL(cuPointerGetAttributes, 2, asked, places, a) || answers[0] ||
	        answers[1] != 7 || ordinal)
		return fail("an answer of another size");
	if (CALL(cuMemRetainAllocationHandle, &handle, (void *)a) !=
	        CUDA_ERROR_INVALID_VALUE)
		return fail("a handle of plain memory");
	if (CALL(cuMemAllocPitch_v2, &a, &pitch, SIZE_MAX / 8, 64, 4) !=
	        CUDA_ERROR_OUT_OF_MEMORY)
		return fail("more than there is");
	printf("done\n");
	return 0;
}

/* A device address where a host address is wanted is the driver's matter. */
static int misuse(void)
{
	void *library = driver();
	CUdeviceptr a, b;

	if (!make_context(library) || CALL(cuMemAlloc_v2, &a, 4 * MIB) ||
	        CALL(cuMemAlloc_v2, &b, 4 * MIB))
		return fail("no memory");
	printf("%d\n",
	        (int)CALL(cuMemcpyHtoD_v2, a, (void *)(uintptr_t)b, 4096));
	return 0;
}

#define STEPS    12
#define STEP_OPS 5

/* What a profiler of the program's own does first, by CUPTI's own names. */
static bool take_cupti(void)
{
	void *library = dlopen("libcupti.so.13", RTLD_NOW);
	void *subscriber = NULL;
	int (*subscribe)(void **, void *, void *) = NULL;

	if (library)
		subscribe = (int (*)(void **, void *, void *))dlsym(
		        library, "cuptiSubscribe");
	return subscribe && !subscribe(&subscriber, NULL, NULL);
}

/* Steps of some sets and copies; CUPTI is taken before the one @taken_at. */
static int steps(int taken_at)
{
	void *library = driver();
	CUdeviceptr buffers[2];

	if (!make_context(library))
		return fail("no context");
	for (int i = 0; i < 2; i++)
		if (CALL(cuMemAlloc_v2, &buffers[i], 4 * MIB))
			return fail("no memory");
	for (int step = 0; step < STEPS; step++) {
		if (step == taken_at && !take_cupti())
			return fail("CUPTI is somebody else's");
		for (size_t i = 1; i < STEP_OPS; i++)
			if (CALL(cuMemsetD8Async, buffers[0], 1, i * 512 * 1024,
			            NULL))
				return fail("set");
		if (CALL(cuMemcpyDtoDAsync_v2, buffers[1], buffers[0], MIB,
		            NULL) ||
		        CALL(cuCtxSynchronize))
			return fail("copy");
	}
	printf("done\n");
	return 0;
}

static int plain_steps(void)
{
	return steps(-1);
}

/* Started with standard error closed: the file at @path takes its number. */
static int steps_beside_a_file(const char *path)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return 1;
	fprintf(file, "%d\n", fileno(file));
	fflush(file);
	/* It is open to the end, as a program's files may be. */
	return plain_steps();
}

static int steps_of_a_profiler(void)
{
	return steps(STEPS / 2);
}

static void *set_for_ever(void *data)
{
	CUdeviceptr *buffer = data;
	void *library = driver();
	__typeof__(&cuMemsetD8Async) set =
	        (__typeof__(&cuMemsetD8Async))dlsym(library, "cuMemsetD8Async");

	if (!make_context(library))
		exit(1);
	pthread_barrier_wait(&meeting);
	while (true)
		set(*buffer, 1, MIB, NULL);
	return NULL;
}

/* Ends while other threads are in the middle of launching. */
static int exit_busy(void)
{
	static CUdeviceptr buffers[4];
	void *library = driver();
	pthread_t worker;

	if (!make_context(library))
		return fail("no context");
	pthread_barrier_init(&meeting, NULL, 5);
	for (int i = 0; i < 4; i++)
		if (CALL(cuMemAlloc_v2, &buffers[i], 4 * MIB) ||
		        pthread_create(
		                &worker, NULL, set_for_ever, &buffers[i]))
			return fail("no thread");
	pthread_barrier_wait(&meeting);
	usleep(50000);
	printf("done\n");
	return 0;
}

static int share(void)
{
	void *library = driver();
	CUipcMemHandle handle;
	CUdeviceptr a;

	if (!make_context(library) || CALL(cuMemAlloc_v2, &a, 4 * MIB))
		return fail("no memory");
	printf("cuIpcGetMemHandle %d\n",
	        (int)CALL(cuIpcGetMemHandle, &handle, a));
	return 0;
}

static int child_after_work(void)
{
	int status, rc = work();
	pid_t child;

	fflush(stdout);
	child = rc ? -1 : fork();
	if (!child)
		exit(0);
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		return fail("child");
	return 0;
}

static void *work_on_thread(void *result)
{
	*(int *)result = work();
	return NULL;
}

static int threads(void)
{
	pthread_t ids[4];
	int results[4] = {0};

	for (int i = 0; i < 4; i++)
		pthread_create(&ids[i], NULL, work_on_thread, &results[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(ids[i], NULL);
	return results[0] | results[1] | results[2] | results[3];
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} commands[] = {
	        {"absent", absent},
	        {"look-ups", look_ups},
	        {"roads", roads},
	        {"init", initialize},
	        {"work", work},
	        {"pressure", pressure},
	        {"escape", escape},
	        {"graph", graph},
	        {"dropped-capture", dropped_capture},
	        {"beside-capture", beside_capture},
	        {"node", node},
	        {"pool", pool},
	        {"questions", questions},
	        {"misuse", misuse},
	        {"exit-busy", exit_busy},
	        {"share", share},
	        {"steps", plain_steps},
	        {"steps-profiled", steps_of_a_profiler},
	        {"fork", child_after_work},
	        {"threads", threads},
	};

	if (argc == 3 && !strcmp(argv[1], "engine"))
		return engine(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "open"))
		return steps_beside_a_file(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "loader"))
		return loader(argv[2]);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (argc == 2 && !strcmp(argv[1], commands[i].name))
			return commands[i].run();
	return 2;
}
