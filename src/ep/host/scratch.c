#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ep/host/host.h"

void wefti_ep_scratch_fini(wefti_ep_scratch *scratch)
{
    wefti_free(scratch->pending);
    wefti_free(scratch->choices);
    wefti_free(scratch->counts);
    wefti_free(scratch->counts_in);
    wefti_free(scratch->bases);
    wefti_free(scratch->expert_next);
    wefti_free(scratch->records);
    wefti_free(scratch->lanes);
    wefti_free(scratch->rows);
    wefti_free(scratch->row_at);
    wefti_free(scratch->choice_rows);
    wefti_free(scratch->choice_at);
    wefti_free(scratch->choice_weight);
    memset(scratch, 0, sizeof *scratch);
}

weft_status wefti_ep_scratch_init(weft_ep *ep)
{
    const wefti_ep_limits *limits = &ep->host->limits;
    wefti_ep_scratch *scratch = &ep->host->scratch;
    size_t ranks = limits->ranks;
    size_t tokens = (size_t)ep->config.tokens_max;
    size_t topk = limits->topk_max;
    size_t messages = ranks + limits->experts;
    size_t local = (size_t)wefti_ep_local_experts(ep);
    scratch->pending = wefti_alloc(ranks * sizeof *scratch->pending);
    scratch->choices = wefti_alloc((tokens * topk + 1) * sizeof *scratch->choices);
    scratch->counts = wefti_alloc(messages * sizeof *scratch->counts);
    scratch->counts_in = wefti_alloc(ranks * (1 + local) * sizeof *scratch->counts_in);
    scratch->bases = wefti_alloc(messages * sizeof *scratch->bases);
    scratch->expert_next = wefti_alloc(limits->experts * sizeof *scratch->expert_next);
    scratch->records = wefti_alloc(tokens * wefti_ep_record_bytes(topk) + 1);
    scratch->lanes = wefti_alloc(ranks * sizeof *scratch->lanes);
    scratch->rows = wefti_alloc_aligned(WEFTI_EP_LINE_BYTES, (topk + 1) * limits->row_bytes_max);
    scratch->row_at = wefti_alloc(topk * sizeof *scratch->row_at);
    scratch->choice_rows = wefti_alloc_aligned(WEFTI_EP_LINE_BYTES, topk * limits->row_bytes_max);
    scratch->choice_at = wefti_alloc(topk * sizeof *scratch->choice_at);
    scratch->choice_weight = wefti_alloc(topk * sizeof *scratch->choice_weight);
    if (scratch->pending == NULL || scratch->choices == NULL || scratch->counts == NULL || scratch->counts_in == NULL ||
        scratch->bases == NULL || scratch->expert_next == NULL || scratch->records == NULL || scratch->lanes == NULL ||
        scratch->rows == NULL || scratch->row_at == NULL || scratch->choice_rows == NULL ||
        scratch->choice_at == NULL || scratch->choice_weight == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_ep_create: no memory for %d tokens of %d choices on %d ranks",
                           ep->config.tokens_max, ep->config.topk_max, ep->ranks);
    }
    return WEFT_OK;
}
