/* weft-ep-bench/report.c: the table and the JSON lines. */
#include "tools/weft-ep-bench/report.h"

#include <string.h>

#include "tools/lib/record.h"

int bench_report_open(bench_report *report, const bench_options *options, int pe, int pes)
{
    memset(report, 0, sizeof *report);
    report->options = options;
    report->prints = pe == 0;
    report->pes = pes;
    if (!report->prints) {
        return 0;
    }
    if (tool_file_open(options->json, "a", &report->json)) {
        return 1;
    }
    printf("%d PEs; times in us, of the slowest PE, medians of %d; GB/s a PE; memory in MB a PE\n", pes,
           options->repeats);
    printf("%6s %6s %4s %5s %-8s %-12s %-8s %-6s %-7s %-9s %4s %9s %8s %6s %9s %8s %6s %9s%s%s %8s %8s\n", "tokens",
           "hidden", "topk", "exps", "dtype", "layout", "skew", "route", "mode", "buffers", "SMs", "dispatch", "floor",
           "GB/s", "combine", "floor", "GB/s", "pair", options->backward ? "  dispatch'  combine'" : "",
           options->counts ? "   counts   behind   update   behind" : "", "set-up", "memory");
    return 0;
}

static double rate(const tool_figure *figure)
{
    return figure->median > 0.0 ? figure->bytes / figure->median * 1e-3 : 0.0;
}

/* A time, or a dash where there is none. */
static void print_time(const tool_figure *figure, int width)
{
    if (figure->samples > 0) {
        printf(" %*.1f", width, figure->median);
    } else {
        printf(" %*s", width, "-");
    }
}

static void print_row(const bench_report *report, const bench_point *point, const bench_figures *figures)
{
    printf("%6d %6d %4d %5d %-8s %-12s %-8s %-6s %-7s %-9s %4d", point->tokens, point->hidden, point->topk,
           point->experts, bench_dtype_names[point->dtype], bench_layout_names[point->layout],
           bench_skew_names[point->skew], bench_routing_names[point->routing], bench_mode_names[point->mode],
           bench_buffers_names[point->buffers], point->sms);
    if (figures->missing[0] != '\0') {
        printf(" not supported: %s\n", figures->missing);
        (void)fflush(stdout);
        return;
    }
    print_time(&figures->dispatch, 9);
    print_time(&figures->dispatch_floor, 8);
    printf(" %6.2f", rate(&figures->dispatch));
    print_time(&figures->combine, 9);
    print_time(&figures->combine_floor, 8);
    printf(" %6.2f", rate(&figures->combine));
    print_time(&figures->pair, 9);
    if (report->options->backward) {
        printf(" ");
        print_time(&figures->dispatch_bwd, 9);
        print_time(&figures->combine_bwd, 9);
    }
    if (report->options->counts) {
        print_time(&figures->counts, 8);
        print_time(&figures->counts_behind, 8);
        print_time(&figures->update_counts, 8);
        print_time(&figures->update_counts_behind, 8);
    }
    printf(" %8.1f %8.2f\n", figures->setup.median, figures->memory.median);
    (void)fflush(stdout);
}

static void print_line(const bench_report *report, const char *name, const char *impl, const bench_point *point,
                       const tool_figure *figure, const char *unit)
{
    if (figure->samples == 0) {
        return;
    }
    char text[512];
    bench_point_describe(point, text, sizeof text);
    tool_line_begin(report->json, name, impl, report->pes, figure, unit);
    fprintf(report->json, ", %s", text);
    tool_line_end(report->json, report->options->machine);
}

void bench_report_add(bench_report *report, const bench_point *point, const bench_figures *figures)
{
    if (!report->prints) {
        return;
    }
    print_row(report, point, figures);
    if (figures->missing[0] != '\0') {
        return;
    }
    if (report->json != NULL) {
        const char *floor = report->options->beside_memcpy ? "memcpy" : "floor";
        print_line(report, "ep_dispatch", "weft", point, &figures->dispatch, "us");
        print_line(report, "ep_dispatch", floor, point, &figures->dispatch_floor, "us");
        print_line(report, "ep_combine", "weft", point, &figures->combine, "us");
        print_line(report, "ep_combine", floor, point, &figures->combine_floor, "us");
        print_line(report, "ep_pair", "weft", point, &figures->pair, "us");
        print_line(report, "ep_pair", floor, point, &figures->pair_floor, "us");
        print_line(report, "ep_dispatch_bwd", "weft", point, &figures->dispatch_bwd, "us");
        print_line(report, "ep_combine_bwd", "weft", point, &figures->combine_bwd, "us");
        print_line(report, "ep_counts", "weft", point, &figures->counts, "us");
        print_line(report, "ep_counts_behind", "weft", point, &figures->counts_behind, "us");
        print_line(report, "ep_counts_behind", "update", point, &figures->update_counts_behind, "us");
        print_line(report, "ep_counts", "update", point, &figures->update_counts, "us");
        print_line(report, "ep_setup", "weft", point, &figures->setup, "us");
        print_line(report, "ep_memory", "weft", point, &figures->memory, "MB");
    }
}

int bench_report_close(bench_report *report, int failed)
{
    failed |= tool_file_close(report->json, report->options->json);
    if (report->prints && (ferror(stdout) || fflush(stdout) != 0)) {
        perror("weft-ep-bench: cannot write");
        return 1;
    }
    return failed;
}
