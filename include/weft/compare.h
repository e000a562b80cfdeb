/* weft/compare.h: how waits compare and signals are updated. Compiled by C, C++, nvcc and NVRTC: no standard header. */
#ifndef WEFT_COMPARE_H
#define WEFT_COMPARE_H

/* The operation on a signal word. (OpenSHMEM 1.5, 9.8.) */
typedef enum weft_signal_op { WEFT_SIGNAL_SET = 0, WEFT_SIGNAL_ADD = 1 } weft_signal_op;

/* The comparison of a wait or test: variable CMP value. (OpenSHMEM 1.5, 9.10.) */
typedef enum weft_cmp {
    WEFT_CMP_EQ = 0,
    WEFT_CMP_NE = 1,
    WEFT_CMP_GT = 2,
    WEFT_CMP_GE = 3,
    WEFT_CMP_LT = 4,
    WEFT_CMP_LE = 5
} weft_cmp;

#endif
