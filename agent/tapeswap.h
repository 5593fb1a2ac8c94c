/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a program may tell tapeswap, if it is preloaded. Nothing has to be
 * linked: the symbol is weak, and absent without the library.
 *
 *     if (tapeswap_step)
 *             tapeswap_step();
 *
 * From Python: getattr(ctypes.CDLL(None), "tapeswap_step", None).
 */
#ifndef TAPESWAP_H
#define TAPESWAP_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Between two training steps: what lies between two calls is a step, and steps
 * are no longer guessed from what the program does. Any thread, outside
 * of stream captures. Does nothing before the first CUDA call.
 */
void tapeswap_step(void) __attribute__((weak));

#ifdef __cplusplus
}
#endif

#endif
