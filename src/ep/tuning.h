/* ep/tuning.h: the one tuning table of expert parallelism. */
#ifndef WEFTI_EP_TUNING_H
#define WEFTI_EP_TUNING_H

#include <stdint.h>

#include "weft/status.h"
#include "weft_ep.h"

/* What must be equal on all ranks, X(field, id of its row in WEFTI_ENV_TABLE, how it is read, another value than the
 * default's, which tests give to one rank). This table is the only place: the fields, how they are read (a number, or
 * by a function of tuning.c), their comparison by all ranks and its test follow from it. */
#define WEFTI_EP_SETTINGS_TABLE(X)                                                                                     \
    /* counts of routings go to all ranks, else through the owners; the results are the same */                        \
    X(counts_direct, EP_COUNTS, read_counts, "owners")                                                                 \
    /* on GPUs: the most ranks for which the kernels for few are taken */                                              \
    X(few_ranks, EP_FEW_RANKS, wefti_env_count, "1")                                                                   \
    /* calls that count as made */                                                                                     \
    X(first_call, EP_FIRST_CALL, wefti_env_count, "7")                                                                 \
    /* rings between two ranks of different domains */                                                                 \
    X(channels, EP_CHANNELS, wefti_env_count, "4")                                                                     \
    /* rows of a chunk of these rings; 0: up to 4 */                                                                   \
    X(chunk_rows, EP_CHUNK_ROWS, wefti_env_count, "1")                                                                 \
    /* tokens in slots, times ranks of the largest domain, that go directly between domains */                         \
    X(direct, EP_DIRECT, wefti_env_count, "1")

/* What is each rank's own, X(field, id, how it is read): likewise, and compared with nobody's. */
#define WEFTI_EP_OWN_SETTINGS_TABLE(X)                                                                                 \
    /* not 0: GPUs' rings of this host are stored to by kernels */                                                     \
    X(maps, EP_MAPPED, wefti_env_count)

/* What a group does by its size, or as variables say. */
typedef struct wefti_ep_settings {
#define WEFTI_EP_SETTING(field, ...) uint64_t field;
    WEFTI_EP_SETTINGS_TABLE(WEFTI_EP_SETTING)
    WEFTI_EP_OWN_SETTINGS_TABLE(WEFTI_EP_SETTING)
#undef WEFTI_EP_SETTING
} wefti_ep_settings;

/* For a valid config of so many ranks: by its size, unless variables say otherwise. */
weft_status wefti_ep_settings_read(wefti_ep_settings *settings, int ranks, const weft_ep_config *config);

#endif
