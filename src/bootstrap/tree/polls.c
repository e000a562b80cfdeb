/* bootstrap/tree/polls.c: waiting for any of a set of descriptors. */
#include "bootstrap/tree/polls.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "os/os.h"
#include "os/socket.h"

#define CAPACITY_FIRST 16

void wefti_polls_clear(wefti_polls *polls)
{
    polls->count = 0;
    polls->failed = WEFT_OK;
}

static weft_status grow(wefti_polls *polls)
{
    size_t capacity = polls->capacity == 0 ? CAPACITY_FIRST : 2 * polls->capacity;
    struct pollfd *items = wefti_realloc(polls->items, capacity * sizeof *items);
    if (items == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory to wait for %zu connections", capacity);
    }
    polls->items = items;
    polls->capacity = capacity;
    return WEFT_OK;
}

size_t wefti_polls_watch(wefti_polls *polls, int descriptor, short events)
{
    if (descriptor < 0) {
        return SIZE_MAX; /* the system bounds how many items there are, also those that are left out */
    }
    if (polls->count == polls->capacity && polls->failed == WEFT_OK) {
        polls->failed = grow(polls);
    }
    if (polls->failed != WEFT_OK) {
        return 0;
    }
    polls->items[polls->count] = (struct pollfd){.fd = descriptor, .events = events};
    return polls->count++;
}

weft_status wefti_polls_wait(wefti_polls *polls, uint64_t until_ns)
{
    if (polls->failed != WEFT_OK) {
        return polls->failed;
    }
    uint64_t now_ns = wefti_os_now_ns();
    uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    int ready = wefti_fault("ppoll", ENOMEM) ? -1 : wefti_os_socket_poll(polls->items, polls->count, wait_ns);
    if (ready >= 0) {
        return WEFT_OK;
    }
    int error = errno;
    for (size_t i = 0; i < polls->count; i++) {
        polls->items[i].revents = 0;
    }
    if (error == EINTR) {
        return WEFT_OK;
    }
    return wefti_error(WEFT_ERR_SYSTEM, "cannot wait for %zu connections: %s%s", polls->count, strerror(error),
                       error == EINVAL ? "; allow more open files (ulimit -n)" : "");
}

short wefti_polls_seen(const wefti_polls *polls, size_t place)
{
    return place < polls->count ? polls->items[place].revents : 0;
}

void wefti_polls_fini(wefti_polls *polls)
{
    wefti_free(polls->items);
    memset(polls, 0, sizeof *polls);
}
