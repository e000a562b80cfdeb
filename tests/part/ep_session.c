/* part/ep_session.c: one PE's part in a sequence of expert-parallel calls. */
#include "part/ep_session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "part/check.h"
#include "part/ep_reference.h"

#define GROUPS_MAX 4
#define ROUTES_MAX 4
#define GUARD_ROWS 2 /* behind the rows received */
#define POISON 0xa5

typedef struct session_route {
    weft_ep_route *route;
    weft_ep_plan plan;
    void *memory; /* the caller's, or NULL */
    int updated;
    ep_case one;
    ep_expected expected;
} session_route;

typedef struct session_group {
    weft_ep *ep;
    ep_setup setup;
    session_route routes[ROUTES_MAX];
} session_group;

typedef struct ep_session {
    const ep_session_plan *plan;
    weft_world *world;
    weft_team *team;
    int rank;
    int ranks;
    uint64_t common; /* random numbers that are the same on all ranks */
    uint64_t own;
    unsigned char *arena; /* symmetric */
    size_t arena_bytes;
    unsigned salt; /* of the current call */
    char what[160];
    session_group groups[GROUPS_MAX];
} ep_session;

/* ---- buffers ---- */

/* Rows of a case: in the symmetric arena or not, packed or with a stride, as this rank likes. */
typedef struct row_buffer {
    unsigned char *data;
    void *owned; /* not in the arena */
    size_t pitch;
    size_t bytes;
    weft_ep_rows rows;
} row_buffer;

static row_buffer buffer_draw(ep_session *session, const ep_case *one, size_t rows, int may_be_symmetric)
{
    row_buffer buffer;
    size_t row_bytes = ep_row_bytes(one);
    size_t gap = random_below(&session->own, 3) == 0 ? 16 * (size_t)random_below(&session->own, 4) : 0;
    memset(&buffer, 0, sizeof buffer);
    buffer.pitch = row_bytes + gap;
    buffer.bytes = rows * buffer.pitch + 16;
    size_t room = session->arena_bytes > buffer.bytes ? session->arena_bytes - buffer.bytes : 0;
    if (may_be_symmetric && room > 0 && random_below(&session->own, 3) != 0) {
        size_t offset = random_below(&session->own, 2) == 0 ? 0 : random_below(&session->own, (unsigned)room) / 16 * 16;
        buffer.data = session->arena + offset;
    } else {
        buffer.owned = aligned_alloc(64, (buffer.bytes + 63) / 64 * 64);
        buffer.data = buffer.owned;
    }
    memset(buffer.data, POISON, buffer.bytes);
    buffer.rows = (weft_ep_rows)WEFT_EP_ROWS_INIT;
    buffer.rows.data = buffer.data;
    buffer.rows.dtype = one->dtype;
    buffer.rows.hidden = one->hidden;
    buffer.rows.stride_bytes = gap > 0 ? buffer.pitch : 0;
    return buffer;
}

static unsigned char *buffer_row(const row_buffer *buffer, size_t row)
{
    return buffer->data + row * buffer->pitch;
}

static int is_poison(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != POISON) {
            return 0;
        }
    }
    return 1;
}

/* Overwrite and free: who still reads or writes it now is wrong. */
static void buffer_end(row_buffer *buffer)
{
    memset(buffer->data, 0x5a, buffer->bytes);
    free(buffer->owned);
}

static void dawdle(ep_session *session)
{
    if (session->plan->slow_us > 0 && random_below(&session->own, 3) == 0) {
        wefti_os_sleep_ns(UINT64_C(1000) * random_below(&session->own, session->plan->slow_us));
    }
}

/* ---- update ---- */

static void check_numbers(const ep_session *session, const char *name, const int32_t *got, const int *wanted, int count)
{
    for (int i = 0; i < count; i++) {
        if (!CHECK_SAY(got[i] == wanted[i], "%s: %s[%d] is %d, not %d", session->what, name, i, got[i], wanted[i])) {
            return;
        }
    }
}

static void check_counts(const ep_session *session, const session_group *group, const session_route *route)
{
    const ep_expected *expected = &route->expected;
    int local = group->setup.table[session->rank];
    weft_status status = expected->overflow ? WEFT_ERR_OVERFLOW : expected->dropped > 0 ? WEFT_ERR_RANGE : WEFT_OK;
    weft_ep_host_counts host;
    weft_ep_counts counts;
    if (!CHECK_OK(weft_ep_route_query(route->route, NULL, &host)) ||
        !CHECK_OK(weft_ep_route_counts(route->route, &counts))) {
        return;
    }
    CHECK_SAY(host.rows == expected->rows, "%s: %lld rows, not %d", session->what, (long long)host.rows,
              expected->rows);
    CHECK_SAY(host.status == status, "%s: status %d, not %d", session->what, host.status, status);
    CHECK_SAY(host.dropped == expected->dropped, "%s: %lld dropped, not %d", session->what, (long long)host.dropped,
              expected->dropped);
    CHECK(host.local_experts == local && host.first_expert == group->setup.first[session->rank]);
    CHECK(host.tokens == expected->offset_of_source[session->ranks]);
    CHECK(*counts.rows == expected->rows && *counts.status == status && *counts.dropped == expected->dropped);
    check_numbers(session, "rows_of_expert", counts.rows_of_expert, expected->rows_of_expert, local);
    check_numbers(session, "offset_of_expert", counts.offset_of_expert, expected->offset_of_expert, local + 1);
    check_numbers(session, "rows_of_source", counts.rows_of_source, expected->rows_of_source, session->ranks);
    check_numbers(session, "offset_of_source", counts.offset_of_source, expected->offset_of_source, session->ranks + 1);
}

/* The ids in the type asked for; to be freed. */
static void *narrow_ids(const ep_case *one, int rank)
{
    size_t count = (size_t)one->tokens[rank] * (size_t)one->plan.topk;
    int64_t *wide = malloc((count + 1) * sizeof *wide);
    int32_t *narrow = (int32_t *)wide;
    for (size_t i = 0; i < count; i++) {
        if (one->id_type == WEFT_EP_INT64) {
            wide[i] = one->ids[rank][i];
        } else {
            narrow[i] = (int32_t)one->ids[rank][i];
        }
    }
    return wide;
}

static void update(ep_session *session, session_group *group, session_route *route)
{
    ep_case_free(&route->one);
    ep_expected_free(&route->expected);
    route->one = ep_case_draw(random_next(&session->common), &group->setup, &session->plan->size, &route->plan);
    route->expected = ep_reference_route(&route->one, session->rank);
    route->updated = 1;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    void *ids = narrow_ids(&route->one, session->rank);
    choices.tokens = route->one.tokens[session->rank];
    choices.id_type = route->one.id_type;
    choices.ids = ids;
    choices.weights = route->one.weights[session->rank];
    dawdle(session);
    if (CHECK_OK(weft_ep_route_update(route->route, &choices, NULL))) {
        check_counts(session, group, route);
    }
    free(ids);
}

/* ---- dispatch ---- */

static void fill_tokens(const ep_session *session, const ep_case *one, const row_buffer *in)
{
    for (int token = 0; token < one->tokens[session->rank]; token++) {
        uint32_t *words = (uint32_t *)(void *)buffer_row(in, (size_t)token);
        for (int word = 0; word < (int)(ep_row_bytes(one) / 4); word++) {
            words[word] = ep_pattern(session->rank, token, word, session->salt);
        }
    }
}

static int check_row(const ep_session *session, const ep_case *one, const ep_row *row, int number, const void *data)
{
    const uint32_t *words = data;
    char got[80];
    char wanted[80];
    if (row->source < 0) {
        return CHECK_SAY(is_poison(data, ep_row_bytes(one)), "%s: padding row %d was written: %s", session->what,
                         number, ep_pattern_text(words[0], got, sizeof got));
    }
    for (int word = 0; word < (int)(ep_row_bytes(one) / 4); word++) {
        uint32_t pattern = ep_pattern(row->source, row->token, word, session->salt);
        if (!CHECK_SAY(words[word] == pattern, "%s: word %d of row %d is %s, not %s", session->what, word, number,
                       ep_pattern_text(words[word], got, sizeof got),
                       ep_pattern_text(pattern, wanted, sizeof wanted))) {
            return 0;
        }
    }
    return 1;
}

/* What a row's arrays must say of choice k: all choices in rank-major, the one of the row in expert-major. */
static void check_arrays(const ep_session *session, const session_group *group, const session_route *route,
                         const weft_ep_received *out, int number)
{
    const ep_case *one = &route->one;
    const ep_row *row = &route->expected.row[number];
    int expert_major = one->plan.layout == WEFT_EP_EXPERT_MAJOR;
    int width = expert_major ? 1 : one->plan.topk;
    if (out->source_rank != NULL) {
        CHECK_SAY(out->source_rank[number] == row->source, "%s: source_rank[%d] is %d, not %d", session->what, number,
                  out->source_rank[number], row->source);
    }
    if (out->source_token != NULL) {
        CHECK_SAY(out->source_token[number] == row->token, "%s: source_token[%d] is %d, not %d", session->what, number,
                  out->source_token[number], row->token);
    }
    for (int i = 0; i < width; i++) {
        int expert = -1;
        float weight = 0.0f;
        if (row->source >= 0) {
            size_t at = (size_t)row->token * (size_t)one->plan.topk + (size_t)(expert_major ? row->choice : i);
            int64_t local = one->ids[row->source][at] - group->setup.first[session->rank];
            int here = local >= 0 && local < group->setup.table[session->rank];
            expert = here ? (int)local : -1;
            weight = !here ? 0.0f : one->weights[row->source] != NULL ? one->weights[row->source][at] : 1.0f;
        }
        size_t at = (size_t)number * (size_t)width + (size_t)i;
        if (out->experts != NULL) {
            CHECK_SAY(out->experts[at] == expert, "%s: experts[%zu] is %d, not %d", session->what, at, out->experts[at],
                      expert);
        }
        if (out->weights != NULL) {
            CHECK_SAY(out->weights[at] == weight, "%s: weights[%zu] is %g, not %g", session->what, at,
                      (double)out->weights[at], (double)weight);
        }
    }
}

static void check_received(const ep_session *session, const session_group *group, const session_route *route,
                           const row_buffer *rows, const weft_ep_received *out)
{
    size_t row_bytes = ep_row_bytes(&route->one);
    for (int i = 0; i < route->expected.rows; i++) {
        const unsigned char *row = buffer_row(rows, (size_t)i);
        if (!check_row(session, &route->one, &route->expected.row[i], i, row)) {
            return;
        }
        CHECK_SAY(is_poison(row + row_bytes, rows->pitch - row_bytes), "%s: wrote between rows", session->what);
        check_arrays(session, group, route, out, i);
    }
    CHECK_SAY(is_poison(buffer_row(rows, (size_t)route->expected.rows), GUARD_ROWS * rows->pitch),
              "%s: wrote behind the rows", session->what);
}

static void *poisoned(ep_session *session, size_t count, size_t bytes)
{
    if (random_below(&session->own, 6) == 0) {
        return NULL;
    }
    void *array = malloc((count + 1) * bytes);
    memset(array, POISON, (count + 1) * bytes);
    return array;
}

static void dispatch(ep_session *session, session_group *group, session_route *route)
{
    const ep_case *one = &route->one;
    size_t rows = (size_t)route->expected.rows;
    size_t width = one->plan.layout == WEFT_EP_EXPERT_MAJOR ? 1 : (size_t)one->plan.topk;
    row_buffer to = buffer_draw(session, one, rows + GUARD_ROWS, 1);
    row_buffer in = buffer_draw(session, one, (size_t)one->tokens[session->rank], to.owned != NULL);
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    out.rows = to.rows;
    out.rows_capacity = rows + random_below(&session->own, GUARD_ROWS + 1);
    out.weights = poisoned(session, rows * width, sizeof *out.weights);
    out.experts = poisoned(session, rows * width, sizeof *out.experts);
    out.source_rank = poisoned(session, rows, sizeof *out.source_rank);
    out.source_token = poisoned(session, rows, sizeof *out.source_token);
    fill_tokens(session, one, &in);
    dawdle(session);
    weft_status wanted = route->expected.overflow ? WEFT_ERR_OVERFLOW : WEFT_OK;
    int ok = CHECK_STATUS(weft_ep_dispatch(route->route, &in.rows, &out, NULL), wanted);
    buffer_end(&in);
    dawdle(session); /* a consumer may be slow; nobody may write here yet */
    if (ok && wanted == WEFT_OK) {
        check_received(session, group, route, &to, &out);
    } else if (ok) {
        CHECK_SAY(is_poison(to.data, to.bytes), "%s: wrote rows in spite of the overflow", session->what);
    }
    free(out.weights);
    free(out.experts);
    free(out.source_rank);
    free(out.source_token);
    buffer_end(&to);
}

/* ---- combine ---- */

static void set_element(const ep_case *one, unsigned char *row, int column, uint32_t bits)
{
    if (one->dtype == WEFT_EP_F32) {
        memcpy(row + 4 * (size_t)column, &bits, 4);
    } else {
        uint16_t narrow = (uint16_t)bits;
        memcpy(row + 2 * (size_t)column, &narrow, 2);
    }
}

static uint32_t get_element(const ep_case *one, const unsigned char *row, int column)
{
    uint32_t bits;
    uint16_t narrow;
    if (one->dtype == WEFT_EP_F32) {
        memcpy(&bits, row + 4 * (size_t)column, 4);
        return bits;
    }
    memcpy(&narrow, row + 2 * (size_t)column, 2);
    return narrow;
}

static void fill_results(const ep_session *session, const session_route *route, const row_buffer *in)
{
    for (int i = 0; i < route->expected.rows; i++) {
        const ep_row *row = &route->expected.row[i];
        for (int column = 0; column < route->one.hidden && row->source >= 0; column++) {
            uint32_t bits =
                ep_result(route->one.dtype, session->rank, row->source, row->token, row->choice, column, session->salt);
            set_element(&route->one, buffer_row(in, (size_t)i), column, bits);
        }
    }
}

/* How far a combined element may be from the exact sum: 2^-8 (|exact| + sum of |partial|) in bf16, from rounding each
 * partial sum and the total once, times 1 + 2^-8 since the total is of rounded partials; and what float32 loses. */
static double tolerance(const ep_case *one, const ep_sum *sum)
{
    double in_float = 0x1p-23 * (one->plan.topk + one->setup->ranks) * sum->terms;
    double in_bf16 = 0x1p-8 * (1.0 + 0x1p-8) * (fabs(sum->exact) + sum->partials);
    return one->dtype == WEFT_EP_BF16 ? in_bf16 + in_float : in_float;
}

static int check_sum(const ep_session *session, const ep_case *one, const unsigned char *row, int token,
                     const ep_sum *sums)
{
    for (int column = 0; column < one->hidden; column++) {
        const ep_sum *sum = &sums[column];
        uint32_t bits = get_element(one, row, column);
        double error = fabs(ep_bits_value(one->dtype, bits) - sum->exact);
        if (!CHECK_SAY(bits == sum->bits, "%s: token %d, column %d is %g (0x%x), not %g (0x%x)", session->what, token,
                       column, ep_bits_value(one->dtype, bits), bits, ep_bits_value(one->dtype, sum->bits),
                       sum->bits) ||
            !CHECK_SAY(error <= tolerance(one, sum), "%s: token %d, column %d is off by %g from %g", session->what,
                       token, column, error, sum->exact)) {
            return 0;
        }
    }
    return 1;
}

static void check_combined(const ep_session *session, const ep_case *one, const row_buffer *out, int weighted)
{
    size_t row_bytes = ep_row_bytes(one);
    int tokens = one->tokens[session->rank];
    ep_sum *sums = malloc((size_t)one->hidden * sizeof *sums);
    for (int token = 0; token < tokens; token++) {
        const unsigned char *row = buffer_row(out, (size_t)token);
        ep_reference_combine(one, session->rank, token, weighted, session->salt, sums);
        if (!check_sum(session, one, row, token, sums)) {
            break;
        }
        CHECK_SAY(is_poison(row + row_bytes, out->pitch - row_bytes), "%s: wrote between rows", session->what);
    }
    CHECK_SAY(is_poison(buffer_row(out, (size_t)tokens), GUARD_ROWS * out->pitch), "%s: wrote behind the rows",
              session->what);
    free(sums);
}

static void combine(ep_session *session, session_route *route, int weighted)
{
    const ep_case *one = &route->one;
    row_buffer in = buffer_draw(session, one, (size_t)route->expected.rows, 1);
    row_buffer out = buffer_draw(session, one, (size_t)one->tokens[session->rank] + GUARD_ROWS, in.owned != NULL);
    fill_results(session, route, &in);
    dawdle(session);
    weft_status wanted = route->expected.overflow ? WEFT_ERR_OVERFLOW : WEFT_OK;
    int ok =
        CHECK_STATUS(weft_ep_combine(route->route, &in.rows, &out.rows, weighted ? WEFT_EP_WEIGHTED : 0, NULL), wanted);
    buffer_end(&in);
    dawdle(session);
    if (ok && wanted == WEFT_OK) {
        check_combined(session, one, &out, weighted);
    }
    buffer_end(&out);
}

/* ---- the sequence ---- */

static void describe(ep_session *session, const char *call, int group, int route, const ep_case *one)
{
    snprintf(session->what, sizeof session->what, "call %u, %s, group %d, route %d (%s, K %d, H %d, %s, align %d)",
             session->salt, call, group, route, one->plan.layout == WEFT_EP_RANK_MAJOR ? "rank-major" : "expert-major",
             one->plan.topk, one->hidden, one->dtype == WEFT_EP_BF16 ? "bf16" : "f32", one->plan.alignment);
}

static void one_call(ep_session *session)
{
    int g = (int)random_below(&session->common, (unsigned)session->plan->groups);
    int r = (int)random_below(&session->common, (unsigned)session->plan->routes);
    session_group *group = &session->groups[g];
    session_route *route = &group->routes[r];
    int wants_update = random_below(&session->common, 100) < session->plan->updates;
    int kind = (int)random_below(&session->common, 4);
    session->salt++;
    if (!route->updated || wants_update) {
        describe(session, "update", g, r, &route->one);
        update(session, group, route);
    } else if (kind < 2) {
        describe(session, "dispatch", g, r, &route->one);
        dispatch(session, group, route);
    } else {
        describe(session, kind == 2 ? "combine" : "weighted combine", g, r, &route->one);
        combine(session, route, kind == 3);
    }
}

static int create_route(ep_session *session, session_group *group, session_route *route)
{
    size_t bytes;
    route->plan = ep_plan_draw(random_next(&session->common), &group->setup);
    if (!CHECK_OK(weft_ep_route_bytes(group->ep, &route->plan, &bytes))) {
        return 0;
    }
    if (random_below(&session->own, 2) == 0) {
        route->memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
        memset(route->memory, POISON, bytes);
    }
    return CHECK_OK(weft_ep_route_create(group->ep, &route->plan, route->memory, &route->route));
}

static int create_group(ep_session *session, session_group *group)
{
    group->setup = ep_setup_draw(random_next(&session->common), session->ranks, &session->plan->size);
    weft_ep_config config = group->setup.config;
    config.experts_of_rank = group->setup.uneven ? group->setup.table : NULL;
    if (!CHECK_OK(weft_ep_create(session->team, &config, &group->ep))) {
        return 0;
    }
    if (session->plan->prepare != NULL) {
        session->plan->prepare(group->ep);
    }
    for (int r = 0; r < session->plan->routes; r++) {
        if (!create_route(session, group, &group->routes[r])) {
            return 0;
        }
    }
    return 1;
}

static void destroy_group(const ep_session *session, session_group *group)
{
    for (int r = 0; r < session->plan->routes; r++) {
        session_route *route = &group->routes[r];
        CHECK_OK(weft_ep_route_destroy(route->route));
        free(route->memory);
        ep_case_free(&route->one);
        ep_expected_free(&route->expected);
    }
    CHECK_OK(weft_ep_destroy(group->ep));
}

/* The world's own team, or one of all its PEs in another order, so that ranks are not PEs. */
static int choose_team(ep_session *session)
{
    session->team = weft_team_world(session->world);
    int order[EP_RANKS_MAX];
    int shuffled = random_below(&session->common, 2) == 0;
    random_order(&session->common, order, session->ranks);
    if (shuffled && !CHECK_OK(weft_team_create(session->team, order, session->ranks, &session->team))) {
        return 0;
    }
    session->rank = weft_team_pe(session->team);
    session->own = session->common ^ ((uint64_t)(unsigned)session->rank + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return 1;
}

static void run(ep_session *session)
{
    void *arena;
    session->arena_bytes = session->plan->size.bytes_max / 4;
    if (!choose_team(session) || !CHECK_OK(weft_malloc(session->world, session->arena_bytes, &arena))) {
        return;
    }
    session->arena = arena;
    for (int g = 0; g < session->plan->groups; g++) {
        if (!create_group(session, &session->groups[g])) {
            return;
        }
    }
    for (int i = 0; i < session->plan->calls; i++) {
        one_call(session);
    }
    for (int g = 0; g < session->plan->groups; g++) {
        destroy_group(session, &session->groups[g]);
    }
    CHECK_OK(weft_free(session->world, arena));
    if (session->team != weft_team_world(session->world)) {
        CHECK_OK(weft_team_destroy(session->team));
    }
}

void ep_session_run(weft_world *world, uint64_t seed, const ep_session_plan *plan)
{
    ep_session *session = calloc(1, sizeof *session);
    session->plan = plan;
    session->world = world;
    session->ranks = weft_world_pes(world);
    session->common = seed;
    run(session);
    free(session);
}
