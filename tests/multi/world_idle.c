/* Goal: a PE that asks nothing, and of which nothing is asked, takes no processor: whatever threads see to a network
 * sleep.
 * Method: each PE puts a row of words to its right neighbour, some of which are still held back for others when it goes
 * to sleep outside of the library; meanwhile the process's processor time is taken. */
/* PES: 2 */
#include <sys/resource.h>
#include <time.h>

#include "support/check.h"
#include "support/pe_main.h"

#define PUTS 20
#define SLEEP_MS 600
#define SETTLES_MS 100 /* until what has been put has arrived and threads have seen that nothing follows */
#define BUSY_MS_MAX 30 /* a thread that never sleeps takes whatever it gets */

static void sleep_ms(long ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0) {
    }
}

static double busy_ms(void)
{
    struct rusage used;
    CHECK(getrusage(RUSAGE_SELF, &used) == 0);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-3;
}

static void body(weft_world *world)
{
    const int me = weft_world_pe(world);
    const int right = (me + 1) % weft_world_pes(world);
    uint64_t *words = pe_zeroed(world, PUTS * sizeof *words);
    for (uint64_t i = 0; i < PUTS; i++) {
        CHECK_OK(weft_uint64_p(world, words + i, i + 1, right));
    }
    sleep_ms(SETTLES_MS);
    const double before = busy_ms();
    sleep_ms(SLEEP_MS);
    const double took = busy_ms() - before;
    for (uint64_t i = 0; i < PUTS; i++) {
        CHECK_SAY(__atomic_load_n(words + i, __ATOMIC_ACQUIRE) == i + 1, "word %d has not come while its PE slept",
                  (int)i);
    }
    CHECK_SAY(took < BUSY_MS_MAX || !pe_main_is_process(), "asleep for %d ms, PE %d took %.1f ms of a processor",
              SLEEP_MS, me, took);
    CHECK_OK(weft_barrier(world));
    CHECK_OK(weft_free(world, words));
}

int main(int argc, char **argv)
{
    return pe_main(argc, argv, body);
}
