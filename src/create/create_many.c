/* Several PEs from one thread: a temporary thread for each but the first. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "os/os.h"
#include "weft/world.h"

typedef struct one_pe {
    const weft_world_config *config;
    const wefti_headers *headers;
    weft_world *world;
    weft_status status;
    char text[WEFTI_ERROR_BYTES];
    wefti_os_thread *thread;
} one_pe;

static void create_one(void *argument)
{
    one_pe *one = argument;
    one->status = wefti_world_create(one->config, &one->world, one->headers);
    if (one->status != WEFT_OK) {
        snprintf(one->text, sizeof one->text, "%s", weft_last_error());
    }
}

static void undo(one_pe *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void)weft_world_destroy(all[i].world);
    }
}

weft_status wefti_world_create_many(const weft_world_config *configs, size_t count, weft_world **worlds,
                                    const wefti_headers *headers)
{
    if (configs == NULL || worlds == NULL) {
        return wefti_error_null("weft_world_create_many", configs == NULL ? "configs" : "worlds");
    }
    if (count == 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "weft_world_create_many: count is 0; give 1 or more");
    }
    one_pe *all = wefti_alloc_zeroed(count, sizeof *all);
    if (all == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_world_create_many: no memory for %zu PEs", count);
    }
    weft_status status = WEFT_OK;
    size_t started = 0;
    for (; started < count && status == WEFT_OK; started++) {
        all[started].config = &configs[started];
        all[started].headers = headers;
        if (started > 0) {
            status = wefti_os_thread_start(&all[started].thread, create_one, &all[started]);
        }
    }
    /* Also after a failed start: those that run wait for this PE. */
    create_one(&all[0]);
    for (size_t i = 1; i < count; i++) {
        if (all[i].thread != NULL) {
            wefti_os_thread_join(all[i].thread);
        }
    }
    for (size_t i = 0; i < count && status == WEFT_OK; i++) {
        if (all[i].status != WEFT_OK) {
            status = wefti_error_relay(all[i].status, all[i].text);
        }
    }
    if (status != WEFT_OK) {
        undo(all, count);
    }
    for (size_t i = 0; i < count && status == WEFT_OK; i++) {
        worlds[i] = all[i].world;
    }
    wefti_free(all);
    return status;
}
