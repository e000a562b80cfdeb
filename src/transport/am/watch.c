/* Who is connected to whom, and what the ends of connections tell. The watch's thread alone uses all of it but `fates`,
 * which others read. */
#include "transport/am/watch.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/tcp/interfaces.h"
#include "bootstrap/tcp/listen.h"
#include "os/os.h"
#include "os/socket.h"
#include "transport/am/watch_link.h"

#define HELLO_NS UINT64_C(5000000000) /* for who has connected to say who it is */
#define LEAVING_NS UINT64_C(200000000)
#define LEAVING_LOOK_NS UINT64_C(100000) /* at first; then twice as long each time, up to */
#define LEAVING_LOOK_MAX_NS UINT64_C(2000000)
#define STRANGERS_MAX 16 /* connections of which nobody knows whose they are */
#define LINKS_SPARE 64
#define ACCEPTS_AT_ONCE 64
#define MESSAGES_AT_ONCE 64
#define TRIES_MAX 3
#define AGAIN_NS UINT64_C(10000000) /* until it is asked again who had no room for a connection */

enum { LISTENER_HOST, LISTENER_LOCAL, LISTENERS };
enum { ITEM_WAKE = LISTENERS, ITEM_LINKS }; /* of what is polled: the listeners come first */

struct wefti_watch {
    wefti_watch_setup setup;
    int pe;
    int pes;
    wefti_watch_contact *contacts; /* [pes] */
    unsigned char *fates; /* [pes]: wefti_transport_fate; atomic */
    unsigned char *tries; /* [pes]: how often it could not be connected to; TRIES_MAX: it is left alone */
    unsigned char *is_reached; /* [pes]: one of this node has connected to one of the node that this leader had first */
    uint32_t *leaders; /* [nodes]: the lowest PE of each node, in ascending order */
    int nodes;
    int node; /* this PE's */
    uint32_t *told; /* [2 * pes]: what this PE tells, in the order in which it became known: PEs that have left or are
                       gone, and, from `pes` on, nodes that it has connected to, by their first leaders */
    size_t told_count;
    wefti_watch_link *links; /* [links_max] */
    struct pollfd *items; /* [ITEM_LINKS + links_max] */
    size_t links_max;
    int listeners[LISTENERS];
    int bell; /* that ends the thread's sleep */
    wefti_os_thread *thread;
    int must_seek; /* the connections may no longer be those that this PE should have */
    uint64_t again_ns; /* when it seeks again whatever happens; 0: it need not */
    int is_closing; /* atomic */
    wefti_os_monitor *lock; /* of what follows */
    int is_settled; /* every connection that this PE has begun at first counts, or has come to nothing */
};

wefti_transport_fate wefti_watch_fate(const wefti_watch *watch, int pe)
{
    return (wefti_transport_fate)__atomic_load_n(&watch->fates[pe], __ATOMIC_ACQUIRE);
}

/* ---- what is known of PEs ---- */

static int is_there(const wefti_watch *watch, int pe)
{
    return wefti_watch_fate(watch, pe) == WEFTI_FATE_THERE;
}

static int is_of_node(const wefti_watch *watch, int pe, uint32_t leader)
{
    return watch->contacts[pe].leader == leader;
}

/* Who of a node has refused is tried once more: that it does counts from now on. */
static void try_again(wefti_watch *watch, uint32_t leader)
{
    for (int pe = 0; pe < watch->pes; pe++) {
        if (is_of_node(watch, pe, leader) && is_there(watch, pe) && watch->tries[pe] == TRIES_MAX) {
            watch->tries[pe] = 0;
            watch->must_seek = 1;
        }
    }
}

static void note_reached(wefti_watch *watch, uint32_t leader)
{
    if (!watch->is_reached[leader]) {
        watch->is_reached[leader] = 1;
        try_again(watch, leader);
    }
}

static void set_fate(wefti_watch *watch, int pe, wefti_transport_fate fate)
{
    if (!is_there(watch, pe) || fate == WEFTI_FATE_THERE) {
        return; /* what became known first stays */
    }
    __atomic_store_n(&watch->fates[pe], (unsigned char)fate, __ATOMIC_RELEASE);
    watch->told[watch->told_count++] = (uint32_t)pe;
    watch->must_seek = 1;
    if (fate != WEFTI_FATE_LEFT) {
        const uint32_t leader = watch->contacts[pe].leader;
        if (watch->is_reached[leader] || is_of_node(watch, watch->pe, leader)) {
            try_again(watch, leader);
        }
        wefti_log(WEFTI_LOG_INFO, "PE %d: PE %d is gone: %s", watch->pe, pe,
                  fate == WEFTI_FATE_ENDED ? "its process has ended" : "its host is silent");
    }
    if (pe != watch->pe) {
        watch->setup.lost(watch->setup.context, pe, fate);
    }
}

/* Of a silent host all PEs are unreachable. */
static void set_node_silent(wefti_watch *watch, uint32_t leader)
{
    for (int pe = 0; pe < watch->pes; pe++) {
        if (is_of_node(watch, pe, leader)) {
            set_fate(watch, pe, WEFTI_FATE_SILENT);
        }
    }
}

static int tells_silence(int error)
{
    return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN ||
           error == ENETDOWN;
}

static void set_gone(wefti_watch *watch, int pe, int error, int is_local)
{
    if (tells_silence(error) && !is_local && is_there(watch, pe)) {
        set_node_silent(watch, watch->contacts[pe].leader);
    } else {
        set_fate(watch, pe, WEFTI_FATE_ENDED);
    }
}

/* `pe` could not be connected to, or ended the connection before it said who it is. It is tried again; but it is gone
 * if it refuses, its node could be reached before, from here or by another PE of this node, and that has lost another
 * PE. */
static void note_unreached(wefti_watch *watch, int pe, int error, int is_local)
{
    const uint32_t leader = watch->contacts[pe].leader;
    int has_lost = 0;
    for (int other = 0; other < watch->pes; other++) {
        has_lost |= is_of_node(watch, other, leader) && wefti_watch_fate(watch, other) > WEFTI_FATE_LEFT;
    }
    const int is_refused = error == ECONNREFUSED || tells_silence(error);
    watch->tries[pe] = is_refused ? TRIES_MAX : (unsigned char)(watch->tries[pe] + 1);
    watch->must_seek = 1;
    if (has_lost && (is_local || watch->is_reached[leader]) && is_refused) {
        set_gone(watch, pe, error, is_local);
    }
}

/* ---- who is connected to whom ---- */

static int has_link(const wefti_watch *watch, int pe)
{
    for (size_t i = 0; i < watch->links_max; i++) {
        if (watch->links[i].state != WEFTI_WATCH_FREE && watch->links[i].pe == pe) {
            return 1;
        }
    }
    return 0;
}

static wefti_watch_link *free_link(wefti_watch *watch)
{
    for (size_t i = 0; i < watch->links_max; i++) {
        if (watch->links[i].state == WEFTI_WATCH_FREE) {
            return &watch->links[i];
        }
    }
    return NULL;
}

/* The lowest PE of a node that is there and may be connected to; -1: none. *lives: whether any is there. */
static int leader_now(const wefti_watch *watch, uint32_t leader, int *lives)
{
    *lives = 0;
    for (int pe = 0; pe < watch->pes; pe++) {
        if (is_of_node(watch, pe, leader) && is_there(watch, pe)) {
            *lives = 1;
            if (watch->tries[pe] < TRIES_MAX) {
                return pe;
            }
        }
    }
    return -1;
}

static void dial(wefti_watch *watch, int pe)
{
    const wefti_watch_contact *contact = &watch->contacts[pe];
    const int is_local = contact->leader == watch->contacts[watch->pe].leader;
    wefti_watch_link *link = free_link(watch);
    if (link == NULL || has_link(watch, pe) || (!is_local && contact->host_bytes == 0)) {
        return;
    }
    const int error = wefti_watch_link_dial(link, contact, pe, is_local);
    if (error == EAGAIN) { /* many connect to it at once, and it has not run since */
        watch->again_ns = wefti_os_now_ns() + AGAIN_NS;
    } else if (error != 0) {
        note_unreached(watch, pe, error, is_local);
    }
}

/* To the next node at least `distance` nodes further on that has somebody. */
static void dial_node(wefti_watch *watch, int distance)
{
    for (int i = distance; i < watch->nodes; i++) {
        int lives;
        const int pe = leader_now(watch, watch->leaders[(watch->node + i) % watch->nodes], &lives);
        if (pe >= 0) {
            dial(watch, pe);
        }
        if (lives) {
            return;
        }
    }
}

/* A PE that becomes leader connects to the others of its node: one that has ended meanwhile cannot connect to it. */
static void dial_neighbours(wefti_watch *watch)
{
    const uint32_t leader = watch->contacts[watch->pe].leader;
    for (int pe = 0; pe < watch->pes && leader != (uint32_t)watch->pe; pe++) {
        if (pe != watch->pe && is_of_node(watch, pe, leader) && is_there(watch, pe) && watch->tries[pe] < TRIES_MAX) {
            dial(watch, pe);
        }
    }
}

static void seek(wefti_watch *watch)
{
    while (watch->must_seek) {
        int lives;
        watch->must_seek = 0;
        const int leader = leader_now(watch, watch->leaders[watch->node], &lives);
        if (leader != watch->pe) {
            dial(watch, leader);
            continue;
        }
        dial_neighbours(watch);
        for (int distance = 1; distance < watch->nodes; distance *= 2) {
            dial_node(watch, distance);
        }
    }
}

/* Whether this PE has begun a connection, or is about to, that neither counts nor has come to nothing. */
static int is_connecting(const wefti_watch *watch)
{
    int is_so = watch->must_seek || watch->again_ns != 0;
    for (size_t i = 0; i < watch->links_max && !is_so; i++) {
        const wefti_watch_link *link = &watch->links[i];
        is_so = link->is_dialled && (link->state == WEFTI_WATCH_DIALLING || link->state == WEFTI_WATCH_UNKNOWN);
    }
    return is_so;
}

/* ---- who leaves is replaced ---- */

/* Whether a connection to `pe` counts, here and there. */
static int is_connected(const wefti_watch *watch, int pe)
{
    for (size_t i = 0; i < watch->links_max; i++) {
        const wefti_watch_link *link = &watch->links[i];
        if (link->state == WEFTI_WATCH_KNOWN && link->pe == pe && link->sent >= sizeof link->message) {
            return 1;
        }
    }
    return 0;
}

/* Whether a PE of this node that stays has not yet said that it does without this one, which leaves. */
static int is_needed_by_node(const wefti_watch *watch)
{
    for (size_t i = 0; i < watch->links_max; i++) {
        const wefti_watch_link *link = &watch->links[i];
        if (link->state == WEFTI_WATCH_KNOWN && link->is_local && !link->knows_left && is_there(watch, link->pe)) {
            return 1;
        }
    }
    return 0;
}

/* Whether this PE does without `pe`, which leaves: what ends at that node from now on it sees by another connection, or
 * nobody is there. A PE that leaves, too, is needed by others for as long as those of its node need it. */
static int is_replaced(const wefti_watch *watch, int pe)
{
    int lives;
    if (!is_there(watch, watch->pe)) {
        return !is_needed_by_node(watch);
    }
    const int next = leader_now(watch, watch->contacts[pe].leader, &lives);
    return next < 0 || (next == watch->pe ? !is_connecting(watch) : is_connected(watch, next));
}

/* ---- one connection ---- */

/* What is sent of what a watch knows, and to whom. */
typedef struct report {
    const wefti_watch *watch;
    uint64_t proof;
} report;

/* Message 0 says who this PE is, the others what it knows. */
static wefti_watch_message message_at(const void *context, size_t number)
{
    const report *to = context;
    const wefti_watch *watch = to->watch;
    const uint32_t pes = (uint32_t)watch->pes;
    const uint32_t told = number == 0 ? pes + (uint32_t)watch->pe : watch->told[number - 1];
    return (wefti_watch_message){
        .proof = to->proof,
        .pe = told < pes ? told : told - pes,
        .fate = told < pes ? (uint32_t)wefti_watch_fate(watch, (int)told) : WEFTI_FATE_THERE,
    };
}

/* To a PE that this one connected to at once; to one that has connected, once it has shown the key. */
static int may_send(const wefti_watch_link *link)
{
    return link->state == WEFTI_WATCH_KNOWN || (link->state == WEFTI_WATCH_UNKNOWN && link->is_dialled);
}

/* How many messages may go out by now. Who leaves is told that this PE knows it once it is replaced, and ends the
 * connection then; so an end that comes before is that of this PE. */
static size_t messages_due(const wefti_watch *watch, const wefti_watch_link *link)
{
    size_t count = 1 + watch->told_count;
    if (link->state == WEFTI_WATCH_KNOWN && wefti_watch_fate(watch, link->pe) == WEFTI_FATE_LEFT &&
        !is_replaced(watch, link->pe)) {
        while (watch->told[count - 2] != (uint32_t)link->pe) {
            count--;
        }
        count--;
    }
    return count;
}

static int has_to_send(const wefti_watch *watch, const wefti_watch_link *link)
{
    return may_send(link) && link->sent < messages_due(watch, link) * sizeof(wefti_watch_message);
}

/* To a PE whose host was silent and may be back. It has missed others meanwhile, so what it says is not believed; it is
 * told that it is given up, and connected no longer. */
static int is_given_up(const wefti_watch *watch, const wefti_watch_link *link)
{
    return link->state == WEFTI_WATCH_KNOWN && wefti_watch_fate(watch, link->pe) == WEFTI_FATE_SILENT;
}

static void send_gone(wefti_watch *watch)
{
    for (size_t i = 0; i < watch->links_max; i++) {
        wefti_watch_link *link = &watch->links[i];
        if (has_to_send(watch, link)) {
            const report to = {watch,
                               wefti_watch_proof(watch->setup.world->world, (uint32_t)watch->pe, (uint32_t)link->pe)};
            wefti_watch_link_send(link, message_at, &to, messages_due(watch, link));
        }
        if (is_given_up(watch, link) && !has_to_send(watch, link)) {
            wefti_watch_link_close(link);
        }
    }
}

/* The connection is over. */
static void end_link(wefti_watch *watch, wefti_watch_link *link, int error)
{
    const wefti_watch_link ended = *link;
    wefti_watch_link_close(link);
    watch->must_seek = 1;
    if (ended.state == WEFTI_WATCH_KNOWN) {
        set_gone(watch, ended.pe, error, ended.is_local);
    } else if (ended.is_dialled) {
        note_unreached(watch, ended.pe, error, ended.is_local);
    }
}

/* Who has given this PE's host up is as good as silent for it. */
static void take_fate(wefti_watch *watch, wefti_watch_link *link, int pe, wefti_transport_fate fate)
{
    if (pe == watch->pe && fate == WEFTI_FATE_SILENT && !link->is_local) {
        set_node_silent(watch, watch->contacts[link->pe].leader);
    } else if (pe == watch->pe && fate == WEFTI_FATE_LEFT) {
        link->knows_left = 1;
    } else if (fate == WEFTI_FATE_THERE && link->is_local) {
        note_reached(watch, watch->contacts[pe].leader);
    } else if (pe != watch->pe && !is_given_up(watch, link)) {
        set_fate(watch, pe, fate);
    }
}

/* Returns 0 if the message is not one of this world's, or makes no sense. */
static int take(wefti_watch *watch, wefti_watch_link *link)
{
    const wefti_watch_message *message = &link->message;
    const uint32_t from = link->state == WEFTI_WATCH_KNOWN ? (uint32_t)link->pe : message->pe;
    if (message->pe >= (uint32_t)watch->pes || message->fate >= WEFTI_FATES ||
        message->proof != wefti_watch_proof(watch->setup.world->world, from, (uint32_t)watch->pe)) {
        return 0;
    }
    if (link->state == WEFTI_WATCH_KNOWN) {
        take_fate(watch, link, (int)message->pe, (wefti_transport_fate)message->fate);
        return 1;
    }
    if (message->fate != WEFTI_FATE_THERE || (int)message->pe == watch->pe ||
        (link->is_dialled && (int)message->pe != link->pe)) {
        return 0;
    }
    link->pe = (int)message->pe;
    link->state = WEFTI_WATCH_KNOWN;
    return 1;
}

static void receive(wefti_watch *watch, wefti_watch_link *link)
{
    for (int taken = 0; taken < MESSAGES_AT_ONCE; taken++) { /* the rest after the next wait, which it ends at once */
        int error = 0;
        const int got = wefti_watch_link_receive(link, &error);
        if (got < 0) {
            end_link(watch, link, error);
        } else if (got == 1 && !take(watch, link)) {
            wefti_watch_link_close(link); /* it is no PE of this world */
        }
        if (got != 1 || link->state == WEFTI_WATCH_FREE) {
            return;
        }
    }
}

/* The others of this node are told which nodes it reaches: one that leads it later can tell a PE that has ended from
 * one that a firewall hides. */
static void connected(wefti_watch *watch, wefti_watch_link *link)
{
    const int error = wefti_watch_link_outcome(link, watch->setup.world->silence_ns);
    const uint32_t leader = watch->contacts[link->pe].leader;
    if (error != 0) {
        end_link(watch, link, error);
    } else if (!link->is_local && !watch->is_reached[leader]) {
        note_reached(watch, leader);
        watch->told[watch->told_count++] = (uint32_t)watch->pes + leader;
    }
}

static void serve_link(wefti_watch *watch, wefti_watch_link *link, short events)
{
    if (link->state == WEFTI_WATCH_DIALLING && (events & (POLLOUT | POLLERR | POLLHUP)) != 0) {
        connected(watch, link);
    } else if ((events & (POLLIN | POLLERR | POLLHUP)) != 0) {
        receive(watch, link);
    }
}

/* ---- who calls ---- */

static int is_stranger(const wefti_watch_link *link)
{
    return link->state == WEFTI_WATCH_UNKNOWN && !link->is_dialled;
}

/* Connections that have not shown the key are bounded: where there are too many the oldest is closed. */
static void bound_strangers(wefti_watch *watch)
{
    wefti_watch_link *oldest = NULL;
    int count = 0;
    for (size_t i = 0; i < watch->links_max; i++) {
        wefti_watch_link *link = &watch->links[i];
        if (is_stranger(link)) {
            oldest = oldest == NULL || link->since_ns < oldest->since_ns ? link : oldest;
            count++;
        }
    }
    if (count >= STRANGERS_MAX) {
        wefti_watch_link_close(oldest);
    }
}

static void accept_all(wefti_watch *watch)
{
    for (int i = 0; i < LISTENERS; i++) {
        int is_more = watch->listeners[i] >= 0;
        for (int taken = 0; is_more && taken < ACCEPTS_AT_ONCE; taken++) {
            bound_strangers(watch);
            wefti_watch_link refused = {0};
            wefti_watch_link *link = free_link(watch);
            is_more = wefti_watch_link_accept(link != NULL ? link : &refused, watch->listeners[i], i == LISTENER_LOCAL);
            if (is_more && link != NULL) {
                wefti_watch_link_keep(link, watch->setup.world->silence_ns);
            }
            wefti_watch_link_close(&refused);
        }
    }
}

/* How long a connection may stay as it is; UINT64_MAX: for ever. */
static uint64_t patience_ns(const wefti_watch *watch, const wefti_watch_link *link)
{
    return is_stranger(link) ? HELLO_NS
           : link->state == WEFTI_WATCH_DIALLING && watch->setup.world->silence_ns != WEFT_FOREVER
               ? watch->setup.world->silence_ns
               : UINT64_MAX;
}

/* How long until who had no room is asked again, which begins here; UINT64_MAX: nobody is. */
static uint64_t seek_again(wefti_watch *watch, uint64_t now_ns)
{
    if (watch->again_ns == 0) {
        return UINT64_MAX;
    }
    if (now_ns < watch->again_ns) {
        return watch->again_ns - now_ns;
    }
    watch->again_ns = 0;
    watch->must_seek = 1;
    return 0;
}

/* End those whose time is over; returns how long the others have. */
static uint64_t expire(wefti_watch *watch)
{
    const uint64_t now_ns = wefti_os_now_ns();
    uint64_t next_ns = seek_again(watch, now_ns);
    for (size_t i = 0; i < watch->links_max; i++) {
        wefti_watch_link *link = &watch->links[i];
        const uint64_t limit_ns = patience_ns(watch, link);
        if (link->state == WEFTI_WATCH_FREE || limit_ns == UINT64_MAX) {
            continue;
        }
        if (now_ns - link->since_ns >= limit_ns) {
            end_link(watch, link, ETIMEDOUT);
            next_ns = 0;
        } else if (limit_ns - (now_ns - link->since_ns) < next_ns) {
            next_ns = limit_ns - (now_ns - link->since_ns);
        }
    }
    return next_ns;
}

/* ---- the thread ---- */

static void await_events(wefti_watch *watch, uint64_t wait_ns)
{
    for (int i = 0; i < LISTENERS; i++) {
        watch->items[i] = (struct pollfd){.fd = watch->listeners[i], .events = POLLIN};
    }
    const int has_rung = !is_there(watch, watch->pe); /* who leaves has been woken, and the bell goes on ringing */
    watch->items[ITEM_WAKE] = (struct pollfd){.fd = has_rung ? -1 : watch->bell, .events = POLLIN};
    for (size_t i = 0; i < watch->links_max; i++) {
        const wefti_watch_link *link = &watch->links[i];
        const int writes = link->state == WEFTI_WATCH_DIALLING || has_to_send(watch, link);
        watch->items[ITEM_LINKS + i] = (struct pollfd){.fd = link->state == WEFTI_WATCH_FREE ? -1 : link->descriptor,
                                                       .events = (short)(link->state == WEFTI_WATCH_DIALLING ? POLLOUT
                                                                         : writes ? POLLIN | POLLOUT
                                                                                  : POLLIN)};
    }
    (void)wefti_os_socket_poll(watch->items, ITEM_LINKS + watch->links_max, wait_ns);
}

static void serve_links(wefti_watch *watch)
{
    for (size_t i = 0; i < watch->links_max; i++) {
        wefti_watch_link *link = &watch->links[i];
        const struct pollfd *item = &watch->items[ITEM_LINKS + i];
        if (link->state != WEFTI_WATCH_FREE && item->fd == link->descriptor && item->revents != 0) {
            serve_link(watch, link, item->revents);
        }
    }
}

/* Whether every connection that this PE has begun counts, or has come to nothing: who creates the world is told. */
static int settle(wefti_watch *watch)
{
    const int is_settled = !is_connecting(watch);
    if (is_settled) {
        wefti_os_monitor_enter(watch->lock);
        watch->is_settled = 1;
        wefti_os_monitor_notify_all(watch->lock);
        wefti_os_monitor_leave(watch->lock);
    }
    return is_settled;
}

/* Whether somebody has not yet said that it does without this PE, which leaves. */
static int is_needed(const wefti_watch *watch)
{
    for (size_t i = 0; i < watch->links_max; i++) {
        if (watch->links[i].state == WEFTI_WATCH_KNOWN && !watch->links[i].knows_left) {
            return 1;
        }
    }
    return 0;
}

static void serve_all(wefti_watch *watch, uint64_t wait_ns)
{
    await_events(watch, wait_ns);
    serve_links(watch);
    accept_all(watch);
}

/* Say that this PE leaves. Those that it is connected to connect to who takes its place first; whoever ends meanwhile
 * still ends here, and the others are told. */
static void hand_over(wefti_watch *watch, uint64_t until_ns)
{
    uint64_t now_ns;
    set_fate(watch, watch->pe, WEFTI_FATE_LEFT);
    while ((now_ns = wefti_os_now_ns()) < until_ns && is_needed(watch)) {
        send_gone(watch);
        serve_all(watch, until_ns - now_ns);
    }
}

/* What a PE still says is read, else the system would take back what it has been told; it ends the connection once it
 * has heard. Who has only now said who it is will be told, too. Returns whether its end is awaited. */
static int receive_rest(wefti_watch *watch, wefti_watch_link *link)
{
    int got = 1;
    for (int taken = 0; got == 1 && taken < MESSAGES_AT_ONCE; taken++) {
        int error;
        got = wefti_watch_link_receive(link, &error);
        if (got < 0 || (got == 1 && link->state != WEFTI_WATCH_KNOWN && !take(watch, link))) {
            wefti_watch_link_close(link);
            return 0;
        }
    }
    return may_send(link);
}

/* Connections that wait at the listener are served first: who has connected must not take this leaving for an end. */
static void send_leaving(wefti_watch *watch)
{
    const uint64_t until_ns = wefti_os_now_ns() + LEAVING_NS;
    uint64_t look_ns = LEAVING_LOOK_NS;
    int is_left = 1;
    accept_all(watch);
    await_events(watch, 0);
    serve_links(watch);
    hand_over(watch, until_ns);
    while (is_left && wefti_os_now_ns() < until_ns) {
        is_left = 0;
        send_gone(watch);
        for (size_t i = 0; i < watch->links_max; i++) {
            wefti_watch_link *link = &watch->links[i];
            if (link->state == WEFTI_WATCH_FREE || link->state == WEFTI_WATCH_DIALLING) {
                continue;
            }
            if (may_send(link) && !has_to_send(watch, link)) {
                wefti_os_socket_finish(link->descriptor);
            }
            is_left |= receive_rest(watch, link);
        }
        if (is_left) {
            wefti_os_sleep_ns(look_ns);
            look_ns = 2 * look_ns < LEAVING_LOOK_MAX_NS ? 2 * look_ns : LEAVING_LOOK_MAX_NS;
        }
    }
}

static void run(void *argument)
{
    wefti_watch *watch = argument;
    int is_settled = 0;
    watch->must_seek = 1;
    while (!__atomic_load_n(&watch->is_closing, __ATOMIC_ACQUIRE)) {
        seek(watch);
        const uint64_t wait_ns = expire(watch); /* of what has just begun, too */
        send_gone(watch);
        is_settled = is_settled || settle(watch);
        serve_all(watch, wait_ns);
    }
    send_leaving(watch);
}

/* ---- opening and closing ---- */

static weft_status failed(const char *what)
{
    return wefti_error(WEFT_ERR_SYSTEM,
                       "cannot %s, by which PEs of other nodes notice that this one has ended: %s; look at ulimit -n",
                       what, strerror(errno));
}

/* The address that this PE tells the others: the one of its network, or the first that leads out of
 * the host. */
static int choose_address(const struct sockaddr *host, wefti_tcp_address *address)
{
    wefti_tcp_address all[WEFTI_TCP_ADDRESSES_MAX];
    struct sockaddr_storage storage = {0};
    int count = 0;
    if (host != NULL) {
        memcpy(&storage, host, host->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
        return wefti_tcp_address_from(address, &storage);
    }
    if (wefti_interfaces_list(all, &count) != WEFT_OK || count == 0) {
        return 0;
    }
    int first = 0;
    while (first < count - 1 && wefti_tcp_address_is_loopback(&all[first])) {
        first++;
    }
    *address = all[first];
    return 1;
}

static weft_status listen_to_hosts(wefti_watch *watch, wefti_watch_contact *contact)
{
    wefti_tcp_address address;
    struct sockaddr_storage storage;
    if (!choose_address(watch->setup.host, &address)) {
        return WEFT_OK; /* not over TCP: other nodes find nothing out about this one */
    }
    int *listener = &watch->listeners[LISTENER_HOST];
    *listener = wefti_tcp_listen(&address, 0, WEFTI_TCP_PORT_OWN);
    if (*listener < 0) {
        *listener = wefti_tcp_listen(NULL, 0, WEFTI_TCP_PORT_OWN);
    }
    const unsigned port = *listener >= 0 ? wefti_tcp_port_of(*listener) : 0;
    if (port == 0) {
        return failed("listen at an address of this host");
    }
    contact->host_bytes = (uint32_t)wefti_tcp_address_to(&address, port, &storage);
    memcpy(contact->host, &storage, contact->host_bytes);
    return WEFT_OK;
}

static weft_status listen_to_all(wefti_watch *watch, wefti_watch_contact *contact)
{
    WEFT_TRY(wefti_os_random(contact->name, sizeof contact->name));
    watch->listeners[LISTENER_LOCAL] = wefti_watch_listen_local(contact->name);
    if (watch->listeners[LISTENER_LOCAL] < 0) {
        return failed("listen at a local socket");
    }
    watch->bell = wefti_os_bell_open();
    if (watch->bell < 0) {
        return failed("open an eventfd");
    }
    return listen_to_hosts(watch, contact);
}

static void watch_free(wefti_watch *watch)
{
    for (size_t i = 0; watch->links != NULL && i < watch->links_max; i++) {
        wefti_watch_link_close(&watch->links[i]);
    }
    for (int i = 0; i < LISTENERS; i++) {
        if (watch->listeners[i] >= 0) {
            wefti_os_socket_stop(watch->listeners[i]);
        }
    }
    if (watch->bell >= 0) {
        wefti_os_socket_close(watch->bell);
    }
    if (watch->lock != NULL) {
        wefti_os_monitor_destroy(watch->lock);
    }
    wefti_free(watch->items);
    wefti_free(watch->links);
    wefti_free(watch->told);
    wefti_free(watch->leaders);
    wefti_free(watch->is_reached);
    wefti_free(watch->tries);
    wefti_free(watch->fates);
    wefti_free(watch->contacts);
    wefti_free(watch);
}

static int has_memory(const wefti_watch *watch)
{
    return watch->contacts != NULL && watch->fates != NULL && watch->tries != NULL && watch->is_reached != NULL &&
           watch->leaders != NULL && watch->told != NULL && watch->links != NULL && watch->items != NULL;
}

static weft_status reserve(wefti_watch *watch)
{
    const size_t pes = (size_t)watch->pes;
    watch->links_max = (pes < LINKS_SPARE ? pes : LINKS_SPARE) + watch->setup.world->view->near_count + LINKS_SPARE;
    watch->contacts = wefti_alloc_zeroed(pes, sizeof *watch->contacts);
    watch->fates = wefti_alloc_zeroed(pes, 1);
    watch->tries = wefti_alloc_zeroed(pes, 1);
    watch->is_reached = wefti_alloc_zeroed(pes, 1);
    watch->leaders = wefti_alloc_zeroed(pes, sizeof *watch->leaders);
    watch->told = wefti_alloc_zeroed(2 * pes, sizeof *watch->told);
    watch->links = wefti_alloc_zeroed(watch->links_max, sizeof *watch->links);
    watch->items = wefti_alloc_zeroed(ITEM_LINKS + watch->links_max, sizeof *watch->items);
    return has_memory(watch) ? WEFT_OK : wefti_error(WEFT_ERR_MEMORY, "no memory for what is known of %zu PEs", pes);
}

weft_status wefti_watch_create(const wefti_watch_setup *setup, wefti_watch **out, wefti_watch_contact *contact)
{
    wefti_watch *watch = wefti_alloc_zeroed(1, sizeof *watch);
    memset(contact, 0, sizeof *contact);
    if (watch == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for what is known of PEs");
    }
    watch->setup = *setup;
    watch->pe = setup->world->pe;
    watch->pes = setup->world->pes;
    watch->bell = -1;
    watch->listeners[LISTENER_HOST] = watch->listeners[LISTENER_LOCAL] = -1;
    contact->leader = setup->world->view->near_first;
    weft_status status = reserve(watch);
    status = status == WEFT_OK ? wefti_os_monitor_create(&watch->lock) : status;
    status = status == WEFT_OK ? listen_to_all(watch, contact) : status;
    if (status != WEFT_OK) {
        watch_free(watch);
        return status;
    }
    *out = watch;
    return WEFT_OK;
}

/* Of a PE that has failed to open a network, or says what makes no sense, no other node finds anything out. */
static void make_sense(const wefti_watch *watch, int pe)
{
    wefti_watch_contact *contact = &watch->contacts[pe];
    if (contact->leader > (uint32_t)pe || watch->contacts[contact->leader].leader != contact->leader ||
        contact->host_bytes > sizeof contact->host) {
        *contact = (wefti_watch_contact){.leader = (uint32_t)pe};
    }
}

/* The nodes, by their lowest PEs. */
static void number_nodes(wefti_watch *watch)
{
    for (int pe = 0; pe < watch->pes; pe++) {
        if (watch->contacts[pe].leader == (uint32_t)pe) {
            watch->node = watch->contacts[watch->pe].leader == (uint32_t)pe ? watch->nodes : watch->node;
            watch->leaders[watch->nodes++] = (uint32_t)pe;
        }
    }
}

static void take_contacts(wefti_watch *watch, const wefti_watch_contact *contacts, size_t stride)
{
    for (int pe = 0; pe < watch->pes; pe++) {
        memcpy(&watch->contacts[pe], (const unsigned char *)contacts + (size_t)pe * stride, sizeof *contacts);
    }
    for (int pe = 0; pe < watch->pes; pe++) {
        make_sense(watch, pe);
    }
    number_nodes(watch);
}

weft_status wefti_watch_start(wefti_watch *watch, const wefti_watch_contact *contacts, size_t stride)
{
    take_contacts(watch, contacts, stride);
    return wefti_os_thread_start(&watch->thread, run, watch);
}

void wefti_watch_await(wefti_watch *watch, uint64_t until_ns)
{
    wefti_os_monitor_enter(watch->lock);
    while (!watch->is_settled && wefti_os_monitor_wait(watch->lock, until_ns)) {
    }
    wefti_os_monitor_leave(watch->lock);
}

void wefti_watch_destroy(wefti_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    if (watch->thread != NULL) {
        __atomic_store_n(&watch->is_closing, 1, __ATOMIC_RELEASE);
        wefti_os_bell_ring(watch->bell);
        wefti_os_thread_join(watch->thread);
    }
    watch_free(watch);
}
