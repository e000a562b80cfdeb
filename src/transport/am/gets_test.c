/* Goal: gets for which no call waits go out one after another, as many as have places, before an answer has come; the
 * answers, in any order, are written where they belong, each once; and what is given up is written no more, is told to
 * those that have begun gets, and to nobody twice.
 * Method: a wire that keeps what is asked and answers when the test says so, at a look or later. */
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

#define PES 4
#define PLACES (WEFTI_AM_GETS_MAX / 2) /* of one PE, as long as no other has any */
#define ASKED_MAX 256
#define DEADLINE_NS UINT64_C(30000000)
#define LONG_NS UINT64_C(20000000000)
#define POISON 0xab
#define AT 8192

static wefti_am am;
static wefti_am_peer peers[PES];
static wefti_transport transport;
static struct {
    wefti_am_header asked[ASKED_MAX];
    uint32_t pe[ASKED_MAX];
    int count; /* of messages */
    int answered; /* the first so many */
    int at_a_look; /* so many are answered at each */
    wefti_am_buffer *moves[ASKED_MAX];
    int move_count;
    int moved;
} wire;

/* ---- the wire ---- */

/* The byte of a PE's memory. */
static unsigned char byte_at(uint32_t pe, uint64_t offset)
{
    return (unsigned char)(offset * 7 + pe * 31 + 1);
}

static wefti_wire_answer take(wefti_wire *of, int channel, wefti_am_buffer *buffer)
{
    (void)of;
    CHECK(channel == WEFTI_WIRE_REQUESTS && buffer->header->kind == WEFTI_AM_GET && wire.count < ASKED_MAX);
    wire.asked[wire.count] = *buffer->header;
    wire.pe[wire.count++] = buffer->pe;
    wefti_am_completed(&am, buffer, 0);
    return WEFTI_WIRE_TAKEN;
}

static wefti_wire_answer move(wefti_wire *of, wefti_am_buffer *op, const wefti_wire_piece *piece)
{
    (void)of;
    CHECK(piece->local == op->header && wire.move_count < ASKED_MAX);
    op->context[0] = (void *)(uintptr_t)(piece->offset + peers[op->pe].range.first);
    wire.moves[wire.move_count++] = op;
    return WEFTI_WIRE_TAKEN;
}

static void answer(int number)
{
    static unsigned char reply[WEFTI_AM_MESSAGE_MAX];
    const wefti_am_header *asked = &wire.asked[number];
    wefti_am_header header = *asked;
    header.from = wire.pe[number];
    header.kind = WEFTI_AM_DATA;
    header.credits = 1;
    memcpy(reply, &header, sizeof header);
    for (uint64_t i = 0; i < asked->bytes; i++) {
        reply[sizeof header + i] = byte_at(wire.pe[number], asked->offset + i);
    }
    wefti_am_take_reply(&am, (const wefti_am_header *)(const void *)reply, sizeof header + asked->bytes);
}

static void end_move(int number)
{
    wefti_am_buffer *op = wire.moves[number];
    unsigned char *data = (unsigned char *)op->header;
    for (uint64_t i = 0; i < WEFTI_AM_RMA_BYTES; i++) {
        data[i] = byte_at(op->pe, (uint64_t)(uintptr_t)op->context[0] + i);
    }
    wefti_am_completed(&am, op, 0);
}

static int look(wefti_wire *of, int channel)
{
    int happened = 0;
    (void)of;
    for (; channel == WEFTI_WIRE_REPLIES && happened < wire.at_a_look && wire.answered < wire.count; happened++) {
        answer(wire.answered++);
    }
    for (; channel == WEFTI_WIRE_REQUESTS && happened < wire.at_a_look && wire.moved < wire.move_count; happened++) {
        end_move(wire.moved++);
    }
    return happened;
}

static int can_sleep(wefti_wire *of)
{
    (void)of;
    return 1;
}

static const wefti_wire_ops ops = {.send = take, .move = move, .poll = look, .can_sleep = can_sleep};

static int set_up(void **state)
{
    static uint64_t worlds;
    const wefti_transport_setup setup = {.world = ++worlds, .pes = PES, .deadline_ns = LONG_NS, .pe = 0};
    memset(&wire, 0, sizeof wire);
    if (check_begin(state) != 0 || !am_rig_open(&am, peers, &setup, &ops, WEFTI_AM_REQUESTS_OUT)) {
        return 1;
    }
    am.rma_bytes_min = UINT64_MAX;
    for (int pe = 1; pe < PES; pe++) {
        peers[pe].range.first = 4096;
        peers[pe].range.bytes = (uint64_t)1 << 30;
    }
    transport = (wefti_transport){.setup = am.setup, .state = &am};
    return 0;
}

static int tear_down(void **state)
{
    uint32_t moving = 0;
    for (int pe = 0; pe < PES; pe++) {
        CHECK(peers[pe].asked == 0 && peers[pe].gets == 0);
        moving += peers[pe].rma;
    }
    CHECK(am.requests_free == WEFTI_AM_WAITING_MAX && am.requests_left == 0 && am.reads_left == 0);
    CHECK(am.free_rma_count + moving == WEFTI_AM_RMA_MAX);
    am_rig_close(&am);
    return check_end(state);
}

/* ---- gets ---- */

static unsigned char dest[(size_t)4 << 20];

static weft_status get(int pe, size_t at, size_t bytes)
{
    return wefti_am_get_nbi(&transport, pe, AT + at, dest + at, bytes);
}

static int is_there(int pe, size_t at, size_t bytes)
{
    int is_so = 1;
    for (size_t i = 0; i < bytes; i++) {
        is_so &= dest[at + i] == byte_at((uint32_t)pe, AT + at + i);
    }
    return is_so;
}

static int is_poison(size_t at, size_t bytes)
{
    int is_so = 1;
    for (size_t i = 0; i < bytes; i++) {
        is_so &= dest[at + i] == POISON;
    }
    return is_so;
}

static void expect_failure(weft_status status, weft_status wanted, const char *named)
{
    CHECK_STATUS(status, wanted);
    CHECK_SAY(strstr(weft_last_error(), named) != NULL, "\"%s\" does not name %s", weft_last_error(), named);
}

/* Nothing is looked for meanwhile: all have gone out when the first answer comes, which is the last one's. */
static void test_many_at_once(void **state)
{
    (void)state;
    memset(dest, POISON, sizeof dest);
    am.setup.deadline_ns = DEADLINE_NS;
    for (int i = 0; i < PLACES; i++) {
        CHECK_OK(get(1, (size_t)i * 16, 8));
    }
    CHECK_SAY(wire.count == PLACES && am.looks == 0, "%d messages, %u looks", wire.count, am.looks);
    CHECK(is_poison(0, (size_t)PLACES * 16));
    for (int i = PLACES - 1; i >= 0; i--) {
        answer(i);
        CHECK(is_there(1, (size_t)i * 16, 8) && is_poison((size_t)i * 16 + 8, 8));
        CHECK(i == 0 || is_poison((size_t)(i - 1) * 16, 8));
    }
    CHECK_OK(wefti_am_end_gets(&transport, WEFT_OK));
    CHECK(am.looks == 0); /* all were there */
}

/* More than have places: each waits for one answer at most; other requests have places of their own. */
static void test_more_than_places(void **state)
{
    (void)state;
    memset(dest, POISON, sizeof dest);
    wire.at_a_look = 1;
    for (int i = 0; i < 3 * PLACES; i++) {
        CHECK_OK(get(1, (size_t)i * 8, 8));
        CHECK(wire.count - wire.answered <= PLACES && wire.count == i + 1);
        CHECK(wire.answered == (i < PLACES ? 0 : i + 1 - PLACES));
    }
    for (int pe = 1; pe < PES; pe++) {
        CHECK(wefti_am_may_ask(&am, pe));
    }
    for (int i = 0; i < 100; i++) { /* another PE's have some */
        CHECK_OK(get(1 + i % (PES - 1), 4096 + (size_t)i * 8, 8));
        CHECK(am.requests_left <= WEFTI_AM_GETS_MAX);
    }
    CHECK_OK(wefti_am_end_gets(&transport, WEFT_OK));
    CHECK(wire.answered == wire.count && is_there(1, 0, (size_t)PLACES * 24));
    for (int i = 0; i < 100; i++) {
        CHECK(is_there(1 + i % (PES - 1), 4096 + (size_t)i * 8, 8));
    }
}

/* One of several messages, and a fence behind it, which waits for none of them. */
static void test_parts(void **state)
{
    (void)state;
    const size_t bytes = 3 * WEFTI_AM_DATA_MAX + 5;
    memset(dest, POISON, bytes + 1);
    CHECK_OK(get(2, 0, bytes));
    CHECK_OK(wefti_am_fence(&transport));
    CHECK(wire.count == 4 && am.looks == 0 && is_poison(0, bytes));
    wire.at_a_look = 3;
    CHECK_OK(wefti_am_end_gets(&transport, WEFT_OK));
    CHECK(is_there(2, 0, bytes) && is_poison(bytes, 1));
}

/* ---- failures ---- */

/* A late answer finds its number forgotten, also when its place has another one. */
static void test_late_answer(void **state)
{
    (void)state;
    memset(dest, POISON, sizeof dest);
    transport.setup.deadline_ns = am.setup.deadline_ns = DEADLINE_NS;
    CHECK_OK(get(1, 0, 8));
    CHECK_OK(get(3, 8, 8));
    answer(0);
    expect_failure(wefti_am_end_gets(&transport, WEFT_OK), WEFT_ERR_TIMEOUT, "PE 3");
    CHECK(is_there(1, 0, 8) && is_poison(8, 8));
    answer(1);
    CHECK(is_poison(8, 8));
    CHECK_OK(wefti_am_end_gets(&transport, WEFT_OK)); /* it has been told */
    for (int i = 0; i < WEFTI_AM_WAITING_MAX + 2; i++) {
        const int number = wire.count;
        CHECK_OK(get(3, 64, 8));
        answer(1);
        CHECK(is_poison(8, 8) && is_poison(64, 8));
        answer(number);
        CHECK(is_there(3, 64, 8));
        memset(dest + 64, POISON, 8);
    }
}

/* A get that finds no place in time says whom it has waited for; what is open stays so. */
static void test_no_place(void **state)
{
    (void)state;
    memset(dest, POISON, sizeof dest);
    am.setup.deadline_ns = DEADLINE_NS;
    for (int i = 0; i < PLACES; i++) {
        CHECK_OK(get(2, (size_t)i * 8, 8));
    }
    expect_failure(get(2, 4096, 8), WEFT_ERR_TIMEOUT, "PE 2");
    CHECK_OK(get(1, 8192, 8)); /* other PEs have places all the same */
    CHECK(wire.count == PLACES + 1);
    wire.at_a_look = 4;
    CHECK_OK(wefti_am_end_gets(&transport, WEFT_OK));
    CHECK(is_there(2, 0, (size_t)PLACES * 8) && is_there(1, 8192, 8) && is_poison(4096, 8));
}

/* A get that fails half-way takes back what had gone out. */
static void test_fails_half_way(void **state)
{
    (void)state;
    memset(dest, POISON, sizeof dest);
    am.setup.deadline_ns = DEADLINE_NS;
    expect_failure(get(1, 0, (PLACES + 1) * WEFTI_AM_DATA_MAX), WEFT_ERR_TIMEOUT, "PE 1");
    CHECK(wire.count == PLACES && am.requests_left == 0);
    answer(0);
    CHECK(is_poison(0, (PLACES + 1) * WEFTI_AM_DATA_MAX));
    CHECK_OK(wefti_am_end_gets(&transport, WEFT_OK));
}

/* Nobody waits for the answer of a PE that is lost; those of others are there. */
static void test_of_who_is_lost(void **state)
{
    (void)state;
    memset(dest, POISON, sizeof dest);
    CHECK_OK(get(1, 0, 8));
    CHECK_OK(get(2, 64, 8));
    wefti_am_lose(&am, 1);
    CHECK(am.requests_left == 1);
    CHECK(am.failures.count == 1 && am.failures.status == WEFT_ERR_PEER && am.failures.pe == 1);
    answer(1);
    (void)weft_last_error_set(WEFT_ERR_PEER, "the quiet's own");
    expect_failure(wefti_am_end_gets(&transport, WEFT_ERR_PEER), WEFT_ERR_PEER, "the quiet's own");
    answer(0);
    CHECK(is_poison(0, 8) && is_there(2, 64, 8));
    CHECK_OK(wefti_am_end_gets(&transport, WEFT_OK));
}

/* After a quiet that met the deadline nothing is waited for; the error stays the quiet's. */
static void test_after_a_failed_quiet(void **state)
{
    (void)state;
    memset(dest, POISON, sizeof dest);
    CHECK_OK(get(1, 0, 8));
    (void)weft_last_error_set(WEFT_ERR_TIMEOUT, "the quiet's own");
    expect_failure(wefti_am_end_gets(&transport, WEFT_ERR_TIMEOUT), WEFT_ERR_TIMEOUT, "the quiet's own");
    answer(0);
    CHECK(is_poison(0, 8));
    CHECK_OK(get(1, 0, 8));
    wire.at_a_look = 2;
    expect_failure(wefti_am_end_gets(&transport, WEFT_ERR_PEER), WEFT_ERR_PEER, "the quiet's own");
    CHECK(is_there(1, 0, 8)); /* PEs that are there have time */
}

/* ---- threads ---- */

static weft_status other_status;

static void end_in_thread(void *argument)
{
    (void)argument;
    other_status = wefti_am_end_gets(&transport, WEFT_OK);
}

static weft_status run_in_another_thread(void (*body)(void *argument))
{
    wefti_os_thread *thread;
    CHECK_OK(wefti_os_thread_start(&thread, body, NULL));
    wefti_os_thread_join(thread);
    return other_status;
}

static weft_status end_in_another_thread(void)
{
    return run_in_another_thread(end_in_thread);
}

static void begin_and_end_in_thread(void *argument)
{
    (void)argument;
    CHECK_OK(get(2, 16, 8));
    end_in_thread(NULL);
    CHECK_STATUS(other_status, WEFT_ERR_TIMEOUT);
    end_in_thread(NULL);
}

/* Whoever waits waits for all; a failure is told to who began the get, too, and then to nobody. */
static void test_another_thread_waits(void **state)
{
    (void)state;
    memset(dest, POISON, sizeof dest);
    CHECK_OK(get(1, 0, 8));
    wire.at_a_look = 1;
    CHECK_OK(end_in_another_thread());
    CHECK(is_there(1, 0, 8));
    CHECK_OK(wefti_am_end_gets(&transport, WEFT_OK));

    wire.at_a_look = 0;
    am.setup.deadline_ns = DEADLINE_NS;
    CHECK_OK(get(3, 8, 8));
    CHECK_STATUS(end_in_another_thread(), WEFT_ERR_TIMEOUT);
    CHECK_OK(end_in_another_thread());
    expect_failure(wefti_am_end_gets(&transport, WEFT_OK), WEFT_ERR_TIMEOUT, "PE 3");
    CHECK_OK(wefti_am_end_gets(&transport, WEFT_OK));
    CHECK_OK(end_in_another_thread());
    CHECK_OK(run_in_another_thread(begin_and_end_in_thread));
    CHECK_OK(wefti_am_end_gets(&transport, WEFT_OK)); /* of a get that was none of its own, and that is over */
}

static int is_over;

/* What the thread of a network does while calls come and go. */
static void see_to_answers(void *argument)
{
    (void)argument;
    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
        wefti_am_enter(&am);
        (void)wefti_am_progress(&am);
        (void)wefti_am_leave(&am, WEFT_OK);
        wefti_os_yield();
    }
}

/* Answers are written by another thread than the one that then looks at them, which needs no more than end_gets. */
static void test_beside_the_thread(void **state)
{
    (void)state;
    wefti_os_thread *thread;
    __atomic_store_n(&is_over, 0, __ATOMIC_RELEASE);
    wire.at_a_look = 1;
    CHECK_OK(wefti_os_thread_start(&thread, see_to_answers, NULL));
    for (size_t round = 0; round < 8; round++) {
        memset(dest, POISON, 4096);
        for (size_t i = 0; i < 24; i++) {
            CHECK_OK(get(1 + (int)(i % 3), i * 128, 1 + i * 5));
        }
        CHECK_OK(wefti_am_end_gets(&transport, WEFT_OK));
        for (size_t i = 0; i < 24; i++) {
            CHECK(is_there(1 + (int)(i % 3), i * 128, 1 + i * 5) && is_poison(i * 128 + 1 + i * 5, 127 - i * 5));
        }
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    wefti_os_thread_join(thread);
}

/* ---- reads by the network's own means ---- */

static void use_reads(void)
{
    am.wire.rma = WEFTI_WIRE_RMA_ORDERED;
    am.rma_bytes_min = 512;
}

static void test_reads(void **state)
{
    (void)state;
    const size_t bytes = 5 * WEFTI_AM_RMA_BYTES + 77;
    memset(dest, POISON, sizeof dest);
    use_reads();
    CHECK_OK(get(1, 0, bytes));
    CHECK(wire.move_count == 6 && wire.count == 0 && am.looks == 0 && is_poison(0, bytes));
    end_move(5);
    CHECK(is_poison(0, 5 * WEFTI_AM_RMA_BYTES) && is_there(1, 5 * WEFTI_AM_RMA_BYTES, 77));
    wire.move_count = 5;
    wire.at_a_look = 1;
    CHECK_OK(wefti_am_end_gets(&transport, WEFT_OK));
    CHECK(is_there(1, 0, bytes) && is_poison(bytes, 100));
    CHECK(am.free_rma_count == WEFTI_AM_RMA_MAX);
}

/* More than has places: the call waits for some. Their number is that of reads and writes together. */
static void test_long_read(void **state)
{
    (void)state;
    const size_t bytes = 40 * WEFTI_AM_RMA_BYTES;
    memset(dest, POISON, sizeof dest);
    use_reads();
    wire.at_a_look = 1;
    CHECK_OK(get(1, 0, bytes));
    CHECK(wire.move_count == 40 && wire.moved == 40 - WEFTI_AM_RMA_MAX / 2);
    CHECK_OK(wefti_am_end_gets(&transport, WEFT_OK));
    CHECK(is_there(1, 0, bytes));
}

static void test_late_read(void **state)
{
    (void)state;
    memset(dest, POISON, sizeof dest);
    use_reads();
    am.setup.deadline_ns = DEADLINE_NS;
    CHECK_OK(get(2, 0, 1000));
    expect_failure(wefti_am_end_gets(&transport, WEFT_OK), WEFT_ERR_TIMEOUT, "PE 2");
    CHECK(peers[2].rma == 1); /* the network has it still */
    end_move(0);
    CHECK(is_poison(0, 1000) && peers[2].rma == 0);
    CHECK_OK(wefti_am_end_gets(&transport, WEFT_OK));
}

#define GETS_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GETS_TEST(test_many_at_once),
        GETS_TEST(test_more_than_places),
        GETS_TEST(test_parts),
        GETS_TEST(test_late_answer),
        GETS_TEST(test_no_place),
        GETS_TEST(test_fails_half_way),
        GETS_TEST(test_of_who_is_lost),
        GETS_TEST(test_after_a_failed_quiet),
        GETS_TEST(test_another_thread_waits),
        GETS_TEST(test_beside_the_thread),
        GETS_TEST(test_reads),
        GETS_TEST(test_long_read),
        GETS_TEST(test_late_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
