/* Goal: puts that follow one another at once go in one message; one that comes after a wait does not, for it may be
 * what the other PE waits for, and the thread need not be woken to send it.
 * Method: a wire that counts the messages that it is given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "support/am_rig.h"
#include "support/check.h"
#include "transport/am/am.h"

#define PUTS 10
#define TRIES 1000
#define BUFFERS 4

static wefti_am am;
static wefti_am_peer peers[2];
static struct {
    uint32_t messages;
    uint8_t kind; /* of the last one */
} sent;

/* ---- the wire ---- */

static wefti_wire_answer take(wefti_wire *wire, int channel, wefti_am_buffer *buffer)
{
    (void)wire;
    (void)channel;
    sent.messages++;
    sent.kind = buffer->header->kind;
    wefti_am_completed(&am, buffer, 0);
    return WEFTI_WIRE_TAKEN;
}

static int look(wefti_wire *wire, int channel)
{
    (void)wire;
    (void)channel;
    return 0;
}

static const wefti_wire_ops ops = {.send = take, .poll = look};

static int set_up(void **state)
{
    const wefti_transport_setup setup = {.pes = 2};
    memset(&sent, 0, sizeof sent);
    return check_begin(state) != 0 || !am_rig_open(&am, peers, &setup, &ops, BUFFERS);
}

static int tear_down(void **state)
{
    am_rig_close(&am);
    return check_end(state);
}

static void put(void)
{
    static const uint64_t word = 1;
    wefti_transport transport = {.setup = am.setup, .state = &am};
    CHECK_OK(wefti_am_put(&transport, 1, 4096, &word, sizeof word));
}

static void wait_a_little(void)
{
    wefti_os_monitor_enter(am.lock);
    CHECK(!wefti_am_poll(&am));
    wefti_os_monitor_leave(am.lock);
}

/* The first goes by itself, those behind it together. The second comes too late for that where others had the
 * processor: then it is a first one. */
static void test_many(void **state)
{
    (void)state;
    for (int tries = 0; tries < TRIES && am.gathering == NULL; tries++) {
        put();
    }
    const uint32_t alone = sent.messages;
    CHECK(am.gathering != NULL && alone > 0 && sent.kind == WEFTI_AM_PUT);
    for (int i = 0; i < PUTS; i++) {
        put();
    }
    CHECK_SAY(sent.messages == alone, "%u messages before anybody waits", sent.messages - alone);
    wait_a_little();
    CHECK_SAY(sent.messages == alone + 1, "%u messages", sent.messages - alone);
    CHECK(sent.kind == WEFTI_AM_PUTS);
}

static void test_one_after_each_wait(void **state)
{
    (void)state;
    for (uint32_t i = 1; i <= PUTS; i++) {
        put();
        CHECK_SAY(sent.messages == i && am.gathering == NULL, "%u messages after %u puts", sent.messages, i);
        wait_a_little();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_many, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_one_after_each_wait, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
