/* Whose turn it is among calls of different teams that several threads make at once and that get into each other's way.
 *
 * Allocations would take each other's proposals away for ever, or until the heap is at its end; growths of the device
 * heap need their members for themselves and would hold one another's. So once the members of a team have found that
 * they must try again (and have therefore all come, so that nobody waits for a PE that is late) they do so only while
 * no other team that tries again stands before theirs, and pass else. Teams stand by the place of their area, which is
 * the same on all members: the first of all never passes. */
#include "team/team.h"

#define LOOK_NS UINT64_C(1000000)

void wefti_turn_enter(weft_world *world, wefti_turn *turn)
{
    if (!turn->entered) {
        wefti_os_monitor_enter(world->heap_lock);
        turn->next = world->turns;
        world->turns = turn;
        turn->entered = 1;
        wefti_os_monitor_leave(world->heap_lock);
    }
}

void wefti_turn_leave(weft_world *world, wefti_turn *turn)
{
    if (turn->entered) {
        wefti_os_monitor_enter(world->heap_lock);
        wefti_turn **link = &world->turns;
        while (*link != turn) {
            link = &(*link)->next;
        }
        *link = turn->next;
        wefti_os_monitor_leave(world->heap_lock);
    }
}

int wefti_turn_must_pass(weft_world *world, const wefti_turn *turn)
{
    int others_first = 0;
    wefti_os_monitor_enter(world->heap_lock);
    for (const wefti_turn *other = world->turns; other != NULL && turn->entered; other = other->next) {
        others_first |= other->place < turn->place;
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
static weft_status take_once(weft_team *team, const char *call, const wefti_turn *turn, int *all)
{
    wefti_device *device = team->world->device;
    const int mine = !wefti_turn_must_pass(team->world, turn) && take(device);
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
    wefti_turn turn = {.place = (uintptr_t)team->area};
    int all = 0;
    weft_status status = take_once(team, call, &turn, &all);
    while (status == WEFT_OK && !all) {
        wefti_turn_enter(team->world, &turn);
        status = take_once(team, call, &turn, &all);
    }
    wefti_turn_leave(team->world, &turn);
    return status;
}

void wefti_team_device_give_back(weft_team *team)
{
    give(team->world->device);
}
