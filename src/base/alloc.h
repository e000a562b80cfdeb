/* base/alloc.h: the library's private memory, counted, and fault points.
 *
 * Builds with WEFT_FAULTS (debug and sanitizer presets) count live allocations and let a test make the Nth fault point
 * of the process fail: each allocation and each call to the system passes one. Elsewhere they cost nothing. */
#ifndef WEFTI_BASE_ALLOC_H
#define WEFTI_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

/* NULL when there is no memory; the caller decides the error. */
void *wefti_alloc(size_t bytes);
void *wefti_alloc_zeroed(size_t count, size_t bytes);
void *wefti_alloc_aligned(size_t alignment, size_t bytes); /* zeroed; alignment: a power of two of at least 8 */
void *wefti_realloc(void *memory, size_t bytes);
char *wefti_alloc_text(const char *text);
void wefti_free(void *memory); /* NULL is allowed */
/* Free an object whose handle the program may still hold. Builds with assertions keep the last few of these blocks
 * readable for a while, so that a call with such a handle can refuse it. */
void wefti_free_late(void *memory);

#ifdef WEFT_FAULTS
/* Whether this fault point is to fail; system calls then set errno to `error`. */
int wefti_fault(const char *point, int error);
/* Make fault points nth, nth + 1, ... nth + count - 1 from now on fail; nth 0: none. */
void wefti_fault_arm(uint64_t nth, uint64_t count);
/* Fault points passed since the last arming, and allocations alive now. */
uint64_t wefti_fault_passed(void);
int64_t wefti_alloc_live(void);
#else
#define wefti_fault(point, error) 0
#endif

#endif
