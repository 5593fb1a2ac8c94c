/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lists of word arguments: TS_WORDS(14) declares w1 to w14, TS_WORD_NAMES(14)
 * passes them on. A function of nothing but integers, enums and pointers can be
 * called so: the System V ABI for x86-64 passes each in a register or stack
 * slot of eight bytes, and the callee reads no more of it than its type has.
 */
#ifndef TS_WORDS_H
#define TS_WORDS_H

#include <stdint.h>

#ifndef __x86_64__
#error "words.h is written for x86-64"
#endif

typedef uintptr_t ts_word;

#define TS_WORDS(n)       TS_WORDS_(n)
#define TS_WORDS_(n)      TS_WORDS_##n
#define TS_WORD_NAMES(n)  TS_WORD_NAMES_(n)
#define TS_WORD_NAMES_(n) TS_WORD_NAMES_##n

#define TS_WORDS_1       ts_word w1
#define TS_WORD_NAMES_1  w1
#define TS_WORDS_2       TS_WORDS_1, ts_word w2
#define TS_WORDS_3       TS_WORDS_2, ts_word w3
#define TS_WORDS_4       TS_WORDS_3, ts_word w4
#define TS_WORDS_5       TS_WORDS_4, ts_word w5
#define TS_WORDS_6       TS_WORDS_5, ts_word w6
#define TS_WORDS_7       TS_WORDS_6, ts_word w7
#define TS_WORDS_8       TS_WORDS_7, ts_word w8
#define TS_WORDS_9       TS_WORDS_8, ts_word w9
#define TS_WORDS_10      TS_WORDS_9, ts_word w10
#define TS_WORDS_11      TS_WORDS_10, ts_word w11
#define TS_WORDS_12      TS_WORDS_11, ts_word w12
#define TS_WORDS_13      TS_WORDS_12, ts_word w13
#define TS_WORDS_14      TS_WORDS_13, ts_word w14
#define TS_WORDS_15      TS_WORDS_14, ts_word w15
#define TS_WORDS_16      TS_WORDS_15, ts_word w16
#define TS_WORDS_17      TS_WORDS_16, ts_word w17
#define TS_WORDS_18      TS_WORDS_17, ts_word w18
#define TS_WORDS_19      TS_WORDS_18, ts_word w19
#define TS_WORDS_20      TS_WORDS_19, ts_word w20
#define TS_WORDS_21      TS_WORDS_20, ts_word w21
#define TS_WORDS_22      TS_WORDS_21, ts_word w22
#define TS_WORDS_23      TS_WORDS_22, ts_word w23
#define TS_WORDS_24      TS_WORDS_23, ts_word w24
#define TS_WORDS_25      TS_WORDS_24, ts_word w25
#define TS_WORDS_26      TS_WORDS_25, ts_word w26
#define TS_WORDS_27      TS_WORDS_26, ts_word w27
#define TS_WORDS_28      TS_WORDS_27, ts_word w28
#define TS_WORDS_29      TS_WORDS_28, ts_word w29
#define TS_WORD_NAMES_2  TS_WORD_NAMES_1, w2
#define TS_WORD_NAMES_3  TS_WORD_NAMES_2, w3
#define TS_WORD_NAMES_4  TS_WORD_NAMES_3, w4
#define TS_WORD_NAMES_5  TS_WORD_NAMES_4, w5
#define TS_WORD_NAMES_6  TS_WORD_NAMES_5, w6
#define TS_WORD_NAMES_7  TS_WORD_NAMES_6, w7
#define TS_WORD_NAMES_8  TS_WORD_NAMES_7, w8
#define TS_WORD_NAMES_9  TS_WORD_NAMES_8, w9
#define TS_WORD_NAMES_10 TS_WORD_NAMES_9, w10
#define TS_WORD_NAMES_11 TS_WORD_NAMES_10, w11
#define TS_WORD_NAMES_12 TS_WORD_NAMES_11, w12
#define TS_WORD_NAMES_13 TS_WORD_NAMES_12, w13
#define TS_WORD_NAMES_14 TS_WORD_NAMES_13, w14
#define TS_WORD_NAMES_15 TS_WORD_NAMES_14, w15
#define TS_WORD_NAMES_16 TS_WORD_NAMES_15, w16
#define TS_WORD_NAMES_17 TS_WORD_NAMES_16, w17
#define TS_WORD_NAMES_18 TS_WORD_NAMES_17, w18
#define TS_WORD_NAMES_19 TS_WORD_NAMES_18, w19
#define TS_WORD_NAMES_20 TS_WORD_NAMES_19, w20
#define TS_WORD_NAMES_21 TS_WORD_NAMES_20, w21
#define TS_WORD_NAMES_22 TS_WORD_NAMES_21, w22
#define TS_WORD_NAMES_23 TS_WORD_NAMES_22, w23
#define TS_WORD_NAMES_24 TS_WORD_NAMES_23, w24
#define TS_WORD_NAMES_25 TS_WORD_NAMES_24, w25
#define TS_WORD_NAMES_26 TS_WORD_NAMES_25, w26
#define TS_WORD_NAMES_27 TS_WORD_NAMES_26, w27
#define TS_WORD_NAMES_28 TS_WORD_NAMES_27, w28
#define TS_WORD_NAMES_29 TS_WORD_NAMES_28, w29

#endif
