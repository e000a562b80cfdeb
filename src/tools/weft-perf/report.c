/* weft-perf/report.c: the table and the JSON lines. */
#include "tools/weft-perf/report.h"

#include <string.h>

#include "tools/lib/record.h"

int perf_report_open(perf_report *report, const perf_options *options, int pe, int pes)
{
    *report = (perf_report){.options = options, .prints = pe == 0, .pes = pes};
    if (!report->prints) {
        return 0;
    }
    if (tool_file_open(options->json, "a", &report->json)) {
        return 1;
    }
    printf("%d PEs; %s memory; times in us of a call, medians of %d rounds; GB/s\n", pes,
           options->on_device ? "device" : "host", options->rounds);
    printf("%-18s %-7s %4s %-7s %-5s %6s %5s %11s %10s %10s %10s %9s %9s %6s\n", "operation", "scope", "PEs", "dtype",
           "red", "blocks", "thr", "bytes", "time", "low", "high", "algbw", "busbw", "wrong");
    return 0;
}

/* How many PEs the case measures. */
static int pes_of(const perf_case *c)
{
    int is_pair = perf_kind_of(c->op) <= PERF_RATE && !c->everyone;
    return is_pair && c->pes > 2 ? 2 : c->pes;
}

/* GB/s at so many us. */
static double rate(const perf_case *c, double us)
{
    return us > 0 ? (double)c->bytes / us * 1e-3 : 0;
}

static void print_row(const perf_case *c, const char *name, const perf_result *result)
{
    const tool_figure *time = &result->time;
    int is_typed = perf_is_typed(c->op);
    printf("%-18s %-7s %4d %-7s %-5s %6d %5d %11zu", name, perf_scope_names[c->scope], pes_of(c),
           is_typed ? perf_dtype_names[c->dtype] : "-",
           perf_kind_of(c->op) == PERF_COMBINE ? perf_reduction_names[c->reduction] : "-", c->blocks, c->threads,
           c->bytes);
    if (!result->is_there) {
        printf(" not supported\n");
    } else {
        printf(" %10.3f %10.3f %10.3f", time->median, time->low, time->high);
        if (c->bytes > 0) {
            printf(" %9.3f %9.3f", rate(c, time->median), rate(c, time->median) * perf_bus_factor(c));
        } else {
            printf(" %9s %9s", "-", "-");
        }
        if (result->wrong < 0) {
            printf(" %6s\n", "-");
        } else {
            printf(" %6ld\n", result->wrong);
        }
    }
    (void)fflush(stdout);
}

static const char *hardware_by(perf_op op)
{
    return op == PERF_RAW_PUT_BW        ? "16-byte stores"
           : op == PERF_RAW_GET_BW      ? "16-byte loads"
           : op == PERF_RAW_GET_BULK_BW ? "bulk loads"
                                        : NULL;
}

static void print_line(const perf_report *report, const perf_case *c, const char *name, const perf_result *result)
{
    tool_figure figure = result->time;
    int is_rate = perf_kind_of(c->op) == PERF_RATE;
    if (is_rate) {
        figure.median = rate(c, result->time.median);
        figure.low = rate(c, result->time.high);
        figure.high = rate(c, result->time.low);
    }
    figure.bytes = (double)c->bytes;
    tool_line_begin(report->json, name, perf_case_impl(c), pes_of(c), &figure, is_rate ? "GB/s" : "us");
    if (hardware_by(c->op) != NULL) {
        fprintf(report->json, ", \"by\": \"%s\"", hardware_by(c->op));
    } else {
        fprintf(report->json, ", \"scope\": \"%s\"", perf_scope_names[c->scope]);
    }
    if (is_rate && perf_is_in_kernel(c)) {
        fprintf(report->json, ", \"blocks\": %d", c->blocks);
    }
    if ((c->scope == PERF_BLOCK && (!is_rate || c->threads != 1024)) || c->op == PERF_RAW_PUT_SIGNAL) {
        fprintf(report->json, ", \"threads\": %d", c->threads);
    }
    if (perf_is_typed(c->op)) {
        fprintf(report->json, ", \"dtype\": \"%s\"", perf_dtype_names[c->dtype]);
    }
    if (perf_kind_of(c->op) == PERF_COMBINE) {
        fprintf(report->json, ", \"op\": \"%s\"", perf_reduction_names[c->reduction]);
    }
    if (result->wrong >= 0) {
        fprintf(report->json, ", \"wrong\": %ld", result->wrong);
    }
    tool_line_end(report->json, report->options->machine);
}

void perf_report_add(perf_report *report, const perf_case *c, const perf_result *result)
{
    char name[64];
    if (!report->prints) {
        return;
    }
    perf_case_name(c, report->options->on_device, name, sizeof name);
    if (strcmp(perf_case_impl(c), "weft") != 0) {
        print_row(c, perf_op_names[c->op], result);
    } else {
        print_row(c, name, result);
    }
    if (result->is_there && report->json != NULL) {
        print_line(report, c, name, result);
    }
}

void perf_report_figure(perf_report *report, const char *name, const tool_figure *figure, const char *unit,
                        const char *more)
{
    if (!report->prints) {
        return;
    }
    printf("%-18s %.4g %s%s\n", name, figure->median, unit, more);
    if (report->json != NULL) {
        tool_line_begin(report->json, name, "weft", report->pes, figure, unit);
        fputs(more, report->json);
        tool_line_end(report->json, report->options->machine);
    }
}

int perf_report_close(perf_report *report, int failed)
{
    failed |= tool_file_close(report->json, report->options->json);
    if (report->prints && (ferror(stdout) || fflush(stdout) != 0)) {
        perror("weft-perf: cannot write");
        return 1;
    }
    return failed;
}
