/* weft/coll.h: collective operations. (OpenSHMEM 1.5, 9.9.)
 *
 * Called by every member of the team, one collective at a time a team, in the same order everywhere. */
#ifndef WEFT_COLL_H
#define WEFT_COLL_H

#include "weft/team.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Wait until every member has arrived. No promise about puts. (OpenSHMEM 1.5, 9.9.3 shmem_team_sync.)
 * WEFT_ERR_TIMEOUT names the members that have not arrived; from then on the team is dead and its calls return that
 * status. */
WEFT_API weft_status weft_team_sync(weft_team *team) WEFT_MUST_CHECK;
WEFT_API weft_status weft_sync(weft_world *world) WEFT_MUST_CHECK;

/* weft_quiet, then weft_sync: what every PE put before is visible to every PE after. (OpenSHMEM 1.5, 9.9.1.) */
WEFT_API weft_status weft_barrier(weft_world *world) WEFT_MUST_CHECK;
WEFT_API weft_status weft_team_barrier(weft_team *team) WEFT_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
