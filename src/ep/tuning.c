#include "ep/tuning.h"

#include <stdint.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"

/* Counts through the owners cost a hop more; directly, each rank reads R (R + E) words, which beyond so many takes longer
 * than the hop. */
#define DIRECT_WORDS_MAX 4096

weft_status wefti_ep_counts_are_direct(int ranks, int experts, int *direct)
{
    const char *word = wefti_env_word(WEFTI_ENV_EP_COUNTS);
    if (*word == '\0') {
        *direct = (int64_t)ranks * (ranks + experts) <= DIRECT_WORDS_MAX;
        return WEFT_OK;
    }
    if (strcmp(word, "direct") != 0 && strcmp(word, "owners") != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_create: WEFT_EP_COUNTS is \"%s\"; give owners or direct", word);
    }
    *direct = strcmp(word, "direct") == 0;
    return WEFT_OK;
}
