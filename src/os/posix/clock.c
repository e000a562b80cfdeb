/* os/posix/clock.c: time. */
#include <sched.h>
#include <time.h>

#include "base/durations.h"
#include "os/os.h"

uint64_t wefti_os_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with this clock */
    return (uint64_t)now.tv_sec * WEFTI_SECOND_NS + (uint64_t)now.tv_nsec;
}

void wefti_os_sleep_ns(uint64_t ns)
{
    struct timespec duration = {.tv_sec = (time_t)(ns / WEFTI_SECOND_NS), .tv_nsec = (long)(ns % WEFTI_SECOND_NS)};
    nanosleep(&duration, NULL);
}

void wefti_os_yield(void)
{
    sched_yield();
}
