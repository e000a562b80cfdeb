/* Fcollect: arguments, and the choice of an algorithm. */
#include "coll/fcollect/fcollect.h"

weft_status weft_fcollectmem(weft_team *team, void *dest, const void *source, size_t bytes)
{
    static const char call[] = "weft_fcollect";
    const wefti_fcollect f = {.dest = dest, .source = source, .bytes = bytes};
    WEFT_TRY(wefti_coll_check_buffer(team, call, "source", source, bytes, 1));
    WEFT_TRY(wefti_coll_check_buffer(team, call, "destination", dest, bytes, (size_t)team->pes));
    const wefti_call_arguments arguments = {.kind = WEFTI_COLL_FCOLLECT, .count = bytes};
    wefti_step step;
    WEFT_TRY(wefti_step_begin(&step, team, call, &arguments));
    const wefti_algorithm algorithm = wefti_tuning_choose(&step.coll->tuning, WEFTI_COLL_FCOLLECT, bytes);
    switch (algorithm) {
    case WEFTI_ALGORITHM_PUSH:
        return wefti_step_end(&step, 1, wefti_fcollect_push(&step, &f));
    case WEFTI_ALGORITHM_PULL:
        return wefti_step_end(&step, 1, wefti_fcollect_pull(&step, &f));
    default:
        return wefti_step_end(&step, 1, wefti_step_no_case(&step, algorithm));
    }
}
