/* Goal: a group on GPUs whose ranks do not have all in common: rows that are received in memory which the other ranks
 * have not mapped come all the same.
 *
 * Method: each case is a group of its own, with few tokens, all of which go to the next rank, and rows that say whose
 * they are. As processes only do PEs lack mappings. Usage: as support/launch.h says. */
#include "support/memory.h"
#undef CHECK
#undef CHECK_SAY

extern "C" {
#include "support/check.h"
}
#include "weft_ep.h"

#define TOKENS 64
#define HIDDEN 512
#define ROWS_MAX (2 * TOKENS) /* with room */
#define ROW_BYTES (HIDDEN * sizeof(float))
#define DEADLINE_NS UINT64_C(20000000000)

typedef struct scene {
    test_pe *pe;
    weft_world *world;
    weft_ep *ep;
    weft_ep_route *route;
    unsigned char *plain; /* device memory: choices, then rows of tokens, and what comes back */
    unsigned char *pinned;
    int32_t *ids;
    float *tokens;
    float *sums;
} scene;

static weft_ep_rows rows_at(void *data)
{
    weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    rows.data = data;
    rows.dtype = WEFT_EP_F32;
    rows.hidden = HIDDEN;
    return rows;
}

static weft_ep_received received_at(void *data)
{
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    received.rows = rows_at(data);
    received.rows_capacity = ROWS_MAX;
    return received;
}

static weft_ep_choices choices_of(const scene *of)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = TOKENS;
    choices.ids = of->ids;
    return choices;
}

static float value_of(int rank, int token, int salt)
{
    return (float)(100000 * salt + 1000 * rank + token);
}

static void open_scene(scene *of, weft_ep_layout layout)
{
    test_pe *pe = of->pe;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    config.experts = pe->pes;
    config.tokens_max = TOKENS;
    config.topk_max = 1;
    config.row_bytes_max = ROW_BYTES;
    config.on_device = 1;
    plan.topk = 1;
    plan.layout = layout;
    CHECK_OK(weft_ep_create(weft_team_world(of->world), &config, &of->ep));
    CHECK_OK(weft_ep_route_create(of->ep, &plan, NULL, &of->route));
    of->ids = (int32_t *)of->plain;
    of->tokens = (float *)(of->plain + 4096);
    of->sums = of->tokens + (size_t)TOKENS * HIDDEN;
    int32_t *ids = (int32_t *)of->pinned;
    for (int i = 0; i < TOKENS; i++) {
        ids[i] = (pe->pe + 1) % pe->pes;
    }
    gpu_copy(pe, of->ids, ids, TOKENS * sizeof *ids);
}

static void close_scene(scene *of)
{
    CHECK_OK(weft_barrier(of->world));
    CHECK_OK(weft_ep_route_destroy(of->route));
    CHECK_OK(weft_ep_destroy(of->ep));
    CHECK_OK(weft_barrier(of->world));
}

static void fill_tokens(scene *of, int salt)
{
    float *image = (float *)of->pinned;
    for (int i = 0; i < TOKENS * HIDDEN; i++) {
        image[i] = value_of(of->pe->pe, i / HIDDEN, salt);
    }
    gpu_copy(of->pe, of->tokens, image, (size_t)TOKENS * ROW_BYTES);
}

/* The rows at `there` are those of `rank`, in order. */
static void expect_rows(scene *of, const void *there, int rank, int salt)
{
    float *image = (float *)of->pinned;
    int wrong = 0;
    gpu_copy(of->pe, image, there, (size_t)TOKENS * ROW_BYTES);
    for (int i = 0; i < TOKENS * HIDDEN; i++) {
        wrong += image[i] != value_of(rank, i / HIDDEN, salt);
    }
    check_that(wrong == 0, __FILE__, __LINE__, "%d elements are not those of rank %d in step %d", wrong, rank, salt);
}

static weft_status status_of(scene *of)
{
    weft_ep_host_counts counts = {};
    CHECK_OK(weft_ep_route_query(of->route, gpu_stream_of(of->pe), &counts));
    return counts.status;
}

/* ---- rows in memory of part of the group ---- */

/* A team of this PE alone. */
static weft_team *team_alone(scene *of)
{
    weft_team *alone = NULL;
    for (int pe = 0; pe < of->pe->pes; pe++) {
        weft_team *team = NULL;
        CHECK_OK(weft_team_split_strided(weft_team_world(of->world), pe, 1, 1, &team));
        alone = pe == of->pe->pe ? team : alone;
    }
    return alone;
}

/* Memory that the heap of all does not have yet, by this PE alone, in which it receives rows, and their gradients: even
 * ranks; the others in memory of all. */
static void test_part(scene *of, weft_ep_layout layout, void *common, weft_team *alone)
{
    test_pe *pe = of->pe;
    void *own = NULL;
    const size_t bytes = (size_t)24 << 20;
    open_scene(of, layout);
    if (pe->pe % 2 == 0) {
        CHECK_OK(weft_device_team_malloc(alone, bytes, &own));
    }
    void *there = own != NULL ? (unsigned char *)own + bytes - ROWS_MAX * ROW_BYTES : common;
    const weft_ep_received received = received_at(there);
    const weft_ep_rows in = rows_at(of->tokens);
    const weft_ep_rows out = rows_at(of->sums);
    const weft_ep_choices choices = choices_of(of);
    for (int salt = 1; salt < 4; salt++) {
        fill_tokens(of, salt);
        CHECK_OK(weft_ep_route_choose(of->route, &choices));
        CHECK_OK(weft_ep_dispatch(of->route, &in, &received, gpu_stream_of(pe)));
        CHECK_STATUS(status_of(of), WEFT_OK);
        expect_rows(of, there, (pe->pe + pe->pes - 1) % pe->pes, salt);
        CHECK_OK(weft_ep_combine(of->route, &received.rows, &out, 0, gpu_stream_of(pe)));
        CHECK_STATUS(status_of(of), WEFT_OK);
        expect_rows(of, of->sums, pe->pe, salt);
        gpu_set(pe, there, 0x5a, (size_t)TOKENS * ROW_BYTES);
        CHECK_OK(weft_ep_combine_bwd(of->route, &in, NULL, &received.rows, NULL, 0, gpu_stream_of(pe)));
        CHECK_STATUS(status_of(of), WEFT_OK);
        expect_rows(of, there, (pe->pe + pe->pes - 1) % pe->pes, salt);
    }
    if (own != NULL) {
        CHECK_OK(weft_device_team_free(alone, own));
    }
    close_scene(of);
}

/* ---- all ---- */

static void test_body(test_pe *pe)
{
    scene of = {};
    check_as_pe(pe->pe);
    of.pe = pe;
    of.world = test_world(pe, "apart", (size_t)256 << 20, (size_t)16 << 20);
    of.plain = gpu_alloc((size_t)2 << 20);
    of.pinned = gpu_alloc_pinned((size_t)2 << 20);
    CHECK_OK(weft_device_deadline(of.world, DEADLINE_NS));
    void *common = test_malloc(pe, of.world, ROWS_MAX * ROW_BYTES);
    weft_team *alone = team_alone(&of);
    test_part(&of, WEFT_EP_RANK_MAJOR, common, alone);
    test_part(&of, WEFT_EP_EXPERT_MAJOR, common, alone);
    CHECK_OK(weft_team_destroy(alone));
    CHECK_OK(weft_world_destroy(of.world));
    gpu_free_pinned(of.pinned);
    gpu_free(of.plain);
    pe->failures += pe->pe == 0 && check_failures() != 0;
}

int main(int argc, char **argv)
{
    return test_main(argc, argv);
}
