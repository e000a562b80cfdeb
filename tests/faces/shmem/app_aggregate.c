/* The kernels of bale: a histogram by atomics, the same by buffers that are put with a count behind them (an exstack),
 * and by buffers that are put without blocking with a signal while others are still on their way (a conveyor); an index
 * gather by gets; a PE that is done says so, and all end when all are. Each histogram is as one PE alone counts it. */
/* PES: 1 2 3 8 */
#include "faces/shmem/check.h"

#define UPDATES 20000
#define BINS 500 /* a PE */
#define BUFFER 64
#define PES_MAX 8

typedef struct buffer {
    int64_t count;
    int64_t bins[BUFFER];
} buffer;

static uint64_t state;

static uint64_t draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

static void restart(int pe)
{
    state = (uint64_t)pe * 7919 + 5;
}

/* What all PEs together put into this PE's bins. */
static void check_bins(const int64_t *bins)
{
    const int pes = shmem_n_pes();
    int64_t *alone = calloc(BINS, sizeof *alone);
    for (int pe = 0; pe < pes; pe++) {
        restart(pe);
        for (int i = 0; i < UPDATES; i++) {
            const uint64_t bin = draw() % (BINS * (uint64_t)pes);
            alone[bin / (uint64_t)pes] += (int)(bin % (uint64_t)pes) == shmem_my_pe();
        }
    }
    CHECK(memcmp(alone, bins, BINS * sizeof *alone) == 0);
    free(alone);
}

static void by_atomics(int64_t *bins)
{
    const int pes = shmem_n_pes();
    restart(shmem_my_pe());
    for (int i = 0; i < UPDATES; i++) {
        const uint64_t bin = draw() % (BINS * (uint64_t)pes);
        shmem_int64_atomic_inc(&bins[bin / (uint64_t)pes], (int)(bin % (uint64_t)pes));
    }
    shmem_barrier_all();
    check_bins(bins);
}

static void apply(int64_t *bins, const buffer *from)
{
    for (int64_t i = 0; i < from->count; i++) {
        bins[from->bins[i]]++;
    }
}

/* Rounds: all fill what they can, exchange, and apply, until nobody has anything left. */
static void by_rounds(int64_t *bins)
{
    const int me = shmem_my_pe();
    const int pes = shmem_n_pes();
    buffer *in = ZEROED(buffer, PES_MAX);
    int *left = ZEROED(int, 1);
    int *any = ZEROED(int, 1);
    buffer out[PES_MAX];
    int i = 0;
    uint64_t held = UINT64_MAX; /* drawn, without room */
    restart(me);
    do {
        memset(out, 0, sizeof out);
        for (; i < UPDATES || held != UINT64_MAX; held = UINT64_MAX) {
            if (held == UINT64_MAX) {
                held = draw() % (BINS * (uint64_t)pes);
                i++;
            }
            buffer *to = &out[held % (uint64_t)pes];
            if (to->count == BUFFER) {
                break;
            }
            to->bins[to->count++] = (int64_t)(held / (uint64_t)pes);
        }
        for (int pe = 0; pe < pes; pe++) {
            shmem_putmem(&in[me].bins, out[pe].bins, sizeof out[pe].bins, pe);
            shmem_fence();
            shmem_int64_p(&in[me].count, out[pe].count, pe);
        }
        shmem_barrier_all();
        for (int pe = 0; pe < pes; pe++) {
            apply(bins, &in[pe]);
        }
        *left = i < UPDATES || held != UINT64_MAX;
        shmem_int_max_reduce(SHMEM_TEAM_WORLD, any, left, 1);
    } while (*any);
    shmem_barrier_all();
    check_bins(bins);
    shmem_free(any);
    shmem_free(left);
    shmem_free(in);
}

/* Of each pair a buffer on its way: the receiver's signal counts those that have come, the sender's those that are free
 * again. An empty buffer is the last. */
typedef struct conveyor {
    buffer *in; /* by sender */
    uint64_t *came; /* by sender */
    uint64_t *freed; /* by receiver */
    uint64_t sent[PES_MAX];
    uint64_t taken[PES_MAX];
    buffer out[PES_MAX];
    int ended;
} conveyor;

static void take_what_came(conveyor *c, int64_t *bins)
{
    const int me = shmem_my_pe();
    for (int pe = 0; pe < shmem_n_pes(); pe++) {
        if (shmem_signal_fetch(&c->came[pe]) > c->taken[pe]) {
            apply(bins, &c->in[pe]);
            c->ended += c->in[pe].count == 0;
            c->taken[pe]++;
            shmem_uint64_atomic_set(&c->freed[me], c->taken[pe], pe);
        }
    }
}

static void send(conveyor *c, int64_t *bins, int pe)
{
    const int me = shmem_my_pe();
    while (shmem_uint64_atomic_fetch(&c->freed[pe], me) < c->sent[pe]) {
        take_what_came(c, bins);
    }
    shmem_quiet(); /* the source of the one before is free */
    static buffer on_the_way[PES_MAX];
    on_the_way[pe] = c->out[pe];
    c->sent[pe]++;
    shmem_putmem_signal_nbi(&c->in[me], &on_the_way[pe], sizeof(buffer), &c->came[me], 1, SHMEM_SIGNAL_ADD, pe);
    c->out[pe].count = 0;
}

static void by_conveyor(int64_t *bins)
{
    static conveyor c;
    const int pes = shmem_n_pes();
    c = (conveyor){
        .in = ZEROED(buffer, PES_MAX), .came = ZEROED(uint64_t, PES_MAX), .freed = ZEROED(uint64_t, PES_MAX)};
    restart(shmem_my_pe());
    for (int i = 0; i < UPDATES; i++) {
        const uint64_t bin = draw() % (BINS * (uint64_t)pes);
        buffer *to = &c.out[bin % (uint64_t)pes];
        to->bins[to->count++] = (int64_t)(bin / (uint64_t)pes);
        if (to->count == BUFFER) {
            send(&c, bins, (int)(bin % (uint64_t)pes));
        }
    }
    for (int pe = 0; pe < pes; pe++) {
        if (c.out[pe].count > 0) {
            send(&c, bins, pe);
        }
        send(&c, bins, pe);
    }
    while (c.ended < pes) {
        take_what_came(&c, bins);
    }
    shmem_barrier_all();
    check_bins(bins);
    shmem_free(c.freed);
    shmem_free(c.came);
    shmem_free(c.in);
}

static void gather(void)
{
    const int me = shmem_my_pe();
    const int pes = shmem_n_pes();
    int64_t *table = shmem_malloc(BINS * sizeof *table);
    for (int i = 0; i < BINS; i++) {
        table[i] = (int64_t)i * pes + me;
    }
    shmem_barrier_all();
    restart(me);
    for (int i = 0; i < UPDATES; i++) {
        const uint64_t index = draw() % (BINS * (uint64_t)pes);
        CHECK(shmem_g(&table[index / (uint64_t)pes], (int)(index % (uint64_t)pes)) == (int64_t)index);
    }
    shmem_barrier_all();
    shmem_free(table);
}

int main(void)
{
    shmem_init();
    void (*const ways[])(int64_t * bins) = {by_atomics, by_rounds, by_conveyor};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        int64_t *bins = ZEROED(int64_t, BINS);
        ways[i](bins);
        shmem_free(bins);
    }
    gather();
    return check_end();
}
