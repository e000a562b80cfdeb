/* Goal: a reduction of a team of at most 32 combines its members in ascending order, whatever its length.
 *
 * Method: doubles whose sum shows the order, at lengths about each at which one algorithm takes over from the next, as
 * the team says (weft_team_tuning), and some between; the sum in ascending order is that of this program. */
/* PES: 3 7 32 */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/pe_main.h"

#define DOUBLES_MAX 20000
#define TUNING_BYTES 4096

/* One too small for the next beside it, which a third takes away. */
static double value_of(int pe, size_t i)
{
    static const double values[] = {1e16, 1.0 / 3, -1e16};
    return values[pe % 3] * (1 + 0.01 * (double)i + 0.1 * pe);
}

static void check_length(weft_world *world, double *dest, double *source, size_t count)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        source[i] = value_of(weft_world_pe(world), i);
    }
    CHECK_OK(weft_double_sum_reduce(weft_team_world(world), dest, source, count));
    for (size_t i = 0; i < count; i++) {
        double sum = value_of(0, i);
        for (int pe = 1; pe < weft_world_pes(world); pe++) {
            sum += value_of(pe, i);
        }
        wrong += sum != dest[i];
    }
    CHECK_SAY(wrong == 0, "%zu of %zu sums are not in ascending order", wrong, count);
}

/* About each limit of bytes of `reduce` in lines such as "reduce  push  <= 4064". Returns how many there are. */
static int check_cutoffs(weft_world *world, double *dest, double *source)
{
    char text[TUNING_BYTES];
    size_t length = 0;
    int cutoffs = 0;
    CHECK_OK(weft_team_tuning(weft_team_world(world), text, sizeof text, &length));
    CHECK(length < sizeof text);
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        const char *limit = strstr(line, "<= ");
        if (strncmp(line, "reduce ", strlen("reduce ")) != 0 || limit == NULL) {
            continue;
        }
        const size_t last = strtoul(limit + strlen("<= "), NULL, 10) / sizeof *source;
        cutoffs++;
        for (size_t count = last > 2 ? last - 2 : 1; CHECK(last + 2 < DOUBLES_MAX) && count <= last + 2; count++) {
            check_length(world, dest, source, count);
        }
    }
    return cutoffs;
}

static void run(weft_world *world)
{
    double *source = pe_poisoned(world, DOUBLES_MAX * sizeof *source);
    double *dest = pe_poisoned(world, DOUBLES_MAX * sizeof *dest);
    for (size_t count = 1; count < DOUBLES_MAX; count += count < 100 ? 1 : 397) {
        check_length(world, dest, source, count);
    }
    CHECK(check_cutoffs(world, dest, source) > 0);
    CHECK_OK(weft_free(world, dest));
    CHECK_OK(weft_free(world, source));
}

int main(int argc, char **argv)
{
    return pe_main(argc, argv, run);
}
