/* testing/sim/atomics.h: words of a process's own memory, by which its threads hand each other what lies beside them.
 *
 * Only symmetric memory has store buffers here, so that nothing could be seen of an order that is missing at such a
 * word. So what is asked for is looked at itself: a run fails when a fiber loads with acquire what another fiber has
 * stored without release, or loads without acquire what another has stored with release.
 *
 * The library's sources are compiled for the simulator with this file included first: the names of the compiler's
 * atomic functions are macros there. So are free and realloc, for memory that is given back may have other words
 * next. */
#ifndef WEFTI_SIM_ATOMICS_H
#define WEFTI_SIM_ATOMICS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* What is known of a word: the last store that was no plain one. */
typedef struct wefti_atomic {
    uintptr_t address; /* 0: none */
    uint64_t value;
    int fiber;
    int is_released;
} wefti_atomic;

#define WEFTI_ATOMIC_SETS 256
#define WEFTI_ATOMIC_WAYS 4

/* Of a simulation; words of one cache line share a set, and the newest of them stay. */
typedef struct wefti_atomics {
    wefti_atomic sets[WEFTI_ATOMIC_SETS][WEFTI_ATOMIC_WAYS];
    unsigned next[WEFTI_ATOMIC_SETS];
} wefti_atomics;

/* The running fiber loads the word, or has stored it: `order` is the compiler's. */
void wefti_atomics_load(const volatile void *word, size_t bytes, int order);
void wefti_atomics_store(const volatile void *word, size_t bytes, int order);
void wefti_atomics_free(void *memory);
void *wefti_atomics_realloc(void *memory, size_t bytes);

#define free(memory) wefti_atomics_free(memory)
#define realloc(memory, bytes) wefti_atomics_realloc(memory, bytes)

#define __atomic_load_n(word, order)                                                                                   \
    __extension__({                                                                                                    \
        __auto_type wefti_loaded = (word);                                                                             \
        wefti_atomics_load(wefti_loaded, sizeof *wefti_loaded, order);                                                 \
        __atomic_load_n(wefti_loaded, order);                                                                          \
    })
#define __atomic_store_n(word, value, order)                                                                           \
    __extension__({                                                                                                    \
        __auto_type wefti_stored = (word);                                                                             \
        __atomic_store_n(wefti_stored, value, order);                                                                  \
        wefti_atomics_store(wefti_stored, sizeof *wefti_stored, order);                                                \
    })
#define WEFTI_ATOMICS_CHANGE(change, word, value, order)                                                               \
    __extension__({                                                                                                    \
        __auto_type wefti_at = (word);                                                                                 \
        wefti_atomics_load(wefti_at, sizeof *wefti_at, order);                                                         \
        __auto_type wefti_result = change(wefti_at, value, order);                                                     \
        wefti_atomics_store(wefti_at, sizeof *wefti_at, order);                                                        \
        wefti_result;                                                                                                  \
    })
#define __atomic_exchange_n(word, value, order) WEFTI_ATOMICS_CHANGE(__atomic_exchange_n, word, value, order)
#define __atomic_add_fetch(word, value, order) WEFTI_ATOMICS_CHANGE(__atomic_add_fetch, word, value, order)
#define __atomic_sub_fetch(word, value, order) WEFTI_ATOMICS_CHANGE(__atomic_sub_fetch, word, value, order)
#define __atomic_compare_exchange_n(word, expected, value, weak, order, order_of_failure)                              \
    __extension__({                                                                                                    \
        __auto_type wefti_at = (word);                                                                                 \
        __auto_type wefti_expected = (expected);                                                                       \
        const int wefti_is_alike = *wefti_at == *wefti_expected;                                                       \
        wefti_atomics_load(wefti_at, sizeof *wefti_at, wefti_is_alike ? (order) : (order_of_failure));                 \
        const int wefti_done =                                                                                         \
            __atomic_compare_exchange_n(wefti_at, wefti_expected, value, weak, order, order_of_failure);               \
        if (wefti_done) {                                                                                              \
            wefti_atomics_store(wefti_at, sizeof *wefti_at, order);                                                    \
        }                                                                                                              \
        wefti_done;                                                                                                    \
    })

#endif
