/* sim/ep.c: sequences of expert-parallel calls on fresh and cached routes, by support/ep_session.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "sim/cases.h"
#include "support/check.h"
#include "support/ep_session.h"
#include "testing/sim/machine.h"

/* Counts through the owners in one run, directly in the next. In some runs the same again, in memory in which the words
 * of the groups before still lie. */
static void run_session(const case_run *run, const ep_session_plan *plan)
{
    (void)setenv("WEFT_EP_COUNTS", run->seed % 2 == 0 ? "owners" : "direct", 1);
    weft_world *world = case_world("ep");
    for (int i = 0; i < (run->seed % 8 < 2 ? 2 : 1); i++) {
        ep_session_run(world, run->seed, plan);
    }
    MUST(weft_world_destroy(world));
}

void case_ep(void *argument)
{
    const ep_session_plan plan = {
        .size = {.tokens_max = 12, .topk_max = 4, .experts_max = 24, .hidden_max = 48, .bytes_max = (size_t)256 << 10},
        .groups = 1,
        .routes = 2,
        .calls = 8,
        .slow_us = 3,
        .updates = 25,
        .splits = 1};
    run_session(argument, &plan);
}

/* ---- a rank is lost ---- */

#define LOST_TRIES 5 /* of a step, until all survivors are in the same call */
#define LOST_HIDDEN 8
#define LOST_DEADLINE_NS UINT64_C(50000000)
#define TOLD_DEADLINE_NS UINT64_C(4000000000) /* where who waits is told of the lost rank long before */

/* Where a step's weights come from. Rank r's expert has the weight of bit r, so that a sum tells whose rows it has. */
typedef enum step_weights { NO_WEIGHTS, WITH_CHOICES, WITH_DISPATCH, WITH_COMBINE, STEP_WEIGHTS } step_weights;

#define LOST_RANKS 32

/* The choices of this rank's only token: all ranks. */
typedef struct all_choices {
    int32_t ids[LOST_RANKS];
    float weights[LOST_RANKS];
} all_choices;

/* Every token goes to all ranks; `is_fresh`: by the next dispatch, until whose end `all` stays as it is. */
static weft_status route_to_all(weft_ep_route *route, all_choices *all, int ranks, step_weights weights, int is_fresh)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    for (int i = 0; i < ranks; i++) {
        all->ids[i] = i;
        all->weights[i] = (float)(UINT64_C(1) << i);
    }
    choices.tokens = 1;
    choices.ids = all->ids;
    choices.weights = weights == WITH_CHOICES ? all->weights : NULL;
    return is_fresh ? weft_ep_route_choose(route, &choices) : weft_ep_route_update(route, &choices, NULL);
}

/* A group of all PEs of a world with that deadline, in which each rank sends one token to all, and its route. */
typedef struct small_group {
    case_run *run;
    weft_world *world;
    weft_ep *ep;
    weft_ep_route *route;
    int is_fresh; /* dispatches route */
    step_weights weights;
    int has_failed; /* a step: they are numbered alike no longer */
    int steps;
    int sees_all; /* all are on one node and see who is dead, and nobody stands still: who is masked is looked at */
    uint64_t masked; /* before the call that is made */
} small_group;

static weft_ep_rows lost_rows(float *data)
{
    weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    rows.data = data;
    rows.dtype = WEFT_EP_F32;
    rows.hidden = LOST_HIDDEN;
    return rows;
}

static int my_rank(const case_run *run)
{
    return turned(run, weft_sim_pe());
}

/* What a PE does to another, or to itself, as it makes a call of a step: 0 is the update, 1 dispatch, 2 combine; 3:
 * when it has made them all. */
typedef struct ep_blow {
    int call; /* -1: none */
    int to;
    uint64_t stall_ns; /* 0: it is killed */
} ep_blow;

static const ep_blow no_blow = {.call = -1};

static void strike(const ep_blow *blow, int call)
{
    if (blow->call == call && blow->stall_ns > 0) {
        weft_sim_stall(blow->to, blow->stall_ns);
    } else if (blow->call == call) {
        weft_sim_kill(blow->to);
    }
}

#define SOME (-1) /* nobody knows how many */
#define UNCHECKED (-2)

/* So many rows of this step came back, of different ranks. */
static void check_sums(const small_group *group, const float *out, const float *in, int most, int left)
{
    const uint64_t of = (uint64_t)(out[LOST_HIDDEN - 1] / in[LOST_HIDDEN - 1]);
    const int is_weighed = group->weights != NO_WEIGHTS;
    const int seen = is_weighed ? __builtin_popcountll(of) : (int)of;
    const int count = left >= 0 ? left : seen;
    for (int i = 0; i < LOST_HIDDEN; i++) {
        if (out[i] != (float)of * in[i] || seen != count || count > most ||
            (is_weighed && of >> group->run->pes != 0)) {
            weft_sim_fail("element %d, %g, came back as %g, of %d ranks of %d (weights %d)", i, (double)in[i],
                          (double)out[i], count, most, (int)group->weights);
        }
    }
}

#define STEPS_TOLD 32

/* Where a PE tells the others what the first element of its token is in a step, plus 1. */
static uint64_t *told_first(const small_group *group, int rank, int step)
{
    return &group->run->board[256 + STEPS_TOLD * rank + step % STEPS_TOLD];
}

/* The rows that have come are those of this step, of each rank that is told of and not masked. */
static void check_rows(const small_group *group, const float *received)
{
    weft_ep_counts counts;
    const uint64_t masked = masked_ranks(group->ep, group->run->pes);
    MUST(weft_ep_route_counts(group->route, &counts));
    const float *row = received;
    for (int rank = 0; rank < group->run->pes; rank++) {
        const uint64_t told = *told_first(group, rank, group->steps);
        const int is_known = told != 0 && !group->has_failed && (masked >> rank & 1) == 0;
        for (int k = 0; k < (int)counts.rows_of_source[rank]; k++, row += LOST_HIDDEN) {
            for (int i = 0; i < LOST_HIDDEN && is_known; i++) {
                if (row[i] != (float)(told - 1 + (uint64_t)i)) {
                    weft_sim_fail("element %d of rank %d's row of step %d is %g, not %g", i, rank, group->steps,
                                  (double)row[i], (double)(told - 1 + (uint64_t)i));
                }
            }
        }
    }
    if (row - received != (ptrdiff_t)*counts.rows * LOST_HIDDEN) {
        weft_sim_fail("%d rows came, and %d of all ranks", (int)*counts.rows, (int)((row - received) / LOST_HIDDEN));
    }
}

static weft_status combine_rows(const small_group *group, const all_choices *all, const weft_ep_rows *in,
                                const weft_ep_rows *out)
{
    weft_ep_combine_options options = WEFT_EP_COMBINE_OPTIONS_INIT;
    if (group->weights != WITH_COMBINE) {
        return weft_ep_combine(group->route, in, out, group->weights != NO_WEIGHTS ? WEFT_EP_WEIGHTED : 0, NULL);
    }
    options.flags = WEFT_EP_WEIGHTED;
    options.weights = all->weights;
    return weft_ep_combine_with(group->route, in, out, &options, NULL);
}

enum { BOARD_BEGUN = 700, CALLS_TOLD = 24 };

static uint64_t *told_begun(const small_group *group, int rank, uint64_t call)
{
    return &group->run->board[BOARD_BEGUN + CALLS_TOLD * rank + (int)(call % CALLS_TOLD)];
}

static void begin_call(small_group *group)
{
    uint64_t calls;
    MUST(weft_ep_calls(group->ep, &calls));
    *told_begun(group, my_rank(group->run), calls + 1) = weft_sim_now_ns();
    group->masked = masked_ranks(group->ep, group->run->pes);
}

/* Whoever waits here for a rank that has died is in the call, and has not had four deadlines: nobody masks it in that
 * call, who came to it at about the same time, however many are awaited. */
static void end_call(const small_group *group)
{
    uint64_t calls;
    MUST(weft_ep_calls(group->ep, &calls));
    const uint64_t masked = masked_ranks(group->ep, group->run->pes) & ~group->masked;
    const uint64_t own = *told_begun(group, my_rank(group->run), calls);
    for (int rank = 0; rank < group->run->pes && group->sees_all; rank++) {
        const uint64_t begun = *told_begun(group, rank, calls);
        const uint64_t apart = begun > own ? begun - own : own - begun;
        const int is_alive = !weft_sim_is_dead(turned(group->run, rank));
        if ((masked >> rank & 1) != 0 && is_alive && begun != 0 && apart < LOST_DEADLINE_NS / 2) {
            weft_sim_fail("rank %d masks 0x%llx in call %d, in which rank %d has been as long", my_rank(group->run),
                          (unsigned long long)masked, (int)calls, rank);
        }
    }
}

/* What goes to all comes back from all that are left, which SOME or all know to be so many. Steps have other rows, so
 * that those of another step show. */
static weft_status step_among(small_group *group, int left, const ep_blow *blow)
{
    _Alignas(16) float in[LOST_HIDDEN];
    _Alignas(16) float received[32 * LOST_HIDDEN] = {0};
    _Alignas(16) float out[LOST_HIDDEN];
    weft_ep_received to = WEFT_EP_RECEIVED_INIT;
    all_choices all;
    const int first = LOST_HIDDEN * (1 + (int)weft_sim_random(400)); /* sums are exact */
    const int most = group->run->pes - __builtin_popcountll(masked_ranks(group->ep, group->run->pes));
    to.rows = lost_rows(received);
    to.rows_capacity = 32;
    for (int i = 0; i < LOST_HIDDEN; i++) {
        in[i] = (float)(first + i);
    }
    weft_ep_rows rows = lost_rows(in);
    weft_ep_rows sums = lost_rows(out);
    if (!group->has_failed) {
        *told_first(group, my_rank(group->run), group->steps) = (uint64_t)first + 1;
        *told_first(group, my_rank(group->run), group->steps + 1) = 0;
    }
    strike(blow, 0);
    begin_call(group);
    WEFT_TRY(route_to_all(group->route, &all, group->run->pes, group->weights, group->is_fresh));
    end_call(group);
    if (group->weights == WITH_DISPATCH) {
        MUST(weft_ep_route_weigh(group->route, all.weights));
    }
    strike(blow, 1);
    begin_call(group);
    WEFT_TRY(weft_ep_dispatch(group->route, &rows, &to, NULL));
    end_call(group);
    if (left != UNCHECKED) {
        check_rows(group, received);
    }
    strike(blow, 2);
    begin_call(group);
    WEFT_TRY(combine_rows(group, &all, &to.rows, &sums));
    end_call(group);
    strike(blow, 3);
    if (left != UNCHECKED) {
        check_sums(group, out, in, most, left);
    }
    group->steps++;
    return WEFT_OK;
}

/* What is told of a routing among all but one: a token of each, nothing of the lost rank. */
static void check_counts(const weft_ep_route *route, int ranks, int lost)
{
    weft_ep_counts counts;
    MUST(weft_ep_route_counts(route, &counts));
    int before = 0;
    for (int rank = 0; rank < ranks; rank++) {
        int is_there = rank != lost;
        if (counts.rows_of_source[rank] != is_there || counts.rows_of_expert_source[rank] != is_there ||
            counts.offset_of_source[rank] != before) {
            weft_sim_fail("without rank %d, rank %d has %d rows, %d choices, after %d rows", lost, rank,
                          (int)counts.rows_of_source[rank], (int)counts.rows_of_expert_source[rank],
                          (int)counts.offset_of_source[rank]);
        }
        before += is_there;
    }
    if (*counts.rows != before || counts.rows_of_expert[0] != before || counts.offset_of_source[ranks] != before) {
        weft_sim_fail("without rank %d there are %d rows, %d of the expert, not %d", lost, (int)*counts.rows,
                      (int)counts.rows_of_expert[0], before);
    }
}

/* How so many PEs learn of each other that all have left the call that failed, as a framework would tell them. */
static void meet_all(case_run *run, int count)
{
    run->board[weft_sim_pe()] = 1;
    for (int there = 0; there < count;) {
        weft_sim_sleep_ns(1000000);
        there = 0;
        for (int pe = 0; pe < run->pes; pe++) {
            there += run->board[pe] != 0;
        }
    }
}

/* The labels of domains of any shape, but at least two where there are two PEs. */
static void draw_domains(uint64_t *common, int pes, int *labels)
{
    int count = pes > 1 ? 2 + common_below(common, pes - 1) : 1;
    for (int rank = 0; rank < pes; rank++) {
        labels[rank] = rank < 2 ? rank % count : common_below(common, count);
    }
}

static weft_world *world_until(uint64_t deadline_ns)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    weft_sim_world_config(&config);
    config.deadline_ns = deadline_ns;
    MUST(weft_world_create(&config, &world));
    return world;
}

/* `config` has what is of the case alone. Half of the runs tell counts by their owners, half
 * of them route as they dispatch. */
static small_group open_group(case_run *run, uint64_t deadline_ns, weft_ep_config *config)
{
    small_group made = {.run = run, .weights = (step_weights)(run->seed / 4 % STEP_WEIGHTS)};
    made.is_fresh = run->seed / 2 % 2 == 0 && made.weights != WITH_DISPATCH;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    (void)setenv("WEFT_EP_COUNTS", run->seed % 2 == 0 ? "owners" : "direct", 1);
    made.world = world_until(deadline_ns);
    config->experts = plan.topk = config->topk_max = run->pes;
    config->tokens_max = 1;
    config->row_bytes_max = LOST_HIDDEN * sizeof(float);
    MUST(weft_ep_create(turned_team(run, made.world), config, &made.ep));
    MUST(weft_ep_route_create(made.ep, &plan, NULL, &made.route));
    return made;
}

/* Whether no other PE is of its process; those would learn of its death by their deadline only. */
static int is_alone(const case_run *run, int pe)
{
    int others = 0;
    for (int other = 0; other < run->pes; other++) {
        others += other != pe && weft_sim_same_process(other, pe);
    }
    return others == 0;
}

/* The lost rank, wherever it is in a call; the others, until a call fails: they mask it, know that those who are named
 * but are not lost only waited for it, meet, and call until they are in step. Calls are updates, or steps that cross
 * between domains. */
static void lose_a_rank(case_run *run, int crosses)
{
    int labels[32];
    all_choices all;
    uint64_t common = run->seed;
    int lost = common_below(&common, run->pes);
    int killer = (lost + 1) % run->pes;
    int when = 1 + common_below(&common, 5); /* once the first call is complete, all have made the group */
    const ep_blow blow = {.call = crosses ? common_below(&common, 3) : 0, .to = turned(run, lost)};
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    if (common_below(&common, 2) == 0) { /* the last rank's token is dropped until the lost one is masked */
        config.rows_max = run->pes - 1;
        config.overflow = WEFT_EP_OVERFLOW_DROP;
    }
    config.pairs_max = 1 + common_below(&common, 2);
    if (crosses) {
        config.rows_max = 0; /* all rows come */
        draw_domains(&common, run->pes, labels);
        config.domain_of = labels;
    }
    const int is_told = run->messages && common_below(&common, 2); /* before the deadline */
    const int goes_on = is_told && common_below(&common, 2) && is_alone(run, turned(run, lost)); /* as soon as told */
    small_group group = open_group(run, is_told ? TOLD_DEADLINE_NS : LOST_DEADLINE_NS, &config);
    weft_status status = WEFT_OK;
    for (int i = 0; status == WEFT_OK; i++) {
        const ep_blow *now = my_rank(run) == killer && i == when ? &blow : &no_blow;
        run->board[65] = now == &blow ? weft_sim_now_ns() : run->board[65];
        if (crosses) {
            status = step_among(&group, run->pes, now);
        } else {
            strike(now, 0);
            status = route_to_all(group.route, &all, run->pes, NO_WEIGHTS, 0);
        }
    }
    const int has_nodes = weft_team_pes(weft_team_node(group.world)) < run->pes; /* else all wait for the deadline */
    if (is_told && has_nodes && !weft_sim_same_process(weft_sim_pe(), turned(run, lost)) &&
        weft_sim_now_ns() - run->board[65] > TOLD_DEADLINE_NS / 2) {
        weft_sim_fail("rank %d has died, and a call ends after %llu ms: %s", lost,
                      (unsigned long long)((weft_sim_now_ns() - run->board[65]) / 1000000), weft_last_error());
    }
    if (is_told && has_nodes && !weft_sim_same_process(weft_sim_pe(), turned(run, lost)) &&
        (status == WEFT_ERR_MISMATCH || !text_names_pe(weft_last_error(), turned(run, lost)))) {
        weft_sim_fail("rank %d has died, and a call gives %s: %s", lost, weft_status_name(status), weft_last_error());
    }
    for (int rank = 0; rank < run->pes; rank++) {
        if (rank != my_rank(run)) {
            MUST(weft_ep_mask(group.ep, rank, rank != lost));
        }
    }
    group.has_failed = 1;
    if (!goes_on) {
        meet_all(run, run->pes - 1);
    }
    for (int i = 0; i < LOST_TRIES && status != WEFT_OK; i++) {
        status = step_among(&group, run->pes - 1, &no_blow);
        if (status == WEFT_ERR_TIMEOUT) { /* who is a call behind is told that at once, and joins the others */
            must(status, "a step without the lost rank, of which nobody is late");
        }
    }
    must(status, "a step without the lost rank");
    check_counts(group.route, run->pes, lost);
    MUST(weft_world_destroy(group.world));
}

/* Of a rank that gave up: the call that cannot end, and which ranks it named. */
static uint64_t read_blame(const case_run *run, uint64_t *named)
{
    static const char lead[] = ": call ";
    static const char names[] = "cannot end: PE";
    const char *at = strstr(weft_last_error(), lead);
    const char *who = strstr(weft_last_error(), names);
    if (at == NULL || who == NULL) {
        weft_sim_fail("nobody is named: %s", weft_last_error());
    }
    who += strlen(names);
    const uint64_t pes = named_pes(*who == 's' ? who + 1 : who, &who);
    *named = 0;
    for (int rank = 0; rank < run->pes; rank++) {
        *named |= (pes >> turned(run, rank) & 1) << rank;
    }
    return strtoull(at + strlen(lead), NULL, 10);
}

/* Who cannot go on waits for the late rank, if also for others that wait for it: it is named. Between domains it may
 * wait for one that waits for the late rank, and for what that one forwards: then one that is named has not ended the
 * call either. */
static void check_late(const case_run *run, int late)
{
    int pe = my_rank(run);
    uint64_t named = run->board[128 + pe];
    int is_right = (named >> late & 1) != 0;
    for (int other = 0; other < run->pes; other++) {
        uint64_t their_call = run->board[64 + other];
        is_right |= (named >> other & 1) != 0 && their_call != 0 && their_call <= run->board[64 + pe];
    }
    if (!is_right) {
        weft_sim_fail("rank %d is late, but rank %d blames 0x%llx for call %llu", late, pe, (unsigned long long)named,
                      (unsigned long long)run->board[64 + pe]);
    }
}

/* Whether it was the network that gave up, on the rank that stands still with all its threads. */
static int is_unanswered(const case_run *run, int late)
{
    int named = -1;
    if (strstr(weft_last_error(), " over the network in time") == NULL) {
        return 0;
    }
    if (sscanf(weft_last_error(), "PE %d did not answer", &named) != 1 || named != turned(run, late)) {
        weft_sim_fail("rank %d stands still, but: %s", late, weft_last_error());
    }
    return 1;
}

/* A rank stands still, wherever it is in a step, for longer than the others wait; or, without a deadline, for longer
 * than it takes until they look who is gone. */
void case_ep_late(void *argument)
{
    int labels[32];
    case_run *run = argument;
    uint64_t common = run->seed;
    int late = common_below(&common, run->pes);
    int helper = (late + common_below(&common, 2)) % run->pes; /* or that rank itself, which stops where it gives way */
    int when = 1 + common_below(&common, 4); /* once the first step is complete, all have made the group */
    int is_patient = common_below(&common, 3) == 0;
    const int rank = my_rank(run);
    const ep_blow blow = {.call = is_patient ? 2 + common_below(&common, 2) : common_below(&common, 3),
                          .to = turned(run, late),
                          .stall_ns =
                              (is_patient && !run->messages ? 20 : 3) * LOST_DEADLINE_NS}; /* messages are dear */
    int crosses = common_below(&common, 2);
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    if (crosses) {
        draw_domains(&common, run->pes, labels);
        config.domain_of = labels;
    }
    small_group group = open_group(run, is_patient ? WEFT_FOREVER : LOST_DEADLINE_NS, &config);
    weft_status status = WEFT_OK;
    for (int i = 0; i < (is_patient ? when + 1 : 5) && status == WEFT_OK; i++) {
        status = step_among(&group, run->pes, i == when && rank == helper ? &blow : &no_blow);
    }
    if (is_patient) { /* who has done its part leaves, also while others wait */
        must(status, "a step with a late rank, without a deadline");
        MUST(weft_world_destroy(group.world));
        return;
    }
    int is_told = rank != late && status == WEFT_ERR_TIMEOUT;
    if (is_told && is_unanswered(run, late)) {
        run->board[64 + rank] = 1; /* it has not ended its call, whichever that is */
        is_told = 0;
    } else if (is_told) {
        run->board[64 + rank] = read_blame(run, &run->board[128 + rank]);
    } else if (rank != late && status != WEFT_ERR_TIMEOUT) {
        must(status, "a step with a late rank");
    }
    meet_all(run, run->pes);
    if (is_told) {
        check_late(run, late);
    }
    MUST(weft_world_destroy(group.world));
}

/* ---- a rank that comes back ---- */

#define REJOIN_STEPS 3

/* All PEs, or all but one, come to point `number` of the run. */
static void meet_at(case_run *run, uint64_t number, int count)
{
    run->board[weft_sim_pe()] = number;
    for (int there = 0; there < count;) {
        weft_sim_sleep_ns(1000000);
        there = 0;
        for (int pe = 0; pe < run->pes; pe++) {
            there += run->board[pe] >= number;
        }
    }
}

/* Steps without the late rank, which still writes what it had begun: so nobody looks at sums. */
static void step_without(case_run *run, small_group *group, int late)
{
    uint64_t calls;
    weft_status status = WEFT_ERR_STATE;
    for (int rank = 0; rank < run->pes; rank++) {
        if (rank != my_rank(run)) {
            MUST(weft_ep_mask(group->ep, rank, rank != late));
        }
    }
    meet_at(run, 1, run->pes - 1);
    for (int i = 0; i < LOST_TRIES && status != WEFT_OK; i++) {
        status = step_among(group, UNCHECKED, &no_blow);
    }
    must(status, "a step without the late rank");
    MUST(weft_ep_calls(group->ep, &calls));
    run->board[64] = calls;
}

/* A rank stands still, wherever it is in a step between domains, as a forwarder too, until the others have given it up
 * and gone on; when it has left its call it comes back, and all have all rows again. */
void case_ep_rejoin(void *argument)
{
    int labels[32];
    case_run *run = argument;
    uint64_t common = run->seed;
    const int late = common_below(&common, run->pes);
    const int is_late = my_rank(run) == late;
    const int helper = (late + common_below(&common, 2)) % run->pes;
    const int when = 1 + common_below(&common, 4); /* once the first step is complete, all have made the group */
    const ep_blow blow = {.call = common_below(&common, 3), .to = turned(run, late), .stall_ns = 6 * LOST_DEADLINE_NS};
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_status status = WEFT_OK;
    draw_domains(&common, run->pes, labels);
    config.domain_of = labels;
    config.pairs_max = 1 + common_below(&common, 2);
    small_group group = open_group(run, LOST_DEADLINE_NS, &config);
    for (int i = 0; status == WEFT_OK; i++) {
        status = step_among(&group, run->pes, i == when && my_rank(run) == helper ? &blow : &no_blow);
    }
    group.has_failed = 1;
    if (!is_late) {
        step_without(run, &group, late);
    }
    meet_at(run, 2, run->pes);
    if (is_late) { /* whoever it has masked is back, too */
        const int other = (late + 1 + common_below(&common, run->pes - 1)) % run->pes;
        MUST(weft_ep_mask(group.ep, other, common_below(&common, 2)));
        MUST(weft_ep_rejoin(group.ep, run->board[64]));
        if (masked_ranks(group.ep, run->pes) != 0) {
            weft_sim_fail("rank %d is back, and rank %d is masked", late, other);
        }
    } else {
        MUST(weft_ep_mask(group.ep, late, 1));
    }
    meet_at(run, 3, run->pes);
    for (int i = 0; i < REJOIN_STEPS; i++) {
        must(step_among(&group, run->pes, &no_blow), "a step with a rank that is back");
    }
    MUST(weft_world_destroy(group.world));
}

/* ---- ranks that go on without who is late ---- */

#define MASK_STEPS 5
#define STEP_REST_NS (LOST_DEADLINE_NS / 2)

/* A rank is killed by a thread of another one. */
typedef struct killing {
    wefti_os_thread *thread; /* NULL: not by this rank */
    int pe;
} killing;

static void kill_soon(void *argument)
{
    const killing *one = argument;
    weft_sim_sleep_ns(STEP_REST_NS / 8);
    weft_sim_kill(one->pe);
}

/* The lost rank will stand still at a drawn step, between what it tells two others, and is killed as it does. */
static void kill_at_a_step(const case_run *run, int lost, int helper, killing *one)
{
    if (my_rank(run) == lost) {
        wefti_sim_rest_later(1 + (uint32_t)weft_sim_random(UINT64_C(2) << weft_sim_random(6)), STEP_REST_NS);
    }
    if (my_rank(run) == helper) {
        one->pe = turned(run, lost);
        MUST(wefti_os_thread_start(&one->thread, kill_soon, one));
    }
}

static void await_killing(const killing *one)
{
    if (one->thread != NULL) {
        wefti_os_thread_join(one->thread);
    }
}
#define REST_NS (4 * LOST_DEADLINE_NS)

/* After all steps: all that are left have masked the dead rank, where it is missed, as one is not that has told all
 * before its end; nobody has masked any if none was late for as long as a deadline. Who waited for the dead rank may
 * have come too late for others. Returns whether all that are left have masked the dead one alone. */
static int compare_masks(case_run *run, const weft_ep *ep, int dead, int is_missed, int late_enough)
{
    const uint64_t bits = masked_ranks(ep, run->pes);
    int is_alone = dead >= 0;
    if ((dead >= 0 && is_missed && (bits >> dead & 1) == 0) || (!late_enough && bits != 0)) {
        weft_sim_fail("rank %d masks 0x%llx when rank %d is dead", my_rank(run), (unsigned long long)bits, dead);
    }
    run->board[64 + my_rank(run)] = bits + 1;
    meet_all(run, run->pes - (dead >= 0));
    for (int pe = 0; pe < run->pes; pe++) {
        is_alone &= pe == dead || run->board[64 + pe] == (UINT64_C(1) << (dead & 63)) + 1;
    }
    return is_alone;
}

/* A rank is killed, or stands still for less than a deadline or for several, wherever it is in a step. The others go on
 * without it by themselves; when all of them have masked it alone they have each other's rows. For one that rests
 * between two steps they wait one deadline. Without a deadline they wait, and who has done its part leaves. */
void case_ep_masks(void *argument)
{
    case_run *run = argument;
    uint64_t common = run->seed;
    int late = common_below(&common, run->pes);
    int helper = (late + 1) % run->pes;
    int when = 1 + common_below(&common, 2); /* once the first step is complete, all have made the group */
    int is_patient = common_below(&common, 4) == 0; /* nobody dies then: others of its process would not see it */
    int dies = !is_patient && common_below(&common, 2);
    static const unsigned percents[] = {60, 130, 600};
    const unsigned percent = percents[common_below(&common, 3)];
    /* between two steps, for several deadlines */
    const int rests = !dies && !is_patient && percent == 130 && common_below(&common, 2);
    const ep_blow blow = {.call = common_below(&common, 3),
                          .to = turned(run, late),
                          .stall_ns = dies ? 0 : LOST_DEADLINE_NS / 100 * percent};
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.flags = WEFT_EP_MASK_ON_TIMEOUT;
    config.pairs_max = 1 + common_below(&common, 2);
    const int drops = common_below(&common, 4) == 0; /* the last rank's token, until a rank is masked */
    if (drops) {
        config.rows_max = run->pes - 1;
        config.overflow = WEFT_EP_OVERFLOW_DROP;
    }
    config.bytes_max = common_below(&common, 3) == 0 ? (size_t)1 << 26 : 0; /* limits that may grow, and need not */
    small_group group = open_group(run, is_patient ? WEFT_FOREVER : LOST_DEADLINE_NS, &config);
    const int is_late = my_rank(run) == late;
    const int at_a_step = dies && run->pes > 3 && common_below(&common, 4) > 0;
    killing by_thread = {.thread = NULL};
    group.sees_all = dies && is_alone(run, turned(run, late)) && weft_team_pes(weft_team_node(group.world)) == run->pes;
    for (int i = 0; i < MASK_STEPS; i++) {
        const ep_blow *now = my_rank(run) == helper && i == when && !rests && !at_a_step ? &blow : &no_blow;
        const int is_sure = i < when || is_patient || (!dies && percent < 100);
        if (is_late && i == when && rests) {
            weft_sim_sleep_ns(REST_NS);
        } else if (i == when && at_a_step) {
            kill_at_a_step(run, late, helper, &by_thread);
        }
        const uint64_t begun_ns = weft_sim_now_ns();
        weft_status status = step_among(&group, is_sure && !drops ? run->pes : SOME, now);
        if (!is_late) {
            must(status, "a step of ranks that go on without who is late");
        }
        if (!is_late && i <= when && rests && !run->messages && weft_sim_now_ns() - begun_ns > REST_NS / 2) {
            weft_sim_fail("a step took %llu ms without a rank that is in none",
                          (unsigned long long)((weft_sim_now_ns() - begun_ns) / 1000000));
        }
    }
    await_killing(&by_thread);
    if (is_patient) { /* also while others wait */
        MUST(weft_world_destroy(group.world));
        return;
    }
    if (dies && compare_masks(run, group.ep, late, !at_a_step, 1)) {
        must(step_among(&group, run->pes - 1, &no_blow), "a step without who is dead");
        check_counts(group.route, run->pes, late);
    } else if (!dies && percent < 100) {
        (void)compare_masks(run, group.ep, -1, 0, 0);
    }
    MUST(weft_world_destroy(group.world));
}

void case_ep_lost(void *argument)
{
    lose_a_rank(argument, 0);
}

void case_ep_forwarder_lost(void *argument)
{
    lose_a_rank(argument, 1);
}

void case_ep_wide(void *argument)
{
    const ep_session_plan plan = {
        .size = {.tokens_max = 4, .topk_max = 4, .experts_max = 80, .hidden_max = 24, .bytes_max = (size_t)256 << 10},
        .groups = 1,
        .routes = 1,
        .calls = 4,
        .slow_us = 3,
        .updates = 20,
        .splits = 1};
    run_session(argument, &plan);
}
