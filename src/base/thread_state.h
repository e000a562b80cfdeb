/* base/thread_state.h: what belongs to the calling thread (in the simulator, to the calling PE's). */
#ifndef WEFTI_BASE_THREAD_STATE_H
#define WEFTI_BASE_THREAD_STATE_H

#define WEFTI_ERROR_BYTES 512

typedef struct wefti_thread_state {
    char last_error[WEFTI_ERROR_BYTES]; /* "" at first */
    int is_hopeless; /* the last wait that failed did so because a PE that it needs is gone, not at its deadline */
    int log_level; /* 0, or 1 + the least severe level that it shows (base/log.h) */
    int expects_error; /* its errors are its caller's to explain (base/error.h) */
} wefti_thread_state;

/* This thread's state; never NULL. */
wefti_thread_state *wefti_thread_state_own(void);

/* Parts of it. (base/thread_text.c) */
char *wefti_thread_text(void); /* of the last error: WEFTI_ERROR_BYTES bytes */
int *wefti_thread_is_hopeless(void);
int *wefti_thread_log_level(void);
int *wefti_thread_expects_error(void);

#endif
