/* weft_ep_route_counts_to and weft_ep_route_counts_wait. */
#include <string.h>

#include "base/error.h"
#include "base/sized.h"
#include "common/gone.h"
#include "ep/backend.h"
#include "weft/protocol/mem.h"
#include "weft/protocol/wait.h"

static weft_status check_arrays(const weft_ep_count_arrays *arrays, const char *call)
{
    size_t bytes = arrays->type == WEFT_EP_INT64 ? 8 : 4;
    const void *all[] = {arrays->rows, arrays->rows_of_expert, arrays->rows_of_expert_aligned, arrays->rows_of_source,
                         arrays->offset_of_expert};
    if (arrays->on_stream != 0 && (arrays->on_stream != 1 || arrays->generation != NULL)) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "%s: arrays.on_stream is %d and arrays.generation %p; give 1 and NULL, or 0", call,
                           arrays->on_stream, (void *)arrays->generation);
    }
    if (arrays->on_stream == 0 && (arrays->generation == NULL || (uintptr_t)arrays->generation % 8 != 0)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: arrays.generation is %p; give two words aligned to 8 bytes", call,
                           (void *)arrays->generation);
    }
    if (arrays->type != WEFT_EP_INT32 && arrays->type != WEFT_EP_INT64) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: arrays.type is %d; give a weft_ep_id_type", call, (int)arrays->type);
    }
    if (arrays->with_dropped != 0 && arrays->with_dropped != 1) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: arrays.with_dropped is %d; give 0 or 1", call, arrays->with_dropped);
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if ((uintptr_t)all[i] % bytes != 0) {
            return wefti_error(WEFT_ERR_ARGUMENT, "%s: an array is at %p; align it to its elements of %zu bytes", call,
                               all[i], bytes);
        }
    }
    return WEFT_OK;
}

weft_status weft_ep_route_counts_to(weft_ep_route *route, const weft_ep_count_arrays *arrays)
{
    static const char call[] = "weft_ep_route_counts_to";
    static const wefti_sized form = WEFTI_SIZED_FORM(weft_ep_count_arrays, generation, "WEFT_EP_COUNT_ARRAYS_INIT");
    weft_ep_count_arrays copy;
    if (!wefti_ep_route_is_alive(route)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument 'route' is NULL or destroyed", call);
    }
    WEFT_TRY(wefti_world_check_handle(route->ep->world, call));
    if (wefti_ep_has_half_of(route->ep, route)) {
        return wefti_error(WEFT_ERR_STATE, "%s: a send of the route waits for its recv; call that first", call);
    }
    memset(&copy, 0, sizeof copy);
    if (arrays != NULL) {
        WEFTI_SIZED_TRY(&form, call, "arrays", arrays, &copy);
        WEFT_TRY(check_arrays(arrays, call));
        copy = *arrays;
    }
    WEFT_TRY(route->ep->backend->counts_told(route, &copy));
    if (copy.generation != NULL) {
        wefti_st64(&copy.generation[0], 0, WEFTI_RELEASE);
        wefti_st64(&copy.generation[1], 0, WEFTI_RELEASE);
    }
    route->counts_to = copy;
    return WEFT_OK;
}

weft_status weft_ep_route_counts_wait(const weft_ep_route *route, uint64_t generation)
{
    static const char call[] = "weft_ep_route_counts_wait";
    if (!wefti_ep_route_is_alive(route)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: argument 'route' is NULL or destroyed", call);
    }
    WEFT_TRY(wefti_world_check_handle(route->ep->world, call));
    if (route->counts_to.generation == NULL) {
        return wefti_error(WEFT_ERR_STATE, "%s: the route tells its counts nowhere; call weft_ep_route_counts_to",
                           call);
    }
    const uint64_t *word = &route->counts_to.generation[generation % 2];
    wefti_waiter waiter = wefti_waiter_start(route->ep->world, call);
    uint64_t seen = wefti_ld64(word, WEFTI_ACQUIRE);
    while (seen < generation) {
        char limit[WEFTI_LIMIT_BYTES];
        weft_status status = wefti_waiter_pause(&waiter, word);
        if (status == WEFT_ERR_TIMEOUT) {
            return wefti_error(wefti_world_late(route->ep->world), "%s: routing %llu is not counted %s", call,
                               (unsigned long long)generation, wefti_world_limit_text(route->ep->world, limit));
        }
        WEFT_TRY(status);
        seen = wefti_ld64(word, WEFTI_ACQUIRE);
    }
    if (seen != generation || generation == 0) {
        return wefti_error(WEFT_ERR_RANGE,
                           "%s: the slot of routing %llu has routing %llu; a routing has it until the "
                           "next but one",
                           call, (unsigned long long)generation, (unsigned long long)seen);
    }
    return WEFT_OK;
}
