/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As many as the kernel follows. */
#define LINKS_MAX 40

#define PROC "/proc/"

struct place {
	char *name;  /* behind the links */
	bool itself; /* no file to replace */
	int fd;      /* this process has it open, or -1 */
};

/* Where @path lies, without links; the caller frees. */
static char *folder_of(const char *path)
{
	char *copy = strdup(path);
	char *folder = copy ? realpath(dirname(copy), NULL) : NULL;

	free(copy);
	return folder;
}

static int fd_of(const char *folder, const char *name)
{
	char *own = realpath("/proc/self/fd", NULL);
	const char *slash = strrchr(name, '/');
	int fd = own && slash && !strcmp(folder, own) ? atoi(slash + 1) : -1;

	free(own);
	return fd;
}

/* @place->name is a link: what it leads to, or that it is one of /proc. */
static int follow(struct place *place)
{
	char target[PATH_MAX], *folder = folder_of(place->name), *next = NULL;
	ssize_t length = readlink(place->name, target, sizeof(target) - 1);
	int rc = 0;

	if (!folder || length < 0) {
		rc = -errno;
		goto out_folder;
	}
	target[length] = '\0';
	if (!strncmp(folder, PROC, strlen(PROC))) {
		/* Its text names what was opened, or what once was that. */
		place->itself = true;
		place->fd = fd_of(folder, place->name);
	} else if (*target == '/') {
		next = strdup(target);
		rc = next ? 0 : -ENOMEM;
	} else if (asprintf(&next, "%s/%s", folder, target) < 0) {
		next = NULL;
		rc = -ENOMEM;
	}
	if (next) {
		free(place->name);
		place->name = next;
	}
out_folder:
	free(folder);
	return rc;
}

static int find(const char *path, struct place *place)
{
	struct stat there;
	int rc = 0;

	*place = (struct place){strdup(path), false, -1};
	if (!place->name)
		return -ENOMEM;
	for (int links = 0; !rc && !place->itself; links++) {
		/* Why there is nothing is told when it is to be made. */
		if (lstat(place->name, &there))
			return 0;
		if (!S_ISLNK(there.st_mode)) {
			place->itself = !S_ISREG(there.st_mode) &&
			                !S_ISDIR(there.st_mode);
			return 0;
		}
		rc = links < LINKS_MAX ? follow(place) : -ELOOP;
	}
	if (rc)
		free(place->name);
	return rc;
}

int ts_output_place(const char *path, char **ret_file)
{
	struct place place;
	int rc = find(path, &place);

	if (rc)
		return rc;
	*ret_file = place.itself ? NULL : place.name;
	if (place.itself)
		free(place.name);
	return 0;
}

static int open_itself(const char *name, bool wait)
{
	int flags = O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC;
	int fd = open(name, flags | (wait ? 0 : O_NONBLOCK));

	/* Only the opening was not to wait. */
	if (fd >= 0 && !wait)
		fcntl(fd, F_SETFL, O_APPEND);
	return fd;
}

FILE *ts_output_open(const char *path, bool wait)
{
	struct place place;
	int rc = find(path, &place), fd;
	FILE *stream;

	if (rc) {
		errno = -rc;
		return NULL;
	}
	fd = place.fd < 0 ? open_itself(place.name, wait)
	                  : fcntl(place.fd, F_DUPFD_CLOEXEC, 0);
	free(place.name);
	stream = fd < 0 ? NULL : fdopen(fd, "w");
	if (fd >= 0 && !stream)
		close(fd);
	return stream;
}

static int check_fd(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	return (flags & O_ACCMODE) == O_RDONLY ? -EBADF : 0;
}

/* Replaced by one that is made beside it. */
static int check_file(char *name)
{
	struct stat there;

	if (!lstat(name, &there) && S_ISDIR(there.st_mode))
		return -EISDIR;
	name = dirname(name);
	if (stat(name, &there))
		return -errno;
	if (!S_ISDIR(there.st_mode))
		return -ENOTDIR;
	return access(name, W_OK | X_OK) ? -errno : 0;
}

int ts_output_check(const char *path)
{
	struct place place;
	int rc = find(path, &place);

	if (rc)
		return rc;
	if (place.fd >= 0)
		rc = check_fd(place.fd);
	else if (place.itself)
		rc = access(place.name, W_OK) ? -errno : 0;
	else
		rc = check_file(place.name);
	free(place.name);
	return rc;
}
