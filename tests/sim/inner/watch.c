/* sim/inner/watch.c: the watch of PE 1 of a run is that of one PE of a world; PE 0 plays all others, which leave, end,
 * refuse and keep silent when a scene wants it so. What it tells, and when, is exact. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "os/os.h"
#include "os/socket.h"
#include "sim/inner/gone.h"
#include "testing/sim/socket.h"
#include "transport/am/watch.h"
#include "transport/am/watch_link.h"
#include "weft_sim.h"

#define MS_NS UINT64_C(1000000)
#define SOON_NS (50 * MS_NS) /* by then what is due has come */
#define QUIET_NS (20 * MS_NS) /* so long what is not due does not come */
#define LOOK_NS (MS_NS / 20)
#define PES_MAX 5
#define KEY UINT64_C(0x1234567)
#define FIRST_PORT 31000

/* What the two PEs of a run tell each other aside. */
static struct stage {
    wefti_watch_contact contacts[PES_MAX];
    int are_played; /* those contacts are there that PE 0 plays */
    int is_watching; /* and that of the watch */
    int may_leave;
    int has_left;
    int lost[PES_MAX]; /* what the watch has found out */
} stage;

void watch_begin(void)
{
    memset(&stage, 0, sizeof stage);
}

static void await_sign(const int *sign)
{
    while (!*sign) {
        weft_sim_sleep_ns(LOOK_NS);
    }
}

/* ---- the watch ---- */

static void note_lost(void *context, int pe, wefti_transport_fate fate)
{
    (void)context;
    stage.lost[pe] = (int)fate;
}

static struct sockaddr_in address_of(int pe)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(FIRST_PORT + pe))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* Watch as PE `pe` of so many, of which those of its node begin with `first`. */
static void watch_as(int pe, int pes, int first, int near)
{
    const wefti_view view = {.pe = (uint32_t)pe, .near_first = (uint32_t)first, .near_count = (uint32_t)near};
    const wefti_transport_setup world = {
        .world = KEY, .pe = pe, .pes = pes, .view = &view, .silence_ns = WEFT_FOREVER, .deadline_ns = WEFT_FOREVER};
    const struct sockaddr_in address = address_of(pe);
    const wefti_watch_setup setup = {
        .world = &world, .host = (const struct sockaddr *)(const void *)&address, .lost = note_lost};
    wefti_watch *watch;
    wefti_sim_socket_calm(4096);
    await_sign(&stage.are_played);
    if (wefti_watch_create(&setup, &watch, &stage.contacts[pe]) != WEFT_OK ||
        wefti_watch_start(watch, stage.contacts, sizeof stage.contacts[0]) != WEFT_OK) {
        weft_sim_fail("no watch: %s", weft_last_error());
    }
    stage.is_watching = 1;
    await_sign(&stage.may_leave);
    wefti_watch_destroy(watch);
    stage.has_left = 1;
}

/* ---- PEs that are played ---- */

/* Where a PE whose node begins with `leader` is found; returns its listener. */
static int play(int pe, int leader)
{
    const struct sockaddr_in address = address_of(pe);
    wefti_watch_contact *contact = &stage.contacts[pe];
    const int listener = wefti_os_socket_open(AF_INET);
    *contact = (wefti_watch_contact){.leader = (uint32_t)leader, .host_bytes = sizeof address};
    memcpy(contact->host, &address, sizeof address);
    if (wefti_os_socket_bind(listener, (const struct sockaddr *)(const void *)&address, sizeof address) != 0 ||
        wefti_os_socket_listen(listener, 8) != 0) {
        weft_sim_fail("cannot listen: %s", strerror(errno));
    }
    return listener;
}

static void all_are_played(void)
{
    stage.are_played = 1;
    await_sign(&stage.is_watching);
}

static void say(wefti_watch_link *link, int from, int to, int pe, wefti_transport_fate fate)
{
    wefti_watch_message message = {
        .proof = wefti_watch_proof(KEY, (uint32_t)from, (uint32_t)to), .pe = (uint32_t)pe, .fate = (uint32_t)fate};
    struct iovec part = {&message, sizeof message};
    if (wefti_os_socket_send(link->descriptor, &part, 1) != (ssize_t)sizeof message) {
        weft_sim_fail("PE %d cannot say what became of PE %d: %s", from, pe, strerror(errno));
    }
}

/* Whether the watch says that of a PE within such a time; of nodes that it reaches it may say so before. */
static int hears(wefti_watch_link *link, int pe, wefti_transport_fate fate, uint64_t wait_ns)
{
    const uint64_t until_ns = weft_sim_now_ns() + wait_ns;
    do {
        int error;
        const int got = wefti_watch_link_receive(link, &error);
        const wefti_watch_message *said = &link->message;
        if (got < 0) {
            weft_sim_fail("a connection ended before its time");
        }
        if (got == 1 && (int)said->pe == pe && said->fate == (uint32_t)fate) {
            return 1;
        }
        if (got == 1 && said->fate != WEFTI_FATE_THERE) {
            weft_sim_fail("PE %u is said to be of fate %u, and PE %d was to be of %d", said->pe, said->fate, pe,
                          (int)fate);
        }
        weft_sim_sleep_ns(got == 1 ? 1 : LOOK_NS);
    } while (weft_sim_now_ns() < until_ns);
    return 0;
}

static void must_hear(wefti_watch_link *link, int pe, wefti_transport_fate fate)
{
    if (!hears(link, pe, fate, SOON_NS)) {
        weft_sim_fail("nothing is said of PE %d, which is of fate %d", pe, (int)fate);
    }
}

static void accept_soon(wefti_watch_link *link, int listener, int pe)
{
    const uint64_t until_ns = weft_sim_now_ns() + SOON_NS;
    while (!wefti_watch_link_accept(link, listener, stage.contacts[pe].host_bytes == 0)) {
        if (weft_sim_now_ns() > until_ns) {
            weft_sim_fail("nobody connects to PE %d", pe);
        }
        weft_sim_sleep_ns(LOOK_NS);
    }
}

/* The watch of PE `of` connects to PE `pe`, and each learns who the other is. */
static void meet_at(wefti_watch_link *link, int listener, int pe, int of)
{
    accept_soon(link, listener, pe);
    must_hear(link, of, WEFTI_FATE_THERE);
    say(link, pe, of, pe, WEFTI_FATE_THERE);
}

static void must_lose(int pe, wefti_transport_fate fate)
{
    const uint64_t until_ns = weft_sim_now_ns() + SOON_NS;
    while (stage.lost[pe] == WEFTI_FATE_THERE && weft_sim_now_ns() < until_ns) {
        weft_sim_sleep_ns(LOOK_NS);
    }
    if (stage.lost[pe] != (int)fate) {
        weft_sim_fail("PE %d is of fate %d, not %d", pe, stage.lost[pe], (int)fate);
    }
}

static void let_leave(void)
{
    stage.may_leave = 1;
    await_sign(&stage.has_left);
}

/* ---- who leaves is kept until it is replaced ---- */

/* PE 0 leaves, of whose node PE 1 stays. PE 2 connects to that one, but says that it does without PE 0 only when PE 1
 * has said who it is: who has connected and says nothing may be anybody. */
void gone_keep_who_leaves(void *argument)
{
    wefti_watch_link first;
    wefti_watch_link second;
    (void)argument;
    if (weft_sim_pe() == 1) {
        watch_as(2, 3, 2, 1);
        return;
    }
    const int listener = play(0, 0);
    const int next = play(1, 0);
    all_are_played();
    meet_at(&first, listener, 0, 2);
    weft_sim_sleep_ns(weft_sim_random(MS_NS));
    say(&first, 0, 2, 0, WEFTI_FATE_LEFT);
    must_lose(0, WEFTI_FATE_LEFT);
    int is_let_go = hears(&first, 0, WEFTI_FATE_LEFT, QUIET_NS);
    accept_soon(&second, next, 1);
    must_hear(&second, 2, WEFTI_FATE_THERE);
    is_let_go |= hears(&first, 0, WEFTI_FATE_LEFT, QUIET_NS);
    if (is_let_go) {
        weft_sim_fail("who leaves is let go before it is replaced");
    }
    say(&second, 1, 2, 1, WEFTI_FATE_THERE);
    must_hear(&first, 0, WEFTI_FATE_LEFT);
    must_hear(&second, 0, WEFTI_FATE_LEFT);
    wefti_watch_link_close(&first);
    weft_sim_sleep_ns(QUIET_NS);
    wefti_watch_link_close(&second);
    must_lose(1, WEFTI_FATE_ENDED);
    wefti_os_socket_stop(listener);
    wefti_os_socket_stop(next);
    let_leave();
}

/* PE 0, which leads the node of PE 1, leaves. PE 1, which takes its place, does without it only when it is connected to
 * PE 2, the other node, and knows that it is. */
void gone_take_the_place(void *argument)
{
    wefti_watch_link first;
    wefti_watch_link far;
    (void)argument;
    if (weft_sim_pe() == 1) {
        watch_as(1, 3, 0, 2);
        return;
    }
    stage.contacts[0] = (wefti_watch_contact){.leader = 0, .name = {7}}; /* in its node alone */
    const int listener = wefti_watch_listen_local(stage.contacts[0].name);
    const int other = play(2, 2);
    all_are_played();
    meet_at(&first, listener, 0, 1);
    weft_sim_sleep_ns(weft_sim_random(MS_NS));
    say(&first, 0, 1, 0, WEFTI_FATE_LEFT);
    must_lose(0, WEFTI_FATE_LEFT);
    int is_let_go = hears(&first, 0, WEFTI_FATE_LEFT, QUIET_NS);
    accept_soon(&far, other, 2);
    must_hear(&far, 1, WEFTI_FATE_THERE);
    is_let_go |= hears(&first, 0, WEFTI_FATE_LEFT, QUIET_NS);
    if (is_let_go) {
        weft_sim_fail("who leaves is let go before its place is taken");
    }
    say(&far, 2, 1, 2, WEFTI_FATE_THERE);
    must_hear(&first, 0, WEFTI_FATE_LEFT);
    wefti_watch_link_close(&first);
    weft_sim_sleep_ns(QUIET_NS);
    wefti_watch_link_close(&far);
    must_lose(2, WEFTI_FATE_ENDED);
    wefti_os_socket_stop(listener);
    wefti_os_socket_stop(other);
    let_leave();
}

/* ---- two that leave at once ---- */

/* PE 0, of another node, leaves, and then PE 2, to whose node PE 3 belongs, which stays: PE 2 still tells what it finds
 * out, so it lets PE 0 go only when PE 3 has said that it does without PE 2. */
void gone_leave_behind_another(void *argument)
{
    wefti_watch_link far;
    wefti_watch_link near;
    (void)argument;
    if (weft_sim_pe() == 1) {
        watch_as(2, 4, 2, 2);
        return;
    }
    const int listener = play(0, 0);
    const int silent = play(1, 0);
    const int neighbour = play(3, 2);
    all_are_played();
    meet_at(&far, listener, 0, 2);
    if (wefti_watch_link_dial(&near, &stage.contacts[2], 2, 1) != 0) {
        weft_sim_fail("PE 2 is not found in its node");
    }
    say(&near, 3, 2, 3, WEFTI_FATE_THERE);
    must_hear(&near, 2, WEFTI_FATE_THERE);
    say(&far, 0, 2, 0, WEFTI_FATE_LEFT);
    must_hear(&near, 0, WEFTI_FATE_LEFT);
    stage.may_leave = 1;
    must_hear(&near, 2, WEFTI_FATE_LEFT);
    if (hears(&far, 0, WEFTI_FATE_LEFT, QUIET_NS)) {
        weft_sim_fail("who leaves is let go by one that is still needed");
    }
    say(&near, 3, 2, 2, WEFTI_FATE_LEFT);
    must_hear(&far, 0, WEFTI_FATE_LEFT);
    must_hear(&far, 2, WEFTI_FATE_LEFT);
    say(&far, 0, 2, 2, WEFTI_FATE_LEFT);
    wefti_watch_link_close(&near);
    wefti_watch_link_close(&far);
    wefti_os_socket_stop(listener);
    wefti_os_socket_stop(silent);
    wefti_os_socket_stop(neighbour);
    await_sign(&stage.has_left);
}

/* ---- whom a leader is connected to ---- */

/* Nodes of one. PE 0 is connected to those 1, 2 and 4 nodes further on; when PEs 1 and 2 have ended, to PE 3, and
 * PE 4 is told of them. */
void gone_connect_beyond_the_ended(void *argument)
{
    int listeners[PES_MAX];
    wefti_watch_link links[PES_MAX];
    (void)argument;
    if (weft_sim_pe() == 1) {
        watch_as(0, PES_MAX, 0, 1);
        return;
    }
    for (int pe = 1; pe < PES_MAX; pe++) {
        listeners[pe] = play(pe, pe);
    }
    all_are_played();
    for (int pe = 1; pe < PES_MAX; pe++) {
        if (pe != 3) {
            meet_at(&links[pe], listeners[pe], pe, 0);
        }
    }
    weft_sim_sleep_ns(QUIET_NS);
    for (int pe = 1; pe < 3; pe++) {
        wefti_watch_link_close(&links[pe]);
        must_lose(pe, WEFTI_FATE_ENDED);
        must_hear(&links[4], pe, WEFTI_FATE_ENDED);
    }
    meet_at(&links[3], listeners[3], 3, 0);
    for (int pe = 1; pe < 3; pe++) {
        must_hear(&links[3], pe, WEFTI_FATE_ENDED);
    }
    for (int pe = 1; pe < PES_MAX; pe++) {
        wefti_os_socket_stop(listeners[pe]);
    }
    stage.may_leave = 1;
    for (int pe = 3; pe < PES_MAX; pe++) {
        must_hear(&links[pe], 0, WEFTI_FATE_LEFT);
        wefti_watch_link_close(&links[pe]);
    }
    await_sign(&stage.has_left);
}

/* ---- who cannot be connected to ---- */

/* PE 1 ends two connections before it says who it is, as one whose place strangers fill: it is connected to once more,
 * and then counts. */
void gone_connect_again(void *argument)
{
    wefti_watch_link link;
    (void)argument;
    if (weft_sim_pe() == 1) {
        watch_as(0, 2, 0, 1);
        return;
    }
    const int listener = play(1, 1);
    all_are_played();
    for (int i = 0; i < 2; i++) {
        accept_soon(&link, listener, 1);
        weft_sim_sleep_ns(weft_sim_random(MS_NS));
        wefti_watch_link_close(&link);
    }
    meet_at(&link, listener, 1, 0);
    weft_sim_sleep_ns(QUIET_NS);
    if (stage.lost[1] != WEFTI_FATE_THERE) {
        weft_sim_fail("a PE that was never known is of fate %d", stage.lost[1]);
    }
    wefti_watch_link_close(&link);
    must_lose(1, WEFTI_FATE_ENDED);
    wefti_os_socket_stop(listener);
    let_leave();
}

/* PE 0, which leads its node, refuses, and PE 1 of it does not: when that one ends PE 0, which still refuses, has
 * ended, too. */
void gone_refuse(void *argument)
{
    wefti_watch_link link;
    (void)argument;
    if (weft_sim_pe() == 1) {
        watch_as(2, 3, 2, 1);
        return;
    }
    wefti_os_socket_stop(play(0, 0));
    const int listener = play(1, 0);
    all_are_played();
    meet_at(&link, listener, 1, 2);
    weft_sim_sleep_ns(QUIET_NS);
    if (stage.lost[0] != WEFTI_FATE_THERE) {
        weft_sim_fail("a PE that may be hidden is of fate %d", stage.lost[0]);
    }
    wefti_watch_link_close(&link);
    must_lose(1, WEFTI_FATE_ENDED);
    must_lose(0, WEFTI_FATE_ENDED);
    wefti_os_socket_stop(listener);
    let_leave();
}
