/* bootstrap/tree/greeter.h: the side that accepts connections.
 *
 * Strangers are held apart from the world until they have proved that they know its secret: each has its own time
 * limit, their number is bounded, and what they do or leave undone delays nobody. */
#ifndef WEFTI_BOOTSTRAP_TREE_GREETER_H
#define WEFTI_BOOTSTRAP_TREE_GREETER_H

#include "bootstrap/tree/link.h"
#include "bootstrap/tree/net.h"

/* A connection that has not proved itself. */
typedef struct wefti_stranger {
    wefti_link link;
    unsigned char nonce[WEFTI_TREE_NONCE_BYTES]; /* sent to it */
    uint64_t since_ns;
    int door; /* the listener that it came by */
    int is_proven;
    wefti_tree_hello hello; /* once proven */
} wefti_stranger;

#define WEFTI_GREETER_STRANGERS_MAX 128 /* of one listener: those of one network take no place of the other's */

typedef struct wefti_greeter {
    const wefti_tree_site *site;
    const wefti_tree_listeners *listeners; /* owned by the caller */
    int pe; /* who answers */
    const char *world; /* NULL; or its name, and those who look for another world's PE 0 are sent to look on */
    int has_warned;
    size_t places[WEFTI_TREE_LISTENERS_MAX];
    wefti_stranger *strangers[WEFTI_TREE_LISTENERS_MAX * WEFTI_GREETER_STRANGERS_MAX]; /* in order of arrival */
    size_t count;
    size_t counts[WEFTI_TREE_LISTENERS_MAX]; /* by listener */
    uint64_t scarce_since_ns; /* no descriptor is free since then; 0: the last connection got one */
    uint64_t scarce_until_ns; /* when to try again */
} wefti_greeter;

void wefti_greeter_init(wefti_greeter *greeter, const wefti_tree_site *site, const wefti_tree_listeners *listeners,
                        int pe);
/* Drop all strangers; safe on zeroed memory. */
void wefti_greeter_fini(wefti_greeter *greeter);
/* Watch the listeners and the strangers. Returns when wefti_greeter_step is due even if nothing happens. */
uint64_t wefti_greeter_watch(wefti_greeter *greeter, wefti_polls *polls);
/* Accept, read and verify what there is. Fails on a lack of memory or descriptors here, never because of a stranger. */
weft_status wefti_greeter_step(wefti_greeter *greeter, const wefti_polls *polls);
/* Take over a connection that has proved itself. Returns 0 when there is none. */
int wefti_greeter_take(wefti_greeter *greeter, wefti_link *link, wefti_tree_hello *hello);

#endif
