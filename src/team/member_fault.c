/* What becomes of a team when a collective cannot end: who is named, and that it is dead. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "bootstrap/pe_list.h"
#include "team/team.h"

weft_status wefti_team_check(weft_team *team, const char *call)
{
    if (WEFTI_UNLIKELY(team == NULL)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: the team is NULL; this PE may not be a member of it", call);
    }
    if (WEFTI_UNLIKELY(team->dead != WEFT_OK)) {
        return wefti_error_relay(team->dead, team->dead_text);
    }
    return wefti_world_check(team->world, call);
}

/* Mark the members whose epoch word is behind; the lowest of them, or -1. */
static int mark_behind(const weft_team *team, const uint64_t *epoch_word, uint64_t epoch, unsigned char *marks)
{
    int first = -1;
    for (int i = 0; i < team->pes; i++) {
        int pe = wefti_member(team, i);
        uint64_t reached;
        if (wefti_world_read(team->world, epoch_word, pe, &reached) != WEFT_OK || reached < epoch) {
            marks[pe] = 1;
            first = first < 0 ? pe : first;
        }
    }
    return first;
}

weft_status wefti_team_fail(weft_team *team, weft_status status, const char *call, const uint64_t *epoch_word,
                            uint64_t epoch)
{
    weft_world *world = team->world;
    char names[WEFTI_PE_LIST_BYTES] = "some PE";
    int culprit = -1;
    int late = 0; /* nobody is behind */
    if (status == WEFT_ERR_PEER) {
        weft_status fault = wefti_world_check(world, call); /* a member that aborts the world may be gone at once */
        status = fault != WEFT_OK ? fault : status;
    }
    if (status == WEFT_ERR_TIMEOUT) {
        unsigned char *marks = wefti_alloc_zeroed(world->view.pes, 1);
        if (marks != NULL) {
            culprit = mark_behind(team, epoch_word, epoch, marks);
            (void)wefti_pe_list_text(marks, (int)world->view.pes, 1, names);
            late = culprit < 0;
            wefti_free(marks);
        }
        if (late) {
            (void)snprintf(names, sizeof names, "the members came, but some so late that others had given up: they");
        }
        (void)wefti_error(status, "%s: world \"%s\": %s did not arrive within %.1f s (WEFT_DEADLINE sets the limit)",
                          call, world->name, names, (double)world->deadline_ns * 1e-9);
    }
    team->dead = status;
    team->dead_culprit = culprit;
    (void)snprintf(team->dead_text, sizeof team->dead_text, "%s", weft_last_error());
    return status;
}
