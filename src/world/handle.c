/* Handles that a call may not use: NULL, destroyed, or made by the process that this one was forked from. */
#include "base/error.h"
#include "world/world.h"

int wefti_world_is_forked(const weft_world *world)
{
    return world->magic == 0 || (world->magic == WEFTI_WORLD_MAGIC && world->owner != wefti_os_owner_number());
}

static weft_status refuse_forked(const char *call)
{
    return wefti_error(WEFT_ERR_STATE,
                       "%s: this process was forked from the one that made the handle, and is no PE of its world; make "
                       "the call there, or create a world in this process",
                       call);
}

weft_status wefti_world_refuse(const weft_world *world, const char *call)
{
    return world != NULL && world->magic == 0
               ? refuse_forked(call)
               : wefti_error(WEFT_ERR_ARGUMENT, "%s: argument 'world' is NULL or destroyed", call);
}

weft_status wefti_world_check_handle(const weft_world *world, const char *call)
{
    return wefti_world_expect(world, call);
}

weft_status wefti_team_refuse(const weft_team *team, const char *call)
{
    if (team == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: argument 'world' or 'team' is NULL; this PE may not be a member of the team", call);
    }
    if (team->destroyed) {
        return wefti_error(WEFT_ERR_STATE, "%s: %s", call, team->dead_text);
    }
    return team->world == NULL ? refuse_forked(call) : wefti_world_refuse(team->world, call);
}
