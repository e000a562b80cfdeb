#include "base/held_signals.h"

#include <errno.h>
#include <time.h>

static const int numbers[] = {SIGXFSZ, SIGPIPE};

wefti_held_signals wefti_signals_hold(void)
{
    wefti_held_signals held;
    sigset_t both;
    sigset_t pending;
    (void)sigemptyset(&both);
    (void)sigemptyset(&held.ours);
    (void)sigpending(&pending);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        (void)sigaddset(&both, numbers[i]);
        if (sigismember(&pending, numbers[i]) == 0) {
            (void)sigaddset(&held.ours, numbers[i]);
        }
    }
    (void)pthread_sigmask(SIG_BLOCK, &both, &held.mask);
    return held;
}

void wefti_signals_release(const wefti_held_signals *held)
{
    const struct timespec at_once = {0};
    const int error = errno;
    int raised;
    do {
        raised = sigtimedwait(&held->ours, NULL, &at_once);
    } while (raised > 0 || errno == EINTR);
    (void)pthread_sigmask(SIG_SETMASK, &held->mask, NULL);
    errno = error;
}
