/* weft/device/sync.cuh: sync and barrier over a team inside a kernel. (OpenSHMEM 1.5, 9.9.)
 *
 * Called by one scope of every member, members may use different scopes; one at a time a team, in the same order
 * everywhere. The step's number is read from memory and advanced there, so that a captured graph can be replayed.
 * Each member adds 1 to the arrivals of every other (a fence, then relaxed atomics over all links at once) and waits
 * for its own to reach step * (members - 1): one hop, one word polled. */
#ifndef WEFTI_DEVICE_SYNC_CUH
#define WEFTI_DEVICE_SYNC_CUH

#include "weft/device/rma.cuh"

WEFTI_DEVICE int wefti_dev_member(const weft_dev_team &team, int number)
{
    return team.list == 0 ? team.start + number * team.stride : team.list[number];
}

#define WEFTI_NO_STEP (~(wefti_u64)0)

/* The step of a far PE; WEFTI_NO_STEP when it does not answer. */
WEFTI_DEVICE wefti_u64 wefti_dev_sync_far_step(const weft_dev *dev, const wefti_u64 *epoch, int pe)
{
    const wefti_u64 place = wefti_far_place_here(dev, (wefti_u64)epoch, sizeof(wefti_u64), pe);
    const wefti_u32 ask = wefti_far_ask(WEFTI_DEV_REQUEST_AMO, WEFTI_DEV_AMO_FETCH, 64, 1);
    const wefti_u64 ticket = wefti_far_word_here(dev, ask, place, 0, 0, pe);
    wefti_u64 step = WEFTI_NO_STEP;
    if (ticket != WEFTI_NO_TICKET) {
        step = wefti_far_answer_here(dev, ticket) == WEFT_OK ? wefti_far_entry(dev, ticket)->old : WEFTI_NO_STEP;
        wefti_far_take(dev, ticket);
    }
    return step;
}

/* Latch WEFT_ERR_TIMEOUT with the first member whose step is behind; else with the first far one that does not answer.
 * FAR: there may be such. */
template <bool FAR> WEFTI_DEVICE_SLOW int wefti_dev_sync_expired(const weft_dev_team *team, wefti_u64 step)
{
    int culprit = -1;
    int is_silent = 1;
    for (int i = 0; i < team->pes && is_silent; i++) {
        int pe = wefti_dev_member(*team, i);
        wefti_u64 at = wefti_dev_peer_flat(&team->world, (wefti_u64)&team->area->epoch, sizeof(wefti_u64), pe);
        wefti_u64 there = at != 0 ? wefti_ld_acquire((const wefti_u64 *)at)
                          : FAR   ? wefti_dev_sync_far_step(&team->world, &team->area->epoch, pe)
                                  : WEFTI_NO_STEP;
        if (there < step || there == WEFTI_NO_STEP) {
            is_silent = there == WEFTI_NO_STEP;
            culprit = !is_silent || culprit < 0 ? pe : culprit;
        }
    }
    return wefti_dev_latch_here(&team->world, WEFT_ERR_TIMEOUT, culprit);
}

template <bool FAR> WEFTI_DEVICE int wefti_dev_sync_of(weft_scope scope, const weft_dev_team &team)
{
    int status = WEFT_OK;
    wefti_scope_sync(scope);
    /* Thread r tells member + 1 + r, + 1 + r + size, ... */
    if ((int)scope.rank < team.pes - 1) {
        wefti_fence_rel();
        for (int hop = 1 + (int)scope.rank; hop < team.pes; hop += (int)scope.size) {
            int number = team.pe + hop < team.pes ? team.pe + hop : team.pe + hop - team.pes;
            int pe = wefti_dev_member(team, number);
            wefti_u64 at = wefti_dev_peer(team.world, &team.area->arrivals, sizeof(wefti_u64), pe);
            if (__builtin_expect(at == 0, 0)) {
                status = FAR ? wefti_far_signal(&team.world, (wefti_u64)&team.area->arrivals, 1, WEFT_SIGNAL_ADD, pe)
                             : wefti_dev_no_place(team.world, pe);
                if (status != WEFT_OK) {
                    break;
                }
                continue;
            }
            wefti_red_add_relaxed((wefti_u64 *)at, 1);
        }
    }
    if (scope.rank == 0) {
        const int used = wefti_dev_use_begin(team.world, &team.area->in_use);
        status = status == WEFT_OK ? used : status;
        wefti_u64 step = wefti_ld_relaxed(&team.area->epoch) + 1; /* while the others are being told */
        wefti_st_relaxed(&team.area->epoch, step);
        wefti_u64 awaited = step * (wefti_u64)(team.pes - 1);
        if (status == WEFT_OK) {
            status = wefti_dev_wait_word(team.world, &team.area->arrivals, WEFT_CMP_GE, awaited);
        }
        if (__builtin_expect(status == WEFT_ERR_TIMEOUT, 0)) {
            status = wefti_dev_sync_expired<FAR>(&team, step);
        }
        wefti_dev_use_end(&team.area->in_use);
    }
    return wefti_dev_share(scope, team.world, status);
}

/* Wait until every member has arrived. What the threads of the scope stored before is visible to every member after: on
 * load and store a sync is also a barrier. WEFT_ERR_TIMEOUT latches the first member that has not come. */
WEFTI_DEVICE int weft_dev_sync(weft_scope scope, const weft_dev_team &team)
{
    return wefti_dev_sync_of<true>(scope, team);
}

/* weft_dev_quiet of the scope's threads, then weft_dev_sync. */
WEFTI_DEVICE int weft_dev_barrier(weft_scope scope, const weft_dev_team &team)
{
    if (__builtin_expect(team.world.far_count != 0, 0)) {
        wefti_scope_sync(scope);
        const int status = scope.rank == 0 ? wefti_far_quiet(&team.world) : WEFT_OK;
        if (wefti_dev_share(scope, team.world, status) != WEFT_OK) {
            return weft_dev_fault(team.world);
        }
    }
    return weft_dev_sync(scope, team); /* its fence completes what the scope's threads stored, before any is told */
}

#endif
