/* os/posix/clock.c: time. */
#include <sched.h>
#include <time.h>

#include "os/os.h"

#define NS_PER_S UINT64_C(1000000000)

uint64_t wefti_os_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with this clock */
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void wefti_os_sleep_ns(uint64_t ns)
{
    struct timespec duration = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    nanosleep(&duration, NULL);
}

void wefti_os_yield(void)
{
    sched_yield();
}
