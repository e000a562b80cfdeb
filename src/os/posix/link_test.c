/* Goal: a link that carries data, and of which the kernel has not said that it is up, is waited for; one without a
 * carrier or an address is not. All are named.
 * Method: a pair of virtual interfaces in a network namespace of this test's own, one of which stays dormant, as the
 * kernel calls it, until it is told to be up. Skips where there is no such namespace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/durations.h"
#include "os/os.h"
#include "os/socket.h"
#include "support/check.h"

#define FOR_EVER (3600000 * WEFTI_MILLISECOND_NS)

static int run(const char *command)
{
    return system(command) == 0; /* NOLINT: fixed commands */
}

/* Whether `link` is there, and the only one that is waited for. */
static int is_coming(const char *link)
{
    char name[WEFTI_OS_LINK_BYTES];
    return wefti_os_link_is_coming(name) && strcmp(name, link) == 0;
}

static int none_is_coming(void)
{
    char name[WEFTI_OS_LINK_BYTES];
    return !wefti_os_link_is_coming(name);
}

static void test_names(void **state)
{
    (void)state;
    char all[64];
    char part[4];
    wefti_os_link_list(all, sizeof all);
    CHECK(strncmp(all, "lo, ", 4) == 0 && strstr(all, "weft0") != NULL && strstr(all, "weft1") != NULL);
    wefti_os_link_list(part, sizeof part);
    CHECK(strcmp(part, "lo,") == 0);
}

static void test_a_link(void **state)
{
    (void)state;
    CHECK(none_is_coming());
    CHECK(run("ip link set weft0 up"));
    CHECK(none_is_coming()); /* no carrier: the other end is not there, and may never be */
    const uint64_t start_ns = wefti_os_now_ns();
    CHECK(run("ip link set weft1 up"));
    CHECK(is_coming("weft0"));
    wefti_os_link_await(100 * WEFTI_MILLISECOND_NS);
    CHECK(is_coming("weft0") && wefti_os_now_ns() - start_ns >= 100 * WEFTI_MILLISECOND_NS);

    const pid_t child = fork();
    if (child == 0) {
        wefti_os_sleep_ns(200 * WEFTI_MILLISECOND_NS);
        check_exit(!run("ip link set weft0 state up"));
    }
    wefti_os_link_await(FOR_EVER);
    CHECK(none_is_coming() && wefti_os_now_ns() - start_ns >= 200 * WEFTI_MILLISECOND_NS);
    int how = -1;
    CHECK(waitpid(child, &how, 0) == child && how == 0);
    CHECK(run("ip link set weft0 down") && none_is_coming());
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(test_names), CHECKED_TEST(test_a_link)};
    if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0 ||
        !run("ip link add weft0 type veth peer name weft1 && ip addr add 10.213.96.1/24 dev weft0 && "
             "ip link set weft0 mode dormant")) {
        print_message("links need root, namespaces and iproute2\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
