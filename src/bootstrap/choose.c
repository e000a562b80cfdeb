/* bootstrap/choose.c: the choice of the backend. */
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "os/os.h"

/* Only all three say where the others are. */
static int is_env_complete(void)
{
    return wefti_env_is_set(WEFTI_ENV_RANK) && wefti_env_is_set(WEFTI_ENV_WORLD_SIZE) &&
           wefti_env_is_set(WEFTI_ENV_MASTER_ADDR);
}

static void warn_of_lonely_ranks(const weft_world_config *config)
{
    if (config->pes != 1 && wefti_env_is_set(WEFTI_ENV_RANK) && wefti_env_is_set(WEFTI_ENV_WORLD_SIZE) &&
        strcmp(wefti_env_word(WEFTI_ENV_WORLD_SIZE), "1") != 0) {
        wefti_log(WEFTI_LOG_WARN,
                  "RANK and WORLD_SIZE are set and MASTER_ADDR is not: this process makes a world of one PE");
    }
}

/* NULL after an error. */
static const wefti_bootstrap_ops *by_pmix(void)
{
#ifdef WEFT_HAVE_PMIX
    return &wefti_bootstrap_pmix;
#else
    (void)wefti_error(WEFT_ERR_ARGUMENT,
                      "a launcher with PMIx started this process, and this build of weft has no PMIx: "
                      "install the package libpmix-dev and build again, or start the program with weftrun or torchrun");
    return NULL;
#endif
}

/* What the launcher's variables say; NULL after an error. */
static const wefti_bootstrap_ops *choose_by_launcher(const weft_world_config *config)
{
    if (wefti_env_is_set(WEFTI_ENV_LOCAL_JOB) && config->pes != 1) {
        return &wefti_bootstrap_local;
    }
    if (is_env_complete() && config->pes != 1) {
        return &wefti_bootstrap_env;
    }
    if (wefti_env_is_set(WEFTI_ENV_PMIX_RANK) && config->pes != 1) {
        return by_pmix();
    }
    if (config->pes <= 1) {
        warn_of_lonely_ranks(config);
        return &wefti_bootstrap_self;
    }
    (void)wefti_error(
        WEFT_ERR_ARGUMENT,
        "PE %d does not know how to find the other %d PEs of its world: start the program with weftrun or torchrun, or "
        "set config.bootstrap (WEFT_BOOTSTRAP_UID, _THREADS or _CALLBACK) and what belongs to it",
        config->pe, config->pes - 1);
    return NULL;
}

/* What WEFT_BOOTSTRAP says, by the one table; -1 after an error, which lists what it may say. */
static int read_kind(void)
{
    static const struct {
        const char *word;
        weft_bootstrap_kind kind;
    } rows[] = {
#define ROW(name, value, word, text) {word, name},
        WEFT_BOOTSTRAP_TABLE(ROW)
#undef ROW
    };
    const char *said = wefti_env_word(WEFTI_ENV_BOOTSTRAP);
    char words[80] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].word == NULL) {
            continue;
        }
        if (strcmp(said, rows[i].word) == 0) {
            return (int)rows[i].kind;
        }
        used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", used == 0 ? "" : ", ", rows[i].word);
    }
    (void)wefti_error(WEFT_ERR_ARGUMENT, "WEFT_BOOTSTRAP=\"%s\" is not a bootstrap: give one of %s", said, words);
    return -1;
}

/* NULL after an error. */
static const wefti_bootstrap_ops *choose(const weft_world_config *config)
{
    int kind = config->bootstrap == WEFT_BOOTSTRAP_AUTO ? read_kind() : (int)config->bootstrap;
    switch (kind) {
    case -1:
        return NULL;
    case WEFT_BOOTSTRAP_AUTO:
        return choose_by_launcher(config);
    case WEFT_BOOTSTRAP_LOCAL:
        return &wefti_bootstrap_local;
    case WEFT_BOOTSTRAP_THREADS:
        return &wefti_bootstrap_threads;
    case WEFT_BOOTSTRAP_UID:
        return &wefti_bootstrap_uid;
    case WEFT_BOOTSTRAP_CALLBACK:
        return &wefti_bootstrap_callback;
    case WEFT_BOOTSTRAP_ENV:
        return &wefti_bootstrap_env;
    case WEFT_BOOTSTRAP_PMIX:
        return by_pmix();
    }
    (void)wefti_error(WEFT_ERR_ARGUMENT, "config.bootstrap %d is none of WEFT_BOOTSTRAP_TABLE", kind);
    return NULL;
}

weft_status wefti_bootstrap_open(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    memset(bootstrap, 0, sizeof *bootstrap);
    if (config->pes < 0 || config->pe < 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "config.pe %d of config.pes %d: neither may be negative", config->pe,
                           config->pes);
    }
    if (config->name != NULL && strlen(config->name) >= WEFTI_BOOTSTRAP_NAME_BYTES) {
        return wefti_error(WEFT_ERR_ARGUMENT, "config.name \"%.80s...\" is longer than %d bytes", config->name,
                           WEFTI_BOOTSTRAP_NAME_BYTES - 1);
    }
    const wefti_bootstrap_ops *ops = choose(config);
    if (ops == NULL) {
        return WEFT_ERR_ARGUMENT;
    }
    bootstrap->deadline_ns = config->deadline_ns;
    weft_status status = ops->open(config, bootstrap);
    if (status == WEFT_OK) {
        bootstrap->ops = bootstrap->ops == NULL ? ops : bootstrap->ops;
        bootstrap->until_ns = wefti_os_now_ns() + config->deadline_ns;
    }
    return status;
}
