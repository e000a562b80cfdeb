/* Which transports between nodes this PE can use, those of this build that WEFT_TRANSPORT allows, and who sees to
 * them. */
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "world/world.h"

typedef struct network {
    const char *name;
    uint32_t bit;
} network;

/* `map` is not between nodes and is always there: it may be named, and means nothing more. */
static const network networks[] = {
    {"map", 0},
    {"ofi", WEFTI_NETWORK_OFI},
};

static uint32_t of_this_build(void)
{
#if defined(WEFT_SIM)
    return WEFTI_NETWORK_SIM;
#elif defined(WEFT_HAVE_OFI)
    return WEFTI_NETWORK_OFI;
#else
    return 0;
#endif
}

static const network *find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        if (strlen(networks[i].name) == length && memcmp(networks[i].name, name, length) == 0) {
            return &networks[i];
        }
    }
    return NULL;
}

/* The networks of a list with commas. */
static weft_status read_list(const char *list, uint32_t *listed)
{
    *listed = 0;
    for (int is_more = 1; is_more; list++) {
        const size_t length = strcspn(list, ",");
        const network *found = find(list, length);
        if (found == NULL) {
            return wefti_error(
                WEFT_ERR_ARGUMENT,
                "weft_world_create: WEFT_TRANSPORT names \"%.*s\"; give a list of map and ofi, or ^ and what "
                "is not to be used",
                (int)length, list);
        }
        *listed |= found->bit;
        list += length;
        is_more = *list == ',';
    }
    return WEFT_OK;
}

weft_status wefti_world_networks(uint32_t *networks_bits)
{
    const char *word = wefti_env_word(WEFTI_ENV_TRANSPORT);
    uint32_t listed;
    if (*word == '\0') {
        *networks_bits = of_this_build();
        return WEFT_OK;
    }
    WEFT_TRY(read_list(word + (*word == '^'), &listed));
    *networks_bits = of_this_build() & ((*word == '^' ? ~listed : listed) | WEFTI_NETWORK_SIM);
    return WEFT_OK;
}

weft_status wefti_world_progress(int *is_inline)
{
    const char *word = wefti_env_word(WEFTI_ENV_PROGRESS);
    *is_inline = strcmp(word, "inline") == 0;
    return *is_inline || strcmp(word, "thread") == 0 || strcmp(word, "auto") == 0
               ? WEFT_OK
               : wefti_error(WEFT_ERR_ARGUMENT,
                             "weft_world_create: WEFT_PROGRESS is \"%s\"; give thread, inline or auto", word);
}
