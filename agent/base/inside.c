/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/base/inside.h"

__thread bool ts_inside __attribute__((tls_model("initial-exec")));
