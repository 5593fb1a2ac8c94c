/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Private entry points of the simulated driver, for the simulator's own
 * libraries (runtime, NVML, CUPTI, shim) and its tests. Looked up with dlsym on
 * libcuda.so.1; programs under test never see them and nothing outside tests/
 * may use them.
 */
#ifndef SIMGPU_PRIVATE_H
#define SIMGPU_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Block bounds as the framework's allocator knows them: size_bytes > 0 reports
 * a live block at addr, size_bytes < 0 its end. Called by the PyTorch shim
 * under the allocator's lock, or by an allocator that stands in for PyTorch's;
 * takes only the simulator's lock.
 */
void simgpu_block(int device, uint64_t addr, int64_t size_bytes);

/* Where the bounds of blocks come from; report.c has their names. */
enum simgpu_bounds {
	SIMGPU_BOUNDS_ALLOCATIONS, /* the driver's own allocations */
	SIMGPU_BOUNDS_PYTORCH,     /* PyTorch's allocator reports them */
	/* PyTorch would know them but there is no shim that asks it, so that
	 * allocations have to do. */
	SIMGPU_BOUNDS_MISSING,
};
/* Called by the shim once it knows. Takes the simulator's lock. */
void simgpu_set_bounds(enum simgpu_bounds bounds);

struct simgpu_device_info {
	char name[96];
	unsigned char uuid[16];
	uint64_t total_bytes;     /* physical memory of the device */
	uint64_t used_bytes;      /* chunks in use and the contexts */
	uint64_t context_bytes;   /* of that: contexts */
	uint64_t virtual_ns;      /* the host's virtual clock */
	uint64_t busy_compute_ns; /* engine busy time so far */
	int sm_major, sm_minor;
	int pci_domain, pci_bus, pci_device;
	uint64_t launches; /* so far */
};

/* Number of devices of the machine, without cuInit; CUDA_VISIBLE_DEVICES does
 * not matter here. */
int simgpu_device_count(void);
/* 0, or -ENODEV. device is the machine's number. Needs no context, no cuInit.
 */
int simgpu_device_get_info(int device, struct simgpu_device_info *ret_info);

/* Kinds of ids that a profiler gives operations; as many as CUPTI has. */
#define SIMGPU_EXTERNAL_KINDS 6

/* What profilers are told of an operation besides. */
struct simgpu_details {
	/* of a kernel */
	uint32_t regs, static_shared_bytes, dynamic_shared_bytes;
	uint32_t value;                  /* of a set */
	bool async;                      /* the host did not wait for it */
	bool src_pageable, dst_pageable; /* of a copy */
	bool src_managed, dst_managed;
};

/*
 * One finished device operation, in order of completion. Strings live as long
 * as the process. The sink is called with the simulator's lock held and must
 * only store the record.
 */
struct simgpu_activity {
	uint32_t kind; /* enum sg_op_kind of sg.h */
	int device;
	uint64_t context_id, stream_id, correlation;
	uint64_t start_ns, end_ns; /* virtual time */
	uint64_t bytes;
	const char *name; /* mangled kernel name, or NULL */
	uint32_t grid[3], block[3];
	struct simgpu_details details;
	uint64_t external[SIMGPU_EXTERNAL_KINDS]; /* 0: none */
};
typedef void (*simgpu_activity_sink)(
        const struct simgpu_activity *record, void *user);
/* Installs the sink (NULL removes it). */
void simgpu_set_activity_sink(simgpu_activity_sink sink, void *user);
/*
 * Called on every thread that enters a function of the API, before it does
 * anything, as profilers are: it may call the API, and is not called for that.
 * NULL removes it.
 */
typedef void (*simgpu_api_callback)(const char *name);
void simgpu_set_api_callback(simgpu_api_callback callback);
/* The correlation id the calling thread's next operation will get. */
uint64_t simgpu_next_correlation(void);
/* Operations that the calling thread issues from now on carry @id; 0: none. */
void simgpu_set_external(unsigned int kind, uint64_t id);
/* Finishes all device work in virtual time without moving the host's clock. */
void simgpu_flush(void);

#ifdef __cplusplus
}
#endif
#endif
