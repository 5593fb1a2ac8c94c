/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Activity collection, as far as the other file of this library needs it. */
#ifndef SIMGPU_CUPTI_ACTIVITY_H
#define SIMGPU_CUPTI_ACTIVITY_H

/* Stops collecting and forgets callbacks and records. */
void activity_reset(void);

#endif
