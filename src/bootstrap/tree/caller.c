/* bootstrap/tree/caller.c: the side that connects. */
#include "bootstrap/tree/caller.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/tree/handshake.h"
#include "os/os.h"
#include "os/socket.h"

/* The pause between rounds of attempts is a part of the time tried so far, so that a PE that listens soon is found
 * soon. Its minimum grows with the PEs that share a processor: together they leave most of it to PE 0, which may be
 * about to listen. An attempt takes about 10 us. */
#define REST_SHARE 32
#define REST_EACH_NS UINT64_C(10000) /* of the minimum, for each PE, divided by the processors */
#define REST_MIN_NS UINT64_C(50000)
#define REST_MAX_NS UINT64_C(2000000)
/* A search for PE 0 takes about a millisecond: the time before the first, the longest pause between two, and what each
 * PE of the world adds to both. */
#define SEARCH_FIRST_NS UINT64_C(20000000)
#define SEARCH_LONGEST_NS UINT64_C(250000000)
#define SEARCH_EACH_NS UINT64_C(2000000)
/* How long an address may be silent at first: where there are other addresses, or another process may listen at this
 * one next time; and where neither is so. */
#define PATIENCE_NS UINT64_C(300000000)
#define PATIENCE_ONLY_NS UINT64_C(3000000000)
/* While another address is silent, those of this host are tried at these intervals, since PE 0 may begin to listen
 * there: the shortest, what each PE of the world adds, and the longest. */
#define NEAR_NS UINT64_C(10000000)
#define NEAR_EACH_NS UINT64_C(500000)
#define NEAR_LONGEST_NS UINT64_C(500000000)
/* How long the system may take to connect, at first and at most: where the queue of the other end is full, connecting
 * anew helps. */
#define CONNECT_NS UINT64_C(200000000)
#define CONNECT_MAX_NS UINT64_C(3000000000)
/* How long all addresses must refuse before nobody is believed to listen there. */
#define REFUSED_NS UINT64_C(500000000)
/* How long listeners must refuse this PE before that counts. It is an error where PE 0 listened at its addresses before
 * anybody else knew them; else only a warning, as another process may have taken an address before PE 0. */
#define TURNED_AWAY_NS UINT64_C(500000000)
#define TURNED_AWAY_ROUNDS 128u /* and for so many rounds: PE 0 may listen at a unix socket not tried yet */
/* How long the other end may be silent after it got the proof it asked for: before addresses of this host are tried
 * beside it, and before it is given up. PE 0 answers at once. */
#define PROOF_NEAR_NS UINT64_C(300000000)
#define PROOF_NS UINT64_C(3000000000)

/* The addresses of this round. Returns 0 when there are none. */
static size_t resolve(wefti_caller *caller)
{
    unsigned round = caller->round & ~WEFTI_TREE_SEARCHES;
    uint64_t now_ns = wefti_os_now_ns();
    if (now_ns >= caller->search_ns) {
        uint64_t longest_ns = SEARCH_LONGEST_NS + SEARCH_EACH_NS * (unsigned)caller->hello->pes;
        caller->search_pause_ns = 2 * caller->search_pause_ns < longest_ns ? 2 * caller->search_pause_ns : longest_ns;
        caller->search_ns = now_ns + caller->search_pause_ns;
        round |= WEFTI_TREE_SEARCHES;
    }
    caller->at = 0;
    caller->address_count = caller->site->net->resolve(caller->site, caller->contact, round, caller->addresses);
    return caller->address_count;
}

/* Whether an address is of this host only, where connecting takes no time. */
static int is_near(const wefti_tree_address *address)
{
    return ((const struct sockaddr *)(const void *)address->sockaddr)->sa_family == AF_UNIX;
}

static int has_others(const wefti_caller *caller)
{
    return caller->address_count > 1 || caller->site->net->is_shared;
}

weft_status wefti_caller_init(wefti_caller *caller, wefti_tree_site *site, wefti_tree_hello *hello, int pe,
                              const wefti_tree_contact *contact)
{
    memset(caller, 0, sizeof *caller);
    caller->site = site;
    caller->hello = hello;
    caller->contact = contact;
    caller->pe = pe;
    caller->begun_ns = wefti_os_now_ns();
    caller->search_pause_ns = SEARCH_FIRST_NS + (unsigned)hello->pes * SEARCH_EACH_NS / 4;
    caller->search_ns = caller->begun_ns + caller->search_pause_ns;
    wefti_link_init(&caller->link, -1, pe);
    wefti_link_init(&caller->near, -1, pe);
    if (resolve(caller) == 0) {
        return wefti_error(WEFT_ERR_MISMATCH, "the address of PE %d cannot be read; give all PEs the same id", pe);
    }
    caller->rest_min_ns = REST_EACH_NS * (unsigned)hello->pes / wefti_os_cores_query().count;
    caller->connect_ns = CONNECT_NS;
    caller->patience_ns = has_others(caller) ? PATIENCE_NS : PATIENCE_ONLY_NS;
    return WEFT_OK;
}

void wefti_caller_fini(wefti_caller *caller)
{
    wefti_link_fini(&caller->link);
    wefti_link_fini(&caller->near);
}

int wefti_caller_is_done(const wefti_caller *caller)
{
    return caller->stage == WEFTI_CALLER_DONE;
}

int wefti_caller_is_known(const wefti_caller *caller)
{
    return caller->stage >= WEFTI_CALLER_PROVES;
}

wefti_link wefti_caller_take(wefti_caller *caller)
{
    wefti_link link = caller->link;
    wefti_link_init(&caller->link, -1, caller->pe);
    return link;
}

/* ---- attempts ---- */

static weft_status name_gone(const wefti_caller *caller)
{
    char address[128];
    caller->site->net->print(&caller->addresses[caller->at], address, sizeof address);
    return wefti_error(WEFT_ERR_PEER,
                       "PE %d is gone, or has given up: nobody listens at %s any more; see its own output", caller->pe,
                       address);
}

static uint64_t rest_ns(const wefti_caller *caller, uint64_t now_ns)
{
    uint64_t share_ns = (now_ns - caller->begun_ns) / REST_SHARE;
    uint64_t rest_ns = share_ns < REST_MIN_NS ? REST_MIN_NS : share_ns > REST_MAX_NS ? REST_MAX_NS : share_ns;
    return rest_ns < caller->rest_min_ns ? caller->rest_min_ns : rest_ns;
}

#define TURNED_AWAY                                                                                                    \
    "PE %d turned this PE away because their secrets differ, or there is none; give all PEs the same id, job or "      \
    "WEFT_SECRET (without one only processes of one user on one host meet, unless WEFT_INSECURE=1 is set)"

weft_status wefti_caller_judge(const wefti_caller *caller)
{
    return caller->strangers != 0 ? wefti_error(WEFT_ERR_AUTHENTICATION, TURNED_AWAY, caller->pe) : WEFT_OK;
}

/* Whether all listeners that can be reached have refused this PE for TURNED_AWAY_NS. */
static int is_turned_away(const wefti_caller *caller)
{
    unsigned all = (1u << caller->address_count) - 1;
    return caller->strangers != 0 && (caller->strangers | caller->refused) == all &&
           wefti_os_now_ns() - caller->turned_away_since_ns > TURNED_AWAY_NS && caller->round >= TURNED_AWAY_ROUNDS;
}

static void warn_of_strangers(wefti_caller *caller)
{
    if (!caller->has_warned) {
        caller->has_warned = 1;
        wefti_log(WEFTI_LOG_WARN, "this PE tries again until its deadline, for " TURNED_AWAY, caller->pe);
    }
}

/* Give this attempt up and try the next address: at once, or, after the last one, after a pause. */
static weft_status retry(wefti_caller *caller)
{
    uint64_t now_ns = wefti_os_now_ns();
    unsigned all = (1u << caller->address_count) - 1;
    wefti_link_fini(&caller->link);
    caller->stage = WEFTI_CALLER_RESTS;
    if (caller->site->net->refusal_is_final && is_turned_away(caller)) {
        return wefti_caller_judge(caller);
    }
    if (caller->site->net->refusal_is_final && caller->refused == all &&
        now_ns - caller->refused_since_ns > REFUSED_NS) {
        WEFT_TRY(wefti_caller_judge(caller));
        return name_gone(caller);
    }
    if (is_turned_away(caller)) {
        warn_of_strangers(caller);
    }
    caller->due_ns = now_ns;
    if (++caller->at == caller->address_count) {
        caller->round++;
        caller->talked = 0;
        caller->due_ns = now_ns + rest_ns(caller, now_ns);
        (void)resolve(caller); /* as many as before */
    }
    return WEFT_OK;
}

/* The listener at this address refused this PE, or did not prove itself. */
static weft_status turn_away(wefti_caller *caller)
{
    if (caller->strangers == 0) {
        caller->turned_away_since_ns = wefti_os_now_ns();
    }
    caller->strangers |= 1u << caller->at;
    return retry(caller);
}

static weft_status note_failure(wefti_caller *caller, int error)
{
    unsigned bit = 1u << caller->at;
    if (error == ECONNREFUSED) {
        unsigned all = (1u << caller->address_count) - 1;
        if (caller->refused != all && (caller->refused | bit) == all) {
            caller->refused_since_ns = wefti_os_now_ns();
        }
        caller->refused |= bit;
    } else {
        caller->refused &= ~bit;
    }
    return retry(caller);
}

/* Listen at an address that every PE can reach that can reach the other end of this connection. */
static weft_status listen_anew(wefti_caller *caller)
{
    wefti_tree_listeners *own = caller->listeners;
    if (own->count > 0) {
        wefti_os_socket_stop(own->descriptors[0]);
        own->count = 0;
    }
    WEFT_TRY(caller->site->net->listen(caller->site, caller->link.descriptor, &own->descriptors[0],
                                       &caller->hello->listens_at));
    own->count = 1;
    return WEFT_OK;
}

/* Send the hello, once the nonces are known. From here on the other end may count this PE as connected, which must not
 * connect twice; it does not count it if the connection is closed by the time it reads the hello (acceptor.c). */
static weft_status introduce(wefti_caller *caller)
{
    wefti_tree_introduction body = {0};
    wefti_tree_handshake handshake = {.accepting_pe = caller->pe};
    if (caller->listeners != NULL) {
        WEFT_TRY(listen_anew(caller));
    }
    handshake.hello = body.hello = *caller->hello;
    memcpy(body.nonce, caller->nonce, sizeof body.nonce);
    memcpy(handshake.connecting_nonce, caller->nonce, sizeof caller->nonce);
    memcpy(handshake.accepting_nonce, caller->their_nonce, sizeof caller->their_nonce);
    wefti_handshake_prove(caller->site, &handshake, WEFTI_HANDSHAKE_CONNECTED, body.proof);
    caller->stage = WEFTI_CALLER_PROVES;
    caller->due_ns = has_others(caller) ? wefti_os_now_ns() + PROOF_NS : UINT64_MAX;
    caller->switch_ns = wefti_os_now_ns() + PROOF_NEAR_NS;
    caller->near_ns = caller->switch_ns;
    if (!wefti_link_send(&caller->link, WEFTI_FRAME_HELLO, 0, &body, sizeof body)) {
        return retry(caller);
    }
    WEFT_TRY(wefti_handshake_seal(caller->site, &handshake, WEFTI_HANDSHAKE_CONNECTED, &caller->link));
    caller->link.seals_out = caller->link.seal != NULL;
    return WEFT_OK;
}

static void put_off_near(wefti_caller *caller)
{
    uint64_t pause_ns = NEAR_NS + NEAR_EACH_NS * (unsigned)caller->hello->pes;
    caller->near_ns = wefti_os_now_ns() + (pause_ns < NEAR_LONGEST_NS ? pause_ns : NEAR_LONGEST_NS);
}

/* Wait for the other end's challenge; for a limited time where there are other addresses, or another process may listen
 * at this one next time. The limit doubles each time, as PE 0 may be slow. */
static weft_status listen_for(wefti_caller *caller)
{
    caller->due_ns = has_others(caller) ? wefti_os_now_ns() + caller->patience_ns : UINT64_MAX;
    put_off_near(caller);
    caller->patience_ns *= 2;
    caller->talked |= 1u << caller->at;
    caller->stage = WEFTI_CALLER_LISTENS;
    return wefti_os_random(caller->nonce, sizeof caller->nonce);
}

/* The connection stands. */
static weft_status begin_talk(wefti_caller *caller)
{
    caller->refused &= ~(1u << caller->at);
    wefti_tree_trust trust = caller->site->net->admit(caller->site, caller->link.descriptor);
    if (trust == WEFTI_TREE_FOREIGN) {
        return retry(caller);
    }
    caller->is_trusted = trust == WEFTI_TREE_TRUSTED;
    return listen_for(caller);
}

static int is_near_link(const wefti_caller *caller, size_t at)
{
    return wefti_link_is_open(&caller->near) &&
           memcmp(&caller->near_address, &caller->addresses[at], sizeof caller->near_address) == 0;
}

static weft_status dial(wefti_caller *caller)
{
    const wefti_tree_address *address = &caller->addresses[caller->at];
    const struct sockaddr *sockaddr = (const struct sockaddr *)(const void *)address->sockaddr;
    if (is_near_link(caller, caller->at)) {
        return retry(caller);
    }
    int descriptor = wefti_fault("socket", EMFILE) ? -1 : wefti_os_socket_open(sockaddr->sa_family);
    if (descriptor < 0 && errno == EAFNOSUPPORT) {
        return note_failure(caller, errno);
    }
    if (descriptor < 0 && wefti_link_is_open(&caller->near)) {
        wefti_link_fini(&caller->near); /* which frees one */
        return retry(caller);
    }
    if (descriptor < 0) {
        return wefti_error(WEFT_ERR_SYSTEM, "cannot make a socket: %s; allow more open files (ulimit -n)",
                           strerror(errno));
    }
    wefti_link_init(&caller->link, descriptor, caller->pe);
    int failed =
        wefti_fault("connect", ECONNREFUSED) || wefti_os_socket_connect(descriptor, sockaddr, address->bytes) != 0;
    if (!failed) {
        return begin_talk(caller);
    }
    if (errno != EINPROGRESS && errno != EINTR) {
        return note_failure(caller, errno);
    }
    caller->stage = WEFTI_CALLER_CONNECTS;
    put_off_near(caller);
    caller->due_ns = wefti_os_now_ns() + caller->connect_ns;
    caller->connect_ns = caller->connect_ns < CONNECT_MAX_NS / 2 ? 2 * caller->connect_ns : CONNECT_MAX_NS;
    return WEFT_OK;
}

static weft_status finish_dialling(wefti_caller *caller)
{
    int error = wefti_os_socket_outcome(caller->link.descriptor);
    return error == 0 ? begin_talk(caller) : note_failure(caller, error);
}

/* ---- the talk ---- */

static int answer_is_genuine(const wefti_caller *caller)
{
    wefti_tree_answer answer;
    wefti_tree_handshake handshake = {.accepting_pe = caller->pe, .hello = *caller->hello};
    if (caller->link.in.bytes != sizeof answer) {
        return 0;
    }
    memcpy(&answer, caller->link.body, sizeof answer);
    memcpy(handshake.connecting_nonce, caller->nonce, sizeof caller->nonce);
    memcpy(handshake.accepting_nonce, caller->their_nonce, sizeof caller->their_nonce);
    return answer.pe == caller->pe &&
           wefti_handshake_verify(caller->site, &handshake, WEFTI_HANDSHAKE_ACCEPTED, answer.proof);
}

static weft_status take_frame(wefti_caller *caller)
{
    const wefti_link *link = &caller->link;
    if (link->in.type == WEFTI_FRAME_CHALLENGE && caller->stage == WEFTI_CALLER_LISTENS &&
        link->in.bytes == sizeof caller->their_nonce) {
        if (!caller->is_trusted) {
            return turn_away(caller);
        }
        memcpy(caller->their_nonce, link->body, sizeof caller->their_nonce);
        return introduce(caller);
    }
    if (link->in.type == WEFTI_FRAME_ANSWER && caller->stage == WEFTI_CALLER_PROVES && answer_is_genuine(caller)) {
        caller->stage = WEFTI_CALLER_DONE;
        caller->link.seals_in = caller->link.seal != NULL;
        return WEFT_OK;
    }
    if (link->in.type == WEFTI_FRAME_ELSEWHERE) {
        return note_failure(caller, ECONNREFUSED); /* nobody of this world listens, as far as is known */
    }
    if (link->in.type == WEFTI_FRAME_REFUSAL) {
        return turn_away(caller);
    }
    return retry(caller);
}

static int is_talking(const wefti_caller *caller)
{
    return caller->stage == WEFTI_CALLER_LISTENS || caller->stage == WEFTI_CALLER_PROVES;
}

static weft_status talk(wefti_caller *caller)
{
    while (is_talking(caller)) {
        switch (wefti_link_receive(&caller->link)) {
        case WEFTI_LINK_IDLE:
            return WEFT_OK;
        case WEFTI_LINK_FRAME:
            WEFT_TRY(take_frame(caller));
            break;
        default:
            return retry(caller);
        }
    }
    return WEFT_OK;
}

/* ---- addresses of this host beside a silent one ---- */

/* The other end has been silent for too long. One of this host is kept open, since it may be PE 0, about to send. */
static weft_status leave_silent(wefti_caller *caller)
{
    if (caller->stage == WEFTI_CALLER_LISTENS && is_near(&caller->addresses[caller->at])) {
        wefti_link_fini(&caller->near);
        caller->near = caller->link;
        caller->near_address = caller->addresses[caller->at];
        caller->near_at = caller->at;
        wefti_link_init(&caller->link, -1, caller->pe);
    }
    return retry(caller);
}

/* Go on with a connection of this host instead. */
static void switch_to(wefti_caller *caller, size_t at, const wefti_link *link)
{
    wefti_link_fini(&caller->link);
    caller->link = *link;
    caller->at = at;
    caller->is_trusted = 1;
    caller->refused &= ~(1u << at);
}

static weft_status receive_near(wefti_caller *caller)
{
    const wefti_link link = caller->near;
    switch_to(caller, caller->near_at, &link);
    wefti_link_init(&caller->near, -1, caller->pe);
    WEFT_TRY(listen_for(caller));
    return talk(caller);
}

/* Connect to an address of this host. Returns the descriptor, or -1, also if whoever listens there is not trusted. */
static int reach_near(const wefti_caller *caller, const wefti_tree_address *address)
{
    const struct sockaddr *sockaddr = (const struct sockaddr *)(const void *)address->sockaddr;
    int descriptor = wefti_os_socket_open(sockaddr->sa_family);
    if (descriptor < 0) {
        return -1;
    }
    if (wefti_os_socket_connect(descriptor, sockaddr, address->bytes) != 0 ||
        caller->site->net->admit(caller->site, descriptor) != WEFTI_TREE_TRUSTED) {
        wefti_os_socket_close(descriptor);
        return -1;
    }
    return descriptor;
}

/* Try the addresses of this host at which nobody was found to listen in this round. */
static weft_status try_near(wefti_caller *caller)
{
    size_t silent = caller->at;
    caller->round++;
    (void)resolve(caller); /* only names of this host may have changed */
    caller->at = silent;
    put_off_near(caller);
    for (size_t at = 0; at < caller->address_count; at++) {
        int is_open = !(caller->talked & 1u << at) && is_near(&caller->addresses[at]) && !is_near_link(caller, at);
        int descriptor = is_open ? reach_near(caller, &caller->addresses[at]) : -1;
        if (descriptor >= 0) {
            wefti_link link;
            wefti_link_init(&link, descriptor, caller->pe);
            switch_to(caller, at, &link);
            return listen_for(caller);
        }
    }
    return WEFT_OK;
}

/* ---- the owner's loop ---- */

/* Whether a connection of this host may replace this one: after the hello not at once, since the other end may be PE 0
 * and count this PE as connected. */
static int may_switch(const wefti_caller *caller)
{
    return caller->stage < WEFTI_CALLER_PROVES ||
           (caller->stage == WEFTI_CALLER_PROVES && wefti_os_now_ns() >= caller->switch_ns);
}

static int tries_near(const wefti_caller *caller)
{
    return caller->stage != WEFTI_CALLER_RESTS && caller->stage != WEFTI_CALLER_DONE;
}

uint64_t wefti_caller_watch(wefti_caller *caller, wefti_polls *polls)
{
    if (caller->stage == WEFTI_CALLER_CONNECTS) {
        caller->link.place = wefti_polls_watch(polls, caller->link.descriptor, POLLOUT);
    } else {
        wefti_link_watch(&caller->link, polls);
    }
    caller->watches_near = may_switch(caller);
    if (caller->watches_near) {
        wefti_link_watch(&caller->near, polls);
    }
    if (wefti_caller_is_done(caller)) {
        return UINT64_MAX;
    }
    return tries_near(caller) && caller->near_ns < caller->due_ns ? caller->near_ns : caller->due_ns;
}

weft_status wefti_caller_step(wefti_caller *caller, const wefti_polls *polls)
{
    int is_due = !wefti_caller_is_done(caller) && wefti_os_now_ns() >= caller->due_ns;
    if (caller->stage == WEFTI_CALLER_CONNECTS && wefti_polls_seen(polls, caller->link.place) != 0) {
        return finish_dialling(caller);
    }
    if (is_talking(caller) && wefti_link_ready(&caller->link, polls)) {
        return talk(caller);
    }
    if (caller->watches_near && wefti_link_is_open(&caller->near) && wefti_link_ready(&caller->near, polls)) {
        return receive_near(caller);
    }
    if (is_due) {
        return caller->stage == WEFTI_CALLER_RESTS ? dial(caller) : leave_silent(caller);
    }
    return tries_near(caller) && wefti_os_now_ns() >= caller->near_ns ? try_near(caller) : WEFT_OK;
}
