/* Goal: while a tree forms everybody is told of the same offence, a place is taken once and by whose it is, parked PEs
 * keep to their deadline and say so, and PE 0 answers those who ask for it.
 * Method: PEs that are played (fake_net.h) come twice, come to the wrong place, stay away while others ask, or are PE 0
 * and park the PE under test for as long as they like. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "os/os.h"
#include "os/socket.h"
#include "sim/tree/fake_net.h"
#include "testing/sim/socket.h"

#define ROOM 64000

/* What the PEs of a run tell each other aside; the first of them makes it anew. */
static struct board {
    int is_first_welcome;
    int is_asked;
    int may_come;
} board;

static void begin(void)
{
    fake_calm(ROOM);
    memset(&board, 0, sizeof board); /* nobody has slept yet */
}

static void await_sign(const int *sign)
{
    while (!*sign) {
        weft_sim_sleep_ns(MS_NS / 10);
    }
}

static void expect_open(wefti_tree *tree, wefti_tree_site *site, int pe, int pes)
{
    weft_status status = fake_open(tree, site, pe, pes, 2 * S_NS, NULL);
    if (status != WEFT_OK) {
        weft_sim_fail("PE %d: %s: %s", pe, weft_status_name(status), weft_last_error());
    }
}

/* ---- two PEs that do not fit ---- */

static void offend(void *argument)
{
    static const char *const names[] = {NULL, "first", "second", NULL};
    static wefti_tree trees[4];
    wefti_tree_site site = fake_site();
    int pe = weft_sim_pe();
    (void)argument;
    fake_calm(ROOM);
    weft_sim_sleep_ns((uint64_t)pe * 20 * MS_NS);
    weft_status status = fake_open(&trees[pe], &site, pe, 4, 2 * S_NS, names[pe]);
    if (status != WEFT_ERR_MISMATCH || strstr(weft_last_error(), "PE 1 creates the world \"first\"") == NULL) {
        weft_sim_fail("there was %s: %s", weft_status_name(status), weft_last_error());
    }
}

static void test_first_offence_counts(void **state)
{
    (void)state;
    fake_run(4, offend);
}

/* ---- a PE that is parked, and one that asks meanwhile ---- */

static void come_early(wefti_tree_site *site)
{
    wefti_tree_hello hello = fake_hello(1, 3);
    wefti_link link;
    fake_call(site, &hello, 0, &site->root, &link);
    board.may_come = 1;
    fake_await_frame(&link, WEFTI_FRAME_WELCOME);
    fake_send(&link, WEFTI_FRAME_EXPIRED, WEFTI_TREE_SEQUENCE_FORMING, NULL, 0);
    fake_await_frame(&link, WEFTI_FRAME_ALIVE);
    board.is_asked = 1;
    fake_exchange_as_child(&link, WEFTI_TREE_SEQUENCE_FORMING);
    wefti_link_fini(&link);
}

/* Come when there is no descriptor to spare, and come back late. */
static void come_parked(wefti_tree_site *site)
{
    wefti_tree_hello hello = fake_hello(2, 3);
    wefti_tree_parked parked;
    wefti_link link;
    await_sign(&board.may_come);
    wefti_sim_socket_make_scarce();
    fake_call(site, &hello, 0, &site->root, &link);
    fake_await_frame(&link, WEFTI_FRAME_PARKED);
    memcpy(&parked, link.body, sizeof parked);
    wefti_link_fini(&link);
    await_sign(&board.is_asked);
    hello.ticket = parked.ticket;
    fake_call(site, &hello, 0, &site->root, &link);
    fake_await_frame(&link, WEFTI_FRAME_WELCOME);
    fake_exchange_as_child(&link, WEFTI_TREE_SEQUENCE_FORMING);
    wefti_link_fini(&link);
}

static void ask_while_one_is_away(void *argument)
{
    static wefti_tree tree;
    wefti_tree_site site = fake_site();
    (void)argument;
    begin();
    if (weft_sim_pe() == 1) {
        come_early(&site);
    } else if (weft_sim_pe() == 2) {
        come_parked(&site);
    } else {
        expect_open(&tree, &site, 0, 3);
        wefti_tree_close(&tree);
    }
}

static void test_root_answers_while_one_is_away(void **state)
{
    (void)state;
    fake_run(3, ask_while_one_is_away);
}

/* ---- who comes to a parent ---- */

/* PE 4 must close this connection. */
static void be_sent_away(wefti_tree_site *site, const wefti_tree_contact *parent, int pe, const char *name)
{
    wefti_tree_hello hello = fake_hello(pe, 7);
    wefti_link link;
    (void)snprintf(hello.name, sizeof hello.name, "%s", name);
    fake_call(site, &hello, 4, parent, &link);
    if (fake_await(&link, 100 * MS_NS) != WEFTI_LINK_CLOSED) {
        weft_sim_fail("PE %d of world \"%s\" was taken for a child", pe, name);
    }
    wefti_link_fini(&link);
}

static void come_twice(wefti_tree_site *site)
{
    wefti_tree_hello hello = fake_hello(5, 7);
    wefti_tree_welcome welcome;
    wefti_link star;
    wefti_link link;
    fake_call(site, &hello, 0, &site->root, &star);
    fake_await_frame(&star, WEFTI_FRAME_WELCOME);
    memcpy(&welcome, star.body, sizeof welcome);
    fake_call(site, &hello, 4, &welcome.parent, &link);
    be_sent_away(site, &welcome.parent, 5, "world"); /* a second time */
    be_sent_away(site, &welcome.parent, 2, "world"); /* no child of PE 4 */
    be_sent_away(site, &welcome.parent, 6, "other"); /* a child's number, in another world */
    board.may_come = 1;
    fake_exchange_as_child(&link, WEFTI_TREE_SEQUENCE_FORMING);
    wefti_link_fini(&link);
    wefti_link_fini(&star);
}

/* PE 6 has said hello to PE 0 and comes to PE 4 when it may. */
static void come_last(wefti_tree_site *site)
{
    wefti_tree_hello hello = fake_hello(6, 7);
    wefti_tree_welcome welcome;
    wefti_link star;
    wefti_link link;
    fake_call(site, &hello, 0, &site->root, &star);
    fake_await_frame(&star, WEFTI_FRAME_WELCOME);
    memcpy(&welcome, star.body, sizeof welcome);
    await_sign(&board.may_come);
    fake_call(site, &hello, 4, &welcome.parent, &link);
    fake_exchange_as_child(&link, WEFTI_TREE_SEQUENCE_FORMING);
    wefti_link_fini(&link);
    wefti_link_fini(&star);
}

static void come_to_a_parent(void *argument)
{
    static wefti_tree trees[7];
    wefti_tree_site site = fake_site();
    int pe = weft_sim_pe();
    (void)argument;
    begin();
    if (pe == 5) {
        come_twice(&site);
    } else if (pe == 6) {
        come_last(&site);
    } else {
        expect_open(&trees[pe], &site, pe, 7);
        wefti_tree_close(&trees[pe]);
    }
}

static void test_only_children_are_taken(void **state)
{
    (void)state;
    fake_run(7, come_to_a_parent);
}

/* ---- the deadline of a parked PE ---- */

#define DEADLINE_NS (500 * MS_NS)
#define AWAY_NS (20 * MS_NS)
#define TICKET 77

static void accept_from(wefti_tree_site *site, const wefti_tree_listeners *listeners, int pe, wefti_link *link,
                        wefti_tree_hello *said)
{
    if (!fake_accept(site, listeners, pe, S_NS, link, said) || said->pe != 5) {
        weft_sim_fail("PE 5 did not come to PE %d", pe);
    }
}

/* Park PE 5 for so long. It says whether its deadline has passed. */
static void park(wefti_tree_site *site, const wefti_tree_listeners *listeners, uint64_t until_ns, wefti_link *link)
{
    const wefti_tree_parked parked = {.ticket = TICKET, .away_ns = AWAY_NS};
    wefti_tree_hello said;
    uint64_t ticket = 0;
    accept_from(site, listeners, 0, link, &said);
    for (uint64_t now_ns = weft_sim_now_ns(); now_ns < until_ns; now_ns = weft_sim_now_ns()) {
        int is_early = now_ns < DEADLINE_NS;
        int is_late = now_ns > DEADLINE_NS + AWAY_NS;
        if (said.ticket != ticket || (is_early && said.is_overdue) || (is_late && !said.is_overdue)) {
            weft_sim_fail("after %llu ms: ticket %llu, overdue %u", (unsigned long long)(now_ns / MS_NS),
                          (unsigned long long)said.ticket, said.is_overdue);
        }
        ticket = TICKET;
        fake_send(link, WEFTI_FRAME_PARKED, 0, &parked, sizeof parked);
        wefti_link_fini(link);
        accept_from(site, listeners, 0, link, &said);
    }
}

/* PE 0 parks PE 5 beyond its deadline, welcomes it, and plays its parent, which sees no ticket. */
static void park_long(void *argument)
{
    static wefti_tree tree;
    const wefti_tree_welcome welcome = {.parent = fake_contact("parent")};
    wefti_tree_site site = fake_site();
    wefti_tree_hello said;
    wefti_link star;
    wefti_link child;
    (void)argument;
    fake_calm(ROOM);
    if (weft_sim_pe() == 1) {
        weft_status status = fake_open(&tree, &site, 5, 6, DEADLINE_NS, NULL);
        if (status != WEFT_OK) {
            weft_sim_fail("PE 5: %s: %s", weft_status_name(status), weft_last_error());
        }
        wefti_tree_close(&tree);
        return;
    }
    wefti_tree_listeners root = fake_listen("root");
    wefti_tree_listeners parent = fake_listen("parent");
    park(&site, &root, DEADLINE_NS + 5 * AWAY_NS, &star);
    fake_send(&star, WEFTI_FRAME_WELCOME, 0, &welcome, sizeof welcome);
    wefti_link_fini(&star);
    accept_from(&site, &parent, 4, &child, &said);
    if (said.ticket != 0 || said.is_overdue != 0) {
        weft_sim_fail("a parent was shown ticket %llu, overdue %u", (unsigned long long)said.ticket, said.is_overdue);
    }
    fake_exchange_as_parent(&child, WEFTI_TREE_SEQUENCE_FORMING);
    wefti_link_fini(&child);
    wefti_os_socket_stop(root.descriptors[0]);
    wefti_os_socket_stop(parent.descriptors[0]);
}

static void test_parked_say_that_they_are_late(void **state)
{
    (void)state;
    fake_run(2, park_long);
}

/* PE 5 is parked once, and its parent does not come. It waits for it as long as who was never parked. */
static void park_once(void *argument)
{
    static wefti_tree tree;
    const wefti_tree_welcome welcome = {.parent = fake_contact("parent")};
    wefti_tree_site site = fake_site();
    wefti_link star;
    (void)argument;
    fake_calm(ROOM);
    if (weft_sim_pe() == 1) {
        weft_status status = fake_open(&tree, &site, 5, 6, DEADLINE_NS, NULL);
        uint64_t most_ns = DEADLINE_NS + 5 * WEFTI_TREE_LEVEL_NS + 100 * MS_NS;
        if (status != WEFT_ERR_TIMEOUT || strstr(weft_last_error(), "PE 4") == NULL || weft_sim_now_ns() > most_ns) {
            weft_sim_fail("after %llu ms: %s: %s", (unsigned long long)(weft_sim_now_ns() / MS_NS),
                          weft_status_name(status), weft_last_error());
        }
        return;
    }
    wefti_tree_listeners root = fake_listen("root");
    park(&site, &root, AWAY_NS, &star);
    fake_send(&star, WEFTI_FRAME_WELCOME, 0, &welcome, sizeof welcome);
    wefti_link_fini(&star);
    wefti_os_socket_stop(root.descriptors[0]);
}

static void test_parked_wait_no_longer(void **state)
{
    (void)state;
    fake_run(2, park_once);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_offence_counts),    cmocka_unit_test(test_root_answers_while_one_is_away),
        cmocka_unit_test(test_only_children_are_taken), cmocka_unit_test(test_parked_say_that_they_are_late),
        cmocka_unit_test(test_parked_wait_no_longer),
    };
    (void)setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
