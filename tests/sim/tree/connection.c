/* sim/tree/connection.c: other ends of connections: who is silent, who is so beside PE 0, whom the network does not
 * trust, who refuses, takes a connection and refuses again, who sends back what it hears, who is not heard. */
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

#include "base/alloc.h"
#include "base/error.h"
#include "bootstrap/tree/handshake.h"
#include "os/os.h"
#include "os/socket.h"
#include "sim/tree/fake_net.h"
#include "sim/tree/scenes.h"

#define ROOM 64000

/* Accept one connection and say nothing. */
static int accept_silently(const wefti_tree_listeners *listeners)
{
    int descriptor;
    do {
        struct pollfd item = {.fd = listeners->descriptors[0], .events = POLLIN};
        (void)wefti_os_socket_poll(&item, 1, S_NS);
        descriptor = wefti_os_socket_accept(listeners->descriptors[0]);
    } while (descriptor < 0);
    return descriptor;
}

/* Connect to the name "root" and say nothing. */
static int connect_silently(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0root"};
    int descriptor = wefti_os_socket_open(AF_UNIX);
    while (wefti_os_socket_connect(descriptor, (const struct sockaddr *)&name,
                                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen("root"))) != 0) {
        weft_sim_sleep_ns(MS_NS);
    }
    return descriptor;
}

/* ---- a stranger that is silent ---- */

#define STRANGER_MAX_NS (3500 * MS_NS) /* it is given 3 s */

void scene_be_silent(void *argument)
{
    static wefti_tree tree;
    wefti_tree_site site = fake_site();
    (void)argument;
    if (weft_sim_pe() == 0) {
        weft_status status = fake_open(&tree, &site, 0, 2, 10 * S_NS, NULL);
        if (status != WEFT_OK) {
            weft_sim_fail("PE 0: %s: %s", weft_status_name(status), weft_last_error());
        }
        wefti_tree_close(&tree);
        return;
    }
    wefti_link stranger;
    wefti_link link;
    wefti_link_init(&stranger, connect_silently(), 0);
    uint64_t begun_ns = weft_sim_now_ns();
    fake_await_frame(&stranger, WEFTI_FRAME_CHALLENGE);
    if (fake_await(&stranger, 2 * STRANGER_MAX_NS) != WEFTI_LINK_CLOSED ||
        weft_sim_now_ns() - begun_ns > STRANGER_MAX_NS) {
        weft_sim_fail("a silent stranger stayed");
    }
    wefti_link_fini(&stranger);
    fake_join(&site, 1, 2, &link);
    wefti_link_fini(&link);
}

/* ---- a silent address beside another ---- */

#define SLOW_NS (3 * S_NS)

/* Somebody has PE 0's port and says nothing. PE 0 comes to its name when PE 1 is at that port, and is slow: PE 1 is
 * with PE 0 from then on, whatever it tries besides, and hears at once what PE 0 says at last. */
void scene_be_silent_elsewhere(void *argument)
{
    wefti_tree_site site = fake_site();
    wefti_tree_hello hello = fake_hello(1, 2);
    wefti_link link;
    (void)argument;
    fake_calm(ROOM);
    fake_far_port = 29000;
    if (weft_sim_pe() == 1) {
        weft_sim_sleep_ns(MS_NS);
        fake_call(&site, &hello, 0, &site.root, &link);
        wefti_link_fini(&link);
        return;
    }
    wefti_tree_listeners far = fake_listen_far();
    wefti_tree_hello said;
    fake_sleep_until(500 * MS_NS);
    wefti_tree_listeners root = fake_listen("root");
    weft_sim_sleep_ns(100 * MS_NS);
    int early = wefti_os_socket_accept(root.descriptors[0]);
    if (early < 0) {
        weft_sim_fail("PE 1 was not there after 100 ms");
    }
    wefti_link_init(&link, early, 1);
    weft_sim_sleep_ns(SLOW_NS);
    wefti_tree_challenge challenge = {{0}};
    fake_send(&link, WEFTI_FRAME_CHALLENGE, 0, &challenge, sizeof challenge);
    fake_await_frame(&link, WEFTI_FRAME_HELLO);
    wefti_link_fini(&link);
    if (!fake_accept(&site, &root, 0, 10 * S_NS, &link, &said)) { /* for the call to end */
        weft_sim_fail("PE 1 did not come again");
    }
    (void)fake_await(&link, S_NS);
    wefti_link_fini(&link);
    wefti_os_socket_stop(root.descriptors[0]);
    wefti_os_socket_stop(far.descriptors[0]);
}

/* ---- a listener that is not trusted ---- */

/* PE 1 must not prove itself to who listens where PE 0 should. */
static void distrust(wefti_tree_trust trust, weft_status wanted)
{
    static wefti_tree tree;
    wefti_tree_site site = fake_site();
    wefti_tree_hello said;
    wefti_link link;
    fake_trust[1] = trust;
    if (weft_sim_pe() == 1) {
        weft_status status = fake_open(&tree, &site, 1, 2, S_NS, NULL);
        if (status != wanted) {
            weft_sim_fail("there was %s: %s", weft_status_name(status), weft_last_error());
        }
        return;
    }
    wefti_tree_listeners root = fake_listen("root");
    if (fake_accept(&site, &root, 0, 2 * S_NS, &link, &said)) {
        weft_sim_fail("PE 1 proved itself");
    }
    wefti_os_socket_stop(root.descriptors[0]);
}

void scene_be_foreign(void *argument)
{
    (void)argument;
    distrust(WEFTI_TREE_FOREIGN, WEFT_ERR_TIMEOUT);
}

void scene_be_unknown(void *argument)
{
    (void)argument;
    distrust(WEFTI_TREE_UNKNOWN, WEFT_ERR_AUTHENTICATION);
}

/* ---- an address that refuses, connects, and refuses again ---- */

/* All within the half second for which an address must refuse before nobody is believed to listen there. */
void scene_come_and_go(void *argument)
{
    wefti_tree_site site;
    wefti_link link;
    (void)argument;
    fake_calm(ROOM);
    fake_refusal_is_final = 1;
    site = fake_site();
    if (weft_sim_pe() == 1) {
        wefti_tree_hello hello = fake_hello(1, 2);
        fake_call(&site, &hello, 0, &site.root, &link);
        wefti_link_fini(&link);
        return;
    }
    wefti_tree_hello said;
    fake_sleep_until(100 * MS_NS);
    wefti_tree_listeners root = fake_listen("root");
    int silent = accept_silently(&root);
    fake_sleep_until(700 * MS_NS);
    wefti_os_socket_stop(root.descriptors[0]);
    wefti_os_socket_close(silent);
    fake_sleep_until(900 * MS_NS);
    root = fake_listen("root");
    if (!fake_accept(&site, &root, 0, S_NS, &link, &said)) {
        weft_sim_fail("PE 1 did not come");
    }
    (void)fake_await(&link, S_NS);
    wefti_link_fini(&link);
    wefti_os_socket_stop(root.descriptors[0]);
}

/* ---- nobody listens any more ---- */

#define BELIEVED_NS (500 * MS_NS) /* so long all addresses refuse before PE 0 is taken to be gone */

/* PE 0 has listened for a while, or never, at one address or two, before PE 1 comes or behind that: PE 1 is told that
 * it is gone when all have refused for so long, whatever its deadline is. */
void scene_listen_no_more(void *argument)
{
    static wefti_tree tree;
    static uint64_t gone_ns;
    (void)argument;
    fake_calm(ROOM);
    fake_refusal_is_final = 1;
    if (weft_sim_pe() == 0) {
        fake_far_port = weft_sim_random(2) == 0 ? 29000 : 0;
        gone_ns = weft_sim_random(400) * MS_NS;
        if (gone_ns > 0) {
            wefti_tree_listeners root = fake_listen("root");
            fake_sleep_until(gone_ns);
            wefti_os_socket_stop(root.descriptors[0]);
        }
        return;
    }
    weft_sim_sleep_ns((1 + weft_sim_random(600)) * MS_NS);
    wefti_tree_site site = fake_site();
    const uint64_t come_ns = weft_sim_now_ns();
    const weft_status status = fake_open(&tree, &site, 1, 2, 2 * S_NS + weft_sim_random(2) * 600 * S_NS, NULL);
    const uint64_t since_ns = weft_sim_now_ns() - (come_ns > gone_ns ? come_ns : gone_ns);
    if (status != WEFT_ERR_PEER || strstr(weft_last_error(), "PE 0 is gone") == NULL || since_ns < BELIEVED_NS ||
        since_ns > BELIEVED_NS + 100 * MS_NS) {
        weft_sim_fail("nobody listens, and after %llu ms there is %s: %s", (unsigned long long)(since_ns / MS_NS),
                      weft_status_name(status), weft_last_error());
    }
}

/* ---- an end that loses nothing ---- */

/* PE 0 closes a connection on which something came that it has not read: PE 1 reads what PE 0 said last, and an end,
 * not a reset, which elsewhere would throw away what is still on its way. */
void scene_end_unread(void *argument)
{
    static const wefti_tree_failure failure = {.status = WEFT_ERR_PEER, .text = "the last word"};
    wefti_link link;
    char byte;
    (void)argument;
    fake_calm(ROOM);
    if (weft_sim_pe() == 0) {
        wefti_tree_listeners root = fake_listen("root");
        wefti_link_init(&link, accept_silently(&root), 1);
        weft_sim_sleep_ns(10 * MS_NS);
        fake_send(&link, WEFTI_FRAME_FAILURE, 0, &failure, sizeof failure);
        wefti_link_fini(&link);
        wefti_os_socket_stop(root.descriptors[0]);
        return;
    }
    wefti_link_init(&link, connect_silently(), 0);
    fake_send(&link, WEFTI_FRAME_EXPIRED, 0, NULL, 0);
    fake_await_frame(&link, WEFTI_FRAME_FAILURE);
    weft_sim_sleep_ns(10 * MS_NS);
    if (wefti_os_socket_receive(link.descriptor, &byte, 1) != 0) {
        weft_sim_fail("the connection did not end, or was reset");
    }
    wefti_link_fini(&link);
}

/* ---- what was sealed comes back ---- */

void scene_hear_oneself(void *argument)
{
    static const char body[] = "what PE 1 says";
    wefti_sodium sodium = {0};
    wefti_tree_site site = fake_site();
    wefti_tree_handshake handshake = {.accepting_pe = 0, .hello = fake_hello(1, 2)};
    wefti_link link;
    (void)argument;
    fake_calm(ROOM);
    if (wefti_sodium_open(&sodium) != WEFT_OK) {
        return; /* without libsodium nothing is sealed */
    }
    if (weft_sim_pe() == 0) {
        unsigned char bytes[512];
        wefti_sodium_close(&sodium);
        wefti_tree_listeners root = fake_listen("root");
        int descriptor = accept_silently(&root);
        weft_sim_sleep_ns(10 * MS_NS);
        ssize_t got = wefti_os_socket_receive(descriptor, bytes, sizeof bytes);
        struct iovec part = {bytes, got > 0 ? (size_t)got : 0};
        if (got <= 0 || wefti_os_socket_send(descriptor, &part, 1) != got) {
            weft_sim_fail("nothing to send back");
        }
        weft_sim_sleep_ns(10 * MS_NS);
        wefti_os_socket_close(descriptor);
        wefti_os_socket_stop(root.descriptors[0]);
        return;
    }
    site.sodium = &sodium;
    wefti_link_init(&link, connect_silently(), 0);
    if (wefti_handshake_seal(&site, &handshake, WEFTI_HANDSHAKE_CONNECTED, &link) != WEFT_OK) {
        weft_sim_fail("%s", weft_last_error());
    }
    link.seals_out = link.seals_in = 1;
    fake_send(&link, WEFTI_FRAME_FAILURE, 0, body, sizeof body);
    if (fake_await(&link, S_NS) != WEFTI_LINK_FORGED) {
        weft_sim_fail("what this PE said itself was taken for the other's");
    }
    wefti_link_fini(&link);
    wefti_sodium_close(&sodium);
}

/* ---- a PE 0 of another world ---- */

#define SOUGHT_NS (600 * MS_NS)
#define FAR_NS (200 * MS_NS)

/* What the PEs of a scene tell each other aside. */
static struct board {
    int is_said; /* the hello */
    int has_answer;
    int does_come;
    int has_begun;
    size_t strangers; /* that PE 0 accepts before it looks at a hello */
} board;

/* Two worlds share an address. PE 1 of one of them finds the other's PE 0 at the name, which tells it so; its own comes
 * to the far port, or never: then that one is missing, and nobody has turned PE 1 away. */
static void serve_two_worlds(const wefti_tree_site *site)
{
    static wefti_acceptor other;
    static wefti_acceptor own;
    wefti_tree_listeners root = fake_listen("root");
    wefti_tree_listeners far = {.count = 0};
    wefti_polls polls = {0};
    wefti_link link;
    wefti_tree_hello said;
    wefti_acceptor_init(&other, site, &root, 0);
    wefti_acceptor_init(&own, site, &far, 0);
    other.world = "other";
    own.world = "world";
    for (uint64_t now_ns = 0; now_ns < 2 * SOUGHT_NS; now_ns = weft_sim_now_ns()) {
        if (board.does_come && far.count == 0 && now_ns >= FAR_NS) {
            far = fake_listen_far();
        }
        wefti_polls_clear(&polls);
        (void)wefti_acceptor_watch(&other, &polls);
        (void)wefti_acceptor_watch(&own, &polls);
        if (wefti_polls_wait(&polls, wefti_os_now_ns() + MS_NS) != WEFT_OK ||
            wefti_acceptor_step(&other, &polls) != WEFT_OK || wefti_acceptor_step(&own, &polls) != WEFT_OK) {
            weft_sim_fail("%s", weft_last_error());
        }
        if (wefti_acceptor_take(&other, &link, &said)) {
            weft_sim_fail("PE 1 of another world was taken");
        }
        if (wefti_acceptor_take(&own, &link, &said)) {
            static const wefti_tree_failure failure = {.status = WEFT_ERR_ABORTED, .text = "PE 0 was found"};
            fake_send(&link, WEFTI_FRAME_FAILURE, 0, &failure, sizeof failure);
            wefti_link_fini(&link);
        }
    }
    wefti_acceptor_fini(&other);
    wefti_acceptor_fini(&own);
    wefti_polls_fini(&polls);
    wefti_os_socket_stop(root.descriptors[0]);
    if (far.count > 0) {
        wefti_os_socket_stop(far.descriptors[0]);
    }
}

void scene_seek_among_worlds(void *argument)
{
    static wefti_tree tree;
    (void)argument;
    fake_calm(ROOM);
    fake_is_shared = 1;
    fake_far_port = 29000;
    wefti_tree_site site = fake_site();
    if (weft_sim_pe() == 0) {
        board.does_come = (int)weft_sim_random(2);
        serve_two_worlds(&site);
        return;
    }
    weft_sim_sleep_ns(MS_NS);
    const weft_status status = fake_open(&tree, &site, 1, 2, SOUGHT_NS, NULL);
    const char *text = board.does_come ? "PE 0 was found" : "PE 0 had not come";
    if (status != (board.does_come ? WEFT_ERR_ABORTED : WEFT_ERR_TIMEOUT) || strstr(weft_last_error(), text) == NULL) {
        weft_sim_fail("PE 0 %s, and there is %s: %s", board.does_come ? "comes" : "does not come",
                      weft_status_name(status), weft_last_error());
    }
}

/* ---- who is counted, and who is answered ---- */

/* Say hello to PE 0 at one of its addresses, and go on when all of it is on its way. */
static void say_hello(wefti_caller *caller, wefti_tree_site *site, wefti_tree_hello *hello)
{
    if (wefti_caller_init(caller, site, hello, 0, &site->root) != WEFT_OK) {
        weft_sim_fail("%s", weft_last_error());
    }
    fake_call_until(caller, WEFTI_CALLER_PROVES, weft_sim_now_ns() + 2 * MS_NS); /* PE 0 has looked, and waits for it */
}

/* Step until PE 1 has said hello, and for the last time behind that, with the `nth` call that can fail failing; 0:
 * none. Returns whether it counts. */
static int step_behind_hello(const wefti_tree_site *site, const wefti_tree_listeners *listeners, uint64_t nth,
                             wefti_link *link)
{
    static wefti_acceptor acceptor;
    wefti_polls polls = {0};
    wefti_tree_hello said;
    int is_said;
    wefti_acceptor_init(&acceptor, site, listeners, 0);
    do {
        is_said = board.is_said;
        wefti_polls_clear(&polls);
        (void)wefti_acceptor_watch(&acceptor, &polls);
        if (wefti_polls_wait(&polls, wefti_os_now_ns() + MS_NS) != WEFT_OK) {
            weft_sim_fail("%s", weft_last_error());
        }
        wefti_fault_arm(is_said ? nth : 0, is_said ? 1 : 0);
        const int steps = acceptor.count <= board.strangers || is_said;
        const weft_status status = steps ? wefti_acceptor_step(&acceptor, &polls) : WEFT_OK;
        wefti_fault_arm(0, 0);
        if (status != WEFT_OK && (nth == 0 || status != WEFT_ERR_MEMORY)) { /* for another that comes */
            weft_sim_fail("%s", weft_last_error());
        }
    } while (!is_said);
    const int counts = wefti_acceptor_take(&acceptor, link, &said);
    wefti_acceptor_fini(&acceptor);
    wefti_polls_fini(&polls);
    return counts;
}

static void begin_talk(void)
{
    fake_calm(ROOM);
    fake_clear(&board, sizeof board);
}

#define CROWD_MAX 3

/* Say hello behind strangers that are silent, and before others that come when it has been said. */
static void say_hello_in_a_crowd(wefti_caller *caller, wefti_tree_site *site, wefti_tree_hello *hello)
{
    int strangers[2 * CROWD_MAX];
    size_t count = 0;
    while (!board.has_begun) {
        weft_sim_sleep_ns(1000);
    }
    while (count < board.strangers) {
        strangers[count++] = connect_silently();
    }
    say_hello(caller, site, hello);
    weft_sim_sleep_ns(weft_sim_random(4) * 3 * MS_NS); /* whoever is there so long makes room for others */
    for (uint64_t more = weft_sim_random(CROWD_MAX + 1); more > 0; more--) {
        strangers[count++] = connect_silently();
    }
    board.is_said = 1;
    weft_sim_sleep_ns(5 * MS_NS); /* what fails is PE 0's */
    while (count > 0) {
        wefti_os_socket_close(strangers[--count]);
    }
}

/* PE 0 lacks something, or its answer cannot be sent, when PE 1 has said hello, also where others come and there is no
 * descriptor for them: PE 1 counts if it has an answer, and else comes again. */
void scene_fail_to_answer(void *argument)
{
    wefti_tree_site site = fake_site();
    wefti_link link;
    (void)argument;
    begin_talk();
    if (weft_sim_pe() == 0) {
        board.strangers = (size_t)weft_sim_random(CROWD_MAX + 1);
        board.has_begun = 1;
        wefti_tree_listeners root = fake_listen("root");
        /* Often it is an accept for which there is no descriptor: the fourth call and the eighth. */
        const uint64_t nth = weft_sim_random(2) == 0 ? weft_sim_random(9) : 4 + 4 * weft_sim_random(2);
        const int counts = step_behind_hello(&site, &root, nth, &link);
        weft_sim_sleep_ns(20 * MS_NS);
        if (counts != board.has_answer) {
            weft_sim_fail("PE 1 %s, and has %s answer", counts ? "counts" : "does not count",
                          board.has_answer ? "an" : "no");
        }
        if (counts) {
            wefti_link_fini(&link);
        }
        wefti_os_socket_stop(root.descriptors[0]);
        return;
    }
    wefti_tree_hello hello = fake_hello(1, 2);
    wefti_caller caller;
    say_hello_in_a_crowd(&caller, &site, &hello);
    const wefti_link_event event = fake_await(&caller.link, 5 * MS_NS);
    board.has_answer = event == WEFTI_LINK_FRAME && caller.link.in.type == WEFTI_FRAME_ANSWER;
    if (!board.has_answer && event != WEFTI_LINK_CLOSED) {
        weft_sim_fail("a hello had neither an answer nor an end");
    }
    weft_sim_sleep_ns(30 * MS_NS);
    wefti_caller_fini(&caller);
}

/* PE 1 hangs up when it has said hello, of which the system may tell PE 0 nothing when it answers; then it comes
 * again, and counts once. */
void scene_hang_up(void *argument)
{
    wefti_tree_hello said;
    wefti_link link;
    (void)argument;
    begin_talk();
    fake_far_port = 29000;
    wefti_tree_site site = fake_site();
    if (weft_sim_pe() == 0) {
        wefti_tree_listeners far = weft_sim_random(4) > 0 ? fake_listen_far() : fake_listen("root");
        if (step_behind_hello(&site, &far, 0, &link)) {
            weft_sim_fail("PE 1 counts, which has hung up");
        }
        board.has_answer = 1;
        if (!fake_accept(&site, &far, 0, S_NS, &link, &said)) {
            weft_sim_fail("PE 1 did not come again");
        }
        (void)fake_await(&link, S_NS);
        wefti_link_fini(&link);
        wefti_os_socket_stop(far.descriptors[0]);
        return;
    }
    wefti_tree_hello hello = fake_hello(1, 2);
    wefti_caller caller;
    say_hello(&caller, &site, &hello);
    wefti_caller_fini(&caller);
    board.is_said = 1;
    while (!board.has_answer) {
        weft_sim_sleep_ns(MS_NS);
    }
    fake_call(&site, &hello, 0, &site.root, &link);
    wefti_link_fini(&link);
}

/* ---- a lack of descriptors ---- */

/* Two connections come when there is no descriptor for them, so far apart that one lack of that length would be an
 * error. */
void scene_lack_descriptors_twice(void *argument)
{
    static wefti_tree tree;
    wefti_tree_site site = fake_site();
    wefti_link link;
    (void)argument;
    fake_calm(ROOM);
    if (weft_sim_pe() == 0) {
        const weft_status status = fake_open(&tree, &site, 0, 2, 3 * S_NS, NULL);
        if (status != WEFT_OK) {
            weft_sim_fail("PE 0: %s: %s", weft_status_name(status), weft_last_error());
        }
        wefti_tree_close(&tree);
        return;
    }
    for (int i = 0; i < 2; i++) {
        fake_sleep_until((100 + 700 * (uint64_t)i) * MS_NS);
        wefti_fault_arm(1, 1);
        const int descriptor = connect_silently();
        weft_sim_sleep_ns(50 * MS_NS);
        wefti_fault_arm(0, 0);
        wefti_os_socket_close(descriptor);
    }
    fake_join(&site, 1, 2, &link);
    wefti_link_fini(&link);
}
