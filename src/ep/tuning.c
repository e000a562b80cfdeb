#include "ep/tuning.h"

#include <stdint.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"

/* Counts through the owners cost a hop more; directly, each rank reads R (R + E) words, which beyond so many takes
 * longer than the hop. */
#define DIRECT_WORDS_MAX 4096

static weft_status read_counts(int *direct)
{
    const char *word = wefti_env_word(WEFTI_ENV_EP_COUNTS);
    if (*word == '\0') {
        return WEFT_OK;
    }
    *direct = strcmp(word, "direct") == 0;
    return *direct || strcmp(word, "owners") == 0
               ? WEFT_OK
               : wefti_error(WEFT_ERR_ARGUMENT, "WEFT_EP_COUNTS is \"%s\"; give owners or direct", word);
}

weft_status wefti_ep_settings_read(wefti_ep_settings *settings, int ranks, const weft_ep_config *config)
{
    settings->counts_direct = (int64_t)ranks * (ranks + config->experts) <= DIRECT_WORDS_MAX;
    WEFT_TRY(read_counts(&settings->counts_direct));
    WEFT_TRY(wefti_env_count(WEFTI_ENV_EP_FEW_RANKS, &settings->few_ranks));
    WEFT_TRY(wefti_env_count(WEFTI_ENV_EP_FIRST_CALL, &settings->first_call));
    WEFT_TRY(wefti_env_count(WEFTI_ENV_EP_CHANNELS, &settings->channels));
    WEFT_TRY(wefti_env_count(WEFTI_ENV_EP_CHUNK_ROWS, &settings->chunk_rows));
    WEFT_TRY(wefti_env_count(WEFTI_ENV_EP_DIRECT, &settings->direct));
    return wefti_env_count(WEFTI_ENV_EP_MAPPED, &settings->maps);
}
