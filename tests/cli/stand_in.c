/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A library that does nothing, for tests of how `tapeswap run` preloads. */
int ts_stand_in(void);

__attribute__((visibility("default"))) int ts_stand_in(void)
{
	return 0;
}
