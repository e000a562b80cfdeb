#include "support/load.h"

#include <stdio.h>
#include <stdlib.h>

#include "os/os.h"

#define LOOKS 10
#define SHARE_MAX 40.0

/* Tasks that run or could. The system counts them in all containers; 0 where it does not say. */
static double count_running(void)
{
    double running = 0;
    FILE *file = fopen("/proc/loadavg", "r");
    if (file != NULL) {
        if (fscanf(file, "%*f %*f %*f %lf", &running) != 1) {
            running = 0;
        }
        (void)fclose(file);
    }
    return running;
}

uint64_t load_patience_ns(uint64_t alone_ns)
{
    double average = 0;
    double running = 0;
    for (int look = 0; look < LOOKS; look++) {
        running += count_running() / LOOKS;
        wefti_os_sleep_ns(1000000);
    }
    if (getloadavg(&average, 1) != 1 || average < running) {
        average = running;
    }
    double share = average / (double)wefti_os_cores_query().count;
    share = share < 1 ? 1 : share > SHARE_MAX ? SHARE_MAX : share;
    return (uint64_t)((1 + (share - 1) / 4) * (double)alone_ns);
}
