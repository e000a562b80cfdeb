/* sim/faults.c: what goes wrong is told, on all PEs that can still be told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "os/os.h"
#include "sim/cases.h"
#include "support/check.h"
#include "testing/sim/machine.h"

#define MS_NS UINT64_C(1000000)
#define COUNT_MAX 262 /* more than fits in a line, and for two or more PEs in a slot */

/* Calls that failed have taken nothing of the heap. */
static void check_used(const weft_world *world, uint64_t before)
{
    if (heap_used(world) != before) {
        weft_sim_fail("nothing is allocated, and %lld bytes more are in use than before",
                      (long long)(heap_used(world) - before));
    }
}

/* ---- calls that do not match ---- */

/* Collectives that match, so that the one that does not comes at any step. */
static void collect_before(weft_world *world, int calls)
{
    uint64_t *words;
    MUST(weft_malloc(world, 2 * sizeof *words, (void **)&words));
    for (int i = 0; i < calls; i++) {
        MUST(weft_uint64_broadcast(weft_team_world(world), &words[1], &words[0], 1, i % weft_world_pes(world)));
    }
}

#define WAYS_TO_BE_ODD 18
#define WAYS_TOLD_AT_ONCE 7 /* the first of these; of others some wait for their deadline */
#define WAYS_TO_FOLD 9 /* the last of these, scans first */
#define WAYS_TO_SCAN 5

/* A scan or reduction with another operation, type, count, or of the other kind on one PE. Scans may end well where
 * nobody awaits what the odd one gives. */
static weft_status fold_oddly(weft_team *all, int which, int is_odd, uint64_t *dest, const uint64_t *words,
                              size_t count)
{
    int64_t *others_dest = (int64_t *)dest;
    const int64_t *others = (const int64_t *)words;
    const size_t count_of_all = count - (size_t)is_odd;
    switch (which) {
    case 0:
        return is_odd ? weft_uint64_sum_exscan(all, dest, words, count_of_all)
                      : weft_uint64_sum_inscan(all, dest, words, count_of_all);
    case 1:
        return is_odd ? weft_uint64_max_inscan(all, dest, words, count_of_all)
                      : weft_uint64_sum_inscan(all, dest, words, count_of_all);
    case 2:
        return is_odd ? weft_int64_sum_exscan(all, others_dest, others, count_of_all)
                      : weft_uint64_sum_exscan(all, dest, words, count_of_all);
    case 3:
        return weft_uint64_sum_inscan(all, dest, words, count);
    case 4:
        return weft_uint64_sum_exscan(all, dest, words, count);
    case 5:
        return is_odd ? weft_uint64_max_reduce_scatter(all, dest, words, count_of_all)
                      : weft_uint64_sum_reduce_scatter(all, dest, words, count_of_all);
    case 6:
        return is_odd ? weft_int64_sum_reduce_scatter(all, others_dest, others, count_of_all)
                      : weft_uint64_sum_reduce_scatter(all, dest, words, count_of_all);
    case 7:
        return weft_uint64_sum_reduce_scatter(all, dest, words, count);
    default:
        return is_odd ? weft_int64_sum_reduce(all, others_dest, others, count_of_all)
                      : weft_uint64_sum_reduce(all, dest, words, count_of_all);
    }
}

/* A collective with another count, stride or operation on one PE: every other hears of it from that one. Where the odd
 * one takes itself for the root of a broadcast, all have what they wait for, and hear of it in the next call. */
static weft_status collect_oddly(weft_world *world, int which, int odd, size_t count)
{
    const int is_odd = odd == weft_world_pe(world);
    const size_t count_of_all = count < COUNT_MAX / 2 ? 1 : COUNT_MAX / 2;
    weft_team *all = weft_team_world(world);
    const int root = (odd + 1) % weft_world_pes(world);
    uint64_t *words;
    MUST(weft_malloc(world, 2 * COUNT_MAX * sizeof *words * (size_t)weft_world_pes(world), (void **)&words));
    uint64_t *dest = words + COUNT_MAX * weft_world_pes(world);
    const size_t bytes = count_of_all * sizeof *words;
    switch (which) {
    case 0:
        return weft_uint64_alltoall(all, dest, words, count);
    case 1:
        return weft_uint64_fcollect(all, dest, words, count);
    case 2:
        WEFT_TRY(weft_uint64_broadcast(all, dest, words, 1, is_odd ? odd : root));
        return weft_uint64_fcollect(all, dest, words, 1);
    case 3:
        return weft_uint64_alltoalls(all, dest, words, 1 + is_odd, 1, count_of_all);
    case 4:
        return weft_uint64_alltoalls(all, dest, words, 1, 1 + is_odd, count_of_all);
    case 5:
        return is_odd ? weft_uint64_max_reduce(all, dest, words, count_of_all)
                      : weft_uint64_sum_reduce(all, dest, words, count_of_all);
    case 6:
        return weft_uint64_sum_reduce(all, dest, words, count);
    case 7: /* as many bytes */
        return weft_alltoallsmem(all, dest, words, 1, 1, is_odd ? 2 * count_of_all : count_of_all, is_odd ? 4 : 8);
    case 8:
        return is_odd ? weft_alltoallmem_ready(all, dest, words, bytes) : weft_alltoallmem(all, dest, words, bytes);
    default:
        WEFT_TRY(fold_oddly(all, which - (WAYS_TO_BE_ODD - WAYS_TO_FOLD), is_odd, dest, words, count));
        return which >= WAYS_TO_BE_ODD - WAYS_TO_FOLD + WAYS_TO_SCAN ? WEFT_OK
                                                                     : weft_uint64_fcollect(all, dest, words, 1);
    }
}

static void expect_mismatch(weft_status status, int odd)
{
    if (status != WEFT_ERR_MISMATCH || !text_names_pe(weft_last_error(), odd)) {
        weft_sim_fail("PE %d is odd, and there was %s: %s", odd, weft_status_name(status),
                      status == WEFT_OK ? "" : weft_last_error());
    }
}

/* Members cannot allocate for different reasons: one gives no place for the block, the others have no room for it. All
 * get the status of these, and the odd one the name of the first of them instead of its own reason. */
static void fail_apart(weft_world *world, int odd)
{
    void *block;
    int is_odd = odd == weft_world_pe(world);
    weft_status status = weft_malloc(world, (size_t)1 << 50, is_odd ? NULL : &block);
    const char *text = status == WEFT_OK ? "" : weft_last_error();
    int is_told = is_odd ? text_names_pe(text, odd == 0 ? 1 : 0) && strstr(text, "WEFT_ERR_MEMORY") != NULL
                         : strstr(text, "no room") != NULL;
    if (status != WEFT_ERR_MEMORY || !is_told) {
        weft_sim_fail("PE %d gave no place, and there was %s: %s", odd, weft_status_name(status), text);
    }
}

/* A list in which two have changed places behind the first is another list: all are told of who has it. */
static void pass_lists(weft_world *world, int odd)
{
    int list[64];
    weft_team *team;
    const int pes = weft_world_pes(world);
    for (int i = 0; i < pes; i++) {
        list[i] = i;
    }
    if (odd == weft_world_pe(world)) {
        list[pes - 2] = pes - 1;
        list[pes - 1] = pes - 2;
    }
    expect_mismatch(weft_team_create(weft_team_world(world), list, pes, &team), odd);
}

/* Some pass one list and some another, by turns or not: all are told of two that differ. */
static void pass_two_lists(weft_world *world, uint64_t *common)
{
    int list[64];
    int others[64];
    int pair[2] = {0, 0};
    weft_team *team;
    const int pes = weft_world_pes(world);
    const int width = common_below(common, 4); /* of those that pass the same, in turn; 0: as drawn */
    for (int i = 0; i < pes; i++) {
        list[i] = i;
        others[i] = width > 0 ? i / width % 2 : common_below(common, 2);
    }
    others[0] = 0;
    others[pes - 1] = 1;
    if (others[weft_world_pe(world)]) {
        list[pes - 2] = pes - 1;
        list[pes - 1] = pes - 2;
    }
    const weft_status status = weft_team_create(weft_team_world(world), list, pes, &team);
    const char *text = status == WEFT_OK ? "" : weft_last_error();
    const char *named = strstr(text, "PEs ");
    if (status != WEFT_ERR_MISMATCH || named == NULL || sscanf(named, "PEs %d and %d", &pair[0], &pair[1]) != 2 ||
        others[pair[0]] == others[pair[1]]) {
        weft_sim_fail("PEs pass two lists, and there was %s: %s", weft_status_name(status), text);
    }
}

/* Who passes which list: those of all PEs, each known to all. */
typedef struct drawn_lists {
    int members[24][24];
    int counts[24];
} drawn_lists;

/* The PEs of a random order, cut into teams, the last of which none joins. */
static void draw_teams(drawn_lists *lists, int pes, uint64_t *common)
{
    int order[24];
    for (int i = 0; i < pes; i++) {
        const int other = common_below(common, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    const int left = common_below(common, 3) == 0 ? common_below(common, pes) : 0;
    for (int first = 0, count; first < pes; first += count) {
        const int is_left = first >= pes - left;
        count = is_left ? pes - first : 1 + common_below(common, pes - left - first);
        for (int i = first; i < first + count; i++) {
            lists->counts[order[i]] = is_left ? 0 : count;
            memcpy(lists->members[order[i]], &order[first], (size_t)count * sizeof *order);
        }
    }
}

static int place_in(const int *list, int count, int pe)
{
    for (int i = 0; i < count; i++) {
        if (list[i] == pe) {
            return i;
        }
    }
    return -1;
}

/* One passes no list, one that lacks a member or has one more, or one in another order; or the list of another team. */
static void change_list(drawn_lists *lists, int pes, int odd, uint64_t *common)
{
    int *list = lists->members[odd];
    int *count = &lists->counts[odd];
    const int other = common_below(common, pes);
    const int at = place_in(list, *count, other);
    if (*count == 0 || other == odd) {
        *count = *count == 0;
        list[0] = odd;
    } else if (at < 0) {
        const int to = common_below(common, *count + 1);
        memmove(&list[to + 1], &list[to], (size_t)(*count - to) * sizeof *list);
        list[to] = other;
        ++*count;
    } else if (common_below(common, 2) == 0) {
        memmove(&list[at], &list[at + 1], (size_t)(*count - at - 1) * sizeof *list);
        --*count;
    } else {
        list[place_in(list, *count, odd)] = other;
        list[at] = odd;
    }
}

static int are_alike(const drawn_lists *lists, int a, int b)
{
    return lists->counts[a] == lists->counts[b] &&
           memcmp(lists->members[a], lists->members[b], (size_t)lists->counts[a] * sizeof(int)) == 0;
}

/* Whether all whom a PE has in its list have passed the same. */
static int do_fit(const drawn_lists *lists, int pes)
{
    int fit = 1;
    for (int pe = 0; pe < pes; pe++) {
        for (int i = 0; i < lists->counts[pe]; i++) {
            fit &= are_alike(lists, pe, lists->members[pe][i]);
        }
    }
    return fit;
}

/* Several teams by one call, of whose lists some may have been changed: all are told of two that differ, of which one
 * has the other in its list; or there are teams. */
static void pass_drawn_lists(weft_world *world, uint64_t *common)
{
    drawn_lists lists;
    int pair[2] = {0, 0};
    weft_team *team = NULL;
    const int pes = weft_world_pes(world);
    const int pe = weft_world_pe(world);
    draw_teams(&lists, pes, common);
    for (int times = common_below(common, 3); times > 0; times--) {
        change_list(&lists, pes, common_below(common, pes), common);
    }
    const weft_status status = weft_team_create(weft_team_world(world), lists.members[pe], lists.counts[pe], &team);
    if (do_fit(&lists, pes)) {
        must(status, "to make teams of lists that fit");
        MUST(weft_team_destroy(team));
        return;
    }
    const char *text = status == WEFT_OK ? "" : weft_last_error();
    const char *named = strstr(text, "PEs ");
    if (status != WEFT_ERR_MISMATCH || named == NULL || sscanf(named, "PEs %d and %d", &pair[0], &pair[1]) != 2 ||
        are_alike(&lists, pair[0], pair[1]) || place_in(lists.members[pair[0]], lists.counts[pair[0]], pair[1]) < 0) {
        weft_sim_fail("lists do not fit, and there was %s: %s", weft_status_name(status), text);
    }
}

/* Until all have come as far as this, beside weft; each time with another number. */
static void await_all(case_run *run, int time)
{
    uint64_t *places = &run->board[64 * time];
    places[weft_sim_pe()] = 1;
    for (int pe = 0; pe < run->pes; pe++) {
        while (places[pe] == 0) {
            weft_sim_sleep_ns(1000);
        }
    }
}

/* The odd one's source lies elsewhere than the others'. Either all are told, or all have the sums of what was given. */
static int reduce_from_elsewhere(weft_world *world, int odd)
{
    enum { LARGE = 3000 };
    uint64_t *words;
    const int pe = weft_world_pe(world);
    const uint64_t pes = (uint64_t)weft_world_pes(world);
    MUST(weft_malloc(world, (2 * LARGE + 64) * sizeof *words, (void **)&words));
    uint64_t *source = words + (pe == odd ? 64 : 0);
    uint64_t *dest = words + LARGE + 64;
    for (uint64_t i = 0; i < LARGE + 64; i++) {
        words[i] = UINT64_MAX;
    }
    for (uint64_t i = 0; i < LARGE; i++) {
        source[i] = i * (uint64_t)(pe + 1);
    }
    weft_status status = weft_uint64_sum_reduce(weft_team_world(world), dest, source, LARGE);
    if (status != WEFT_OK) {
        expect_mismatch(status, odd);
        return 0;
    }
    for (uint64_t i = 0; i < LARGE; i++) {
        if (dest[i] != i * (pes * (pes + 1) / 2)) {
            weft_sim_fail("PE %d gave a source elsewhere, and sum %d is wrong", odd, (int)i);
        }
    }
    return 1;
}

/* One gives another size, another alignment, or makes another call. */
static void allocate_oddly(weft_world *world, int kind, int odd)
{
    void *block = NULL;
    void *other = NULL;
    const int is_odd = odd == weft_world_pe(world);
    switch (kind) {
    case 0:
        expect_mismatch(weft_malloc(world, is_odd ? 128 : 64, &block), odd);
        return;
    case 1:
        expect_mismatch(weft_align(world, is_odd ? 256 : 128, 64, &block), odd);
        return;
    case 2:
        expect_mismatch(is_odd ? weft_align(world, 64, 64, &block) : weft_malloc(world, 64, &block), odd);
        return;
    default:
        MUST(weft_malloc(world, 512, &block)); /* it would stay where it is */
        expect_mismatch(weft_realloc(world, block, is_odd ? 256 : 128, &other), odd);
        MUST(weft_free(world, block));
    }
}

void case_mismatch(void *argument)
{
    case_run *run = argument;
    uint64_t common = run->seed;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    weft_sim_world_config(&config);
    config.deadline_ns = 50 * MS_NS; /* who gets no message of the odd one is told then */
    MUST(weft_world_create(&config, &world));
    const uint64_t used = heap_used(world);
    for (int round = 0; round < 3; round++) {
        int odd = common_below(&common, run->pes);
        void *block = NULL;
        allocate_oddly(world, common_below(&common, 4), odd);
        fail_apart(world, odd);
        pass_drawn_lists(world, &common);
        if (run->pes > 2) {
            pass_lists(world, odd);
            pass_two_lists(world, &common);
        }
        MUST(weft_malloc(world, 64, &block));
        MUST(weft_free(world, block));
    }
    check_used(world, used);
    int odd = common_below(&common, run->pes);
    collect_before(world, common_below(&common, 9));
    size_t count = (common_below(&common, 2) == 0 ? 1 : COUNT_MAX - 1) + (odd == weft_world_pe(world));
    if (common_below(&common, 4) == 0 && !reduce_from_elsewhere(world, odd)) {
        await_all(run, 0);
        MUST(weft_world_destroy(world));
        return;
    }
    const int way = common_below(&common, WAYS_TO_BE_ODD);
    const uint64_t begun_ns = weft_sim_now_ns();
    expect_mismatch(collect_oddly(world, way, odd, count), odd);
    if (way < WAYS_TOLD_AT_ONCE && !run->messages && weft_sim_now_ns() - begun_ns > 25 * MS_NS) {
        weft_sim_fail("PE %d is odd, which others have a message of, and this was told after %llu ms", odd,
                      (unsigned long long)((weft_sim_now_ns() - begun_ns) / MS_NS));
    }
    await_all(run, 0); /* who leaves the world before is missed */
    MUST(weft_world_destroy(world));
}

/* ---- an allocation fails ---- */

/* An error is told, but nobody is late, and all go on. */
static weft_status told(weft_status status, const char *what)
{
    if (status == WEFT_ERR_TIMEOUT) {
        weft_sim_fail("nobody is late, but %s gave: %s", what, weft_last_error());
    }
    return status;
}
#define TOLD(call) told((call), #call)

#define USES 5 /* of a world, the last of them when nothing fails any more */

/* What a world was used for. */
typedef struct used_world {
    weft_world *world;
    void *kept[USES]; /* blocks that could not be freed */
    int has_dead; /* teams, whose memory stays taken */
} used_world;

/* A team that is made is destroyed, whatever fails. Returns 1 when all of it went well. */
static int use_team(used_world *used, uint64_t *words)
{
    weft_team *team = NULL;
    weft_team *column = NULL;
    weft_team *all = weft_team_world(used->world);
    const int is_2d = words[2] % 2 == 0;
    if ((is_2d ? TOLD(weft_team_split_2d(all, weft_world_pes(used->world), &team, &column))
               : TOLD(weft_team_split_strided(all, 0, 1, weft_world_pes(used->world), &team))) != WEFT_OK) {
        return 0;
    }
    weft_status status = TOLD(weft_team_barrier(team));
    if (status == WEFT_OK) {
        status = TOLD(weft_uint64_sum_reduce(team, words, words + 1, 1));
    }
    weft_status ended = TOLD(weft_team_destroy(team));
    used->has_dead |= status != WEFT_OK || ended != WEFT_OK;
    status = status == WEFT_OK ? ended : status;
    if (column != NULL) {
        ended = TOLD(weft_team_destroy(column));
        used->has_dead |= ended != WEFT_OK;
        status = status == WEFT_OK ? ended : status;
    }
    return status == WEFT_OK;
}

/* Returns 1 when all of it went well. */
static int use(used_world *used, int number, size_t bytes)
{
    uint64_t *block;
    if (TOLD(weft_malloc(used->world, bytes, (void **)&block)) != WEFT_OK) {
        return 0;
    }
    block[2] = bytes / 8;
    int is_well = use_team(used, block);
    if (TOLD(weft_free(used->world, block)) != WEFT_OK) {
        used->kept[number] = block;
        is_well = 0;
    }
    return is_well;
}

/* Nothing fails any more: all is well, and nothing is in use that calls which failed had taken. */
static void use_at_last(used_world *used, uint64_t before)
{
    for (int i = 0; i < USES; i++) {
        MUST(weft_free(used->world, used->kept[i]));
    }
    if (!use(used, USES - 1, 2000)) {
        weft_sim_fail("nothing fails any more, but: %s", weft_last_error());
    }
    if (!used->has_dead) {
        check_used(used->world, before);
    }
}

void case_memory_failure(void *argument)
{
    case_run *run = argument;
    uint64_t common = run->seed;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    used_world used = {0};
    weft_sim_world_config(&config);
    if (weft_sim_pe() == 0) {
        wefti_fault_arm(1 + common_next(&common) % (30 * (uint64_t)run->pes), 1 + common_next(&common) % 3);
    }
    weft_status status = weft_world_create(&config, &used.world);
    if (status == WEFT_ERR_TIMEOUT) {
        weft_sim_fail("nobody is late, but a world cannot be made: %s", weft_last_error());
    }
    if (status == WEFT_OK) {
        const uint64_t before = heap_used(used.world);
        uint64_t sizes = run->seed + 1; /* some for which the heap grows */
        for (int round = 0; round < USES - 1; round++) {
            (void)use(&used, round,
                      (size_t)(common_below(&sizes, 2) == 0 ? 2000 : 800000 * (1 + round)) +
                          (size_t)common_below(&sizes, 2) * 8);
        }
        await_all(run, 0);
        wefti_fault_arm(0, 0);
        await_all(run, 1);
        use_at_last(&used, before);
        MUST(weft_world_destroy(used.world));
    }
}

/* ---- a PE is lost ---- */

/* Who is named in an error of a collective, first in its text; *what: what is said of them. 0: nobody. */
static uint64_t first_named(const char *error, const char **what)
{
    const char *at = strstr(error, "\": PE");
    *what = "";
    if (at == NULL) {
        return 0;
    }
    at += strlen("\": PE");
    return named_pes(*at == 's' ? at + 1 : at, what);
}

/* Members that meet by counting are all in the call that cannot end: they name the lost PE alone. Others may be in the
 * call before, but they have not ended, unless they have left the world since: who leaves as the PE of its node ends by
 * which others would have heard so may look as if it had ended. */
static void check_lost(const case_run *run, weft_world *world, int lost)
{
    const char *what;
    uint64_t named = first_named(weft_last_error(), &what);
    for (int pe = 0; pe < run->pes && run->messages; pe++) {
        named &= pe == lost || run->board[pe] == 0 ? UINT64_MAX : ~(UINT64_C(1) << pe);
    }
    int is_counted = meets_by_count(weft_team_world(world));
    int says_ended = strncmp(what, "ended", 5) == 0 || strncmp(what, "came, but ended", 15) == 0;
    if (((is_counted || says_ended) && named != UINT64_C(1) << lost) ||
        (is_counted && strncmp(what, "ended and PE", 12) == 0) ||
        (is_counted && !weft_sim_same_process(weft_sim_pe(), lost) && strncmp(what, "did not arrive", 14) == 0)) {
        weft_sim_fail("PE %d is dead, but the error does not name it alone: %s", lost, weft_last_error());
    }
}

void case_lost_peer(void *argument)
{
    case_run *run = argument;
    uint64_t common = run->seed;
    int lost = common_below(&common, run->pes);
    int killer = (lost + 1 + common_below(&common, run->pes - 1)) % run->pes;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    weft_sim_world_config(&config);
    config.deadline_ns = 50 * MS_NS;
    if (weft_sim_pe() == killer) {
        if (common_below(&common, 2) == 0) {
            weft_sim_sleep_ns(weft_sim_random(20000));
            weft_sim_kill(lost);
        }
    }
    weft_status status = weft_world_create(&config, &world);
    if (status != WEFT_OK) {
        return;
    }
    for (int round = 0; round < 100 && status == WEFT_OK; round++) {
        void *block;
        if (weft_sim_pe() == killer && round == 3) {
            weft_sim_kill(lost);
        }
        status = weft_barrier(world);
        if (status == WEFT_OK) {
            status = weft_malloc(world, 100, &block);
        }
    }
    if (status == WEFT_OK) {
        weft_sim_fail("PE %d is dead, and 100 barriers went well", lost);
    }
    if (status != WEFT_ERR_TIMEOUT && status != WEFT_ERR_PEER) {
        weft_sim_fail("PE %d is dead, but the status is %s: %s", lost, weft_status_name(status), weft_last_error());
    }
    if (status == WEFT_ERR_TIMEOUT) {
        check_lost(run, world, lost);
    }
    run->board[weft_sim_pe()] = 1;
    MUST(weft_world_destroy(world));
}

/* ---- no deadline ---- */

/* The lost process dies, or the PE is stalled for longer than it takes until others look who is gone. */
static void strike(int lost, int dies, int messages)
{
    for (int pe = 0; pe < weft_sim_pes(); pe++) {
        if (dies && weft_sim_same_process(pe, lost)) {
            weft_sim_kill(pe);
        }
    }
    if (!dies) {
        weft_sim_stall(lost, (messages ? 300 : 1000) * MS_NS); /* which are dear for those that wait */
    }
}

/* A word from the member before: who has it leaves the world, also while others wait for one that is late. */
static void pass_a_word(weft_world *world, uint64_t *word)
{
    weft_team *node = weft_team_node(world);
    int next = (weft_team_pe(node) + 1) % weft_team_pes(node);
    MUST(weft_uint64_p(world, word, 1, weft_team_translate(node, next, weft_team_world(world))));
    MUST(weft_uint64_wait_until(world, word, WEFT_CMP_EQ, 1));
}

/* PEs ask for a lock one after another, in an order that is drawn, while the first holds it. When only the last has not
 * asked the lost one dies, or is late: those that stand behind one that is dead are told so, and only then the first
 * clears the lock, which those before it get in turn. */
static void stand_in_line(case_run *run, weft_world *world, uint64_t common, int killer, int lost, int dies)
{
    int order[64];
    int me = 0;
    int dead = run->pes; /* the place of the first that dies */
    long *lock;
    MUST(weft_calloc(world, 1, sizeof *lock, (void **)&lock));
    for (int i = 0; i < run->pes; i++) {
        int other = common_below(&common, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    for (int i = 0; i < run->pes - 1; i++) { /* the killer last */
        if (order[i] == killer) {
            order[i] = order[run->pes - 1];
            order[run->pes - 1] = killer;
        }
    }
    for (int i = run->pes - 1; i >= 0; i--) {
        me = order[i] == weft_sim_pe() ? i : me;
        dead = dies && weft_sim_same_process(order[i], lost) ? i : dead;
    }
    weft_sim_sleep_ns((uint64_t)me * MS_NS);
    weft_status status = me == 0 ? weft_set_lock(world, lock) : WEFT_OK;
    if (me == run->pes - 1) {
        weft_sim_sleep_ns(MS_NS);
        strike(lost, dies, run->messages);
        run->board[64] = weft_sim_now_ns();
    }
    status = me > 0 ? weft_set_lock(world, lock) : status;
    if (me > dead && weft_sim_now_ns() - run->board[64] > 3 * (100 + 2 * (uint64_t)run->pes) * MS_NS) {
        weft_sim_fail("PE %d stands behind one that has died and was told so after %llu ms", weft_sim_pe(),
                      (unsigned long long)((weft_sim_now_ns() - run->board[64]) / MS_NS));
    }
    if (status != (me > dead ? WEFT_ERR_PEER : WEFT_OK) || (me > dead && !text_names_pe(weft_last_error(), lost))) {
        weft_sim_fail("PE %d stands at %d behind %d where a PE has died, and there was %s: %s", weft_sim_pe(), me, dead,
                      weft_status_name(status), status == WEFT_OK ? "" : weft_last_error());
    }
    run->board[weft_sim_pe()] = 1;
    for (int i = dead + 1; i < run->pes && me == 0; i++) {
        while (run->board[order[i]] == 0 && !weft_sim_is_dead(order[i])) {
            weft_sim_sleep_ns(MS_NS);
        }
    }
    if (status == WEFT_OK) {
        MUST(weft_clear_lock(world, lock));
    }
}

#define TOLD_NS (20000 * MS_NS) /* by then who waits for one that has died has long been told */

/* Asked by waits, which nothing else would end. */
static int has_waited(void *context)
{
    const case_run *run = context;
    if (run->board[65] != 0 && weft_sim_now_ns() - run->board[65] > TOLD_NS) {
        weft_sim_fail("PE %d waits for one that has died, and is not told", weft_sim_pe());
    }
    return 0;
}

#define KINDS_OF_DATA 6

/* A member may die in any step of these, before it has sent or left. */
typedef struct data_calls {
    weft_team *team;
    uint64_t *words; /* count a member, and behind that as many for the result */
    size_t count;
    int kind; /* of all calls, KINDS_OF_DATA: by turns */
    int root;
} data_calls;

/* Few words, more than a line holds, or more than a slot does. Where nobody dies members leave behind their last call:
 * that is one in which each awaits all. */
static data_calls data_of(weft_team *team, uint64_t *common, int dies)
{
    static const size_t counts[] = {1, 32, 1600, 5000};
    data_calls calls = {.team = team};
    calls.count = counts[common_below(common, !dies ? 2 : weft_team_pes(team) <= 6 ? 4 : 3)];
    calls.kind = dies ? common_below(common, KINDS_OF_DATA + 1) : 0;
    calls.root = common_below(common, weft_team_pes(team));
    const size_t bytes = 2 * calls.count * (size_t)weft_team_pes(team) * sizeof *calls.words;
    MUST(weft_team_malloc(team, bytes, (void **)&calls.words));
    memset(calls.words, 0, bytes);
    MUST(weft_team_sync(team));
    return calls;
}

static weft_status move_data(const data_calls *calls, int round)
{
    const uint64_t *source = calls->words;
    uint64_t *dest = calls->words + calls->count * (size_t)weft_team_pes(calls->team);
    switch (calls->kind < KINDS_OF_DATA ? calls->kind : round % KINDS_OF_DATA) {
    case 0:
        return weft_uint64_sum_reduce(calls->team, dest, source, calls->count);
    case 1:
        return weft_uint64_broadcast(calls->team, dest, source, calls->count, calls->root);
    case 2:
        return weft_uint64_fcollect(calls->team, dest, source, calls->count);
    case 3:
        return weft_uint64_alltoall(calls->team, dest, source, calls->count);
    case 4:
        return weft_uint64_sum_reduce_scatter(calls->team, dest, source, calls->count);
    default:
        return weft_uint64_sum_inscan(calls->team, dest, source, calls->count);
    }
}

/* A process that a thread of another one ends, while one of its PEs stands still at a step of a call. */
typedef struct ending {
    wefti_os_thread *thread; /* NULL: not by this PE */
    case_run *run;
    int lost;
    int is_missed;
} ending;

static void end_soon(void *argument)
{
    const ending *one = argument;
    weft_sim_sleep_ns(MS_NS / 2);
    strike(one->lost, 1, one->run->messages);
    one->run->board[65] = one->is_missed ? weft_sim_now_ns() : 0;
}

static void end_at_a_step(ending *one, int killer)
{
    if (weft_sim_pe() == one->lost) {
        wefti_sim_rest_later(1 + (uint32_t)weft_sim_random(UINT64_C(2) << weft_sim_random(8)), 20 * MS_NS);
    }
    if (weft_sim_pe() == killer) {
        await_all(one->run, 0); /* those on other nodes may not have begun */
        MUST(wefti_os_thread_start(&one->thread, end_soon, one));
    }
}

/* Who waits for a PE of its node that has died learns it, and over messages who waits for one of any node, however soon
 * that died; who waits for one that is late goes on waiting, though others that have done their part leave. */
void case_no_deadline(void *argument)
{
    case_run *run = argument;
    uint64_t common = run->seed;
    int lost = common_below(&common, run->pes);
    int killer = (lost + 1 + common_below(&common, run->pes - 1)) % run->pes;
    int when = 4 + common_below(&common, 4);
    int dies = common_below(&common, 2) == 0 && !weft_sim_same_process(killer, lost);
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    weft_sim_world_config(&config);
    config.deadline_ns = WEFT_FOREVER;
    config.interrupted = has_waited;
    config.interrupted_context = run;
    MUST(weft_world_create(&config, &world));
    uint64_t *word;
    weft_team *node = weft_team_node(world);
    if (weft_team_pes(node) == run->pes && common_below(&common, 3) == 0) {
        stand_in_line(run, world, common, killer, lost, dies);
        MUST(weft_world_destroy(world));
        return;
    }
    MUST(weft_team_malloc(node, sizeof *word, (void **)&word));
    MUST(weft_uint64_p(world, word, 0, weft_world_pe(world)));
    MUST(weft_team_sync(node));
    weft_team *team = run->messages && common_below(&common, 3) > (dies ? 1 : 0) ? weft_team_world(world) : node;
    const int has_data = common_below(&common, 3) != 0;
    const data_calls data = has_data ? data_of(team, &common, dies) : (data_calls){.team = team};
    const int at_a_step = dies && has_data && common_below(&common, 4) > 0;
    run->board[weft_sim_pe()] = 1;
    int is_missed = dies && weft_team_translate(weft_team_world(world), lost, team) >= 0;
    ending end = {.run = run, .lost = lost, .is_missed = is_missed};
    weft_status status = WEFT_OK;
    for (int round = 0; (is_missed || round < 8) && status == WEFT_OK; round++) {
        void *block;
        if (at_a_step && round == when) {
            end_at_a_step(&end, killer);
        } else if (weft_sim_pe() == killer && round == when) {
            await_all(run, 0); /* those on other nodes may not have begun */
            weft_sim_sleep_ns(weft_sim_random(20000)); /* the others go on meanwhile, as far as they come */
            strike(lost, dies, run->messages);
            run->board[65] = is_missed ? weft_sim_now_ns() : 0;
        }
        dawdle(8, 2000);
        status = has_data                      ? move_data(&data, round)
                 : round % 2 == 1 || round > 8 ? weft_team_barrier(team)
                                               : weft_team_malloc(team, 100, &block);
    }
    if (end.thread != NULL) {
        wefti_os_thread_join(end.thread);
    }
    if (status != (is_missed ? WEFT_ERR_PEER : WEFT_OK)) {
        weft_sim_fail("PE %d is %s, and the status is %s: %s", lost, dies ? "dead" : "late", weft_status_name(status),
                      weft_last_error());
    }
    if (!dies) {
        if (weft_sim_pe() == killer && when % 2 == 0) {
            strike(lost, 0, run->messages);
        }
        pass_a_word(world, word);
    }
    MUST(weft_world_destroy(world));
}

/* ---- an abort ---- */

void case_abort(void *argument)
{
    const case_run *run = argument;
    uint64_t common = run->seed;
    weft_world *world = case_world("abort");
    int culprit = common_below(&common, run->pes);
    if (weft_sim_pe() == culprit) {
        dawdle(2, 3000);
        MUST(weft_world_abort(world, 7));
    }
    weft_status status = WEFT_OK;
    for (int round = 0; round < 1000 && status == WEFT_OK; round++) {
        status = weft_barrier(world);
    }
    int named = -1;
    /* A PE that has been told may leave before the abort has come everywhere: then it is first missed. */
    while (status == WEFT_ERR_PEER && weft_world_fault(world, &named) == WEFT_OK) {
        weft_sim_sleep_ns(1000);
    }
    if ((status != WEFT_ERR_ABORTED && status != WEFT_ERR_PEER) ||
        weft_world_fault(world, &named) != WEFT_ERR_ABORTED || named != culprit) {
        weft_sim_fail("PE %d aborted, but the status is %s and names PE %d", culprit, weft_status_name(status), named);
    }
    MUST(weft_world_destroy(world));
}
