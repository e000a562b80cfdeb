/* base/alloc.c: the library's private memory, counted, and fault points. */
#include "base/alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef WEFT_FAULTS

/* The only mutable globals of the library: they exist in test builds alone. */
static uint64_t points_passed;
static uint64_t first_failing; /* 0: none */
static uint64_t failing_count;
static int64_t live_count;

int wefti_fault(const char *point, int error)
{
    (void)point; /* for a debugger */
    uint64_t number = __atomic_add_fetch(&points_passed, 1, __ATOMIC_RELAXED);
    uint64_t first = __atomic_load_n(&first_failing, __ATOMIC_RELAXED);
    uint64_t count = __atomic_load_n(&failing_count, __ATOMIC_RELAXED);
    if (first == 0 || number < first || number - first >= count) {
        return 0;
    }
    errno = error;
    return 1;
}

void wefti_fault_arm(uint64_t nth, uint64_t count)
{
    __atomic_store_n(&points_passed, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&failing_count, count, __ATOMIC_RELAXED);
    __atomic_store_n(&first_failing, nth, __ATOMIC_RELAXED);
}

uint64_t wefti_fault_passed(void)
{
    return __atomic_load_n(&points_passed, __ATOMIC_RELAXED);
}

int64_t wefti_alloc_live(void)
{
    return __atomic_load_n(&live_count, __ATOMIC_RELAXED);
}

static void count_live(int64_t change)
{
    __atomic_fetch_add(&live_count, change, __ATOMIC_RELAXED);
}

#else

static void count_live(int64_t change)
{
    (void)change;
}

#endif

/* An empty block is one byte, so that NULL always means that there is no memory. */
static size_t at_least_one(size_t bytes)
{
    return bytes == 0 ? 1 : bytes;
}

static void *counted(void *memory)
{
    if (memory != NULL) {
        count_live(1);
    }
    return memory;
}

void *wefti_alloc(size_t bytes)
{
    if (wefti_fault("malloc", ENOMEM)) {
        return NULL;
    }
    return counted(malloc(at_least_one(bytes)));
}

void *wefti_alloc_zeroed(size_t count, size_t bytes)
{
    if (wefti_fault("calloc", ENOMEM)) {
        return NULL;
    }
    return counted(calloc(at_least_one(count), at_least_one(bytes)));
}

void *wefti_alloc_aligned(size_t alignment, size_t bytes)
{
    void *memory = NULL;
    if (wefti_fault("posix_memalign", ENOMEM) || posix_memalign(&memory, alignment, at_least_one(bytes)) != 0) {
        return NULL;
    }
    memset(memory, 0, at_least_one(bytes));
    return counted(memory);
}

void *wefti_realloc(void *memory, size_t bytes)
{
    if (wefti_fault("realloc", ENOMEM)) {
        return NULL;
    }
    void *grown = realloc(memory, at_least_one(bytes));
    return memory == NULL ? counted(grown) : grown;
}

char *wefti_alloc_text(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = wefti_alloc(bytes);
    if (copy != NULL) {
        memcpy(copy, text, bytes);
    }
    return copy;
}

#ifdef NDEBUG

void wefti_free_late(void *memory)
{
    wefti_free(memory);
}

#else

#define LATE_FREES 64

/* Global, as the counts above, and likewise in no release build. */
static void *late_frees[LATE_FREES];
static uint64_t late_free_count;

void wefti_free_late(void *memory)
{
    size_t place = (size_t)(__atomic_fetch_add(&late_free_count, 1, __ATOMIC_RELAXED) % LATE_FREES);
    count_live(memory == NULL ? 0 : -1);
    free(__atomic_exchange_n(&late_frees[place], memory, __ATOMIC_ACQ_REL));
}

#endif

void wefti_free(void *memory)
{
    if (memory != NULL) {
        count_live(-1);
        free(memory);
    }
}
