/* Agreement of members that share processors, by a combining tree: votes go up a tree of groups, and whoever comes last
 * to a group takes on what the group says. So nobody waits on the way up, and a member needs two turns of its processor
 * for an agreement, one to bring its vote and one to read the result, while in a dissemination it needs one a round.
 * All the work together grows as the members do. (Yew, Tzeng, Lawrie: Distributing hot-spot addressing in large-scale
 * multiprocessors, 1987.)
 *
 * Members form groups of WEFTI_GROUP_PLACES by their numbers, these form groups of groups, and so on. A group's words
 * lie with its first member. Who comes to a group stores its vote in its place there and counts itself in; who finds
 * that it is the last has all votes of the group before it, and comes with what they say together to the group above.
 * Who is the last of all stores the result with the first member, and the epoch as its flag, on which everybody waits.
 *
 * Nothing is cleaned. Counts only grow: epoch e of a group is complete at e times its places, and nobody comes in epoch
 * e + 1 before it has read the result of e, for which all had come. So a place is not written before it was merged, and
 * the result not before all have read the one before.
 *
 * A member says in its epoch word that it has come once it has done its part, which may be to take on the votes of
 * others: so who stops on the way is among those who have not come. Who gives up says so, and why, in the flag of the
 * result, unless that is there by then: all members come to the same end, and one that comes later knows at once. */
#include "team/team.h"

/* Bring a vote to this member's group of a level: who is the last to come there returns 1, with what all its places say
 * in *vote. `span` is the number of members that a place stands for. */
static int bring(weft_team *team, unsigned level, int64_t span, uint64_t epoch, wefti_vote *vote)
{
    const int64_t first = team->pe - team->pe % (span * WEFTI_GROUP_PLACES);
    const int64_t members =
        team->pes - first < span * WEFTI_GROUP_PLACES ? team->pes - first : span * WEFTI_GROUP_PLACES;
    const uint64_t places = (uint64_t)((members + span - 1) / span);
    const uint64_t place = (uint64_t)((team->pe - first) / span);
    wefti_group *group = wefti_peer_address(team->world, wefti_team_group(team->area, (unsigned)team->pes, level),
                                            wefti_member(team, (int)first));
    const uint64_t complete = epoch * places;
    wefti_copy(wefti_group_vote(group, place), vote, sizeof *vote);
    const uint64_t count = wefti_add64(&group->count.word, 1) + 1;
    if (count != complete) {
        return 0;
    }
    for (uint64_t i = 0; i < places; i++) {
        wefti_vote other;
        wefti_copy(&other, wefti_group_vote(group, i), sizeof other);
        wefti_vote_merge(vote, &other);
    }
    return 1;
}

/* From group to group, as long as this member is the last: 1 when it was the last of all. */
static int bring_upwards(weft_team *team, uint64_t epoch, wefti_vote *vote)
{
    int64_t span = 1;
    for (unsigned level = 0; span < team->pes; level++) {
        if (!bring(team, level, span, epoch, vote)) {
            return 0;
        }
        span *= WEFTI_GROUP_PLACES;
    }
    return 1;
}

/* The flag, once the result is there or somebody has given up. On failure this member's team is dead. */
static weft_status await(weft_team *team, const char *call, wefti_vote_line *result, uint64_t epoch)
{
    uint64_t *mine = &team->epochs->agree;
    wefti_waiter waiter = wefti_team_waiter(team, call);
    uint64_t seen = wefti_ld64(&result->flag, WEFTI_ACQUIRE);
    while (seen < epoch) {
        weft_status status = wefti_team_pause(team, &waiter, &result->flag, mine, epoch, -1);
        if (status == WEFT_ERR_TIMEOUT) {
            (void)wefti_cas64(&result->flag, epoch - 1, (epoch - 1) | wefti_team_giving_up());
        } else if (status != WEFT_OK) {
            return wefti_team_fail(team, status, call, mine, epoch);
        }
        seen = wefti_ld64(&result->flag, WEFTI_ACQUIRE);
    }
    return seen < WEFTI_GIVEN_UP ? WEFT_OK : wefti_team_fail_alike(team, seen, call, mine, epoch);
}

weft_status wefti_team_agree_by_count(weft_team *team, wefti_vote *vote, const char *call)
{
    wefti_vote_line *result = wefti_peer_address(team->world, &team->area->result, wefti_member(team, 0));
    uint64_t *mine = &team->epochs->agree;
    const uint64_t epoch = wefti_ld64(mine, WEFTI_RELAXED) + 1;
    if (bring_upwards(team, epoch, vote)) {
        wefti_copy(&result->vote, vote, sizeof *vote);
        (void)wefti_cas64(&result->flag, epoch - 1, epoch); /* unless somebody has given up */
    }
    wefti_st64(mine, epoch, WEFTI_RELEASE);
    WEFT_TRY(await(team, call, result, epoch));
    wefti_copy(vote, &result->vote, sizeof *vote);
    return WEFT_OK;
}
