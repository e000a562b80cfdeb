/* bootstrap/plugin/plugin.c: somebody else's library that knows how the processes find each other, by its path. */
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/library.h"
#include "bootstrap/collective/collective.h"

#define STRING_OF(name) #name
#define STRING(name) STRING_OF(name)
#define SYMBOL STRING(WEFT_BOOTSTRAP_PLUGIN_SYMBOL)

typedef struct plugin {
    void *library;
    weft_bootstrap_plugin ops;
    void *state;
} plugin;

/* The path, of the config or of a variable, which a process with more rights than who started it does not read. */
static weft_status find_path(const weft_world_config *config, const char **path)
{
    *path = config->bootstrap_plugin != NULL ? config->bootstrap_plugin : wefti_env_word(WEFTI_ENV_BOOTSTRAP_PLUGIN);
    if (**path == '\0') {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "the bootstrap \"plugin\" needs the path of a library: config.bootstrap_plugin, or "
                           "WEFT_BOOTSTRAP_PLUGIN");
    }
    if (config->bootstrap_plugin == NULL && wefti_process_is_privileged()) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "WEFT_BOOTSTRAP_PLUGIN is not followed in a program that has more rights than its user "
                           "(setuid, capabilities): the program itself can name it, in config.bootstrap_plugin");
    }
    return WEFT_OK;
}

static weft_status check_ops(const char *path, const weft_bootstrap_plugin *given, weft_bootstrap_plugin *ops)
{
    if (given->version != WEFT_BOOTSTRAP_PLUGIN_VERSION || given->size < sizeof *ops) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "the plugin %.200s has version %u of weft_bootstrap_plugin (%zu bytes), and this is version "
                           "%u (%zu bytes): compile it again",
                           path, given->version, given->size, WEFT_BOOTSTRAP_PLUGIN_VERSION, sizeof *ops);
    }
    *ops = *given;
    if (ops->open == NULL || ops->allgather == NULL || ops->close == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "the plugin %.200s lacks open, allgather or close", path);
    }
    return WEFT_OK;
}

static weft_status load(const char *path, plugin *p)
{
    const weft_bootstrap_plugin *given;
    p->library = wefti_library_open(path);
    if (p->library == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "the plugin %.200s cannot be loaded: %.200s", path,
                           wefti_library_error());
    }
    if (!wefti_library_find(p->library, SYMBOL, &given)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "the library %.200s is no bootstrap: it exports no " SYMBOL, path);
    }
    return check_ops(path, given, &p->ops);
}

static int allgather(void *context, const void *mine, void *all, size_t bytes)
{
    const plugin *p = context;
    return p->ops.allgather(p->state, mine, all, bytes);
}

static weft_status meet(const weft_world_config *config, plugin *p, const char *path, wefti_bootstrap *bootstrap)
{
    wefti_collective collective = {.name = "the plugin", .context = p, .allgather = allgather};
    const int code =
        p->ops.open(config->bootstrap_argument, config->deadline_ns, &p->state, &collective.pe, &collective.pes);
    if (code != 0) {
        return wefti_error(WEFT_ERR_SYSTEM, "the plugin %.200s does not find the other processes: its open returned %d",
                           path, code);
    }
    weft_status status = wefti_collective_open(&collective, config, bootstrap);
    p->ops.close(p->state);
    return status;
}

static weft_status plugin_open(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    plugin p = {0};
    const char *path;
    WEFT_TRY(find_path(config, &path));
    weft_status status = load(path, &p);
    if (status == WEFT_OK) {
        return meet(config, &p, path, bootstrap); /* it stays loaded: what it has loaded may not be unloadable */
    }
    wefti_library_close(p.library);
    return status;
}

const wefti_bootstrap_ops wefti_bootstrap_plugin = {.name = "plugin", .open = plugin_open};
