/* lib/figures.h: a figure as a line of JSON, in the format of bench/records, and medians. The machine, commit and date
 * come from WEFT_MACHINE, WEFT_COMMIT and WEFT_DATE, which scripts/gpu.sh sets. */
#ifndef LIB_FIGURES_H
#define LIB_FIGURES_H

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define GPU(call)                                                                                                      \
    do {                                                                                                               \
        cudaError_t gpu_error = (call);                                                                                \
        if (gpu_error != cudaSuccess) {                                                                                \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(gpu_error));              \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static inline const char *figure_word(const char *variable)
{
    const char *text = getenv(variable);
    return text == NULL ? "" : text;
}

static inline double median_of(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
}

/* `more`: further members, each beginning with a comma, or "". */
static inline void figure(const char *name, const char *impl, int pes, size_t bytes, double value, const char *unit,
                          int n, const char *more, ...)
{
    char members[400];
    va_list arguments;
    va_start(arguments, more);
    vsnprintf(members, sizeof members, more, arguments);
    va_end(arguments);
    printf("{\"name\": \"%s\", \"impl\": \"%s\", \"pes\": %d, \"bytes\": %zu, \"value\": %.4g, \"unit\": \"%s\", "
           "\"stat\": \"median\", \"n\": %d%s, \"machine\": \"%s\", \"commit\": \"%s\", \"date\": \"%s\"}\n",
           name, impl, pes, bytes, value, unit, n, members, figure_word("WEFT_MACHINE"), figure_word("WEFT_COMMIT"),
           figure_word("WEFT_DATE"));
    fflush(stdout);
}

#endif
