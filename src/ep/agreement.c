/* An all-to-all of one line a rank through a small symmetric block that is freed again. */
#include "ep/agreement.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "common/mix.h"
#include "weft.h"

/* What must be equal on all ranks beside WEFTI_EP_SETTINGS_TABLE: X(field, its name in weft_ep_config, its value from
 * `config` and `ep`). */
#define PROPOSAL_TABLE(X)                                                                                              \
    X(experts, "experts", (uint64_t)config->experts)                                                                   \
    X(tokens_max, "tokens_max", (uint64_t)config->tokens_max)                                                          \
    X(topk_max, "topk_max", (uint64_t)config->topk_max)                                                                \
    X(row_bytes_max, "row_bytes_max", config->row_bytes_max)                                                           \
    X(rows_max, "rows_max", config->rows_max)                                                                          \
    X(overflow, "overflow", (uint64_t)config->overflow)                                                                \
    X(slot_tokens_max, "slot_tokens_max", (uint64_t)config->slot_tokens_max)                                           \
    X(scale_bytes_max, "scale_bytes_max", (uint64_t)config->scale_bytes_max)                                           \
    X(bytes_max, "bytes_max", (uint64_t)config->bytes_max)                                                             \
    X(windows, "windows", (uint64_t)config->windows)                                                                   \
    X(window_bytes, "window_bytes", (uint64_t)config->window_bytes)                                                    \
    X(on_device, "on_device", (uint64_t)config->on_device)                                                             \
    X(pairs_max, "pairs_max", (uint64_t)wefti_ep_banks(ep))                                                            \
    X(flags, "flags", (uint64_t)config->flags)                                                                         \
    X(table, "experts_of_rank", table_digest(ep->owners.first, ep->ranks + 1))                                         \
    X(domains, "domain_of (or domain_ranks)", table_digest(ep->domains.of, ep->ranks))

typedef struct proposal {
    int64_t verdict;
#define PROPOSAL_FIELD(field, name, value) uint64_t field;
    PROPOSAL_TABLE(PROPOSAL_FIELD)
#undef PROPOSAL_FIELD
#define SETTING_FIELD(field, id, read, other) uint64_t field;
    WEFTI_EP_SETTINGS_TABLE(SETTING_FIELD)
#undef SETTING_FIELD
} proposal;

/* FNV-1a over the words of a table as resolved, so that an even one given equals the default. */
static uint64_t table_digest(const int32_t *table, int count)
{
    uint64_t digest = WEFTI_FNV;
    for (int i = 0; i < count; i++) {
        digest = wefti_fnv(digest, (uint32_t)table[i]);
    }
    return digest;
}

static proposal propose(const weft_ep_config *config, const weft_ep *ep, weft_status verdict)
{
    proposal mine;
    memset(&mine, 0, sizeof mine);
    mine.verdict = verdict;
    if (verdict == WEFT_OK) {
#define PROPOSAL_SET(field, name, value) mine.field = value;
        PROPOSAL_TABLE(PROPOSAL_SET)
#undef PROPOSAL_SET
#define SETTING_SET(field, id, read, other) mine.field = ep->settings.field;
        WEFTI_EP_SETTINGS_TABLE(SETTING_SET)
#undef SETTING_SET
    }
    return mine;
}

/* The name of the first field that differs, or NULL. */
static const char *differing_field(const proposal *a, const proposal *b)
{
#define PROPOSAL_COMPARE(field, name, value)                                                                           \
    if (a->field != b->field) {                                                                                        \
        return name;                                                                                                   \
    }
#define SETTING_COMPARE(field, id, read, other) PROPOSAL_COMPARE(field, wefti_env_entry_of(WEFTI_ENV_##id)->name, )
    PROPOSAL_TABLE(PROPOSAL_COMPARE)
    WEFTI_EP_SETTINGS_TABLE(SETTING_COMPARE)
#undef SETTING_COMPARE
#undef PROPOSAL_COMPARE
    return NULL;
}

static weft_status exchange(weft_team *team, proposal *all, const proposal *mine)
{
    weft_world *world = weft_team_owner(team);
    int rank = weft_team_pe(team);
    for (int other = 0; other < weft_team_pes(team); other++) {
        int pe = weft_team_translate(team, other, weft_team_world(world));
        WEFT_TRY(weft_putmem(world, &all[rank], mine, sizeof *mine, pe));
    }
    return weft_team_barrier(team);
}

static weft_status judge(weft_team *team, const proposal *all, const proposal *mine, const char *call)
{
    int rank = weft_team_pe(team);
    int ranks = weft_team_pes(team);
    proposal other;
    for (int i = 0; i < ranks; i++) {
        wefti_copy(&other, &all[i], sizeof other);
        if (other.verdict != WEFT_OK) {
            weft_status status = (weft_status)other.verdict;
            char text[160];
            snprintf(text, sizeof text, "%s: rank %d failed with %s; see its log", call, i, weft_status_name(status));
            return i == rank ? status : wefti_error_relay(status, text);
        }
    }
    for (int i = 0; i < ranks; i++) {
        wefti_copy(&other, &all[i], sizeof other);
        const char *field = differing_field(mine, &other);
        if (field != NULL) {
            return wefti_error(WEFT_ERR_MISMATCH,
                               "%s: rank %d gives another %s than rank %d; it must be equal on all ranks", call, i,
                               field, rank);
        }
    }
    return WEFT_OK;
}

weft_status wefti_ep_agree(weft_team *team, const weft_ep_config *config, const weft_ep *ep, weft_status verdict,
                           const char *call)
{
    proposal mine = propose(config, ep, verdict);
    void *block;
    WEFT_TRY(weft_team_malloc(team, (size_t)weft_team_pes(team) * sizeof(proposal), &block));
    /* A failed exchange leaves the team dead and the block taken: a rank that is late may still write there. */
    WEFT_TRY(exchange(team, block, &mine));
    weft_status status = judge(team, block, &mine, call);
    weft_status freed = weft_team_free(team, block);
    return status != WEFT_OK ? status : freed;
}
