/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cubins: reads kernels, their parameter layouts and resources, and global
 * variables out of an ELF image through libelf. Called under sg_lock. The
 * image comes from outside, so nothing in it is believed unchecked.
 *
 * Kernels are the function symbols marked as entries. What the sections of a
 * kernel say (.nv.info.NAME, .nv.shared.NAME) is found by their sh_info, which
 * names the kernel's .text section; .nv.info of the whole image names kernels
 * by symbol.
 */
#include "tests/simgpu/driver/code.h"

#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#define EM_CUDA_MACHINE 190
#define OTHER_ENTRY     0x10 /* st_other: a kernel */
#define OTHER_MANAGED   0x04 /* st_other: a managed variable */
#define SHT_CUDA_INFO   0x70000000u

/* Records of .nv.info: format, attribute, then a value or a length. */
enum {
	FORMAT_SIZED = 4,
};
enum {
	ATTR_MAX_THREADS = 0x05,
	ATTR_REQUIRED_THREADS = 0x10,
	ATTR_FRAME_SIZE = 0x11,
	ATTR_MIN_STACK_SIZE = 0x12,
	ATTR_KPARAM_INFO = 0x17,
	ATTR_CBANK_PARAM_SIZE = 0x19,
	ATTR_REGCOUNT = 0x2f,
	ATTR_CTA_PER_CLUSTER = 0x3d,
	ATTR_EXPLICIT_CLUSTER = 0x3e,
	ATTR_KPARAM_INFO_LARGE = 0x45,
};

/* Shared memory the system keeps of each block, from sm_90 on. */
#define RESERVED_SHARED_BYTES 1024

#define NO_KERNEL UINT32_MAX

struct cubin {
	Elf *elf;
	struct sg_code *code;
	size_t n_sections, names_section, n_symbols;
	uint32_t *kernel_of_section; /* by .text section */
	uint32_t *kernel_of_symbol;
	bool reserved_shared;
};

static uint32_t read_u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint16_t read_u16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static const char *section_name(const struct cubin *cubin, const GElf_Shdr *sh)
{
	const char *name =
	        elf_strptr(cubin->elf, cubin->names_section, sh->sh_name);

	return name ? name : "";
}

static bool has_prefix(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

static struct sg_code_kernel *kernel_of_symbol(
        const struct cubin *cubin, uint32_t symbol)
{
	if (symbol >= cubin->n_symbols ||
	        cubin->kernel_of_symbol[symbol] == NO_KERNEL)
		return NULL;
	return &cubin->code->kernels[cubin->kernel_of_symbol[symbol]];
}

static void add_symbol(struct cubin *cubin, size_t index, const GElf_Sym *sym,
        const char *name)
{
	struct sg_code_variable *variable;
	const char *in;
	GElf_Shdr sh;
	Elf_Scn *section;
	int type = GELF_ST_TYPE(sym->st_info);

	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx >= cubin->n_sections)
		return;
	if (type == STT_FUNC && sym->st_other & OTHER_ENTRY) {
		sg_code_add_kernel(cubin->code, name, strlen(name));
		cubin->kernel_of_symbol[index] = cubin->code->n_kernels - 1;
		cubin->kernel_of_section[sym->st_shndx] =
		        cubin->code->n_kernels - 1;
		return;
	}
	/* Names with a dollar are the compiler's own (strings of printf). */
	if (type != STT_OBJECT || !sym->st_size || name[0] == '$')
		return;
	section = elf_getscn(cubin->elf, sym->st_shndx);
	if (!section || !gelf_getshdr(section, &sh))
		return;
	in = section_name(cubin, &sh);
	if (strcmp(in, ".nv.global") && strcmp(in, ".nv.global.init") &&
	        strcmp(in, ".nv.constant3"))
		return;
	variable = sg_code_add_variable(cubin->code, name, strlen(name));
	variable->bytes = sym->st_size;
	variable->managed = sym->st_other & OTHER_MANAGED;
	variable->constant = !strcmp(in, ".nv.constant3");
}

static int read_symbols(struct cubin *cubin)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(cubin->elf, section))) {
		Elf_Data *data;
		GElf_Shdr sh;

		if (!gelf_getshdr(section, &sh))
			return -EINVAL;
		if (sh.sh_type != SHT_SYMTAB)
			continue;
		data = elf_getdata(section, NULL);
		if (!data || !sh.sh_entsize || cubin->kernel_of_symbol)
			return -EINVAL;
		cubin->n_symbols = data->d_size / sizeof(Elf64_Sym);
		cubin->kernel_of_symbol =
		        sg_xcalloc(cubin->n_symbols + 1, sizeof(uint32_t));
		memset(cubin->kernel_of_symbol, 0xff,
		        cubin->n_symbols * sizeof(uint32_t));
		for (size_t i = 0; i < cubin->n_symbols; i++) {
			GElf_Sym sym;
			const char *name;

			if (!gelf_getsym(data, (int)i, &sym))
				return -EINVAL;
			name = elf_strptr(cubin->elf, sh.sh_link, sym.st_name);
			if (!name)
				return -EINVAL;
			add_symbol(cubin, i, &sym, name);
		}
	}
	return 0;
}

static int add_param(
        struct sg_code_kernel *kernel, const uint8_t *p, bool large)
{
	uint16_t ordinal = read_u16(p + 4), offset = read_u16(p + 6);
	uint32_t word = read_u32(p + 8);

	/* Every parameter has at least one byte of its own. */
	if (ordinal >= SG_PARAMS_MAX_BYTES)
		return -EINVAL;
	if (ordinal >= kernel->n_params) {
		kernel->params = sg_xrealloc(kernel->params,
		        (ordinal + 1u) * sizeof(*kernel->params));
		memset(kernel->params + kernel->n_params, 0,
		        (ordinal + 1u - kernel->n_params) *
		                sizeof(*kernel->params));
		kernel->n_params = ordinal + 1u;
	}
	kernel->params[ordinal].offset_bytes = offset;
	/* Beside alignment, space and bank where parameters fit into 4 KB. */
	kernel->params[ordinal].size_bytes = large ? word : word >> 18;
	return 0;
}

static int max_threads_of(const uint8_t *p)
{
	uint64_t threads = 1;

	for (int i = 0; i < 3; i++) {
		uint32_t n = read_u32(p + 4 * i);

		threads *= n ? n : 1;
		if (threads > 1024)
			return 0;
	}
	return (int)threads;
}

/* One record of a kernel's own .nv.info section. */
static int kernel_record(struct sg_code_kernel *kernel, unsigned attribute,
        uint16_t value, const uint8_t *payload)
{
	uint16_t length = payload ? value : 0;

	switch (attribute) {
	case ATTR_KPARAM_INFO:
	case ATTR_KPARAM_INFO_LARGE:
		if (length < 12)
			return -EINVAL;
		return add_param(
		        kernel, payload, attribute == ATTR_KPARAM_INFO_LARGE);
	case ATTR_CBANK_PARAM_SIZE:
		if (!payload)
			kernel->params_bytes = value;
		break;
	case ATTR_MAX_THREADS:
	case ATTR_REQUIRED_THREADS:
		if (length < 12)
			return -EINVAL;
		kernel->max_threads = max_threads_of(payload);
		break;
	case ATTR_CTA_PER_CLUSTER:
		if (length < 12)
			return -EINVAL;
		for (int i = 0; i < 3; i++)
			kernel->cluster[i] = read_u32(payload + 4 * i);
		break;
	case ATTR_EXPLICIT_CLUSTER:
		kernel->cluster_required = true;
		break;
	default:
		break;
	}
	return 0;
}

/* One record of the image's .nv.info section. */
static int image_record(const struct cubin *cubin, unsigned attribute,
        uint16_t length, const uint8_t *payload)
{
	struct sg_code_kernel *kernel;
	int value;

	if (attribute != ATTR_REGCOUNT && attribute != ATTR_FRAME_SIZE &&
	        attribute != ATTR_MIN_STACK_SIZE)
		return 0;
	if (!payload || length < 8)
		return -EINVAL;
	kernel = kernel_of_symbol(cubin, read_u32(payload));
	if (!kernel)
		return 0; /* a device function */
	value = (int)(read_u32(payload + 4) & 0x7fffffff);
	if (attribute == ATTR_REGCOUNT)
		kernel->regs = value;
	else if (value > kernel->local_bytes)
		kernel->local_bytes = value;
	return 0;
}

/* Reads the records of one .nv.info section; kernel NULL: of the image. */
static int read_info(const struct cubin *cubin, Elf_Scn *section,
        struct sg_code_kernel *kernel)
{
	Elf_Data *data = elf_getdata(section, NULL);
	const uint8_t *p, *end;

	if (!data)
		return -EINVAL;
	p = data->d_buf;
	if (!p)
		return 0;
	end = p + data->d_size;
	while (end - p >= 4) {
		unsigned format = p[0], attribute = p[1];
		uint16_t value = read_u16(p + 2);
		const uint8_t *payload = NULL;
		int r;

		p += 4;
		if (format == FORMAT_SIZED) {
			if (value > end - p)
				return -EINVAL;
			payload = p;
			p += value;
		}
		r = kernel ? kernel_record(kernel, attribute, value, payload)
		           : image_record(cubin, attribute, value, payload);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_section(struct cubin *cubin, Elf_Scn *section)
{
	struct sg_code_kernel *kernel = NULL;
	const char *name;
	GElf_Shdr sh;

	if (!gelf_getshdr(section, &sh))
		return -EINVAL;
	name = section_name(cubin, &sh);
	if (sh.sh_info < cubin->n_sections &&
	        cubin->kernel_of_section[sh.sh_info] != NO_KERNEL)
		kernel = &cubin->code->kernels
		                  [cubin->kernel_of_section[sh.sh_info]];
	if (sh.sh_type == SHT_CUDA_INFO) {
		if (!strcmp(name, ".nv.info"))
			return read_info(cubin, section, NULL);
		if (kernel && has_prefix(name, ".nv.info."))
			return read_info(cubin, section, kernel);
	} else if (kernel && has_prefix(name, ".nv.shared.")) {
		if (sh.sh_size > INT32_MAX)
			return -EINVAL;
		kernel->shared_bytes = (int)sh.sh_size;
	} else if (!strcmp(name, ".nv.constant3")) {
		if (sh.sh_size > INT32_MAX)
			return -EINVAL;
		cubin->code->const_bytes = (int)sh.sh_size;
	} else if (has_prefix(name, ".nv.shared.reserved")) {
		cubin->reserved_shared = true;
	}
	return 0;
}

static int read_image(struct cubin *cubin, size_t bytes)
{
	Elf_Scn *section = NULL;
	GElf_Ehdr head;
	int r;

	if (elf_kind(cubin->elf) != ELF_K_ELF ||
	        !gelf_getehdr(cubin->elf, &head) ||
	        head.e_ident[EI_CLASS] != ELFCLASS64 ||
	        head.e_ident[EI_DATA] != ELFDATA2LSB ||
	        head.e_machine != EM_CUDA_MACHINE ||
	        elf_getshdrnum(cubin->elf, &cubin->n_sections) < 0 ||
	        elf_getshdrstrndx(cubin->elf, &cubin->names_section) < 0)
		return -EINVAL;
	/* libelf leaves sections out that lie beyond the end. */
	if (head.e_shentsize != sizeof(Elf64_Shdr) || head.e_shoff > bytes ||
	        head.e_shnum > (bytes - head.e_shoff) / sizeof(Elf64_Shdr))
		return -EINVAL;
	/* Since ABI 8 the capability stands one byte higher. */
	cubin->code->sm = (int)(head.e_ident[EI_ABIVERSION] >= 8
	                                ? head.e_flags >> 8 & 0xff
	                                : head.e_flags & 0xff);
	cubin->code->ptx_version = cubin->code->sm;
	cubin->kernel_of_section =
	        sg_xcalloc(cubin->n_sections + 1, sizeof(uint32_t));
	memset(cubin->kernel_of_section, 0xff,
	        cubin->n_sections * sizeof(uint32_t));
	r = read_symbols(cubin);
	if (r < 0)
		return r;
	while ((section = elf_nextscn(cubin->elf, section))) {
		r = read_section(cubin, section);
		if (r < 0)
			return r;
	}
	for (unsigned i = 0;
	        cubin->reserved_shared && i < cubin->code->n_kernels; i++) {
		struct sg_code_kernel *kernel = &cubin->code->kernels[i];

		if (kernel->shared_bytes >= RESERVED_SHARED_BYTES)
			kernel->shared_bytes -= RESERVED_SHARED_BYTES;
	}
	return sg_code_finish(cubin->code);
}

int sg_cubin_parse(const uint8_t *data, size_t bytes, struct sg_code **ret_code)
{
	struct cubin cubin = {0};
	int r;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return -EINVAL;
	/* libelf does not write to an image it was given to read. */
	cubin.elf = elf_memory((char *)(uintptr_t)data, bytes);
	if (!cubin.elf)
		return -EINVAL;
	cubin.code = sg_code_new();
	r = read_image(&cubin, bytes);
	free(cubin.kernel_of_section);
	free(cubin.kernel_of_symbol);
	elf_end(cubin.elf);
	if (r < 0) {
		sg_code_unref(cubin.code);
		return r;
	}
	*ret_code = cubin.code;
	return 0;
}
