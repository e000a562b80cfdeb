/* weft-ep-bench/sweep_point.c: one point of a sweep. */
#include "tools/weft-ep-bench/sweep_point.h"

#include <stdio.h>
#include <string.h>

#define NAME(value, name, ...) name,
const char *const bench_dtype_names[BENCH_DTYPES] = {BENCH_DTYPE_TABLE(NAME)};
const char *const bench_layout_names[BENCH_LAYOUTS] = {BENCH_LAYOUT_TABLE(NAME)};
#undef NAME
const char *const bench_skew_names[BENCH_SKEWS] = {"uniform", "zipf", "one-rank"};
const char *const bench_routing_names[BENCH_ROUTINGS] = {"fresh", "cached"};
const char *const bench_mode_names[BENCH_MODES] = {"ht", "ll", "eager", "two", "streams"};
const char *const bench_buffers_names[BENCH_BUFFERS] = {"symmetric", "plain"};

weft_ep_dtype bench_sent_dtype(bench_dtype dtype)
{
#define SENT(value, name, sent, received) sent,
    static const weft_ep_dtype types[] = {BENCH_DTYPE_TABLE(SENT)};
#undef SENT
    return types[dtype];
}

weft_ep_dtype bench_received_dtype(bench_dtype dtype)
{
#define RECEIVED(value, name, sent, received) received,
    static const weft_ep_dtype types[] = {BENCH_DTYPE_TABLE(RECEIVED)};
#undef RECEIVED
    return types[dtype];
}

weft_ep_dtype bench_combined_dtype(bench_dtype dtype)
{
    weft_ep_dtype received = bench_received_dtype(dtype);
    return received == WEFT_EP_FP8_E4M3 ? WEFT_EP_BF16 : received;
}

int bench_pairs(bench_mode mode)
{
    return mode == BENCH_TWO || mode == BENCH_STREAMS ? 2 : 1;
}

weft_ep_layout bench_weft_layout(bench_layout layout)
{
#define LAYOUT(value, name, weft) weft,
    static const weft_ep_layout layouts[] = {BENCH_LAYOUT_TABLE(LAYOUT)};
#undef LAYOUT
    return layouts[layout];
}

int bench_is_by_expert(bench_layout layout)
{
    return layout == BENCH_EXPERT_MAJOR || layout == BENCH_SLOTS_EXPERT;
}

/* The two layouts of slots are one layout, with a member of its own. */
void bench_point_describe(const bench_point *point, char *text, size_t bytes)
{
    const char *layout = bench_layout_names[point->layout];
    const char *slots = strncmp(layout, "slots-", 6) == 0 ? layout + 6 : NULL;
    snprintf(text, bytes,
             "\"tokens\": %d, \"hidden\": %d, \"topk\": %d, \"experts\": %d, \"dtype\": \"%s\", \"layout\": "
             "\"%s\"%s%s%s, \"mode\": \"%s\", \"routing\": \"%s\", \"skew\": \"%s\", \"buffers\": \"%s\", \"sms\": %d",
             point->tokens, point->hidden, point->topk, point->experts, bench_dtype_names[point->dtype],
             slots != NULL ? "slots" : layout, slots != NULL ? ", \"slots\": \"" : "", slots != NULL ? slots : "",
             slots != NULL ? "\"" : "", bench_mode_names[point->mode], bench_routing_names[point->routing],
             bench_skew_names[point->skew], bench_buffers_names[point->buffers], point->sms);
}
