/* Goal: the link domains of GPUs are those of the fabric that spans hosts, without a variable; worlds of them are
 * created, grow their heaps, put and signal between hosts and between both heaps, run collectives and expert
 * parallelism. Method: WEFT_NODE_ID lets this machine stand in for several hosts, whose fabric the fake driver has
 * (WEFT_FAKE_FABRIC); TEST_DOMAINS says how many PEs each domain has, in order. Each PE compares what it got with what
 * arithmetic gives. */
#include "support/launch.h"
#include "weft_ep.h"

#define BLOCK ((size_t)64 << 10)
#define GROWTH ((size_t)12 << 20)
#define RANKS_MAX 32
#define SMALL 8 /* PEs: more of them take their time, and do less */
#define TOKENS 8
#define HIDDEN 16

/* What TEST_DOMAINS says of a PE. */
typedef struct expected {
    int domains;
    int first; /* of this PE's domain */
    int size;
} expected;

static expected expect(const test_pe *pe)
{
    const char *text = getenv("TEST_DOMAINS");
    expected want = {0, 0, 0};
    int first = 0;
    while (text != NULL && *text != '\0') {
        char *end;
        const int size = (int)strtol(text, &end, 10);
        if (pe->pe >= first && pe->pe < first + size) {
            want.first = first;
            want.size = size;
        }
        want.domains++;
        first += size;
        text = *end == '+' ? end + 1 : "";
    }
    if (first != pe->pes) {
        fprintf(stderr, "TEST_DOMAINS has %d PEs, the world %d\n", first, pe->pes);
        exit(2);
    }
    return want;
}

__global__ void put_signal_kernel(const __grid_constant__ weft_dev dev, unsigned char *dest,
                                  const unsigned char *source, wefti_u64 bytes, uint64_t *signal, int pe)
{
    (void)weft_dev_put_signal(weft_thread(), dev, dest, source, bytes, signal, 1, WEFT_SIGNAL_SET, pe);
}

__global__ void wait_kernel(const __grid_constant__ weft_dev dev, const uint64_t *signal, int from)
{
    (void)weft_dev_signal_wait_until(weft_thread(), dev, signal, WEFT_CMP_EQ, 1, from);
}

/* What comes, to any memory, from the PE as far before this one as it sends to behind it. */
static void pass(test_pe *pe, weft_world *world, unsigned char *dest, unsigned char *source, uint64_t *signal, int by)
{
    const int to = (pe->pe + by) % pe->pes;
    const int from = (pe->pe + pe->pes - by) % pe->pes;
    const uint64_t zero = 0;
    weft_dev dev;
    unsigned char *mine = (unsigned char *)malloc(BLOCK);
    memset(mine, 1 + pe->pe + by, BLOCK);
    OK(pe, weft_putmem(world, source, mine, BLOCK, pe->pe));
    OK(pe, weft_putmem(world, signal, &zero, sizeof zero, pe->pe));
    OK(pe, weft_world_dev(world, &dev));
    OK(pe, weft_barrier(world));
    LAUNCH(put_signal_kernel, 1, 1, 0, pe, dev, dest, source, BLOCK - 5, signal, to);
    LAUNCH(wait_kernel, 1, 1, 0, pe, dev, signal, from);
    finish(pe);
    OK(pe, weft_world_fault(world, NULL));
    OK(pe, weft_getmem(world, mine, dest, BLOCK, pe->pe));
    size_t same = 0;
    while (same < BLOCK - 5 && mine[same] == (unsigned char)(1 + from + by)) {
        same++;
    }
    CHECK_SAY(pe, same == BLOCK - 5, "byte %zu from PE %d is %d", same, from, mine[same]);
    free(mine);
    OK(pe, weft_barrier(world));
}

/* Data and signal in either heap, to a neighbour and to another host. */
static void test_puts(test_pe *pe, weft_world *world, unsigned char *device)
{
    void *block = NULL;
    OK(pe, weft_calloc(world, 1, 3 * BLOCK, &block));
    unsigned char *host = (unsigned char *)block;
    const int far_by = pe->pes / 2;
    const int ways = pe->pes <= SMALL ? 4 : 1;
    for (int by = ways == 1 ? far_by : 1; by <= far_by; by += far_by > 1 ? far_by - 1 : 1) {
        for (int way = 0; way < ways; way++) {
            unsigned char *dest = way & 1 ? host : device;
            uint64_t *signal = (uint64_t *)(void *)((way & 2 ? host : device) + 2 * BLOCK);
            pe->stage = way == 0 ? "puts" : "puts between both heaps";
            pass(pe, world, dest, device + BLOCK, signal, by);
        }
    }
    OK(pe, weft_free(world, block));
}

static void test_collectives(test_pe *pe, weft_world *world, unsigned char *device, int is_host)
{
    weft_team *team = weft_team_world(world);
    const int count = 1000;
    float *mine = (float *)malloc(count * sizeof *mine);
    void *block = NULL;
    pe->stage = is_host ? "collectives on the host heap" : "collectives";
    OK(pe, weft_calloc(world, 2 * count, sizeof *mine, &block));
    float *source = is_host ? (float *)block : (float *)(void *)device;
    float *dest = source + count;
    for (int i = 0; i < count; i++) {
        mine[i] = (float)(i + pe->pe);
    }
    OK(pe, weft_team_stream_ready(team));
    OK(pe, weft_putmem(world, source, mine, count * sizeof *mine, pe->pe));
    OK(pe, weft_barrier(world));
    OK(pe, weft_float_sum_reduce_on_stream(team, dest, source, count, NULL));
    OK(pe, weft_broadcastmem_on_stream(team, source, source, 400, pe->pes - 1, NULL));
    OK(pe, weft_barrier_on_stream(world, NULL));
    finish(pe);
    OK(pe, weft_world_fault(world, NULL));
    OK(pe, weft_getmem(world, mine, dest, count * sizeof *mine, pe->pe));
    for (int i = 0; i < count; i++) {
        const float want = (float)(i * pe->pes + pe->pes * (pe->pes - 1) / 2);
        CHECK_SAY(pe, mine[i] == want, "sum %d is %g, not %g", i, (double)mine[i], (double)want);
    }
    OK(pe, weft_getmem(world, mine, source, 400, pe->pe));
    for (int i = 0; i < 100; i++) {
        CHECK_SAY(pe, mine[i] == (float)(i + pe->pes - 1), "%d is %g", i, (double)mine[i]);
    }
    OK(pe, weft_barrier(world));
    OK(pe, weft_free(world, block));
    free(mine);
}

/* Two rounds, so that pieces follow one another; the last bytes are written by another PE. */
static void test_growth(test_pe *pe, weft_world *world)
{
    pe->stage = "growth";
    for (int round = 0; round < 2; round++) {
        const uint64_t sent = (uint64_t)(1000 * round + pe->pe);
        uint64_t seen = 0;
        unsigned char *block = (unsigned char *)test_malloc(pe, world, GROWTH);
        unsigned char *last = block + GROWTH - sizeof sent;
        OK(pe, weft_barrier(world));
        OK(pe, weft_putmem(world, last, &sent, sizeof sent, (pe->pe + pe->pes / 2) % pe->pes));
        OK(pe, weft_barrier(world));
        OK(pe, weft_getmem(world, &seen, last, sizeof seen, pe->pe));
        CHECK_SAY(pe, seen == (uint64_t)(1000 * round + (pe->pe + pe->pes - pe->pes / 2) % pe->pes), "%llu",
                  (unsigned long long)seen);
    }
}

/* Each token to two ranks of the group, one as far away as can be: it comes back twice as large. */
static void test_ep(test_pe *pe, weft_world *world, weft_team *team)
{
    const int ranks = weft_team_pes(team);
    const int rank = weft_team_pe(team);
    float tokens[TOKENS][HIDDEN];
    int32_t ids[TOKENS * 2];
    void *block = NULL;
    weft_ep *ep = NULL;
    weft_ep_route *route = NULL;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_rows in = WEFT_EP_ROWS_INIT;
    weft_ep_received received = WEFT_EP_RECEIVED_INIT;
    weft_ep_host_counts counts;
    const size_t rows = (size_t)ranks * TOKENS;
    pe->stage = "expert parallelism";
    config.experts = ranks;
    config.tokens_max = TOKENS;
    config.topk_max = 2;
    config.row_bytes_max = sizeof *tokens;
    config.on_device = 1;
    plan.topk = 2;
    plan.sms = 2;
    OK(pe, weft_device_team_malloc(team, rows * sizeof *tokens + sizeof tokens, &block));
    OK(pe, weft_ep_create(team, &config, &ep));
    if (block == NULL || ep == NULL) {
        exit(1);
    }
    unsigned char *device = (unsigned char *)block;
    OK(pe, weft_ep_route_create(ep, &plan, NULL, &route));
    for (int i = 0; i < TOKENS; i++) {
        ids[2 * i] = (rank + i) % ranks;
        ids[2 * i + 1] = (rank + i + ranks / 2) % ranks;
        for (int j = 0; j < HIDDEN; j++) {
            tokens[i][j] = (float)(rank * 100 + i * 10 + j);
        }
    }
    choices.tokens = TOKENS;
    choices.ids = ids;
    in.data = device + rows * sizeof *tokens;
    in.dtype = WEFT_EP_F32;
    in.hidden = HIDDEN;
    received.rows = in;
    received.rows.data = device;
    received.rows_capacity = rows;
    OK(pe, weft_putmem(world, in.data, tokens, sizeof tokens, pe->pe));
    OK(pe, weft_ep_route_choose(route, &choices));
    OK(pe, weft_ep_dispatch(route, &in, &received, NULL));
    OK(pe, weft_ep_combine(route, &received.rows, &in, 0, NULL));
    OK(pe, weft_ep_route_query(route, NULL, &counts));
    CHECK_SAY(pe, counts.status == WEFT_OK, "%d", (int)counts.status);
    OK(pe, weft_getmem(world, tokens, in.data, sizeof tokens, pe->pe));
    for (int i = 0; i < TOKENS; i++) {
        for (int j = 0; j < HIDDEN; j++) {
            CHECK_SAY(pe, tokens[i][j] == 2 * (float)(rank * 100 + i * 10 + j), "token %d, %d: %g", i, j,
                      (double)tokens[i][j]);
        }
    }
    OK(pe, weft_team_sync(team));
    OK(pe, weft_ep_route_destroy(route));
    OK(pe, weft_ep_destroy(ep));
    OK(pe, weft_device_team_free(team, block));
}

/* With its device, so that the network knows which GPU it is. */
static weft_world *create_world(test_pe *pe)
{
    weft_world *world = NULL;
    weft_world_config config = test_config(pe, "domain");
    weft_device_config device = WEFT_DEVICE_CONFIG_INIT;
    if (!ON_GPU) {
        device.choice = WEFT_DEVICE_ORDINAL;
        device.ordinal = pe->gpu;
    }
    device.heap_max_bytes = (size_t)64 << 20;
    config.device = &device;
    OK(pe, weft_world_create(&config, &world));
    if (world == NULL) {
        exit(1);
    }
    return world;
}

static void test_body(test_pe *pe)
{
    const expected want = expect(pe);
    weft_team *team = NULL;
    weft_dev dev;
    pe->stage = "creation";
    weft_world *world = create_world(pe);
    OK(pe, weft_world_dev(world, &dev));
    CHECK_SAY(pe, (int)dev.near_first == want.first && (int)dev.near_count == want.size, "PEs %u to %u, not %d to %d",
              dev.near_first, dev.near_first + dev.near_count - 1, want.first, want.first + want.size - 1);
    CHECK_SAY(pe, (int)(dev.far_count - dev.abroad_count) == pe->pes - want.size, "%u far, %u abroad", dev.far_count,
              dev.abroad_count);
    unsigned char *device = (unsigned char *)test_malloc(pe, world, 3 * BLOCK);
    test_puts(pe, world, device);
    if (pe->pes <= SMALL || want.domains == 1) { /* else the proxies of many PEs share this machine */
        test_collectives(pe, world, device, 0);
    }
    if (pe->pes <= SMALL) {
        test_collectives(pe, world, device, 1);
    }
    test_growth(pe, world);
    /* Groups hold at most RANKS_MAX ranks, which are spread over the first domain's hosts. */
    const int first_size = atoi(getenv("TEST_DOMAINS"));
    const int ranks = first_size < RANKS_MAX ? first_size : RANKS_MAX;
    OK(pe, weft_team_split_strided(weft_team_world(world), 0, first_size / ranks, ranks, &team));
    if (team != NULL && ranks > 1) {
        test_ep(pe, world, team);
    }
    pe->stage = "the end";
    OK(pe, weft_barrier(world));
    OK(pe, weft_world_destroy(world));
    if (pe->pe == 0 && pe->failures == 0) {
        printf("%d PEs in %d link domains: all passed\n", pe->pes, want.domains);
    }
}

int main(int argc, char **argv)
{
    return test_main(argc, argv);
}
