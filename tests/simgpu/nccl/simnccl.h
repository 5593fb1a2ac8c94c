/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The simulated NCCL: ranks in one process or several exchange what their
 * devices hold. room.c has the memory that the ranks of a communicator share,
 * comm.c communicators, collective.c the calls that move data, group.c when
 * they are launched, launch.c the launches, captured.c those in graphs.
 *
 * A collective is two launches on its rank's stream: simnccl_send takes what
 * the rank gives, then the calling thread waits for the other ranks' part of it
 * and launches simnccl_receive. So ranks of one thread have to be in a group,
 * as with the real one; a rank whose peers come late waits on the host.
 *
 * A communicator is used by one thread at a time, as NCCL asks of its callers;
 * only aborting and asking for errors is for any thread. Functions return 0 or
 * a negative errno, sg_nccl_status() makes an ncclResult_t of it at the edge.
 */
#ifndef SG_SIMNCCL_H
#define SG_SIMNCCL_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/simgpu/nccl/nccl_api.h"
#include "tests/simgpu/nccl/simnccl_work.h"

/* -------------------------------------------------------------------- rooms */

#define SG_NCCL_RANKS 16u

/* Memory that the ranks of a communicator share, and the letters on their way
 * from each to each. */
struct sg_nccl_room;

/* A new room, in a file that is to be kept open till all ranks are there.
 * -ENOMEM. */
int sg_nccl_room_make(int *ret_file);
/* Maps the room behind a file of a process, for so many ranks. -ENOENT: it is
 * gone, -EINVAL: the first rank said another number. */
int sg_nccl_room_open(pid_t process, int file, unsigned ranks,
        struct sg_nccl_room **ret_room);
void sg_nccl_room_close(struct sg_nccl_room *room);
/* Takes a rank's place. -EINVAL: there is none, -EBUSY: somebody has it. */
int sg_nccl_room_enter(struct sg_nccl_room *room, unsigned rank);
/* Waits until all ranks are there. -ECONNABORTED: aborted. */
int sg_nccl_room_full(struct sg_nccl_room *room);
/* Ends every wait in the room, of every rank, with -ECONNABORTED. */
void sg_nccl_room_abort(struct sg_nccl_room *room);
bool sg_nccl_room_aborted(struct sg_nccl_room *room);
/* Gives the place up and closes the room; waits first until what the rank has
 * sent is taken or nobody is left to take it. */
void sg_nccl_room_leave(struct sg_nccl_room *room, unsigned rank);
/* Is another rank of this process? */
bool sg_nccl_room_has_beside(const struct sg_nccl_room *room, unsigned rank);
unsigned sg_nccl_room_ranks(const struct sg_nccl_room *room);

/*
 * Letters arrive in the order they were sent in. Sending waits only where many
 * letters are not taken yet, taking until there is one; its data is the
 * caller's to free. -ECONNABORTED: aborted; -EPIPE: the peer's process has
 * ended or its rank left.
 */
int sg_nccl_send(struct sg_nccl_room *room, unsigned from, unsigned to,
        const struct simnccl_message *message);
int sg_nccl_take(struct sg_nccl_room *room, unsigned from, unsigned to,
        struct simnccl_message *ret_message);

/* ------------------------------------------------------------ communicators */

enum sg_nccl_kernel { SG_NCCL_K_SEND, SG_NCCL_K_RECEIVE, SG_NCCL_KERNELS };

/* Device memory that each communicator takes for itself. */
#define SG_NCCL_BUFFER_BYTES ((size_t)4 << 20)

struct sg_nccl_comm {
	uint64_t magic;
	struct sg_nccl_room *room;
	int file; /* of the room, to be closed when all are there; -1 */
	unsigned rank;
	CUcontext context; /* current when it was made */
	CUdevice device;
	CUmodule module;
	CUfunction functions[SG_NCCL_KERNELS];
	CUdeviceptr buffer;
	/* Launches come one after the other, whatever their streams. */
	CUstream last_stream;
	CUevent last;
	struct sg_nccl_captured *captured; /* captured.c's */
	_Atomic int error; /* ncclResult_t of its last failure */
};

/* NULL is none. */
bool sg_nccl_comm_ok(const struct sg_nccl_comm *comm);
/* Waits for all ranks of a communicator that was begun in a group. */
int sg_nccl_comm_complete(struct sg_nccl_comm *comm);
/* Remembers err and makes a status of it. comm may be NULL. */
ncclResult_t sg_nccl_status(struct sg_nccl_comm *comm, int err);

/* ----------------------------------------------------- tasks and the group */

/* What one call moves: parts of this rank's memory, each with its peers. */
struct sg_nccl_part {
	struct simnccl_part range;
	unsigned peers[SG_NCCL_RANKS]; /* as many as range.sources */
};
struct sg_nccl_task {
	struct sg_nccl_comm *comm;
	CUstream stream;
	uint64_t wire_bytes;
	unsigned sent, received;
	struct sg_nccl_part *sends, *receives;
	struct sg_nccl_task *next;
};
/* A task without parts; NULL: no memory. */
struct sg_nccl_task *sg_nccl_task_new(
        struct sg_nccl_comm *comm, CUstream stream);
/* Launches it, now or at the end of the thread's group; frees it. */
int sg_nccl_task_submit(struct sg_nccl_task *task);
void sg_nccl_task_free(struct sg_nccl_task *task);
/* A communicator that waits for its peers, now or at the end of the group. */
int sg_nccl_group_join(struct sg_nccl_comm *comm);
/* Is the thread in a group? */
bool sg_nccl_grouped(void);

/* Ranges of parts with places for their messages; NULL: no memory. */
struct simnccl_part *sg_nccl_ranges(
        const struct sg_nccl_part *parts, unsigned count);
/* With their messages; NULL is none. */
void sg_nccl_ranges_free(struct simnccl_part *parts, unsigned count);

/* Half of a task as work that a graph may carry out again and again, until its
 * communicator goes; NULL: no memory. */
struct simnccl_work *sg_nccl_capture(
        struct sg_nccl_task *task, enum sg_nccl_kernel kernel);
void sg_nccl_captured_free(struct sg_nccl_comm *comm);

/* The two halves of a task. */
int sg_nccl_task_send(struct sg_nccl_task *task);
int sg_nccl_task_receive(struct sg_nccl_task *task);

/* Loads the kernels into the current context and takes the buffer; undone by
 * sg_nccl_unload. */
int sg_nccl_load(struct sg_nccl_comm *comm);
void sg_nccl_unload(struct sg_nccl_comm *comm);

#endif
