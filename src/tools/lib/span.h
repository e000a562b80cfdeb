/* lib/span.h: a collective step over all PEs: from the last entry to the last return. */
#ifndef TOOL_SPAN_H
#define TOOL_SPAN_H

#include <stdint.h>

typedef struct tool_span {
    uint64_t entry_ns;
    uint64_t return_ns;
} tool_span;

/* In ms; `spans` has one element a PE. */
static inline double tool_span_ms(const tool_span *spans, int pes)
{
    uint64_t entry = 0;
    uint64_t back = 0;
    for (int i = 0; i < pes; i++) {
        entry = spans[i].entry_ns > entry ? spans[i].entry_ns : entry;
        back = spans[i].return_ns > back ? spans[i].return_ns : back;
    }
    return (double)(back - entry) * 1e-6;
}

#endif
