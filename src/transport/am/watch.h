/* transport/am/watch.h: who of a world is gone, found out over connections that carry nothing else.
 *
 * Each node has a leader, the lowest of its PEs that is there. Leaders are connected over TCP to those 1, 2, 4, ...
 * nodes further on, in a ring of nodes without those that are wholly gone, so that each has O(log nodes) connections;
 * the other PEs of a node are connected to its leader over a local socket. The system keeps these connections: it
 * closes those of a process that ends, and sends a sign of life every second, which it answers for a process that is
 * stopped, too. So an end without word of leaving is the end of a process, and silence is that of a host. What one PE
 * finds out it passes on over all its connections, and each passes on what is new to it. A host that was silent and is
 * back has missed others meanwhile: what its PEs say is not believed, and whoever they are connected to tells them that
 * they are given up.
 *
 * Who leaves says so, and ends its connections when those at their other ends have said that they know it. They say so
 * once they are connected to who takes its place (the next leader of that node; if it is of their own node and that is
 * them, to all that a leader is connected to), and until then it goes on telling what it finds out. So nobody ends
 * between two connections, where no end could be seen. It waits no longer than some tenths of a second.
 *
 * A connection counts once both sides have proved that they know the world's key. No PE is called gone for one that
 * never counted: where connections are refused, by a firewall say, nothing is found out. */
#ifndef WEFTI_TRANSPORT_AM_WATCH_H
#define WEFTI_TRANSPORT_AM_WATCH_H

#include <sys/socket.h>

#include "transport/transport.h"

typedef struct wefti_watch wefti_watch;

/* Where a PE listens, and which node it is of. */
typedef struct wefti_watch_contact {
    uint32_t leader; /* the lowest PE of its node */
    uint32_t host_bytes; /* of the socket address below; 0: other nodes do not reach it */
    unsigned char host[32];
    unsigned char name[16]; /* of its local socket */
} wefti_watch_contact;

typedef struct wefti_watch_setup {
    const wefti_transport_setup *world; /* as long as the watch is open */
    const struct sockaddr *host; /* at which other nodes reach this PE; NULL: at any address of this node */
    /* `pe` is gone: it has left, its process has ended, or its host is silent. By the watch's thread, once a PE. */
    void (*lost)(void *context, int pe, wefti_transport_fate fate);
    void *context;
} wefti_watch_setup;

/* Listen. On failure nothing is left behind. */
weft_status wefti_watch_create(const wefti_watch_setup *setup, wefti_watch **out, wefti_watch_contact *contact);
/* Watch the PEs that listen at `contacts`, one a PE, `stride` bytes apart. The first call after create; once. */
weft_status wefti_watch_start(wefti_watch *watch, const wefti_watch_contact *contacts, size_t stride);
/* Wait until the connections that this PE begins count or have come to nothing, but no longer than that. Where all PEs
 * have done so before any of them goes on, one that ends from then on is told of. */
void wefti_watch_await(wefti_watch *watch, uint64_t until_ns);
/* Tell the others that this PE leaves, and end; blocks for some tenths of a second at most. Safe on NULL, and before
 * start. */
void wefti_watch_destroy(wefti_watch *watch);

/* What is known of a PE; any thread. */
wefti_transport_fate wefti_watch_fate(const wefti_watch *watch, int pe);

#endif
