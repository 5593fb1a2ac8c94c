/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Containers of program code: tells cubins, PTX texts and fat binaries apart,
 * chooses the image for a device and unpacks it. Called under sg_lock.
 *
 * Everything here reads input from outside: each field is checked against the
 * end of the container before use.
 */
#include "tests/simgpu/driver/code.h"

#include <elf.h>
#include <errno.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define WRAPPER_MAGIC   0x466243b1u
#define CONTAINER_MAGIC 0xba55ed50u

/* The wrapper that the tool chain puts into .nvFatBinSegment. */
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

/* Head of an entry; later fields may be absent (header_bytes). */
struct entry {
	uint16_t kind, version;
	uint32_t header_bytes;
	uint64_t payload_bytes;
	uint32_t compressed_bytes, options_offset;
	uint16_t minor, major;
	uint32_t arch;
	uint32_t name_offset, name_bytes;
	uint64_t flags;
	uint64_t reserved;
	uint64_t unpacked_bytes;
};
_Static_assert(sizeof(struct entry) == 64, "as stored in fat binaries");

enum {
	ENTRY_PTX = 1,
	ENTRY_CUBIN = 2,
};
#define FLAG_LZ4      0x2000u
#define FLAG_ZSTD     0x8000u
#define FLAG_SPECIFIC 0x100000u /* sm_90a: this capability only */
#define FLAG_FAMILY   0x200000u /* sm_100f: this generation */

/* No cubin is larger; keeps a damaged size from taking all memory. */
#define UNPACKED_MAX_BYTES ((uint64_t)1 << 30)

/* How well an entry fits: 0 not at all, more is better. */
static int entry_fit(const struct entry *entry, int sm)
{
	int arch = (int)(entry->arch & 0xffff);
	bool specific = entry->flags & FLAG_SPECIFIC;
	int fit;

	if (arch > sm || (specific && arch != sm))
		return 0;
	if (entry->kind == ENTRY_CUBIN && arch / 10 != sm / 10)
		return 0;
	fit = arch * 4 + (specific ? 2 : entry->flags & FLAG_FAMILY ? 1 : 0);
	/* Any cubin is better than compiling PTX. */
	return entry->kind == ENTRY_CUBIN ? fit + 100000 : fit + 1;
}

static CUresult find_in_container(
        const uint8_t *data, size_t bytes, int sm, struct sg_image *ret_image)
{
	struct container head;
	size_t at, end;
	int best = 0;

	if (bytes < sizeof(head))
		return CUDA_ERROR_INVALID_IMAGE;
	memcpy(&head, data, sizeof(head));
	if (head.magic != CONTAINER_MAGIC || head.header_bytes < sizeof(head) ||
	        head.header_bytes > bytes ||
	        head.payload_bytes > bytes - head.header_bytes)
		return CUDA_ERROR_INVALID_IMAGE;
	at = head.header_bytes;
	end = at + head.payload_bytes;
	while (at < end) {
		struct entry entry;
		size_t stored;
		int fit;

		if (end - at < sizeof(entry))
			return CUDA_ERROR_INVALID_IMAGE;
		memcpy(&entry, data + at, sizeof(entry));
		if (entry.header_bytes < sizeof(entry) ||
		        entry.header_bytes > end - at ||
		        entry.payload_bytes > end - at - entry.header_bytes ||
		        entry.compressed_bytes > entry.payload_bytes)
			return CUDA_ERROR_INVALID_IMAGE;
		stored = entry.compressed_bytes ? entry.compressed_bytes
		                                : entry.payload_bytes;
		fit = entry.kind == ENTRY_PTX || entry.kind == ENTRY_CUBIN
		              ? entry_fit(&entry, sm)
		              : 0;
		if (fit > best) {
			best = fit;
			*ret_image = (struct sg_image){
			        .kind = entry.kind == ENTRY_PTX
			                        ? SG_IMAGE_PTX
			                        : SG_IMAGE_CUBIN,
			        .data = data + at + entry.header_bytes,
			        .bytes = stored,
			        .lz4 = entry.flags & FLAG_LZ4,
			        .zstd = entry.flags & FLAG_ZSTD,
			        .sm = (int)(entry.arch & 0xffff),
			};
			if (entry.flags & (FLAG_LZ4 | FLAG_ZSTD))
				ret_image->unpacked_bytes =
				        entry.unpacked_bytes;
		}
		at += entry.header_bytes + entry.payload_bytes;
	}
	return best ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* Size of an ELF image in memory whose length nobody told us. */
static size_t elf_span(const uint8_t *data)
{
	Elf64_Ehdr head;
	size_t end;

	memcpy(&head, data, sizeof(head));
	if (head.e_ident[EI_CLASS] != ELFCLASS64 ||
	        head.e_shentsize != sizeof(Elf64_Shdr))
		return sizeof(head);
	end = head.e_shoff + (size_t)head.e_shnum * sizeof(Elf64_Shdr);
	for (unsigned i = 0; i < head.e_shnum; i++) {
		Elf64_Shdr section;

		memcpy(&section, data + head.e_shoff + i * sizeof(Elf64_Shdr),
		        sizeof(section));
		if (section.sh_type != SHT_NOBITS &&
		        section.sh_offset + section.sh_size > end)
			end = section.sh_offset + section.sh_size;
	}
	return end;
}

static bool begins_with(
        const uint8_t *data, size_t bytes, const void *magic, size_t length)
{
	/* Byte by byte: a text may end before the magic's length. */
	for (size_t i = 0; i < length; i++)
		if (i >= bytes || data[i] != ((const uint8_t *)magic)[i])
			return false;
	return true;
}

static bool looks_like_text(const uint8_t *data, size_t bytes)
{
	size_t i = 0;

	while (i < bytes && (data[i] == ' ' || (data[i] >= 9 && data[i] <= 13)))
		i++;
	return i < bytes && (data[i] == '.' || data[i] == '/');
}

CUresult sg_image_find(
        const void *code, size_t bytes, int sm, struct sg_image *ret_image)
{
	static const uint32_t wrapper_magic = WRAPPER_MAGIC;
	static const uint32_t container_magic = CONTAINER_MAGIC;
	const uint8_t *data = code;

	if (begins_with(data, bytes, &wrapper_magic, 4)) {
		struct wrapper wrapper;

		/* A pointer read from a file leads nowhere. */
		if (bytes != SIZE_MAX)
			return CUDA_ERROR_INVALID_IMAGE;
		memcpy(&wrapper, data, sizeof(wrapper));
		if (!wrapper.data)
			return CUDA_ERROR_INVALID_IMAGE;
		return find_in_container(
		        wrapper.data, SIZE_MAX / 2, sm, ret_image);
	}
	if (begins_with(data, bytes, &container_magic, 4))
		return find_in_container(data,
		        bytes == SIZE_MAX ? SIZE_MAX / 2 : bytes, sm,
		        ret_image);
	if (begins_with(data, bytes, ELFMAG, SELFMAG)) {
		*ret_image = (struct sg_image){
		        .kind = SG_IMAGE_CUBIN,
		        .data = data,
		        .bytes = bytes == SIZE_MAX ? elf_span(data) : bytes,
		};
		return CUDA_SUCCESS;
	}
	if (looks_like_text(data, bytes)) {
		*ret_image = (struct sg_image){
		        .kind = SG_IMAGE_PTX,
		        .data = data,
		        .bytes = bytes == SIZE_MAX ? strlen(code) : bytes,
		};
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_IMAGE;
}

int sg_image_unpack(
        const struct sg_image *image, uint8_t **ret_data, size_t *ret_bytes)
{
	bool packed = image->lz4 || image->zstd;
	size_t bytes = packed ? image->unpacked_bytes : image->bytes;
	uint8_t *data;
	bool ok;

	if (!bytes || bytes > UNPACKED_MAX_BYTES ||
	        image->bytes > UNPACKED_MAX_BYTES)
		return -EINVAL;
	data = malloc(bytes + 1);
	if (!data)
		return -ENOMEM;
	if (image->zstd) {
		ok = ZSTD_decompress(data, bytes, image->data, image->bytes) ==
		     bytes;
	} else if (image->lz4) {
		ok = LZ4_decompress_safe((const char *)image->data,
		             (char *)data, (int)image->bytes,
		             (int)bytes) == (int)bytes;
	} else {
		memcpy(data, image->data, bytes);
		ok = true;
	}
	if (!ok) {
		free(data);
		return -EINVAL;
	}
	data[bytes] = 0;
	*ret_data = data;
	*ret_bytes = bytes;
	return 0;
}
