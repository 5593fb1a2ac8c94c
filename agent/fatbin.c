/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Containers of code: tells cubins, PTX and fat binaries apart, chooses an
 * image and unpacks it. The libraries that unpack are loaded when they are
 * wanted, and into nobody else's sight: a program may bring its own.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cubin.h"

#define WRAPPER_MAGIC   0x466243b1u
#define CONTAINER_MAGIC 0xba55ed50u
#define FLAG_LZ4        0x2000u
#define FLAG_ZSTD       0x8000u

/* No image is larger; a damaged size shall not take all memory. */
#define UNPACKED_MAX_BYTES (1ull << 30)

struct wrapper {
	uint32_t magic, version;
	const void *data;
	const void *name;
};

struct container {
	uint32_t magic;
	uint16_t version, header_bytes;
	uint64_t payload_bytes;
};

enum { ENTRY_PTX = 1, ENTRY_CUBIN = 2 };

struct entry {
	uint16_t kind, version;
	uint32_t header_bytes;
	uint64_t payload_bytes;
	uint32_t packed_bytes, options_offset;
	uint16_t minor, major;
	uint32_t arch;
	uint32_t name_offset, name_bytes;
	uint64_t flags, reserved, unpacked_bytes;
};
_Static_assert(sizeof(struct entry) == 64, "as stored in fat binaries");

/* One of a fat binary's, as it lies there. */
struct image {
	struct entry entry;
	const uint8_t *data;
	size_t bytes;
};

/* Greater is better; 0: not for this device, but layouts are the same. */
static int fit(const struct entry *entry, int sm)
{
	int arch = (int)(entry->arch & 0xffff);

	if (entry->kind != ENTRY_CUBIN)
		return 1;
	if (arch > sm || arch / 10 != sm / 10)
		return 2;
	return 2 + arch;
}

/* The best of a container of up to @bytes; 0 or -EINVAL. */
static int choose(
        const uint8_t *data, size_t bytes, int sm, struct image *ret_image)
{
	struct container head;
	size_t at, end;
	int best = 0;

	if (bytes < sizeof(head))
		return -EINVAL;
	memcpy(&head, data, sizeof(head));
	if (head.magic != CONTAINER_MAGIC || head.header_bytes < sizeof(head) ||
	        head.header_bytes > bytes ||
	        head.payload_bytes > bytes - head.header_bytes)
		return -EINVAL;
	at = head.header_bytes;
	end = at + head.payload_bytes;
	while (at < end) {
		struct entry entry;

		if (end - at < sizeof(entry))
			return -EINVAL;
		memcpy(&entry, data + at, sizeof(entry));
		if (entry.header_bytes < sizeof(entry) ||
		        entry.header_bytes > end - at ||
		        entry.payload_bytes > end - at - entry.header_bytes ||
		        entry.packed_bytes > entry.payload_bytes)
			return -EINVAL;
		if ((entry.kind == ENTRY_PTX || entry.kind == ENTRY_CUBIN) &&
		        fit(&entry, sm) > best) {
			best = fit(&entry, sm);
			*ret_image = (struct image){entry,
			        data + at + entry.header_bytes,
			        entry.packed_bytes ? entry.packed_bytes
			                           : entry.payload_bytes};
		}
		at += entry.header_bytes + entry.payload_bytes;
	}
	return best ? 0 : -EINVAL;
}

static void *load(const char *library, const char *symbol)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	return handle ? dlsym(handle, symbol) : NULL;
}

static int unpack_zstd(const struct image *image, uint8_t *out, size_t bytes)
{
	size_t (*decompress)(void *, size_t, const void *, size_t);

	*(void **)&decompress = load("libzstd.so.1", "ZSTD_decompress");
	if (!decompress)
		return -ENOSYS;
	return decompress(out, bytes, image->data, image->bytes) == bytes
	               ? 0
	               : -EINVAL;
}

static int unpack_lz4(const struct image *image, uint8_t *out, size_t bytes)
{
	int (*decompress)(const char *, char *, int, int);

	*(void **)&decompress = load("liblz4.so.1", "LZ4_decompress_safe");
	if (!decompress)
		return -ENOSYS;
	return decompress((const char *)image->data, (char *)out,
	               (int)image->bytes, (int)bytes) == (int)bytes
	               ? 0
	               : -EINVAL;
}

static int read_plain(const struct image *image, const uint8_t *data,
        size_t bytes, ts_cubin_found found, void *context)
{
	if (image->entry.kind == ENTRY_PTX)
		return ts_ptx_read((const char *)data,
		        strnlen((const char *)data, bytes), found, context);
	return ts_cubin_read(data, bytes, found, context);
}

static int read_image(
        const struct image *image, ts_cubin_found found, void *context)
{
	bool zstd = image->entry.flags & FLAG_ZSTD;
	uint64_t bytes = image->entry.unpacked_bytes;
	uint8_t *data;
	int rc;

	if (!zstd && !(image->entry.flags & FLAG_LZ4))
		return read_plain(
		        image, image->data, image->bytes, found, context);
	if (!bytes || bytes > UNPACKED_MAX_BYTES ||
	        image->bytes > UNPACKED_MAX_BYTES)
		return -EINVAL;
	data = malloc(bytes);
	if (!data)
		return -ENOMEM;
	rc = zstd ? unpack_zstd(image, data, bytes)
	          : unpack_lz4(image, data, bytes);
	if (!rc)
		rc = read_plain(image, data, bytes, found, context);
	free(data);
	return rc;
}

/* Where an ELF image in memory ends whose length nobody told. */
static size_t elf_bytes(const uint8_t *data)
{
	Elf64_Ehdr head;
	uint64_t end;

	memcpy(&head, data, sizeof(head));
	if (head.e_shentsize != sizeof(Elf64_Shdr))
		return sizeof(head);
	end = head.e_shoff + (uint64_t)head.e_shnum * sizeof(Elf64_Shdr);
	for (unsigned int i = 0; i < head.e_shnum; i++) {
		Elf64_Shdr section;

		memcpy(&section, data + head.e_shoff + i * sizeof(section),
		        sizeof(section));
		if (section.sh_type != SHT_NOBITS &&
		        section.sh_offset + section.sh_size > end)
			end = section.sh_offset + section.sh_size;
	}
	return end;
}

static bool begins_with(const void *code, size_t bytes, uint32_t magic)
{
	return bytes >= sizeof(magic) && !memcmp(code, &magic, sizeof(magic));
}

static int read_container(const void *data, size_t bytes, int sm,
        ts_cubin_found found, void *context)
{
	struct image image;
	int rc = choose(data, bytes, sm, &image);

	return rc ? rc : read_image(&image, found, context);
}

int ts_code_read(const void *code, size_t bytes, int sm, ts_cubin_found found,
        void *context)
{
	bool open = bytes == SIZE_MAX;
	struct wrapper wrapper;

	/* As long a text as has no end: it stops at the first byte of 0. */
	if (open && *(const char *)code != ELFMAG[0] &&
	        strnlen(code, sizeof(uint32_t)) < sizeof(uint32_t))
		return -EINVAL;
	if (begins_with(code, bytes, WRAPPER_MAGIC)) {
		/* A pointer that was read from a file leads nowhere. */
		if (!open)
			return -EINVAL;
		memcpy(&wrapper, code, sizeof(wrapper));
		return read_container(
		        wrapper.data, SIZE_MAX / 2, sm, found, context);
	}
	if (begins_with(code, bytes, CONTAINER_MAGIC))
		return read_container(
		        code, open ? SIZE_MAX / 2 : bytes, sm, found, context);
	if (bytes >= SELFMAG && !memcmp(code, ELFMAG, SELFMAG))
		return ts_cubin_read(
		        code, open ? elf_bytes(code) : bytes, found, context);
	return ts_ptx_read(code, open ? strlen(code) : strnlen(code, bytes),
	        found, context);
}
