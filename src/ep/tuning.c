#include "ep/tuning.h"

#include <stdint.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"

/* Counts through the owners cost a hop more; directly, each rank reads R (R + E) words, which beyond so many takes
 * longer than the hop. */
#define DIRECT_WORDS_MAX 4096

int wefti_ep_counts_by_size(int ranks, int experts)
{
    return (int64_t)ranks * (ranks + experts) <= DIRECT_WORDS_MAX;
}

weft_status wefti_ep_counts_choose(int ranks, int experts, int *direct)
{
    const char *word = wefti_env_word(WEFTI_ENV_EP_COUNTS);
    *direct = *word == '\0' ? wefti_ep_counts_by_size(ranks, experts) : strcmp(word, "direct") == 0;
    if (*word != '\0' && !*direct && strcmp(word, "owners") != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_ep_create: WEFT_EP_COUNTS is \"%s\"; give owners or direct", word);
    }
    return WEFT_OK;
}
