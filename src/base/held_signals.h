/* base/held_signals.h: the signals that a write to a file raises in its thread beside failing, and which would end the
 * process where nobody handles them: SIGXFSZ beyond ulimit -f, SIGPIPE where nobody reads any more. */
#ifndef WEFTI_BASE_HELD_SIGNALS_H
#define WEFTI_BASE_HELD_SIGNALS_H

#include <signal.h>

typedef struct wefti_held_signals {
    sigset_t ours; /* of these two, those that were not pending before */
    sigset_t mask; /* before */
} wefti_held_signals;

/* Hold them back from this thread. */
wefti_held_signals wefti_signals_hold(void);
/* Forget what was raised meanwhile. errno stays. */
void wefti_signals_release(const wefti_held_signals *held);

#endif
