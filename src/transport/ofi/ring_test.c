/* Goal: a ring gives each message once, whole and in order, and never one that is not all there or is another's.
 * Method: messages of each size are written as a provider does, into a ring between guards, lap after lap; piece by
 * piece, with a look after each byte; and slots are filled with words that nobody has written. */
#include "transport/ofi/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define LAPS 3
#define GUARD 0xa5

/* A ring with something before and behind it. */
static struct {
    unsigned char before[64];
    wefti_ring ring;
    unsigned char behind[64];
} memory;

static int set_up(void **state)
{
    (void)state;
    memset(&memory, GUARD, sizeof memory);
    memset(&memory.ring, 0, sizeof memory.ring);
    return 0;
}

static int check_guards(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof memory.before; i++) {
        if (memory.before[i] != GUARD || memory.behind[i] != GUARD) {
            return -1;
        }
    }
    return 0;
}

static size_t size_of(uint64_t number)
{
    return (size_t)(number % WEFTI_RING_MESSAGE_MAX) + 1;
}

static void fill(unsigned char *message, uint64_t number)
{
    for (size_t i = 0; i < size_of(number); i++) {
        message[i] = (unsigned char)(number * 7 + i + 1);
    }
}

static void pack(wefti_ring_write *write, uint64_t number)
{
    unsigned char message[WEFTI_RING_MESSAGE_MAX];
    fill(message, number);
    wefti_ring_pack(write, number, message, size_of(number));
}

static void put(uint64_t number)
{
    wefti_ring_write write;
    pack(&write, number);
    memcpy((unsigned char *)&memory.ring + write.offset, write.from, write.bytes);
}

static void assert_there(uint64_t number)
{
    unsigned char message[WEFTI_RING_MESSAGE_MAX];
    size_t bytes;
    const void *found = wefti_ring_look(&memory.ring, number, &bytes);
    fill(message, number);
    assert_non_null(found);
    assert_int_equal((uintptr_t)found % sizeof(uint64_t), 0);
    assert_int_equal(bytes, size_of(number));
    assert_memory_equal(found, message, bytes);
}

static void assert_none(uint64_t number)
{
    size_t bytes;
    assert_null(wefti_ring_look(&memory.ring, number, &bytes));
}

static void test_laps(void **state)
{
    (void)state;
    for (uint64_t number = 0; number < LAPS * WEFTI_RING_SLOTS; number++) {
        assert_none(number);
        put(number);
        assert_there(number);
        assert_none(number + 1);
    }
}

/* As many as there are credits, and one that takes none. */
static void test_full(void **state)
{
    (void)state;
    for (uint64_t lap = 0; lap < LAPS; lap++) {
        const uint64_t first = lap * WEFTI_RING_SLOTS;
        for (uint64_t number = first; number < first + WEFTI_AM_CREDITS_MAX + 1; number++) {
            put(number);
        }
        for (uint64_t number = first; number < first + WEFTI_AM_CREDITS_MAX + 1; number++) {
            assert_there(number);
        }
    }
}

/* In its slot another may lie already. The last word comes at once. */
static void test_torn(void **state)
{
    (void)state;
    for (uint64_t number = 0; number < LAPS * WEFTI_RING_SLOTS; number++) {
        wefti_ring_write write;
        unsigned char *at;
        pack(&write, number);
        at = (unsigned char *)&memory.ring + write.offset;
        for (size_t i = 0; i < write.bytes - sizeof(uint64_t); i++) {
            assert_none(number);
            at[i] = write.from[i];
        }
        assert_none(number);
        memcpy(at, write.from, write.bytes);
        assert_there(number);
    }
}

static void test_garbage(void **state)
{
    (void)state;
    wefti_ring_slot *slot = &memory.ring.slots[0];
    for (unsigned bytes = 0; bytes <= UINT8_MAX; bytes++) {
        size_t told;
        slot->last = UINT64_C(1) << 8 | bytes; /* of the first message */
        const unsigned char *found = wefti_ring_look(&memory.ring, 0, &told);
        assert_int_equal(found != NULL, bytes <= WEFTI_RING_MESSAGE_MAX);
        if (found != NULL) {
            assert_int_equal(told, bytes);
            assert_true(found >= slot->message && found + told <= slot->message + sizeof slot->message);
        }
        assert_none(WEFTI_RING_SLOTS);
    }
    memset(slot, 0xff, sizeof *slot);
    assert_none(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_laps, set_up, check_guards),
        cmocka_unit_test_setup_teardown(test_full, set_up, check_guards),
        cmocka_unit_test_setup_teardown(test_torn, set_up, check_guards),
        cmocka_unit_test_setup_teardown(test_garbage, set_up, check_guards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
