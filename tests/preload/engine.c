/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A library that defines functions of PyTorch and cuBLAS under their names and
 * calls them itself, as those libraries do. Its own name is none of theirs.
 */
#include <stddef.h>

#define EVALUATE                                                               \
	"_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_"    \
	"9GraphTaskEEPNS0_4NodeERNS0_11InputBufferERKS2_INS0_"                 \
	"10ReadyQueueEE"
#define REPORT "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"

#define SHOWN __attribute__((visibility("default")))

extern SHOWN void evaluate(void *engine, void *task, void *node, void *inputs,
        void *queue) __asm__(EVALUATE);
extern SHOWN void report(void *block, long bytes, unsigned long allocated,
        unsigned long reserved, unsigned int device) __asm__(REPORT);
extern SHOWN int set_workspace(void *handle, void *workspace,
        size_t bytes) __asm__("cublasSetWorkspace_v2");
extern SHOWN int engine_calls(void);

static int calls;

void evaluate(void *engine, void *task, void *node, void *inputs, void *queue)
{
	calls += engine && task && node && inputs && queue;
}

void report(void *block, long bytes, unsigned long allocated,
        unsigned long reserved, unsigned int device)
{
	calls += block && bytes && allocated && reserved && !device;
}

int set_workspace(void *handle, void *workspace, size_t bytes)
{
	calls += handle && workspace && bytes;
	return 0;
}

/* How many of three calls arrived. */
int engine_calls(void)
{
	int some;

	evaluate(&some, &some, &some, &some, &some);
	report(&some, 1, 1, 1, 0);
	set_workspace(&some, &some, 1);
	return calls;
}
