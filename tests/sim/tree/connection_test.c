/* Goal: a connection is kept only with who may be at its other end, for as long as that is worth while, and ends in a
 * way that loses nothing.
 * Method: other ends are played (fake_net.h): one that is silent, one that is so beside PE 0, one that the network does
 * not trust, one that refuses, takes a connection and refuses again, one that sends back what it hears, one that was
 * not heard. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/error.h"
#include "bootstrap/tree/handshake.h"
#include "os/os.h"
#include "os/socket.h"
#include "sim/tree/fake_net.h"

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

static void be_silent(void *argument)
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

static void test_silent_strangers_go(void **state)
{
    (void)state;
    fake_run(2, be_silent);
}

/* ---- a silent address beside another ---- */

#define SLOW_NS (3 * S_NS)

/* Somebody has PE 0's port and says nothing. PE 0 comes to its name when PE 1 is at that port, and is slow: PE 1 is
 * with PE 0 from then on, whatever it tries besides, and hears at once what PE 0 says at last. */
static void be_silent_elsewhere(void *argument)
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

static void test_silence_elsewhere(void **state)
{
    (void)state;
    fake_run(2, be_silent_elsewhere);
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

static void be_foreign(void *argument)
{
    (void)argument;
    distrust(WEFTI_TREE_FOREIGN, WEFT_ERR_TIMEOUT);
}

static void be_unknown(void *argument)
{
    (void)argument;
    distrust(WEFTI_TREE_UNKNOWN, WEFT_ERR_AUTHENTICATION);
}

static void test_no_proof_for_who_is_not_trusted(void **state)
{
    (void)state;
    fake_run(2, be_foreign);
    fake_run(2, be_unknown);
}

/* ---- an address that refuses, connects, and refuses again ---- */

/* All within the half second for which an address must refuse before nobody is believed to listen there. */
static void come_and_go(void *argument)
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

static void test_refusals_are_forgotten(void **state)
{
    (void)state;
    fake_run(2, come_and_go);
}

/* ---- an end that loses nothing ---- */

/* PE 0 closes a connection on which something came that it has not read: PE 1 reads what PE 0 said last, and an end,
 * not a reset, which elsewhere would throw away what is still on its way. */
static void end_unread(void *argument)
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

static void test_nothing_is_reset(void **state)
{
    (void)state;
    fake_run(2, end_unread);
}

/* ---- what was sealed comes back ---- */

static void hear_oneself(void *argument)
{
    static const char body[] = "what PE 1 says";
    wefti_sodium sodium = {0};
    wefti_tree_site site = fake_site();
    wefti_tree_handshake handshake = {.accepting_pe = 0, .hello = fake_hello(1, 2)};
    wefti_link link;
    (void)argument;
    fake_calm(ROOM);
    if (weft_sim_pe() == 0) {
        unsigned char bytes[512];
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
    if (wefti_sodium_open(&sodium) != WEFT_OK) {
        weft_sim_fail("no libsodium");
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

static void test_own_words_are_no_answer(void **state)
{
    wefti_sodium sodium = {0};
    (void)state;
    if (wefti_sodium_open(&sodium) != WEFT_OK) {
        print_message("no libsodium: nothing is sealed\n");
        skip();
    }
    wefti_sodium_close(&sodium);
    fake_run(2, hear_oneself);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silent_strangers_go),
        cmocka_unit_test(test_silence_elsewhere),
        cmocka_unit_test(test_no_proof_for_who_is_not_trusted),
        cmocka_unit_test(test_refusals_are_forgotten),
        cmocka_unit_test(test_nothing_is_reset),
        cmocka_unit_test(test_own_words_are_no_answer),
    };
    (void)setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
