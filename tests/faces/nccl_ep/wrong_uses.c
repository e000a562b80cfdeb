/* Goal: every wrong use of NCCL EP's interface is a result code with a text that names it, on a group that lives, and
 * changes nothing: a step after all of them is right.
 *
 * Method: one rank on the fake driver, a group of each algorithm and a handle with a routing of each. Rows of tables,
 * which are in wrong_*.c, by call: a call with one thing wrong, the result, a word of the text. Before each call the
 * last text is another. */
#include <stdio.h>
#include <string.h>

#include "faces/nccl_ep/libnccl.h"
#include "faces/nccl_ep/wrong.h"

ncclEpGroup_t ht;
ncclEpGroup_t ll;
ncclEpGroup_t unmasked; /* as ll, without enable_mask */
ncclEpHandle_t flat; /* of ht, with a routing */
ncclEpHandle_t slots; /* of ll, rank-major, likewise */
ncclEpHandle_t fresh; /* of ht, without one */
ncclEpGroup_t direct; /* as ht, with zero-copy ON */
ncclEpHandle_t windowed; /* of direct, with a routing */
ncclComm_t comm;
_Alignas(64) float x[TOKENS][HIDDEN];
_Alignas(64) float y[TOKENS][HIDDEN];
_Alignas(64) float received[ROWS][HIDDEN];
float row_weights[ROWS][TOPK];
float weights[TOKENS][TOPK];
int64_t ids[TOKENS][TOPK];
int32_t counts[EXPERTS];
char memory[64] __attribute__((aligned(64)));

void fill(given *g, int is_ll)
{
    unsigned dims = is_ll ? 3 : 2;
    memset(g, 0, sizeof *g);
    memcpy(g->token_sizes, (size_t[]){TOKENS, HIDDEN}, sizeof g->token_sizes);
    memcpy(g->choice_sizes, (size_t[]){TOKENS, TOPK}, sizeof g->choice_sizes);
    memcpy(g->row_sizes, is_ll ? (size_t[]){1, TOKENS, HIDDEN} : (size_t[]){ROWS, HIDDEN, 0}, sizeof g->row_sizes);
    memcpy(g->place_sizes, is_ll ? (size_t[]){1, TOKENS, TOPK} : (size_t[]){ROWS, TOPK, 0}, sizeof g->place_sizes);
    g->expert_sizes[0] = EXPERTS;
    memcpy(g->memory_sizes, (size_t[]){sizeof memory, 1}, sizeof g->memory_sizes);
    g->in = tensor(x, ncclFloat32, 2, g->token_sizes);
    g->out = tensor(y, ncclFloat32, 2, g->token_sizes);
    g->rows = tensor(received, ncclFloat32, dims, g->row_sizes);
    g->in_weights = tensor(weights, ncclFloat32, 2, g->choice_sizes);
    g->out_weights = tensor(row_weights, ncclFloat32, dims, g->place_sizes);
    g->idx = tensor(ids, ncclInt64, 2, g->choice_sizes);
    g->experts = tensor(counts, ncclInt32, 1, g->expert_sizes);
    g->handle_mem = tensor(memory, ncclUint8, 1, g->memory_sizes);
    g->dispatch_in = NCCL_EP_DISPATCH_INPUTS_INIT;
    g->dispatch_in.tokens = &g->in;
    g->dispatch_in.topk_weights = &g->in_weights;
    g->dispatch_out = NCCL_EP_DISPATCH_OUTPUTS_INIT;
    g->dispatch_out.tokens = &g->rows;
    g->dispatch_out.topk_weights = &g->out_weights;
    g->dispatch = NCCL_EP_DISPATCH_CONFIG_INIT;
    g->combine_in = NCCL_EP_COMBINE_INPUTS_INIT;
    g->combine_in.tokens = &g->rows;
    g->combine_out = NCCL_EP_COMBINE_OUTPUTS_INIT;
    g->combine_out.tokens = &g->out;
    g->combine = NCCL_EP_COMBINE_CONFIG_INIT;
    g->info = NCCL_EP_LAYOUT_INFO_INIT;
    g->handle = NCCL_EP_HANDLE_CONFIG_INIT;
    g->complete = NCCL_EP_COMPLETE_CONFIG_INIT;
    g->group = NCCL_EP_GROUP_CONFIG_INIT;
    g->group.algorithm = is_ll ? NCCL_EP_ALGO_LOW_LATENCY : NCCL_EP_ALGO_HIGH_THROUGHPUT;
    g->group.num_experts = EXPERTS;
    g->group.max_dispatch_tokens_per_rank = TOKENS;
    g->group.max_recv_tokens_per_rank = is_ll ? 0 : ROWS;
    g->group.max_token_bytes = sizeof x[0];
    g->group.num_topk = TOPK;
    g->group.enable_mask = (unsigned)is_ll;
}

int failures;

static void run(const char *table, size_t row, const use *one)
{
    given g;
    fill(&g, one->is_ll);
    one->spoil(&g);
    (void)weft_last_error_set(WEFT_ERR_STATE, "before");
    ncclResult_t result = one->call(&g);
    if (result != one->wanted || strstr(weft_last_error(), one->word) == NULL ||
        strchr(weft_last_error(), ':') == NULL) {
        (void)fprintf(stderr, "%s, row %zu: result %d, wanted %d with \"%s\"; text \"%s\"\n", table, row, (int)result,
                      (int)one->wanted, one->word, weft_last_error());
        failures++;
    }
}

void wrong_rows(const char *table, const use *uses, size_t count)
{
    for (size_t row = 0; row < count; row++) {
        run(table, row, &uses[row]);
    }
}

/* The experts do nothing: each token comes back once for its one rank. */
static void step(ncclEpHandle_t handle, int is_ll)
{
    given g;
    fill(&g, is_ll);
    memset(y, 0xff, sizeof y);
    OK(ncclEpUpdateHandle(handle, &g.idx, NULL, NULL));
    OK(ncclEpDispatch(handle, &g.dispatch_in, &g.dispatch_out, is_ll ? &g.info : NULL, &g.dispatch, NULL));
    OK(ncclEpCombine(handle, &g.combine_in, &g.combine_out, &g.combine, NULL));
    OK(ncclEpComplete(handle, &g.complete, NULL));
    if (memcmp(x, y, sizeof x) != 0) {
        (void)fprintf(stderr, "a step of %s is wrong\n", is_ll ? "LL" : "HT");
        failures++;
    }
}

void refuse(int line, ncclResult_t result, ncclResult_t wanted, const char *word)
{
    if (result != wanted || strstr(weft_last_error(), word) == NULL) {
        (void)fprintf(stderr, "line %d: result %d, wanted %d with \"%s\"; text \"%s\"\n", line, (int)result,
                      (int)wanted, word, weft_last_error());
        failures++;
    }
}

int main(void)
{
    given g;
    if (!standin_choose_gpu(0)) {
        (void)fprintf(stderr, "no fake driver\n");
        return 1;
    }
    for (int t = 0; t < TOKENS; t++) {
        for (int k = 0; k < TOPK; k++) {
            ids[t][k] = (t + k) % EXPERTS;
        }
        for (int h = 0; h < HIDDEN; h++) {
            x[t][h] = (float)(1 + t + h);
        }
    }
    standin_comms(1, &comm);
    fill(&g, 0);
    OK(ncclEpCreateGroup(&ht, comm, &g.group));
    g.group.zero_copy = NCCL_EP_ZERO_COPY_ON;
    OK(ncclEpCreateGroup(&direct, comm, &g.group));
    OK(ncclEpInitHandle(&windowed, direct, NCCL_EP_LAYOUT_FLAT, NULL, TOPK, NULL));
    OK(ncclEpUpdateHandle(windowed, &g.idx, NULL, NULL));
    fill(&g, 1);
    OK(ncclEpCreateGroup(&ll, comm, &g.group));
    g.group.enable_mask = 0;
    OK(ncclEpCreateGroup(&unmasked, comm, &g.group));
    OK(ncclEpInitHandle(&flat, ht, NCCL_EP_LAYOUT_FLAT, NULL, TOPK, NULL));
    OK(ncclEpInitHandle(&fresh, ht, NCCL_EP_LAYOUT_FLAT, NULL, TOPK, NULL));
    OK(ncclEpInitHandle(&slots, ll, NCCL_EP_LAYOUT_RANK_MAJOR, NULL, TOPK, NULL));
    if (failures != 0) {
        return 1;
    }
    step(flat, 0);
    step(slots, 1);
    wrong_groups();
    wrong_handles();
    wrong_dispatch();
    wrong_combine();
    step(flat, 0);
    step(slots, 1);
    OK(ncclEpHandleDestroy(flat));
    OK(ncclEpHandleDestroy(fresh));
    OK(ncclEpHandleDestroy(slots));
    OK(ncclEpHandleDestroy(windowed));
    OK(ncclEpGroupDestroy(direct));
    OK(ncclEpGroupDestroy(ht));
    OK(ncclEpGroupDestroy(ll));
    OK(ncclEpGroupDestroy(unmasked));
    wrong_left();
    return failures != 0;
}
