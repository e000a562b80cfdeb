/* bootstrap/tree/caller.h: the side that connects.
 *
 * Tries the addresses of one PE in turn, as often as it takes, until that PE has proved that it is the one. While an
 * address is silent those of this host are tried beside it, so that a stranger there keeps nobody from PE 0. The owner
 * keeps the deadline. */
#ifndef WEFTI_BOOTSTRAP_TREE_CALLER_H
#define WEFTI_BOOTSTRAP_TREE_CALLER_H

#include "bootstrap/tree/link.h"
#include "bootstrap/tree/net.h"

typedef enum wefti_caller_stage {
    WEFTI_CALLER_RESTS, /* until due_ns, before it tries (again) */
    WEFTI_CALLER_CONNECTS, /* until the system has connected */
    WEFTI_CALLER_LISTENS, /* for the challenge */
    WEFTI_CALLER_PROVES, /* has said hello, waits for the answer */
    WEFTI_CALLER_DONE
} wefti_caller_stage;

typedef struct wefti_caller {
    wefti_tree_site *site;
    wefti_tree_hello *hello; /* what to say */
    wefti_tree_listeners *listeners; /* not NULL: before the hello, listen where the other end can come back to */
    const wefti_tree_contact *contact; /* of who is called */
    unsigned round; /* of attempts at all its addresses */
    wefti_tree_address addresses[WEFTI_TREE_ADDRESSES_MAX];
    size_t address_count;
    int pe; /* who is called */
    wefti_caller_stage stage;
    wefti_link link;
    size_t at; /* the address being tried */
    unsigned char nonce[WEFTI_TREE_NONCE_BYTES];
    unsigned char their_nonce[WEFTI_TREE_NONCE_BYTES];
    /* A connection of this host that was silent for too long, and its address: it may be PE 0's, which is slow. */
    wefti_link near;
    wefti_tree_address near_address;
    size_t near_at;
    int watches_near; /* its connection is among the polls */
    uint64_t switch_ns; /* after the hello: from when on a connection of this host may replace this one */
    uint64_t near_ns; /* when to try those of this host again while another is silent */
    uint64_t due_ns; /* when to go on or give this address up */
    uint64_t begun_ns;
    uint64_t search_ns; /* when to search next, and how long after the last time */
    uint64_t search_pause_ns;
    uint64_t rest_min_ns; /* between attempts, as many PEs make them */
    uint64_t patience_ns; /* how long an address may be silent */
    uint64_t connect_ns; /* how long the system may take to connect */
    uint64_t refused_since_ns;
    unsigned talked; /* bit a: somebody listens at address a, as this round has shown */
    unsigned refused; /* bit a: nobody listens at address a */
    uint64_t turned_away_since_ns;
    int has_warned; /* the log says that it is turned away */
    unsigned strangers; /* bit a: the one who listens at address a turned us away */
    int is_trusted; /* who is at the other end may prove itself */
} wefti_caller;

/* Start calling PE `pe`, which may be reached at `contact`. `site`, `hello` and `contact` must outlive the caller.
 * Fails when the contact makes no sense. */
weft_status wefti_caller_init(wefti_caller *caller, wefti_tree_site *site, wefti_tree_hello *hello, int pe,
                              const wefti_tree_contact *contact);
/* Hang up; safe after an init that failed, and twice. */
void wefti_caller_fini(wefti_caller *caller);
/* Watch the connection. Returns when wefti_caller_step is due even if nothing happens. */
uint64_t wefti_caller_watch(wefti_caller *caller, wefti_polls *polls);
/* Go on. Fails on a lack of memory or descriptors here, and, where only PE 0 can be at its addresses, with
 * WEFT_ERR_AUTHENTICATION when it has turned us away for a while and with WEFT_ERR_PEER when it is gone. */
weft_status wefti_caller_step(wefti_caller *caller, const wefti_polls *polls);
/* At the deadline: WEFT_ERR_AUTHENTICATION when the one who listens has turned this PE away, else WEFT_OK. */
weft_status wefti_caller_judge(const wefti_caller *caller);
int wefti_caller_is_done(const wefti_caller *caller);
/* Whether the hello was sent, so that the other end may count this PE as connected already. */
int wefti_caller_is_known(const wefti_caller *caller);
/* Take over the connection of a caller that is done, or known. */
wefti_link wefti_caller_take(wefti_caller *caller);

#endif
