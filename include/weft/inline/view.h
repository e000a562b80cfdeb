/* inline/view.h: what inline code reads of a world: the frozen first part of every weft_world.
 *
 * Fields may be appended, with a new WEFTI_VIEW_ABI; none is moved or changes its meaning. The number changes, too,
 * when inline code begins to need anything else that an older library lacks or has in another form. Programs
 * tell the library theirs when they create a world (inline/world.h). In a forked process it reads as zeros, with which
 * every access goes out of line. */
#ifndef WEFTI_INLINE_VIEW_H
#define WEFTI_INLINE_VIEW_H

#define WEFTI_VIEW_ABI 3 /* before other headers, which include this one and need it */

#include <stddef.h>
#include <stdint.h>

#include "weft/protocol/mem.h"
#include "weft/world.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFTI_FAR INT64_MIN

#define WEFTI_REMOTE_PES 1u /* some PE needs a transport or a proxy */
#define WEFTI_REMOTE_COPIES 2u /* there is a device, whose copies only a quiet completes */

typedef struct wefti_view {
    uint32_t abi; /* WEFTI_VIEW_ABI */
    uint32_t pe;
    uint32_t pes;
    /* PEs near_first .. near_first + near_count - 1 are reached by load and store, but for those whose delta is
     * WEFTI_FAR. */
    uint32_t near_first;
    uint32_t near_count;
    uint32_t remote; /* WEFTI_REMOTE bits, of which any makes fence and quiet go out of line */
    uintptr_t heap; /* first byte of this PE's heap */
    uint64_t heap_bytes; /* reserved so far, or sparse; grows, never shrinks */
    /* The byte at `a` here is at a + (p - pe) * stride on PE p, or at a + delta[p - near_first] if delta is set. */
    int64_t stride;
    const int64_t *delta;
    uint32_t spins; /* how often an inline wait looks before it goes out of line; small when PEs share cores */
    uint32_t device; /* not 0: this PE has a device heap, so that words outside the host heap may be the GPU's */
} wefti_view;

static inline unsigned wefti_spins(const weft_world *world)
{
    return ((const wefti_view *)(const void *)world)->spins;
}

/* Whether this thread can load the word at `address`, one of this PE's: device memory is looked at out of line. */
static inline int wefti_is_loadable(const weft_world *world, const void *address)
{
    const wefti_view *view = (const wefti_view *)(const void *)world;
    return WEFTI_LIKELY(view->device == 0) ||
           (uint64_t)(uintptr_t)address - (uint64_t)view->heap < __atomic_load_n(&view->heap_bytes, __ATOMIC_RELAXED);
}

/* Where PE `pe`, one of the near ones, has the symmetric byte at `address`. No check. */
static inline void *wefti_peer_address(const weft_world *world, const void *address, int pe)
{
    const wefti_view *view = (const wefti_view *)(const void *)world;
    int64_t delta = WEFTI_LIKELY(view->delta == NULL) ? ((int64_t)pe - (int64_t)view->pe) * view->stride
                                                      : view->delta[(uint32_t)pe - view->near_first];
    return (void *)((uintptr_t)address + (uintptr_t)delta);
}

/* Whether PE `pe`, any number, is reached by load and store. */
static inline int wefti_pe_is_near(const wefti_view *view, int pe)
{
    uint32_t index = (uint32_t)pe - view->near_first;
    return index < view->near_count && (view->delta == NULL || view->delta[index] != WEFTI_FAR);
}

/* Whether `bytes` bytes at `address` lie in the reserved heap and `pe` is near: the one test of the fast path. */
static inline int wefti_is_near(const weft_world *world, const void *address, size_t bytes, int pe)
{
    const wefti_view *view = (const wefti_view *)(const void *)world;
    uint64_t heap_bytes = __atomic_load_n(&view->heap_bytes, __ATOMIC_RELAXED);
    uint64_t offset = (uint64_t)(uintptr_t)address - (uint64_t)view->heap;
    uint32_t index = (uint32_t)pe - view->near_first;
    int inside = (index < view->near_count) & (offset <= heap_bytes) & ((uint64_t)bytes <= heap_bytes - offset);
    return WEFTI_LIKELY(view->delta == NULL) ? inside : inside && view->delta[index] != WEFTI_FAR;
}

#ifdef __cplusplus
}
#endif
#endif
