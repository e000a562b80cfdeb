/* sim/inner/gone.c: simulated worlds over messages, and PEs and threads that make single steps themselves, and stop
 * there, end or leave. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ep/host/arrivals.h"
#include "os/os.h"
#include "sim/inner/gone.h"
#include "team/team.h"
#include "testing/sim/socket.h"
#include "weft.h"
#include "weft_ep.h"
#include "weft_sim.h"
#include "world/world.h"

#define MS_NS UINT64_C(1000000)
#define DEADLINE_NS (100 * MS_NS)
#define TOLD_NS (1000 * MS_NS)
#define PATIENCE_NS (UINT64_C(20000) * MS_NS)

/* Told beside weft: how many PEs have come so far, in virtual time since when, and which of them ends. */
static int turn;
static uint64_t begun_ns;
static int victim;
static int variant; /* of the scene */
uint64_t gone_missed;

void gone_begin(int number)
{
    turn = 0;
    begun_ns = 0;
    variant = number;
    watch_begin();
}

static void await_turn(int wanted)
{
    while (turn < wanted) {
        weft_sim_sleep_ns(MS_NS / 10);
    }
}

static void expect(weft_status status, weft_status wanted, const char *what)
{
    if (status != wanted) {
        weft_sim_fail("%s gave %s: %s", what, weft_status_name(status), status == WEFT_OK ? "" : weft_last_error());
    }
}
#define MUST(call) expect((call), WEFT_OK, #call)

/* Asked by waits: without a deadline nothing else ends one that is in vain. */
static int has_waited(void *context)
{
    (void)context;
    if (begun_ns != 0 && weft_sim_now_ns() - begun_ns > PATIENCE_NS) {
        weft_sim_fail("PE %d still waits for what never comes", weft_sim_pe());
    }
    return 0;
}

static weft_world *begin(uint64_t deadline_ns)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    weft_sim_world_config(&config);
    config.deadline_ns = deadline_ns;
    config.interrupted = has_waited;
    MUST(weft_world_create(&config, &world));
    return world;
}

/* ---- who ends at once ---- */

void gone_end_at_once(void *argument)
{
    victim = variant;
    weft_world *world = begin(WEFT_FOREVER);
    char name[16];
    (void)argument;
    turn++;
    if (weft_sim_pe() == victim) {
        await_turn(weft_sim_pes()); /* else the world does not come about */
        begun_ns = weft_sim_now_ns();
        weft_sim_kill(victim);
    }
    (void)snprintf(name, sizeof name, "PE %d", victim);
    expect(weft_barrier(world), WEFT_ERR_PEER, "a barrier without one that has ended");
    if (strstr(weft_last_error(), name) == NULL) {
        weft_sim_fail("not PE %d is named: %s", victim, weft_last_error());
    }
    MUST(weft_world_destroy(world));
}

/* Nodes of two, the last of one: any of them ends as soon as its world is there. */
/* ---- who ends as another leaves ---- */

/* Nodes of three. Those of the second from `victim` on end, at once or one by one, while PE 0, which leads the first
 * and is connected to the leader of the second, has done its part and leaves; so does, beside it, who is before
 * `victim`.
 * The others of the first node are told of `victim`, and of those behind it unless their node has never been connected
 * to by this one, but only the other way round: then they count as hidden by a firewall. */
void gone_end_as_one_leaves(void *argument)
{
    victim = 3 + variant;
    weft_world *world = begin(WEFT_FOREVER);
    const int pe = weft_sim_pe();
    const uint64_t apart_ns = weft_sim_random(2) * weft_sim_random(MS_NS / 5);
    const int is_behind = weft_sim_random(2) == 0; /* they end once PE 0 has left */
    (void)argument;
    turn++;
    await_turn(weft_sim_pes());
    if (pe == 1) {
        while (is_behind && !wefti_world_has_left(world, 0)) {
            weft_sim_sleep_ns(MS_NS / 1000);
        }
        weft_sim_sleep_ns(weft_sim_random((MS_NS / 200) << weft_sim_random(10)) + 1);
        for (int other = victim; other < 6; other++) {
            weft_sim_kill(other);
            weft_sim_sleep_ns(apart_ns + 1);
        }
        begun_ns = weft_sim_now_ns();
    }
    for (int other = victim; other < 6 && (pe == 1 || pe == 2); other++) {
        while (!wefti_world_is_lost(world, other) && (other == victim || weft_sim_now_ns() - begun_ns < TOLD_NS)) {
            weft_sim_sleep_ns(MS_NS);
            (void)has_waited(NULL);
        }
        gone_missed += !wefti_world_is_lost(world, other);
    }
    if (pe >= victim) {
        weft_sim_sleep_ns(2 * PATIENCE_NS);
    }
    MUST(weft_world_destroy(world));
}

/* ---- whose host was silent ---- */

/* Nodes of one. The link of PE 2 is down for so long that it misses those that it is connected to, as they miss it;
 * then it connects to another one, and says so: nobody else is gone for all that. */
void gone_come_back(void *argument)
{
    weft_world *world = begin(DEADLINE_NS);
    uint64_t *word;
    uint64_t got;
    (void)argument;
    MUST(weft_calloc(world, 1, sizeof *word, (void **)&word));
    turn++;
    await_turn(weft_sim_pes());
    weft_sim_sleep_ns(1000 * MS_NS);
    if (weft_sim_pe() == 2) {
        wefti_sim_socket_silence(1 << 2, 8000 * MS_NS, 0);
    }
    weft_sim_sleep_ns(10000 * MS_NS);
    for (int pe = 0; pe < weft_sim_pes() && weft_sim_pe() != 2; pe++) {
        expect(weft_getmem(world, &got, word, sizeof got, pe), pe == 2 ? WEFT_ERR_PEER : WEFT_OK, "a get");
    }
    turn++;
    await_turn(2 * weft_sim_pes()); /* who leaves before would be missed */
    MUST(weft_world_destroy(world));
}

/* ---- who is late ---- */

/* PE 2, a node of its own, comes to a sync and stands still before it sends the flag of its second round, by which
 * PE 0 is done and leaves; PE 1 of the same node waits for that flag. */
void gone_leave_before_the_late(void *argument)
{
    weft_world *world = begin(WEFT_FOREVER);
    weft_team *team = weft_team_world(world);
    (void)argument;
    if (weft_sim_pe() < 2) {
        MUST(weft_sync(world));
        MUST(weft_world_destroy(world));
        return;
    }
    const uint64_t epoch = wefti_ld64(&team->epochs->sync, WEFTI_RELAXED) + 1;
    wefti_st64(&team->epochs->sync, epoch, WEFTI_RELEASE);
    MUST(wefti_world_flag(world, wefti_team_sync_flag(team->area, 0), epoch, 0));
    weft_sim_sleep_ns(MS_NS);
    weft_sim_stall(2, 1500 * MS_NS);
    weft_sim_sleep_ns(1);
    MUST(wefti_world_flag(world, wefti_team_sync_flag(team->area, 1), epoch, 1));
    MUST(weft_world_destroy(world));
}

/* ---- who leaves without its part ---- */

/* PE 1, of PE 0's node, does its part of a sync and ends. PE 2, of another, has met that and leaves, so that nobody can
 * ask it any more how far it came; PE 0 waits for it. */
void gone_leave_without_a_part(void *argument)
{
    weft_world *world = begin(WEFT_FOREVER);
    weft_team *team = weft_team_world(world);
    const uint64_t epoch = wefti_ld64(&team->epochs->sync, WEFTI_RELAXED) + 1;
    (void)argument;
    turn++;
    await_turn(3);
    if (weft_sim_pe() == 1) {
        wefti_st64(&team->epochs->sync, epoch, WEFTI_RELEASE);
        MUST(wefti_world_flag(world, wefti_team_sync_flag(team->area, 0), epoch, 2));
        MUST(wefti_world_flag(world, wefti_team_sync_flag(team->area, 1), epoch, 0));
        turn++;
        begun_ns = weft_sim_now_ns();
        weft_sim_kill(1);
    }
    if (weft_sim_pe() == 2) {
        await_turn(4);
    } else {
        expect(weft_sync(world), WEFT_ERR_PEER, "a sync that one has left without its part");
    }
    MUST(weft_world_destroy(world));
}

/* ---- who leaves and takes no part ---- */

#define WORDS 8
static int part; /* that PE 2 does not do; or when it ends */

/* The lock whose queue begins at PE 0. */
static long *lock_of(const weft_world *world, uint64_t *words)
{
    while (((uintptr_t)words - world->view.heap) / sizeof *words % (size_t)weft_sim_pes() != 0) {
        words++;
    }
    return (long *)(void *)words;
}

static void open_group(weft_world *world, weft_ep **ep, weft_ep_route **route)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    config.experts = weft_sim_pes();
    config.tokens_max = 1;
    config.topk_max = plan.topk = 1;
    config.row_bytes_max = 16;
    MUST(weft_ep_create(weft_team_world(world), &config, ep));
    MUST(weft_ep_route_create(*ep, &plan, NULL, route));
}

static weft_status call_for_all(weft_world *world, uint64_t *words, weft_ep_route *route)
{
    static const int32_t ids[] = {0};
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = 1;
    choices.ids = ids;
    switch (part) {
    case 0:
        return weft_sync(world);
    case 1:
        return weft_uint64_broadcast(weft_team_world(world), &words[1], words, 1, 2);
    case 2:
        return weft_ep_route_update(route, &choices, NULL);
    default:
        return weft_set_lock(world, lock_of(world, words));
    }
}

/* Nodes of one. Nobody is lost; but PE 2 has left, and nobody can ask it whether it has done its part. */
void gone_leave_all_to_others(void *argument)
{
    part = variant;
    weft_world *world = begin(WEFT_FOREVER);
    uint64_t *words;
    weft_ep *ep;
    weft_ep_route *route;
    (void)argument;
    MUST(weft_calloc(world, WORDS, sizeof *words, (void **)&words));
    open_group(world, &ep, &route);
    if (weft_sim_pe() == 2) {
        MUST(weft_set_lock(world, lock_of(world, words)));
    }
    MUST(weft_uint64_broadcast(weft_team_world(world), &words[1], words, 1, 0)); /* the first makes memory, too */
    MUST(weft_barrier(world));
    begun_ns = weft_sim_now_ns();
    if (weft_sim_pe() != 2) {
        expect(call_for_all(world, words, route), WEFT_ERR_PEER, "a call that one has left");
        if (strstr(weft_last_error(), "PE 2") == NULL) {
            weft_sim_fail("not PE 2 is named: %s", weft_last_error());
        }
        turn++;
        await_turn(2);
    }
    MUST(weft_world_destroy(world));
}

/* ---- who leaves because of one that is lost ---- */

/* PE 0, of PE 1's node, leaves at once, of which PE 1 knows at once; of the end of PE 2, of another node, it is told
 * later. */
void gone_leave_before_the_news(void *argument)
{
    weft_world *world = begin(WEFT_FOREVER);
    (void)argument;
    turn++;
    await_turn(3);
    begun_ns = weft_sim_now_ns();
    if (weft_sim_pe() == 2) {
        weft_sim_sleep_ns(400 * MS_NS);
        weft_sim_kill(2);
    }
    if (weft_sim_pe() == 1) {
        expect(weft_sync(world), WEFT_ERR_PEER, "a sync that one has left because of another");
        if (strstr(weft_last_error(), "PE 2 ended") == NULL || strstr(weft_last_error(), "PE 0") != NULL) {
            weft_sim_fail("not PE 2 is named: %s", weft_last_error());
        }
    }
    MUST(weft_world_destroy(world));
}

/* ---- who ends soon after another ---- */

#define APART_NS (30 * MS_NS)

/* Nodes of two, of which the second ends, one PE a moment after the other: perhaps between two looks of who waits. */
void gone_end_one_by_one(void *argument)
{
    part = variant;
    weft_world *world = begin(WEFT_FOREVER);
    (void)argument;
    turn++;
    await_turn(4);
    begun_ns = weft_sim_now_ns();
    if (weft_sim_pe() >= 2) {
        weft_sim_sleep_ns((uint64_t)(1 + part) * APART_NS / 2 + (weft_sim_pe() == 3 ? APART_NS : 0));
        weft_sim_kill(weft_sim_pe());
    }
    expect(weft_barrier(world), WEFT_ERR_PEER, "a barrier without a node");
    if (strstr(weft_last_error(), "PEs 2, 3 ended") == NULL) {
        weft_sim_fail("not PEs 2 and 3 are named: %s", weft_last_error());
    }
    turn++;
    await_turn(6);
    MUST(weft_world_destroy(world));
}

/* ---- who is about to say that it asked for a lock ---- */

#define LOCK_IN UINT32_C(0x80000000) /* src/rma/lock.c */
#define LOCK_HAS UINT32_C(0x40000000)

static uint32_t change(weft_world *world, wefti_amo_op op, uint32_t *word, uint32_t value, int pe)
{
    uint64_t old = 0;
    MUST(wefti_amo(world, op, 32, word, value, 0, pe, &old));
    return (uint32_t)old;
}

/* It has asked for the lock that PE 0 has, stands still before it tells that, and then is given the lock. */
static void ask_slowly(weft_world *world, uint32_t *lock)
{
    wefti_st32(&lock[1], LOCK_IN, WEFTI_RELEASE);
    const uint32_t before = change(world, WEFTI_AMO_SWAP, &lock[0], 2, 0);
    turn++;
    weft_sim_sleep_ns(3000 * MS_NS);
    (void)change(world, WEFTI_AMO_OR, &lock[1], 2, (int)before - 1);
    while ((wefti_ld32(&lock[1], WEFTI_ACQUIRE) & LOCK_HAS) == 0) {
        weft_sim_sleep_ns(MS_NS);
        (void)has_waited(NULL);
    }
}

/* Nodes of one, of which PE 3 has ended, which has nothing to do with the lock. */
void gone_ask_in_turn(void *argument)
{
    weft_world *world = begin(WEFT_FOREVER);
    uint64_t *words;
    (void)argument;
    MUST(weft_calloc(world, WORDS, sizeof *words, (void **)&words));
    long *lock = lock_of(world, words);
    if (weft_sim_pe() == 0) {
        MUST(weft_set_lock(world, lock));
    }
    MUST(weft_barrier(world));
    begun_ns = weft_sim_now_ns();
    switch (weft_sim_pe()) {
    case 0:
        await_turn(1);
        break;
    case 1:
        ask_slowly(world, (uint32_t *)(void *)lock);
        break;
    case 2:
        await_turn(1);
        MUST(weft_set_lock(world, lock));
        break;
    default:
        weft_sim_kill(3);
    }
    MUST(weft_clear_lock(world, lock));
    turn++;
    await_turn(4);
    MUST(weft_world_destroy(world));
}

/* ---- a lock whose queue ends at a PE that is gone ---- */

static int home_ends; /* or it leaves */
static uint64_t deadline_of_home;

/* Nodes of one. PE 1 has the lock, and nobody has asked for it, which PE 0 alone could tell. */
void gone_clear_without_home(void *argument)
{
    home_ends = variant % 2;
    deadline_of_home = variant / 2 == 0 ? WEFT_FOREVER : PATIENCE_NS / 2;
    weft_world *world = begin(deadline_of_home);
    uint64_t *words;
    (void)argument;
    MUST(weft_calloc(world, WORDS, sizeof *words, (void **)&words));
    long *lock = lock_of(world, words);
    if (weft_sim_pe() == 1) {
        MUST(weft_set_lock(world, lock));
    }
    MUST(weft_barrier(world));
    begun_ns = weft_sim_now_ns();
    if (weft_sim_pe() == 0 && home_ends) {
        weft_sim_kill(0);
    }
    if (weft_sim_pe() == 1) {
        weft_sim_sleep_ns(500 * MS_NS);
        expect(weft_clear_lock(world, lock), WEFT_ERR_PEER, "to clear a lock whose queue ends at who is gone");
        if (strstr(weft_last_error(), "PE 0") == NULL) {
            weft_sim_fail("not PE 0 is named: %s", weft_last_error());
        }
    }
    MUST(weft_world_destroy(world));
}

/* ---- who asks something of who stands still ---- */

#define STANDS_NS (900 * MS_NS)
#define INTERRUPTED_AFTER_NS (100 * MS_NS)
#define ENDED_NS (750 * MS_NS) /* who aborts tells others for half a second */

static int interrupts; /* PE 0 itself, or PE 2 aborts */
static int asks; /* what PE 0 asks of PE 1 */

static int interrupt(void *context)
{
    (void)context;
    return weft_sim_pe() == 0 && interrupts && weft_sim_now_ns() - begun_ns > INTERRUPTED_AFTER_NS ? 7 : 0;
}

static weft_status ask_who_stands(weft_world *world, uint64_t *words)
{
    static uint64_t many[16384];
    uint64_t got;
    switch (asks) {
    case 0:
        return weft_uint64_atomic_fetch(world, words, 1, &got);
    case 1:
        MUST(weft_uint64_p(world, words, 1, 1));
        return weft_quiet(world);
    default:
        for (;;) { /* until there is no room for more */
            WEFT_TRY(weft_putmem(world, words, many, sizeof many, 1));
        }
    }
}

/* Nodes of one, without a deadline. */
void gone_wait_for_who_stands(void *argument)
{
    asks = variant;
    interrupts = asks != 1;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    uint64_t *words;
    (void)argument;
    weft_sim_world_config(&config);
    config.deadline_ns = WEFT_FOREVER;
    config.interrupted = interrupt;
    begun_ns = UINT64_MAX / 2;
    MUST(weft_world_create(&config, &world));
    MUST(weft_calloc(world, 16384, sizeof *words, (void **)&words));
    turn++;
    await_turn(weft_sim_pes());
    if (weft_sim_pe() == 1) {
        turn++;
        weft_sim_stall(1, STANDS_NS);
    }
    await_turn(weft_sim_pes() + 1);
    weft_sim_sleep_ns(MS_NS);
    begun_ns = weft_sim_now_ns();
    if (weft_sim_pe() == 0) {
        expect(ask_who_stands(world, words), WEFT_ERR_ABORTED, "a call for who stands still");
        if (weft_sim_now_ns() - begun_ns > ENDED_NS) {
            weft_sim_fail("an abort is heard after %llu ms",
                          (unsigned long long)((weft_sim_now_ns() - begun_ns) / MS_NS));
        }
    } else if (weft_sim_pe() == 2 && !interrupts) {
        weft_sim_sleep_ns(INTERRUPTED_AFTER_NS);
        MUST(weft_world_abort(world, 7));
    }
    while (weft_sim_pe() == 1 && weft_world_fault(world, NULL) == WEFT_OK) {
        weft_sim_sleep_ns(MS_NS);
        if (weft_sim_now_ns() - begun_ns > PATIENCE_NS) {
            weft_sim_fail("who stood still is not told of an abort");
        }
    }
    turn++;
    while (turn < 2 * weft_sim_pes() + 1) { /* who leaves tells nobody any more */
        weft_sim_sleep_ns(10 * MS_NS);
    }
    MUST(weft_world_destroy(world));
}

/* ---- who is in another call ---- */

/* Nodes of one. PE 2 takes PE 0 for the root of a broadcast, the others PE 2: all wait, and nobody sends anything by
 * which others could tell, so they find it out when their time is over. */
void gone_call_otherwise(void *argument)
{
    weft_world *world = begin(DEADLINE_NS);
    uint64_t *words;
    (void)argument;
    MUST(weft_calloc(world, 2, sizeof *words, (void **)&words));
    const int root = weft_sim_pe() == 2 ? 0 : 2;
    expect(weft_uint64_broadcast(weft_team_world(world), &words[1], words, 1, root), WEFT_ERR_MISMATCH,
           "a broadcast of another root");
    if (strstr(weft_last_error(), weft_sim_pe() == 1 ? "PEs 1 and 2 " : "PEs 0 and 2 ") == NULL) {
        weft_sim_fail("others than PE 2 and this one or PE 0 are named: %s", weft_last_error());
    }
    turn++;
    await_turn(weft_sim_pes());
    MUST(weft_world_destroy(world));
}

/* ---- who cannot be asked ---- */

/* Rank 1, of another node, has left: whether it had given rank 0 up nobody can tell any more. */
void gone_leave_unasked(void *argument)
{
    weft_world *world = begin(DEADLINE_NS);
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep *ep;
    unsigned char masked[2];
    (void)argument;
    config.experts = 2;
    config.tokens_max = 1;
    config.topk_max = 1;
    config.row_bytes_max = 16;
    config.flags = WEFT_EP_MASK_ON_TIMEOUT;
    MUST(weft_ep_create(weft_team_world(world), &config, &ep));
    MUST(weft_barrier(world));
    if (weft_sim_pe() == 1) {
        MUST(weft_world_destroy(world));
        turn++;
        return;
    }
    await_turn(1);
    weft_sim_sleep_ns(2 * DEADLINE_NS); /* so long this rank's call has taken */
    if (wefti_ep_find_given_up(ep, 1) != 1) {
        weft_sim_fail("a rank that cannot be asked counts as one that waited");
    }
    MUST(weft_ep_mask_query(ep, masked, NULL));
    if (!masked[1]) {
        weft_sim_fail("a rank that cannot be asked is not masked");
    }
    MUST(weft_world_destroy(world));
}

/* ---- a heap that seems full ---- */

/* What another thread has proposed, and gives up a moment later. */
typedef struct proposal {
    weft_world *world;
    uint64_t offset;
} proposal;

static void give_up(void *argument)
{
    const proposal *made = argument;
    weft_sim_sleep_ns(MS_NS / 5);
    wefti_os_monitor_enter(made->world->heap_lock);
    made->world->blocks.proposed--;
    wefti_blocks_drop(&made->world->blocks, made->offset);
    wefti_os_monitor_leave(made->world->heap_lock);
}

void gone_allocate_beside_a_proposal(void *argument)
{
    weft_world *world = begin(1000 * MS_NS);
    proposal made = {.world = world};
    wefti_os_thread *thread;
    void *block;
    (void)argument;
    MUST(weft_barrier(world));
    wefti_os_monitor_enter(world->heap_lock);
    made.offset = wefti_blocks_end(&world->blocks);
    const uint64_t bytes = world->blocks.limit - made.offset;
    MUST(wefti_blocks_take(&world->blocks, made.offset, bytes, WEFTI_OWNER_LIBRARY));
    world->blocks.proposed++;
    wefti_os_monitor_leave(world->heap_lock);
    MUST(wefti_os_thread_start(&thread, give_up, &made));
    MUST(weft_malloc(world, bytes / 2, &block));
    wefti_os_thread_join(thread);
    MUST(weft_free(world, block));
    MUST(weft_world_destroy(world));
}
