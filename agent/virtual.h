/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Virtual memory that PyTorch's allocator makes for its expandable segments.
 * Handles that it creates stand for no memory here: what it maps comes to be
 * placed by the pager, under the addresses that PyTorch has reserved, and its
 * blocks move as all others do. The program's other virtual memory is left to
 * the driver, and counted.
 *
 * Any thread, inside a wrapper. One lock, never held across a driver call.
 * Functions that return bool: true where the answer to the program is in
 * @ret_result; false where the call is the driver's.
 */
#ifndef TS_VIRTUAL_H
#define TS_VIRTUAL_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

void ts_virtual_init(void);

/* The allocator has reserved addresses. */
void ts_virtual_reserved(CUdeviceptr base, size_t bytes);

/*
 * Addresses are about to be freed. Anything but CUDA_SUCCESS goes to the
 * program; the driver frees them otherwise.
 */
CUresult ts_virtual_before_free(CUdeviceptr base);

/* The allocator creates memory. Too much at once is refused, in a line. */
bool ts_virtual_create(CUmemGenericAllocationHandle *handle, size_t bytes,
        const CUmemAllocationProp *prop, CUresult *ret_result);

bool ts_virtual_map(CUdeviceptr address, size_t bytes, size_t offset,
        CUmemGenericAllocationHandle handle, CUresult *ret_result);
bool ts_virtual_unmap(CUdeviceptr address, size_t bytes, CUresult *ret_result);

/* Devices other than its own come to reach all that is placed there. */
bool ts_virtual_set_access(CUdeviceptr address, size_t bytes,
        const CUmemAccessDesc *access, size_t count, CUresult *ret_result);

bool ts_virtual_release(
        CUmemGenericAllocationHandle handle, CUresult *ret_result);
bool ts_virtual_properties(CUmemAllocationProp *ret_prop,
        CUmemGenericAllocationHandle handle, CUresult *ret_result);

/* True where it must not be shared; the line is said. */
bool ts_virtual_refuses_export(CUmemGenericAllocationHandle handle);

#endif
