/* weft-perf/run.c: one case: checked, timed, told. */
#include "tools/weft-perf/run.h"

#include <stdlib.h>
#include <string.h>

#include "tools/lib/pes.h"
#include "weft/coll.h"

#define CHECKED_CALLS 3

/* Of each round's time the slowest PE's; of what PE 0 alone does, or begins, its own. Collective. */
static int summarise(perf_pe *pe, const perf_case *c, int skip, int count, tool_figure *figure)
{
    int is_pe_0s = perf_kind_of(c->op) <= PERF_TRIPS;
    if (is_pe_0s && pe->pe != 0) {
        memset(pe->times, 0, (size_t)(skip + count) * sizeof *pe->times);
    }
    if (tool_failed(weft_double_max_reduce(weft_team_world(pe->world), pe->times, pe->times, (size_t)(skip + count)),
                    "comparing times")) {
        return 1;
    }
    double *samples = malloc((size_t)count * sizeof *samples);
    if (samples == NULL) {
        return tool_failed(WEFT_ERR_MEMORY, "samples");
    }
    memcpy(samples, pe->times + skip, (size_t)count * sizeof *samples);
    tool_figure_of(figure, samples, count);
    free(samples);
    return tool_failed(weft_barrier(pe->world), "barrier");
}

/* *wrong: of all PEs. */
static weft_status check(perf_pe *pe, const perf_case *c, long *wrong)
{
    const int calls = perf_kind_of(c->op) == PERF_RATE ? 1 : CHECKED_CALLS;
    double us[1];
    weft_status status = perf_data_set(pe, c);
    status = status != WEFT_OK ? status : weft_barrier(pe->world);
    status = status != WEFT_OK ? status : perf_run(pe, c, calls, 1, us);
    status = status != WEFT_OK ? status : weft_barrier(pe->world);
    if (status != WEFT_OK) {
        return status;
    }
    pe->times[0] = (double)perf_data_wrong(pe, c, calls);
    status = weft_double_sum_reduce(weft_team_world(pe->world), pe->times, pe->times, 1);
    *wrong = (long)pe->times[0];
    return status != WEFT_OK ? status : weft_barrier(pe->world);
}

int perf_run_case(perf_pe *pe, const perf_case *c, perf_report *report, long *wrong)
{
    const perf_options *options = pe->options;
    const int calls = options->calls > 0 ? options->calls : perf_default_calls(c);
    const int rounds = options->warmup + options->rounds;
    perf_result result = {.is_there = 1, .wrong = -1};
    char name[64];
    perf_case_name(c, options->on_device, name, sizeof name);
    if (c->pes <= pe->pes && perf_pe_team(pe, c->pes)) {
        return 1;
    }
    weft_status status = options->no_check ? perf_data_set(pe, c) : check(pe, c, &result.wrong);
    status = status != WEFT_OK ? status : perf_run(pe, c, calls, rounds, pe->times);
    if (status == WEFT_ERR_UNSUPPORTED) {
        result.is_there = 0;
        status = WEFT_OK;
    }
    if (tool_failed(status, name) ||
        (result.is_there && summarise(pe, c, options->warmup, options->rounds, &result.time))) {
        return 1;
    }
    *wrong += result.is_there && result.wrong > 0 ? result.wrong : 0;
    perf_report_add(report, c, &result);
    return 0;
}
