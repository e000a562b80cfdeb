/* An offset that is free on all members of a team: each proposes one that fits in its own records; the highest proposal
 * wins if all made it, else it is where the next proposals begin. Members whose records are equal agree in one round.
 *
 * Records differ where a PE is a member of some teams only, and thousands of those leave thousands of holes of which
 * each is free on some members: going from hole to hole would take as many rounds. So after a few the members look
 * above all that any of them has taken, which is free on all, but first try some places below it, so that the heap does
 * not grow for ever where teams come and go. Only if nothing is free above do they try all holes. */
#include "base/error.h"
#include "team/team.h"

#define HOLES_TRIED 2
#define PLACES_TRIED 2

/* What stands for an offset in the vote of a member that passes, and of one that finds no room above. */
#define PASS WEFTI_BLOCK_NONE
#define NO_ROOM (WEFTI_BLOCK_NONE - 1)

/* ---- this PE's records ---- */

static void count_used(const wefti_records *records)
{
    if (records->used_counter != NULL) {
        __atomic_store_n(records->used_counter, records->blocks->bytes_used, __ATOMIC_RELAXED);
    }
}

/* A proposal is taken in this PE's records at once, so that another thread, which allocates on another team, does not
 * propose the same; the lock is never held while waiting for other PEs. *offset is WEFTI_BLOCK_NONE if there is no room
 * at or above the floor, or above all blocks where `above` says so. */
static weft_status propose(const wefti_records *records, const wefti_block_wanted *wanted, uint64_t floor, int above,
                           uint64_t *offset)
{
    weft_status status = WEFT_OK;
    wefti_os_monitor_enter(records->lock);
    uint64_t end = wefti_blocks_end(records->blocks);
    *offset = wefti_blocks_fit(records->blocks, wanted->bytes, wanted->alignment, above && end > floor ? end : floor);
    if (*offset != WEFTI_BLOCK_NONE) {
        status = wefti_blocks_take(records->blocks, *offset, wanted->bytes, wanted->owner);
    }
    count_used(records);
    wefti_os_monitor_leave(records->lock);
    *offset = status == WEFT_OK ? *offset : WEFTI_BLOCK_NONE;
    return status;
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
    count_used(records);
    wefti_os_monitor_leave(records->lock);
}

void wefti_offset_refuse(const weft_team *team, const wefti_records *records, uint64_t offset)
{
    if (team->dead == WEFT_OK) {
        wefti_offset_drop(records, offset);
    }
}

/* ---- agreement ---- */

/* Where the members look: equal on all of them, since it follows from what they voted. */
typedef struct search {
    unsigned rounds; /* in which they disagreed */
    int every_hole;
    uint64_t floor;
    uint64_t end; /* of all that any of them has taken, once rounds > HOLES_TRIED */
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
    uint64_t mix = (any * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
    return places == 0 ? 0 : end - (1 + mix % places) * unit;
}

/* They have disagreed, and the highest proposal was `high`. `any` is the same number on all members. */
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
    if (is_above(s) || s->rounds > HOLES_TRIED + PLACES_TRIED) {
        s->end = high;
    }
    s->floor = high;
    s->rounds++;
    if (has_jumped(s) && !is_above(s)) {
        s->floor = s->rounds <= HOLES_TRIED + PLACES_TRIED ? place_below(s->end, bytes, any) : s->end;
    }
}

/* One round. On return *offset is what this PE has taken, and *vote what all say. */
static weft_status agree_once(weft_team *team, const wefti_records *records, const wefti_retry *retry, const char *call,
                              const wefti_block_wanted *wanted, const search *s, uint64_t *offset, wefti_vote *vote)
{
    *vote = wefti_vote_init(team, call, wanted->bytes, wanted->alignment);
    *offset = WEFTI_BLOCK_NONE;
    if (wefti_retry_must_pass(team->world, retry)) {
        vote->offset_high = PASS;
    } else {
        vote->status = propose(records, wanted, s->floor, is_above(s), offset);
        if (vote->status == WEFT_OK && *offset == WEFTI_BLOCK_NONE && !has_jumped(s)) {
            vote->status = refuse_full(records, call, wanted->bytes);
        }
        vote->offset_high = vote->status != WEFT_OK ? 0 : *offset == WEFTI_BLOCK_NONE ? NO_ROOM : *offset;
        vote->offset_low = vote->offset_high;
    }
    vote->reserved_low = records->reserved;
    weft_status status = wefti_team_agree(team, vote, call);
    return status == WEFT_ERR_MEMORY && vote->offset_high == PASS ? WEFT_OK
                                                                  : status; /* what is full may be so for now */
}

weft_status wefti_offset_agree(weft_team *team, const wefti_records *records, const char *call,
                               const wefti_block_wanted *wanted, uint64_t *offset, uint64_t *reserved_low)
{
    wefti_retry retry = {.place = (uintptr_t)team->area};
    search s = {0};
    wefti_vote vote;
    weft_status status = agree_once(team, records, &retry, call, wanted, &s, offset, &vote);
    while (status == WEFT_OK && (vote.offset_low != vote.offset_high || vote.offset_high == NO_ROOM)) {
        wefti_offset_drop(records, *offset);
        wefti_retry_enter(team->world, &retry);
        look_on(&s, vote.offset_high, wanted->bytes, wefti_ld64(&team->epochs->agree, WEFTI_RELAXED));
        status = agree_once(team, records, &retry, call, wanted, &s, offset, &vote);
    }
    wefti_retry_leave(team->world, &retry);
    if (status != WEFT_OK) {
        wefti_offset_refuse(team, records, *offset);
        return status;
    }
    *reserved_low = vote.reserved_low;
    return WEFT_OK;
}
