/* sim/ep_absent.c: ranks that come to a call of expert parallelism, of any kind, or to its second half, when the others
 * have given them up. In a group that does not mask (ep_kept) these have a status and say that the late ones are
 * alive, and all are in the next call together; in one that does (ep_passed) they go on, the late one does without
 * them, and comes back. */
#include <string.h>

#include "sim/ep_flow.h"

#define DEADLINE_NS UINT64_C(50000000)
#define WARM_CALLS 4
#define LAST_CALLS 2

enum { BOARD_DONE = 1100, BOARD_CALLS = 1120 };

/* What is drawn of a run. */
typedef struct absence {
    flow f;
    uint64_t late; /* ranks, a bit each */
    int is_late; /* this one is */
    int in_halves; /* it comes late to the recv */
    int pairs; /* pairs_max */
    int meets; /* all meet beside weft before the next call, else who was late is told as it comes */
    flow_kind kind; /* of the call that is missed */
    flow_call *call;
} absence;

static uint64_t all_but(const flow *f, uint64_t ranks)
{
    return ((UINT64_C(1) << f->ranks) - 1) & ~ranks;
}

/* Calls that all make. */
static void make_calls(flow *f, int count, uint64_t *common)
{
    for (int i = 0; i < count; i++) {
        flow_call *call = &f->calls[i % 2];
        flow_prepare(f, call, flow_draw(&f->routes[0], common), &f->routes[0]);
        dawdle(4, 5000);
        MUST(flow_whole(call));
        flow_done(f, call);
    }
}

/* Who is not late has left the call. */
static void tell_done(const absence *a)
{
    a->f.run->board[BOARD_DONE + a->f.rank] = 1;
}

static void await_done(const absence *a)
{
    for (int rank = 0; rank < a->f.ranks; rank++) {
        while ((a->late >> rank & 1) == 0 && a->f.run->board[BOARD_DONE + rank] == 0) {
            weft_sim_sleep_ns(200000);
        }
    }
    weft_sim_sleep_ns(DEADLINE_NS / 25); /* until they are in the next one, where they make it at once */
    dawdle(2, DEADLINE_NS / 8);
}

/* The call that is missed, as each makes it; who is late comes when the others have left it. *took_ns: what was late in
 * it. */
static weft_status miss(absence *a, uint64_t *took_ns)
{
    if (a->is_late && !a->in_halves) {
        await_done(a);
    }
    flow_prepare(&a->f, a->call, a->kind, &a->f.routes[0]);
    if (a->in_halves) {
        MUST(flow_send(a->call));
        if (a->is_late) {
            await_done(a);
        }
    }
    const uint64_t begun_ns = weft_sim_now_ns();
    const weft_status status = a->in_halves ? flow_recv(a->call) : flow_whole(a->call);
    *took_ns = weft_sim_now_ns() - begun_ns;
    return status;
}

static void check_time(const absence *a, uint64_t took_ns, uint64_t most_ns)
{
    if (took_ns > most_ns && !a->f.run->messages) {
        weft_sim_fail("rank %d: call %d of kind %d took %d us, where %d are enough", a->f.rank, (int)a->call->number,
                      (int)a->kind, (int)(took_ns / 1000), (int)(most_ns / 1000));
    }
}

static void draw_call(absence *a, uint64_t *common)
{
    a->kind = flow_draw(&a->f.routes[0], common);
    a->in_halves = flow_has_halves(a->kind) && common_below(common, 3) == 0;
    a->call = &a->f.calls[2];
}

/* ---- without masks ---- */

/* Whether ranks that are late together may harm each other: one that has been told, and is in the next call, has rows
 * in memory to which the others still send those of this one. On another bank that memory is another. */
static int is_shared(const absence *a)
{
    return !a->meets && a->pairs == 1 && !flow_returns(a->kind) && a->kind != FLOW_UPDATE;
}

/* All ranks of a domain, or one, or any, but not all. Where all do not meet beside weft, any of one domain: of two that
 * are late each would wait for what a forwarder that has gone on was to tell it of the other. */
static void draw_late(absence *a, uint64_t *common)
{
    const int one = common_below(common, a->f.ranks);
    const int which = is_shared(a) ? 2 : common_below(common, 3);
    for (int rank = 0; rank < a->f.ranks; rank++) {
        const int is_near = a->f.domain_of[rank] == a->f.domain_of[one];
        const int is_late = which == 0   ? is_near && a->f.domains > 1
                            : which == 1 ? common_below(common, 3) == 0 && (a->meets || is_near)
                                         : 0;
        a->late |= (uint64_t)(rank == one || is_late) << rank;
    }
    if (all_but(&a->f, a->late) == 0) {
        a->late = UINT64_C(1) << one;
    }
    a->is_late = (int)(a->late >> a->f.rank & 1);
}

/* Who was late is named, if also others that wait for it. */
static void check_named(const absence *a)
{
    static const char names[] = "cannot end: PE";
    const char *who = strstr(weft_last_error(), names);
    uint64_t ranks = 0;
    const uint64_t pes = who == NULL ? 0 : named_pes(who + strlen(names) + (who[strlen(names)] == 's'), &who);
    for (int rank = 0; rank < a->f.ranks; rank++) {
        ranks |= (pes >> flow_pe(&a->f, rank) & 1) << rank;
    }
    if ((a->late & ~ranks) != 0) {
        weft_sim_fail("rank %d: ranks 0x%llx are late, and there was: %s", a->f.rank, (unsigned long long)a->late,
                      weft_last_error());
    }
}

/* What the route says of its routing, and what calls on it give while there is none or the group is dead. */
static void check_routing(const absence *a, weft_status wanted)
{
    const flow_route *on = &a->f.routes[0];
    flow_told(&a->f, on, on->routing != 0);
    if (wanted != WEFT_OK) {
        flow_refused(&a->f, on, wanted);
    }
    if (flow_made(&a->f) != a->call->number) {
        weft_sim_fail("rank %d: %d calls are counted after call %d", a->f.rank, (int)flow_made(&a->f),
                      (int)a->call->number);
    }
}

/* All others are alive. */
static void keep_all(const absence *a)
{
    flow_expect(&a->f, weft_ep_failure(a->f.ep), WEFT_ERR_TIMEOUT, "weft_ep_failure");
    check_routing(a, WEFT_ERR_TIMEOUT);
    for (int rank = 0; rank < a->f.ranks; rank++) {
        if (rank != a->f.rank) {
            MUST(weft_ep_mask(a->f.ep, rank, 1));
        }
    }
    flow_expect(&a->f, weft_ep_failure(a->f.ep), WEFT_OK, "weft_ep_failure");
}

/* Nobody can end the call without who is late; in halves somebody may have what that one had sent. */
static void give_up(const absence *a, weft_status status)
{
    if (a->in_halves && status == WEFT_OK) {
        flow_done(&a->f, a->call);
        return;
    }
    flow_expect(&a->f, status, WEFT_ERR_TIMEOUT, "the call that was missed");
    if (!a->in_halves) {
        check_named(a);
    }
    keep_all(a);
}

/* Who comes late is told so at once where the others are in the next call, or where it reads what they had ready and
 * sees that they have gone on; else it waits for them. */
static void come_late(const absence *a, weft_status status, uint64_t took_ns)
{
    const int returns = flow_returns(a->kind);
    if (a->in_halves && !returns && status == WEFT_OK) {
        flow_done(&a->f, a->call);
        return;
    }
    if (status != WEFT_ERR_MISMATCH || a->meets) {
        flow_expect(&a->f, status, returns || a->meets ? WEFT_ERR_TIMEOUT : WEFT_ERR_MISMATCH,
                    "the call to which it came late");
        keep_all(a);
    }
    if ((returns && a->f.domains == 1) || !a->meets) {
        check_time(a, took_ns, DEADLINE_NS / 2);
    }
}

void case_ep_kept(void *argument)
{
    absence a = {.late = 0};
    uint64_t took_ns;
    case_run *run = argument;
    uint64_t common = run->seed;
    a.pairs = 1 + common_below(&common, 2);
    const flow_plan plan = {.deadline_ns = DEADLINE_NS, .pairs_max = a.pairs, .crosses = common_below(&common, 4) > 0};
    flow_open(&a.f, run, &common, &plan);
    make_calls(&a.f, common_below(&common, WARM_CALLS), &common);
    draw_call(&a, &common);
    a.meets = a.in_halves || common_below(&common, 3) == 0;
    draw_late(&a, &common);
    const weft_status status = miss(&a, &took_ns);
    if (flow_routes_anew(a.kind) && !(a.in_halves && status == WEFT_OK)) {
        a.f.routes[0].routing = 0;
    }
    if (a.is_late) {
        come_late(&a, status, took_ns);
        MUST(weft_quiet(a.f.world)); /* its flags, which a forwarder's for it in the next call might overtake */
    } else {
        give_up(&a, status);
    }
    check_routing(&a, a.f.routes[0].routing == 0 ? WEFT_ERR_STATE : WEFT_OK);
    tell_done(&a);
    if (a.meets) {
        flow_meet(&a.f, 1, run->pes);
    }
    if (flow_routes_anew(a.kind) || a.kind == FLOW_WEIGHED) { /* new weights some may have, and some not */
        a.f.routes[0].routing = 0;
    }
    a.f.is_soiled = 1; /* of two that are late one may be in the next call when the other sends it rows of this one */
    make_calls(&a.f, 1, &common);
    a.f.is_soiled = 0;
    make_calls(&a.f, LAST_CALLS, &common);
    flow_close(&a.f);
}

/* ---- ranks that mask who is late ---- */

/* The others have what they sent each other; of who was late what it had ready before, and where that was all some need
 * not have missed it. */
static void go_on(absence *a, weft_status status, uint64_t took_ns)
{
    const uint64_t masked = flow_masked(&a->f);
    must(status, "a call without who is late");
    check_time(a, took_ns, DEADLINE_NS * (a->in_halves ? 5 : 1) + DEADLINE_NS * 3 / 5);
    if (masked != a->late && !(masked == 0 && a->in_halves && a->kind == FLOW_DISPATCH)) {
        weft_sim_fail("rank %d masks 0x%llx, and rank 0x%llx was late for call %d", a->f.rank,
                      (unsigned long long)masked, (unsigned long long)a->late, (int)a->call->number);
    }
    a->f.absent = a->in_halves && flow_returns(a->kind) ? 0 : masked;
    flow_done(&a->f, a->call);
    a->f.absent = a->late;
    if (a->in_halves) {
        flow_meet(&a->f, 1, a->f.ranks - 1);
        MUST(weft_ep_mask(a->f.ep, __builtin_ctzll(a->late), 0));
    }
}

/* All others have ended the call: what they sent before is whole, and what they had ready is not looked at any more. */
static void pass_them(absence *a, weft_status status, uint64_t took_ns)
{
    const int returns = flow_returns(a->kind);
    const int sees_all = weft_team_pes(weft_team_node(a->f.world)) == a->f.ranks; /* how far they are */
    const uint64_t others = all_but(&a->f, a->late);
    must(status, "a call to which this rank comes late");
    check_time(a, took_ns, DEADLINE_NS * (returns ? 0 : a->in_halves || !sees_all ? 5 : 1) + DEADLINE_NS * 3 / 5);
    a->f.absent = flow_masked(&a->f);
    if ((!a->in_halves || returns) && a->f.absent != others) {
        weft_sim_fail("rank %d masks 0x%llx, and 0x%llx have gone on from call %d without it", a->f.rank,
                      (unsigned long long)a->f.absent, (unsigned long long)others, (int)a->call->number);
    }
    flow_done(&a->f, a->call);
}

/* All have left their calls: who was late comes back, and has all rows again. */
static void come_back(absence *a, uint64_t *common)
{
    uint64_t *calls = &a->f.run->board[BOARD_CALLS];
    if (!a->is_late) {
        *calls = flow_made(&a->f);
    }
    flow_meet(&a->f, 2, a->f.ranks);
    if (!a->is_late && *calls != flow_made(&a->f)) {
        weft_sim_fail("rank %d has made %d calls, others %d", a->f.rank, (int)flow_made(&a->f), (int)*calls);
    }
    if (a->is_late) {
        MUST(weft_ep_rejoin(a->f.ep, *calls));
    } else {
        MUST(weft_ep_mask(a->f.ep, __builtin_ctzll(a->late), 1));
    }
    if (flow_masked(&a->f) != 0) {
        weft_sim_fail("rank %d masks 0x%llx, and all are back", a->f.rank, (unsigned long long)flow_masked(&a->f));
    }
    flow_meet(&a->f, 3, a->f.ranks);
    a->f.absent = 0;
    a->f.routes[0].routing = 0;
    make_calls(&a->f, LAST_CALLS, common);
}

void case_ep_passed(void *argument)
{
    absence a = {.late = 0};
    uint64_t took_ns;
    case_run *run = argument;
    uint64_t common = run->seed;
    const flow_plan plan = {.deadline_ns = DEADLINE_NS,
                            .flags = WEFT_EP_MASK_ON_TIMEOUT,
                            .pairs_max = 1 + common_below(&common, 2),
                            .crosses = common_below(&common, 3) == 0};
    flow_open(&a.f, run, &common, &plan);
    a.late = UINT64_C(1) << common_below(&common, run->pes);
    a.is_late = (int)(a.late >> a.f.rank & 1);
    make_calls(&a.f, common_below(&common, WARM_CALLS), &common);
    draw_call(&a, &common);
    const int waits = common_below(&common, 2); /* for the others' calls behind that, too */
    const int behind = common_below(&common, 4);
    const weft_status status = miss(&a, &took_ns);
    if (a.is_late) {
        pass_them(&a, status, took_ns);
    } else {
        go_on(&a, status, took_ns);
        if (!waits) {
            tell_done(&a);
        }
        make_calls(&a.f, behind, &common);
        tell_done(&a);
    }
    common = run->seed + 1;
    come_back(&a, &common);
    flow_close(&a.f);
}
