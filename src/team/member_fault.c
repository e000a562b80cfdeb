/* What becomes of a team when a collective cannot end: who is named, and that it is dead. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/pe_list.h"
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

/* How many flags of this epoch member `i` has sent: each lies with the member that it was sent to. */
static unsigned count_sent(const weft_team *team, int i, int is_sync, uint64_t epoch)
{
    for (unsigned round = 0; round < team->rounds; round++) {
        const uint64_t *flag =
            is_sync ? wefti_team_sync_flag(team->area, round)
                    : &wefti_team_vote_line(team->area, team->rounds, (unsigned)(epoch & 1), round)->flag;
        int to = wefti_member(team, (int)((i + ((int64_t)1 << round)) % team->pes));
        uint64_t sent;
        if (wefti_world_read(team->world, flag, to, &sent) != WEFT_OK || sent < epoch) {
            return round;
        }
    }
    return team->rounds;
}

/* All have come. Who waits in round r has sent r + 1 flags, and whom it waits for at most r: so those that have sent the
 * fewest are the ones that all the others wait for, and wait for nobody. Mark them; the lowest of them, or -1. */
static int mark_stuck(const weft_team *team, int is_sync, uint64_t epoch, unsigned char *marks)
{
    unsigned fewest = team->rounds;
    for (int i = 0; i < team->pes; i++) {
        unsigned sent = count_sent(team, i, is_sync, epoch);
        fewest = sent < fewest ? sent : fewest;
    }
    int first = -1;
    for (int i = 0; i < team->pes && fewest < team->rounds; i++) {
        if (count_sent(team, i, is_sync, epoch) == fewest) {
            int pe = wefti_member(team, i);
            marks[pe] = 1;
            first = first < 0 ? pe : first;
        }
    }
    return first;
}

/* Name those for whom a collective could not end, as this thread's error. The lowest of them, or -1. */
static int name_culprits(const weft_team *team, const char *call, const uint64_t *epoch_word, uint64_t epoch)
{
    const weft_world *world = team->world;
    char names[WEFTI_PE_LIST_BYTES] = "some PE";
    const char *fault = "did not arrive";
    int culprit = -1;
    unsigned char *marks = wefti_alloc_zeroed(world->view.pes, 1);
    if (marks != NULL) {
        culprit = mark_behind(team, epoch_word, epoch, marks);
        if (culprit < 0 && epoch_word != &team->area->arrived.word) {
            culprit = mark_stuck(team, epoch_word == &team->area->sync_epoch.word, epoch, marks);
            fault = "came but did not go on, gone or having given up,";
        }
        (void)wefti_pe_list_text(marks, (int)world->view.pes, 1, names);
        wefti_free(marks);
        if (culprit < 0) {
            (void)snprintf(names, sizeof names, "all members came, but too late, and");
            fault = "did not meet";
        }
    }
    (void)wefti_error(WEFT_ERR_TIMEOUT, "%s: world \"%s\": %s %s within %.1f s (WEFT_DEADLINE sets the limit)", call,
                      world->name, names, fault, (double)world->deadline_ns * 1e-9);
    return culprit;
}

weft_status wefti_team_fail(weft_team *team, weft_status status, const char *call, const uint64_t *epoch_word,
                            uint64_t epoch)
{
    if (status == WEFT_ERR_PEER) {
        weft_status fault =
            wefti_world_check(team->world, call); /* a member that aborts the world may be gone at once */
        status = fault != WEFT_OK ? fault : status;
    }
    int culprit = status == WEFT_ERR_TIMEOUT ? name_culprits(team, call, epoch_word, epoch) : -1;
    team->dead = status;
    team->dead_culprit = culprit;
    (void)snprintf(team->dead_text, sizeof team->dead_text, "%s", weft_last_error());
    return status;
}
