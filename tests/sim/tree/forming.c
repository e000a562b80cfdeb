/* sim/tree/forming.c: PEs that come twice, come to the wrong place, stay away while others ask, or are PE 0 and park
 * the PE under test for as long as they like. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "os/os.h"
#include "os/socket.h"
#include "sim/tree/fake_net.h"
#include "sim/tree/scenes.h"
#include "testing/sim/socket.h"

#define ROOM 64000

/* What the PEs of a run tell each other aside. */
static struct board {
    int is_first_welcome;
    int is_asked;
    int may_come;
} board;

static void begin(void)
{
    fake_calm(ROOM);
    fake_clear(&board, sizeof board);
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

void scene_offend(void *argument)
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

/* ---- a PE that is parked, and one that asks meanwhile ---- */

static void come_early(wefti_tree_site *site)
{
    wefti_tree_hello hello = fake_hello(1, 3);
    wefti_link link;
    fake_call(site, &hello, 0, &site->root, &link);
    weft_sim_sleep_ns(2 * MS_NS); /* PE 0 has seen to it */
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

void scene_ask_while_one_is_away(void *argument)
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

void scene_come_to_a_parent(void *argument)
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

/* Park PE 5, whose deadline that is, for so long. It says whether its deadline has passed. */
static void park_from(wefti_tree_site *site, const wefti_tree_listeners *listeners, uint64_t deadline_ns,
                      uint64_t away_ns, uint64_t until_ns, wefti_link *link)
{
    const wefti_tree_parked parked = {.ticket = TICKET, .away_ns = away_ns};
    wefti_tree_hello said;
    uint64_t ticket = 0;
    accept_from(site, listeners, 0, link, &said);
    for (uint64_t now_ns = weft_sim_now_ns(); now_ns < until_ns; now_ns = weft_sim_now_ns()) {
        int is_early = now_ns < deadline_ns;
        int is_late = now_ns > deadline_ns + away_ns;
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

static void park(wefti_tree_site *site, const wefti_tree_listeners *listeners, uint64_t until_ns, wefti_link *link)
{
    park_from(site, listeners, DEADLINE_NS, AWAY_NS, until_ns, link);
}

/* PE 0 parks PE 5 beyond its deadline, welcomes it, and plays its parent, which sees no ticket. */
void scene_park_long(void *argument)
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

/* PE 5 is parked once, and its parent does not come. It waits for it as long as who was never parked. */
void scene_park_once(void *argument)
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

#define LONG_NS (8 * S_NS)
#define LONG_AWAY_NS WEFTI_TREE_AWAY_MAX_NS
#define BEYOND_NS (500 * MS_NS + LONG_NS / 8 - 2 * LONG_AWAY_NS) /* a word has half a second, coming back an eighth */

/* PE 5 is parked beyond its deadline and a word's time behind that: it still comes back. */
void scene_park_beyond_a_word(void *argument)
{
    static wefti_tree tree;
    static const wefti_tree_failure failure = {.status = WEFT_ERR_MEMORY, .text = "the word of PE 0"};
    wefti_tree_site site = fake_site();
    wefti_link star;
    (void)argument;
    fake_calm(ROOM);
    if (weft_sim_pe() == 1) {
        const weft_status status = fake_open(&tree, &site, 5, 6, LONG_NS, NULL);
        if (status != WEFT_ERR_MEMORY) {
            weft_sim_fail("PE 5: %s: %s", weft_status_name(status), weft_last_error());
        }
        return;
    }
    wefti_tree_listeners root = fake_listen("root");
    park_from(&site, &root, LONG_NS, LONG_AWAY_NS, LONG_NS + BEYOND_NS, &star);
    fake_send(&star, WEFTI_FRAME_FAILURE, 0, &failure, sizeof failure);
    weft_sim_sleep_ns(10 * MS_NS);
    wefti_link_fini(&star);
    wefti_os_socket_stop(root.descriptors[0]);
}

/* ---- a question as the last one comes ---- */

#define ASKED_NS (100 * MS_NS)

/* PE 0 reads at one look that PE 1 asks for whom it waits, and the hello of PE 2, which was the last to come: nobody is
 * late, and nobody is asked, also when PE 1 takes its time for its place. */
void scene_ask_as_the_last_comes(void *argument)
{
    static wefti_tree tree;
    const int pe = weft_sim_pe();
    wefti_tree_site site = fake_site();
    wefti_tree_hello hello = fake_hello(pe, 3);
    wefti_link link;
    (void)argument;
    fake_calm(ROOM);
    if (pe == 0) {
        expect_open(&tree, &site, 0, 3);
        wefti_tree_close(&tree);
        return;
    }
    if (pe == 1) {
        fake_call(&site, &hello, 0, &site.root, &link);
        fake_sleep_until(ASKED_NS);
        weft_sim_stall(0, 20 * MS_NS);
        fake_send(&link, WEFTI_FRAME_EXPIRED, 0, NULL, 0);
    } else {
        wefti_caller caller;
        weft_sim_sleep_ns(ASKED_NS / 2);
        if (wefti_caller_init(&caller, &site, &hello, 0, &site.root) != WEFT_OK) {
            weft_sim_fail("%s", weft_last_error());
        }
        fake_call_until(&caller, WEFTI_CALLER_DONE, ASKED_NS + 5 * MS_NS);
        link = wefti_caller_take(&caller);
        wefti_caller_fini(&caller);
    }
    fake_await_frame(&link, WEFTI_FRAME_WELCOME);
    weft_sim_sleep_ns(pe == 1 ? 500 * MS_NS : 0);
    fake_exchange_as_child(&link, WEFTI_TREE_SEQUENCE_FORMING);
    wefti_link_fini(&link);
}

/* ---- a parent that does not come ---- */

#define PLACE_NS (500 * MS_NS)
#define ROOT_TO_5_NS (5 * WEFTI_TREE_LEVEL_NS) /* from the leaves to PE 0 and down again to PE 5, of 6 */
#define SLACK_NS (20 * MS_NS)

enum { ROOT_ANSWERS, ROOT_IS_SILENT, ROOT_ASKS, ROOTS };

static int root_does;
static uint64_t root_asked_ns;

static void lead_to_nobody(wefti_tree_site *site)
{
    const wefti_tree_welcome welcome = {.parent = fake_contact("parent")};
    wefti_tree_listeners root = fake_listen("root");
    wefti_link star;
    wefti_tree_hello said;
    root_does = (int)weft_sim_random(ROOTS);
    root_asked_ns = PLACE_NS;
    if (!fake_accept(site, &root, 0, S_NS, &star, &said)) {
        weft_sim_fail("PE 5 did not come to PE 0");
    }
    fake_send(&star, WEFTI_FRAME_WELCOME, 0, &welcome, sizeof welcome);
    if (root_does == ROOT_ASKS) {
        fake_sleep_until(PLACE_NS / 5);
        root_asked_ns = weft_sim_now_ns();
        fake_send(&star, WEFTI_FRAME_EXPIRED, WEFTI_TREE_SEQUENCE_FORMING, NULL, 0);
    }
    fake_await_frame(&star, WEFTI_FRAME_EXPIRED);
    if (root_does == ROOT_ANSWERS) {
        fake_send(&star, WEFTI_FRAME_ALIVE, 0, NULL, 0);
    }
    fake_await_frame(&star, WEFTI_FRAME_FAILURE);
    wefti_link_fini(&star);
    wefti_os_socket_stop(root.descriptors[0]);
}

/* PE 5 waits for PE 4 until its own deadline, or until PE 0 asks since another's is over, and as long as the levels
 * between take. It names PE 4 if PE 0 has answered that it is there, else PE 0; that PE 0 asks is no answer. */
void scene_wait_for_a_parent(void *argument)
{
    static wefti_tree tree;
    wefti_tree_site site = fake_site();
    (void)argument;
    fake_calm(ROOM);
    if (weft_sim_pe() == 0) {
        lead_to_nobody(&site);
        return;
    }
    const weft_status status = fake_open(&tree, &site, 5, 6, PLACE_NS, NULL);
    const char *who = root_does == ROOT_ANSWERS ? "PE 4 had not come" : "PE 0 had not come";
    const uint64_t took_ns = weft_sim_now_ns() - root_asked_ns;
    if (status != WEFT_ERR_TIMEOUT || strstr(weft_last_error(), who) == NULL || took_ns < ROOT_TO_5_NS ||
        took_ns > ROOT_TO_5_NS + SLACK_NS) {
        weft_sim_fail("%s, but %llu ms after the deadline there was %s: %s", who, (unsigned long long)(took_ns / MS_NS),
                      weft_status_name(status), weft_last_error());
    }
}

/* ---- a child that comes late ---- */

enum { INNER = 16, INNER_PES = 21, INNER_CHILDREN = 4 };

/* PE 16 of 21 has the children 17 to 19 and 20, which may have had to wait for children of its own as far as anybody
 * knows: it has two levels beyond the deadline. */
void scene_wait_for_a_child(void *argument)
{
    static wefti_tree tree;
    static const wefti_tree_welcome welcome = {{0}};
    static unsigned char none;
    wefti_tree_site site = fake_site();
    wefti_tree_hello said;
    wefti_link star;
    wefti_link children[INNER_CHILDREN];
    (void)argument;
    fake_calm(ROOM);
    if (weft_sim_pe() == 1) {
        const weft_status status = fake_open(&tree, &site, INNER, INNER_PES, PLACE_NS, NULL);
        if (status != WEFT_OK) {
            weft_sim_fail("PE 16: %s: %s", weft_status_name(status), weft_last_error());
        }
        wefti_tree_close(&tree);
        return;
    }
    wefti_tree_listeners root = fake_listen("root");
    if (!fake_accept(&site, &root, 0, S_NS, &star, &said)) {
        weft_sim_fail("PE 16 did not come to PE 0");
    }
    fake_send(&star, WEFTI_FRAME_WELCOME, 0, &welcome, sizeof welcome);
    for (int i = 0; i < INNER_CHILDREN; i++) {
        wefti_tree_hello hello = fake_hello(INNER + 1 + i, INNER_PES);
        fake_sleep_until(i == INNER_CHILDREN - 1 ? PLACE_NS + 2 * WEFTI_TREE_LEVEL_NS - SLACK_NS : 0);
        fake_call(&site, &hello, INNER, &said.listens_at, &children[i]);
        wefti_link_expect(&children[i], WEFTI_FRAME_RESULT, WEFTI_TREE_SEQUENCE_FORMING, &none, 0);
        fake_send(&children[i], WEFTI_FRAME_GATHER, WEFTI_TREE_SEQUENCE_FORMING, NULL, 0);
    }
    wefti_link_expect(&star, WEFTI_FRAME_GATHER, WEFTI_TREE_SEQUENCE_FORMING, &none, 0);
    fake_await_frame(&star, WEFTI_FRAME_EXPIRED); /* the deadline was over */
    fake_await_behind_questions(&star, WEFTI_FRAME_GATHER, 1);
    fake_send(&star, WEFTI_FRAME_RESULT, WEFTI_TREE_SEQUENCE_FORMING, NULL, 0);
    for (int i = 0; i < INNER_CHILDREN; i++) {
        fake_await_behind_questions(&children[i], WEFTI_FRAME_RESULT, 1);
        wefti_link_fini(&children[i]);
    }
    wefti_link_fini(&star);
    wefti_os_socket_stop(root.descriptors[0]);
}

/* ---- more than there are ---- */

/* PE 0 was given 2 PEs, the others 3: all are told as soon as as many have come as anybody knows of. */
void scene_claim_more(void *argument)
{
    static wefti_tree tree;
    const int pe = weft_sim_pe();
    wefti_tree_site site = fake_site();
    wefti_tree_hello hello = fake_hello(pe, 3);
    wefti_link link;
    (void)argument;
    fake_calm(ROOM);
    if (pe == 0) {
        const weft_status status = fake_open(&tree, &site, 0, 2, 5 * S_NS, NULL);
        if (status != WEFT_ERR_MISMATCH || strstr(weft_last_error(), "PE 1 was given 3 PEs") == NULL ||
            weft_sim_now_ns() > 200 * MS_NS) {
            weft_sim_fail("after %llu ms: %s: %s", (unsigned long long)(weft_sim_now_ns() / MS_NS),
                          weft_status_name(status), weft_last_error());
        }
        return;
    }
    weft_sim_sleep_ns(pe == 2 ? 100 * MS_NS : MS_NS);
    fake_call(&site, &hello, 0, &site.root, &link);
    fake_await_frame(&link, WEFTI_FRAME_FAILURE);
    wefti_link_fini(&link);
}
