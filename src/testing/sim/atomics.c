/* testing/sim/atomics.c: words of a process's own memory. */
#include <malloc.h>
#include <string.h>

#include "common/mix.h"
#include "testing/sim/sim.h"

#define LINE 64

static wefti_atomic *set_of(wefti_sim *sim, uintptr_t address, unsigned **next)
{
    const size_t number = (size_t)(wefti_mix(address / LINE) >> 32) % WEFTI_ATOMIC_SETS;
    *next = &sim->atomics.next[number];
    return sim->atomics.sets[number];
}

static wefti_atomic *find(wefti_sim *sim, uintptr_t address)
{
    unsigned *next;
    wefti_atomic *set = set_of(sim, address, &next);
    for (int i = 0; i < WEFTI_ATOMIC_WAYS; i++) {
        if (set[i].address == address) {
            return &set[i];
        }
    }
    return NULL;
}

/* A simulation in which a fiber runs, that of a word outside of symmetric memory; else NULL. */
static wefti_sim *sim_beside(const volatile void *word)
{
    wefti_sim *sim = wefti_sim_current;
    const int is_beside =
        sim != NULL && sim->running != NULL && wefti_sim_offset(sim, (const void *)(uintptr_t)word) == WEFTI_NOWHERE;
    return is_beside ? sim : NULL;
}

static uint64_t value_of(const volatile void *word, size_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, (const void *)(uintptr_t)word, bytes < sizeof value ? bytes : sizeof value);
    return value;
}

static int acquires(int order)
{
    return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE;
}

static int releases(int order)
{
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

/* A value of 0 may be that of memory that nobody has stored to. */
void wefti_atomics_load(const volatile void *word, size_t bytes, int order)
{
    wefti_sim *sim = sim_beside(word);
    const wefti_atomic *known = sim == NULL ? NULL : find(sim, (uintptr_t)word);
    if (known == NULL || known->fiber == sim->running->number || known->value == 0 ||
        known->value != value_of(word, bytes) || known->is_released == acquires(order)) {
        return;
    }
    wefti_sim_refuse(sim, sim->running->pe,
                     known->is_released
                         ? "PE %d loads without acquire a word of its process that another thread has stored "
                           "with release"
                         : "PE %d loads with acquire a word of its process that another thread has stored "
                           "without release",
                     sim->running->pe);
}

void wefti_atomics_store(const volatile void *word, size_t bytes, int order)
{
    wefti_sim *sim = sim_beside(word);
    if (sim == NULL) {
        return;
    }
    wefti_atomic *known = find(sim, (uintptr_t)word);
    if (known == NULL) {
        unsigned *next;
        wefti_atomic *set = set_of(sim, (uintptr_t)word, &next);
        known = &set[(*next)++ % WEFTI_ATOMIC_WAYS];
    }
    *known = (wefti_atomic){.address = (uintptr_t)word,
                            .value = value_of(word, bytes),
                            .fiber = sim->running->number,
                            .is_released = releases(order)};
}

/* Words in memory that is given back are forgotten. */
static void forget(const void *memory, size_t bytes)
{
    wefti_sim *sim = wefti_sim_current;
    const uintptr_t first = (uintptr_t)memory;
    for (uintptr_t line = first / LINE; sim != NULL && line <= (first + bytes - 1) / LINE; line++) {
        unsigned *next;
        wefti_atomic *set = set_of(sim, line * LINE, &next);
        for (int i = 0; i < WEFTI_ATOMIC_WAYS; i++) {
            if (set[i].address - first < bytes) {
                set[i].address = 0;
            }
        }
    }
}

void wefti_atomics_free(void *memory)
{
    if (memory != NULL) {
        forget(memory, malloc_usable_size(memory));
    }
    (free)(memory);
}

void *wefti_atomics_realloc(void *memory, size_t bytes)
{
    if (memory != NULL) {
        forget(memory, malloc_usable_size(memory));
    }
    return (realloc)(memory, bytes);
}
