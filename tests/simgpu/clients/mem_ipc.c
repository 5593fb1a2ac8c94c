/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory shared by two processes, neither of which has used CUDA before. */
#include "mem_client.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES (4 * MIB)

/* What one process tells the other. */
struct message {
	CUipcMemHandle memory, share;
	CUipcEventHandle event;
};

static int down[2], up[2]; /* from parent to child, from child to parent */

static void tell(int pipe, const void *data, size_t bytes)
{
	ck_assert_int_eq(write(pipe, data, bytes), (ssize_t)bytes);
}

static void hear(int pipe, void *data, size_t bytes)
{
	ck_assert_int_eq(read(pipe, data, bytes), (ssize_t)bytes);
}

static uint32_t word_at(CUdeviceptr va)
{
	uint32_t word;

	OK(cuMemcpyDtoH(&word, va, sizeof(word)));
	return word;
}

static void child(void)
{
	struct message message;
	CUdeviceptr all, share, again;
	CUevent event;
	size_t before, base_bytes;
	char byte = 1;

	client_start();
	before = client_free_bytes();
	hear(down[0], &message, sizeof(message));
	OK(cuIpcOpenMemHandle(
	        &all, message.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	OK(cuIpcOpenMemHandle(&again, message.memory, 0));
	ck_assert_uint_eq(again, all);
	OK(cuIpcOpenMemHandle(&share, message.share, 0));
	OK(cuIpcOpenEventHandle(&event, message.event));
	OK(cuStreamWaitEvent(NULL, event, 0));
	/* It is the other process's memory. */
	ck_assert_uint_eq(client_free_bytes(), before);
	OK(cuMemGetAddressRange(NULL, &base_bytes, all + MIB));
	ck_assert_uint_eq(base_bytes, BYTES);
	ck_assert_uint_eq(word_at(all), 0x11111111);
	ck_assert_uint_eq(word_at(all + BYTES - 4), 0x11111111);
	ck_assert_uint_eq(word_at(share), 0x22222222);
	INVALID(cuMemFree(all));
	OK(cuMemsetD32(all, 0x33333333, BYTES / 4));
	OK(cuCtxSynchronize());
	tell(up[1], &byte, 1);
	OK(cuIpcCloseMemHandle(all));
	ck_assert_uint_eq(word_at(all), 0x33333333);
	OK(cuIpcCloseMemHandle(all));
	INVALID(cuIpcCloseMemHandle(all));
	/* Left to the end of the process: share. */
}

START_TEST(two_processes_see_the_same_bytes)
{
	struct message message;
	CUdeviceptr memory, share;
	CUevent event, plain;
	int status;
	char byte;
	pid_t other;

	ck_assert_int_eq(pipe(down), 0);
	ck_assert_int_eq(pipe(up), 0);
	fflush(NULL);
	other = fork();
	if (!other) {
		child();
		exit(0);
	}
	client_start();
	OK(cuMemAlloc(&memory, BYTES));
	OK(cuMemAlloc(&share, 512));
	OK(cuMemsetD32(memory, 0x11111111, BYTES / 4));
	OK(cuMemsetD32(share, 0x22222222, 128));
	OK(cuEventCreate(
	        &event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&plain, 0));
	OK(cuEventRecord(event, NULL));
	FAILS(cuIpcGetEventHandle(&message.event, plain),
	        CUDA_ERROR_INVALID_HANDLE);
	OK(cuIpcGetEventHandle(&message.event, event));
	OK(cuIpcGetMemHandle(&message.memory, memory + MIB));
	OK(cuIpcGetMemHandle(&message.share, share));
	FAILS(cuIpcOpenMemHandle(&memory, message.memory, 0),
	        CUDA_ERROR_INVALID_CONTEXT);
	tell(down[1], &message, sizeof(message));
	hear(up[0], &byte, 1);
	ck_assert_uint_eq(word_at(memory + BYTES - 4), 0x33333333);
	ck_assert_int_eq(waitpid(other, &status, 0), other);
	ck_assert_int_eq(status, 0);
	OK(cuMemFree(memory));
}
END_TEST

START_TEST(what_is_no_allocation_is_not_shared)
{
	CUipcMemHandle handle = {0};
	CUdeviceptr va;

	client_start();
	INVALID(cuIpcGetMemHandle(&handle, client_reserve(PAGE)));
	FAILS(cuIpcOpenMemHandle(&va, handle, 0), CUDA_ERROR_INVALID_HANDLE);
	INVALID(cuIpcOpenMemHandle(&va, handle, 2));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("ipc");

	tcase_add_test(tests, two_processes_see_the_same_bytes);
	tcase_add_test(tests, what_is_no_allocation_is_not_shared);
	return client_run(tests, "ipc");
}
