/* transport/am/watch_link.h: one connection of a watch. Messages go both ways: first who sends them, then what became
 * of which PE. Nothing here blocks. */
#ifndef WEFTI_TRANSPORT_AM_WATCH_LINK_H
#define WEFTI_TRANSPORT_AM_WATCH_LINK_H

#include "transport/am/watch.h"

typedef struct wefti_watch_message {
    uint64_t proof; /* that the sender knows the world's key */
    uint32_t pe;
    uint32_t
        fate; /* wefti_transport_fate. WEFTI_FATE_THERE says, in the first message, who sends; later, to a PE of the
                      same node, that `pe`'s node could be reached */
} wefti_watch_message;
_Static_assert(sizeof(wefti_watch_message) == 16, "no padding is sent");

/* What follows from the world's key for messages from one PE to another: it is of no use to who sits in place of a PE
 * that has ended, at its port, and is told it. */
uint64_t wefti_watch_proof(uint64_t world, uint32_t from, uint32_t to);

typedef enum wefti_watch_link_state {
    WEFTI_WATCH_FREE, /* no connection: on zeroed memory */
    WEFTI_WATCH_DIALLING,
    WEFTI_WATCH_UNKNOWN, /* the other end has not said who it is */
    WEFTI_WATCH_KNOWN,
} wefti_watch_link_state;

typedef struct wefti_watch_link {
    wefti_watch_link_state state;
    int descriptor;
    int pe; /* at the other end; of one that was accepted, once it is known */
    int is_dialled; /* by this PE */
    int is_local;
    int knows_left; /* the other end has said that this PE has left, and does without it */
    uint64_t since_ns; /* when it was dialled or accepted */
    size_t sent; /* bytes of the messages that go out */
    size_t received; /* bytes of the message that comes in */
    wefti_watch_message message;
} wefti_watch_link;

/* Begin to connect to `pe`. Returns 0 or an error number, and then the link is free. */
int wefti_watch_link_dial(wefti_watch_link *link, const wefti_watch_contact *contact, int pe, int is_local);
/* Take a connection that a listener has, if it has one; returns 0 if it has none. Of another user: the link is free. */
int wefti_watch_link_accept(wefti_watch_link *link, int listener, int is_local);
/* What became of a dialled one that is writable: 0 or an error number. The host counts as silent after silence_ns. */
int wefti_watch_link_outcome(wefti_watch_link *link, uint64_t silence_ns);
/* For one that was accepted. */
void wefti_watch_link_keep(const wefti_watch_link *link, uint64_t silence_ns);
/* Send of `count` messages, of which at() gives each, what has not been sent yet, as far as the system takes it. */
typedef wefti_watch_message (*wefti_watch_at)(const void *context, size_t number);
void wefti_watch_link_send(wefti_watch_link *link, wefti_watch_at at, const void *context, size_t count);
/* Returns 1 with a message in link->message, 0 if none is there yet, or -1 with *error, 0 at an end. */
int wefti_watch_link_receive(wefti_watch_link *link, int *error);
void wefti_watch_link_close(wefti_watch_link *link);

/* A local listener of this name; -1 with errno. */
int wefti_watch_listen_local(const unsigned char name[16]);

#endif
