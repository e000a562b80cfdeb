#include "support/ep_slab.h"

#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/ep_group.h"
#include "weft.h"

enum { TOKENS = 6, HIDDEN = 16, ROWS = EP_SLAB_PES * TOKENS, STEPS = 6 };

#define PIECE (ROWS * HIDDEN * sizeof(float)) /* a multiple of 64 */

typedef struct slab_job {
    weft_world *world;
    int rank;
    int on_device;
    int pieces; /* of this rank's slab */
    weft_slab *slab;
    weft_ep *ep;
    weft_ep_route *route;
    int32_t ids[TOKENS * EP_SLAB_PES];
    float *received[STEPS];
    _Alignas(64) float in[TOKENS * HIDDEN];
    _Alignas(64) float out[TOKENS * HIDDEN];
} slab_job;

/* Each token is received by the one expert of each rank. */
static void open_job(slab_job *job, weft_ep_layout layout, unsigned flags)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    config.experts = EP_SLAB_PES;
    config.tokens_max = TOKENS;
    config.topk_max = EP_SLAB_PES;
    config.row_bytes_max = HIDDEN * sizeof(float);
    config.on_device = job->on_device;
    config.flags = flags;
    plan.topk = EP_SLAB_PES;
    plan.layout = layout;
    (void)ep_group_open(job->world, &config, &plan, &job->ep, &job->route);
    ep_choose_all(job->ids, TOKENS, EP_SLAB_PES);
}

static float value_of(int step, int rank, int token)
{
    return (float)(1000 * step + 100 * rank + token + 1);
}

static void fill(slab_job *job, int step)
{
    for (int i = 0; i < TOKENS * HIDDEN; i++) {
        job->in[i] = value_of(step, job->rank, i / HIDDEN);
    }
}

/* What an allocator of tensors does. */
static float *take(const slab_job *job, int is_full)
{
    void *piece = NULL;
    CHECK_OK(weft_slab_alloc(job->slab, PIECE, 0, &piece));
    CHECK((piece == NULL) == is_full);
    piece = piece != NULL ? piece : aligned_alloc(64, PIECE);
    CHECK(weft_slab_contains(job->slab, piece) == !is_full);
    memset(piece, 0x5a, PIECE);
    return piece;
}

static void give(const slab_job *job, float *memory)
{
    if (weft_slab_contains(job->slab, memory)) {
        CHECK_OK(weft_slab_free(job->slab, memory));
    } else {
        free(memory);
    }
}

static weft_status dispatch(const slab_job *job, float *received, int halves)
{
    const weft_ep_rows in = ep_rows((void *)(uintptr_t)job->in, WEFT_EP_F32, HIDDEN);
    weft_ep_received out = WEFT_EP_RECEIVED_INIT;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    out.rows = ep_rows(received, WEFT_EP_F32, HIDDEN);
    out.rows_capacity = ROWS;
    choices.tokens = TOKENS;
    choices.ids = job->ids;
    CHECK_OK(weft_ep_route_choose(job->route, &choices));
    weft_status status =
        halves ? weft_ep_dispatch_send(job->route, &in, &out, NULL) : weft_ep_dispatch(job->route, &in, &out, NULL);
    return halves && status == WEFT_OK ? weft_ep_dispatch_recv(job->route, NULL) : status;
}

/* The rows of all steps stay until their combine: none has come where another's lie. */
static void check_rows(const slab_job *job, int step)
{
    int wrong = 0;
    for (int i = 0; i < ROWS * HIDDEN; i++) {
        const int row = i / HIDDEN;
        wrong += job->received[step][i] != value_of(step, row / TOKENS, row % TOKENS);
    }
    CHECK_SAY(wrong == 0, "%d elements of step %d are wrong", wrong, step);
}

static void combine(slab_job *job, int step)
{
    const weft_ep_rows rows = ep_rows(job->received[step], WEFT_EP_F32, HIDDEN);
    const weft_ep_rows out = ep_rows(job->out, WEFT_EP_F32, HIDDEN);
    fill(job, step);
    CHECK_OK(weft_ep_combine(job->route, &rows, &out, 0, NULL));
    CHECK_OK(weft_ep_failure(job->ep));
    ep_sums_check(job->out, job->in, EP_SLAB_PES, TOKENS, HIDDEN);
}

static void forward(slab_job *job, int is_refused)
{
    for (int step = 0; step < STEPS; step++) {
        job->received[step] = take(job, step >= job->pieces);
        fill(job, step);
        if (is_refused && step >= job->pieces) { /* on all ranks: only by staging would they come */
            CHECK_STATUS(dispatch(job, job->received[step], step % 2), WEFT_ERR_UNSUPPORTED);
            give(job, job->received[step]);
            job->received[step] = NULL;
        } else {
            CHECK_OK(dispatch(job, job->received[step], step % 2));
            CHECK_OK(weft_ep_failure(job->ep));
        }
    }
}

void ep_slab_run(weft_world *world, int on_device, weft_ep_layout layout, unsigned flags)
{
    slab_job job = {.world = world, .rank = weft_world_pe(world), .on_device = on_device};
    void *block = NULL;
    job.pieces = flags == 0 && job.rank == 0 ? 4 : 2;
    CHECK_OK(on_device ? weft_device_malloc(world, 4 * PIECE, &block) : weft_malloc(world, 4 * PIECE, &block));
    CHECK_OK(weft_slab_create(block, (size_t)job.pieces * PIECE, &job.slab));
    open_job(&job, layout, flags);
    forward(&job, flags != 0);
    for (int step = STEPS - 1; step >= 0; step--) {
        if (job.received[step] != NULL) {
            check_rows(&job, step);
            if (flags == 0) { /* else it is not on GPUs */
                combine(&job, step);
            }
            give(&job, job.received[step]);
        }
    }
    job.received[0] = take(&job, 0); /* there is room again */
    fill(&job, 0);
    CHECK_OK(dispatch(&job, job.received[0], 0));
    check_rows(&job, 0);
    give(&job, job.received[0]);
    ep_group_close(job.ep, job.route);
    CHECK_OK(weft_slab_destroy(job.slab));
    CHECK_OK(on_device ? weft_device_free(world, block) : weft_free(world, block));
}
