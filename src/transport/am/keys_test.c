/* Goal: the keys by which PEs put and get large blocks follow heaps that grow: a heap that grows often, by little, has
 * few registrations, which leave little of it out; who lacks a key asks for it at its first use, and goes by message
 * where the answer does not cover what it wants; and an answer that comes late takes nothing back.
 * Method: a wire that counts what is registered, asked and moved, and answers with keys of as much memory as the test
 * says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "os/os.h"
#include "support/am_rig.h"
#include "support/check.h"
#include "transport/am/am.h"
#include "weft/protocol/layout.h"

#define PAGE UINT64_C(4096)
#define ASK_AGAIN_NS UINT64_C(150000000) /* after so long a key that was too short is asked for again */
#define BLOCK_BYTES ((size_t)20000) /* two messages, or one write */

static wefti_am am;
static wefti_am_peer peers[2];
static _Alignas(4096) unsigned char slot[4096];
static unsigned char block[BLOCK_BYTES];
static wefti_transport transport;
static struct {
    int refuses; /* to register */
    uint64_t told_bytes; /* of the other PE's memory */
    uint64_t learnt_bytes; /* what another thread has learnt when the answer comes; 0: nothing */
    int is_asked; /* and has not answered */
    wefti_am_header request;
    int asks;
    int messages;
    int moves;
    wefti_am_buffer *moved;
} wire;

/* ---- the wire ---- */

static int share(wefti_wire *of, void *from, size_t bytes, wefti_wire_range *range)
{
    (void)of;
    CHECK(from == slot + PAGE && bytes > 0);
    range->registration = NULL;
    return !wire.refuses;
}

static wefti_wire_answer take(wefti_wire *of, int channel, wefti_am_buffer *buffer)
{
    (void)of;
    (void)channel;
    if (buffer->header->kind == WEFTI_AM_KEY) {
        wire.request = *buffer->header;
        wire.is_asked = 1;
        wire.asks++;
    } else {
        CHECK(buffer->header->kind == WEFTI_AM_PUT);
        wire.messages++;
    }
    wefti_am_completed(&am, buffer, 0);
    return WEFTI_WIRE_TAKEN;
}

static wefti_wire_answer move(wefti_wire *of, wefti_am_buffer *op, const wefti_wire_piece *piece)
{
    (void)of;
    CHECK_SAY(piece->offset + piece->bytes <= piece->keys[0].key, "a write to %llu by a key of %llu bytes",
              (unsigned long long)piece->offset, (unsigned long long)piece->keys[0].key);
    wire.moves++;
    wire.moved = op;
    return WEFTI_WIRE_TAKEN;
}

/* A key says how much it is of. */
static void answer(void)
{
    static _Alignas(8) unsigned char reply[sizeof(wefti_am_header) + sizeof(wefti_am_key)];
    wefti_am_header header = wire.request;
    wefti_am_key key;
    memset(&key, 0, sizeof key);
    key.first = PAGE;
    key.bytes = wire.told_bytes;
    key.told[0].at.key = wire.told_bytes;
    if (wire.learnt_bytes > 0) {
        peers[1].range.first = PAGE;
        peers[1].range.bytes = peers[1].range.keys[0].key = wire.learnt_bytes;
    }
    header.from = 1;
    header.kind = WEFTI_AM_DATA;
    header.credits = 1;
    header.bytes = sizeof key;
    memcpy(reply, &header, sizeof header);
    memcpy(reply + sizeof header, &key, sizeof key);
    wire.is_asked = 0;
    wefti_am_take_reply(&am, (const wefti_am_header *)(const void *)reply, sizeof reply);
}

static int look(wefti_wire *of, int channel)
{
    (void)of;
    const int happens = channel == WEFTI_WIRE_REPLIES && wire.is_asked;
    if (happens) {
        answer();
    }
    return happens;
}

static int can_sleep(wefti_wire *of)
{
    (void)of;
    return 1;
}

static const wefti_wire_ops ops = {.send = take, .move = move, .poll = look, .can_sleep = can_sleep, .share = share};

static void set_reserved(uint64_t bytes)
{
    wefti_control *control = (wefti_control *)(void *)slot;
    control->reserved = bytes;
}

static int set_up(void **state)
{
    const wefti_transport_setup setup = {
        .world = 1, .pes = 2, .deadline_ns = UINT64_C(20000000000), .pe = 0, .slot = slot};
    memset(&wire, 0, sizeof wire);
    set_reserved(PAGE);
    if (check_begin(state) != 0 || !am_rig_open(&am, peers, &setup, &ops, WEFTI_AM_REQUESTS_OUT)) {
        return 1;
    }
    am.wire.rma = WEFTI_WIRE_RMA_ORDERED;
    am.rma_bytes_min = 512;
    transport = (wefti_transport){.setup = am.setup, .state = &am};
    return 0;
}

static int tear_down(void **state)
{
    CHECK(am.requests_free == WEFTI_AM_WAITING_MAX && am.free_rma_count == WEFTI_AM_RMA_MAX);
    am_rig_close(&am);
    return check_end(state);
}

/* ---- a heap that grows ---- */

/* Whatever it has grown to, an eighth of what is registered at most is not. */
static void test_few_registrations(void **state)
{
    (void)state;
    const uint64_t most = UINT64_C(1) << 30;
    uint32_t allowed = 32; /* the first growths have one each */
    for (uint64_t covered = 32 * PAGE; covered < most; covered += covered / 8) {
        allowed++;
    }
    uint64_t left_out = 0;
    for (uint64_t reserved = 2 * PAGE; reserved <= most; reserved += PAGE) {
        set_reserved(reserved);
        const wefti_am_range *range = wefti_am_rma_share(&am);
        if (!CHECK(range != NULL && range->first == PAGE && range->bytes <= reserved - PAGE)) {
            return;
        }
        const uint64_t behind = reserved - range->first - range->bytes;
        left_out += behind > (range->first + range->bytes) / 8;
        left_out += am.range_count < 32 && behind != 0;
    }
    CHECK_SAY(left_out == 0, "%llu times much of the heap was left out", (unsigned long long)left_out);
    CHECK_SAY(am.range_count <= allowed, "%u registrations, %u would do", am.range_count, allowed);
    CHECK(am.range_count > 32);
}

/* What cannot be registered takes nothing from what is, and is tried again. */
static void test_refused(void **state)
{
    (void)state;
    set_reserved(2 * PAGE);
    wire.refuses = 1;
    CHECK(wefti_am_rma_share(&am) == NULL);
    wire.refuses = 0;
    const wefti_am_range *first = wefti_am_rma_share(&am);
    CHECK(first != NULL && first->bytes == PAGE);
    set_reserved(10 * PAGE);
    wire.refuses = 1;
    CHECK(wefti_am_rma_share(&am) == first && am.range_count == 1);
    wire.refuses = 0;
    const wefti_am_range *second = wefti_am_rma_share(&am);
    CHECK(second != NULL && second->bytes == 9 * PAGE && am.range_count == 2);
}

/* ---- another PE's ---- */

/* A put that goes by so many writes and messages, and for which the PE is asked so often. */
static void put_at(uint64_t offset, int moves, int messages, int asks)
{
    const int had[] = {wire.moves, wire.messages, wire.asks};
    CHECK_OK(wefti_am_put(&transport, 1, offset, block, sizeof block));
    CHECK_SAY(wire.moves - had[0] == moves && wire.messages - had[1] == messages && wire.asks - had[2] == asks,
              "a put to %llu: %d writes, %d messages, asked %d times", (unsigned long long)offset, wire.moves - had[0],
              wire.messages - had[1], wire.asks - had[2]);
    if (wire.moved != NULL) {
        wefti_am_completed(&am, wire.moved, 0);
        wire.moved = NULL;
    }
}

static void test_asked_at_first_use(void **state)
{
    (void)state;
    const uint64_t first_bytes = UINT64_C(1) << 20;
    for (int growth = 0; growth < 4; growth++) {
        wire.told_bytes = first_bytes << growth;
        const uint64_t last = PAGE + wire.told_bytes - BLOCK_BYTES; /* where the last block begins */
        put_at(last, 1, 0, 1);
        put_at(last - 5, 1, 0, 0);
        put_at(PAGE, 1, 0, 0);
        put_at(last + 1, 0, 2, 0); /* it was asked a moment ago */
        wefti_os_sleep_ns(ASK_AGAIN_NS);
        put_at(last + 1, 0, 2, 1); /* and has no more */
        put_at(last, 1, 0, 0);
        wefti_os_sleep_ns(ASK_AGAIN_NS);
    }
    put_at(PAGE - 1, 0, 2, 0); /* words of the PE alone */
}

static void test_none_to_be_had(void **state)
{
    (void)state;
    put_at(PAGE, 0, 2, 1);
    put_at(PAGE, 0, 2, 0);
    wefti_os_sleep_ns(ASK_AGAIN_NS);
    wire.told_bytes = UINT64_C(1) << 20;
    put_at(PAGE, 1, 0, 1);
}

/* Two threads have asked, and the one whose answer is older takes it up last. */
static void test_a_late_answer(void **state)
{
    (void)state;
    wire.told_bytes = UINT64_C(1) << 20;
    wire.learnt_bytes = UINT64_C(4) << 20;
    put_at(PAGE, 1, 0, 1);
    CHECK(peers[1].range.bytes == wire.learnt_bytes);
    put_at(PAGE + wire.told_bytes, 1, 0, 0);
    wire.told_bytes = 0; /* it cannot register any more */
    wefti_os_sleep_ns(ASK_AGAIN_NS);
    put_at(PAGE + wire.learnt_bytes, 0, 2, 1);
    put_at(PAGE + wire.learnt_bytes - BLOCK_BYTES, 1, 0, 0);
}

#define KEYS_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        KEYS_TEST(test_few_registrations), KEYS_TEST(test_refused),       KEYS_TEST(test_asked_at_first_use),
        KEYS_TEST(test_none_to_be_had),    KEYS_TEST(test_a_late_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
