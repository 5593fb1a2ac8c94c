/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Virtual time (engine.c): when ops run. Guarded by the lock.
 */
#ifndef SG_ENGINE_H
#define SG_ENGINE_H

#include "tests/simgpu/driver/sg.h"

struct sg_engine;
/* The engines of a new device, SG_ENGINE_COUNT of them. */
struct sg_engine *sg_engines_create(struct sg_device *dev);

#endif
