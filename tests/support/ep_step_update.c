/* support/ep_step_update.c: the choices of a rank, and the update of a route by them. */
#include "support/ep_step_calls.h"

#include <string.h>

#include "support/check.h"

/* The ids in the type asked for. */
ep_tensor ep_step_ids_create(const ep_step *step)
{
    const ep_case *one = step->routing->one;
    size_t count = (size_t)ep_step_tokens_of(step) * (size_t)one->plan.topk;
    ep_tensor tensor = ep_tensor_create(step->arrays.memory, "ids", count * (one->id_type == WEFT_EP_INT64 ? 8 : 4));
    int64_t *wide = ep_tensor_image(&tensor);
    int32_t *narrow = ep_tensor_image(&tensor);
    for (size_t i = 0; i < count; i++) {
        if (one->id_type == WEFT_EP_INT64) {
            wide[i] = one->ids[step->rank][i];
        } else {
            narrow[i] = (int32_t)one->ids[step->rank][i];
        }
    }
    return tensor;
}

ep_tensor ep_step_weights_create(const ep_step *step)
{
    const ep_case *one = step->routing->one;
    size_t bytes = (size_t)ep_step_tokens_of(step) * (size_t)one->plan.topk * sizeof(float);
    if (one->weights[step->rank] == NULL) {
        return (ep_tensor){0};
    }
    ep_tensor tensor = ep_tensor_create(step->arrays.memory, "weights", bytes);
    memcpy(ep_tensor_image(&tensor), one->weights[step->rank], bytes);
    return tensor;
}

static void create_destinations(const ep_step *step, ep_choice_tensors *of, weft_ep_choices *choices)
{
    const ep_case *one = step->routing->one;
    size_t count = (size_t)ep_step_tokens_of(step) * (size_t)one->plan.topk;
    const int32_t *positions = one->positions[step->rank];
    of->destinations =
        ep_tensor_create(step->arrays.memory, "destinations", positions != NULL ? count * sizeof *positions : count);
    unsigned char *bytes = ep_tensor_image(&of->destinations);
    for (size_t i = 0; i < count && positions == NULL; i++) {
        bytes[i] = one->ids[step->rank][i] >= 0 ? (unsigned char)(1 + i % 255) : 0;
    }
    if (positions != NULL) {
        memcpy(bytes, positions, count * sizeof *positions);
        choices->positions = ep_tensor_place(&of->destinations, (unsigned)random_next(step->arrays.random));
    } else {
        choices->destinations = ep_tensor_place(&of->destinations, (unsigned)random_next(step->arrays.random));
    }
    ep_step_cover(step, positions != NULL ? EP_COVER_POSITIONS : EP_COVER_DESTINATIONS, 1);
}

ep_choice_tensors ep_step_choices_create(const ep_step *step, weft_ep_choices *choices)
{
    const ep_case *one = step->routing->one;
    ep_choice_tensors of = {.ids = ep_step_ids_create(step), .weights = ep_step_weights_create(step)};
    *choices = (weft_ep_choices)WEFT_EP_CHOICES_INIT;
    choices->tokens = one->tokens_most[step->rank];
    choices->id_type = one->id_type;
    if (one->plan.flags & WEFT_EP_DESTINATIONS) {
        create_destinations(step, &of, choices);
    } else {
        choices->ids = ep_tensor_place(&of.ids, (unsigned)random_next(step->arrays.random));
    }
    if (of.weights.image != NULL) {
        choices->weights = ep_tensor_place(&of.weights, (unsigned)random_next(step->arrays.random));
    }
    if (one->is_told[step->rank]) {
        of.told = ep_tensor_create(step->arrays.memory, "tokens_at", sizeof(int32_t));
        memcpy(ep_tensor_image(&of.told), &one->tokens_told[step->rank], sizeof(int32_t));
        choices->tokens_at = ep_tensor_place(&of.told, (unsigned)random_next(step->arrays.random));
    }
    return of;
}

void ep_step_choices_destroy(ep_choice_tensors *of)
{
    ep_tensor_destroy(&of->ids);
    ep_tensor_destroy(&of->weights);
    ep_tensor_destroy(&of->told);
    ep_tensor_destroy(&of->destinations);
}

void ep_step_update(const ep_step *step)
{
    if (step->is_absent) {
        return;
    }
    weft_ep_choices choices;
    ep_choice_tensors of = ep_step_choices_create(step, &choices);
    ep_step_dawdle(step);
    int ok = CHECK_OK(weft_ep_route_update(step->route, &choices, step->stream));
    ep_step_choices_destroy(&of);
    if (ok) {
        ep_step_check_counts(step);
    }
    ep_step_cover(step, EP_COVER_UPDATES, 1);
    ep_step_cover_routing(step);
}
