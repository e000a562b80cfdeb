/* Dissemination: in round r a member flags the member 2^r after it and waits for the one 2^r before. After the last
 * round each knows of all. (Hensgen, Finkel, Manber: Two algorithms for barrier synchronization, 1988.) */
#include "team/team.h"

/* The area of the member `pe`, which is near. */
static inline void *of_member(const weft_team *team, const void *word, int pe)
{
    return wefti_peer_address(team->world, word, wefti_member(team, pe));
}

weft_status wefti_team_sync(weft_team *team, const char *call)
{
    wefti_team_area *area = team->area;
    uint64_t epoch = wefti_ld64(&area->sync_epoch.word, WEFTI_RELAXED) + 1;
    wefti_st64(&area->sync_epoch.word, epoch, WEFTI_RELEASE);
    wefti_waiter waiter = wefti_waiter_start(team->world, call);
    for (unsigned round = 0; round < team->rounds; round++) {
        uint64_t *flag = wefti_team_sync_flag(area, round);
        int to = wefti_team_after(team, round);
        wefti_st64(of_member(team, flag, to), epoch, WEFTI_RELEASE);
        while (wefti_ld64(flag, WEFTI_ACQUIRE) < epoch) {
            weft_status status = wefti_waiter_pause(&waiter, flag);
            if (WEFTI_UNLIKELY(status != WEFT_OK)) {
                return wefti_team_fail(team, status, call, &area->sync_epoch.word, epoch);
            }
        }
    }
    return WEFT_OK;
}
