/* Members that share processors meet by counting: each adds itself to one word of the first member, and all look at
 * that word until it has all of them. A member needs one turn of its processor for a meeting, while in the rounds of a
 * dissemination it needs one a round: what it waits for is sent by one that has to be run first.
 *
 * The word only grows: step e is complete at e times the members. Nobody can be two steps ahead, and one that is a step
 * ahead has counted itself in after all had come, so that a larger count never means a missing member. A member says in
 * its `arrived` word that it has counted itself in after it has, so that those who have not are known to who gives up.
 * Who gives up says so, and why, in the word, unless all have come by then: all members come to the same end, and one
 * that comes later knows at once. */
#include "team/team.h"

/* The word as it is then: below `all` no longer. */
static uint64_t give_up(uint64_t *count, uint64_t all)
{
    const uint64_t mark = wefti_team_giving_up();
    uint64_t seen = wefti_ld64(count, WEFTI_ACQUIRE);
    while (seen < all) {
        uint64_t old = wefti_cas64(count, seen, seen | mark);
        seen = old == seen ? seen | mark : old;
    }
    return seen;
}

/* Count this member in: the word as it is then, and the step. */
static uint64_t count_in(weft_team *team, uint64_t *count, uint64_t *step)
{
    uint64_t *arrived = &team->epochs->arrived;
    *step = wefti_ld64(arrived, WEFTI_RELAXED) + 1;
    uint64_t seen = wefti_add64(count, 1) + 1;
    wefti_st64(arrived, *step, WEFTI_RELEASE);
    return seen;
}

static uint64_t *count_of(const weft_team *team)
{
    return wefti_peer_address(team->world, &team->area->count.word, wefti_member(team, 0));
}

weft_status wefti_team_arrive_by_count(weft_team *team, const char *call)
{
    uint64_t step;
    if (team->pe == 0) {
        return wefti_team_sync_by_count(team, call);
    }
    (void)count_in(team, count_of(team), &step);
    return WEFT_OK;
}

weft_status wefti_team_sync_by_count(weft_team *team, const char *call)
{
    uint64_t *count = count_of(team);
    uint64_t *arrived = &team->epochs->arrived;
    uint64_t step;
    uint64_t seen = count_in(team, count, &step);
    uint64_t all = step * (uint64_t)team->pes;
    wefti_waiter waiter = wefti_team_waiter(team, call);
    while (seen < all) {
        weft_status status = wefti_team_pause(team, &waiter, count, arrived, step, -1);
        if (WEFTI_UNLIKELY(status != WEFT_OK && status != WEFT_ERR_TIMEOUT)) {
            return wefti_team_fail(team, status, call, arrived, step);
        }
        seen = WEFTI_LIKELY(status == WEFT_OK) ? wefti_ld64(count, WEFTI_ACQUIRE) : give_up(count, all);
    }
    return WEFTI_LIKELY(seen < WEFTI_GIVEN_UP) ? WEFT_OK : wefti_team_fail_alike(team, seen, call, arrived, step);
}
