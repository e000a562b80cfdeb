/* Goal: the seam's sockets do not block, carry bytes both ways, and say what became of a connection.
 * Method: a listener and a connection over an abstract unix socket, and one over IPv6 or IPv4, in one thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/durations.h"
#include "os/os.h"
#include "os/socket.h"

typedef struct pair {
    int listener;
    int near;
    int far;
    struct sockaddr_storage address;
    socklen_t bytes;
} pair;

static short await(int descriptor, short events)
{
    struct pollfd item = {.fd = descriptor, .events = events};
    assert_int_equal(wefti_os_socket_poll(&item, 1, 10 * WEFTI_SECOND_NS), 1);
    return item.revents;
}

static void listen_at(pair *both, const void *address, socklen_t bytes)
{
    int family = ((const struct sockaddr *)address)->sa_family;
    both->listener = wefti_os_socket_open(family);
    assert_true(both->listener >= 0);
    assert_int_equal(wefti_os_socket_bind(both->listener, address, bytes), 0);
    assert_int_equal(wefti_os_socket_listen(both->listener, 4), 0);
    both->bytes = sizeof both->address;
    assert_int_equal(wefti_os_socket_name(both->listener, (struct sockaddr *)&both->address, &both->bytes), 0);
    assert_int_equal(wefti_os_socket_accept(both->listener), -1);
    assert_int_equal(errno, EAGAIN);
}

static void meet(pair *both)
{
    both->near = wefti_os_socket_open(both->address.ss_family);
    assert_true(both->near >= 0);
    if (wefti_os_socket_connect(both->near, (struct sockaddr *)&both->address, both->bytes) != 0) {
        assert_int_equal(errno, EINPROGRESS);
        assert_true(await(both->near, POLLOUT) & POLLOUT);
    }
    assert_int_equal(wefti_os_socket_outcome(both->near), 0);
    assert_true(await(both->listener, POLLIN) & POLLIN);
    both->far = wefti_os_socket_accept(both->listener);
    assert_true(both->far >= 0);
}

static void exchange_hello(int from, int to)
{
    char hello[] = "hel";
    char rest[] = "lo";
    char received[16] = "";
    struct iovec parts[2] = {{hello, 3}, {rest, 3}};
    assert_int_equal(wefti_os_socket_receive(to, received, sizeof received), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(wefti_os_socket_send(from, parts, 2), 6);
    assert_true(await(to, POLLIN) & POLLIN);
    assert_int_equal(wefti_os_socket_receive(to, received, sizeof received), 6);
    assert_string_equal(received, "hello");
}

static void disconnect(pair *both)
{
    char byte = 0;
    struct iovec one = {&byte, 1};
    wefti_os_socket_finish(both->near);
    assert_true(await(both->far, POLLIN) & POLLIN);
    assert_int_equal(wefti_os_socket_receive(both->far, &byte, 1), 0);
    assert_int_equal(wefti_os_socket_send(both->near, &one, 1), -1);
    assert_int_equal(errno, EPIPE); /* and no signal */
    wefti_os_socket_close(both->far);
    wefti_os_socket_close(both->near);
    wefti_os_socket_close(both->listener);
}

static void test_unix_sockets(void **state)
{
    (void)state;
    struct sockaddr any = {.sa_family = AF_UNIX};
    pair both;
    listen_at(&both, &any, sizeof any.sa_family);
    meet(&both);
    exchange_hello(both.near, both.far);
    exchange_hello(both.far, both.near);
    assert_true(wefti_os_socket_is_own_user(both.near, NULL));
    assert_true(wefti_os_socket_is_own_user(both.far, NULL));
    disconnect(&both);
}

static void test_internet_sockets(void **state)
{
    (void)state;
    struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in here;
    struct sockaddr_in there;
    socklen_t here_bytes = sizeof here;
    socklen_t there_bytes = sizeof there;
    pair both;
    listen_at(&both, &loopback, sizeof loopback);
    meet(&both);
    wefti_os_socket_hasten(both.near);
    exchange_hello(both.near, both.far);
    exchange_hello(both.far, both.near);
    assert_int_equal(wefti_os_socket_name(both.near, (struct sockaddr *)&here, &here_bytes), 0);
    assert_int_equal(wefti_os_socket_peer_name(both.far, (struct sockaddr *)&there, &there_bytes), 0);
    assert_int_equal(here.sin_port, there.sin_port);
    disconnect(&both);
}

static void test_refusals(void **state)
{
    (void)state;
    struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    pair both;
    listen_at(&both, &loopback, sizeof loopback);
    wefti_os_socket_close(both.listener);
    both.near = wefti_os_socket_open(AF_INET);
    int error = 0;
    if (wefti_os_socket_connect(both.near, (struct sockaddr *)&both.address, both.bytes) != 0) {
        error = errno;
    }
    if (error == EINPROGRESS) {
        (void)await(both.near, POLLOUT);
        error = wefti_os_socket_outcome(both.near);
    }
    assert_int_equal(error, ECONNREFUSED);
    wefti_os_socket_close(both.near);
}

static void test_cookies(void **state)
{
    (void)state;
    int first = wefti_os_socket_open(AF_INET);
    uint64_t cookie = wefti_os_socket_cookie(first);
    wefti_os_socket_close(first);
    int second = wefti_os_socket_open(AF_INET);
    assert_true(cookie != 0);
    assert_true(wefti_os_socket_cookie(second) != cookie);
    wefti_os_socket_close(second);
    assert_true(wefti_os_socket_cookie(second) == 0);
}

static void test_waits_end(void **state)
{
    (void)state;
    struct pollfd none = {.fd = -1, .events = POLLIN};
    uint64_t start_ns = wefti_os_now_ns();
    assert_int_equal(wefti_os_socket_poll(&none, 1, WEFTI_SECOND_NS / 50), 0);
    assert_true(wefti_os_now_ns() - start_ns >= WEFTI_SECOND_NS / 50);
}

static void test_port_users(void **state)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in at;
    pair both;
    unsigned user = UINT32_MAX;
    (void)state;
    listen_at(&both, &here, sizeof here);
    memcpy(&at, &both.address, sizeof at);
    assert_true(wefti_os_socket_port_user(ntohs(at.sin_port), &user));
    assert_int_equal(user, wefti_os_user());
    wefti_os_socket_close(both.listener);
    assert_false(wefti_os_socket_port_user(ntohs(at.sin_port), &user));
}

static void test_bells(void **state)
{
    (void)state;
    const int bell = wefti_os_bell_open();
    struct pollfd item = {.fd = bell, .events = POLLIN};
    assert_true(bell > STDERR_FILENO);
    wefti_os_bell_hush(bell); /* it has not been rung, and does not block */
    assert_int_equal(wefti_os_socket_poll(&item, 1, 0), 0);
    for (int i = 0; i < 2; i++) {
        wefti_os_bell_ring(bell);
        wefti_os_bell_ring(bell);
        assert_int_equal(wefti_os_socket_poll(&item, 1, WEFTI_SECOND_NS), 1);
        wefti_os_bell_hush(bell);
        assert_int_equal(wefti_os_socket_poll(&item, 1, 0), 0);
    }
    wefti_os_socket_close(bell);
    wefti_os_bell_ring(-1);
    wefti_os_bell_hush(-1);
#ifdef WEFT_FAULTS
    wefti_fault_arm(1, 1);
    assert_int_equal(wefti_os_bell_open(), -1);
    wefti_fault_arm(0, 0);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unix_sockets), cmocka_unit_test(test_internet_sockets), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_cookies),      cmocka_unit_test(test_waits_end),        cmocka_unit_test(test_port_users),
        cmocka_unit_test(test_bells),
    };
    return cmocka_run_group_tests_name("socket", tests, NULL, NULL);
}
