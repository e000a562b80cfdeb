/* Broadcast: arguments, and the choice of an algorithm. */
#include "coll/broadcast/broadcast.h"

#include "base/error.h"

weft_status weft_broadcastmem(weft_team *team, void *dest, const void *source, size_t bytes, int root)
{
    static const char call[] = "weft_broadcast";
    const wefti_broadcast b = {.dest = dest, .source = source, .bytes = bytes, .root = root};
    WEFT_TRY(wefti_coll_check_buffer(team, call, "destination", dest, bytes, 1));
    if (root < 0 || root >= team->pes) {
        return wefti_error(WEFT_ERR_RANGE, "%s: root %d is not one of the %d members; give one of 0 to %d", call, root,
                           team->pes, team->pes - 1);
    }
    if (root == team->pe) {
        WEFT_TRY(wefti_coll_check_buffer(team, call, "source", source, bytes, 1));
    }
    const wefti_call_arguments arguments = {.kind = WEFTI_COLL_BROADCAST, .root = root, .count = bytes};
    wefti_step step;
    WEFT_TRY(wefti_step_begin(&step, team, call, &arguments));
    const wefti_algorithm algorithm = wefti_tuning_choose(&step.coll->tuning, WEFTI_COLL_BROADCAST, bytes);
    switch (algorithm) {
    case WEFTI_ALGORITHM_PUSH:
        return wefti_step_end(&step, 1, wefti_broadcast_push(&step, &b));
    case WEFTI_ALGORITHM_PULL:
        return wefti_step_end(&step, 1, wefti_broadcast_pull(&step, &b));
    default:
        return wefti_step_end(&step, 1, wefti_step_no_case(&step, algorithm));
    }
}
