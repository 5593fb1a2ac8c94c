/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The steps of starting the driver and what init.c shares with the files of
 * the control part. Called under the lock.
 */
#ifndef SG_START_H
#define SG_START_H

#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/simgpu_private.h"

/* Reads the environment. 0 or -EINVAL, after one line that says why. */
int sg_settings_read(void);
/* Reads decimal digits and nothing else. 0 or -EINVAL. */
int sg_parse_number(const char *text, uint64_t *ret_number);
/* Reads a model by name or path. 0 or negative errno, after one line. */
int sg_model_read(const char *name, struct sg_model *ret_model);
/* Creates the devices with their engines. 0 or negative errno. */
int sg_devices_create(void);
/* Puts the devices CUDA_VISIBLE_DEVICES names first, in its order; returns how
 * many those are. */
unsigned sg_devices_visible(struct sg_device *devices, unsigned count);
/* The device of that ordinal, or NULL. */
struct sg_device *sg_device_get(CUdevice ordinal);
/* An attribute that is the same for all devices of a model. */
CUresult sg_model_attribute(
        const struct sg_model *model, int attribute, int *value);
/* Parses SIMGPU_FAIL. 0 or -EINVAL, after one line. */
int sg_fault_read(const char *list);
/* The error SIMGPU_FAIL wants of this call of api, else CUDA_SUCCESS. */
CUresult sg_fault_check(struct sg_api *api);
/* Reads an error's number or name (CUDA_ERROR_OUT_OF_MEMORY). -EINVAL. */
int sg_error_parse(const char *text, CUresult *ret_error);

/* True once cuInit has succeeded. */
bool sg_initialised(void);
/* What cuInit found; starts the driver if that has not been tried. */
CUresult sg_start(void);
/* The process is the one that called cuInit (and not a fork of it). */
bool sg_owns_process(void);

/* Functions called so far, in no order; NULL ends the list. */
struct sg_api *sg_api_first(void);
struct sg_api *sg_api_next(const struct sg_api *api);

/* Where the bounds of blocks come from (block.c). */
enum simgpu_bounds sg_block_bounds(void);

/* Text of the i-th memory error kept, or NULL. */
const char *sg_memory_error_text(const struct sg_device *dev, unsigned i);

/* The error of the calling thread's current context, if it is broken. */
CUresult sg_ctx_error(void);

#endif
