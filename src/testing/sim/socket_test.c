/* Goal: simulated sockets keep what sockets promise, break everything else, and do so equally for equal seeds.
 * Method: PEs meet at one listener, each sends numbered bytes and reads its own back, over many seeds; the same seed
 * twice; a PE is killed, a connection cut, a socket left open, another used after its end, or after that of its other
 * end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "base/durations.h"
#include "os/os.h"
#include "os/socket.h"
#include "testing/sim/socket.h"
#include "weft_sim.h"

#define BYTES 3000

static struct sockaddr_un meeting_point(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "\0here"};
    return address;
}

static int listen_here(void)
{
    struct sockaddr_un address = meeting_point();
    int listener = wefti_os_socket_open(AF_UNIX);
    if (wefti_os_socket_bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        wefti_os_socket_listen(listener, 100) != 0) {
        weft_sim_fail("cannot listen: %s", strerror(errno));
    }
    return listener;
}

static int connect_here(void)
{
    struct sockaddr_un address = meeting_point();
    int descriptor = wefti_os_socket_open(AF_UNIX);
    while (wefti_os_socket_connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0) {
        if (errno != EAGAIN && errno != ECONNREFUSED) {
            weft_sim_fail("cannot connect: %s", strerror(errno));
        }
        wefti_os_sleep_ns(10000);
    }
    return descriptor;
}

static short await(int descriptor, short events)
{
    struct pollfd item = {.fd = descriptor, .events = events};
    while (wefti_os_socket_poll(&item, 1, WEFTI_SECOND_NS) < 0) {
    }
    return item.revents;
}

static int accept_here(int listener)
{
    int accepted;
    do {
        (void)await(listener, POLLIN);
        accepted = wefti_os_socket_accept(listener);
    } while (accepted < 0);
    return accepted;
}

static int is_passing(void)
{
    return errno == EAGAIN || errno == EINTR;
}

static void send_all(int descriptor, const unsigned char *bytes, size_t count)
{
    while (count > 0) {
        struct iovec part = {(void *)(uintptr_t)bytes, count};
        (void)await(descriptor, POLLOUT);
        ssize_t sent = wefti_os_socket_send(descriptor, &part, 1);
        if (sent < 0 && !is_passing()) {
            weft_sim_fail("cannot send: %s", strerror(errno));
        }
        bytes += sent > 0 ? sent : 0;
        count -= sent > 0 ? (size_t)sent : 0;
    }
}

/* Returns how many bytes came before the end, -1 after a reset. */
static ssize_t receive_all(int descriptor, unsigned char *bytes, size_t count)
{
    size_t got = 0;
    while (got < count) {
        (void)await(descriptor, POLLIN);
        ssize_t more = wefti_os_socket_receive(descriptor, bytes + got, count - got);
        if (more == 0 || (more < 0 && !is_passing())) {
            return more < 0 ? -1 : (ssize_t)got;
        }
        got += more > 0 ? (size_t)more : 0;
    }
    return (ssize_t)got;
}

/* ---- echo ---- */

/* Connections are accepted in any order, so each is served by what it sends. */
static void serve(int listener, int count)
{
    for (int i = 0; i < count; i++) {
        unsigned char bytes[BYTES];
        int accepted = accept_here(listener);
        ssize_t got = receive_all(accepted, bytes, sizeof bytes);
        send_all(accepted, bytes, got < 0 ? 0 : (size_t)got);
        wefti_os_socket_finish(accepted);
        if (receive_all(accepted, bytes, 1) != 0) {
            weft_sim_fail("bytes from nowhere");
        }
        wefti_os_socket_close(accepted);
    }
}

static void call(int pe)
{
    unsigned char sent[BYTES];
    unsigned char got[BYTES + 1];
    for (size_t i = 0; i < sizeof sent; i++) {
        sent[i] = (unsigned char)((size_t)pe * 31 + i);
    }
    int descriptor = connect_here();
    send_all(descriptor, sent, sizeof sent);
    if (receive_all(descriptor, got, sizeof got) != BYTES || memcmp(sent, got, BYTES) != 0) {
        weft_sim_fail("what came back differs");
    }
    wefti_os_socket_close(descriptor);
}

static void echo(void *argument)
{
    (void)argument;
    if (weft_sim_pe() > 0) {
        call(weft_sim_pe());
        return;
    }
    int listener = listen_here();
    serve(listener, weft_sim_pes() - 1);
    wefti_os_socket_close(listener);
}

static weft_sim_result run(uint64_t seed, int pes, void (*pe_main)(void *argument), weft_status wanted)
{
    weft_sim_result result;
    weft_sim_config config = WEFT_SIM_CONFIG_INIT;
    config.seed = seed;
    config.deadlock = WEFT_SIM_DEADLOCK_ADVANCE;
    config.silent = wanted != WEFT_OK;
    config.result = &result;
    assert_int_equal(weft_sim_run(&config, pes, pe_main, NULL), wanted);
    return result;
}

static void test_bytes_arrive_whole_and_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        (void)run(seed, 2 + (int)(seed % 5), echo, WEFT_OK);
    }
}

static void test_equal_seeds_give_equal_runs(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        weft_sim_result first = run(seed, 4, echo, WEFT_OK);
        weft_sim_result second = run(seed, 4, echo, WEFT_OK);
        weft_sim_result other = run(seed + 1000, 4, echo, WEFT_OK);
        assert_true(first.trace_hash == second.trace_hash);
        assert_true(first.trace_hash != other.trace_hash);
    }
}

/* ---- faults ---- */

static void be_killed(void *argument)
{
    unsigned char byte;
    (void)argument;
    if (weft_sim_pe() == 1) {
        (void)connect_here();
        weft_sim_sleep_ns(weft_sim_random(100000));
        weft_sim_kill(1);
    }
    int listener = listen_here();
    int accepted = accept_here(listener);
    if (receive_all(accepted, &byte, 1) > 0) {
        weft_sim_fail("a PE that is dead sends");
    }
    wefti_os_socket_close(accepted);
    wefti_os_socket_close(listener);
}

static void test_the_dead_hang_up(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        (void)run(seed, 2, be_killed, WEFT_OK);
    }
}

static void be_cut_off(void *argument)
{
    unsigned char byte;
    (void)argument;
    int is_server = weft_sim_pe() == 0;
    int listener = is_server ? listen_here() : -1;
    int descriptor = is_server ? accept_here(listener) : connect_here();
    if (is_server && weft_sim_cut(0) != 1) {
        weft_sim_fail("there was nothing to cut");
    }
    if (receive_all(descriptor, &byte, 1) != -1) {
        weft_sim_fail("a cut connection ended well");
    }
    wefti_os_socket_close(descriptor);
    if (is_server) {
        wefti_os_socket_close(listener);
    }
}

static void test_cuts_show_on_both_ends(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        (void)run(seed, 2, be_cut_off, WEFT_OK);
    }
}

/* PE 1 comes to the listener that it is shown. */
static void meet_visitor(int is_foreign)
{
    struct sockaddr_storage address;
    if (weft_sim_pe() == 0) {
        const int listener = listen_here();
        const int accepted = accept_here(listener);
        unsigned user;
        if (wefti_os_socket_is_own_user(accepted, &user) != !is_foreign) {
            weft_sim_fail("another user is taken for this one, or this for another");
        }
        wefti_os_socket_close(accepted);
        wefti_os_socket_close(listener);
        return;
    }
    socklen_t bytes;
    while ((bytes = wefti_sim_socket_find(&address)) == 0) {
        wefti_os_sleep_ns(10000);
    }
    const int descriptor = wefti_os_socket_open(address.ss_family);
    if (is_foreign) {
        wefti_sim_socket_disguise(descriptor);
    }
    while (wefti_os_socket_connect(descriptor, (const struct sockaddr *)&address, bytes) != 0) {
        if (errno != EAGAIN) {
            weft_sim_fail("cannot connect: %s", strerror(errno));
        }
        wefti_os_sleep_ns(10000);
    }
    unsigned char byte;
    (void)receive_all(descriptor, &byte, 1);
    wefti_os_socket_close(descriptor);
}

static void be_visited(void *argument)
{
    (void)argument;
    meet_visitor(0);
}

static void be_visited_by_another_user(void *argument)
{
    (void)argument;
    meet_visitor(1);
}

static void test_visitors_have_a_user(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        (void)run(seed, 2, be_visited, WEFT_OK);
        (void)run(seed, 2, be_visited_by_another_user, WEFT_OK);
    }
}

static void forget(void *argument)
{
    (void)argument;
    (void)wefti_os_socket_open(AF_UNIX);
}

static void close_twice(void *argument)
{
    (void)argument;
    int descriptor = wefti_os_socket_open(AF_UNIX);
    wefti_os_socket_close(descriptor);
    wefti_os_socket_close(descriptor);
}

static void test_misuse_is_told(void **state)
{
    (void)state;
    assert_non_null(strstr(run(1, 1, forget, WEFT_ERR_STATE).text, "left a socket open"));
    assert_non_null(strstr(run(1, 1, close_twice, WEFT_ERR_STATE).text, "descriptor 3"));
}

static void bind_twice(void *argument)
{
    (void)argument;
    struct sockaddr_un address = meeting_point();
    int listener = listen_here();
    int second = wefti_os_socket_open(AF_UNIX);
    if (wefti_os_socket_bind(second, (struct sockaddr *)&address, sizeof address) == 0 || errno != EADDRINUSE) {
        weft_sim_fail("a name was given twice");
    }
    wefti_os_socket_close(listener);
    if (wefti_os_socket_bind(second, (struct sockaddr *)&address, sizeof address) != 0) {
        weft_sim_fail("a name was not given back");
    }
    wefti_os_socket_close(second);
}

static void test_names_are_taken_once(void **state)
{
    (void)state;
    (void)run(1, 1, bind_twice, WEFT_OK);
    assert_int_equal(wefti_os_socket_open(AF_UNIX), -1); /* outside of a simulation there is no network */
}

/* ---- what is sent to nobody ---- */

static int is_over_tcp;

/* A connection of this PE to itself, whose accepted end is closed. */
static int connect_to_nobody(void)
{
    struct sockaddr_in far = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(4000)};
    struct sockaddr_un near = meeting_point();
    const struct sockaddr *address = is_over_tcp ? (struct sockaddr *)&far : (struct sockaddr *)&near;
    const socklen_t bytes = is_over_tcp ? sizeof far : sizeof near;
    int listener = wefti_os_socket_open(address->sa_family);
    int descriptor = wefti_os_socket_open(address->sa_family);
    if (wefti_os_socket_bind(listener, address, bytes) != 0 || wefti_os_socket_listen(listener, 1) != 0) {
        weft_sim_fail("cannot listen: %s", strerror(errno));
    }
    while (wefti_os_socket_connect(descriptor, address, bytes) != 0 && errno != EINPROGRESS) {
        wefti_os_sleep_ns(10000);
    }
    int accepted;
    while ((accepted = wefti_os_socket_accept(listener)) < 0) {
        if (wefti_os_socket_outcome(descriptor) != 0) { /* a connect is decided when its end is looked at */
            weft_sim_fail("cannot connect");
        }
        wefti_os_sleep_ns(10000);
    }
    wefti_os_socket_close(accepted);
    wefti_os_socket_stop(listener);
    return descriptor;
}

static void send_to_nobody(void *argument)
{
    char byte = 1;
    struct iovec part = {&byte, 1};
    (void)argument;
    wefti_sim_socket_calm(100);
    const int descriptor = connect_to_nobody();
    (void)await(descriptor, POLLIN);
    const ssize_t first = wefti_os_socket_send(descriptor, &part, 1);
    const ssize_t second = wefti_os_socket_send(descriptor, &part, 1);
    if (first != (is_over_tcp ? 1 : -1) || second != -1 || errno != EPIPE) {
        weft_sim_fail("to a closed end %zd and %zd bytes are sent", first, second);
    }
    if (!wefti_os_socket_is_over(descriptor)) {
        weft_sim_fail("a connection to a closed end is not over");
    }
    wefti_os_socket_close(descriptor);
}

static void test_what_is_sent_to_nobody_is_told_of(void **state)
{
    weft_sim_config config = WEFT_SIM_CONFIG_INIT;
    (void)state;
    for (is_over_tcp = 0; is_over_tcp < 2; is_over_tcp++) {
        assert_int_equal(weft_sim_run(&config, 1, send_to_nobody, NULL), WEFT_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_arrive_whole_and_in_order),
        cmocka_unit_test(test_equal_seeds_give_equal_runs),
        cmocka_unit_test(test_the_dead_hang_up),
        cmocka_unit_test(test_cuts_show_on_both_ends),
        cmocka_unit_test(test_visitors_have_a_user),
        cmocka_unit_test(test_misuse_is_told),
        cmocka_unit_test(test_names_are_taken_once),
        cmocka_unit_test(test_what_is_sent_to_nobody_is_told_of),
    };
    return cmocka_run_group_tests_name("sim_socket", tests, NULL, NULL);
}
