/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/cli/target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode);
}

/* A malloc'ed path, or NULL with *@denied set where a file was in the way. */
static char *find_command(const char *command, bool *denied)
{
	const char *dirs = getenv("PATH");

	*denied = false;
	if (strchr(command, '/')) {
		if (access(command, F_OK) && errno != EACCES)
			return NULL;
		if (is_file(command) && !access(command, X_OK))
			return strdup(command);
		*denied = true;
		return NULL;
	}
	if (!*command)
		return NULL;
	if (!dirs)
		dirs = "/bin:/usr/bin";
	for (;;) {
		size_t length = strcspn(dirs, ":");
		char *path;

		if (asprintf(&path, "%.*s%s%s", (int)length, dirs,
		            length ? "/" : "", command) < 0)
			return NULL;
		if (is_file(path)) {
			if (!access(path, X_OK))
				return path;
			*denied = true;
		}
		free(path);
		if (!dirs[length])
			return NULL;
		dirs += length + 1;
	}
}

static enum ts_target check_elf(int fd, const Elf64_Ehdr *header)
{
	if (header->e_ident[EI_CLASS] != ELFCLASS64)
		return TS_TARGET_FOREIGN;
#ifdef __x86_64__
	if (header->e_machine != EM_X86_64)
		return TS_TARGET_FOREIGN;
#endif
	for (unsigned i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr segment;
		off_t where = header->e_phoff + (off_t)i * header->e_phentsize;

		if (pread(fd, &segment, sizeof(segment), where) !=
		        sizeof(segment))
			break;
		if (segment.p_type == PT_INTERP)
			return TS_TARGET_GOOD;
	}
	return TS_TARGET_STATIC;
}

/* Only what would really change the process's identity makes it privileged. */
static bool is_privileged(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	return (st.st_mode & S_ISUID && st.st_uid != getuid()) ||
	       (st.st_mode & S_ISGID && st.st_gid != getgid());
}

/* The interpreter named in the first line at @head, malloc'ed, or NULL. */
static char *interpreter_of(const char *head)
{
	const char *start = head + 2 + strspn(head + 2, " \t");
	size_t length = strcspn(start, " \t\n");

	return length ? strndup(start, length) : NULL;
}

enum ts_target ts_target_check(const char *command, char **ret_path)
{
	enum ts_target result = TS_TARGET_GOOD;
	bool denied;
	char *path = find_command(command, &denied);

	if (!path && denied) {
		*ret_path = strdup(command);
		return TS_TARGET_NOT_EXECUTABLE;
	}
	if (!path)
		return TS_TARGET_NOT_FOUND;
	/* An interpreter may itself be a script; the kernel follows four. */
	for (int depth = 0; depth < 4; depth++) {
		union {
			char text[256];
			Elf64_Ehdr elf;
		} head = {""};
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		char *next = NULL;

		/* Executable but not readable: the kernel may still run it. */
		if (fd < 0)
			break;
		if (pread(fd, head.text, sizeof(head.text) - 1, 0) < 2) {
			close(fd);
			break;
		}
		if (!memcmp(head.text, ELFMAG, SELFMAG))
			result = is_privileged(fd) ? TS_TARGET_SETUID
			                           : check_elf(fd, &head.elf);
		else if (!memcmp(head.text, "#!", 2))
			next = interpreter_of(head.text);
		close(fd);
		if (!next)
			break;
		free(path);
		path = next;
	}
	*ret_path = path;
	return result;
}
