/* bootstrap/tree/polls.h: waiting for any of a set of descriptors. */
#ifndef WEFTI_BOOTSTRAP_TREE_POLLS_H
#define WEFTI_BOOTSTRAP_TREE_POLLS_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"

/* Zeroed memory is an empty set. It is built anew for each wait. */
typedef struct wefti_polls {
    struct pollfd *items;
    size_t count;
    size_t capacity;
    weft_status failed; /* no memory for an item: reported by the wait */
} wefti_polls;

void wefti_polls_clear(wefti_polls *polls);
/* Watch `descriptor`, where it is not negative, for `events`; returns the item's place. */
size_t wefti_polls_watch(wefti_polls *polls, int descriptor, short events);
/* Sleep until something happens or the monotonic time `until_ns`. */
weft_status wefti_polls_wait(wefti_polls *polls, uint64_t until_ns);
/* What happened to the item at `place`. */
short wefti_polls_seen(const wefti_polls *polls, size_t place);
void wefti_polls_fini(wefti_polls *polls);

#endif
