/* Reduce: arguments, and the choice of an algorithm. */
#include "coll/reduce/reduce.h"

#include "base/error.h"

weft_status wefti_reduction_init(wefti_reduction *r, const char *call, wefti_op op, wefti_type type)
{
    r->fold = wefti_fold_of(op, type);
    if (WEFTI_UNLIKELY(r->fold.loop == NULL)) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: operation %d is none of those of type %d (weft/reduce.h)", call,
                           (int)op, (int)type);
    }
    return WEFT_OK;
}

weft_status wefti_reduce(weft_team *team, wefti_op op, wefti_type type, void *dest, const void *source, size_t count)
{
    static const char call[] = "weft_reduce";
    wefti_reduction r = {.dest = dest, .source = source, .count = count};
    WEFT_TRY(wefti_reduction_init(&r, call, op, type));
    WEFT_TRY(wefti_coll_check_buffer(team, call, "source", source, count, r.fold.element));
    WEFT_TRY(wefti_coll_check_buffer(team, call, "destination", dest, count, r.fold.element));
    const wefti_call_arguments arguments = {
        .kind = WEFTI_COLL_REDUCE, .count = count, .more = (uint64_t)op << 8 | (uint64_t)type};
    wefti_step step;
    WEFT_TRY(wefti_step_begin(&step, team, call, &arguments));
    const wefti_algorithm algorithm =
        wefti_tuning_choose(&step.coll->tuning, WEFTI_COLL_REDUCE, count * r.fold.element);
    switch (algorithm) {
    case WEFTI_ALGORITHM_PUSH:
        return wefti_step_end(&step, r.fold.element, wefti_reduce_push(&step, &r));
    case WEFTI_ALGORITHM_DOUBLING:
        return wefti_step_end(&step, r.fold.element, wefti_reduce_doubling(&step, &r));
    case WEFTI_ALGORITHM_SLICES:
        return wefti_step_end(&step, r.fold.element, wefti_reduce_slices(&step, &r));
    default:
        return wefti_step_end(&step, 1, wefti_step_no_case(&step, algorithm));
    }
}
