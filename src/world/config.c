/* What a caller left open in a world's config, from the environment and the defaults. */
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/sized.h"
#include "world/world.h"

#define HEAP_BYTES_MAX ((uint64_t)1 << 47) /* no process has more addresses */
#define PES_MAX (1 << 24)
#define MEETING_NS ((uint64_t)60 * 1000000000) /* where no deadline can be read */
#define SILENCE_NS_MIN ((uint64_t)2 * 1000000000)
#define DEADLINE_NS_MAX ((uint64_t)1000000 * 1000000000) /* eleven days */
#define MEETING_NS_MAX                                                                                                 \
    ((uint64_t)1 << 61) /* 73 years: what a bootstrap, which adds it to a time, takes for no deadline */

static int is_bootstrap(weft_bootstrap_kind kind)
{
    switch (kind) {
#define IS_BOOTSTRAP(name, value, word, text) case name:
        WEFT_BOOTSTRAP_TABLE(IS_BOOTSTRAP)
#undef IS_BOOTSTRAP
        return 1;
    }
    return 0;
}

/* What says how to meet the others. A number beyond the PEs is the bootstrap's to refuse: the others may say another
 * number of PEs, and must hear. */
static weft_status check_place(const weft_world_config *config)
{
    if (config->pes < 0 || config->pes > PES_MAX || config->pe < 0) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_world_create: config.pe %d of config.pes %d; give 0 <= pe < pes, or pes 0 when the "
                           "launcher knows both",
                           config->pe, config->pes);
    }
    if (config->name != NULL && (config->name[0] == '\0' || strlen(config->name) >= WEFTI_WORLD_NAME_BYTES)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_world_create: config.name has %zu bytes; give 1 to %d",
                           strlen(config->name), WEFTI_WORLD_NAME_BYTES - 1);
    }
    if (!is_bootstrap(config->bootstrap)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_world_create: config.bootstrap %d is no weft_bootstrap_kind",
                           (int)config->bootstrap);
    }
    return WEFT_OK;
}

/* A config of newer headers may have fields that this library does not know: it is refused, but its fields that are
 * known still say how to meet the others, who have to hear of it. */
static weft_status read_config(wefti_world_settings *settings, const weft_world_config *config)
{
    static const wefti_sized form = WEFTI_SIZED_FORM(weft_world_config, callback, "WEFT_WORLD_CONFIG_INIT");
    int is_known = config->size > sizeof *config && config->size <= WEFTI_SIZED_BYTES_MAX;
    if (is_known) {
        settings->config = *config;
        settings->can_meet = check_place(&settings->config) == WEFT_OK;
    }
    WEFTI_SIZED_TRY(&form, "weft_world_create", "config", config, &settings->config);
    settings->config = *config;
    settings->config.size = sizeof settings->config;
    WEFT_TRY(check_place(&settings->config));
    settings->can_meet = 1;
    return WEFT_OK;
}

static uint64_t bounded(uint64_t ns)
{
    return ns < MEETING_NS_MAX ? ns : MEETING_NS_MAX;
}

static weft_status resolve_times(wefti_world_settings *settings)
{
    weft_world_config *config = &settings->config;
    if (config->deadline_ns == 0) {
        WEFT_TRY(wefti_env_seconds_ns(WEFTI_ENV_DEADLINE, &config->deadline_ns));
    }
    if (config->warn_ns == 0) {
        WEFT_TRY(wefti_env_seconds_ns(WEFTI_ENV_WARN, &config->warn_ns));
    }
    WEFT_TRY(wefti_env_seconds_ns(WEFTI_ENV_SILENCE, &settings->silence_ns));
    if (settings->silence_ns < SILENCE_NS_MIN) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_world_create: WEFT_SILENCE is %.3g s; give 2 s at least, or inf: a sign of life comes "
                           "every second",
                           (double)settings->silence_ns * 1e-9);
    }
    if (config->deadline_ns == 0 || (config->deadline_ns > DEADLINE_NS_MAX && config->deadline_ns != WEFT_FOREVER)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_world_create: a deadline of %llu ns; give 1 ns to 1000000 s, or WEFT_FOREVER "
                           "(WEFT_DEADLINE=inf)",
                           (unsigned long long)config->deadline_ns);
    }
    settings->deadline_ns = config->deadline_ns;
    settings->warn_ns = config->warn_ns;
    config->deadline_ns = bounded(config->deadline_ns);
    config->warn_ns = bounded(config->warn_ns);
    return WEFT_OK;
}

static weft_status resolve_heap(wefti_world_settings *settings)
{
    settings->heap_max_bytes = settings->config.heap_max_bytes;
    settings->heap_bytes = settings->config.heap_bytes;
    if (settings->heap_max_bytes == 0) {
        WEFT_TRY(wefti_env_size(WEFTI_ENV_HEAP_MAX, &settings->heap_max_bytes));
    }
    if (settings->heap_bytes == 0) {
        WEFT_TRY(wefti_env_size(WEFTI_ENV_HEAP, &settings->heap_bytes));
    }
    if (settings->config.sparse_bytes > HEAP_BYTES_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_world_create: sparse_bytes %zu is more than a process has addresses; lower it",
                           settings->config.sparse_bytes);
    }
    if (settings->heap_max_bytes > HEAP_BYTES_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_world_create: heap_max_bytes %llu is more than a process has addresses; lower it or "
                           "WEFT_HEAP_MAX",
                           (unsigned long long)settings->heap_max_bytes);
    }
    if (settings->heap_max_bytes != 0 && settings->heap_bytes > settings->heap_max_bytes) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_world_create: heap_bytes %llu exceeds heap_max_bytes %llu; raise heap_max_bytes or "
                           "WEFT_HEAP_MAX",
                           (unsigned long long)settings->heap_bytes, (unsigned long long)settings->heap_max_bytes);
    }
    return WEFT_OK;
}

int wefti_world_link_domain(const weft_world *world, int pe)
{
    return world->link_domain != NULL ? world->link_domain[pe] : 0;
}

static weft_status resolve(wefti_world_settings *settings)
{
    WEFT_TRY(resolve_times(settings));
    WEFT_TRY(resolve_heap(settings));
    WEFT_TRY(wefti_preferences_read(&settings->preferences));
    WEFT_TRY(wefti_world_networks(&settings->networks));
    WEFT_TRY(wefti_world_progress(&settings->progress_inline));
    WEFT_TRY(wefti_env_count(WEFTI_ENV_TRACE_EVENTS, &settings->trace_events_max));
    WEFT_TRY(wefti_env_count(WEFTI_ENV_NVTX, &settings->tells_nvtx));
    WEFT_TRY(wefti_env_count(WEFTI_ENV_COUNTERS, &settings->prints_counters));
    return wefti_env_count(WEFTI_ENV_SPIN, &settings->spins);
}

weft_status wefti_world_settings_init(wefti_world_settings *settings, const weft_world_config *config)
{
    const weft_world_config standard = WEFT_WORLD_CONFIG_INIT;
    memset(settings, 0, sizeof *settings);
    weft_status status = read_config(settings, config == NULL ? &standard : config);
    if (settings->config.name == NULL) {
        settings->config.name = "world";
    }
    if (status == WEFT_OK) {
        status = resolve(settings);
    }
    if (settings->deadline_ns == 0) { /* it was not resolved */
        settings->config.deadline_ns = MEETING_NS;
    }
    return status;
}
