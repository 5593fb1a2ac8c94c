/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Virtual time: when ops run. engine.c keeps the simulation, op.c the ops and
 * what they depend on, hostfn.c the functions that run on the host. Guarded by
 * the lock.
 */
#ifndef SG_ENGINE_H
#define SG_ENGINE_H

#include "tests/simgpu/driver/sg.h"

struct sg_engine;
/* The engines of a new device, SG_ENGINE_COUNT of them. */
struct sg_engine *sg_engines_create(struct sg_device *dev);

/* An op whose dependencies are done may run from op->ready_ns on. */
void sg_engine_submit(struct sg_op *op);
/* Simulates everything that happens until `when`. */
void sg_engine_advance(uint64_t when);
/* Simulates to the next thing that happens; false if nothing ever will. */
bool sg_engine_step(void);
/* How far the simulation has come. */
uint64_t sg_engine_now(void);
/* The sequence number the next op will get. */
uint64_t sg_op_next_seq(void);
/* op.c: op has ended at sg_engine_now(). */
void sg_op_finished(struct sg_op *op);

/* Hands an op's function to the driver's thread, which runs them in this
 * order in real time; sets op->host_gate. */
void sg_hostfn_push(struct sg_op *op);
/* The same without an op: fn(arg), after the functions so far. Nobody waits for
 * it. */
void sg_hostfn_call(CUhostFn fn, void *arg);
/* Have the functions up to that gate returned? */
bool sg_hostfn_done(uint64_t gate);
/* Waits for that without the lock; at once on the driver's own thread. */
void sg_hostfn_wait(uint64_t gate);
/* The gate of the function pushed last. */
uint64_t sg_hostfn_latest(void);

#endif
