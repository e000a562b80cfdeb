/* weft/team.h: teams, ordered subsets of a world's PEs. (OpenSHMEM 1.5, 9.4.)
 *
 * A member is numbered from 0 inside its team. A team is used by one thread at a time; different teams are
 * independent. Their number is bounded by memory only. */
#ifndef WEFT_TEAM_H
#define WEFT_TEAM_H

#include "weft/status.h"
#include "weft/world.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_team weft_team;

/* The predefined teams: all PEs of the world; those on this PE's node. They live as long as the world and are not
 * destroyed. NULL for a NULL world. Any thread. */
WEFT_API weft_team *weft_team_world(weft_world *world);
WEFT_API weft_team *weft_team_node(weft_world *world);

/* Likewise: the PEs that can load and store each other's host memory, this one among them (those of its node); and the
 * PEs that have this PE's place on their own node: the first of each node, or the second, and so on. */
WEFT_API weft_team *weft_team_link(weft_world *world);
WEFT_API weft_team *weft_team_same_slot(weft_world *world);

/* Make a team of the parent's members start, start + stride, ... (size of them). Collective over the parent, equal
 * arguments everywhere. stride may be negative; 0 only with size 1. *team is NULL on PEs that are not members.
 * Errors, the same on all members of the parent: WEFT_ERR_ARGUMENT, WEFT_ERR_RANGE, WEFT_ERR_MISMATCH, WEFT_ERR_MEMORY.
 * With WEFT_ERR_TIMEOUT or WEFT_ERR_PEER a member has given up; one that came late may have WEFT_OK, and a team whose
 * calls end at the deadline. (OpenSHMEM 1.5, 9.4.5.) */
WEFT_API weft_status weft_team_split_strided(weft_team *parent, int start, int stride, int size,
                                             weft_team **team) WEFT_MUST_CHECK;

/* Make two teams that cross in this PE, as rows and columns: the parent's members in rows of xrange (the last may be
 * shorter; xrange at most the parent's size, more counts as that). *x has this PE's row, *y the members with its place
 * in their rows. Collective over the parent; errors as above, and then neither team exists. (OpenSHMEM 1.5, 9.4.6.) */
WEFT_API weft_status weft_team_split_2d(weft_team *parent, int xrange, weft_team **x, weft_team **y) WEFT_MUST_CHECK;

/* Make a team of any of the parent's members, in any order: members[i] is the number in the parent of the member i.
 * Collective over the parent; every PE passes the list of the team that it joins, so that one call can make several
 * disjoint teams, or count 0 when it joins none and gets NULL. All members of one team pass the same list.
 * Errors as above; WEFT_ERR_MISMATCH names a member whose list differs. */
WEFT_API weft_status weft_team_create(weft_team *parent, const int *members, int count,
                                      weft_team **team) WEFT_MUST_CHECK;

/* Make a team of PEs of the world that its members alone call for: start, start + stride, ... (size of them; stride as
 * in weft_team_split_strided). Collective over those PEs. They meet in `place`: WEFT_TEAM_JOIN_BYTES bytes of symmetric
 * memory, aligned to 8, zero on all members, and touched by nobody else until the call has returned on all of them,
 * which leaves zeros there. Errors as above; what is left at `place` is undefined then, and WEFT_ERR_RANGE when this PE
 * is no member, the place does not lie in the heap, or the world has more than 65536 PEs: decided by each PE for
 * itself. (An active set of OpenSHMEM is such a team, and its work array such a place.) */
#define WEFT_TEAM_JOIN_BYTES ((size_t)3584)
WEFT_API weft_status weft_team_join(weft_world *world, int start, int stride, int size, void *place,
                                    weft_team **team) WEFT_MUST_CHECK;

/* The same for any PEs of the world, in any order: list[i] is the number in the world of the member i. All members pass
 * the same list; WEFT_ERR_MISMATCH says that one did not, and WEFT_ERR_ARGUMENT that this PE is not in its list. */
WEFT_API weft_status weft_team_join_list(weft_world *world, const int *list, int count, void *place,
                                         weft_team **team) WEFT_MUST_CHECK;

/* Destroy a team. Collective over its members; its last operations must have completed on this PE. Frees its scratch
 * in the symmetric heap. NULL is allowed. Local, and WEFT_OK, when the team is dead or the world has a fault.
 * Errors: WEFT_ERR_ARGUMENT (a predefined team), WEFT_ERR_MISMATCH (members made different calls): the team lives on.
 * WEFT_ERR_TIMEOUT (names the members that did not come), WEFT_ERR_PEER and the world's fault: the team is gone on this
 * PE, its symmetric memory stays taken, since a late member may still write there. A destroyed team is refused by
 * WEFT_ERR_STATE until its world ends, or 64 other handles of the world have been destroyed since. */
WEFT_API weft_status weft_team_destroy(weft_team *team) WEFT_MUST_CHECK;

/* This PE's number in the team and the number of members; -1 for a NULL team. Any thread. */
WEFT_API int weft_team_pe(const weft_team *team);
WEFT_API int weft_team_pes(const weft_team *team);

/* What a program tells of its use of a team. Start from WEFT_TEAM_CONFIG_INIT. */
typedef struct weft_team_config {
    size_t size; /* sizeof(weft_team_config) */
    /* Contexts that will be alive at once; advice, their number is bounded by memory only. 0: not known. */
    int contexts;
} weft_team_config;

#define WEFT_TEAM_CONFIG_INIT WEFTI_SIZED(weft_team_config)

/* Set a team's config, and read the one that was set. Local. WEFT_ERR_ARGUMENT: a NULL, a wrong size, a negative
 * number. WEFT_ERR_STATE: destroyed. (OpenSHMEM 1.5, 9.4.3 shmem_team_get_config.) */
WEFT_API weft_status weft_team_configure(weft_team *team, const weft_team_config *config);
WEFT_API weft_status weft_team_query(const weft_team *team, weft_team_config *config);

/* The world a team belongs to. Any thread. */
WEFT_API weft_world *weft_team_owner(const weft_team *team);

/* The number in `to` of the member `pe` of `from`; -1 when it is no member of `to`, or an argument is invalid.
 * Any thread. (OpenSHMEM 1.5, 9.4.4.) */
WEFT_API int weft_team_translate(const weft_team *from, int pe, const weft_team *to);

#ifdef __cplusplus
}
#endif
#endif
