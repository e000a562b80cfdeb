/* faces/nccl_ep/traces.c: see traces.h. */
#include "faces/nccl_ep/traces.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES_AT_ONCE 512
#define AT_ONCE 16 /* numbers of a row, without a stop */
#define NUMBER 0x2d4b1e97u /* that rows are of; nobody writes it by chance */

void *take_device_memory(size_t bytes)
{
    int (*alloc)(uint64_t * at, size_t size) = NULL;
    uint64_t at = 0;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&alloc = library != NULL ? dlsym(library, "cuMemAlloc_v2") : NULL;
    if (alloc == NULL || alloc(&at, bytes) != 0) {
        (void)fprintf(stderr, "no memory of the fake driver\n");
        exit(1);
    }
    return (void *)(uintptr_t)at;
}

static int has_row(const uint32_t *words, size_t count)
{
    size_t run = 0;
    for (size_t i = 0; i < count; i++) {
        run = words[i] == NUMBER ? run + 1 : 0;
        if (run == AT_ONCE) {
            return 1;
        }
    }
    return 0;
}

/* Whether a mapping has a row, of the pages that are there. */
static int is_in_mapping(int pages, uintptr_t from, uintptr_t to)
{
    uint64_t entries[PAGES_AT_ONCE];
    for (uintptr_t base = from; base < to; base += PAGES_AT_ONCE * PAGE) {
        size_t count = (to - base) / PAGE < PAGES_AT_ONCE ? (to - base) / PAGE : PAGES_AT_ONCE;
        ssize_t got = pread(pages, entries, count * sizeof *entries, (off_t)(base / PAGE * sizeof *entries));
        for (size_t i = 0; got > 0 && i < (size_t)got / sizeof *entries; i++) {
            const uint32_t *words = (const uint32_t *)(base + i * PAGE);
            if ((entries[i] >> 63) != 0 && has_row(words, PAGE / sizeof *words)) {
                return 1;
            }
        }
    }
    return 0;
}

/* In device memory. */
static int is_anywhere(void)
{
    char line[512];
    int found = 0;
    int mappings = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    int pages = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (maps == NULL || pages < 0) {
        abort();
    }
    while (!found && fgets(line, sizeof line, maps) != NULL) {
        unsigned long from = 0;
        unsigned long to = 0;
        int is = strstr(line, "fake device memory") != NULL && sscanf(line, "%lx-%lx", &from, &to) == 2;
        mappings += is;
        found = is && is_in_mapping(pages, from, to);
    }
    (void)fclose(maps);
    (void)close(pages);
    if (mappings == 0) {
        abort(); /* the fake driver calls its memory otherwise now */
    }
    return found;
}

int is_left(rig *r, step *s, ncclEpHandle_t handle, void *rows)
{
    int is = 0;
    for (size_t i = 0; i < MOST * (size_t)HIDDEN; i++) {
        memcpy(&r->x[i / HIDDEN][i % HIDDEN], &(uint32_t){NUMBER}, sizeof(uint32_t));
    }
    memset(rows, 0, sizeof r->received);
    dispatch(r, s, handle);
    r->failures += !has_row(rows, sizeof r->received / sizeof(uint32_t)); /* some row comes to each rank */
    (void)pthread_barrier_wait(&turns);
    memset(rows, 0, sizeof r->received);
    memset(r->x, 0, sizeof r->x);
    (void)pthread_barrier_wait(&turns);
    if (r->rank == 0) {
        is = is_anywhere();
    }
    (void)pthread_barrier_wait(&turns);
    return is;
}
