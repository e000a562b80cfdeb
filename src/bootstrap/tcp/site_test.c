/* Goal: a socket that has reached itself is not taken for another PE.
 * Method: a TCP socket that is bound to a port of loopback, and connected to that port, where nobody listens; and one
 * that is connected to a listener. */
#include "bootstrap/tcp/site.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* A blocking socket at a free port of loopback, whose address it writes. */
static int bind_anywhere(struct sockaddr_in *address)
{
    socklen_t bytes = sizeof *address;
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_true(descriptor >= 0);
    assert_int_equal(bind(descriptor, (const struct sockaddr *)address, sizeof *address), 0);
    assert_int_equal(getsockname(descriptor, (struct sockaddr *)address, &bytes), 0);
    return descriptor;
}

static wefti_tree_trust admit(int descriptor)
{
    wefti_tcp_site tcp = {.has_secret = 1};
    tcp.site.state = &tcp;
    return wefti_tcp_site_admit(&tcp.site, descriptor);
}

static void test_own_echo(void **state)
{
    struct sockaddr_in address;
    (void)state;
    int echo = bind_anywhere(&address);
    assert_int_equal(connect(echo, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(admit(echo), WEFTI_TREE_FOREIGN);
    (void)close(echo);
}

static void test_other(void **state)
{
    struct sockaddr_in address;
    struct sockaddr_in own;
    (void)state;
    int listener = bind_anywhere(&address);
    int caller = bind_anywhere(&own);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(connect(caller, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(admit(caller), WEFTI_TREE_TRUSTED);
    (void)close(caller);
    (void)close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_own_echo), cmocka_unit_test(test_other)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
