/* Goal: a reduction of a team of at most 32 combines its members in ascending order at every length.
 *
 * Method: doubles whose sum shows the order, at lengths around those at which one algorithm takes over from the next;
 * the sum in ascending order is that of this program. */
/* PES: 3 7 */
#include "support/check.h"
#include "support/pe_main.h"

#define DOUBLES_MAX 3000

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

static void run(weft_world *world)
{
    double *source = pe_poisoned(world, DOUBLES_MAX * sizeof *source);
    double *dest = pe_poisoned(world, DOUBLES_MAX * sizeof *dest);
    for (size_t count = 1; count < DOUBLES_MAX; count += count < 300 ? 1 : 97) {
        check_length(world, dest, source, count);
    }
    CHECK_OK(weft_free(world, dest));
    CHECK_OK(weft_free(world, source));
}

int main(int argc, char **argv)
{
    return pe_main(argc, argv, run);
}
