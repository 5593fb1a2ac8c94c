/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Communicators: made by unique id, all in one process or by splitting, ended
 * by destroying or aborting, and what they tell. A unique id names the file of
 * a room in the process that was asked for it; rank 0 closes it once all are
 * there, if it is its own.
 *
 * Owns each communicator from its making to its destruction; see simnccl.h for
 * threads.
 */
#include "tests/simgpu/blas/simblas.h"
#include "tests/simgpu/nccl/simnccl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a unique id says. */
struct address {
	uint64_t magic;
	int32_t process, file;
};
_Static_assert(sizeof(struct address) <= sizeof(ncclUniqueId), "");

/* What ranks tell each other to split: those of one colour take the room of
 * the first of them. */
struct split {
	int32_t color, key;
	struct address room;
};

bool sg_nccl_comm_ok(const struct sg_nccl_comm *comm)
{
	return comm && comm->magic == SIMNCCL_MAGIC;
}

/* ---------------------------------------------------------------- statuses */

static ncclResult_t status_of(int err)
{
	switch (err) {
	case 0:
		return ncclSuccess;
	case -EINVAL:
		return ncclInvalidArgument;
	case -ENOTSUP:
	case -EBUSY:
		return ncclInvalidUsage;
	case -ENOMEM:
	case -ENOENT:
		return ncclSystemError;
	case -EPIPE:
	case -ECONNABORTED:
		return ncclRemoteError;
	default:
		return ncclUnhandledCudaError;
	}
}

ncclResult_t sg_nccl_status(struct sg_nccl_comm *comm, int err)
{
	ncclResult_t status = status_of(err);

	if (status != ncclSuccess && sg_nccl_comm_ok(comm))
		atomic_store(&comm->error, status);
	return status;
}

const char *ncclGetErrorString(ncclResult_t result)
{
	static const char *const texts[] = {
	        [ncclSuccess] = "no error",
	        [ncclUnhandledCudaError] = "a call of the driver failed",
	        [ncclSystemError] = "no memory or no such process",
	        [ncclInternalError] = "internal error",
	        [ncclInvalidArgument] = "invalid argument",
	        [ncclInvalidUsage] = "invalid usage or not supported here",
	        [ncclRemoteError] = "a rank ended or gave up",
	        [ncclInProgress] = "in progress",
	};

	if ((unsigned)result >= sizeof(texts) / sizeof(texts[0]))
		return "unknown error";
	return texts[result];
}

const char *ncclGetLastError(ncclComm_t comm)
{
	if (!sg_nccl_comm_ok(comm))
		return "";
	return ncclGetErrorString((ncclResult_t)atomic_load(&comm->error));
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *ret_error)
{
	if (!sg_nccl_comm_ok(comm) || !ret_error)
		return ncclInvalidArgument;
	*ret_error = (ncclResult_t)atomic_load(&comm->error);
	return ncclSuccess;
}

/* ------------------------------------------------------------------ making */

static int make_address(struct address *ret_address)
{
	int file, err = sg_nccl_room_make(&file);

	if (err)
		return err;
	*ret_address = (struct address){
	        .magic = SIMNCCL_MAGIC, .process = getpid(), .file = file};
	return 0;
}

/* The communicator takes the room over. */
static int make(struct sg_nccl_room *room, unsigned rank, int file,
        struct sg_nccl_comm **ret_comm)
{
	struct sg_nccl_comm *comm = calloc(1, sizeof(*comm));
	int err;

	if (!comm)
		return -ENOMEM;
	comm->room = room;
	comm->rank = rank;
	comm->file = file;
	err = sg_nccl_load(comm);
	if (!err)
		err = sg_nccl_room_enter(room, rank);
	if (err) {
		sg_nccl_unload(comm);
		free(comm);
		return err;
	}
	comm->magic = SIMNCCL_MAGIC;
	*ret_comm = comm;
	return 0;
}

int sg_nccl_comm_complete(struct sg_nccl_comm *comm)
{
	int err = sg_nccl_room_full(comm->room);

	if (comm->file >= 0)
		close(comm->file);
	comm->file = -1;
	return err;
}

static int init_rank(struct sg_nccl_comm **ret_comm, int ranks,
        const ncclUniqueId *id, int rank)
{
	struct sg_nccl_room *room;
	struct address address;
	int file, err;

	memcpy(&address, id, sizeof(address));
	if (!ret_comm || address.magic != SIMNCCL_MAGIC || ranks < 1 ||
	        rank < 0 || rank >= ranks)
		return -EINVAL;
	if ((unsigned)ranks > SG_NCCL_RANKS)
		return sg_blas_unsupported("nccl", "so many ranks");
	err = sg_nccl_room_open(
	        address.process, address.file, (unsigned)ranks, &room);
	if (err)
		return err;
	file = rank == 0 && address.process == getpid() ? address.file : -1;
	err = make(room, (unsigned)rank, file, ret_comm);
	if (err) {
		sg_nccl_room_close(room);
		return err;
	}
	return sg_nccl_group_join(*ret_comm);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *ret_id)
{
	struct address address;
	int err;

	if (!ret_id)
		return ncclInvalidArgument;
	err = make_address(&address);
	if (err)
		return sg_nccl_status(NULL, err);
	memset(ret_id, 0, sizeof(*ret_id));
	memcpy(ret_id, &address, sizeof(address));
	return ncclSuccess;
}

ncclResult_t ncclCommInitRank(
        ncclComm_t *ret_comm, int ranks, ncclUniqueId id, int rank)
{
	return sg_nccl_status(NULL, init_rank(ret_comm, ranks, &id, rank));
}

/* One that shall not block does: it may, where it is quick. */
ncclResult_t ncclCommInitRankConfig(ncclComm_t *ret_comm, int ranks,
        ncclUniqueId id, int rank, const ncclConfig_t *config)
{
	(void)config;
	return sg_nccl_status(NULL, init_rank(ret_comm, ranks, &id, rank));
}

static int select_device(int ordinal)
{
	const struct sg_blas_driver *driver = sg_blas_driver();
	CUcontext context;
	CUresult result;

	if (!driver)
		return -ENODEV;
	result = driver->cuDevicePrimaryCtxRetain(&context, ordinal);
	if (result == CUDA_SUCCESS)
		result = driver->cuCtxSetCurrent(context);
	return sg_blas_errno(result);
}

static int init_all(struct sg_nccl_comm **ret_comms, int count, const int *list)
{
	const struct sg_blas_driver *driver = sg_blas_driver();
	CUcontext before = NULL;
	ncclUniqueId id;
	int err = 0;

	if (!driver)
		return -ENODEV;
	if (ncclGetUniqueId(&id) != ncclSuccess)
		return -ENOMEM;
	driver->cuCtxGetCurrent(&before);
	ncclGroupStart();
	for (int i = 0; i < count && !err; i++) {
		err = select_device(list ? list[i] : i);
		if (!err)
			err = init_rank(&ret_comms[i], count, &id, i);
	}
	driver->cuCtxSetCurrent(before);
	if (ncclGroupEnd() != ncclSuccess && !err)
		err = -EPIPE;
	return err;
}

ncclResult_t ncclCommInitAll(
        ncclComm_t *ret_comms, int count, const int *devices)
{
	if (!ret_comms || count < 1)
		return ncclInvalidArgument;
	return sg_nccl_status(NULL, init_all(ret_comms, count, devices));
}

/* --------------------------------------------------------------- splitting */

/* Tells all ranks, and hears of all. */
static int exchange(struct sg_nccl_comm *comm, const struct split *mine,
        struct split *ret_all)
{
	unsigned ranks = sg_nccl_room_ranks(comm->room);
	struct split told = *mine;
	struct simnccl_message message = {&told, sizeof(told)};
	int err = 0;

	for (unsigned i = 0; i < ranks && !err; i++)
		err = sg_nccl_send(comm->room, comm->rank, i, &message);
	for (unsigned i = 0; i < ranks && !err; i++) {
		err = sg_nccl_take(comm->room, i, comm->rank, &message);
		if (err)
			break;
		if (message.bytes == sizeof(told))
			memcpy(&ret_all[i], message.data, sizeof(told));
		else
			err = -EINVAL;
		free(message.data);
	}
	return err;
}

/* The rank that mine becomes among those of its colour, the number of these,
 * and the first of them. */
static unsigned place_in(const struct split *all, unsigned ranks, unsigned mine,
        unsigned *ret_count, unsigned *ret_first)
{
	unsigned place = 0, first = mine;

	*ret_count = 0;
	for (unsigned i = 0; i < ranks; i++) {
		if (all[i].color != all[mine].color)
			continue;
		++*ret_count;
		if (all[i].key < all[mine].key ||
		        (all[i].key == all[mine].key && i < mine))
			place++;
		if (all[i].key < all[first].key ||
		        (all[i].key == all[first].key && i < first))
			first = i;
	}
	*ret_first = first;
	return place;
}

static int split(struct sg_nccl_comm *comm, int color, int key,
        struct sg_nccl_comm **ret_comm)
{
	struct split all[SG_NCCL_RANKS], mine = {.color = color, .key = key};
	unsigned ranks = sg_nccl_room_ranks(comm->room), count, first, rank;
	ncclUniqueId id = {0};
	int err;

	err = make_address(&mine.room);
	if (err)
		return err;
	err = exchange(comm, &mine, all);
	rank = err ? 0 : place_in(all, ranks, comm->rank, &count, &first);
	if (err || color < 0 || first != comm->rank)
		close(mine.room.file);
	if (err)
		return err;
	*ret_comm = NULL;
	if (color < 0)
		return 0;
	memcpy(&id, &all[first].room, sizeof(all[first].room));
	return init_rank(ret_comm, (int)count, &id, (int)rank);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
        ncclComm_t *ret_comm, const ncclConfig_t *config)
{
	(void)config;
	if (!sg_nccl_comm_ok(comm) || !ret_comm || color < -1)
		return ncclInvalidArgument;
	/* The ranks of one thread would wait for each other. */
	if (sg_nccl_grouped())
		return sg_nccl_status(comm,
		        sg_blas_unsupported("nccl", "splitting in a group"));
	return sg_nccl_status(comm, split(comm, color, key, ret_comm));
}

/* ------------------------------------------------------------------ ending */

static void end(struct sg_nccl_comm *comm)
{
	comm->magic = 0;
	sg_nccl_room_leave(comm->room, comm->rank);
	sg_nccl_unload(comm);
	free(comm);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	if (!comm)
		return ncclSuccess;
	if (!sg_nccl_comm_ok(comm))
		return ncclInvalidArgument;
	end(comm);
	return ncclSuccess;
}

/* Another thread may wait in the room: it keeps what it uses. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	if (!comm)
		return ncclSuccess;
	if (!sg_nccl_comm_ok(comm))
		return ncclInvalidArgument;
	sg_nccl_room_abort(comm->room);
	return ncclSuccess;
}

/* Every call has been launched when it returns. */
ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	return sg_nccl_comm_ok(comm) ? ncclSuccess : ncclInvalidArgument;
}

/* ------------------------------------------------------------ what is told */

ncclResult_t ncclGetVersion(int *ret_version)
{
	if (!ret_version)
		return ncclInvalidArgument;
	*ret_version = SG_NCCL_VERSION;
	return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int *ret_count)
{
	if (!sg_nccl_comm_ok(comm) || !ret_count)
		return ncclInvalidArgument;
	*ret_count = (int)sg_nccl_room_ranks(comm->room);
	return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(ncclComm_t comm, int *ret_device)
{
	if (!sg_nccl_comm_ok(comm) || !ret_device)
		return ncclInvalidArgument;
	*ret_device = comm->device;
	return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int *ret_rank)
{
	if (!sg_nccl_comm_ok(comm) || !ret_rank)
		return ncclInvalidArgument;
	*ret_rank = (int)comm->rank;
	return ncclSuccess;
}

/* ------------------------------------------------------------ registration */

/* Registered memory would be reached directly; here it is exchanged as all
 * other memory is. */
struct registered {
	uint64_t magic;
};

ncclResult_t ncclCommRegister(
        ncclComm_t comm, void *buffer, size_t bytes, void **ret_handle)
{
	struct registered *made;

	if (!sg_nccl_comm_ok(comm) || !buffer || !bytes || !ret_handle)
		return ncclInvalidArgument;
	made = malloc(sizeof(*made));
	if (!made)
		return ncclSystemError;
	made->magic = SIMNCCL_MAGIC;
	*ret_handle = made;
	return ncclSuccess;
}

ncclResult_t ncclCommDeregister(ncclComm_t comm, void *handle)
{
	struct registered *gone = handle;

	if (!sg_nccl_comm_ok(comm) || !gone || gone->magic != SIMNCCL_MAGIC)
		return ncclInvalidArgument;
	gone->magic = 0;
	free(gone);
	return ncclSuccess;
}
