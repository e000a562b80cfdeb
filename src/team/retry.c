/* Whose turn it is among calls of different teams that several threads make at once and that get into each other's way.
 *
 * Allocations would take each other's proposals away for ever, or until the heap is at its end; growths of the device
 * heap need their members for themselves and would hold one another's. So once the members of a team have found that
 * they must try again (and have therefore all come, so that nobody waits for a PE that is late) they do so only while
 * no other team that tries again stands before theirs, and pass else. Teams stand by the place of their area, which is
 * the same on all members: the first of all never passes. */
#include "team/team.h"

#define LOOK_NS UINT64_C(1000000)

void wefti_retry_enter(weft_world *world, wefti_retry *retry)
{
    if (!retry->entered) {
        wefti_os_monitor_enter(world->heap_lock);
        retry->next = world->retries;
        world->retries = retry;
        retry->entered = 1;
        wefti_os_monitor_leave(world->heap_lock);
    }
}

void wefti_retry_leave(weft_world *world, wefti_retry *retry)
{
    if (retry->entered) {
        wefti_os_monitor_enter(world->heap_lock);
        wefti_retry **link = &world->retries;
        while (*link != retry) {
            link = &(*link)->next;
        }
        *link = retry->next;
        wefti_os_monitor_leave(world->heap_lock);
    }
}

int wefti_retry_must_pass(weft_world *world, const wefti_retry *retry)
{
    int others_first = 0;
    wefti_os_monitor_enter(world->heap_lock);
    for (const wefti_retry *other = world->retries; other != NULL && retry->entered; other = other->next) {
        others_first |= other->place < retry->place;
    }
    wefti_os_monitor_leave(world->heap_lock);
    return others_first;
}

/* ---- of the device ---- */

/* A short wait saves votes that would come to nothing; a long one would keep the other members. */
static int take(wefti_device *device)
{
    const uint64_t until_ns = wefti_os_now_ns() + LOOK_NS;
    wefti_os_monitor_enter(device->lock);
    while (device->is_taken && wefti_os_monitor_wait(device->lock, until_ns)) {
    }
    const int is_free = !device->is_taken;
    device->is_taken = 1;
    wefti_os_monitor_leave(device->lock);
    return is_free;
}

static void give(wefti_device *device)
{
    wefti_os_monitor_enter(device->lock);
    device->is_taken = 0;
    wefti_os_monitor_notify_all(device->lock);
    wefti_os_monitor_leave(device->lock);
}

/* One round: 1 in *all when every member has its device. */
static weft_status take_once(weft_team *team, const char *call, const wefti_retry *retry, int *all)
{
    wefti_device *device = team->world->device;
    const int mine = !wefti_retry_must_pass(team->world, retry) && take(device);
    wefti_vote vote = wefti_vote_init(team, call, 0, 0);
    vote.offset_high = !mine;
    const weft_status status = wefti_team_agree(team, &vote, call);
    *all = status == WEFT_OK && vote.offset_high == 0;
    if (mine && !*all) {
        give(device);
    }
    return status;
}

weft_status wefti_team_device_take(weft_team *team, const char *call)
{
    wefti_retry retry = {.place = (uintptr_t)team->area};
    int all = 0;
    weft_status status = take_once(team, call, &retry, &all);
    while (status == WEFT_OK && !all) {
        wefti_retry_enter(team->world, &retry);
        status = take_once(team, call, &retry, &all);
    }
    wefti_retry_leave(team->world, &retry);
    return status;
}

void wefti_team_device_give_back(weft_team *team)
{
    give(team->world->device);
}
