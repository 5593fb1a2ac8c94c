/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rooms: an unnamed file that the ranks of a communicator map, found through
 * the process that made it, so that nothing is left behind when processes end.
 * A letter is an unnamed file of the sender's; the slot that names it is used
 * again once the receiver has taken it. Each way from rank to rank has one
 * sender and one receiver; waits are on one futex for the whole room, and look
 * at times whether the peer is still alive.
 */
#include "tests/simgpu/nccl/simnccl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define DEPTH     64u
#define LOOK_NSEC 100000000 /* between looks at the peer */
#define ENTER_SEC 300       /* what ends before it has come nobody sees */

struct letter {
	int32_t file; /* -1: it is empty */
	uint64_t bytes;
};
struct way {
	_Atomic uint64_t sent, taken;
	struct letter letters[DEPTH];
};
enum place { PLACE_FREE, PLACE_WON, PLACE_TAKEN, PLACE_LEFT };

struct sg_nccl_room {
	_Atomic uint32_t bell; /* counts what waits may be for */
	_Atomic uint32_t aborted;
	_Atomic uint32_t ranks; /* 0: nobody has said */
	struct {
		_Atomic uint32_t place;
		pid_t process; /* once the place is taken */
	} rank[SG_NCCL_RANKS];
	struct way ways[SG_NCCL_RANKS][SG_NCCL_RANKS]; /* from, to */
};

/* ------------------------------------------------------------ rings, waits */

static void ring(struct sg_nccl_room *room)
{
	atomic_fetch_add(&room->bell, 1);
	syscall(SYS_futex, &room->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Until the bell has rung since it stood at @seen, or a while. */
static void doze(struct sg_nccl_room *room, uint32_t seen)
{
	const struct timespec while_ = {.tv_nsec = LOOK_NSEC};

	syscall(SYS_futex, &room->bell, FUTEX_WAIT, seen, &while_, NULL, 0);
}

/* Also where nobody has waited for it yet. */
static bool has_ended(pid_t process)
{
	struct pollfd poller = {.events = POLLIN};
	bool ended;

	poller.fd = (int)syscall(SYS_pidfd_open, process, 0);
	if (poller.fd < 0)
		return errno == ESRCH;
	ended = poll(&poller, 1, 0) == 1;
	close(poller.fd);
	return ended;
}

static bool is_gone(struct sg_nccl_room *room, unsigned rank)
{
	switch (atomic_load(&room->rank[rank].place)) {
	case PLACE_FREE:
	case PLACE_WON:
		return false;
	case PLACE_TAKEN:
		return has_ended(room->rank[rank].process);
	default:
		return true;
	}
}

/* ------------------------------------------------------------------- rooms */

static int map(int file, struct sg_nccl_room **ret_room)
{
	void *at = mmap(NULL, sizeof(struct sg_nccl_room),
	        PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (at == MAP_FAILED)
		return -ENOMEM;
	*ret_room = at;
	return 0;
}

int sg_nccl_room_make(int *ret_file)
{
	int file = memfd_create("simnccl", MFD_CLOEXEC);

	if (file < 0)
		return -ENOMEM;
	if (ftruncate(file, sizeof(struct sg_nccl_room))) {
		close(file);
		return -ENOMEM;
	}
	*ret_file = file;
	return 0;
}

static int open_file(pid_t process, int file, int flags)
{
	char path[64];
	int opened;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)process, file);
	opened = open(path, flags | O_CLOEXEC);
	return opened < 0 ? -ENOENT : opened;
}

int sg_nccl_room_open(
        pid_t process, int file, unsigned ranks, struct sg_nccl_room **ret_room)
{
	int opened = open_file(process, file, O_RDWR);
	struct sg_nccl_room *room;
	uint32_t said = 0;
	int err;

	if (opened < 0)
		return opened;
	err = map(opened, &room);
	close(opened);
	if (err)
		return err;
	if (!atomic_compare_exchange_strong(&room->ranks, &said, ranks) &&
	        said != ranks) {
		sg_nccl_room_close(room);
		return -EINVAL;
	}
	*ret_room = room;
	return 0;
}

void sg_nccl_room_close(struct sg_nccl_room *room)
{
	munmap(room, sizeof(*room));
}

int sg_nccl_room_enter(struct sg_nccl_room *room, unsigned rank)
{
	uint32_t place = PLACE_FREE;

	if (rank >= room->ranks)
		return -EINVAL;
	if (!atomic_compare_exchange_strong(
	            &room->rank[rank].place, &place, PLACE_WON))
		return -EBUSY;
	room->rank[rank].process = getpid();
	atomic_store(&room->rank[rank].place, PLACE_TAKEN);
	ring(room);
	return 0;
}

static time_t now_sec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

int sg_nccl_room_full(struct sg_nccl_room *room)
{
	time_t end = now_sec() + ENTER_SEC;

	for (unsigned i = 0; i < room->ranks; i++) {
		for (;;) {
			uint32_t seen = atomic_load(&room->bell);

			if (atomic_load(&room->rank[i].place) >= PLACE_TAKEN)
				break;
			if (sg_nccl_room_aborted(room))
				return -ECONNABORTED;
			if (now_sec() >= end)
				return -EPIPE;
			doze(room, seen);
		}
	}
	return 0;
}

void sg_nccl_room_abort(struct sg_nccl_room *room)
{
	atomic_store(&room->aborted, 1);
	ring(room);
}

bool sg_nccl_room_aborted(struct sg_nccl_room *room)
{
	return atomic_load(&room->aborted);
}

bool sg_nccl_room_has_beside(const struct sg_nccl_room *room, unsigned rank)
{
	for (unsigned i = 0; i < room->ranks; i++)
		if (i != rank && room->rank[i].process == getpid())
			return true;
	return false;
}

unsigned sg_nccl_room_ranks(const struct sg_nccl_room *room)
{
	return room->ranks;
}

void sg_nccl_room_leave(struct sg_nccl_room *room, unsigned rank)
{
	for (unsigned i = 0; i < room->ranks; i++) {
		struct way *way = &room->ways[rank][i];
		uint64_t sent = atomic_load(&way->sent);

		while (i != rank && !sg_nccl_room_aborted(room)) {
			uint32_t seen = atomic_load(&room->bell);

			if (atomic_load(&way->taken) == sent ||
			        is_gone(room, i))
				break;
			doze(room, seen);
		}
		for (uint64_t k = sent > DEPTH ? sent - DEPTH : 0; k < sent;
		        k++)
			if (way->letters[k % DEPTH].file >= 0)
				close(way->letters[k % DEPTH].file);
	}
	atomic_store(&room->rank[rank].place, PLACE_LEFT);
	ring(room);
	sg_nccl_room_close(room);
}

/* ----------------------------------------------------------------- letters */

static int write_file(const struct simnccl_message *message)
{
	const char *from = message->data;
	uint64_t left = message->bytes;
	int file = memfd_create("simnccl-letter", MFD_CLOEXEC);

	while (file >= 0 && left) {
		ssize_t n = write(file, from, left);

		if (n <= 0) {
			close(file);
			return -ENOMEM;
		}
		from += n;
		left -= (uint64_t)n;
	}
	return file < 0 ? -ENOMEM : file;
}

static int read_file(int file, struct simnccl_message *ret_message)
{
	uint64_t bytes = ret_message->bytes, done = 0;
	char *to = malloc(bytes);

	while (to && done < bytes) {
		ssize_t n = pread(file, to + done, bytes - done, (off_t)done);

		if (n <= 0)
			break;
		done += (uint64_t)n;
	}
	if (!to || done < bytes) {
		free(to);
		return -ENOMEM;
	}
	ret_message->data = to;
	return 0;
}

int sg_nccl_send(struct sg_nccl_room *room, unsigned from, unsigned to,
        const struct simnccl_message *message)
{
	struct way *way = &room->ways[from][to];
	uint64_t number = atomic_load(&way->sent);
	struct letter *letter = &way->letters[number % DEPTH];
	int file = -1;

	for (;;) {
		uint32_t seen = atomic_load(&room->bell);

		if (number - atomic_load(&way->taken) < DEPTH)
			break;
		if (sg_nccl_room_aborted(room))
			return -ECONNABORTED;
		if (is_gone(room, to))
			return -EPIPE;
		doze(room, seen);
	}
	if (number >= DEPTH && letter->file >= 0)
		close(letter->file);
	/* Should the next one not come to be, this is not closed again. */
	letter->file = -1;
	if (message->data)
		file = write_file(message);
	if (file == -ENOMEM)
		return file;
	*letter = (struct letter){.file = file, .bytes = message->bytes};
	atomic_store(&way->sent, number + 1);
	ring(room);
	return 0;
}

int sg_nccl_take(struct sg_nccl_room *room, unsigned from, unsigned to,
        struct simnccl_message *ret_message)
{
	struct way *way = &room->ways[from][to];
	uint64_t number = atomic_load(&way->taken);
	const struct letter *letter = &way->letters[number % DEPTH];
	struct simnccl_message message = {0};
	int file, err = 0;

	for (;;) {
		uint32_t seen = atomic_load(&room->bell);

		if (atomic_load(&way->sent) > number)
			break;
		if (sg_nccl_room_aborted(room))
			return -ECONNABORTED;
		if (is_gone(room, from))
			return -EPIPE;
		doze(room, seen);
	}
	if (letter->file >= 0) {
		message.bytes = letter->bytes;
		file = open_file(
		        room->rank[from].process, letter->file, O_RDONLY);
		if (file < 0)
			return -EPIPE;
		err = read_file(file, &message);
		close(file);
	}
	if (err)
		return err;
	atomic_store(&way->taken, number + 1);
	ring(room);
	*ret_message = message;
	return 0;
}
