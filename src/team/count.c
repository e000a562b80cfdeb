/* Members that share processors meet by counting: each adds itself to one word of the first member, and all look at that
 * word until it has all of them. A member needs one turn of its processor for a meeting, while in the rounds of a
 * dissemination it needs one a round: what it waits for is sent by one that has to be run first.
 *
 * The word only grows: step e is complete at e times the members. Nobody can be two steps ahead, and one that is a step
 * ahead has counted itself in after all had come, so that a larger count never means a missing member. A member says in
 * its `arrived` word that it has counted itself in after it has, so that those who have not are known to who gives up.
 * Who gives up says so in the word: one that comes later must not believe that they have met. */
#include "team/team.h"
#include "weft/protocol/mutate.h"

#define GIVEN_UP ((uint64_t)1 << 63)

static weft_status give_up(weft_team *team, const char *call, weft_status status, uint64_t *count, uint64_t step)
{
    (void)wefti_or64(count, GIVEN_UP);
    return wefti_team_fail(team, status, call, &team->area->arrived.word, step);
}

weft_status wefti_team_sync_by_count(weft_team *team, const char *call)
{
    wefti_team_area *area = team->area;
    uint64_t *count = wefti_peer_address(team->world, &area->count.word, wefti_member(team, 0));
    uint64_t step = wefti_ld64(&area->arrived.word, WEFTI_RELAXED) + 1;
    uint64_t all = step * (uint64_t)team->pes - WEFTI_MUTATE(COUNT_SHORT, 1u, 0u);
    uint64_t seen = wefti_add64(count, 1) + 1;
    wefti_st64(&area->arrived.word, step, WEFTI_RELEASE);
    wefti_waiter waiter = wefti_waiter_start(team->world, call);
    while (seen < all || WEFTI_UNLIKELY(seen >= GIVEN_UP)) {
        weft_status status = wefti_waiter_pause(&waiter, count);
        if (WEFTI_UNLIKELY(status != WEFT_OK)) {
            return give_up(team, call, status, count, step);
        }
        seen = wefti_ld64(count, WEFTI_MUTATE(COUNT_RELAXED, WEFTI_RELAXED, WEFTI_ACQUIRE));
    }
    return WEFT_OK;
}
