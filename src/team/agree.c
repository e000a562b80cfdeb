/* Agreement. By dissemination it goes as in sync.c, but each flag brings what its sender knows. Every part of a vote is
 * an extreme, so that it does not matter that ranges overlap when the number of members is no power of two. Members
 * that share processors agree by counting: see combining_tree.c. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "team/team.h"

/* A number that differs when the call or an argument does. */
static uint64_t key_of(const char *call, uint64_t argument_a, uint64_t argument_b)
{
    static const unsigned char no_secret[WEFTI_HASH_BYTES] = {0};
    unsigned char text[64] = {0};
    unsigned char hash[WEFTI_HASH_BYTES];
    uint64_t key;
    memcpy(text, &argument_a, sizeof argument_a);
    memcpy(text + 8, &argument_b, sizeof argument_b);
    (void)snprintf((char *)text + 16, sizeof text - 16, "%s", call);
    wefti_hash(no_secret, text, sizeof text, hash);
    memcpy(&key, hash, sizeof key);
    return key;
}

wefti_vote wefti_vote_init(const weft_team *team, const char *call, uint64_t argument_a, uint64_t argument_b)
{
    uint64_t key = key_of(call, argument_a, argument_b);
    wefti_vote vote;
    memset(&vote, 0, sizeof vote);
    vote.key_low = key;
    vote.key_high = key;
    vote.key_low_pe = (uint32_t)team->pe;
    vote.key_high_pe = (uint32_t)team->pe;
    vote.reserved_low = wefti_ld64(&team->world->view.heap_bytes, WEFTI_RELAXED);
    vote.status_pe = (uint32_t)team->pe;
    return vote;
}

void wefti_vote_merge(wefti_vote *mine, const wefti_vote *other)
{
    if (other->key_low < mine->key_low || (other->key_low == mine->key_low && other->key_low_pe < mine->key_low_pe)) {
        mine->key_low = other->key_low;
        mine->key_low_pe = other->key_low_pe;
    }
    if (other->key_high > mine->key_high ||
        (other->key_high == mine->key_high && other->key_high_pe < mine->key_high_pe)) {
        mine->key_high = other->key_high;
        mine->key_high_pe = other->key_high_pe;
    }
    if (other->offset_low < mine->offset_low) {
        mine->offset_low = other->offset_low;
    }
    if (other->offset_high > mine->offset_high) {
        mine->offset_high = other->offset_high;
    }
    if (other->reserved_low < mine->reserved_low) {
        mine->reserved_low = other->reserved_low;
    }
    if (other->status < mine->status || (other->status == mine->status && other->status_pe < mine->status_pe)) {
        mine->status = other->status;
        mine->status_pe = other->status_pe;
    }
}

static weft_status disseminate(weft_team *team, wefti_vote *vote, const char *call)
{
    wefti_team_area *area = team->area;
    uint64_t *mine = &team->epochs->agree;
    uint64_t epoch = wefti_ld64(mine, WEFTI_RELAXED) + 1;
    wefti_st64(mine, epoch, WEFTI_RELEASE);
    wefti_waiter waiter = wefti_team_waiter(team, call);
    for (unsigned round = 0; round < team->rounds; round++) {
        unsigned parity = (unsigned)(epoch & 1);
        wefti_vote_line *line = wefti_team_vote_line(area, team->rounds, parity, round);
        int to = wefti_member(team, wefti_team_after(team, round));
        weft_status status = wefti_world_put_flag(team->world, &line->vote, vote, sizeof *vote, &line->flag, epoch, to);
        while (status == WEFT_OK && wefti_ld64(&line->flag, WEFTI_ACQUIRE) != epoch) {
            status = wefti_team_pause(team, &waiter, &line->flag, mine, epoch, -1);
        }
        if (status != WEFT_OK) {
            return wefti_team_fail(team, status, call, mine, epoch);
        }
        wefti_vote other;
        wefti_copy(&other, &line->vote, sizeof other);
        wefti_vote_merge(vote, &other);
    }
    return WEFT_OK;
}

weft_status wefti_team_agree(weft_team *team, wefti_vote *vote, const char *call)
{
    const int32_t mine = vote->status;
    WEFT_TRY(team->counted ? wefti_team_agree_by_count(team, vote, call) : disseminate(team, vote, call));
    if (vote->key_low != vote->key_high) {
        return wefti_error(WEFT_ERR_MISMATCH,
                           "%s: PEs %u and %u of the team made different calls or gave different arguments; collective "
                           "calls need the same on all members",
                           call, vote->key_low_pe < vote->key_high_pe ? vote->key_low_pe : vote->key_high_pe,
                           vote->key_low_pe < vote->key_high_pe ? vote->key_high_pe : vote->key_low_pe);
    }
    if (vote->status != WEFT_OK) {
        if (vote->status == mine) {
            return (weft_status)vote->status; /* this PE decided the error, too, and has its text */
        }
        char text[160];
        snprintf(text, sizeof text, "%s: PE %u of the team failed with %s", call, vote->status_pe,
                 weft_status_name((weft_status)vote->status));
        return wefti_error_relay((weft_status)vote->status, text);
    }
    return WEFT_OK;
}
