#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ep/host/host.h"

/* X(field, how many) */
#define SCRATCH_TABLE(X)                                                                                               \
    X(pending, ranks)                                                                                                  \
    X(choices, tokens *topk)                                                                                           \
    X(counts, 1 + ranks + limits->experts)                                                                             \
    X(counts_in, ranks *wefti_ep_counts_words(limits))                                                                 \
    X(bases, ranks + limits->experts)                                                                                  \
    X(verdicts, ranks)                                                                                                 \
    X(expert_next, limits->experts)                                                                                    \
    X(records, tokens *wefti_ep_record_bytes(topk))                                                                    \
    X(lanes, ranks)                                                                                                    \
    X(rows, (topk + 3) * limits->row_bytes_max)                                                                        \
    X(row_at, topk + 2)                                                                                                \
    X(row_weight, topk + 2)                                                                                            \
    X(wide, limits->row_bytes_max / 2)                                                                                 \
    X(narrow, 2 * limits->row_bytes_max)                                                                               \
    X(pair_order, topk)                                                                                                \
    X(pair_last, topk)                                                                                                 \
    X(domain_rows, domains * limits->row_bytes_max)                                                                    \
    X(domain_at, domains)                                                                                              \
    X(domain_values, topk)                                                                                             \
    X(choice_rows, topk * limits->row_bytes_max)                                                                       \
    X(choice_at, topk)                                                                                                 \
    X(choice_weight, topk)                                                                                             \
    X(wire, 2 * wefti_ep_row_pitch_max(limits->row_bytes_max, 0))

/* The most domains that a token's results come from, of a group that has several. */
static size_t domains_of_token(const weft_ep *ep)
{
    size_t domains = (size_t)ep->domains.count;
    size_t topk = ep->host->limits.topk_max;
    return domains == 1 ? 0 : domains < topk ? domains : topk;
}

void wefti_ep_scratch_fini(wefti_ep_scratch *scratch)
{
#define SCRATCH_FREE(field, count) wefti_free(scratch->field);
    SCRATCH_TABLE(SCRATCH_FREE)
#undef SCRATCH_FREE
    memset(scratch, 0, sizeof *scratch);
}

weft_status wefti_ep_scratch_init(weft_ep *ep)
{
    const wefti_ep_limits *limits = &ep->host->limits;
    wefti_ep_scratch *scratch = &ep->host->scratch;
    size_t ranks = limits->ranks;
    size_t tokens = (size_t)ep->config.tokens_max;
    size_t topk = limits->topk_max;
    size_t domains = domains_of_token(ep);
#define SCRATCH_ALLOC(field, count)                                                                                    \
    scratch->field = wefti_alloc_aligned(WEFTI_EP_CACHE_LINE_BYTES, ((count) + 1) * sizeof *scratch->field);           \
    if (scratch->field == NULL) {                                                                                      \
        return wefti_error(WEFT_ERR_MEMORY, "weft_ep_create: no memory for %d tokens of %d choices on %d ranks",       \
                           ep->config.tokens_max, ep->config.topk_max, ep->ranks);                                     \
    }
    SCRATCH_TABLE(SCRATCH_ALLOC)
#undef SCRATCH_ALLOC
    return WEFT_OK;
}

size_t wefti_ep_scratch_bytes(const weft_ep *ep)
{
    const wefti_ep_limits *limits = &ep->host->limits;
    const wefti_ep_scratch *scratch = &ep->host->scratch;
    size_t ranks = limits->ranks;
    size_t tokens = (size_t)ep->config.tokens_max;
    size_t topk = limits->topk_max;
    size_t domains = domains_of_token(ep);
    size_t bytes = 0;
#define SCRATCH_ADD(field, count)                                                                                      \
    bytes += wefti_ep_round_up(((count) + 1) * sizeof *scratch->field, WEFTI_EP_CACHE_LINE_BYTES);
    SCRATCH_TABLE(SCRATCH_ADD)
#undef SCRATCH_ADD
    return bytes;
}
