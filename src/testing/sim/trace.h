/* testing/sim/trace.h: events: the last of each fiber are kept, all are hashed, and each can be written as a line. */
#ifndef WEFTI_SIM_TRACE_H
#define WEFTI_SIM_TRACE_H

#include <stdint.h>

/* X(NAME, word, what `at` is: 'm' an offset in symmetric memory, 'n' a number, '-' nothing) */
#define WEFTI_EVENT_TABLE(X)                                                                                           \
    X(LOAD, "load", 'm')                                                                                               \
    X(STALE, "load-old", 'm')                                                                                          \
    X(STORE, "store", 'm')                                                                                             \
    X(DELAY, "store-late", 'm')                                                                                        \
    X(COMMIT, "commit", 'm')                                                                                           \
    X(RMW, "rmw", 'm')                                                                                                 \
    X(READ, "copy-out", 'm')                                                                                           \
    X(WRITE, "copy-in", 'm')                                                                                           \
    X(ZERO, "zero", 'm')                                                                                               \
    X(FENCE, "fence", '-')                                                                                             \
    X(PUT, "put", 'm')                                                                                                 \
    X(GET, "get", 'm')                                                                                                 \
    X(AMO, "amo", 'm')                                                                                                 \
    X(SIGNAL, "put-signal", 'm')                                                                                       \
    X(DELIVER, "deliver", 'm')                                                                                         \
    X(QUIET, "quiet", '-')                                                                                             \
    X(PAUSE, "pause", 'm')                                                                                             \
    X(SLEEP, "sleep", '-')                                                                                             \
    X(RUN, "run", '-')                                                                                                 \
    X(LOCK, "lock", '-')                                                                                               \
    X(NOTIFY, "notify", '-')                                                                                           \
    X(START, "start", 'n')                                                                                             \
    X(END, "end", '-')                                                                                                 \
    X(KILL, "kill", 'n')                                                                                               \
    X(STALL, "stall", 'n')                                                                                             \
    X(CONNECT, "connect", 'n')                                                                                         \
    X(ACCEPT, "accept", 'n')                                                                                           \
    X(SEND, "send", 'n')                                                                                               \
    X(RECEIVE, "receive", 'n')                                                                                         \
    X(POLL, "poll", 'n')                                                                                               \
    X(CLOSE, "close", 'n')                                                                                             \
    X(CUT, "cut", 'n')                                                                                                 \
    X(NOTE, "note", 'n')

typedef enum wefti_event_kind {
#define WEFTI_EVENT_ENUM(name, word, at) WEFTI_EVENT_##name,
    WEFTI_EVENT_TABLE(WEFTI_EVENT_ENUM)
#undef WEFTI_EVENT_ENUM
} wefti_event_kind;

typedef struct wefti_event {
    uint64_t ns;
    uint64_t at;
    uint64_t value;
    const char *text; /* of a note */
    wefti_event_kind kind;
} wefti_event;

#define WEFTI_EVENTS_KEPT 32

typedef struct wefti_event_ring {
    wefti_event last[WEFTI_EVENTS_KEPT];
    uint64_t count;
} wefti_event_ring;

#endif
