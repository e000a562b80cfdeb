/* weft/device/strided.cuh: put and get of elements that lie apart, inside kernels. (OpenSHMEM 1.5, 9.6.4, 9.6.8.)
 *
 * Element i of `source` is source[i * source_stride], and likewise in `dest`; both strides, in elements, are at least
 * 1: else WEFT_ERR_ARGUMENT, latched. All else is as with weft_dev_put and weft_dev_get. Each element moves by accesses
 * of its alignment: neighbours that need not lie apart are faster put together. */
#ifndef WEFTI_DEVICE_STRIDED_CUH
#define WEFTI_DEVICE_STRIDED_CUH

#include "weft/device/rma.cuh"

/* Elements of `words` words each, so many bytes from one to the next. */
typedef struct wefti_strided {
    wefti_u64 to;
    wefti_u64 to_step;
    wefti_u64 from;
    wefti_u64 from_step;
    wefti_u64 count;
    wefti_u32 words;
} wefti_strided;

/* Looked at together, so that loads of another PE overlap. */
#define WEFTI_STRIDED_GROUP 4

template <class Side, class W> WEFTI_DEVICE void wefti_strided_copy(weft_scope scope, const wefti_strided &all)
{
    WEFTI_UNROLL(1)
    for (wefti_u32 word = 0; word < all.words; word++) {
        const wefti_u64 to = all.to + word * sizeof(W);
        const wefti_u64 from = all.from + word * sizeof(W);
        WEFTI_UNROLL(1)
        for (wefti_u64 first = scope.rank; first < all.count; first += WEFTI_STRIDED_GROUP * (wefti_u64)scope.size) {
            W held[WEFTI_STRIDED_GROUP];
            WEFTI_UNROLL(WEFTI_STRIDED_GROUP)
            for (wefti_u32 j = 0; j < WEFTI_STRIDED_GROUP; j++) {
                const wefti_u64 i = first + j * (wefti_u64)scope.size;
                if (i < all.count) {
                    Side::move(&held[j], (const W *)(from + i * all.from_step), 0);
                }
            }
            WEFTI_UNROLL(WEFTI_STRIDED_GROUP)
            for (wefti_u32 j = 0; j < WEFTI_STRIDED_GROUP; j++) {
                const wefti_u64 i = first + j * (wefti_u64)scope.size;
                if (i < all.count) {
                    Side::move((W *)(to + i * all.to_step), &held[j], 1);
                }
            }
        }
    }
}

/* Which side is another PE's. */
struct wefti_strided_put {
    template <class W> static WEFTI_DEVICE void move(W *to, const W *from, int is_store)
    {
        if (is_store) {
            wefti_st_relaxed(to, *from);
        } else {
            *to = *from;
        }
    }
};

struct wefti_strided_get {
    template <class W> static WEFTI_DEVICE void move(W *to, const W *from, int is_store)
    {
        if (is_store) {
            *to = *from;
        } else {
            wefti_get_side::move(to, from);
        }
    }
};

/* Far PEs: an element's word a request; each of its threads waits for those that it gets. `to` of a put, and `from` of
 * a get, are symmetric addresses. */
template <class W>
WEFTI_DEVICE int wefti_far_iput(weft_scope scope, const weft_dev *dev, const wefti_strided &all, int pe)
{
    int status = WEFT_OK;
    for (wefti_u64 i = scope.rank; i < all.count * all.words && status == WEFT_OK; i += scope.size) {
        const wefti_u64 element = i / all.words;
        const wefti_u64 word = i % all.words * sizeof(W);
        status = wefti_far_p(dev, all.to + element * all.to_step + word,
                             *(const W *)(all.from + element * all.from_step + word), sizeof(W), pe);
    }
    return wefti_dev_share_any(scope, *dev, status);
}

template <class W>
WEFTI_DEVICE int wefti_far_iget(weft_scope scope, const weft_dev *dev, const wefti_strided &all, int pe)
{
    int status = WEFT_OK;
    for (wefti_u64 i = scope.rank; i < all.count * all.words && status == WEFT_OK; i += scope.size) {
        const wefti_u64 element = i / all.words;
        const wefti_u64 word = i % all.words * sizeof(W);
        status = wefti_far_get(weft_thread(), dev, all.to + element * all.to_step + word,
                               all.from + element * all.from_step + word, sizeof(W), pe);
    }
    return wefti_dev_share_any(scope, *dev, status);
}

/* Bytes from the first element to the end of the last; more than there are when it overflows. */
WEFTI_DEVICE wefti_u64 wefti_strided_span(wefti_u64 count, wefti_u64 step, wefti_u64 element)
{
    const wefti_u64 most = (wefti_u64)1 << 56;
    if (((count | step) >> 28) != 0 && (step > most || (count - 1) > most / step)) {
        return most;
    }
    return (count - 1) * step + element;
}

template <int BYTES> struct wefti_strided_word {
    typedef typename wefti_access<(BYTES > 8 ? 8 : BYTES)>::type type;
};

/* From `source`, local, to `dest` on `pe`. */
template <class T>
WEFTI_DEVICE int weft_dev_iput(weft_scope scope, const weft_dev &dev, T *dest, const T *source, wefti_i64 dest_stride,
                               wefti_i64 source_stride, wefti_u64 count, int pe)
{
    typedef typename wefti_strided_word<alignof(T)>::type word;
    wefti_strided all = {
        (wefti_u64)dest, (wefti_u64)dest_stride * sizeof(T),   (wefti_u64)source, (wefti_u64)source_stride * sizeof(T),
        count,           (wefti_u32)(sizeof(T) / sizeof(word))};
    wefti_scope_sync(scope);
    if (dest_stride < 1 || source_stride < 1) {
        return wefti_dev_latch(&dev, WEFT_ERR_ARGUMENT, dev.pe);
    }
    if (count == 0) {
        return WEFT_OK;
    }
    const wefti_u64 span = wefti_strided_span(count, all.to_step, sizeof(T));
    all.to = wefti_dev_peer(dev, dest, span, pe);
    if (__builtin_expect(all.to == 0, 0)) {
        if (wefti_far_place(&dev, (wefti_u64)dest, span, pe) == 0) {
            return wefti_dev_no_place(dev, pe);
        }
        all.to = (wefti_u64)dest;
        return wefti_far_iput<word>(scope, &dev, all, pe);
    }
    wefti_strided_copy<wefti_strided_put, word>(scope, all);
    wefti_scope_sync(scope);
    return WEFT_OK;
}

/* From `source` on `pe` to `dest`, local. */
template <class T>
WEFTI_DEVICE int weft_dev_iget(weft_scope scope, const weft_dev &dev, T *dest, const T *source, wefti_i64 dest_stride,
                               wefti_i64 source_stride, wefti_u64 count, int pe)
{
    typedef typename wefti_strided_word<alignof(T)>::type word;
    wefti_strided all = {
        (wefti_u64)dest, (wefti_u64)dest_stride * sizeof(T),   (wefti_u64)source, (wefti_u64)source_stride * sizeof(T),
        count,           (wefti_u32)(sizeof(T) / sizeof(word))};
    wefti_scope_sync(scope);
    if (dest_stride < 1 || source_stride < 1) {
        return wefti_dev_latch(&dev, WEFT_ERR_ARGUMENT, dev.pe);
    }
    if (count == 0) {
        return WEFT_OK;
    }
    const wefti_u64 span = wefti_strided_span(count, all.from_step, sizeof(T));
    all.from = wefti_dev_peer(dev, source, span, pe);
    if (__builtin_expect(all.from == 0, 0)) {
        if (wefti_far_place(&dev, (wefti_u64)source, span, pe) == 0) {
            return wefti_dev_no_place(dev, pe);
        }
        all.from = (wefti_u64)source;
        return wefti_far_iget<word>(scope, &dev, all, pe);
    }
    wefti_strided_copy<wefti_strided_get, word>(scope, all);
    wefti_scope_sync(scope);
    return WEFT_OK;
}

#endif
