/* base/pe_list.c: sets of PEs as a person reads them. */
#include "base/pe_list.h"

#include <stdio.h>

#define RUNS_MAX 16

/* The first PE behind the run that starts at `first`. */
static int end_of_run(const unsigned char *marks, int pes, unsigned char mark, int first)
{
    int end = first + 1;
    while (end < pes && marks[end] == mark) {
        end++;
    }
    return end;
}

static size_t append_run(char *text, size_t used, int first, int last)
{
    size_t room = WEFTI_PE_LIST_BYTES - used;
    const char *comma = used > 0 ? ", " : "";
    int wrote;
    if (first == last) {
        wrote = snprintf(text + used, room, "%s%d", comma, first);
    } else {
        wrote = snprintf(text + used, room, "%s%d%s%d", comma, first, last == first + 1 ? ", " : "-", last);
    }
    return used + (wrote < 0 ? 0 : (size_t)wrote);
}

int wefti_pe_list_text(const unsigned char *marks, int pes, unsigned char mark, char text[WEFTI_PE_LIST_BYTES])
{
    char runs[WEFTI_PE_LIST_BYTES] = "";
    size_t used = 0;
    int run_count = 0;
    int count = 0;
    int shown = 0;
    int pe = 0;
    while (pe < pes) {
        if (marks[pe] != mark) {
            pe++;
            continue;
        }
        int end = end_of_run(marks, pes, mark, pe);
        if (run_count++ < RUNS_MAX) {
            used = append_run(runs, used, pe, end - 1);
            shown += end - pe;
        }
        count += end - pe;
        pe = end;
    }
    if (count == 0) {
        (void)snprintf(text, WEFTI_PE_LIST_BYTES, "no PE");
    } else if (count == shown) {
        (void)snprintf(text, WEFTI_PE_LIST_BYTES, "%s %.370s", count == 1 ? "PE" : "PEs", runs);
    } else {
        (void)snprintf(text, WEFTI_PE_LIST_BYTES, "PEs %.370s and %d more", runs, count - shown);
    }
    return count;
}
