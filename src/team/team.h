/* team/team.h: what the members of a team do together, below the public collectives. */
#ifndef WEFTI_TEAM_TEAM_H
#define WEFTI_TEAM_TEAM_H

#include "world/world.h"

/* The member that this one flags in a round of a dissemination: 2^round after it, in a circle. */
static inline int wefti_team_after(const weft_team *team, unsigned round)
{
    int64_t to = team->pe + ((int64_t)1 << round); /* less than twice the members */
    return (int)(to >= team->pes ? to - team->pes : to);
}

/* ---- sync.c ---- */

/* Wait until all members have come: by dissemination, O(log n) flags, or by a count, as the tuning table says
 * (oversubscribed members count). The caller has checked the team. */
weft_status wefti_team_sync(weft_team *team, const char *call);
/* count.c: the same, by a count. */
weft_status wefti_team_sync_by_count(weft_team *team, const char *call);
/* To part, the last call of a team that counts: all members count themselves in, and the first, which has the words,
 * waits for them. */
weft_status wefti_team_arrive_by_count(weft_team *team, const char *call);

/* ---- agree.c ---- */

/* A vote that says nothing yet but who made which call with which arguments. */
wefti_vote wefti_vote_init(const weft_team *team, const char *call, uint64_t argument_a, uint64_t argument_b);

/* Merge the members' votes: on return *vote has the extremes over all. All members have come when it returns, and what
 * each stored before is visible. WEFT_ERR_MISMATCH when the keys differ, on all members, naming two that do; else the
 * worst status that any member voted, with that member named. */
weft_status wefti_team_agree(weft_team *team, wefti_vote *vote, const char *call);

/* What two members say together becomes *mine. */
void wefti_vote_merge(wefti_vote *mine, const wefti_vote *other);

/* combining_tree.c: merge the members' votes by counting; no verdict yet. */
weft_status wefti_team_agree_by_count(weft_team *team, wefti_vote *vote, const char *call);

/* ---- member_fault.c ---- */

/* WEFT_OK, or why this team can do no collective: NULL, destroyed, dead, the world's fault. */
weft_status wefti_team_check(weft_team *team, const char *call);

/* The wait of a collective has failed with `status`. On WEFT_ERR_TIMEOUT name the members whose epoch word (at
 * `epoch_word` here) is behind `epoch`; if none is, those that came and stopped half-way. If one of those behind has
 * come to a collective of another kind instead, that is WEFT_ERR_MISMATCH. The team is dead from now on. */
weft_status wefti_team_fail(weft_team *team, weft_status status, const char *call, const uint64_t *epoch_word,
                            uint64_t epoch);

/* In a count, or the flag of a result: a member has given up, and with it, that it did so because a PE is gone, not at
 * its deadline. All members come to the same end. */
#define WEFTI_GIVEN_UP ((uint64_t)1 << 63)
#define WEFTI_GIVEN_UP_FOR_GOOD ((uint64_t)1 << 62)

/* The bits that this thread sets as it gives up: its wait has just failed with WEFT_ERR_TIMEOUT. */
uint64_t wefti_team_giving_up(void);

/* wefti_team_fail on WEFT_ERR_TIMEOUT, for the reason of who gave up first, as `word` says. */
weft_status wefti_team_fail_alike(weft_team *team, uint64_t word, const char *call, const uint64_t *epoch_word,
                                  uint64_t epoch);

/* Complete this PE's accesses before it comes to a collective. A member that cannot does not come: the team is dead
 * from now on, as it will be for those who wait for it. */
weft_status wefti_team_quiet(weft_team *team);

/* A waiter for members, whose caller pauses by the following. */
static inline wefti_waiter wefti_team_waiter(weft_team *team, const char *call)
{
    wefti_waiter waiter = wefti_waiter_start(team->world, call);
    waiter.caller_knows = 1;
    return waiter;
}

/* Write to the log which members' epoch words are behind. */
void wefti_team_warn(const weft_team *team, const char *call, const uint64_t *epoch_word, uint64_t epoch);

/* Whether what `epoch_word` and `epoch` count can still complete. `from` is the member whose message is awaited, or -1.
 */
wefti_completion wefti_team_completion(const weft_team *team, const uint64_t *epoch_word, uint64_t epoch, int from);

/* wefti_waiter_pause, which warns once with the members' names, and looks for members that are gone; `from` as above.
 */
static inline weft_status wefti_team_pause(weft_team *team, wefti_waiter *waiter, const void *address,
                                           const uint64_t *epoch_word, uint64_t epoch, int from)
{
    weft_status status = wefti_waiter_pause(waiter, address);
    if (WEFTI_UNLIKELY(waiter->warned == 1)) {
        waiter->warned = 2;
        wefti_team_warn(team, waiter->what, epoch_word, epoch);
    }
    if (WEFTI_UNLIKELY(waiter->must_look != 0)) {
        waiter->must_look = 0;
        wefti_waiter_judge(waiter, wefti_team_completion(team, epoch_word, epoch, from));
    }
    return status;
}

/* ---- symmetric_alloc.c ---- */

/* Reserve the same offset on all members, for the library itself: users cannot free it. See weft_malloc. */
weft_status wefti_team_alloc(weft_team *team, const char *call, size_t bytes, size_t alignment, void **block);
weft_status wefti_team_dealloc(weft_team *team, const char *call, void *block);
/* The end of a team's own area: what of it others read in order to agree that it ends is not used again before they
 * have. */
weft_status wefti_team_dealloc_area(weft_team *team, const char *call);
/* Drop a block from this PE's records only: the others keep it. */
void wefti_team_forget(weft_team *team, const void *block);

/* A heap and its records, whichever of a world's: what the above do for the host heap, for any. */
typedef struct wefti_records {
    wefti_os_monitor *lock;
    wefti_blocks *blocks;
    unsigned char *base; /* this PE's heap */
    uint64_t max_bytes;
    uint64_t reserved; /* bytes that have memory, on this PE and where it reaches the team's; by now perhaps more */
    uint64_t *used_counter; /* NULL: not counted */
    const char *remedy; /* what to raise when it is full */
    /* Have memory up to `end` on all members, for a block at `offset`. Collective over the team. */
    weft_status (*grow)(weft_team *team, const char *call, uint64_t offset, uint64_t end);
} wefti_records;

#define WEFTI_BLOCK_FOREIGN (UINT64_MAX - 1) /* stands for an address outside the heap where members compare blocks */

typedef struct wefti_block_wanted {
    uint64_t bytes;
    uint64_t alignment;
    uint32_t owner; /* the number of the team over which a user allocates it and frees it; or WEFTI_OWNER_LIBRARY */
} wefti_block_wanted;

weft_status wefti_records_alloc(weft_team *team, const wefti_records *records, const char *call,
                                const wefti_block_wanted *wanted, void **block);
/* WEFT_OK if a block of this owner begins at `offset`. */
weft_status wefti_records_check(const weft_team *team, const wefti_records *records, const char *call, uint64_t offset,
                                uint32_t owner);
/* WEFT_ERR_ARGUMENT on all members if it is no block of this owner on one of them. */
weft_status wefti_records_dealloc(weft_team *team, const wefti_records *records, const char *call, uint32_t owner,
                                  void *block);
void wefti_records_forget(const wefti_records *records, const void *block);

/* The host heap's, and the above for it. */
wefti_records wefti_host_records(weft_world *world);
weft_status wefti_host_alloc(weft_team *team, const char *call, const wefti_block_wanted *wanted, void **block);
weft_status wefti_host_dealloc(weft_team *team, const char *call, uint32_t owner, void *block);

/* ---- offset.c ---- */

/* Agree on an offset. On success it is taken in the records of all members; *reserved_low is the least that any of them
 * has reserved. If the members could not end the agreement the offset may be taken, on others too. */
weft_status wefti_offset_agree(weft_team *team, const wefti_records *records, const char *call,
                               const wefti_block_wanted *wanted, uint64_t *offset, uint64_t *reserved_low);
/* Free it in this PE's records; WEFTI_BLOCK_NONE is allowed. */
void wefti_offset_drop(const wefti_records *records, uint64_t offset);
/* A call over the team has failed after it took this offset: free it, but not if the team is dead, since members that
 * came late may have the block and write there. */
void wefti_offset_refuse(const weft_team *team, const wefti_records *records, uint64_t offset);

/* ---- retry.c ---- */

/* A call of a team that may have to try again. */
typedef struct wefti_retry {
    struct wefti_retry *next; /* in the world's list of those that try again */
    uintptr_t place; /* address of the team's area: of those in the list the call with the lowest goes first */
    int entered; /* it is in the list */
} wefti_retry;

/* The call has to try again: put it into the list, if it is not there. */
void wefti_retry_enter(weft_world *world, wefti_retry *retry);
/* Take it out, if it is there. */
void wefti_retry_leave(weft_world *world, wefti_retry *retry);
/* Whether it is in the list and another call goes first, so that it must not try now. */
int wefti_retry_must_pass(weft_world *world, const wefti_retry *retry);

/* Take the devices of all members for one call that changes what PEs map of each other, so that no other team's call
 * has one of them meanwhile. Collective; on failure none is taken. */
weft_status wefti_team_device_take(weft_team *team, const char *call);
/* Let other calls take this PE's device again. */
void wefti_team_device_give_back(weft_team *team);

/* ---- device.c ---- */

/* The blocks of the device heap, as calls of this team see them. The world has a device. */
wefti_records wefti_team_device_records(const weft_team *team);
/* A team ends: what it has in device memory can be reused. All members have agreed that it does. */
void wefti_team_device_forget(weft_team *team);
/* A team ends, dead or not: nothing of it will be launched any more, so its claim of multiprocessors goes back. */
void wefti_team_device_give_sms(weft_team *team);

#endif
