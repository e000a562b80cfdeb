/* Goal: puts that follow one another at once go in one message; one that comes after a wait does not, for it may be
 * what the other PE waits for, and the thread need not be woken to send it.
 * Method: a wire that counts the messages that it is given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "support/check.h"
#include "transport/am/am.h"

#define PUTS 10
#define TRIES 1000
#define BUFFERS 4

static wefti_am am;
static wefti_am_peer peers[2];
static unsigned char memory[BUFFERS][WEFTI_AM_MESSAGE_MAX];
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
    static const unsigned alone = 1;
    memset(&am, 0, sizeof am);
    memset(peers, 0, sizeof peers);
    memset(&sent, 0, sizeof sent);
    am.setup.pes = 2;
    am.setup.pes_per_core = &alone;
    am.wire = (wefti_wire){.ops = &ops, .am = &am};
    am.peers = peers;
    peers[1].is_known = 1;
    peers[1].credits = WEFTI_AM_CREDITS_MAX;
    for (int i = 0; i < BUFFERS; i++) {
        am.buffers[i] = (wefti_am_buffer){
            .role = WEFTI_AM_REQUEST_OUT, .header = (wefti_am_header *)(void *)memory[i], .next = am.free_out};
        am.free_out = &am.buffers[i];
        am.free_out_count++;
    }
    return check_begin(state) != 0 || wefti_os_monitor_create(&am.lock) != WEFT_OK;
}

static int tear_down(void **state)
{
    wefti_os_monitor_destroy(am.lock);
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
