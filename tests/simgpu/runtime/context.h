/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the device functions need of the contexts; the rest stands in rt.h.
 * The driver must be initialised.
 */
#ifndef SIMGPU_RT_CONTEXT_H
#define SIMGPU_RT_CONTEXT_H

#include <cuda_runtime_api.h>

enum { RT_MAX_DEVICES = 64 };

/* Makes a device's primary context current and the device the thread's own. */
cudaError_t rt_set_device(int device);
/* Destroys the device's primary context and forgets what was cached for it. */
cudaError_t rt_reset_device(int device);

#endif
