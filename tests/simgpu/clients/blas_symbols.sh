#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# blas_symbols.sh LIBDIR BUILDDIR: every cuBLAS symbol that an installed torch
# wheel (BUILDDIR/venv*) refers to, with its version, is exported by the
# libraries in LIBDIR, and these call none of their own exports by way of the
# dynamic linker, where an interposer would see it. Exit 77 (skipped) without a
# wheel.
set -eu
libdir=$1
builddir=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for name in cublas cublasLt; do
	nm -D --defined-only "$libdir/lib$name.so.13"
done | awk '{ sub("@@", "@", $3); print $3 }' | sort -u >"$work/have"

for name in cublas cublasLt; do
	if readelf -rW "$libdir/lib$name.so.13" | grep ' cublas'; then
		echo "lib$name.so.13 calls itself through the linker"
		exit 1
	fi
done

wheels=0
status=0
for torch in "$builddir"/venv*/lib/python3*/site-packages/torch/lib; do
	[ -d "$torch" ] || continue
	wheels=$((wheels + 1))
	for library in "$torch"/libtorch_cuda*.so; do
		nm -D --undefined-only "$library"
	done | awk '$2 ~ /@libcublas/ { print $2 }' | sort -u >"$work/need"
	[ -s "$work/need" ] || { echo "no cuBLAS symbols under $torch"; exit 1; }
	if ! comm -23 "$work/need" "$work/have" | grep .; then
		echo "$(wc -l <"$work/need") symbols of $torch found"
	else
		echo "missing for $torch"
		status=1
	fi
done
[ "$wheels" -gt 0 ] || exit 77
exit $status
