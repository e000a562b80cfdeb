/* testing/sim/stacks.c: many stacks in one mapping. */
#include <string.h>
#include <sys/mman.h>

#include "testing/sim/coroutine.h"
#include "testing/sim/sanitizer.h"

#define GUARD_BYTES 4096

int wefti_stacks_init(wefti_stacks *stacks, size_t count, size_t bytes, size_t guard_every)
{
    size_t stride = bytes + GUARD_BYTES;
    void *base = mmap(NULL, count * stride, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return 0;
    }
    *stacks = (wefti_stacks){.base = base, .stride = stride, .count = count};
    (void)madvise(base, count * stride, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < count; i += guard_every) {
        if (mprotect(stacks->base + i * stride, GUARD_BYTES, PROT_NONE) != 0) {
            wefti_stacks_fini(stacks);
            return 0;
        }
    }
    return 1;
}

void wefti_stacks_fini(wefti_stacks *stacks)
{
    if (stacks->base != NULL) {
        munmap(stacks->base, stacks->count * stacks->stride);
    }
    memset(stacks, 0, sizeof *stacks);
}

void wefti_stacks_abandon(wefti_stacks *stacks)
{
    if (!WEFTI_ASAN) {
        wefti_stacks_fini(stacks);
        return;
    }
    for (size_t i = 0; i < stacks->count; i++) {
        wefti_sanitizer_keep(wefti_stacks_at(stacks, i), stacks->stride - GUARD_BYTES);
    }
    memset(stacks, 0, sizeof *stacks);
}

unsigned char *wefti_stacks_at(const wefti_stacks *stacks, size_t index)
{
    return stacks->base + index * stacks->stride + GUARD_BYTES;
}
