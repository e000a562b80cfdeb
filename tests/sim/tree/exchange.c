/* sim/tree/exchange.c: PE 0 exchanges with children that are played: they ask about a step that is over, contribute to
 * one again, say something while PE 0 is stalled, and take their time at moments where an honest child may. */
#include <string.h>

#include "base/error.h"
#include "os/os.h"
#include "os/socket.h"
#include "sim/tree/fake_net.h"
#include "sim/tree/scenes.h"

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

void scene_ask_late(void *argument)
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
void scene_ask_and_go_on(void *argument)
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

/* ---- a question, and a word of another child ---- */

#define BOTH_JOINED_NS (300 * MS_NS)

/* PE 0 reads both at one look: what the second child says does not make it forget that the first one has asked. */
void scene_ask_beside_another(void *argument)
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

/* ---- a contribution to a step that is over ---- */

void scene_contribute_again(void *argument)
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

/* ---- PE 0 is late itself ---- */

/* The contribution comes second, in time, while PE 0 does not run: it must look again before it blames. */
void scene_stall_root(void *argument)
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

/* ---- PE 0 stands still ---- */

#define STOOD 7 /* PEs: 5 and 6 are below 4 */

/* All have come, and PE 0 takes no part in what follows: each hears that it is PE 0, also who is further below it. */
void scene_root_stands_still(void *argument)
{
    static wefti_tree trees[STOOD];
    static const unsigned char mine[8];
    unsigned char all[STOOD * sizeof mine];
    const int pe = weft_sim_pe();
    wefti_tree *tree = &trees[pe];
    wefti_tree_site site = fake_site();
    (void)argument;
    fake_calm(ROOM);
    weft_status status = fake_open(tree, &site, pe, STOOD, S_NS, NULL);
    if (status != WEFT_OK) {
        weft_sim_fail("there was %s: %s", weft_status_name(status), weft_last_error());
    }
    if (pe == 0) {
        weft_sim_sleep_ns(4 * S_NS);
    } else {
        const uint64_t wait_ns = 100 * MS_NS + weft_sim_random(MS_NS);
        status = wefti_tree_allgather(tree, mine, all, sizeof mine, wefti_os_now_ns() + wait_ns);
        if (status != WEFT_ERR_TIMEOUT || strstr(weft_last_error(), "PE 0") == NULL) {
            weft_sim_fail("PE 0 stands still, and there was %s: %s", weft_status_name(status), weft_last_error());
        }
    }
    wefti_tree_close(tree);
}

/* ---- each stage asks anew ---- */

/* PE 0 names who has not answered 50 ms after it asked. The contribution comes after 40 of them, and the result, which
 * does not fit the connection, is taken after 70: in time, since PE 0 has to ask again for that. */
void scene_take_slowly(void *argument)
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

/* ---- who asks twice ---- */

#define LEVEL_NS WEFTI_TREE_LEVEL_NS /* with a deadline of a second */

/* PE 1 asks, contributes and asks again; PE 2 is silent: it is asked once, and named a level later, not after the
 * second question. */
void scene_ask_twice(void *argument)
{
    static unsigned char mine[8];
    static unsigned char all[24];
    static uint64_t asked_ns;
    const int pe = weft_sim_pe();
    wefti_tree_site site = fake_site();
    wefti_link link;
    (void)argument;
    fake_calm(ROOM);
    if (pe == 0) {
        asked_ns = 0;
        exchange_as_root_of(3, sizeof mine, 2 * S_NS, WEFT_ERR_TIMEOUT);
        const uint64_t took_ns = weft_sim_now_ns() - asked_ns;
        if (asked_ns == 0 || took_ns < LEVEL_NS || took_ns > LEVEL_NS + 10 * MS_NS ||
            strstr(weft_last_error(), "PE 2 had not come") == NULL) {
            weft_sim_fail("%llu ms after a question: %s", (unsigned long long)(took_ns / MS_NS), weft_last_error());
        }
        return;
    }
    fake_join(&site, pe, 3, &link);
    wefti_link_expect(&link, WEFTI_FRAME_RESULT, SEQUENCE, all, sizeof all);
    fake_sleep_until(BOTH_JOINED_NS);
    if (pe == 1) {
        asked_ns = weft_sim_now_ns();
        fake_send(&link, WEFTI_FRAME_EXPIRED, SEQUENCE, NULL, 0);
        fake_send(&link, WEFTI_FRAME_GATHER, SEQUENCE, mine, sizeof mine);
        weft_sim_sleep_ns(LEVEL_NS / 2);
        fake_send(&link, WEFTI_FRAME_EXPIRED, SEQUENCE, NULL, 0);
    } else {
        fake_await_frame(&link, WEFTI_FRAME_EXPIRED);
    }
    fake_await_behind_questions(&link, WEFTI_FRAME_FAILURE, pe == 1); /* it may be asked before it has contributed */
    wefti_link_fini(&link);
}

/* ---- a PE between two others ---- */

/* PE 4 of 6, whose child is PE 5. */
static void exchange_as_inner(uint64_t wait_ns)
{
    static wefti_tree tree;
    static unsigned char mine[8];
    static unsigned char all[6 * sizeof mine];
    wefti_tree_site site = fake_site();
    weft_status status = fake_open(&tree, &site, 4, 6, S_NS, NULL);
    if (status == WEFT_OK) {
        status = wefti_tree_allgather(&tree, mine, all, sizeof mine, wefti_os_now_ns() + wait_ns);
        wefti_tree_close(&tree);
    }
    if (status != WEFT_OK) {
        weft_sim_fail("there was %s: %s", weft_status_name(status), weft_last_error());
    }
}

/* It asks its child, which answers at the last moment, and then anew PE 0, which has as long as is between the root and
 * it. */
void scene_ask_for_the_result(void *argument)
{
    static unsigned char room[6 * 8];
    static const unsigned char result[6 * 8];
    wefti_tree_site site = fake_site();
    wefti_link star;
    wefti_link child;
    (void)argument;
    fake_calm(ROOM);
    if (weft_sim_pe() == 1) {
        exchange_as_inner(100 * MS_NS);
        return;
    }
    fake_join_with_child(&site, 4, 6, &star, &child);
    fake_exchange_between(&star, &child);
    wefti_link_expect(&star, WEFTI_FRAME_GATHER, SEQUENCE, room, 2 * 8);
    wefti_link_expect(&child, WEFTI_FRAME_RESULT, SEQUENCE, room, sizeof room);
    fake_await_frame(&child, WEFTI_FRAME_EXPIRED);
    const uint64_t asked_ns = weft_sim_now_ns();
    fake_sleep_until(asked_ns + LEVEL_NS - 10 * MS_NS);
    fake_send(&child, WEFTI_FRAME_GATHER, SEQUENCE, result, 8);
    fake_await_frame(&star, WEFTI_FRAME_GATHER);
    fake_await_frame(&star, WEFTI_FRAME_EXPIRED);
    fake_sleep_until(asked_ns + 4 * LEVEL_NS - 20 * MS_NS);
    fake_send(&star, WEFTI_FRAME_RESULT, SEQUENCE, result, sizeof result);
    fake_await_frame(&child, WEFTI_FRAME_RESULT);
    wefti_link_fini(&star);
    wefti_link_fini(&child);
}

/* ---- a child that goes ---- */

/* PE 5 has taken its place at PE 4 and goes: at once PE 4 and PE 0 are told that it is gone. */
void scene_child_goes(void *argument)
{
    static wefti_tree tree;
    static uint64_t gone_ns;
    wefti_tree_site site = fake_site();
    wefti_link star;
    wefti_link child;
    (void)argument;
    fake_calm(ROOM);
    if (weft_sim_pe() == 1) {
        gone_ns = 0;
        const weft_status status = fake_open(&tree, &site, 4, 6, S_NS, NULL);
        if (status != WEFT_ERR_PEER || strstr(weft_last_error(), "PE 5 is gone") == NULL || gone_ns == 0 ||
            weft_sim_now_ns() > gone_ns + 50 * MS_NS) {
            weft_sim_fail("PE 5 is gone, and there was %s: %s", weft_status_name(status), weft_last_error());
        }
        return;
    }
    fake_join_with_child(&site, 4, 6, &star, &child);
    gone_ns = weft_sim_now_ns();
    wefti_link_fini(&child);
    fake_await_frame(&star, WEFTI_FRAME_FAILURE);
    wefti_link_fini(&star);
}

/* ---- what PE 0 says past the tree ---- */

/* PE 5 waits in its place, below PE 4, when PE 0 fails: it is told by the star, and tells PE 4. */
void scene_root_fails(void *argument)
{
    static wefti_tree tree;
    static const wefti_tree_failure failure = {.status = WEFT_ERR_MEMORY, .text = "the word of PE 0"};
    static uint64_t told_ns;
    wefti_tree_site site = fake_site();
    wefti_tree_hello said;
    wefti_link star;
    wefti_link child;
    unsigned char none;
    (void)argument;
    fake_calm(ROOM);
    if (weft_sim_pe() == 1) {
        told_ns = 0;
        const weft_status status = fake_open(&tree, &site, 5, 6, S_NS, NULL);
        if (status != WEFT_ERR_MEMORY || strcmp(weft_last_error(), failure.text) != 0 || told_ns == 0 ||
            weft_sim_now_ns() > told_ns + 50 * MS_NS) {
            weft_sim_fail("PE 0 has failed, and there was %s: %s", weft_status_name(status), weft_last_error());
        }
        return;
    }
    const wefti_tree_welcome welcome = {.parent = fake_contact("parent")};
    wefti_tree_listeners root = fake_listen("root");
    wefti_tree_listeners parent = fake_listen("parent");
    if (!fake_accept(&site, &root, 0, S_NS, &star, &said)) {
        weft_sim_fail("PE 5 did not come to PE 0");
    }
    fake_send(&star, WEFTI_FRAME_WELCOME, 0, &welcome, sizeof welcome);
    if (!fake_accept(&site, &parent, 4, S_NS, &child, &said)) {
        weft_sim_fail("PE 5 did not come to PE 4");
    }
    wefti_link_expect(&child, WEFTI_FRAME_GATHER, WEFTI_TREE_SEQUENCE_FORMING, &none, 0);
    fake_await_frame(&child, WEFTI_FRAME_GATHER);
    told_ns = weft_sim_now_ns();
    fake_send(&star, WEFTI_FRAME_FAILURE, 0, &failure, sizeof failure);
    fake_await_frame(&child, WEFTI_FRAME_FAILURE);
    wefti_link_fini(&star);
    wefti_link_fini(&child);
    wefti_os_socket_stop(root.descriptors[0]);
    wefti_os_socket_stop(parent.descriptors[0]);
}
