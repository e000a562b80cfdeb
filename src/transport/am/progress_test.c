/* Goal: the thread that sleeps until the network has something is woken by a call that has looked meanwhile, where that
 * call leaves something to see to of which the network does not tell again, or one message comes soon after another;
 * and else it sleeps on.
 * Method: a wire that has what it is told to have, and a thread of which only its words in wefti_am are there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <string.h>

#include "os/socket.h"
#include "support/check.h"
#include "transport/am/am.h"

#define TRIES 1000

static wefti_am am;
static struct {
    int comes; /* at each look */
    int has_more;
    int is_full; /* so that it takes nothing */
} network;

/* ---- the wire ---- */

static int look(wefti_wire *wire, int channel)
{
    (void)wire;
    (void)channel;
    return network.comes;
}

static int has_more(const wefti_wire *wire)
{
    (void)wire;
    return network.has_more;
}

static int post(wefti_wire *wire, int channel, wefti_am_buffer *buffer)
{
    (void)wire;
    (void)channel;
    (void)buffer;
    return !network.is_full;
}

static wefti_wire_ops ops;

static int set_up(void **state)
{
    memset(&am, 0, sizeof am);
    memset(&network, 0, sizeof network);
    ops = (wefti_wire_ops){.poll = look, .post = post, .has_more = has_more};
    am.wire = (wefti_wire){.ops = &ops, .am = &am};
    am.requests_free = WEFTI_AM_WAITING_MAX;
    am.is_asleep = WEFTI_AM_SLEEPS;
    am.bell = wefti_os_bell_open();
    return check_begin(state) != 0 || am.bell < 0;
}

static int tear_down(void **state)
{
    wefti_os_socket_close(am.bell);
    return check_end(state);
}

static int has_rung(void)
{
    struct pollfd bell = {.fd = am.bell, .events = POLLIN};
    return poll(&bell, 1, 0) == 1;
}

/* Whether a look of that kind has woken the thread. */
static int wakes(int (*by)(wefti_am *am))
{
    am.is_asleep = WEFTI_AM_SLEEPS;
    wefti_os_bell_hush(am.bell);
    (void)by(&am);
    const int is_awake = am.is_asleep == WEFTI_AM_AWAKE;
    CHECK(is_awake == has_rung());
    return is_awake;
}

static void test_what_is_left(void **state)
{
    (void)state;
    int (*const by[])(wefti_am * am) = {wefti_am_poll, wefti_am_progress};
    static wefti_am_buffer buffer = {.role = WEFTI_AM_REQUEST_IN};
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        network.has_more = 0;
        CHECK(!wakes(by[i]));
        network.has_more = 1;
        CHECK(wakes(by[i]));
        ops.has_more = NULL; /* the wire never has */
        CHECK(!wakes(by[i]));
        ops.has_more = has_more;
        network.has_more = 0;
        network.is_full = 1;
        wefti_am_post(&am, &buffer);
        CHECK(wakes(by[i]));
        network.is_full = 0;
        CHECK(!wakes(by[i]));
    }
}

/* Who answers at once is answered at once: the thread is not to be switched to for each message. One message alone does
 * not wake it. */
static void test_one_after_another(void **state)
{
    (void)state;
    network.comes = 1;
    for (int tries = 0; tries < TRIES; tries++) {
        am.came_ns = 0;
        CHECK(!wakes(wefti_am_poll));
        if (wakes(wefti_am_poll)) {
            return;
        }
    }
    CHECK_SAY(0, "not woken"); /* nor was the processor taken away between all of them */
}

/* It sees to that itself when it has rested. */
static void test_a_thread_that_rests(void **state)
{
    (void)state;
    network.has_more = 1;
    am.is_asleep = WEFTI_AM_RESTS;
    (void)wefti_am_poll(&am);
    CHECK(am.is_asleep == WEFTI_AM_RESTS && !has_rung());
}

#define PROGRESS_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {PROGRESS_TEST(test_what_is_left), PROGRESS_TEST(test_one_after_another),
                                       PROGRESS_TEST(test_a_thread_that_rests)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
