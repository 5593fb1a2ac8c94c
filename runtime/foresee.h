/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When pages are expected to be used again. A training step repeats itself:
 * once its length is known, a page's next use comes one step after the first
 * of its uses in the step that ends now. Time counts the ops of the tape.
 *
 * Everything but the telling of time is guarded by the pager's lock.
 */
#ifndef TS_FORESEE_H
#define TS_FORESEE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/segment.h"

/* How far a use is, in classes: what is not expected at all is the last. */
#define TS_FORESEE_CLASSES 65

struct ts_foresee {
	_Atomic uint64_t now;    /* number of the op that comes */
	_Atomic uint64_t period; /* of the step; 0: not known */
};

/* The page is used now. */
void ts_foresee_use(struct ts_foresee *foresee, struct ts_page *page);

/* Number of the op that is expected to use the page next; 0: none is. */
uint64_t ts_foresee_next(struct ts_page *page, uint64_t now, uint64_t period);

/*
 * How far away the page's next use is, below TS_FORESEE_CLASSES; @period is
 * what foresee's was when the caller looked, not 0.
 */
size_t ts_foresee_class(struct ts_page *page, uint64_t now, uint64_t period);

#endif
