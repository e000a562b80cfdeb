/* An offset that is free on all members of a team: each proposes one that fits in its own records; the highest proposal
 * wins if all made it, else it is where the next proposals begin. Members whose records are equal agree in one round.
 *
 * Records differ where a PE is a member of some teams only, and thousands of those leave thousands of holes of which
 * each is free on some members: going from hole to hole would take as many rounds. So after a few the members look
 * above all that any of them has taken, which is free on all, but first try some places below it, so that the heap does
 * not grow for ever where teams come and go. Only if nothing is free above do they try all holes.
 *
 * What other threads have proposed over other teams is taken, too, until they have agreed, and may be free then; and
 * blocks may be freed below the place to which the members have come. So who finds no room at a place that others'
 * votes have brought it to asks the members once more: where the records of none have changed since the search began,
 * there is none; else they begin anew. A thread may wait for this one before it ends its call, so that this is not done
 * for ever. */
#include "base/error.h"
#include "common/mix.h"
#include "team/team.h"

#define HOLES_TRIED 2
#define PLACES_TRIED 2
#define REST_NS UINT64_C(20000) /* before the members begin anew because of others' proposals */
#define PATIENCE_NS UINT64_C(1000000000) /* how long they do that */

/* What stands for an offset in the vote of a member that passes, and of one that finds no room above. */
#define PASS WEFTI_BLOCK_NONE
#define NO_ROOM (WEFTI_BLOCK_NONE - 1)
/* In that of one that finds no room at or above the floor, though it had some below. */
#define FULL (WEFTI_BLOCK_NONE - 2)

/* ---- this PE's records ---- */

static void count_used(const wefti_records *records)
{
    if (records->used_counter != NULL) {
        __atomic_store_n(records->used_counter, records->blocks->bytes_used, __ATOMIC_RELAXED);
    }
}

/* What a member finds in its records. */
typedef struct proposal {
    uint64_t offset; /* WEFTI_BLOCK_NONE if there is no room at or above the floor, or above all blocks */
    int is_in_doubt; /* others' proposals were there */
    uint64_t changes; /* of the records so far */
} proposal;

/* A proposal is taken in this PE's records at once, so that another thread, which allocates on another team, does not
 * propose the same; the lock is never held while waiting for other PEs. `above`: only above all blocks. */
static weft_status propose(const wefti_records *records, const wefti_block_wanted *wanted, uint64_t floor, int above,
                           proposal *found)
{
    wefti_blocks *blocks = records->blocks;
    weft_status status = WEFT_OK;
    wefti_os_monitor_enter(records->lock);
    const uint64_t end = wefti_blocks_end(blocks);
    found->offset = wefti_blocks_fit(blocks, wanted->bytes, wanted->alignment, above && end > floor ? end : floor);
    found->is_in_doubt = blocks->proposed > 0;
    found->changes = blocks->changes;
    if (found->offset != WEFTI_BLOCK_NONE) {
        status = wefti_blocks_take(blocks, found->offset, wanted->bytes, wanted->owner);
        found->offset = status == WEFT_OK ? found->offset : WEFTI_BLOCK_NONE;
        blocks->proposed += status == WEFT_OK;
    }
    count_used(records);
    wefti_os_monitor_leave(records->lock);
    return status;
}

/* The proposal has become a block, or is free again. WEFTI_BLOCK_NONE is allowed. */
static void end_proposal(const wefti_records *records, uint64_t offset, int is_kept)
{
    if (offset == WEFTI_BLOCK_NONE) {
        return;
    }
    wefti_os_monitor_enter(records->lock);
    records->blocks->proposed--;
    if (is_kept) {
        records->blocks->changes++;
    } else {
        wefti_blocks_drop(records->blocks, offset);
        count_used(records);
    }
    wefti_os_monitor_leave(records->lock);
}

static weft_status refuse_full(const wefti_records *records, const char *call, uint64_t bytes)
{
    wefti_os_monitor_enter(records->lock);
    uint64_t used = records->blocks->bytes_used;
    wefti_os_monitor_leave(records->lock);
    return wefti_error(WEFT_ERR_MEMORY,
                       "%s: no room for %llu bytes in the symmetric heap of at most %llu bytes, of which %llu "
                       "are in use; raise %s",
                       call, (unsigned long long)bytes, (unsigned long long)records->max_bytes,
                       (unsigned long long)used, records->remedy);
}

void wefti_offset_drop(const wefti_records *records, uint64_t offset)
{
    if (offset == WEFTI_BLOCK_NONE) {
        return;
    }
    wefti_os_monitor_enter(records->lock);
    wefti_blocks_drop(records->blocks, offset);
    records->blocks->changes++;
    count_used(records);
    wefti_os_monitor_leave(records->lock);
}

/* Whether members that came late may have the block of a call that has failed here, and write there. */
static int may_be_had(const weft_team *team)
{
    return team->dead != WEFT_OK;
}

void wefti_offset_refuse(const weft_team *team, const wefti_records *records, uint64_t offset)
{
    if (!may_be_had(team)) {
        wefti_offset_drop(records, offset);
    }
}

/* ---- agreement ---- */

/* Where the members look: equal on all of them, since it follows from what they voted, but for the last two. */
typedef struct search {
    unsigned rounds; /* in which they disagreed */
    int every_hole;
    int is_full; /* a member has voted so */
    uint64_t floor;
    uint64_t end; /* of all that any of them has taken, once rounds > HOLES_TRIED */
    uint64_t changes; /* of this member's records, when the search began */
    int is_in_doubt; /* they are others since, or others' proposals were there: what was not free may be */
} search;

static int is_above(const search *s)
{
    return !s->every_hole && s->rounds == HOLES_TRIED;
}

static int has_jumped(const search *s)
{
    return !s->every_hole && s->rounds >= HOLES_TRIED;
}

/* A place below the end, a whole number of such blocks from it. `any` is any number. */
static uint64_t place_below(uint64_t end, uint64_t bytes, uint64_t any)
{
    uint64_t unit = (bytes + WEFTI_BLOCK_ALIGNMENT - 1) / WEFTI_BLOCK_ALIGNMENT * WEFTI_BLOCK_ALIGNMENT;
    uint64_t places = end / unit;
    uint64_t mix = wefti_mix(any) >> 32;
    return places == 0 ? 0 : end - (1 + mix % places) * unit;
}

static int has_agreed(const wefti_vote *vote)
{
    return vote->offset_high < FULL && vote->offset_low == vote->offset_high;
}

/* They have disagreed, and the highest vote was `high`. `any` is the same number on all members. */
static void look_on(search *s, uint64_t high, uint64_t bytes, uint64_t any)
{
    if (high == PASS) {
        *s = (search){0}; /* what was taken may be free again */
        return;
    }
    if (high == NO_ROOM) {
        *s = (search){.every_hole = 1};
        return;
    }
    if (high == FULL) {
        s->is_full = 1;
        return;
    }
    if (is_above(s) || s->rounds > HOLES_TRIED + PLACES_TRIED) {
        s->end = high;
    }
    s->floor = high;
    s->rounds++;
    if (has_jumped(s) && !is_above(s)) {
        s->floor = s->rounds <= HOLES_TRIED + PLACES_TRIED ? place_below(s->end, bytes, any) : s->end;
    }
}

/* A call, on this member. */
typedef struct allocation {
    weft_team *team;
    const wefti_records *records;
    const char *call;
    const wefti_block_wanted *wanted;
    wefti_retry retry;
    uint64_t until_ns; /* how long it begins anew because of others' proposals */
    search search;
    uint64_t offset; /* what it has taken; WEFTI_BLOCK_NONE: nothing */
} allocation;

static int may_begin_anew(const allocation *a)
{
    return a->search.is_in_doubt && wefti_os_now_ns() < a->until_ns;
}

/* What a member votes that need not pass. */
static weft_status vote_offset(allocation *a, wefti_vote *vote)
{
    search *s = &a->search;
    proposal found;
    WEFT_TRY(propose(a->records, a->wanted, s->floor, is_above(s), &found));
    s->changes = s->rounds == 0 ? found.changes : s->changes;
    s->is_in_doubt |= found.is_in_doubt || found.changes != s->changes;
    a->offset = found.offset;
    if (a->offset != WEFTI_BLOCK_NONE && !(s->is_full && may_begin_anew(a))) {
        vote->offset_high = vote->offset_low = a->offset;
    } else if (has_jumped(s)) {
        vote->offset_high = vote->offset_low = NO_ROOM;
    } else if (may_begin_anew(a)) {
        wefti_os_sleep_ns(REST_NS);
        vote->offset_high = PASS;
    } else if (s->rounds > 0 && !s->is_full) {
        vote->offset_high = FULL;
    } else {
        return refuse_full(a->records, a->call, a->wanted->bytes);
    }
    return WEFT_OK;
}

/* One round: *vote is what all say. */
static weft_status agree_once(allocation *a, wefti_vote *vote)
{
    *vote = wefti_vote_init(a->team, a->call, a->wanted->bytes, a->wanted->alignment);
    a->offset = WEFTI_BLOCK_NONE;
    if (wefti_retry_must_pass(a->team->world, &a->retry)) {
        vote->offset_high = PASS;
    } else {
        vote->status = vote_offset(a, vote);
    }
    vote->reserved_low = a->records->reserved;
    weft_status status = wefti_team_agree(a->team, vote, a->call);
    return status == WEFT_ERR_MEMORY && vote->offset_high == PASS ? WEFT_OK
                                                                  : status; /* what is full may be so for now */
}

weft_status wefti_offset_agree(weft_team *team, const wefti_records *records, const char *call,
                               const wefti_block_wanted *wanted, uint64_t *offset, uint64_t *reserved_low)
{
    allocation a = {.team = team,
                    .records = records,
                    .call = call,
                    .wanted = wanted,
                    .retry.place = (uintptr_t)team->area,
                    .until_ns = wefti_os_now_ns() + PATIENCE_NS};
    wefti_vote vote;
    weft_status status = agree_once(&a, &vote);
    while (status == WEFT_OK && !has_agreed(&vote)) {
        end_proposal(records, a.offset, 0);
        wefti_retry_enter(team->world, &a.retry);
        look_on(&a.search, vote.offset_high, wanted->bytes, wefti_ld64(&team->epochs->agree, WEFTI_RELAXED));
        status = agree_once(&a, &vote);
    }
    wefti_retry_leave(team->world, &a.retry);
    end_proposal(records, a.offset, status == WEFT_OK || may_be_had(team));
    WEFT_TRY(status);
    *offset = a.offset;
    *reserved_low = vote.reserved_low;
    return WEFT_OK;
}
