#include "tools/lib/memory.h"

#include <stdio.h>

double tool_pss_mb(void)
{
    FILE *rollup = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    double kib = -1;
    if (rollup == NULL) {
        return -1;
    }
    while (kib < 0 && fgets(line, sizeof line, rollup) != NULL) {
        (void)sscanf(line, "Pss: %lf kB", &kib);
    }
    fclose(rollup);
    return kib < 0 ? -1 : kib * 1024 * 1e-6;
}
