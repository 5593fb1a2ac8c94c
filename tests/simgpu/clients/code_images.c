/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Program images for tests; see code_images.h. Pure functions. */
#include "code_images.h"

#include <elf.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define MACHINE_CUDA  190
#define TYPE_INFO     0x70000000u
#define OTHER_ENTRY   0x10
#define OTHER_MANAGED 0x04

void buffer_add(struct buffer *buffer, const void *data, size_t bytes)
{
	if (buffer->bytes + bytes > buffer->cap) {
		buffer->cap = (buffer->bytes + bytes) * 2;
		buffer->data = realloc(buffer->data, buffer->cap);
		if (!buffer->data)
			abort();
	}
	if (data)
		memcpy(buffer->data + buffer->bytes, data, bytes);
	else
		memset(buffer->data + buffer->bytes, 0, bytes);
	buffer->bytes += bytes;
}

void buffer_free(struct buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct buffer){0};
}

static void add_u32(struct buffer *buffer, uint32_t v)
{
	buffer_add(buffer, &v, sizeof(v));
}

static void align(struct buffer *buffer, size_t to)
{
	buffer_add(buffer, NULL, (to - buffer->bytes % to) % to);
}

/* An image in the making: contents, section headers and string tables. */
struct maker {
	struct buffer out, headers, section_names, names, symbols, info;
	unsigned n_sections, n_symbols;
};

static uint32_t add_string(struct buffer *strings, const char *s)
{
	uint32_t at = (uint32_t)strings->bytes;

	buffer_add(strings, s, strlen(s) + 1);
	return at;
}

static unsigned add_section(struct maker *m, const char *name, uint32_t type,
        const void *data, size_t bytes, uint32_t info)
{
	Elf64_Shdr sh = {
	        .sh_name = add_string(&m->section_names, name),
	        .sh_type = type,
	        .sh_size = bytes,
	        .sh_info = info,
	        .sh_link = 3,
	        .sh_addralign = 8,
	};

	align(&m->out, 8);
	sh.sh_offset = m->out.bytes;
	if (type == SHT_SYMTAB)
		sh.sh_entsize = sizeof(Elf64_Sym);
	if (type != SHT_NOBITS)
		buffer_add(&m->out, data, bytes);
	buffer_add(&m->headers, &sh, sizeof(sh));
	return m->n_sections++;
}

static unsigned add_symbol(struct maker *m, const char *name, unsigned type,
        unsigned other, unsigned section, uint64_t bytes)
{
	Elf64_Sym sym = {
	        .st_name = add_string(&m->names, name),
	        .st_info = ELF64_ST_INFO(STB_GLOBAL, type),
	        .st_other = (unsigned char)other,
	        .st_shndx = (Elf64_Half)section,
	        .st_size = bytes,
	};

	buffer_add(&m->symbols, &sym, sizeof(sym));
	return m->n_symbols++;
}

static void add_record(struct buffer *info, unsigned attribute,
        const uint32_t *words, unsigned n)
{
	uint8_t head[4] = {4, (uint8_t)attribute, (uint8_t)(n * 4), 0};

	buffer_add(info, head, sizeof(head));
	buffer_add(info, words, n * 4);
}

static void add_params(struct buffer *info, const struct image_kernel *kernel)
{
	uint32_t offset = 0, total = 0;

	for (unsigned i = 0; i < kernel->n_params; i++)
		total += kernel->param_bytes[i] + 8;
	/* The tool chain lists them from the last to the first; any order
	 * must do, so this goes from the first. */
	for (unsigned i = 0; i < kernel->n_params; i++) {
		uint32_t bytes = kernel->param_bytes[i];
		uint32_t to = bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : 1;
		uint32_t words[3] = {0};

		offset = (offset + to - 1) / to * to;
		words[1] = i | offset << 16;
		if (total > 4096)
			words[2] = bytes;
		else
			words[2] = bytes << 18 | 0x1f000;
		add_record(info, total > 4096 ? 0x45 : 0x17, words, 3);
		offset += bytes;
	}
	{
		uint8_t size[4] = {
		        3, 0x19, (uint8_t)offset, (uint8_t)(offset >> 8)};

		buffer_add(info, size, sizeof(size));
	}
}

static void add_kernel(struct maker *m, const struct image_kernel *kernel)
{
	static const uint8_t code[16];
	struct buffer info = {0};
	char name[256];
	unsigned text, symbol;

	snprintf(name, sizeof(name), ".text.%s", kernel->name);
	text = add_section(m, name, SHT_PROGBITS, code, sizeof(code), 0);
	symbol = add_symbol(
	        m, kernel->name, STT_FUNC, OTHER_ENTRY, text, sizeof(code));
	add_record(&m->info, 0x2f, (uint32_t[]){symbol, kernel->regs}, 2);
	add_record(
	        &m->info, 0x11, (uint32_t[]){symbol, kernel->local_bytes}, 2);
	add_params(&info, kernel);
	if (kernel->max_threads)
		add_record(&info, 0x05, (uint32_t[]){kernel->max_threads, 1, 1},
		        3);
	if (kernel->cluster_size) {
		add_record(&info, 0x3d,
		        (uint32_t[]){kernel->cluster_size, 1, 1}, 3);
		buffer_add(&info, (uint8_t[]){1, 0x3e, 0, 0}, 4);
	}
	snprintf(name, sizeof(name), ".nv.info.%s", kernel->name);
	add_section(m, name, TYPE_INFO, info.data, info.bytes, text);
	snprintf(name, sizeof(name), ".nv.shared.%s", kernel->name);
	add_section(m, name, SHT_NOBITS, NULL, kernel->shared_bytes, text);
	buffer_free(&info);
}

struct buffer image_cubin(int sm, const struct image_kernel *kernels,
        unsigned n_kernels, const struct image_variable *variables,
        unsigned n_variables)
{
	uint64_t global_bytes = 0, constant_bytes = 0;
	struct maker m = {0};
	Elf64_Ehdr head = {
	        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
	                ELFDATA2LSB, EV_CURRENT, 0x41, 8},
	        .e_type = ET_EXEC,
	        .e_machine = MACHINE_CUDA,
	        .e_version = EV_CURRENT,
	        .e_flags = (Elf64_Word)sm << 8,
	        .e_ehsize = sizeof(head),
	        .e_shentsize = sizeof(Elf64_Shdr),
	};
	Elf64_Shdr *headers;

	buffer_add(&m.out, NULL, sizeof(head));
	buffer_add(&m.headers, NULL, sizeof(Elf64_Shdr));
	buffer_add(&m.symbols, NULL, sizeof(Elf64_Sym));
	buffer_add(&m.names, "", 1);
	buffer_add(&m.section_names, "", 1);
	m.n_sections = 1;
	m.n_symbols = 1;
	/* 1 and 2 are the global and constant variables, 3 the strings, which
	 * are filled in at the end. */
	for (unsigned i = 0; i < n_variables; i++) {
		uint64_t *sum =
		        variables[i].constant ? &constant_bytes : &global_bytes;

		add_symbol(&m, variables[i].name, STT_OBJECT,
		        variables[i].managed ? OTHER_MANAGED : 0,
		        variables[i].constant ? 2 : 1, variables[i].bytes);
		*sum += variables[i].bytes;
	}
	add_section(&m, ".nv.global", SHT_NOBITS, NULL, global_bytes, 0);
	add_section(&m, ".nv.constant3", SHT_PROGBITS, NULL, constant_bytes, 0);
	add_section(&m, ".strtab", SHT_STRTAB, NULL, 0, 0);
	for (unsigned i = 0; i < n_kernels; i++)
		add_kernel(&m, &kernels[i]);
	add_section(&m, ".nv.info", TYPE_INFO, m.info.data, m.info.bytes, 0);
	add_section(
	        &m, ".symtab", SHT_SYMTAB, m.symbols.data, m.symbols.bytes, 1);
	head.e_shstrndx = (Elf64_Half)m.n_sections;
	add_string(&m.section_names, "");
	add_section(&m, ".shstrtab", SHT_STRTAB, NULL, 0, 0);

	headers = (Elf64_Shdr *)m.headers.data;
	headers[head.e_shstrndx].sh_offset = m.out.bytes;
	headers[head.e_shstrndx].sh_size = m.section_names.bytes;
	buffer_add(&m.out, m.section_names.data, m.section_names.bytes);
	headers[3].sh_offset = m.out.bytes;
	headers[3].sh_size = m.names.bytes;
	buffer_add(&m.out, m.names.data, m.names.bytes);
	align(&m.out, 8);
	head.e_shoff = m.out.bytes;
	head.e_shnum = (Elf64_Half)m.n_sections;
	buffer_add(&m.out, m.headers.data, m.headers.bytes);
	memcpy(m.out.data, &head, sizeof(head));
	buffer_free(&m.headers);
	buffer_free(&m.section_names);
	buffer_free(&m.names);
	buffer_free(&m.symbols);
	buffer_free(&m.info);
	return m.out;
}

/* ------------------------------------------------------------ fat binaries */

struct buffer image_fatbin(void)
{
	struct buffer fatbin = {0};

	add_u32(&fatbin, 0xba55ed50u);
	add_u32(&fatbin, 16u << 16 | 1);
	buffer_add(&fatbin, NULL, 8);
	return fatbin;
}

void image_fatbin_add(struct buffer *fatbin, unsigned kind, int sm,
        uint64_t flags, const void *data, size_t bytes,
        enum image_packing packing)
{
	size_t room = bytes + bytes / 128 + 256;
	uint8_t *packed = calloc(1, room);
	uint64_t payload, total, unpacked = 0;
	size_t stored = bytes;

	if (!packed)
		abort();
	if (packing == IMAGE_ZSTD) {
		stored = ZSTD_compress(packed, room, data, bytes, 3);
		flags |= 0x8000;
	} else if (packing == IMAGE_LZ4) {
		stored = (size_t)LZ4_compress_default(
		        data, (char *)packed, (int)bytes, (int)room);
		flags |= 0x2000;
	} else {
		memcpy(packed, data, bytes);
	}
	if (packing != IMAGE_PLAIN)
		unpacked = bytes;
	payload = (stored + 7) & ~(uint64_t)7;
	add_u32(fatbin, kind | 0x0101u << 16);
	add_u32(fatbin, 64);
	buffer_add(fatbin, &payload, 8);
	add_u32(fatbin, packing == IMAGE_PLAIN ? 0 : (uint32_t)stored);
	add_u32(fatbin, 0);
	add_u32(fatbin, 1u << 16 | 8);
	add_u32(fatbin, (uint32_t)sm);
	buffer_add(fatbin, NULL, 8);
	buffer_add(fatbin, &flags, 8);
	buffer_add(fatbin, NULL, 8);
	buffer_add(fatbin, &unpacked, 8);
	buffer_add(fatbin, packed, stored);
	buffer_add(fatbin, NULL, payload - stored);
	free(packed);
	total = fatbin->bytes - 16;
	memcpy(fatbin->data + 8, &total, 8);
}

struct image_wrapper image_wrap(const struct buffer *fatbin)
{
	return (struct image_wrapper){0x466243b1u, 1, fatbin->data, NULL};
}
