/* The same processes in worlds of other sizes, one after another, without a restart: elastic jobs and test suites.
 * Run: weftrun -n 4 resize */
#include <stdio.h>
#include <stdlib.h>

#include <weft.h>

static void check(weft_status status)
{
    if (status != WEFT_OK) {
        fprintf(stderr, "%s: %s\n", weft_status_name(status), weft_last_error());
        exit(1);
    }
}

/* The sum of the PE numbers of a world, by atomics on PE 0. */
static int64_t sum_of_numbers(weft_world *world)
{
    void *block;
    int64_t sum;
    check(weft_calloc(world, 1, sizeof(int64_t), &block));
    check(weft_int64_atomic_add(world, block, weft_world_pe(world), 0));
    check(weft_barrier(world));
    check(weft_int64_g(world, block, 0, &sum));
    check(weft_barrier(world));
    check(weft_free(world, block));
    return sum;
}

int main(void)
{
    const char *pe_text = getenv("WEFT_LOCAL_PE");
    const char *pes_text = getenv("WEFT_LOCAL_PES");
    int pe = pe_text != NULL ? atoi(pe_text) : 0;
    int pes = pes_text != NULL ? atoi(pes_text) : 1;
    for (int size = pes; size >= 1; size--) {
        /* The first `size` processes, numbered from the other end in every second world. */
        if (pe >= size) {
            continue;
        }
        char name[32];
        weft_world_config config = WEFT_WORLD_CONFIG_INIT;
        weft_world *world;
        snprintf(name, sizeof name, "of %d", size);
        config.name = name;
        config.pes = size;
        config.pe = size % 2 == 0 ? pe : size - 1 - pe;
        check(weft_world_create(&config, &world));
        int64_t sum = sum_of_numbers(world);
        if (sum != (int64_t)size * (size - 1) / 2) {
            fprintf(stderr, "a world of %d adds up to %lld\n", size, (long long)sum);
            return 1;
        }
        if (pe == 0) {
            printf("process 0 was PE %d of a world of %d\n", weft_world_pe(world), size);
        }
        check(weft_world_destroy(world));
    }
    return 0;
}
