/* protocol/dot.h: the dot product of two rows, the same bits on every backend.
 *
 * In float32, every operation rounded to nearest even: WEFTI_DOT_LANES accumulators a from +0; element i goes into
 * a[i mod 256] by fma(x[i], y[i], a), in ascending i; then the accumulators are added in the order of wefti_dot_sum. A
 * warp holds eight neighbouring accumulators a lane: the first step is a lane's own, the other five are shuffles. */
#ifndef WEFTI_PROTOCOL_DOT_H
#define WEFTI_PROTOCOL_DOT_H

#ifdef __CUDACC__
#define WEFTI_DOT_FN static inline __host__ __device__
#else
#define WEFTI_DOT_FN static inline
#endif

#define WEFTI_DOT_LANES 256

#ifdef __cplusplus
extern "C" {
#endif

/* The sum of eight neighbours. */
WEFTI_DOT_FN float wefti_dot_eight(const float *a)
{
    return ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]));
}

/* s[j] = eight(a[8j ...]) for j of 0 .. 31; then s[j] += s[j + 16], s[j + 8], s[j + 4], s[j + 2], s[j + 1]. */
WEFTI_DOT_FN float wefti_dot_sum(const float *a)
{
    float s[WEFTI_DOT_LANES / 8];
    for (int j = 0; j < WEFTI_DOT_LANES / 8; j++) {
        s[j] = wefti_dot_eight(a + 8 * j);
    }
    for (int half = WEFTI_DOT_LANES / 16; half > 0; half /= 2) {
        for (int j = 0; j < half; j++) {
            s[j] += s[j + half];
        }
    }
    return s[0];
}

#ifdef __cplusplus
}
#endif
#endif
