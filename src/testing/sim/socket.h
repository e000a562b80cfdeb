/* testing/sim/socket.h: the network under os/socket.h: what a simulation keeps of it, and what tests do to it. */
#ifndef WEFTI_SIM_SOCKET_H
#define WEFTI_SIM_SOCKET_H

#include <stddef.h>
#include <stdint.h>

#include "os/socket.h"
#include "testing/sim/random.h"

typedef struct wefti_sim wefti_sim;
typedef struct wefti_fiber wefti_fiber;
typedef struct wefti_socket wefti_socket;

#define WEFTI_SEGMENTS 16

/* One direction of a connection, at the end that reads. What is sent arrives later, in pieces, in order. */
typedef struct wefti_pipe {
    unsigned char *ring;
    size_t room;
    size_t first;
    size_t count;
    struct {
        size_t bytes;
        uint64_t ns; /* when they can be read */
    } segments[WEFTI_SEGMENTS];
    unsigned segment_count;
    uint64_t last_ns; /* nothing arrives before what was sent earlier */
    int is_ended; /* nothing more is sent */
    int is_broken; /* by a reset, not an end */
    int is_silent; /* broken, since the other host gave no sign of life */
} wefti_pipe;

typedef enum wefti_socket_stage {
    WEFTI_SOCKET_FRESH,
    WEFTI_SOCKET_LISTENS,
    WEFTI_SOCKET_CONNECTS,
    WEFTI_SOCKET_CONNECTED,
    WEFTI_SOCKET_BELL
} wefti_socket_stage;

typedef struct wefti_socket_address {
    socklen_t bytes; /* 0: none */
    unsigned char data[128];
} wefti_socket_address;

struct wefti_socket {
    wefti_socket_stage stage;
    int family;
    int pe; /* whose it is */
    int is_foreign; /* of another user */
    uint64_t keep_ns; /* it breaks when the other host is silent for so long; 0: it never does */
    uint64_t cookie;
    wefti_socket_address name;
    wefti_socket_address peer_name;
    wefti_socket *peer; /* NULL: closed */
    wefti_pipe in;
    int has_finished; /* sends nothing more */
    int has_sent_in_vain; /* over TCP, to an end that is closed: the system does not notice the first time */
    int is_rung; /* of a bell */
    int error; /* of a connect that was decided and has not been asked for */
    int storm; /* so many calls still fail; negative: the next one does not */
    uint64_t due_ns; /* when a connect is decided, or the connection can be accepted */
    wefti_socket **queue; /* of a listener, not accepted yet */
    size_t queue_count;
    wefti_fiber *waiter; /* the last to poll for it */
};

typedef struct wefti_sockets {
    wefti_socket **open; /* by descriptor - WEFTI_SOCKET_FIRST; NULL: free */
    size_t capacity;
    uint64_t last_cookie;
    unsigned last_port;
    unsigned last_name;
    /* Drawn: */
    uint32_t again; /* thresholds */
    uint32_t interrupted;
    uint32_t partial;
    uint32_t delay_ns; /* at most */
    size_t room;
    size_t backlog;
    int is_scarce; /* whoever asks is told that few descriptors are left */
    int are_none_left; /* whoever asks is told that no descriptors are left; set by tests only */
    uint64_t silent; /* bits: PEs whose hosts are cut off from those of the others */
    uint64_t silent_until_ns; /* they are until then */
} wefti_sockets;

#define WEFTI_SOCKET_FIRST 3

/* The system closes what a PE that died had open. */
void wefti_sim_sockets_orphan(wefti_sim *sim, int pe);
/* Whose socket was left open; -1: nobody's. */
int wefti_sim_sockets_left(const wefti_sim *sim);
void wefti_sim_sockets_fini(wefti_sim *sim);

/* What rings without a call: something has come over a wire (wire.c). */
void wefti_sim_bell_set(wefti_sim *sim, int descriptor, int is_rung);

/* ---- for tests ---- */

/* The address of a listener, drawn. Returns 0 when nobody listens. */
socklen_t wefti_sim_socket_find(struct sockaddr_storage *address);
/* The other end sees another user here. */
void wefti_sim_socket_disguise(int descriptor);
/* From here on no call fails for no reason, what is sent arrives whole and at once, descriptors are plenty, and new
 * connections hold `room` bytes that were not read. */
void wefti_sim_socket_calm(size_t room);
/* The hosts of the PEs below 64 whose bits are set are cut off from the others for `ns`: what is sent between them
 * arrives afterwards, and of the connections of hosts those break that have been kept alive for less. Whoever notices
 * that first does so up to a second late, as signs of life come once a second. `are_stopped`: clocks of those hosts
 * stand, so that only the others notice. Once a run, while no earlier one is over. */
void wefti_sim_socket_silence(uint64_t pes, uint64_t ns, int are_stopped);
/* From here on whoever asks is told that no descriptors are left. */
void wefti_sim_socket_make_scarce(void);

#endif
