/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * NCCL's ABI as far as the simulated libnccl has it, for itself and its tests:
 * no header of the vendor's is needed. Streams are the driver's.
 */
#ifndef SG_NCCL_API_H
#define SG_NCCL_API_H

#include <cuda.h>
#include <stddef.h>

#define SG_NCCL_EXPORT __attribute__((visibility("default")))

typedef enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclInvalidUsage = 5,
	ncclRemoteError = 6,
	ncclInProgress = 7,
} ncclResult_t;

typedef enum {
	ncclInt8 = 0,
	ncclUint8 = 1,
	ncclInt32 = 2,
	ncclUint32 = 3,
	ncclInt64 = 4,
	ncclUint64 = 5,
	ncclFloat16 = 6,
	ncclFloat32 = 7,
	ncclFloat64 = 8,
	ncclBfloat16 = 9,
	ncclNumTypes = 10, /* that can be added here */
} ncclDataType_t;

typedef enum {
	ncclSum = 0,
	ncclProd = 1,
	ncclMax = 2,
	ncclMin = 3,
	ncclAvg = 4,
	ncclNumOps = 5,
} ncclRedOp_t;

typedef struct {
	char internal[128];
} ncclUniqueId;

/* Of version 2.28. */
#define SG_NCCL_VERSION 22809

typedef struct sg_nccl_comm *ncclComm_t;

/* How the caller configures a communicator begins so. */
typedef struct {
	size_t size;
	unsigned magic, version;
	int blocking;
} ncclConfig_t;

SG_NCCL_EXPORT ncclResult_t ncclGroupStart(void);
SG_NCCL_EXPORT ncclResult_t ncclGroupEnd(void);
SG_NCCL_EXPORT const char *ncclGetErrorString(ncclResult_t result);
SG_NCCL_EXPORT const char *ncclGetLastError(ncclComm_t comm);
SG_NCCL_EXPORT ncclResult_t ncclCommGetAsyncError(
        ncclComm_t comm, ncclResult_t *ret_error);
SG_NCCL_EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *ret_id);
SG_NCCL_EXPORT ncclResult_t ncclCommInitRank(
        ncclComm_t *ret_comm, int ranks, ncclUniqueId id, int rank);
SG_NCCL_EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t *ret_comm,
        int ranks, ncclUniqueId id, int rank, const ncclConfig_t *config);
SG_NCCL_EXPORT ncclResult_t ncclCommInitAll(
        ncclComm_t *ret_comms, int count, const int *devices);
SG_NCCL_EXPORT ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
        ncclComm_t *ret_comm, const ncclConfig_t *config);
SG_NCCL_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm);
SG_NCCL_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm);
SG_NCCL_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm);
SG_NCCL_EXPORT ncclResult_t ncclGetVersion(int *ret_version);
SG_NCCL_EXPORT ncclResult_t ncclCommCount(ncclComm_t comm, int *ret_count);
SG_NCCL_EXPORT ncclResult_t ncclCommCuDevice(ncclComm_t comm, int *ret_device);
SG_NCCL_EXPORT ncclResult_t ncclCommUserRank(ncclComm_t comm, int *ret_rank);
SG_NCCL_EXPORT ncclResult_t ncclCommRegister(
        ncclComm_t comm, void *buffer, size_t bytes, void **ret_handle);
SG_NCCL_EXPORT ncclResult_t ncclCommDeregister(ncclComm_t comm, void *handle);
SG_NCCL_EXPORT ncclResult_t ncclAllReduce(const void *sent, void *received,
        size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
        CUstream stream);
SG_NCCL_EXPORT ncclResult_t ncclReduce(const void *sent, void *received,
        size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
        ncclComm_t comm, CUstream stream);
SG_NCCL_EXPORT ncclResult_t ncclReduceScatter(const void *sent, void *received,
        size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
        CUstream stream);
SG_NCCL_EXPORT ncclResult_t ncclBroadcast(const void *sent, void *received,
        size_t count, ncclDataType_t type, int root, ncclComm_t comm,
        CUstream stream);
SG_NCCL_EXPORT ncclResult_t ncclBcast(void *buffer, size_t count,
        ncclDataType_t type, int root, ncclComm_t comm, CUstream stream);
SG_NCCL_EXPORT ncclResult_t ncclAllGather(const void *sent, void *received,
        size_t count, ncclDataType_t type, ncclComm_t comm, CUstream stream);
SG_NCCL_EXPORT ncclResult_t ncclAlltoAll(const void *sent, void *received,
        size_t count, ncclDataType_t type, ncclComm_t comm, CUstream stream);
SG_NCCL_EXPORT ncclResult_t ncclGather(const void *sent, void *received,
        size_t count, ncclDataType_t type, int root, ncclComm_t comm,
        CUstream stream);
SG_NCCL_EXPORT ncclResult_t ncclScatter(const void *sent, void *received,
        size_t count, ncclDataType_t type, int root, ncclComm_t comm,
        CUstream stream);
SG_NCCL_EXPORT ncclResult_t ncclSend(const void *sent, size_t count,
        ncclDataType_t type, int peer, ncclComm_t comm, CUstream stream);
SG_NCCL_EXPORT ncclResult_t ncclRecv(void *received, size_t count,
        ncclDataType_t type, int peer, ncclComm_t comm, CUstream stream);

#endif
