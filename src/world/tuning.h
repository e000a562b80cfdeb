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

/* X(id, name, what it does) */
#define WEFTI_ALGORITHM_TABLE(X)                                                                                       \
    X(PUSH, "push", "the data goes with its flag into the receivers' scratch")                                         \
    X(PULL, "pull", "receivers read the senders' buffers once they are ready")                                         \
    X(DOUBLING, "doubling", "through scratch, with a partner at twice the distance each round")                        \
    X(PAIRS, "pairs", "of two members the later one moves both blocks, from source to dest")                           \
    X(DIRECT, "direct", "each writes into the receivers' buffers, then all meet once")                                 \
    X(SLICES, "slices", "each member does its slice for all, from and to the users' buffers")                          \
    X(ROUNDS, "rounds", "flags to members at twice the distance each round")                                           \
    X(COUNT, "count", "all add themselves to one word of the first member and look at it")

typedef enum wefti_algorithm {
#define WEFTI_ALGORITHM_ENUM(id, name, text) WEFTI_ALGORITHM_##id,
    WEFTI_ALGORITHM_TABLE(WEFTI_ALGORITHM_ENUM)
#undef WEFTI_ALGORITHM_ENUM
        WEFTI_ALGORITHMS
} wefti_algorithm;

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
