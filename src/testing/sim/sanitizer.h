/* testing/sim/sanitizer.h: telling the sanitizers of stacks: the one place that knows how. Nothing in other builds. */
#ifndef WEFTI_SIM_SANITIZER_H
#define WEFTI_SIM_SANITIZER_H

#include <stddef.h>

#include "weft/protocol/mem.h"

#if defined(__SANITIZE_ADDRESS__)
#define WEFTI_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFTI_ASAN 1
#endif
#endif
#ifndef WEFTI_ASAN
#define WEFTI_ASAN 0
#endif

#if WEFTI_ASAN
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#if WEFTI_TSAN
#include <sanitizer/tsan_interface.h>
#endif

static inline void *wefti_sanitizer_fiber_current(void)
{
#if WEFTI_TSAN
    return __tsan_get_current_fiber();
#else
    return NULL;
#endif
}

static inline void *wefti_sanitizer_fiber_create(void)
{
#if WEFTI_TSAN
    return __tsan_create_fiber(0);
#else
    return NULL;
#endif
}

static inline void wefti_sanitizer_fiber_destroy(void *fiber)
{
    (void)fiber;
#if WEFTI_TSAN
    __tsan_destroy_fiber(fiber);
#endif
}

/* Before a switch; fake_stack NULL when the stack left is not used again. */
static inline void wefti_sanitizer_switch_begin(void **fake_stack, const void *bottom, size_t bytes, void *fiber)
{
    (void)fake_stack;
    (void)bottom;
    (void)bytes;
    (void)fiber;
#if WEFTI_ASAN
    __sanitizer_start_switch_fiber(fake_stack, bottom, bytes);
#endif
#if WEFTI_TSAN
    __tsan_switch_to_fiber(fiber, 0);
#endif
}

/* After it, on the new stack: where the old one was. */
static inline void wefti_sanitizer_switch_end(void *fake_stack, const void **bottom, size_t *bytes)
{
    *bottom = NULL;
    *bytes = 0;
    (void)fake_stack;
#if WEFTI_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, bottom, bytes);
#endif
}

/* What memory in this range points to is not lost. */
static inline void wefti_sanitizer_keep(const void *begin, size_t bytes)
{
    (void)begin;
    (void)bytes;
#if WEFTI_ASAN
    __lsan_register_root_region(begin, bytes);
#endif
}

#endif
