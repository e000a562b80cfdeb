/* How members meet. By dissemination: in round r a member flags the member 2^r after it and waits for the one 2^r
 * before. After the last round each knows of all. (Hensgen, Finkel, Manber: Two algorithms for barrier synchronization,
 * 1988.) */
#include "team/team.h"

/* Inline for near members: this is the whole of a barrier's cost. */
static inline weft_status flag_member(weft_team *team, uint64_t *flag, uint64_t epoch, int pe)
{
    if (WEFTI_LIKELY(wefti_pe_is_near(&team->world->view, pe))) {
        wefti_st64(wefti_peer_address(team->world, flag, pe), epoch, WEFTI_RELEASE);
        return WEFT_OK;
    }
    return wefti_world_flag(team->world, flag, epoch, pe);
}

static weft_status disseminate(weft_team *team, const char *call)
{
    wefti_team_area *area = team->area;
    uint64_t *mine = &team->epochs->sync;
    uint64_t epoch = wefti_ld64(mine, WEFTI_RELAXED) + 1;
    wefti_st64(mine, epoch, WEFTI_RELEASE);
    wefti_waiter waiter = wefti_team_waiter(team, call);
    for (unsigned round = 0; round < team->rounds; round++) {
        uint64_t *flag = wefti_team_sync_flag(area, round);
        int to = wefti_team_after(team, round);
        weft_status status = flag_member(team, flag, epoch, wefti_member(team, to));
        while (WEFTI_LIKELY(status == WEFT_OK) && wefti_ld64(flag, WEFTI_ACQUIRE) < epoch) {
            status = wefti_team_pause(team, &waiter, flag, mine, epoch, -1);
        }
        if (WEFTI_UNLIKELY(status != WEFT_OK)) {
            return wefti_team_fail(team, status, call, mine, epoch);
        }
    }
    return WEFT_OK;
}

weft_status wefti_team_sync(weft_team *team, const char *call)
{
    return WEFTI_LIKELY(!team->counted) ? disseminate(team, call) : wefti_team_sync_by_count(team, call);
}
