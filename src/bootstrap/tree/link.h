/* bootstrap/tree/link.h: one connection between two PEs, as a sequence of frames.
 *
 * A frame is a header and a body. Nothing here blocks: sending keeps what the socket does not take, receiving returns
 * at each whole frame. A link is used by one thread and may be moved in memory. */
#ifndef WEFTI_BOOTSTRAP_TREE_LINK_H
#define WEFTI_BOOTSTRAP_TREE_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "bootstrap/crypto/seal.h"
#include "bootstrap/tree/polls.h"

typedef enum wefti_frame_type {
    WEFTI_FRAME_CHALLENGE = 1, /* who accepts: a nonce */
    WEFTI_FRAME_HELLO, /* who connects: who I am, a nonce, a proof */
    WEFTI_FRAME_ANSWER, /* who accepts: who I am, a proof */
    WEFTI_FRAME_REFUSAL, /* who accepts: your proof is wrong */
    WEFTI_FRAME_ELSEWHERE, /* who accepts: this is another world's PE 0 */
    WEFTI_FRAME_WELCOME, /* PE 0: all are here, this is your parent */
    WEFTI_FRAME_GATHER, /* up: the contributions of a subtree */
    WEFTI_FRAME_RESULT, /* down: all contributions */
    WEFTI_FRAME_EXPIRED, /* a wait is over: name whom you wait for */
    WEFTI_FRAME_ALIVE, /* PE 0, while forming: the answer to EXPIRED */
    WEFTI_FRAME_FAILURE, /* a status and a text, for everybody */
    WEFTI_FRAME_PARKED /* PE 0: close this connection, and come back with a ticket */
} wefti_frame_type;

typedef struct wefti_frame_header {
    uint32_t type;
    uint32_t sequence; /* of the exchange, with GATHER and RESULT */
    uint64_t bytes; /* of the body */
} wefti_frame_header;

/* The longest body of a frame that is neither GATHER nor RESULT. */
#define WEFTI_LINK_BODY_BYTES 544

/* The most frames that are read of one connection before the others, and the time, are looked at again. */
#define WEFTI_LINK_FRAMES_MAX 16

typedef enum wefti_link_event {
    WEFTI_LINK_IDLE, /* nothing more for now */
    WEFTI_LINK_FRAME, /* a whole frame: link->in is its header, link->body or the sink its body */
    WEFTI_LINK_HELD, /* a GATHER or RESULT that is not expected yet: nothing is read until it is */
    WEFTI_LINK_CLOSED, /* the other end is gone */
    WEFTI_LINK_BROKEN, /* what came is no frame, or not the one expected */
    WEFTI_LINK_FORGED /* what came is not what the other end sent */
} wefti_link_event;

typedef struct wefti_link {
    int descriptor; /* -1: none */
    int pe; /* at the other end; -1: not known */
    /* Encrypts frames from here on, where there are keys (handshake.h): those that are sent, those that come. */
    wefti_seal *seal;
    int seals_out;
    int seals_in;
    size_t place; /* among the polls */
    /* The frame being read: `in_bytes` of its header and body have come. */
    wefti_frame_header in;
    uint64_t in_bytes;
    int is_handed_out;
    int is_held;
    int is_leaving; /* it is closed once all is sent, and not read any more */
    unsigned char body[WEFTI_LINK_BODY_BYTES];
    /* Where the body of the next GATHER or RESULT goes; type 0: none is expected. */
    struct {
        uint32_t type;
        uint32_t sequence;
        unsigned char *memory;
        uint64_t bytes;
    } sink;
    /* What could not be sent at once. */
    unsigned char *out;
    size_t out_first;
    size_t out_end;
} wefti_link;

/* Start on a connected, non-blocking descriptor, which the link owns from here on; -1 makes an empty link. */
void wefti_link_init(wefti_link *link, int descriptor, int pe);
/* Close; safe twice. */
void wefti_link_fini(wefti_link *link);
/* Whether there is a connection. */
int wefti_link_is_open(const wefti_link *link);

/* Send a frame. Returns 0 when the other end is gone or there is no memory to keep the rest; the link is then of no
 * further use for sending. */
int wefti_link_send(wefti_link *link, wefti_frame_type type, uint32_t sequence, const void *body, size_t bytes);
/* Send more of what was kept. Returns 0 when the other end is gone. */
int wefti_link_flush(wefti_link *link);
int wefti_link_is_flushed(const wefti_link *link);

/* The next GATHER or RESULT must be this one. If one is held already, no wait shows it: call wefti_link_receive. */
void wefti_link_expect(wefti_link *link, wefti_frame_type type, uint32_t sequence, void *memory, uint64_t bytes);
/* Read on. Call again until it returns something else than WEFTI_LINK_FRAME. */
wefti_link_event wefti_link_receive(wefti_link *link);

/* Watch for what the link waits for. */
void wefti_link_watch(wefti_link *link, wefti_polls *polls);
/* Whether there is something to read. Sends what the socket now takes; what happened then shows on reading. */
int wefti_link_ready(wefti_link *link, const wefti_polls *polls);

#endif
