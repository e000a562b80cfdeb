/* bootstrap/tree/acceptor.c: the side that accepts connections. */
#include "bootstrap/tree/acceptor.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/tree/handshake.h"
#include "os/os.h"
#include "os/socket.h"

/* How long a stranger may take to prove itself; and how long at least, when others wait for its place. */
#define STRANGER_NS UINT64_C(3000000000)
#define STRANGER_FULL_NS UINT64_C(5000000)
/* How long no descriptor may be free before that is an error. */
#define SCARCE_NS UINT64_C(500000000)
/* How many connections are accepted before those that stand, and the time, are looked at again. */
#define ACCEPTED_MAX 64

void wefti_acceptor_init(wefti_acceptor *acceptor, const wefti_tree_site *site, const wefti_tree_listeners *listeners,
                         int pe)
{
    memset(acceptor, 0, sizeof *acceptor);
    acceptor->site = site;
    acceptor->listeners = listeners;
    acceptor->pe = pe;
}

/* Forget a stranger, whose link has been closed or taken over. */
static void forget(wefti_acceptor *acceptor, size_t at)
{
    acceptor->counts[acceptor->strangers[at]->door]--;
    wefti_free(acceptor->strangers[at]);
    acceptor->count--;
    memmove(&acceptor->strangers[at], &acceptor->strangers[at + 1],
            (acceptor->count - at) * sizeof(acceptor->strangers[0]));
}

static void drop(wefti_acceptor *acceptor, size_t at)
{
    wefti_link_fini(&acceptor->strangers[at]->link);
    forget(acceptor, at);
}

void wefti_acceptor_fini(wefti_acceptor *acceptor)
{
    while (acceptor->count > 0) {
        drop(acceptor, acceptor->count - 1);
    }
}

/* ---- one stranger ---- */

static void refuse(wefti_acceptor *acceptor, wefti_stranger *stranger)
{
    (void)wefti_link_send(&stranger->link, WEFTI_FRAME_REFUSAL, 0, NULL, 0);
    if (!acceptor->has_warned) {
        acceptor->has_warned = 1;
        wefti_log(WEFTI_LOG_WARN, "PE %d turned away a connection that does not know the secret of its world",
                  acceptor->pe);
    }
}

static int seeks_another(const wefti_acceptor *acceptor, const wefti_tree_hello *hello)
{
    return acceptor->world != NULL && strncmp(hello->name, acceptor->world, sizeof hello->name) != 0;
}

/* Check a hello, and answer it if it is genuine. Returns 0 when the stranger is to be dropped. */
static int verify(wefti_acceptor *acceptor, wefti_stranger *stranger)
{
    wefti_tree_introduction said;
    wefti_tree_answer answer = {.pe = acceptor->pe};
    if (stranger->link.in.type != WEFTI_FRAME_HELLO || stranger->link.in.bytes != sizeof said) {
        return 0;
    }
    memcpy(&said, stranger->link.body, sizeof said);
    if (said.hello.magic != WEFTI_TREE_MAGIC || said.hello.protocol != WEFTI_TREE_PROTOCOL) {
        return 0;
    }
    wefti_tree_handshake handshake = {.accepting_pe = acceptor->pe, .hello = said.hello};
    memcpy(handshake.connecting_nonce, said.nonce, sizeof said.nonce);
    memcpy(handshake.accepting_nonce, stranger->nonce, sizeof stranger->nonce);
    if (!wefti_handshake_verify(acceptor->site, &handshake, WEFTI_HANDSHAKE_CONNECTED, said.proof)) {
        refuse(acceptor, stranger);
        return 0;
    }
    if (wefti_os_socket_is_over(stranger->link.descriptor)) {
        return 0; /* it has waited too long, and comes again */
    }
    if (seeks_another(acceptor, &said.hello)) {
        (void)wefti_link_send(&stranger->link, WEFTI_FRAME_ELSEWHERE, 0, NULL, 0);
        return 0;
    }
    if (wefti_handshake_seal(acceptor->site, &handshake, WEFTI_HANDSHAKE_ACCEPTED, &stranger->link) != WEFT_OK) {
        return 0; /* no memory now: it comes again */
    }
    wefti_handshake_prove(acceptor->site, &handshake, WEFTI_HANDSHAKE_ACCEPTED, answer.proof);
    stranger->is_proven = 1;
    stranger->hello = said.hello;
    stranger->hello.name[sizeof said.hello.name - 1] = '\0';
    stranger->link.pe = said.hello.pe;
    int is_sent = wefti_link_send(&stranger->link, WEFTI_FRAME_ANSWER, 0, &answer, sizeof answer);
    stranger->link.seals_in = stranger->link.seals_out = stranger->link.seal != NULL;
    return is_sent;
}

/* Read what a stranger sent. Returns 0 when it is to be dropped. */
static int receive(wefti_acceptor *acceptor, wefti_stranger *stranger)
{
    switch (wefti_link_receive(&stranger->link)) {
    case WEFTI_LINK_IDLE:
        return 1;
    case WEFTI_LINK_FRAME:
        return verify(acceptor, stranger);
    default:
        return 0;
    }
}

/* ---- accepting ---- */

static weft_status challenge(wefti_stranger *stranger)
{
    wefti_tree_challenge body;
    WEFT_TRY(wefti_os_random(stranger->nonce, sizeof stranger->nonce));
    memcpy(body.nonce, stranger->nonce, sizeof body.nonce);
    (void)wefti_link_send(&stranger->link, WEFTI_FRAME_CHALLENGE, 0, &body, sizeof body);
    return WEFT_OK;
}

/* Add a new connection to the strangers, and read at once what it may have sent already. */
static weft_status greet(wefti_acceptor *acceptor, int door, int descriptor)
{
    wefti_stranger *stranger = wefti_alloc_zeroed(1, sizeof *stranger);
    wefti_link link;
    wefti_link_init(&link, descriptor, -1);
    if (stranger == NULL) {
        wefti_link_fini(&link);
        return wefti_error(WEFT_ERR_MEMORY, "no memory for a connection");
    }
    stranger->link = link;
    stranger->since_ns = wefti_os_now_ns();
    stranger->door = door;
    acceptor->counts[door]++;
    acceptor->strangers[acceptor->count++] = stranger;
    weft_status status = WEFT_OK;
    wefti_tree_trust trust = acceptor->site->net->admit(acceptor->site, descriptor);
    int welcome = trust == WEFTI_TREE_TRUSTED;
    if (trust == WEFTI_TREE_UNKNOWN) { /* it may find another way, or has an error to tell of this one */
        (void)wefti_link_send(&stranger->link, WEFTI_FRAME_REFUSAL, 0, NULL, 0);
    }
    if (welcome) {
        status = challenge(stranger);
        welcome = status == WEFT_OK && receive(acceptor, stranger);
    }
    if (!welcome) {
        drop(acceptor, acceptor->count - 1);
    }
    return status;
}

/* Drop a stranger that has been connected for a while, to make room for another. It is chosen at random: a crowd that
 * connects faster than honest PEs can answer drops some of those too, who try again, but never the same ones each time.
 * `door`: the listener, -1: any. Returns 0 when none has been connected for long enough. */
static int push_out(wefti_acceptor *acceptor, int door)
{
    uint16_t first = 0;
    uint64_t now_ns = wefti_os_now_ns();
    (void)!wefti_os_random(&first, sizeof first); /* without random bytes it is the first */
    for (size_t i = 0; i < acceptor->count; i++) {
        size_t at = (first + i) % acceptor->count;
        const wefti_stranger *stranger = acceptor->strangers[at];
        if ((door < 0 || stranger->door == door) && !stranger->is_proven &&
            now_ns >= stranger->since_ns + STRANGER_FULL_NS) {
            drop(acceptor, at);
            return 1;
        }
    }
    return 0;
}

/* Wait for a free descriptor when no stranger can be dropped yet. Parked PEs close theirs soon; it is an error only
 * when none has become free for SCARCE_NS. */
static weft_status await_descriptor(wefti_acceptor *acceptor, int error)
{
    uint64_t now_ns = wefti_os_now_ns();
    acceptor->scarce_since_ns = acceptor->scarce_since_ns == 0 ? now_ns : acceptor->scarce_since_ns;
    acceptor->scarce_until_ns = now_ns + STRANGER_FULL_NS;
    return now_ns - acceptor->scarce_since_ns < SCARCE_NS
               ? WEFT_OK
               : wefti_error(WEFT_ERR_SYSTEM, "cannot accept a connection: %s; allow more open files (ulimit -n)",
                             strerror(error));
}

/* Accept one connection: -1 when none waits or the system refuses for reasons of the network. */
static weft_status accept_one(wefti_acceptor *acceptor, int door, int *descriptor)
{
    int listener = acceptor->listeners->descriptors[door];
    int error;
    int lacks;
    do {
        *descriptor = wefti_fault("accept4", EMFILE) ? -1 : wefti_os_socket_accept(listener);
        error = *descriptor < 0 ? errno : 0;
        lacks = error == EMFILE || error == ENFILE || error == ENOMEM;
    } while (lacks && push_out(acceptor, -1));
    if (*descriptor >= 0) {
        acceptor->scarce_since_ns = 0;
    }
    return lacks ? await_descriptor(acceptor, error) : WEFT_OK;
}

static int is_full(const wefti_acceptor *acceptor, int door)
{
    return acceptor->counts[door] == WEFTI_ACCEPTOR_STRANGERS_MAX;
}

static weft_status accept_some(wefti_acceptor *acceptor, int door)
{
    for (int i = 0; i < ACCEPTED_MAX && (!is_full(acceptor, door) || push_out(acceptor, door)); i++) {
        int descriptor;
        WEFT_TRY(accept_one(acceptor, door, &descriptor));
        if (descriptor < 0) {
            return WEFT_OK;
        }
        WEFT_TRY(greet(acceptor, door, descriptor));
    }
    return WEFT_OK;
}

/* When the oldest stranger of a listener may be dropped to make room for another; strangers are listed in the order of
 * their arrival. */
static uint64_t full_until_ns(const wefti_acceptor *acceptor, int door)
{
    for (size_t i = 0; i < acceptor->count; i++) {
        if (acceptor->strangers[i]->door == door && !acceptor->strangers[i]->is_proven) {
            return acceptor->strangers[i]->since_ns + STRANGER_FULL_NS;
        }
    }
    return 0;
}

uint64_t wefti_acceptor_watch(wefti_acceptor *acceptor, wefti_polls *polls)
{
    uint64_t now_ns = wefti_os_now_ns();
    uint64_t due_ns = acceptor->count > 0 ? acceptor->strangers[0]->since_ns + STRANGER_NS : UINT64_MAX;
    for (int door = 0; door < acceptor->listeners->count; door++) {
        uint64_t open_ns = is_full(acceptor, door) ? full_until_ns(acceptor, door) : acceptor->scarce_until_ns;
        int listener = now_ns >= open_ns ? acceptor->listeners->descriptors[door] : -1;
        acceptor->places[door] = wefti_polls_watch(polls, listener, POLLIN);
        due_ns = listener < 0 && open_ns < due_ns ? open_ns : due_ns;
    }
    for (size_t i = 0; i < acceptor->count; i++) {
        wefti_link_watch(&acceptor->strangers[i]->link, polls);
    }
    return due_ns;
}

weft_status wefti_acceptor_step(wefti_acceptor *acceptor, const wefti_polls *polls)
{
    uint64_t now_ns = wefti_os_now_ns();
    for (size_t i = acceptor->count; i-- > 0;) {
        wefti_stranger *stranger = acceptor->strangers[i];
        int stays = stranger->is_proven || !wefti_link_ready(&stranger->link, polls) || receive(acceptor, stranger);
        if (!stays || (!stranger->is_proven && now_ns >= stranger->since_ns + STRANGER_NS)) {
            drop(acceptor, i);
        }
    }
    for (int door = 0; door < acceptor->listeners->count; door++) {
        if (wefti_polls_seen(polls, acceptor->places[door]) != 0) {
            WEFT_TRY(accept_some(acceptor, door));
        }
    }
    return WEFT_OK;
}

int wefti_acceptor_take(wefti_acceptor *acceptor, wefti_link *link, wefti_tree_hello *hello)
{
    for (size_t i = 0; i < acceptor->count; i++) {
        if (acceptor->strangers[i]->is_proven) {
            *link = acceptor->strangers[i]->link;
            *hello = acceptor->strangers[i]->hello;
            forget(acceptor, i);
            return 1;
        }
    }
    return 0;
}
