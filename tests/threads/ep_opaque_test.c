/* Goal: rows of WEFT_EP_BYTES move as they are, with the bytes of their scales, whatever these are; what cannot be of
 * them is refused by name.
 *
 * Method: two ranks send each other rows as those of NVFP4 with 7168 elements: 3584 bytes and 448 bytes of scales, into
 * memory of either kind, scales by row or by column; and the most bytes of scales that a row may have. The random cases
 * of tests/property/ep.c have such rows in all layouts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ep_group.h"
#include "support/pes.h"
#include "weft.h"
#include "weft_ep.h"

enum { PES = 2, TOKENS = 3, ROW_BYTES = 3584, SCALE_BYTES = 448, SCALES_MOST = 4092, ROWS = PES * TOKENS };

typedef struct rig {
    weft_world *world;
    int rank;
    weft_ep *ep;
    weft_ep_route *route;
} rig;

/* Every token goes to both ranks. */
static int open_rig(weft_world *world, int scale_bytes_max, rig *r)
{
    static const int32_t ids[TOKENS * PES] = {0, 1, 1, 0, 0, 1};
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    *r = (rig){.world = world, .rank = weft_world_pe(world)};
    config.experts = PES;
    config.tokens_max = TOKENS;
    config.topk_max = PES;
    config.row_bytes_max = ROW_BYTES;
    config.scale_bytes_max = scale_bytes_max;
    plan.topk = PES;
    choices.tokens = TOKENS;
    choices.ids = ids;
    return ep_group_open(world, &config, &plan, &r->ep, &r->route) &&
           CHECK_OK(weft_ep_route_update(r->route, &choices, NULL));
}

static weft_ep_rows rows_of(void *data, void *scales, int scale_bytes)
{
    weft_ep_rows rows = ep_rows(data, WEFT_EP_BYTES, ROW_BYTES);
    rows.scales = scales;
    rows.scale_type = WEFT_EP_SCALE_BYTES;
    rows.scale_bytes = scale_bytes;
    return rows;
}

static unsigned char byte_of(int rank, int token, int at)
{
    return (unsigned char)(rank * 131 + token * 29 + at * 7 + at / 256);
}

static int check_row(const unsigned char *row, int source, int token)
{
    for (int i = 0; i < ROW_BYTES; i++) {
        if (!CHECK_SAY(row[i] == byte_of(source, token, i), "byte %d of token %d of rank %d is %u", i, token, source,
                       row[i])) {
            return 0;
        }
    }
    return 1;
}

/* Send, and compare what came; scales of what is received by column if `by_column`. */
static void exchange(rig *r, unsigned char *received, unsigned char *scales, int scale_bytes, int by_column)
{
    unsigned char *in = malloc((size_t)TOKENS * ROW_BYTES + 16);
    unsigned char *in_scales = malloc((size_t)TOKENS * (size_t)scale_bytes);
    unsigned char *aligned = in + (16 - (uintptr_t)in % 16) % 16;
    for (int token = 0; token < TOKENS; token++) {
        for (int i = 0; i < ROW_BYTES; i++) {
            aligned[token * ROW_BYTES + i] = byte_of(r->rank, token, i);
        }
        for (int i = 0; i < scale_bytes; i++) {
            in_scales[token * scale_bytes + i] = byte_of(r->rank + 7, token, i);
        }
    }
    weft_ep_rows rows = rows_of(aligned, in_scales, scale_bytes);
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    out.rows = rows_of(received, scales, scale_bytes);
    out.rows_capacity = ROWS;
    out.rows.scale_row_stride = by_column ? 1 : 0;
    out.rows.scale_word_stride = by_column ? ROWS : 0;
    CHECK_OK(weft_ep_dispatch(r->route, &rows, &out, NULL));
    for (int row = 0; row < ROWS; row++) {
        int source = row / TOKENS;
        int token = row % TOKENS;
        if (!check_row(received + row * ROW_BYTES, source, token)) {
            break;
        }
        for (int i = 0; i < scale_bytes; i++) {
            int at = by_column ? (i / 4 * ROWS + row) * 4 + i % 4 : row * scale_bytes + i;
            if (!CHECK_SAY(scales[at] == byte_of(source + 7, token, i), "byte %d of scales of row %d is %u", i, row,
                           scales[at])) {
                break;
            }
        }
    }
    free(in);
    free(in_scales);
}

static void move(weft_world *world, void *context)
{
    static _Alignas(16) unsigned char elsewhere[PES][ROWS * (ROW_BYTES + SCALES_MOST + 4)];
    rig r;
    (void)context;
    if (!open_rig(world, SCALES_MOST, &r)) {
        return;
    }
    void *symmetric = NULL;
    CHECK_OK(weft_malloc(world, sizeof elsewhere[0], &symmetric));
    const int sizes[] = {4, SCALE_BYTES, SCALES_MOST};
    for (int i = 0; i < 12; i++) {
        unsigned char *received = i % 2 == 0 ? symmetric : elsewhere[r.rank];
        memset(received, 0xa5, sizeof elsewhere[0]);
        CHECK_OK(weft_barrier(world));
        exchange(&r, received, received + ROWS * ROW_BYTES, sizes[i / 4], i / 2 % 2);
    }
    CHECK_OK(weft_free(world, symmetric));
    ep_group_close(r.ep, r.route);
}

static void rows_of_bytes_move_with_their_scales(void **state)
{
    (void)state;
    pes_run(PES, move, NULL);
}

/* Rank 1 has other scales: all learn both. */
static void disagree(weft_world *world, void *context)
{
    static _Alignas(16) unsigned char data[PES][2][ROWS * (ROW_BYTES + SCALE_BYTES)];
    rig r;
    (void)context;
    if (!open_rig(world, SCALE_BYTES, &r)) {
        return;
    }
    int scale_bytes = r.rank == 0 ? SCALE_BYTES : SCALE_BYTES - 4;
    unsigned char *in = data[r.rank][0];
    unsigned char *to = data[r.rank][1];
    weft_ep_rows rows = rows_of(in, in + ROWS * ROW_BYTES, scale_bytes);
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    out.rows = rows_of(to, to + ROWS * ROW_BYTES, scale_bytes);
    out.rows_capacity = ROWS;
    CHECK_STATUS(weft_ep_dispatch(r.route, &rows, &out, NULL), WEFT_ERR_MISMATCH);
    CHECK_SAY(strstr(weft_last_error(), "a dispatch of 3584 bytes with 448 of scales") != NULL &&
                  strstr(weft_last_error(), "a dispatch of 3584 bytes with 444 of scales") != NULL,
              "\"%s\" does not say both", weft_last_error());
    exchange(&r, to, to + ROWS * ROW_BYTES, SCALE_BYTES, 0);
    ep_group_close(r.ep, r.route);
}

static void other_scales_are_a_mismatch(void **state)
{
    (void)state;
    pes_run(PES, disagree, NULL);
}

/* ---- what cannot be ---- */

#define REFUSED(call, culprit)                                                                                         \
    do {                                                                                                               \
        CHECK_STATUS(call, WEFT_ERR_ARGUMENT);                                                                         \
        CHECK_SAY(strstr(weft_last_error(), culprit) != NULL, "\"%s\" does not name %s", weft_last_error(), culprit);  \
    } while (0)

#define REFUSED_ROWS(field, wrong, culprit)                                                                            \
    do {                                                                                                               \
        weft_ep_rows bad = rows_of(data, data, SCALE_BYTES);                                                           \
        bad.field = wrong;                                                                                             \
        REFUSED(weft_ep_dispatch(r.route, &bad, &out, NULL), culprit);                                                 \
    } while (0)

static void refuse(weft_world *world, void *context)
{
    static _Alignas(16) unsigned char data[ROWS * ROW_BYTES];
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep *none = NULL;
    rig r;
    (void)context;
    if (!open_rig(world, SCALE_BYTES, &r)) {
        return;
    }
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    out.rows = rows_of(data, data, SCALE_BYTES);
    out.rows_capacity = ROWS;
    REFUSED_ROWS(scale_bytes, 0, "scale_bytes is 0");
    REFUSED_ROWS(scale_bytes, -4, "scale_bytes is -4");
    REFUSED_ROWS(scale_bytes, 6, "scale_bytes is 6");
    REFUSED_ROWS(scale_bytes, SCALE_BYTES + 4, "at most 448, the group's scale_bytes_max");
    REFUSED_ROWS(scale_bytes, SCALE_BYTES - 4, "out.rows.scale_bytes");
    REFUSED_ROWS(scale_type, WEFT_EP_SCALE_F32, "scale_type is 1");
    REFUSED_ROWS(scale_type, WEFT_EP_SCALE_NONE, "scale_type is 0");
    REFUSED_ROWS(scales, data + 2, "scales");
    REFUSED_ROWS(scales, NULL, "scales is NULL");
    REFUSED_ROWS(dtype, WEFT_EP_FP8_E4M3, "fp8 rows need");
    weft_ep_rows wide = rows_of(data, data, SCALE_BYTES);
    wide.dtype = WEFT_EP_BF16;
    wide.hidden = ROW_BYTES / 2;
    REFUSED(weft_ep_dispatch(r.route, &wide, &out, NULL), "only fp8 rows and WEFT_EP_BYTES");
    REFUSED_ROWS(hidden, ROW_BYTES - 16, "3568 elements");
    weft_ep_rows fp8 = rows_of(data, data, 0);
    fp8.dtype = WEFT_EP_FP8_E4M3;
    fp8.scale_type = WEFT_EP_SCALE_F32;
    REFUSED(weft_ep_dispatch(r.route, &fp8, &out, NULL), "dtype");
    weft_ep_rows rows = rows_of(data, NULL, 0);
    weft_ep_rows sums = rows_of(data, NULL, 0);
    rows.scale_type = sums.scale_type = WEFT_EP_SCALE_NONE;
    REFUSED(weft_ep_combine(r.route, &rows, &sums, 0, NULL), "WEFT_EP_BYTES, which cannot be added up");
    REFUSED(weft_ep_combine_bwd(r.route, &rows, NULL, &sums, NULL, 0, NULL), "WEFT_EP_BYTES, which cannot be added up");
    REFUSED(weft_ep_dispatch_bwd(r.route, &rows, NULL, &sums, NULL, NULL), "WEFT_EP_BYTES, which cannot be added up");
    ep_group_close(r.ep, r.route);
    config.experts = config.topk_max = 1;
    config.row_bytes_max = (size_t)1 << 25;
    static const int wrong[] = {-4, 2, SCALES_MOST + 4};
    for (int i = 0; i < 3; i++) {
        config.scale_bytes_max = wrong[i];
        REFUSED(weft_ep_create(weft_team_world(world), &config, &none), "scale_bytes_max");
    }
    config.scale_bytes_max = 0;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    plan.topk = 1;
    if (ep_group_open(world, &config, &plan, &r.ep, &r.route)) {
        weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
        CHECK_OK(weft_ep_route_choose(r.route, &choices));
        REFUSED_ROWS(hidden, 1 << 25, "at most 16777216 bytes");
        ep_group_close(r.ep, r.route);
    }
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    pes_run(1, refuse, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(rows_of_bytes_move_with_their_scales),
                                       CHECKED_TEST(other_scales_are_a_mismatch),
                                       CHECKED_TEST(what_cannot_be_is_refused)};
    (void)setenv("WEFT_LOG", "none", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
