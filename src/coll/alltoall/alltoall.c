/* Alltoall and alltoalls: arguments, and the choice of an algorithm. */
#include "coll/alltoall/alltoall.h"

#include "base/error.h"

static weft_status alltoall(wefti_step *step, wefti_collective how, const wefti_alltoall *a)
{
    const wefti_algorithm algorithm = wefti_tuning_choose(&step->coll->tuning, how, a->count);
    switch (algorithm) {
    case WEFTI_ALGORITHM_PUSH:
        return wefti_alltoall_push(step, a);
    case WEFTI_ALGORITHM_PAIRS:
        return wefti_alltoall_pairs(step, a);
    case WEFTI_ALGORITHM_DIRECT:
        return wefti_alltoall_direct(step, a);
    case WEFTI_ALGORITHM_PULL:
        return wefti_alltoall_pull(step, a);
    default:
        return wefti_step_no_case(step, algorithm);
    }
}

static weft_status check_and_move(weft_team *team, const char *call, wefti_collective how, void *dest,
                                  const void *source, size_t bytes)
{
    const wefti_alltoall a = {
        .dest = dest, .source = source, .dest_stride = 1, .source_stride = 1, .count = bytes, .element = 1};
    WEFT_TRY(wefti_coll_check_buffer(team, call, "source", source, bytes, team != NULL ? (size_t)team->pes : 1));
    WEFT_TRY(wefti_coll_check_buffer(team, call, "destination", dest, bytes, (size_t)team->pes));
    const wefti_call_arguments arguments = {.kind = WEFTI_COLL_ALLTOALL, .count = bytes, .more = (uint64_t)how};
    wefti_step step;
    WEFT_TRY(wefti_step_begin(&step, team, call, &arguments));
    return wefti_step_end(&step, 1, alltoall(&step, how, &a));
}

weft_status weft_alltoallmem(weft_team *team, void *dest, const void *source, size_t bytes)
{
    return check_and_move(team, "weft_alltoall", WEFTI_COLL_ALLTOALL, dest, source, bytes);
}

weft_status weft_alltoallmem_ready(weft_team *team, void *dest, const void *source, size_t bytes)
{
    return check_and_move(team, "weft_alltoall_ready", WEFTI_COLL_ALLTOALL_READY, dest, source, bytes);
}

/* Elements from the first to the last of all blocks. */
static size_t span(size_t count, int pes, ptrdiff_t stride)
{
    size_t elements = wefti_coll_times(count, (size_t)pes);
    size_t steps = elements == 0 ? 0 : wefti_coll_times(elements - 1, (size_t)stride);
    return elements == 0 ? 0 : steps == SIZE_MAX ? SIZE_MAX : steps + 1;
}

weft_status weft_alltoallsmem(weft_team *team, void *dest, const void *source, ptrdiff_t dest_stride,
                              ptrdiff_t source_stride, size_t count, size_t element_bytes)
{
    static const char call[] = "weft_alltoalls";
    if (team == NULL || dest_stride < 1 || source_stride < 1 || element_bytes == 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s", call,
                           team == NULL ? "argument 'team' is NULL; this PE may not be a member of it"
                                        : "strides and the size of an element are at least 1");
    }
    const wefti_alltoall a = {.dest = dest,
                              .source = source,
                              .dest_stride = (size_t)dest_stride,
                              .source_stride = (size_t)source_stride,
                              .count = count,
                              .element = element_bytes};
    size_t source_span = span(count, team->pes, source_stride);
    size_t dest_span = span(count, team->pes, dest_stride);
    WEFT_TRY(wefti_coll_check_buffer(team, call, "source", source, source_span, element_bytes));
    WEFT_TRY(wefti_coll_check_buffer(team, call, "destination", dest, dest_span, element_bytes));
    const wefti_call_arguments arguments = {
        .kind = WEFTI_COLL_ALLTOALLS, .count = count * element_bytes, .more = element_bytes};
    wefti_step step;
    WEFT_TRY(wefti_step_begin(&step, team, call, &arguments));
    wefti_step_sign(&step, a.dest_stride);
    wefti_step_sign(&step, ~(uint64_t)a.source_stride);
    const wefti_algorithm algorithm =
        wefti_tuning_choose(&step.coll->tuning, WEFTI_COLL_ALLTOALLS, count * element_bytes);
    switch (algorithm) {
    case WEFTI_ALGORITHM_PUSH:
        return wefti_step_end(&step, 1, wefti_alltoalls_push(&step, &a));
    case WEFTI_ALGORITHM_PULL:
        return wefti_step_end(&step, 1, wefti_alltoalls_pull(&step, &a));
    default:
        return wefti_step_end(&step, 1, wefti_step_no_case(&step, algorithm));
    }
}
