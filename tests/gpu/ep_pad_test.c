/* Goal: after weft_ep_route_pad rows behind those that came are padding, whatever was there, and the mark tells how
 * many came; rows behind a mark are left alone, and an overflow leaves nothing but padding. Method: two PEs as threads
 * on the fake driver, in one domain, with the kernels of few ranks and of many, and in two, and on the host; N shrinks
 * and grows, in arrays spoilt before; fp8 rows have scales, packed and by column. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/support/ep_rig.h"
#include "support/ep_group.h"
#include "support/pes.h"

enum { PLACES = EP_RIG_ROWS * EP_RIG_TOPK };
enum { WIDTH = 256, WORDS = 2, CAPACITY = EP_RIG_PES * EP_RIG_TOKENS, COLUMN = CAPACITY + 4 }; /* of fp8 rows */

typedef struct arrays {
    float weights[PLACES];
    int64_t experts[PLACES];
    int32_t source_rank[EP_RIG_ROWS];
    int32_t source_token[EP_RIG_ROWS];
    _Alignas(8) uint64_t mark;
} arrays;

/* How many rows in a row, from `first`, are padding in all arrays. */
static int padding_from(const ep_rig *rig, const arrays *a, int first, int places)
{
    static const ep_rig_row zeroes;
    int row = first;
    for (; row < EP_RIG_ROWS; row++) {
        int is = memcmp(rig->there[row], zeroes, sizeof zeroes) == 0 && a->source_rank[row] == -1 &&
                 a->source_token[row] == -1;
        for (int i = row * places; i < (row + 1) * places; i++) {
            is = is && a->weights[i] == 0 && a->experts[i] == -1;
        }
        if (!is) {
            break;
        }
    }
    return row - first;
}

static void spoil(ep_rig *rig, arrays *a, int first, int places)
{
    const size_t rest = (size_t)(EP_RIG_ROWS - first);
    memset(rig->there + first, EP_RIG_MARK, rest * sizeof(ep_rig_row));
    memset(a->weights + first * places, EP_RIG_MARK, rest * (size_t)places * sizeof *a->weights);
    memset(a->experts + first * places, EP_RIG_MARK, rest * (size_t)places * sizeof *a->experts);
    memset(a->source_rank + first, EP_RIG_MARK, rest * sizeof *a->source_rank);
    memset(a->source_token + first, EP_RIG_MARK, rest * sizeof *a->source_token);
}

/* A dispatch in which each rank sends `tokens` to the other, and the padding. Returns N. */
static int dispatch(ep_rig *rig, int tokens, uint64_t *mark)
{
    weft_ep_host_counts counts;
    rig->choices.tokens = tokens;
    ep_rig_choose(rig, EP_RIG_LOCAL_EXPERTS * (1 - rig->rank));
    CHECK_OK(weft_ep_route_choose(rig->route, &rig->choices));
    CHECK_OK(weft_ep_dispatch(rig->route, &rig->in, &rig->received, NULL));
    CHECK_OK(weft_ep_route_pad(rig->route, &rig->received, mark, NULL));
    CHECK_OK(weft_ep_route_query(rig->route, NULL, &counts));
    return counts.status == WEFT_OK ? (int)counts.rows : -1;
}

static void shrinks(ep_rig *rig, arrays *a, int places)
{
    static const int tokens[] = {5, 8, 2, 2, 0, 3};
    spoil(rig, a, 0, places);
    a->mark = EP_RIG_ROWS;
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        const int came = dispatch(rig, tokens[i], &a->mark);
        CHECK(came >= tokens[i] && (came > 0) == (tokens[i] > 0));
        CHECK(a->mark == (uint64_t)came);
        CHECK(padding_from(rig, a, came, places) == EP_RIG_ROWS - came);
        CHECK(came == 0 || padding_from(rig, a, came - 1, places) == 0);
    }
    /* what lies behind the mark is not written, and without a mark all of it is */
    spoil(rig, a, 40, places);
    a->mark = 20;
    int came = dispatch(rig, 2, &a->mark);
    CHECK(padding_from(rig, a, came, places) == 40 - came);
    came = dispatch(rig, 2, NULL);
    CHECK(padding_from(rig, a, came, places) == EP_RIG_ROWS - came);
}

static void overflows(ep_rig *rig, arrays *a, int places)
{
    a->mark = EP_RIG_ROWS;
    CHECK(dispatch(rig, 8, &a->mark) >= 8);
    rig->received.rows_capacity = 4;
    CHECK_OK(weft_ep_route_choose(rig->route, &rig->choices));
    const weft_status status = weft_ep_dispatch(rig->route, &rig->in, &rig->received, NULL);
    CHECK(status == WEFT_OK || status == WEFT_ERR_OVERFLOW);
    rig->received.rows_capacity = EP_RIG_ROWS;
    CHECK_OK(weft_ep_route_pad(rig->route, &rig->received, &a->mark, NULL));
    CHECK_STATUS(ep_rig_status(rig), WEFT_ERR_OVERFLOW);
    CHECK(a->mark == 0 && padding_from(rig, a, 0, places) == EP_RIG_ROWS);
}

static void refused(ep_rig *rig, arrays *a)
{
    weft_ep_received none = rig->received;
    CHECK_STATUS(weft_ep_route_pad(NULL, &none, NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_pad(rig->route, NULL, NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_pad(rig->route, &none, (uint64_t *)(void *)((char *)&a->mark + 4), NULL),
                 WEFT_ERR_ARGUMENT);
    none.rows.data = NULL;
    none.rows.scales = (void *)a->weights;
    CHECK_STATUS(weft_ep_route_pad(rig->route, &none, NULL, NULL), WEFT_ERR_ARGUMENT);
}

/* Without rows the arrays alone become padding. */
static void no_rows(ep_rig *rig, arrays *a, int places)
{
    spoil(rig, a, 0, places);
    const int came = dispatch(rig, 2, NULL);
    spoil(rig, a, came, places);
    weft_ep_received none = rig->received;
    none.rows.data = NULL;
    CHECK_OK(weft_ep_route_pad(rig->route, &none, NULL, NULL));
    weft_ep_host_counts counts;
    CHECK_OK(weft_ep_route_query(rig->route, NULL, &counts)); /* waits for it */
    CHECK(padding_from(rig, a, came, places) == 0);
    CHECK(a->source_rank[came] == -1 && a->source_token[EP_RIG_ROWS - 1] == -1);
    CHECK_OK(weft_ep_route_pad(rig->route, &rig->received, NULL, NULL));
    CHECK_OK(weft_ep_route_query(rig->route, NULL, &counts));
    CHECK(padding_from(rig, a, came, places) == EP_RIG_ROWS - came);
}

static void run(weft_world *world, int on_device, weft_ep_layout layout)
{
    weft_ep_config config = ep_rig_config();
    ep_rig *rig = aligned_alloc(64, (sizeof *rig + 63) / 64 * 64);
    arrays *a = calloc(1, sizeof *a);
    const int is_slots = layout == WEFT_EP_SLOTS_SOURCE;
    if (rig == NULL || a == NULL) {
        abort();
    }
    config.on_device = on_device;
    ep_rig_open_with(rig, world, layout, &config, 0);
    CHECK_STATUS(weft_ep_route_pad(rig->route, &rig->received, NULL, NULL), WEFT_ERR_STATE);
    for (int i = 0; i < EP_RIG_TOKENS; i++) {
        for (int h = 0; h < EP_RIG_HIDDEN; h++) {
            rig->tokens[i][h] = (float)(i + 1);
        }
    }
    rig->received.weights = a->weights;
    rig->received.experts = (int32_t *)(void *)a->experts;
    rig->received.expert_type = WEFT_EP_INT64;
    rig->received.source_rank = a->source_rank;
    rig->received.source_token = a->source_token;
    if (is_slots) {
        ep_rig_choose(rig, 0);
        CHECK_OK(weft_ep_route_update(rig->route, &rig->choices, NULL));
        CHECK_STATUS(weft_ep_route_pad(rig->route, &rig->received, NULL, NULL), WEFT_ERR_UNSUPPORTED);
    } else {
        const int places = layout == WEFT_EP_RANK_MAJOR ? EP_RIG_TOPK : 1;
        shrinks(rig, a, places);
        no_rows(rig, a, places);
        refused(rig, a);
        if (rig->ep->between == NULL) { /* an overflow ends a group of several domains */
            overflows(rig, a, places);
        }
    }
    ep_rig_close(rig);
    free(a);
    free(rig);
}

typedef struct wide_rows {
    _Alignas(64) unsigned char data[CAPACITY][WIDTH];
    uint32_t scales[WORDS * COLUMN]; /* more than are the rows' */
} wide_rows;

static weft_ep_rows rows_of(wide_rows *wide, int is_by_column)
{
    weft_ep_rows rows = ep_rows(wide->data, WEFT_EP_FP8_E4M3, WIDTH);
    rows.scales = wide->scales;
    rows.scale_type = WEFT_EP_SCALE_F32;
    rows.scale_row_stride = is_by_column ? 1 : 0;
    rows.scale_word_stride = is_by_column ? COLUMN : 0;
    return rows;
}

/* Rows that came have what was sent, the others zeroes, and words of no row what was there. */
static void check_scales(const wide_rows *wide, int is_by_column, int came)
{
    static const unsigned char zeroes[WIDTH];
    int of_rows = 0;
    for (int row = 0; row < CAPACITY; row++) {
        CHECK((memcmp(wide->data[row], zeroes, WIDTH) == 0) == (row >= came));
        for (int word = 0; word < WORDS; word++) {
            const uint32_t scale = wide->scales[is_by_column ? word * COLUMN + row : row * WORDS + word];
            CHECK(scale == (row < came ? UINT32_C(0x3f800000) : 0));
            of_rows += scale != UINT32_C(0x5a5a5a5a);
        }
    }
    for (int i = 0; i < WORDS * COLUMN; i++) {
        of_rows -= wide->scales[i] != UINT32_C(0x5a5a5a5a);
    }
    CHECK(of_rows == 0);
}

static void run_scales(weft_world *world, int on_device, int is_by_column)
{
    static const int tokens[] = {8, 3, 0, 5};
    weft_ep_config config = ep_rig_config();
    ep_rig *rig = aligned_alloc(64, (sizeof *rig + 63) / 64 * 64);
    wide_rows *given = aligned_alloc(64, (sizeof *given + 63) / 64 * 64);
    wide_rows *got = aligned_alloc(64, (sizeof *got + 63) / 64 * 64);
    if (rig == NULL || given == NULL || got == NULL) {
        abort();
    }
    config.on_device = on_device;
    config.row_bytes_max = WIDTH;
    ep_rig_open_with(rig, world, WEFT_EP_RANK_MAJOR, &config, 0);
    memset(given->data, 0x38, sizeof given->data); /* 1 */
    for (int i = 0; i < WORDS * COLUMN; i++) {
        given->scales[i] = UINT32_C(0x3f800000);
    }
    memset(got, EP_RIG_MARK, sizeof *got);
    rig->in = rows_of(given, is_by_column);
    rig->received.rows = rows_of(got, is_by_column);
    rig->received.rows_capacity = CAPACITY;
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        const int came = dispatch(rig, tokens[i], NULL);
        CHECK(came >= tokens[i]);
        check_scales(got, is_by_column, came);
    }
    ep_rig_close(rig);
    free(got);
    free(given);
    free(rig);
}

static void body(weft_world *world, void *context)
{
    (void)context;
    if (!ep_rig_attach(world)) {
        abort();
    }
    for (int on_device = 0; on_device < 2; on_device++) {
        run(world, on_device, WEFT_EP_RANK_MAJOR);
        run(world, on_device, WEFT_EP_EXPERT_MAJOR);
        run(world, on_device, WEFT_EP_SLOTS_SOURCE);
        run_scales(world, on_device, 0);
        run_scales(world, on_device, 1);
    }
}

static void one_domain(void **state)
{
    (void)state;
    pes_run(EP_RIG_PES, body, NULL);
}

static void many_ranks(void **state)
{
    (void)state;
    assert_int_equal(setenv("WEFT_EP_FEW_RANKS", "0", 1), 0);
    pes_run(EP_RIG_PES, body, NULL);
    assert_int_equal(unsetenv("WEFT_EP_FEW_RANKS"), 0);
}

static void two_domains(void **state)
{
    (void)state;
    assert_int_equal(setenv("WEFT_CUDA_DOMAIN", "1", 1), 0);
    pes_run(EP_RIG_PES, body, NULL);
    assert_int_equal(unsetenv("WEFT_CUDA_DOMAIN"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(one_domain), CHECKED_TEST(many_ranks), CHECKED_TEST(two_domains)};
    (void)setenv("WEFT_FAKE_SMS", "4", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
