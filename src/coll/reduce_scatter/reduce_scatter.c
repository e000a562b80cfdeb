/* Reduce_scatter: arguments, and the choice of an algorithm. */
#include "coll/reduce_scatter/reduce_scatter.h"

weft_status wefti_reduce_scatter(weft_team *team, wefti_op op, wefti_type type, void *dest, const void *source,
                                 size_t count)
{
    static const char call[] = "weft_reduce_scatter";
    wefti_reduction r = {.dest = dest, .source = source, .count = count};
    WEFT_TRY(wefti_reduction_init(&r, call, op, type));
    WEFT_TRY(wefti_coll_check_buffer(team, call, "destination", dest, count, r.fold.element));
    WEFT_TRY(wefti_coll_check_buffer(team, call, "source", source, wefti_coll_times(count, (size_t)team->pes),
                                     r.fold.element));
    const wefti_call_arguments arguments = {
        .kind = WEFTI_COLL_REDUCE_SCATTER, .count = count, .more = (uint64_t)op << 8 | (uint64_t)type};
    wefti_step step;
    WEFT_TRY(wefti_step_begin(&step, team, call, &arguments));
    const wefti_algorithm algorithm =
        wefti_tuning_choose(&step.coll->tuning, WEFTI_COLL_REDUCE_SCATTER, count * r.fold.element);
    switch (algorithm) {
    case WEFTI_ALGORITHM_PUSH:
        return wefti_step_end(&step, r.fold.element, wefti_reduce_scatter_push(&step, &r));
    case WEFTI_ALGORITHM_PULL:
        return wefti_step_end(&step, r.fold.element, wefti_reduce_scatter_pull(&step, &r));
    default:
        return wefti_step_end(&step, 1, wefti_step_no_case(&step, algorithm));
    }
}
