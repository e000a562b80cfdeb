/* Goal: what comes in rings is handed on once and in the order of its requests. A request whose turn has not come, for
 * one before it comes as a message, waits in its slot and holds no buffer: the buffers in which such requests waited
 * could be all that there are to receive the one before them. What is left in a ring is known to be there.
 * Method: requests are written into the rings of two PEs, and the message before them is served late. */
#include "transport/ofi/ring_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "support/check.h"
#include "weft/protocol/layout.h"

#define PES 3
#define WORLD 7
#define BUFFERS 20 /* of which 16 are kept for rings */
#define KEPT 16
#define LAPS 3

static wefti_am am;
static wefti_am_peer peers[PES];
static wefti_ring_reader reader;
static _Alignas(4096) unsigned char slot[4096];
static _Alignas(64) unsigned char memory[BUFFERS][WEFTI_AM_MESSAGE_MAX];
static wefti_am_buffer *posted; /* to receive messages */
static uint64_t written[PES];

/* ---- the wire ---- */

static int post(wefti_wire *wire, int channel, wefti_am_buffer *buffer)
{
    (void)wire;
    if (!wefti_ring_reader_keep(&reader, channel, buffer)) {
        buffer->next = posted;
        posted = buffer;
    }
    return 1;
}

static const wefti_wire_ops ops = {.post = post};

static int set_up(void **state)
{
    memset(&am, 0, sizeof am);
    memset(peers, 0, sizeof peers);
    memset(&reader, 0, sizeof reader);
    memset(written, 0, sizeof written);
    posted = NULL;
    am.setup.world = WORLD;
    am.setup.pes = PES;
    am.setup.slot = slot;
    am.wire = (wefti_wire){.ops = &ops, .am = &am};
    am.peers = peers;
    if (check_begin(state) != 0 || !wefti_ring_reader_init(&reader, PES)) {
        return -1;
    }
    for (int pe = 1; pe < PES; pe++) {
        peers[pe].is_known = 1;
        wefti_ring_reader_add(&reader, pe);
    }
    for (int i = 0; i < BUFFERS; i++) {
        am.buffers[i] = (wefti_am_buffer){.role = WEFTI_AM_REQUEST_IN, .header = (wefti_am_header *)(void *)memory[i]};
        wefti_am_post(&am, &am.buffers[i]);
    }
    return 0;
}

static int tear_down(void **state)
{
    wefti_ring_reader_fini(&reader);
    return check_end(state);
}

static wefti_am_header request(int pe, uint32_t number, wefti_am_kind kind)
{
    return (wefti_am_header){.world = WORLD, .from = (uint32_t)pe, .kind = (uint8_t)kind, .number = number};
}

static void write_bytes(int pe, const void *message, size_t bytes)
{
    wefti_ring_write write;
    wefti_ring *ring = wefti_ring_reader_rings(&reader, WEFTI_WIRE_REQUESTS) + pe;
    wefti_ring_pack(&write, written[pe]++, message, bytes);
    memcpy((unsigned char *)ring + write.offset, write.from, write.bytes);
}

static void write_request(int pe, uint32_t number, wefti_am_kind kind)
{
    const wefti_am_header header = request(pe, number, kind);
    write_bytes(pe, &header, sizeof header);
}

/* It comes by another way than the ring. */
static void serve_message(int pe, uint32_t number)
{
    wefti_am_buffer *buffer = posted;
    posted = buffer->next;
    *buffer->header = request(pe, number, WEFTI_AM_PUT);
    wefti_am_serve(&am, buffer, sizeof *buffer->header);
}

static int take(void)
{
    return wefti_ring_reader_take(&reader, &am, WEFTI_WIRE_REQUESTS);
}

static int has_more(void)
{
    return wefti_ring_reader_has_more(&reader, &am);
}

/* ---- tests ---- */

static void test_early(void **state)
{
    (void)state;
    for (uint32_t number = 1; number <= KEPT + 4; number++) {
        write_request(1, number, WEFTI_AM_PUT);
    }
    CHECK(!take() && peers[1].taken == 0 && peers[1].early == NULL);
    CHECK(reader.kept_count[WEFTI_WIRE_REQUESTS] == KEPT);
    CHECK(!has_more()); /* the provider will tell of the message: until then this PE may sleep */

    write_request(2, 0, WEFTI_AM_PUT); /* another PE's need not wait */
    CHECK(has_more() && take() && peers[2].taken == 1);
    CHECK(peers[1].taken == 0 && peers[1].early == NULL && reader.kept_count[WEFTI_WIRE_REQUESTS] == KEPT);

    serve_message(1, 0);
    CHECK(peers[1].taken == 1 && has_more() && take());
    CHECK_SAY(peers[1].taken == 1 + KEPT, "%u have been served", peers[1].taken);
    CHECK(has_more() && take() && peers[1].taken == 1 + KEPT + 4); /* those that were left, of which nothing tells */
    CHECK(!has_more() && !take());
}

/* As many wait as there may be requests, so that each slot of the ring is in use, lap after lap. */
static void test_all_early(void **state)
{
    (void)state;
    uint32_t number = 0;
    for (int lap = 0; lap < LAPS; lap++) {
        const uint32_t first = number++;
        while (number - first < WEFTI_AM_CREDITS_MAX) {
            write_request(1, number++, WEFTI_AM_FLUSH);
        }
        CHECK(!take() && !has_more() && peers[1].taken == first);
        serve_message(1, first);
        while (peers[1].taken != number) {
            CHECK(has_more());
            if (!CHECK(take())) {
                return;
            }
            while (am.unsent != NULL) { /* their answers have gone */
                wefti_am_buffer *buffer = am.unsent;
                am.unsent = buffer->next;
                wefti_am_completed(&am, buffer, 0);
            }
        }
    }
}

/* Their answers have not gone: nothing tells of the one that is left. */
static void test_no_buffer(void **state)
{
    (void)state;
    for (uint32_t number = 0; number <= KEPT; number++) {
        write_request(1, number, WEFTI_AM_FLUSH);
    }
    CHECK(take() && peers[1].taken == KEPT && reader.kept[WEFTI_WIRE_REQUESTS] == NULL);
    CHECK(has_more() && !take() && has_more());
    wefti_am_buffer *buffer = am.unsent;
    am.unsent = buffer->next;
    wefti_am_completed(&am, buffer, 0);
    CHECK(take() && peers[1].taken == KEPT + 1 && !has_more());
}

/* What is no message is dropped, and what is behind it is not. */
static void test_garbage(void **state)
{
    (void)state;
    const wefti_am_header foreign = {.world = WORLD + 1, .from = 1};
    write_bytes(1, &foreign, 0);
    write_bytes(1, &foreign, sizeof foreign);
    write_request(1, WEFTI_AM_CREDITS_MAX + 2, WEFTI_AM_PUT); /* so many cannot be before it */
    write_request(1, 0, WEFTI_AM_PUT);
    CHECK(has_more() && take() && peers[1].taken == 1 && !has_more());
    CHECK(reader.kept_count[WEFTI_WIRE_REQUESTS] == KEPT);
}

#define READER_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {READER_TEST(test_early), READER_TEST(test_all_early),
                                       READER_TEST(test_no_buffer), READER_TEST(test_garbage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
