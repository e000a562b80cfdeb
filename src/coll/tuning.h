/* coll/tuning.h: which algorithm a collective takes, by the team's size and the message's. */
#ifndef WEFTI_COLL_TUNING_H
#define WEFTI_COLL_TUNING_H

#include <stddef.h>

#include "weft/status.h"

/* X(id, name) */
#define WEFTI_COLLECTIVE_TABLE(X)                                                                                      \
    X(BROADCAST, "broadcast")                                                                                          \
    X(COLLECT, "collect")                                                                                              \
    X(FCOLLECT, "fcollect")                                                                                            \
    X(ALLTOALL, "alltoall")                                                                                            \
    X(ALLTOALLS, "alltoalls")                                                                                          \
    X(REDUCE, "reduce")                                                                                                \
    X(REDUCE_SCATTER, "reduce_scatter")                                                                                \
    X(SCAN, "scan")

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
    X(SLICES, "slices", "each member does its slice for all, from and to the users' buffers")

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

/* The choices of a team of `pes` whose slots hold `slot_data_bytes`, by the table and by WEFT_COLL. `crowded`: its members
 * share processors of one node. */
weft_status wefti_tuning_init(wefti_tuning *tuning, unsigned pes, int crowded, size_t slot_data_bytes);

static inline wefti_algorithm wefti_tuning_choose(const wefti_tuning *tuning, wefti_collective collective, size_t bytes)
{
    const wefti_choice *choice = tuning->choices[collective];
    while (bytes > choice->bytes_max) {
        choice++;
    }
    return choice->algorithm;
}

#endif
