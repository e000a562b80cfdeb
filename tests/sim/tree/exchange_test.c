/* Goal: an exchange takes the frames and questions of its own step and no other's, and blames the silent and nobody
 * else.
 * Method: PE 0 exchanges with a child that is played: it asks about a step that is over, contributes to one again, says
 * something while PE 0 is stalled, and takes its time at moments where an honest child may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/error.h"
#include "os/os.h"
#include "sim/tree/fake_net.h"

#define SEQUENCE (WEFTI_TREE_SEQUENCE_FORMING + 1) /* of the exchange after forming */
#define BYTES 100000
#define ROOM 64000 /* less than a result of BYTES each */

/* ---- PE 0 ---- */

static void exchange_as_root_of(int pes, size_t bytes, uint64_t wait_ns, weft_status wanted)
{
    static wefti_tree tree;
    static unsigned char mine[BYTES];
    static unsigned char all[2 * BYTES];
    wefti_tree_site site = fake_site();
    weft_status status = fake_open(&tree, &site, 0, pes, S_NS, NULL);
    if (status == WEFT_OK) {
        status = wefti_tree_allgather(&tree, mine, all, bytes, wefti_os_now_ns() + wait_ns);
        wefti_tree_close(&tree);
    }
    if (status != wanted) {
        weft_sim_fail("there was %s: %s", weft_status_name(status), weft_last_error());
    }
}

static void exchange_as_root(size_t bytes, uint64_t wait_ns, weft_status wanted)
{
    exchange_as_root_of(2, bytes, wait_ns, wanted);
}

/* ---- a question about a step that is over ---- */

static void ask_late(void *argument)
{
    static unsigned char mine[8];
    static unsigned char all[16];
    wefti_tree_site site = fake_site();
    wefti_link link;
    (void)argument;
    if (weft_sim_pe() == 0) {
        exchange_as_root(8, 2 * S_NS, WEFT_OK);
        return;
    }
    fake_join(&site, 1, 2, &link);
    wefti_link_expect(&link, WEFTI_FRAME_RESULT, SEQUENCE, all, sizeof all);
    fake_send(&link, WEFTI_FRAME_EXPIRED, SEQUENCE - 1, NULL, 0);
    weft_sim_sleep_ns(500 * MS_NS); /* longer than PE 0 would wait for who is asked */
    fake_send(&link, WEFTI_FRAME_GATHER, SEQUENCE, mine, sizeof mine);
    fake_await_frame(&link, WEFTI_FRAME_RESULT);
    wefti_link_fini(&link);
}

static void test_question_of_another_step(void **state)
{
    (void)state;
    fake_run(2, ask_late);
}

/* ---- a question, and the next step ---- */

static void await_result(wefti_link *link)
{
    wefti_link_event event;
    do {
        event = fake_await(link, 2 * S_NS);
    } while (event == WEFTI_LINK_FRAME && link->in.type == WEFTI_FRAME_EXPIRED);
    if (event != WEFTI_LINK_FRAME || link->in.type != WEFTI_FRAME_RESULT) {
        weft_sim_fail("no result came");
    }
}

static void exchange_twice_as_root(void)
{
    static wefti_tree tree;
    static unsigned char mine[8];
    static unsigned char all[16];
    wefti_tree_site site = fake_site();
    weft_status status = fake_open(&tree, &site, 0, 2, S_NS, NULL);
    for (int i = 0; i < 2 && status == WEFT_OK; i++) {
        status = wefti_tree_allgather(&tree, mine, all, sizeof mine, wefti_os_now_ns() + 2 * S_NS);
    }
    if (status != WEFT_OK) {
        weft_sim_fail("there was %s: %s", weft_status_name(status), weft_last_error());
    }
    wefti_tree_close(&tree);
}

/* The child asks in one step, and takes its time in the next. */
static void ask_and_go_on(void *argument)
{
    static unsigned char mine[8];
    static unsigned char all[16];
    wefti_tree_site site = fake_site();
    wefti_link link;
    (void)argument;
    if (weft_sim_pe() == 0) {
        exchange_twice_as_root();
        return;
    }
    fake_join(&site, 1, 2, &link);
    wefti_link_expect(&link, WEFTI_FRAME_RESULT, SEQUENCE, all, sizeof all);
    fake_send(&link, WEFTI_FRAME_EXPIRED, SEQUENCE, NULL, 0);
    fake_send(&link, WEFTI_FRAME_GATHER, SEQUENCE, mine, sizeof mine);
    await_result(&link);
    wefti_link_expect(&link, WEFTI_FRAME_RESULT, SEQUENCE + 1, all, sizeof all);
    weft_sim_sleep_ns(500 * MS_NS); /* longer than PE 0 would wait for who is asked */
    fake_send(&link, WEFTI_FRAME_GATHER, SEQUENCE + 1, mine, sizeof mine);
    await_result(&link);
    wefti_link_fini(&link);
}

static void test_question_ends_with_its_step(void **state)
{
    (void)state;
    fake_run(2, ask_and_go_on);
}

/* ---- a question, and a word of another child ---- */

#define BOTH_JOINED_NS (300 * MS_NS)

/* PE 0 reads both at one look: what the second child says does not make it forget that the first one has asked. */
static void ask_beside_another(void *argument)
{
    static unsigned char mine[8];
    static unsigned char all[24];
    const int pe = weft_sim_pe();
    wefti_tree_site site = fake_site();
    wefti_link link;
    (void)argument;
    fake_calm(ROOM);
    if (pe == 0) {
        exchange_as_root_of(3, sizeof mine, 2 * S_NS, WEFT_OK);
        return;
    }
    fake_join(&site, pe, 3, &link);
    wefti_link_expect(&link, WEFTI_FRAME_RESULT, SEQUENCE, all, sizeof all);
    fake_sleep_until(BOTH_JOINED_NS);
    if (pe == 1) {
        weft_sim_stall(0, 20 * MS_NS);
        fake_send(&link, WEFTI_FRAME_EXPIRED, SEQUENCE, NULL, 0);
    } else {
        weft_sim_sleep_ns(5 * MS_NS);
        fake_send(&link, WEFTI_FRAME_ALIVE, 0, NULL, 0);
        if (fake_await(&link, S_NS / 2) != WEFTI_LINK_FRAME || link.in.type != WEFTI_FRAME_EXPIRED) {
            weft_sim_fail("PE 0 does not ask for whom others wait");
        }
    }
    fake_send(&link, WEFTI_FRAME_GATHER, SEQUENCE, mine, sizeof mine);
    await_result(&link);
    wefti_link_fini(&link);
}

static void test_question_beside_a_word(void **state)
{
    (void)state;
    fake_run(3, ask_beside_another);
}

/* ---- a contribution to a step that is over ---- */

static void contribute_again(void *argument)
{
    static unsigned char mine[8];
    wefti_tree_site site = fake_site();
    wefti_link link;
    (void)argument;
    if (weft_sim_pe() == 0) {
        exchange_as_root(sizeof mine, S_NS, WEFT_ERR_MISMATCH);
        return;
    }
    fake_join(&site, 1, 2, &link);
    (void)wefti_link_send(&link, WEFTI_FRAME_GATHER, SEQUENCE - 1, mine, sizeof mine); /* PE 0 may not read all of it */
    fake_await_frame(&link, WEFTI_FRAME_FAILURE);
    wefti_link_fini(&link);
}

static void test_contribution_to_another_step(void **state)
{
    (void)state;
    fake_run(2, contribute_again);
}

/* ---- PE 0 is late itself ---- */

/* The contribution comes second, in time, while PE 0 does not run: it must look again before it blames. */
static void stall_root(void *argument)
{
    static unsigned char mine[8];
    static unsigned char all[16];
    wefti_tree_site site = fake_site();
    wefti_link link;
    (void)argument;
    fake_calm(ROOM);
    if (weft_sim_pe() == 0) {
        exchange_as_root(sizeof mine, 100 * MS_NS, WEFT_OK);
        return;
    }
    fake_join(&site, 1, 2, &link);
    wefti_link_expect(&link, WEFTI_FRAME_RESULT, SEQUENCE, all, sizeof all);
    fake_await_frame(&link, WEFTI_FRAME_EXPIRED);
    weft_sim_stall(0, S_NS);
    fake_send(&link, WEFTI_FRAME_ALIVE, 0, NULL, 0);
    fake_send(&link, WEFTI_FRAME_GATHER, SEQUENCE, mine, sizeof mine);
    await_result(&link);
    wefti_link_fini(&link);
}

static void test_late_itself(void **state)
{
    (void)state;
    fake_run(2, stall_root);
}

/* ---- each stage asks anew ---- */

/* PE 0 names who has not answered 50 ms after it asked. The contribution comes after 40 of them, and the result, which
 * does not fit the connection, is taken after 70: in time, since PE 0 has to ask again for that. */
static void take_slowly(void *argument)
{
    static unsigned char mine[BYTES];
    static unsigned char all[2 * BYTES];
    wefti_tree_site site = fake_site();
    wefti_link link;
    (void)argument;
    fake_calm(ROOM);
    if (weft_sim_pe() == 0) {
        exchange_as_root(BYTES, 100 * MS_NS, WEFT_OK);
        return;
    }
    fake_join(&site, 1, 2, &link);
    wefti_link_expect(&link, WEFTI_FRAME_RESULT, SEQUENCE, all, sizeof all);
    fake_await_frame(&link, WEFTI_FRAME_EXPIRED);
    uint64_t asked_ns = weft_sim_now_ns();
    fake_sleep_until(asked_ns + 40 * MS_NS);
    fake_send(&link, WEFTI_FRAME_GATHER, SEQUENCE, mine, sizeof mine);
    fake_sleep_until(asked_ns + 70 * MS_NS);
    fake_await_frame(&link, WEFTI_FRAME_RESULT);
    wefti_link_fini(&link);
}

static void test_stages_ask_anew(void **state)
{
    (void)state;
    fake_run(2, take_slowly);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_question_of_another_step),
        cmocka_unit_test(test_question_ends_with_its_step),
        cmocka_unit_test(test_question_beside_a_word),
        cmocka_unit_test(test_contribution_to_another_step),
        cmocka_unit_test(test_late_itself),
        cmocka_unit_test(test_stages_ask_anew),
    };
    (void)setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
