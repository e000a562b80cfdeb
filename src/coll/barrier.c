/* Barrier and sync: the team's flags are src/team/sync.c. */
#include "weft/coll.h"

#include "team/team.h"

/* On load and store the release of the first flag publishes the puts before it to all members. PEs that are no members,
 * which may be told of the puts afterwards, and other transports need a quiet. */
static inline weft_status complete_puts(weft_team *team)
{
    return team->world->view.remote != 0 || team->pes != (int)team->world->view.pes ? wefti_team_quiet(team) : WEFT_OK;
}

static inline weft_status meet(weft_team *team, const char *call, int is_barrier)
{
    if (is_barrier) {
        WEFT_TRY(complete_puts(team));
    }
    return wefti_team_sync(team, call);
}

/* Apart, so that a call that is not traced keeps no span. */
static __attribute__((noinline)) weft_status meet_traced(weft_team *team, const char *call, int is_barrier)
{
    const wefti_span span = wefti_team_span_begin(team, call);
    return wefti_team_span_end(team, &span, SIZE_MAX, meet(team, call, is_barrier));
}

static inline weft_status meet_checked(weft_team *team, const char *call, int is_barrier)
{
    WEFT_TRY(wefti_team_check(team, call));
    wefti_team_count(team, WEFTI_COUNTER_barriers);
    return WEFTI_LIKELY(team->world->timeline == NULL) ? meet(team, call, is_barrier)
                                                       : meet_traced(team, call, is_barrier);
}

weft_status weft_team_sync(weft_team *team)
{
    return meet_checked(team, "weft_team_sync", 0);
}

weft_status weft_sync(weft_world *world)
{
    return meet_checked(weft_team_world(world), "weft_sync", 0);
}

weft_status weft_team_barrier(weft_team *team)
{
    return meet_checked(team, "weft_team_barrier", 1);
}

weft_status weft_barrier(weft_world *world)
{
    return meet_checked(weft_team_world(world), "weft_barrier", 1);
}
