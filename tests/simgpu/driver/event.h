/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events, as the control part's files see them. Guarded by the lock.
 */
#ifndef SG_EVENT_H
#define SG_EVENT_H

#include "tests/simgpu/driver/sg.h"

/* Records event in a stream that is not capturing. */
CUresult sg_event_record(struct sg_event *event, struct sg_stream *stream);

/* A new event in the current context. */
CUevent sg_event_new(unsigned flags);

#endif
