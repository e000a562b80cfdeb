/* testing/sim/coroutine.h: stacks of their own, and switching between them without a system call. */
#ifndef WEFTI_SIM_COROUTINE_H
#define WEFTI_SIM_COROUTINE_H

#include <stddef.h>

typedef struct wefti_coroutine {
    void *sp; /* while it does not run */
    unsigned char *stack; /* lowest usable byte; NULL: a thread's own stack */
    size_t stack_bytes;
    void (*body)(void *argument);
    void *argument;
    /* For the sanitizers. */
    void *fake_stack;
    void *tsan_fiber;
} wefti_coroutine;

/* The coroutine that is the calling thread itself. */
void wefti_coroutine_init_thread(wefti_coroutine *coroutine);

/* A coroutine that runs body(argument) on `stack` when first switched to. body never returns: it ends with a
 * wefti_coroutine_switch_last. */
void wefti_coroutine_init(wefti_coroutine *coroutine, void *stack, size_t stack_bytes, void (*body)(void *argument),
                          void *argument);
void wefti_coroutine_fini(wefti_coroutine *coroutine);

/* Suspend `from`, which is the caller, and run `to`. */
void wefti_coroutine_switch(wefti_coroutine *from, wefti_coroutine *to);
/* The same where `from` will never run again. */
void wefti_coroutine_switch_last(wefti_coroutine *from, wefti_coroutine *to);

/* ---- stacks.c: many stacks in one mapping, one in `guard_every` with a page below it that nobody may touch ---- */

typedef struct wefti_stacks {
    unsigned char *base;
    size_t stride;
    size_t count;
} wefti_stacks;

/* Returns 0 when there is no memory. `bytes` is a multiple of the page. A guarded stack takes two of the mappings that
 * a process may have. */
int wefti_stacks_init(wefti_stacks *stacks, size_t count, size_t bytes, size_t guard_every);
void wefti_stacks_fini(wefti_stacks *stacks); /* safe on zeroed memory */
/* Leave the mapping alone: coroutines were given up on it, and what they hold counts as reachable. */
void wefti_stacks_abandon(wefti_stacks *stacks);
unsigned char *wefti_stacks_at(const wefti_stacks *stacks, size_t index);

#endif
