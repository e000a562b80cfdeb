/* Goal: who waits for PE 0's first answer gives up soon where nothing comes, but not because other programs have the
 * processor: time in which this PE could not look does not count, up to a limit.
 * Method: a wire that answers at a certain look, or never, and whose looks take as long as on a machine in use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/durations.h"
#include "support/am_rig.h"
#include "support/check.h"
#include "transport/am/am.h"

#define WORLD 7
#define PATIENCE_NS (100 * WEFTI_MILLISECOND_NS)
#define NEVER UINT32_MAX

static struct {
    uint64_t look_ns; /* each takes so long */
    uint32_t looks_left; /* until the answer */
    wefti_am_header asked;
} network;

static wefti_am am;
static wefti_am_peer peers[2];

/* ---- the wire ---- */

static wefti_wire_answer take(wefti_wire *wire, int channel, wefti_am_buffer *buffer)
{
    (void)wire;
    (void)channel;
    network.asked = *buffer->header;
    wefti_am_completed(&am, buffer, 0);
    return WEFTI_WIRE_TAKEN;
}

static int look(wefti_wire *wire, int channel)
{
    (void)wire;
    if (channel != WEFTI_WIRE_REPLIES) {
        return 0;
    }
    wefti_os_sleep_ns(network.look_ns);
    if (network.looks_left == NEVER || network.looks_left-- > 0) {
        return 0;
    }
    const wefti_am_header reply = {
        .world = WORLD, .from = 0, .kind = WEFTI_AM_DONE, .request = network.asked.request, .credits = 1};
    wefti_am_take_reply(&am, &reply, sizeof reply);
    return 1;
}

static int can_sleep(wefti_wire *wire)
{
    (void)wire;
    return 0;
}

static void name(const wefti_wire *wire, char *text, size_t bytes)
{
    (void)wire;
    (void)snprintf(text, bytes, "a network");
}

static const wefti_wire_ops ops = {
    .send = take, .poll = look, .can_sleep = can_sleep, .name = name, .remedy = "otherwise"};

/* How the probe of PE 0 ends, and after how long. */
static weft_status probe(uint64_t look_ns, uint32_t looks, uint64_t limit_ns, uint64_t *taken_ns)
{
    const wefti_transport_setup setup = {.world = WORLD, .pe = 1, .pes = 2};
    network.look_ns = look_ns;
    network.looks_left = looks;
    assert_true(am_rig_open(&am, peers, &setup, &ops, 1));
    const uint64_t start_ns = wefti_os_now_ns();
    weft_status status = wefti_am_probe(&am, 0, PATIENCE_NS, start_ns + limit_ns);
    *taken_ns = wefti_os_now_ns() - start_ns;
    am_rig_close(&am);
    return status;
}

static void test_an_answer(void **state)
{
    (void)state;
    uint64_t taken_ns;
    CHECK_OK(probe(0, 3, 60000 * WEFTI_MILLISECOND_NS, &taken_ns));
}

/* It comes after three times as long as there is patience, all of which others took. */
static void test_a_machine_in_use(void **state)
{
    (void)state;
    uint64_t taken_ns;
    CHECK_OK(probe(30 * WEFTI_MILLISECOND_NS, 10, 60000 * WEFTI_MILLISECOND_NS, &taken_ns));
    CHECK_SAY(taken_ns > 3 * PATIENCE_NS, "after %d ms", (int)(taken_ns / WEFTI_MILLISECOND_NS));
}

static void test_no_answer(void **state)
{
    (void)state;
    uint64_t taken_ns;
    CHECK_STATUS(probe(0, NEVER, 600000 * WEFTI_MILLISECOND_NS, &taken_ns), WEFT_ERR_UNREACHABLE);
    CHECK_SAY(taken_ns >= PATIENCE_NS, "after %d ms", (int)(taken_ns / WEFTI_MILLISECOND_NS));
    CHECK_STATUS(probe(30 * WEFTI_MILLISECOND_NS, NEVER, 4 * PATIENCE_NS, &taken_ns), WEFT_ERR_UNREACHABLE);
    CHECK_SAY(taken_ns >= 4 * PATIENCE_NS, "before the limit, after %d ms", (int)(taken_ns / WEFTI_MILLISECOND_NS));
    CHECK(strstr(weft_last_error(), "PE 1 gets no answer from PE 0 by way of a network") != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(test_an_answer), CHECKED_TEST(test_a_machine_in_use),
                                       CHECKED_TEST(test_no_answer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
