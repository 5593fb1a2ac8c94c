#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# place.sh LIBRARY DIR NAME STAMP: puts a link to a built library into the one
# folder that goes on LD_LIBRARY_PATH.
set -eu
mkdir -p "$2"
ln -sfn "$1" "$2/$3"
: >"$4"
