#include "ep/tuning.h"

#include <stdint.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"

/* Counts through the owners cost a hop more; directly, each rank reads R (R + E) words, which beyond so many takes
 * longer than the hop. */
#define DIRECT_WORDS_MAX 4096

static weft_status read_counts(wefti_env_id id, uint64_t *direct)
{
    const char *word = wefti_env_word(id);
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
#define READ_OWN(field, id, read) WEFT_TRY(read(WEFTI_ENV_##id, &settings->field));
#define READ(field, id, read, other) READ_OWN(field, id, read)
    WEFTI_EP_SETTINGS_TABLE(READ)
    WEFTI_EP_OWN_SETTINGS_TABLE(READ_OWN)
#undef READ
#undef READ_OWN
    return WEFT_OK;
}
