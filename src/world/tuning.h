/* world/tuning.h: which algorithm a collective takes, by the team's size and members and the message's bytes. */
#ifndef WEFTI_WORLD_TUNING_H
#define WEFTI_WORLD_TUNING_H

#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"
#include "weft/team.h"

/* X(id, name). A barrier is a quiet and a sync. alltoall_ready: into memory that is ready before any member calls. */
#define WEFTI_COLLECTIVE_TABLE(X)                                                                                      \
    X(BROADCAST, "broadcast")                                                                                          \
    X(COLLECT, "collect")                                                                                              \
    X(FCOLLECT, "fcollect")                                                                                            \
    X(ALLTOALL, "alltoall")                                                                                            \
    X(ALLTOALLS, "alltoalls")                                                                                          \
    X(REDUCE, "reduce")                                                                                                \
    X(REDUCE_SCATTER, "reduce_scatter")                                                                                \
    X(SCAN, "scan")                                                                                                    \
    X(SYNC, "sync")                                                                                                    \
    X(ALLTOALL_READY, "alltoall_ready")

typedef enum wefti_collective {
#define WEFTI_COLLECTIVE_ENUM(id, name) WEFTI_COLL_##id,
    WEFTI_COLLECTIVE_TABLE(WEFTI_COLLECTIVE_ENUM)
#undef WEFTI_COLLECTIVE_ENUM
        WEFTI_COLLECTIVES
} wefti_collective;

/* X(id, name, what its data goes through, which teams can run it). Data goes through SLOTS of the team's scratch, which
 * bound a message, or through the users' BUFFERS (also where there is none). Teams: ALL, those of NEAR members, or
 * those of its RULE. */
#define WEFTI_ALGORITHM_TABLE(X)                                                                                       \
    /* the data goes with its flag into the receivers' scratch */                                                      \
    X(PUSH, "push", SLOTS, ALL)                                                                                        \
    /* receivers read the senders' buffers once they are ready */                                                      \
    X(PULL, "pull", BUFFERS, ALL)                                                                                      \
    /* through scratch, with a partner at twice the distance each round */                                             \
    X(DOUBLING, "doubling", SLOTS, ALL)                                                                                \
    /* of two members the later one moves both blocks, from source to dest */                                          \
    X(PAIRS, "pairs", BUFFERS, RULE)                                                                                   \
    /* each writes into the receivers' buffers, then all meet once */                                                  \
    X(DIRECT, "direct", BUFFERS, NEAR)                                                                                 \
    /* each member does its slice for all, from and to the users' buffers */                                           \
    X(SLICES, "slices", BUFFERS, ALL)                                                                                  \
    /* flags to members at twice the distance each round */                                                            \
    X(ROUNDS, "rounds", BUFFERS, ALL)                                                                                  \
    /* all add themselves to one word of the first member and look at it */                                            \
    X(COUNT, "count", BUFFERS, NEAR)

typedef enum wefti_algorithm {
#define WEFTI_ALGORITHM_ENUM(id, name, data, teams) WEFTI_ALGORITHM_##id,
    WEFTI_ALGORITHM_TABLE(WEFTI_ALGORITHM_ENUM)
#undef WEFTI_ALGORITHM_ENUM
        WEFTI_ALGORITHMS
} wefti_algorithm;

/* When an algorithm is chosen, and the only place that says so on the host. X(collective, algorithm, the most members,
 * the most bytes, which teams): of a collective's rules the first that holds, so one begins where those before end.
 *   members  ANY_PES, a number, or PAIRS_PES_MAX, what `pairs` can do
 *   bytes    what they count: of a broadcast the message, of an alltoall a pair's block, else a member's contribution.
 *            A number, ANY_BYTES, SLOT_BYTES (what a slot holds) or WHOLE_BYTES (what a slot holds that has a block for
 *            each member); one whose data goes through slots never has more than a slot holds
 *   teams    ANYWHERE; NEAR: whose members share memory; OVERSUBSCRIBED: whose members also share processors, where a
 *            member that waits goes on only after the others have run, so that a call costs as many such rounds as it
 *            has waits one behind the other, however many flags it stores
 * A member of a collect sends its block, or where it lies. */
#define WEFTI_RULE_TABLE(X)                                                                                            \
    X(BROADCAST, PUSH, ANY_PES, 2048, ANYWHERE)                                                                        \
    X(BROADCAST, PULL, ANY_PES, ANY_BYTES, ANYWHERE)                                                                   \
    X(COLLECT, PUSH, ANY_PES, ANY_BYTES, ANYWHERE)                                                                     \
    X(FCOLLECT, PUSH, ANY_PES, 2048, ANYWHERE)                                                                         \
    X(FCOLLECT, PULL, ANY_PES, ANY_BYTES, ANYWHERE)                                                                    \
    X(ALLTOALL, PUSH, ANY_PES, WHOLE_BYTES, OVERSUBSCRIBED)                                                            \
    X(ALLTOALL, PAIRS, PAIRS_PES_MAX, 16384, OVERSUBSCRIBED)                                                           \
    X(ALLTOALL, PUSH, ANY_PES, 2048, ANYWHERE)                                                                         \
    X(ALLTOALL, PULL, ANY_PES, ANY_BYTES, ANYWHERE)                                                                    \
    X(ALLTOALLS, PUSH, ANY_PES, SLOT_BYTES, ANYWHERE)                                                                  \
    X(ALLTOALLS, PULL, ANY_PES, ANY_BYTES, ANYWHERE)                                                                   \
    X(REDUCE, PUSH, 32, SLOT_BYTES, ANYWHERE)                                                                          \
    X(REDUCE, DOUBLING, ANY_PES, SLOT_BYTES, ANYWHERE)                                                                 \
    X(REDUCE, SLICES, ANY_PES, ANY_BYTES, ANYWHERE)                                                                    \
    X(REDUCE_SCATTER, PUSH, ANY_PES, 2048, ANYWHERE)                                                                   \
    X(REDUCE_SCATTER, PULL, ANY_PES, ANY_BYTES, ANYWHERE)                                                              \
    X(SCAN, PUSH, ANY_PES, 2048, ANYWHERE)                                                                             \
    X(SCAN, SLICES, ANY_PES, ANY_BYTES, ANYWHERE)                                                                      \
    X(SYNC, COUNT, ANY_PES, ANY_BYTES, OVERSUBSCRIBED)                                                                 \
    X(SYNC, ROUNDS, ANY_PES, ANY_BYTES, ANYWHERE)                                                                      \
    X(ALLTOALL_READY, PUSH, ANY_PES, WHOLE_BYTES, OVERSUBSCRIBED)                                                      \
    X(ALLTOALL_READY, PUSH, ANY_PES, WEFTI_COLL_LINE_DATA_BYTES, ANYWHERE)                                             \
    X(ALLTOALL_READY, DIRECT, ANY_PES, ANY_BYTES, NEAR)                                                                \
    X(ALLTOALL_READY, PULL, ANY_PES, ANY_BYTES, ANYWHERE)

/* Of the rules that one team meets: not those for other members, or that reach no further than one before. */
#define WEFTI_CHOICES_MAX 4

/* What one team does: for each collective the first choice whose bytes_max holds the message. The last always does. */
typedef struct wefti_choice {
    size_t bytes_max;
    wefti_algorithm algorithm;
} wefti_choice;

typedef struct wefti_tuning {
    wefti_choice choices[WEFTI_COLLECTIVES][WEFTI_CHOICES_MAX];
} wefti_tuning;

const char *wefti_algorithm_name(wefti_algorithm algorithm);

/* The algorithm at `place` among those of a collective, in the order of its rules; WEFTI_ALGORITHMS behind the last. */
wefti_algorithm wefti_algorithm_of(wefti_collective collective, int place);

/* What WEFT_COLL wants first: by collective an algorithm, or WEFTI_ALGORITHMS for none. */
typedef struct wefti_preferences {
    unsigned char algorithms[WEFTI_COLLECTIVES];
} wefti_preferences;

/* Read WEFT_COLL. */
weft_status wefti_preferences_read(wefti_preferences *preferences);
/* A number that differs when preferences do. */
uint64_t wefti_preferences_key(const wefti_preferences *preferences);

/* What a team of this world does, by the table and the world's preferences; the same on all members. Its members, and
 * whether they share processors, are known. */
void wefti_tuning_init(wefti_tuning *tuning, const weft_team *team);

/* Find out whether the members of a new team share processors, and how they sync. The same on all of them. */
void wefti_team_set_meeting(weft_team *team);

static inline wefti_algorithm wefti_tuning_choose(const wefti_tuning *tuning, wefti_collective collective, size_t bytes)
{
    const wefti_choice *choice = tuning->choices[collective];
    while (bytes > choice->bytes_max) {
        choice++;
    }
    return choice->algorithm;
}

#endif
