/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ranges that exact kernels touch, held against those their ops declare. The
 * pages that an op does not declare are taken away while its kernel runs, those
 * it only reads are made read-only: a fault is a disagreement. Pages that are
 * declared in part are compared with a copy afterwards, so that writes are seen
 * to the byte, reads to the page of 4 KiB.
 */
#include "tests/simgpu/driver/exact_check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE_BYTES ((uint64_t)4096)

/* A page that is written in part, as it was. */
struct copy {
	uint64_t va;
	unsigned char bytes[PAGE_BYTES];
};

static struct {
	const struct sg_op *op; /* NULL: nothing is being checked */
	uint64_t first_fault;
	struct copy *copies;
	size_t n_copies, cap_copies;
} check;

/* The system call itself, as for the mappings. */
static void protect(uint64_t from, uint64_t to, int protection)
{
	from &= ~(PAGE_BYTES - 1);
	to = sg_round_up(to, PAGE_BYTES);
	if (from < to)
		syscall(SYS_mprotect, from, to - from, protection);
}

static void protect_all(int protection)
{
	for (const struct sg_mapping *mapping = sg_mappings(); mapping;
	        mapping = mapping->next)
		protect(mapping->va, mapping->va + mapping->bytes, protection);
}

/* Accesses are checked already: what they name is mapped. */
static void open_accesses(const struct sg_op *op, bool write, int protection)
{
	for (unsigned i = 0; i < op->n_accesses; i++) {
		const struct sg_access *access = &op->accesses[i];

		if (access->write == write && sg_mapping_at(access->va))
			protect(access->va, access->va + access->bytes,
			        protection);
	}
}

static void save_page(uint64_t va)
{
	struct copy *copy;

	va &= ~(PAGE_BYTES - 1);
	for (size_t i = 0; i < check.n_copies; i++)
		if (check.copies[i].va == va)
			return;
	if (check.n_copies == check.cap_copies) {
		check.cap_copies = check.cap_copies ? 2 * check.cap_copies : 64;
		check.copies = sg_xrealloc(
		        check.copies, check.cap_copies * sizeof(*check.copies));
	}
	copy = &check.copies[check.n_copies++];
	copy->va = va;
	memcpy(copy->bytes, (const void *)(uintptr_t)va, PAGE_BYTES);
}

static bool declared_written(const struct sg_op *op, uint64_t va)
{
	for (unsigned i = 0; i < op->n_accesses; i++)
		if (op->accesses[i].write &&
		        va - op->accesses[i].va < op->accesses[i].bytes)
			return true;
	return false;
}

void sg_exact_check_begin(const struct sg_op *op)
{
	check.n_copies = 0;
	check.first_fault = 0;
	for (unsigned i = 0; i < op->n_accesses; i++) {
		const struct sg_access *access = &op->accesses[i];
		uint64_t end = access->va + access->bytes;

		if (!access->write || !access->bytes ||
		        !sg_mapping_at(access->va))
			continue;
		if (access->va % PAGE_BYTES)
			save_page(access->va);
		if (end % PAGE_BYTES)
			save_page(end);
	}
	protect_all(PROT_NONE);
	open_accesses(op, false, PROT_READ);
	open_accesses(op, true, PROT_READ | PROT_WRITE);
	check.op = op;
}

bool sg_exact_check_fault(uint64_t address)
{
	if (!check.op || !sg_mapping_at(address))
		return false;
	if (!check.first_fault)
		check.first_fault = address;
	protect(address & ~(PAGE_BYTES - 1), address + 1,
	        PROT_READ | PROT_WRITE);
	return true;
}

/* The first byte that changed without being declared, or 0. */
static uint64_t first_change(const struct sg_op *op)
{
	for (size_t i = 0; i < check.n_copies; i++) {
		const struct copy *copy = &check.copies[i];
		const unsigned char *now =
		        (const unsigned char *)(uintptr_t)copy->va;

		for (uint64_t at = 0; at < PAGE_BYTES; at++)
			if (now[at] != copy->bytes[at] &&
			        !declared_written(op, copy->va + at))
				return copy->va + at;
	}
	return 0;
}

void sg_exact_check_end(const struct sg_op *op, const char *kernel)
{
	uint64_t changed;

	check.op = NULL;
	protect_all(PROT_READ | PROT_WRITE);
	changed = first_change(op);
	if (check.first_fault)
		sg_memory_error(op->dev,
		        "0x%llx is touched, but not declared by kernel %s",
		        (unsigned long long)check.first_fault, kernel);
	if (changed)
		sg_memory_error(op->dev,
		        "0x%llx is written, but not declared by kernel %s",
		        (unsigned long long)changed, kernel);
}
