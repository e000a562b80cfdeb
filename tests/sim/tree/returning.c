/* sim/tree/returning.c: PEs that PE 0 has come back for its word: they come back twice at once, never, or late. */
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
    int may_park; /* PE 1 has come while there were descriptors */
    int may_come;
    uint64_t told_ns;
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

/* PE 0 has three PEs; what it returns is checked by the scene. */
static weft_status open_root(uint64_t deadline_ns)
{
    static wefti_tree tree;
    wefti_tree_site site = fake_site();
    const weft_status status = fake_open(&tree, &site, 0, 3, deadline_ns, NULL);
    if (status == WEFT_OK) {
        wefti_tree_close(&tree);
    }
    return status;
}

static void expect_named(weft_status status, const char *who)
{
    if (status != WEFT_ERR_TIMEOUT || strstr(weft_last_error(), who) == NULL) {
        weft_sim_fail("%s, but there was %s: %s", who, weft_status_name(status),
                      status == WEFT_OK ? "" : weft_last_error());
    }
}

/* Call PE 0 and be parked; the ticket is in the hello from then on. */
static void come_parked(wefti_tree_site *site, wefti_tree_hello *hello, wefti_link *link)
{
    wefti_tree_parked parked;
    fake_call(site, hello, 0, &site->root, link);
    fake_await_frame(link, WEFTI_FRAME_PARKED);
    memcpy(&parked, link->body, sizeof parked);
    if (hello->ticket != 0 && parked.ticket != hello->ticket) {
        weft_sim_fail("a parked PE got another ticket");
    }
    hello->ticket = parked.ticket;
}

/* ---- who comes back twice ---- */

/* With one ticket, by two connections at once; then it comes for its welcome, when PE 1 has come at last. */
static void come_back_twice(wefti_tree_site *site)
{
    wefti_tree_hello hello = fake_hello(2, 3);
    wefti_link links[2];
    weft_sim_sleep_ns(10 * MS_NS); /* all have begun */
    wefti_sim_socket_make_scarce();
    come_parked(site, &hello, &links[0]);
    wefti_link_fini(&links[0]);
    for (int i = 0; i < 2; i++) {
        come_parked(site, &hello, &links[i]);
    }
    board.may_come = 1;
    for (int i = 0; i < 2; i++) {
        wefti_link_fini(&links[i]);
    }
    do {
        weft_sim_sleep_ns(5 * MS_NS);
        fake_call(site, &hello, 0, &site->root, &links[0]);
        if (fake_await(&links[0], S_NS) != WEFTI_LINK_FRAME) {
            weft_sim_fail("a parked PE that came back was told nothing");
        }
        if (links[0].in.type == WEFTI_FRAME_PARKED) {
            wefti_link_fini(&links[0]);
        }
    } while (!wefti_link_is_open(&links[0]));
    if (links[0].in.type != WEFTI_FRAME_WELCOME) {
        weft_sim_fail("a parked PE that came back was told %u", links[0].in.type);
    }
    fake_exchange_as_child(&links[0], WEFTI_TREE_SEQUENCE_FORMING);
    wefti_link_fini(&links[0]);
}

void scene_come_back_twice(void *argument)
{
    wefti_tree_site site = fake_site();
    wefti_link link;
    (void)argument;
    begin();
    if (weft_sim_pe() == 0) {
        const weft_status status = open_root(2 * S_NS);
        if (status != WEFT_OK) {
            weft_sim_fail("PE 0: %s: %s", weft_status_name(status), weft_last_error());
        }
    } else if (weft_sim_pe() == 1) {
        await_sign(&board.may_come);
        fake_join(&site, 1, 3, &link);
        wefti_link_fini(&link);
    } else {
        come_back_twice(&site);
    }
}

/* ---- who does not come back ---- */

#define DEADLINE_NS S_NS

/* All have come, but PE 2 does not come back for its welcome: it is named, to PE 1 too, an eighth of the deadline after
 * that at most. */
void scene_stay_away(void *argument)
{
    wefti_tree_site site = fake_site();
    wefti_tree_hello hello = fake_hello(weft_sim_pe(), 3);
    wefti_link link;
    (void)argument;
    begin();
    if (weft_sim_pe() == 0) {
        expect_named(open_root(DEADLINE_NS), "PE 2 had not come to its place");
        if (weft_sim_now_ns() > DEADLINE_NS + DEADLINE_NS / 4) {
            weft_sim_fail("who stays away is named after %llu ms", (unsigned long long)(weft_sim_now_ns() / MS_NS));
        }
        return;
    }
    if (weft_sim_pe() == 1) {
        fake_call(&site, &hello, 0, &site.root, &link);
        weft_sim_sleep_ns(2 * MS_NS); /* PE 0 has seen to it */
        board.may_park = 1;
        fake_await_frame(&link, WEFTI_FRAME_WELCOME);
        weft_sim_sleep_ns(DEADLINE_NS / 2);
        fake_await_frame(&link, WEFTI_FRAME_FAILURE);
    } else {
        await_sign(&board.may_park);
        wefti_sim_socket_make_scarce();
        come_parked(&site, &hello, &link);
    }
    wefti_link_fini(&link);
}

/* ---- whose time is over ---- */

/* PE 2 comes back and says that its deadline has passed, long before that of PE 0: PE 1, which is missing, is named at
 * once, and PE 2 told when it comes back. */
void scene_come_back_overdue(void *argument)
{
    wefti_tree_site site = fake_site();
    wefti_tree_hello hello = fake_hello(2, 3);
    wefti_link link;
    (void)argument;
    begin();
    if (weft_sim_pe() == 0) {
        expect_named(open_root(10 * S_NS), "PE 1 had not come to its creation");
        if (board.told_ns == 0) {
            weft_sim_fail("PE 0 gave up before who asked was told");
        }
        return;
    }
    if (weft_sim_pe() == 1) {
        return;
    }
    weft_sim_sleep_ns(10 * MS_NS); /* all have begun */
    wefti_sim_socket_make_scarce();
    come_parked(&site, &hello, &link);
    wefti_link_fini(&link);
    weft_sim_sleep_ns(200 * MS_NS);
    hello.is_overdue = 1;
    fake_call(&site, &hello, 0, &site.root, &link);
    if (fake_await(&link, S_NS) == WEFTI_LINK_FRAME && link.in.type == WEFTI_FRAME_PARKED) {
        wefti_link_fini(&link);
        weft_sim_sleep_ns(5 * MS_NS);
        fake_call(&site, &hello, 0, &site.root, &link);
        fake_await_frame(&link, WEFTI_FRAME_FAILURE);
    }
    if (link.in.type != WEFTI_FRAME_FAILURE) {
        weft_sim_fail("who is overdue was told %u", link.in.type);
    }
    board.told_ns = weft_sim_now_ns();
    wefti_link_fini(&link);
}
