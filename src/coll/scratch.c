/* The scratch of a team's data collectives: made when the first of them runs, freed with the team. */
#include "base/alloc.h"
#include "base/error.h"
#include "coll/step.h"

static size_t record_bytes(const weft_team *team)
{
    return sizeof(wefti_coll) + (size_t)team->pes * (sizeof(uint64_t) + sizeof(int32_t));
}

static weft_status record_create(const weft_team *team, const char *call, wefti_coll **out)
{
    size_t head = (record_bytes(team) + WEFTI_CACHE_LINE - 1) / WEFTI_CACHE_LINE * WEFTI_CACHE_LINE;
    wefti_coll *coll = wefti_alloc_aligned(WEFTI_CACHE_LINE, head + WEFTI_COLL_CHUNKS * WEFTI_COLL_CHUNK_BYTES);
    if (coll == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "%s: no memory for the team's first collective", call);
    }
    /* of other teams there may be thousands */
    int has_many_lines = team->oversubscribed && team == weft_team_world(team->world);
    coll->shape = wefti_coll_shape_of((unsigned)team->pes, has_many_lines);
    coll->slot_data_bytes = coll->shape.slot_bytes - sizeof(wefti_coll_slot);
    coll->chunks = (unsigned char *)coll + head;
    coll->pending = (int32_t *)(void *)(coll->left + team->pes);
    wefti_tuning_init(&coll->tuning, team);
    *out = coll;
    return WEFT_OK;
}

/* All flags are 0 before any member writes one; what lies behind the flags of slots is read after them only. */
static void clear_flags(const wefti_coll *coll, wefti_coll_area *area, unsigned pes)
{
    const wefti_coll_shape *shape = &coll->shape;
    wefti_zero(area, sizeof *area);
    for (unsigned source = 0; source < pes; source++) {
        wefti_zero(wefti_coll_slot_of(area, shape, source, 0, WEFTI_COLL_IN_LINES),
                   shape->lines * (size_t)WEFTI_CACHE_LINE);
        wefti_zero(wefti_coll_slot_of(area, shape, source, 0, WEFTI_COLL_IN_WORDS),
                   shape->lines * sizeof(wefti_coll_slot));
        for (unsigned i = 0; i < WEFTI_COLL_SLOTS; i++) {
            wefti_zero(wefti_coll_slot_of(area, shape, source, i, WEFTI_COLL_IN_SLOTS), sizeof(wefti_coll_slot));
        }
    }
}

weft_status wefti_coll_open(weft_team *team, const char *call)
{
    static const char what[] = "the first collective of a team";
    wefti_coll *coll = NULL;
    void *scratch = NULL;
    weft_status mine = record_create(team, call, &coll);
    wefti_vote vote = wefti_vote_init(team, what, 0, 0);
    vote.status = mine;
    weft_status status = wefti_team_agree(team, &vote, call);
    if (status == WEFT_OK) {
        status = wefti_team_alloc(team, call, coll->shape.bytes, WEFTI_CACHE_LINE, &scratch);
    }
    if (status == WEFT_OK) {
        clear_flags(coll, scratch, (unsigned)team->pes);
        status = wefti_team_sync(team, call);
    }
    if (status != WEFT_OK) {
        wefti_free(coll); /* a block that was agreed on stays taken: the team is dead */
        /* members whose first calls differ meet here; what differs in later calls ends the team, too */
        return status == WEFT_ERR_MISMATCH ? wefti_team_fail(team, status, call, NULL, 0) : status;
    }
    coll->area = scratch;
    team->coll = coll;
    team->coll_scratch = scratch;
    return WEFT_OK;
}
