/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * As much of the ABI of NCCL and cuDNN as the tests call: declared here, since
 * a machine that builds tapeswap need not have the headers of either.
 */
#ifndef FAKE_API_H
#define FAKE_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct ncclComm *ncclComm_t;

typedef struct {
	char internal[128];
} ncclUniqueId;

/* How ncclConfig_t begins. */
typedef struct {
	size_t size;
	unsigned int magic, version;
	int blocking;
} ncclConfig_t;

enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInvalidArgument = 4,
};
enum { ncclFloat = 7 };
enum { ncclSum = 0 };

int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank);
int ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id,
        int rank, ncclConfig_t *config);
int ncclCommCount(ncclComm_t comm, int *count);
int ncclCommRegister(
        ncclComm_t comm, void *buffer, size_t bytes, void **handle);
int ncclCommDeregister(ncclComm_t comm, void *handle);
int ncclCommWindowRegister(
        ncclComm_t comm, void *buffer, size_t bytes, void **window, int flags);
int ncclAllReduce(const void *sent, void *received, size_t count, int type,
        int operation, ncclComm_t comm, void *stream);
int ncclAllGather(const void *sent, void *received, size_t count, int type,
        ncclComm_t comm, void *stream);
int ncclSend(const void *sent, size_t count, int type, int peer,
        ncclComm_t comm, void *stream);
int ncclRecv(void *received, size_t count, int type, int peer, ncclComm_t comm,
        void *stream);

/* The names for tools. */
int pncclGroupStart(void);
int pncclGroupEnd(void);
int pncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank);
int pncclAllReduce(const void *sent, void *received, size_t count, int type,
        int operation, ncclComm_t comm, void *stream);
int pncclSend(const void *sent, size_t count, int type, int peer,
        ncclComm_t comm, void *stream);
int pncclRecv(void *received, size_t count, int type, int peer, ncclComm_t comm,
        void *stream);

enum {
	CUDNN_STATUS_SUCCESS = 0,
	CUDNN_STATUS_BAD_PARAM = 2000,
	CUDNN_STATUS_NOT_SUPPORTED = 3000,
	CUDNN_STATUS_INTERNAL_ERROR = 4000,
	CUDNN_STATUS_EXECUTION_FAILED = 5000,
};
enum { CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR = 16 };
enum {
	CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS = 1001,
	CUDNN_ATTR_VARIANT_PACK_WORKSPACE = 1003,
};
enum { CUDNN_TYPE_VOID_PTR = 6 };

int cudnnBackendCreateDescriptor(int type, void **ret_descriptor);
int cudnnBackendSetAttribute(
        void *descriptor, int name, int type, int64_t count, const void *items);
int cudnnBackendGetAttribute(const void *descriptor, int name, int type,
        int64_t wanted, int64_t *ret_count, void *items);
int cudnnBackendExecute(void *handle, void *plan, void *pack);
int cudnnConvolutionForward(void *handle, const void *alpha, const void *x_desc,
        const void *x, const void *w_desc, const void *w, const void *conv_desc,
        int algorithm, void *workspace, size_t workspace_bytes,
        const void *beta, const void *y_desc, void *y);
int cudnnBatchNormalizationForwardTrainingEx(void *handle, int mode, int ops,
        const void *alpha, const void *beta, const void *x_desc, const void *x,
        const void *z_desc, const void *z, const void *y_desc, void *y,
        const void *bn_desc, const void *scale, const void *bias, double factor,
        void *running_mean, void *running_variance, double epsilon,
        void *saved_mean, void *saved_variance, const void *activation_desc,
        void *workspace, size_t workspace_bytes, void *reserved,
        size_t reserved_bytes);

#endif
