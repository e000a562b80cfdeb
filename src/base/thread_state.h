/* base/thread_state.h: what belongs to the calling thread (in the simulator, to the calling PE's). */
#ifndef WEFTI_BASE_THREAD_STATE_H
#define WEFTI_BASE_THREAD_STATE_H

#include <stdint.h>

#define WEFTI_ERROR_BYTES 512

/* Of gets that the thread has begun and not waited for: in which world it last did (0: none are), as which PE, and how
 * many had failed there before the first (transport/am/gets.c). */
typedef struct wefti_thread_gets {
    uint64_t world;
    int pe;
    uint64_t failures;
} wefti_thread_gets;

typedef struct wefti_thread_state {
    char last_error[WEFTI_ERROR_BYTES]; /* "" at first */
    int is_hopeless; /* the last wait that failed did so because a PE that it needs is gone, not at its deadline */
    int log_level; /* 0, or 1 + the least severe level that it shows (base/log.h) */
    int expects_error; /* its errors are its caller's to explain (base/error.h) */
    wefti_thread_gets gets;
} wefti_thread_state;

/* This thread's state; never NULL. */
wefti_thread_state *wefti_thread_state_own(void);

/* Parts of it. (base/thread_text.c) */
char *wefti_thread_text(void); /* of the last error: WEFTI_ERROR_BYTES bytes */
int *wefti_thread_is_hopeless(void);
int *wefti_thread_log_level(void);
int *wefti_thread_expects_error(void);
wefti_thread_gets *wefti_thread_own_gets(void);

#endif
