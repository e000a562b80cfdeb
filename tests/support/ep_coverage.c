/* support/ep_coverage.c: how often random calls met what they are there for. */
#include "support/ep_coverage.h"

#include <stdio.h>

static long counts[EP_COVERS];

static const char *const texts[EP_COVERS] = {
#define EP_COVERAGE_TEXT(name, what) what,
    EP_COVERAGE_TABLE(EP_COVERAGE_TEXT)
#undef EP_COVERAGE_TEXT
};

void ep_cover(ep_coverage what, long times)
{
    __atomic_add_fetch(&counts[what], times, __ATOMIC_RELAXED);
}

int ep_coverage_print(void)
{
    int missing = 0;
    for (int i = 0; i < EP_COVERS; i++) {
        long count = __atomic_load_n(&counts[i], __ATOMIC_RELAXED);
        printf("%10ld %s\n", count, texts[i]);
        missing += count == 0;
    }
    return missing;
}
