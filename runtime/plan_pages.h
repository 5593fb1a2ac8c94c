/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Page assignment, for those who enforce it. */
#include "planner/page_plan.h"
