/* Crowded PEs share processors: a wait ends after the others have had their turns, so that what a meeting costs is the
 * number of turns and not that of flags. */
#include "world/world.h"

void wefti_team_set_meeting(weft_team *team)
{
    int is_near = 1;
    for (int i = 0; i < team->pes && is_near; i++) {
        is_near = wefti_pe_is_near(&team->world->view, wefti_member(team, i));
    }
    team->counted = team->world->crowded && is_near && team->pes > 1;
}
