/* Goal: a listener's port is found, and a socket that has none is not taken for one that has.
 * Method: a TCP listener on loopback, and a unix socket, the first bytes of whose name lie where a port would. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

#include "bootstrap/tcp/listen.h"
#include "os/socket.h"

static void test_port_of(void **state)
{
    static const wefti_tcp_address loopback = {.family = 4, .bytes = {127, 0, 0, 1}};
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    (void)state;
    int tcp = wefti_tcp_listen(&loopback, 0, WEFTI_TCP_PORT_OWN);
    assert_true(tcp >= 0);
    assert_int_not_equal(wefti_tcp_port_of(tcp), 0);
    wefti_os_socket_close(tcp);

    int near = wefti_os_socket_open(AF_UNIX);
    assert_true(near >= 0);
    int used = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "weft/listen_test/%d", (int)getpid());
    assert_int_equal(wefti_os_socket_bind(near, (const struct sockaddr *)&name,
                                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)used)),
                     0);
    assert_int_equal(wefti_tcp_port_of(near), 0);
    assert_int_equal(errno, EAFNOSUPPORT);
    wefti_os_socket_close(near);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_port_of)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
