/* Barrier and sync: the team's flags are src/team/sync.c. */
#include "weft/coll.h"

#include "team/team.h"
#include "weft/protocol/mutate.h"

static inline weft_status sync_checked(weft_team *team, const char *call)
{
    WEFT_TRY(wefti_team_check(team, call));
    return wefti_team_sync(team, call);
}

/* On load and store the release of the first flag publishes the puts before it; other transports are completed. */
static inline weft_status complete_puts(weft_team *team)
{
    int is_needed = team != NULL && team->world->view.remote != 0;
    return WEFTI_MUTATE(MISSING_QUIET, 0, is_needed) ? weft_quiet(team->world) : WEFT_OK;
}

weft_status weft_team_sync(weft_team *team)
{
    return sync_checked(team, "weft_team_sync");
}

weft_status weft_sync(weft_world *world)
{
    return sync_checked(weft_team_world(world), "weft_sync");
}

weft_status weft_team_barrier(weft_team *team)
{
    WEFT_TRY(complete_puts(team));
    return sync_checked(team, "weft_team_barrier");
}

weft_status weft_barrier(weft_world *world)
{
    weft_team *team = weft_team_world(world);
    WEFT_TRY(complete_puts(team));
    return sync_checked(team, "weft_barrier");
}
