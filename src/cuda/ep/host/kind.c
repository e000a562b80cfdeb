/* cuda/ep/host/kind.c: the kinds of groups: few ranks, whose arrays are in kernels' arguments, and many ranks, whose
 * arrays are in the area; of both those with calls that mask ranks by themselves. */
#include "cuda/ep/host/kind.h"

/* ---- few ---- */

static wefti_cuda_ep_layout few_layout(const weft_ep *ep, uint64_t staged_bytes, int low_latency_tokens)
{
    const int experts = ep->config.experts > ep->ranks ? ep->config.experts : ep->ranks; /* WEFT_EP_DESTINATIONS */
    const int local_max = ep->owners.local_max > 1 ? ep->owners.local_max : 1;
    return wefti_cuda_ep_layout_of(ep->ranks, experts, local_max, ep->config.tokens_max, ep->config.topk_max,
                                   ep->device->received_max, ep->config.row_bytes_max,
                                   (int)wefti_ep_scale_words_max(ep), staged_bytes, low_latency_tokens);
}

static void few_set_experts(wefti_cuda_ep_group *group, const int32_t *first)
{
    for (int rank = 0; rank <= group->ranks; rank++) {
        group->first_expert[rank] = first[rank];
    }
}

static void few_set_rank(wefti_cuda_ep_group *group, wefti_cuda_ep_directory *directory, int rank, int pe,
                         uint64_t area)
{
    (void)directory;
    group->pe_of[rank] = pe;
    group->area[rank] = area;
}

static weft_status few_write_directory(const weft_ep *ep, int bank, wefti_cuda_ep_directory *directory)
{
    (void)ep;
    (void)bank;
    (void)directory;
    return WEFT_OK; /* all is in the arguments */
}

static int few_is_missing(const uint64_t *told, uint64_t failed, int rank)
{
    (void)told;
    return (int)(failed >> 32 >> rank & 1);
}

/* ---- many ---- */

static wefti_cuda_ep_layout many_layout(const weft_ep *ep, uint64_t staged_bytes, int low_latency_tokens)
{
    const int local_max = ep->owners.local_max > 1 ? ep->owners.local_max : 1;
    return wefti_cuda_ep_many_layout_of(
        ep->ranks, local_max, ep->config.tokens_max, ep->config.topk_max, ep->device->received_max,
        ep->config.row_bytes_max, (int)wefti_ep_scale_words_max(ep), staged_bytes,
        wefti_cuda_ep_passes_by(ep) ? low_latency_tokens : 0); /* other calls have no use for it */
}

static void many_set_experts(wefti_cuda_ep_group *group, const int32_t *first)
{
    (void)group;
    (void)first; /* the directory has them, of experts and of ranks */
}

static void many_set_rank(wefti_cuda_ep_group *group, wefti_cuda_ep_directory *directory, int rank, int pe,
                          uint64_t area)
{
    directory->pe_of[rank] = pe;
    directory->area[rank] = area;
    if (rank == group->rank) {
        group->area[0] = area;
    }
}

static weft_status many_write_directory(const weft_ep *ep, int bank, wefti_cuda_ep_directory *directory)
{
    const uint64_t there = wefti_cuda_ep_own_area(ep, bank) + wefti_cuda_ep_directory_at(&ep->device->group[bank].at);
    for (int rank = 0; rank <= ep->ranks; rank++) {
        directory->first_expert[rank] = ep->owners.first[rank];
        directory->itself[rank] = rank;
    }
    return wefti_cuda_copy(&ep->device->cuda->base, (void *)(uintptr_t)there, directory, sizeof *directory);
}

static int many_is_missing(const uint64_t *told, uint64_t failed, int rank)
{
    (void)failed;
    return (int)(told[WEFTI_CUDA_EP_HOST_STATUS_MISSING + rank / 64] >> rank % 64 & 1);
}

/* ---- all ---- */

#define FAMILY(NAME) (1u << WEFTI_CUDA_EP_FOR_##NAME)
#define OF_FEW(SET)                                                                                                    \
    .set = WEFTI_CUDA_EP_SET_THROUGHPUT, .low_latency = WEFTI_CUDA_EP_SET_##SET,                                       \
    .families = FAMILY(ALL) | FAMILY(FEW), .low_latency_families = FAMILY(SET), .eager_families = FAMILY(EAGER),       \
    .positions = WEFTI_CUDA_EP_SET_POSITIONS, .positions_families = FAMILY(POSITIONS), .low_latency_copies = 2,        \
    .owner_bytes = 1, .layout = few_layout, .set_experts = few_set_experts, .set_rank = few_set_rank,                  \
    .write_directory = few_write_directory, .plan = wefti_cuda_ep_plan_few, .is_missing = few_is_missing,              \
    .revoke = wefti_cuda_ep_revoke_few, .tell_masked = wefti_cuda_ep_tell_masked_few,                                  \
    .masked_at = wefti_cuda_ep_masked_at_few

static const wefti_cuda_ep_kind few = {OF_FEW(LOW_LATENCY)};
static const wefti_cuda_ep_kind passing = {OF_FEW(PASSING)};

#define OF_MANY                                                                                                        \
    .set = WEFTI_CUDA_EP_SET_MANY, .positions = WEFTI_CUDA_EP_SET_MANY_POSITIONS,                                      \
    .families = FAMILY(ALL) | FAMILY(MANY), .positions_families = FAMILY(MANY_POSITIONS), .low_latency_copies = 1,     \
    .owner_bytes = sizeof(int16_t), .all_in_one = 1, .layout = many_layout, .set_experts = many_set_experts,           \
    .set_rank = many_set_rank, .write_directory = many_write_directory, .plan = wefti_cuda_ep_plan_many,               \
    .is_missing = many_is_missing, .revoke = wefti_cuda_ep_revoke_many, .tell_masked = wefti_cuda_ep_tell_masked_many, \
    .masked_at = wefti_cuda_ep_masked_at_many

static const wefti_cuda_ep_kind many = {OF_MANY, .low_latency = WEFTI_CUDA_EP_SETS};
static const wefti_cuda_ep_kind many_passing = {OF_MANY, .low_latency = WEFTI_CUDA_EP_SET_MANY_PASSING,
                                                .low_latency_families = FAMILY(MANY_PASSING)};

const wefti_cuda_ep_kind *wefti_cuda_ep_find_kind(const weft_ep *ep)
{
    const uint64_t few_ranks = ep->settings.few_ranks;
    const uint64_t most = few_ranks < WEFTI_CUDA_EP_RANKS_MAX ? few_ranks : WEFTI_CUDA_EP_RANKS_MAX;
    const wefti_cuda_ep_kind *const kinds[2][2] = {{&few, &passing}, {&many, &many_passing}};
    return kinds[(uint64_t)ep->ranks > most][wefti_cuda_ep_passes_by(ep)];
}
