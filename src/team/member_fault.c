/* What becomes of a team when a collective cannot end: who is named, and that it is dead. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/pe_list.h"
#include "base/thread_state.h"
#include "team/team.h"
#include "weft/protocol/coll_layout.h"

#define LOST_KNOWN_NS UINT64_C(1000000000) /* after a member has left, who is lost is known within that */
#define LOST_LOOK_NS UINT64_C(10000000)

weft_status wefti_team_check(weft_team *team, const char *call)
{
    WEFT_TRY(wefti_team_expect(team, call));
    if (WEFTI_UNLIKELY(team->dead != WEFT_OK)) {
        return wefti_error_relay(team->dead, team->dead_text);
    }
    return wefti_world_check(team->world, call);
}

/* Members that do not answer are found together, or each of them would cost its time below. */
static void find_silent(const weft_team *team)
{
    int count = 0;
    int *far = team->world->knows_fates ? wefti_alloc((size_t)team->pes * sizeof *far) : NULL;
    for (int i = 0; far != NULL && i < team->pes; i++) {
        const int pe = wefti_member(team, i);
        if (!wefti_pe_is_near(&team->world->view, pe)) {
            far[count++] = pe;
        }
    }
    wefti_world_find_silent(team->world, far, count);
    wefti_free(far);
}

/* Mark the members whose epoch word is behind; the lowest of them, or -1. */
static int mark_behind(const weft_team *team, const uint64_t *epoch_word, uint64_t epoch, unsigned char *marks)
{
    int first = -1;
    for (int i = 0; i < team->pes; i++) {
        int pe = wefti_member(team, i);
        uint64_t reached;
        if (wefti_world_read_soon(team->world, epoch_word, pe, &reached) != WEFT_OK || reached < epoch) {
            marks[pe] = 1;
            first = first < 0 ? pe : first;
        }
    }
    return first;
}

/* Whether `pe`, which has not come to this call, has come to one of another kind that this member has not. */
static int is_elsewhere(const weft_team *team, const uint64_t *epoch_word, int pe)
{
    const uint64_t *words[] = {&team->epochs->sync, &team->epochs->agree, &team->epochs->arrived,
                               team->coll == NULL ? NULL : team->coll_scratch}; /* which begins with `entered` */
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        uint64_t theirs;
        if (words[i] != NULL && words[i] != epoch_word &&
            wefti_world_read_soon(team->world, words[i], pe, &theirs) == WEFT_OK &&
            theirs > wefti_ld64(words[i], WEFTI_RELAXED)) {
            return 1;
        }
    }
    return 0;
}

/* Of the marked PEs leave those that are elsewhere, if there are any: as this thread's error. The lowest, or -1. */
static int name_elsewhere(const weft_team *team, const char *call, const uint64_t *epoch_word,
                          const unsigned char *behind)
{
    const weft_world *world = team->world;
    char list[WEFTI_PE_LIST_BYTES];
    int first = -1;
    unsigned char *marks = wefti_alloc_zeroed(world->view.pes, 1);
    for (int pe = (int)world->view.pes - 1; marks != NULL && pe >= 0; pe--) {
        if (behind[pe] && is_elsewhere(team, epoch_word, pe)) {
            marks[pe] = 1;
            first = pe;
        }
    }
    if (first >= 0) {
        int count = wefti_pe_list_text(marks, (int)world->view.pes, 1, list);
        (void)wefti_error(WEFT_ERR_MISMATCH,
                          "%s: world \"%s\": %s %s in another collective call of the team; members make the same calls "
                          "in the same order",
                          call, world->name, list, count == 1 ? "is" : "are");
    }
    wefti_free(marks);
    return first;
}

/* How many flags of this epoch member `i` has sent: each lies with the member that it was sent to. One that cannot be
 * read soon counts as sent if `unread` is 1. */
static unsigned count_sent(const weft_team *team, int i, int is_sync, uint64_t epoch, int unread)
{
    for (unsigned round = 0; round < team->rounds; round++) {
        const uint64_t *flag =
            is_sync ? wefti_team_sync_flag(team->area, round)
                    : &wefti_team_vote_line(team->area, team->rounds, (unsigned)(epoch & 1), round)->flag;
        int to = wefti_member(team, (int)((i + ((int64_t)1 << round)) % team->pes));
        uint64_t sent;
        const int is_read = wefti_world_read_soon(team->world, flag, to, &sent) == WEFT_OK;
        if (is_read ? sent < epoch : !unread) {
            return round;
        }
    }
    return team->rounds;
}

/* Whether member `i` has done its part: others may still need what it had to send after it came. Of data collectives
 * the last step that it has left tells; of a count, and of what has no rounds, the word itself. What lies with a member
 * that does not answer now is not held against it: that one may only be late. */
static int has_done(const weft_team *team, int i, const uint64_t *epoch_word, uint64_t epoch)
{
    const wefti_coll_area *coll = team->coll_scratch;
    const uint64_t *word = coll != NULL && epoch_word == &coll->entered ? &coll->done : epoch_word;
    uint64_t reached;
    if (wefti_world_read_soon(team->world, word, wefti_member(team, i), &reached) != WEFT_OK || reached < epoch) {
        return 0;
    }
    const int is_sync = epoch_word == &team->epochs->sync;
    const int has_rounds = is_sync || (epoch_word == &team->epochs->agree && !team->counted);
    return !has_rounds || count_sent(team, i, is_sync, epoch, 1) == team->rounds;
}

/* Whether a member of another node, which has left and cannot be asked, has done its part: as far as those tell that
 * are there, since flags of a meeting lie with them. Of a data collective that is what this member awaits of it. */
static int has_left_behind(const weft_team *team, int i, const uint64_t *epoch_word, uint64_t epoch, int from)
{
    const int is_sync = epoch_word == &team->epochs->sync;
    if (is_sync || (epoch_word == &team->epochs->agree && !team->counted)) {
        return count_sent(team, i, is_sync, epoch, 1) == team->rounds;
    }
    return i != from;
}

/* What becomes of the call without member `i`. The order of the questions matters: a PE that is gone has stored all
 * that it will. */
static wefti_completion completion_without(const weft_team *team, int i, const uint64_t *epoch_word, uint64_t epoch,
                                           int from)
{
    const int pe = wefti_member(team, i);
    const wefti_completion seen = wefti_world_completion_without(team->world, pe);
    if (seen == WEFTI_COMPLETION_POSSIBLE || has_done(team, i, epoch_word, epoch)) {
        return WEFTI_COMPLETION_POSSIBLE;
    }
    const int cannot_be_asked = seen == WEFTI_COMPLETION_DOUBTFUL && !wefti_pe_is_near(&team->world->view, pe);
    return cannot_be_asked && has_left_behind(team, i, epoch_word, epoch, from) ? WEFTI_COMPLETION_POSSIBLE : seen;
}

/* Where a member is lost, one of another node that has left may have met that, and have left without its part. */
wefti_completion wefti_team_completion(const weft_team *team, const uint64_t *epoch_word, uint64_t epoch, int from)
{
    wefti_completion worst = WEFTI_COMPLETION_POSSIBLE;
    int has_lost = 0;
    int has_left = 0;
    for (int i = 0; i < team->pes; i++) {
        const int pe = wefti_member(team, i);
        const wefti_completion seen = completion_without(team, i, epoch_word, epoch, from);
        if (seen == WEFTI_COMPLETION_IMPOSSIBLE) {
            return seen;
        }
        worst = seen > worst ? seen : worst;
        has_lost |= wefti_world_is_lost(team->world, pe);
        has_left |= wefti_world_has_left(team->world, pe) && !wefti_pe_is_near(&team->world->view, pe);
    }
    return has_lost && has_left ? WEFTI_COMPLETION_DOUBTFUL : worst;
}

/* All have come, and some did not go on. A member in round r of the barrier has sent r + 1 flags and waits for a flag
 * of round r: who has not sent that one has sent r flags at most. So those that have sent the fewest wait for nobody,
 * and all the others wait for them, by way of others perhaps. Of four members, say, 0 has sent 1 flag and 1 to 3 have
 * sent 2: they wait for 0's second one. Mark those with the fewest; returns the lowest of them, or -1. */
static int mark_stuck(const weft_team *team, int is_sync, uint64_t epoch, unsigned char *marks)
{
    unsigned fewest = team->rounds;
    for (int i = 0; i < team->pes; i++) {
        unsigned sent = count_sent(team, i, is_sync, epoch, 0);
        fewest = sent < fewest ? sent : fewest;
    }
    int first = -1;
    for (int i = 0; i < team->pes && fewest < team->rounds; i++) {
        if (count_sent(team, i, is_sync, epoch, 0) == fewest) {
            int pe = wefti_member(team, i);
            marks[pe] = 1;
            first = first < 0 ? pe : first;
        }
    }
    return first;
}

/* Mark those of whom that is so in place of the marked ones, if there are any: the lowest of them, or -1. */
static int mark_only(const weft_team *team, int (*is_so)(const weft_world *world, int pe), unsigned char *marks)
{
    int first = -1;
    for (int i = 0; i < team->pes; i++) {
        const int pe = wefti_member(team, i);
        first = is_so(team->world, pe) && (first < 0 || pe < first) ? pe : first;
    }
    for (int i = 0; i < team->pes && first >= 0; i++) {
        const int pe = wefti_member(team, i);
        marks[pe] = is_so(team->world, pe) != 0;
    }
    return first;
}

enum { MARK_LATE = 1, MARK_ENDED, MARK_UNREACHABLE, MARK_LEFT };

/* Of the marked PEs those whose processes have ended, and those whose hosts are unreachable: others may wait for them.
 * The lowest of them, or -1. */
static int mark_ended(const weft_world *world, unsigned char *marks)
{
    int first = -1;
    for (int pe = (int)world->view.pes - 1; pe >= 0; pe--) {
        if (marks[pe] && wefti_world_is_lost(world, pe)) {
            marks[pe] = wefti_world_is_unreachable(world, pe) ? MARK_UNREACHABLE : MARK_ENDED;
            first = pe;
        }
    }
    return first;
}

/* The call can never end: of those that are behind keep those that are why, or none where all of these have come. Who
 * has left, or is only late, may have given up because of who is lost. Returns whether there are any. */
static int keep_gone(const weft_team *team, unsigned char *marks)
{
    const weft_world *world = team->world;
    int has_lost = 0;
    int has_left = 0;
    for (int i = 0; i < team->pes; i++) {
        const int pe = wefti_member(team, i);
        has_lost |= wefti_world_is_lost(world, pe);
        has_left |= marks[pe] && wefti_world_has_left(world, pe);
    }
    int kept = 0;
    for (int i = 0; i < team->pes && (has_lost || has_left); i++) {
        const int pe = wefti_member(team, i);
        const int is_why = has_lost ? wefti_world_is_lost(world, pe) : wefti_world_has_left(world, pe);
        marks[pe] = !marks[pe] || !is_why ? 0 : has_lost ? MARK_LATE : MARK_LEFT;
        kept |= marks[pe] != 0;
    }
    return kept || !(has_lost || has_left);
}

/* PEs of other nodes that did not arrive have perhaps given up because of those that are lost: nobody can tell. */
static void unmark_far(const weft_world *world, unsigned char *marks)
{
    for (int pe = 0; pe < (int)world->view.pes; pe++) {
        if (marks[pe] == MARK_LATE && !wefti_pe_is_near(&world->view, pe)) {
            marks[pe] = 0;
        }
    }
}

/* "PE 3 ended and PEs 1, 2 did not arrive": those that are behind, which are marked. */
static void describe_behind(const weft_world *world, unsigned char *marks, char *text, size_t bytes)
{
    static const struct {
        unsigned char mark;
        const char *verb;
    } kinds[] = {{MARK_ENDED, "ended"},
                 {MARK_UNREACHABLE, "became unreachable"},
                 {MARK_LEFT, "left the world"},
                 {MARK_LATE, "did not arrive"}};
    char list[WEFTI_PE_LIST_BYTES];
    size_t used = 0;
    unsigned char last = 0;
    if (mark_ended(world, marks) >= 0 && world->knows_fates) {
        unmark_far(world, marks);
    }
    text[0] = '\0';
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && used < bytes; i++) {
        if (wefti_pe_list_text(marks, (int)world->view.pes, kinds[i].mark, list) > 0) {
            used +=
                (size_t)snprintf(text + used, bytes - used, "%s%s %s", used > 0 ? " and " : "", list, kinds[i].verb);
            last = kinds[i].mark;
        }
    }
    if (last != MARK_LATE && last != MARK_LEFT && used < bytes) {
        (void)snprintf(text + used, bytes - used, " and did not arrive");
    }
}

/* All have come. A member that gave up may have ended since: it is named only if the others wait for it. */
static void describe_stuck(const weft_team *team, weft_status late, const uint64_t *epoch_word, uint64_t epoch,
                           unsigned char *marks, char *text, size_t bytes)
{
    char list[WEFTI_PE_LIST_BYTES];
    const char *fault = NULL;
    unsigned char named = 1;
    int culprit = -1;
    int is_sync = epoch_word == &team->epochs->sync;
    if (is_sync || (epoch_word == &team->epochs->agree && !team->counted)) {
        fault = "came but did not go on, or gave up";
        culprit = mark_stuck(team, is_sync, epoch, marks);
    }
    int ended = culprit >= 0 ? mark_ended(team->world, marks) : -1;
    const int is_stuck = ended >= 0;
    if (!is_stuck && (culprit < 0 || late == WEFT_ERR_PEER)) {
        ended = mark_only(team, wefti_world_is_lost, marks);
    }
    if (ended >= 0) {
        const int is_silent = wefti_world_is_unreachable(team->world, ended);
        fault =
            is_silent ? "came, but became unreachable before all were done" : "came, but ended before all were done";
        named = is_stuck ? (is_silent ? MARK_UNREACHABLE : MARK_ENDED) : MARK_LATE;
        culprit = ended;
    }
    if (culprit < 0) {
        fault = "came, but left the world before all were done";
        culprit = mark_only(team, wefti_world_has_left, marks);
    }
    (void)wefti_pe_list_text(marks, (int)team->world->view.pes, named, list);
    (void)snprintf(text, bytes, "%s %s", culprit >= 0 ? list : "all members",
                   culprit >= 0 ? fault : "came, but too late");
}

/* Name those for whom a collective could not end, as this thread's error: its status. */
static weft_status name_culprits(const weft_team *team, const char *call, const uint64_t *epoch_word, uint64_t epoch)
{
    const weft_world *world = team->world;
    char text[3 * WEFTI_PE_LIST_BYTES + 64] = "some PE did not arrive";
    char limit[WEFTI_LIMIT_BYTES];
    const weft_status late = wefti_world_late(world);
    (void)wefti_world_limit_text(world, limit); /* of the wait that has failed: what follows waits, too */
    unsigned char *marks = wefti_alloc_zeroed(world->view.pes, 1);
    if (late == WEFT_ERR_PEER) {
        wefti_world_await_all_lost(world);
    }
    if (marks != NULL) {
        find_silent(team);
        int lowest = mark_behind(team, epoch_word, epoch, marks);
        if (lowest >= 0 && name_elsewhere(team, call, epoch_word, marks) >= 0) {
            wefti_free(marks);
            return WEFT_ERR_MISMATCH;
        }
        if (lowest >= 0 && (late != WEFT_ERR_PEER || keep_gone(team, marks))) {
            describe_behind(world, marks, text, sizeof text);
        } else {
            describe_stuck(team, late, epoch_word, epoch, marks, text, sizeof text);
        }
        wefti_free(marks);
    }
    return wefti_error(late, "%s: world \"%s\": %s %s", call, world->name, text, limit);
}

void wefti_team_warn(const weft_team *team, const char *call, const uint64_t *epoch_word, uint64_t epoch)
{
    const weft_world *world = team->world;
    char list[WEFTI_PE_LIST_BYTES] = "";
    unsigned char *marks = wefti_alloc_zeroed(world->view.pes, 1);
    int count = 0;
    if (marks != NULL) {
        find_silent(team);
        (void)mark_behind(team, epoch_word, epoch, marks);
        count = wefti_pe_list_text(marks, (int)world->view.pes, 1, list);
    }
    wefti_free(marks);
    wefti_log(WEFTI_LOG_WARN, "world \"%s\" PE %u: %s has waited for %.3g s for %s", world->name, world->view.pe, call,
              (double)world->warn_ns * 1e-9, count > 0 ? list : "members that have come to go on");
}

/* The thread's last error is why. */
static weft_status end_team(weft_team *team, weft_status status)
{
    team->dead = status;
    (void)snprintf(team->dead_text, sizeof team->dead_text, "%s", weft_last_error());
    return status;
}

weft_status wefti_team_quiet(weft_team *team)
{
    const weft_status status = weft_quiet(team->world);
    return status == WEFT_OK ? WEFT_OK : end_team(team, status);
}

/* How many members are so. */
static int count_those(const weft_team *team, int (*is_so)(const weft_world *world, int pe))
{
    int count = 0;
    for (int i = 0; i < team->pes; i++) {
        count += is_so(team->world, wefti_member(team, i)) != 0;
    }
    return count;
}

/* A member that has been asked for something is gone, which is this thread's error. One that has left may have met
 * another that is lost, of which this PE is told soon: then that one is named. At most a deadline. */
static weft_status blame_lost(weft_team *team, const char *call, const uint64_t *epoch_word, uint64_t epoch)
{
    if (!team->world->knows_fates || count_those(team, wefti_world_has_left) == 0) {
        return WEFT_ERR_PEER;
    }
    const uint64_t most = team->world->deadline_ns < LOST_KNOWN_NS ? team->world->deadline_ns : LOST_KNOWN_NS;
    for (uint64_t waited = 0; waited < most; waited += LOST_LOOK_NS) {
        if (count_those(team, wefti_world_is_lost) > 0) {
            *wefti_thread_is_hopeless() = 1;
            return name_culprits(team, call, epoch_word, epoch);
        }
        wefti_os_sleep_ns(LOST_LOOK_NS);
        WEFT_TRY(wefti_world_check(team->world, call));
    }
    return WEFT_ERR_PEER;
}

weft_status wefti_team_fail(weft_team *team, weft_status status, const char *call, const uint64_t *epoch_word,
                            uint64_t epoch)
{
    if (status == WEFT_ERR_PEER) {
        weft_status fault =
            wefti_world_check(team->world, call); /* a member that aborts the world may be gone at once */
        status = fault != WEFT_OK ? fault : blame_lost(team, call, epoch_word, epoch);
    }
    if (status == WEFT_ERR_TIMEOUT) {
        status = name_culprits(team, call, epoch_word, epoch);
    }
    return end_team(team, status);
}

uint64_t wefti_team_giving_up(void)
{
    return WEFTI_GIVEN_UP | (*wefti_thread_is_hopeless() ? WEFTI_GIVEN_UP_FOR_GOOD : 0);
}

weft_status wefti_team_fail_alike(weft_team *team, uint64_t word, const char *call, const uint64_t *epoch_word,
                                  uint64_t epoch)
{
    *wefti_thread_is_hopeless() = (word & WEFTI_GIVEN_UP_FOR_GOOD) != 0;
    return wefti_team_fail(team, WEFT_ERR_TIMEOUT, call, epoch_word, epoch);
}
