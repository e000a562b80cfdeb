/* Goal: expert parallelism on GPUs that are in several link domains gives, to the bit, what the serial reference gives,
 * and with it the host backend, whose domains are the same; each row crosses once.
 *
 * Method: the random cases of tests/support, as tests/gpu/ep.cu has them, of what such groups offer, in a world whose
 * link domains WEFT_CUDA_DOMAIN limits (or which has several hosts). Then how groups go on without ranks, or a whole
 * domain, that do not come any more.
 * Usage: as support/launch.h says; -c: how many cases; WEFT_SEED. */
#include <unistd.h>

#include "ep/late.cuh"
#include "ep/order.cuh"
#include "ep/sequence.cuh"

#define CASES 6
#define DOMAINS_DEADLINE_NS (10 * DEADLINE_NS)

/* Of what plans may have, what groups of several domains offer. */
static weft_ep_plan draw_plan(const ep_setup *setup, weft_ep_layout layout, uint64_t *common)
{
    weft_ep_plan plan = ep_plan_draw(random_next(common), setup);
    plan.layout = layout;
    plan.alignment = layout == WEFT_EP_EXPERT_MAJOR ? 1 << random_below(common, 4) : 0;
    plan.slot_tokens = ep_is_slots(layout) ? setup->config.slot_tokens_max : 0;
    plan.flags &= layout == WEFT_EP_EXPERT_MAJOR ? ~0u : ~(unsigned)WEFT_EP_ZERO_PADDING;
    ep_plan_vary(common, setup, &plan);
    return plan;
}

static void run_route(job *of, weft_ep *ep, const ep_setup *setup, const ep_size *size, weft_ep_layout layout,
                      const int *masked, uint64_t *common)
{
    const weft_ep_plan plan = draw_plan(setup, layout, common);
    sequence s;
    drawn_call call;
    if (!sequence_open(&s, of, ep, setup, size, &plan, false)) {
        return;
    }
    s.masked = masked;
    for (int i = 0; i < CALLS_OF_ROUTE; i++) {
        sequence_draw(&s, false, common, &call);
        sequence_weigh(&s, &call);
        if (call.is_backward) {
            run_backward(&call.step, &call.payload, call.flags, common);
        } else if (call.adds) {
            ep_combining_step(&call.step, &call.payload, call.flags, common);
        } else {
            sequence_send(&call);
        }
    }
    sequence_close(&s);
}

/* The domains of the group are the link domains, in the order of their lowest ranks. */
static bool learn_domains(const weft_ep *ep, ep_setup *setup)
{
    int count = 0;
    return CHECK_OK(weft_ep_domains(ep, setup->domain, &count)) &&
           check_that(count > 1, __FILE__, __LINE__, "one domain: set WEFT_CUDA_DOMAIN");
}

/* A group with random limits, of what groups of several domains offer. NULL: there is none. */
static weft_ep *open_group(job *of, const ep_size *size, uint64_t *common, ep_setup *setup)
{
    weft_ep *ep = NULL;
    *setup = ep_setup_draw(random_next(common), of->pe->pes, size);
    setup->config.on_device = 1;
    setup->config.rows_max = 0;
    setup->config.overflow = WEFT_EP_OVERFLOW_ERROR;
    setup->config.pairs_max = 1 + (int)random_below(common, 2);
    setup->config.flags = random_below(common, 2) == 0 ? WEFT_EP_STATISTICS : 0; /* which changes no result */
    setup->config.domain_ranks = 0;
    setup->config.slot_tokens_max = setup->config.tokens_max;
    weft_ep_config config = setup->config;
    config.experts_of_rank = setup->uneven ? setup->table : NULL;
    return CHECK_OK(weft_ep_create(weft_team_world(of->world), &config, &ep)) && learn_domains(ep, setup) ? ep : NULL;
}

static void run_layouts(job *of, weft_ep *ep, const ep_setup *setup, const ep_size *size, const int *masked,
                        uint64_t *common)
{
    for (int layout = 0; layout < 4 && check_failures() == 0; layout++) {
        run_route(of, ep, setup, size, (weft_ep_layout)layout, masked, common);
    }
}

static void run_case(job *of, uint64_t seed, const ep_size *size)
{
    uint64_t common = seed;
    ep_setup setup;
    weft_ep *ep = open_group(of, size, &common, &setup);
    if (ep != NULL) {
        run_layouts(of, ep, &setup, size, NULL, &common);
        CHECK_OK(weft_ep_destroy(ep));
    }
}

/* ---- what crosses ---- */

#define BYTES_TOKENS 64
#define BYTES_TOPK 3
#define BYTES_HIDDEN 2048
#define BYTES_ROW (2 * (uint64_t)BYTES_HIDDEN)

static int32_t bytes_id(int experts, int rank, int token, int k)
{
    uint64_t state = (uint64_t)((rank * BYTES_TOKENS + token) * BYTES_TOPK + k);
    return (int32_t)(next_random(&state) % (uint64_t)(experts + 1)) - 1;
}

/* Rows that rank `from` has for the domain of rank `to`, if that is another; directly, for that rank. */
static uint64_t bytes_rows(const int *domain, int pes, int from, int to, bool is_direct)
{
    uint64_t rows = 0;
    for (int token = 0; token < BYTES_TOKENS && domain[from] != domain[to]; token++) {
        bool goes = false;
        for (int k = 0; k < BYTES_TOPK; k++) {
            const int32_t id = bytes_id(2 * pes, from, token, k);
            goes = goes || (id >= 0 && (is_direct ? id / 2 == to : domain[id / 2] == domain[to]));
        }
        rows += goes;
    }
    return rows;
}

/* This rank's place in its domain, and how many that has. */
static int place_in_domain(const int *domain, int pes, int rank, int *size)
{
    int place = 0;
    *size = 0;
    for (int other = 0; other < pes; other++) {
        place += domain[other] == domain[rank] && other < rank;
        *size += domain[other] == domain[rank];
    }
    return place;
}

/* Whether what goes to that rank goes by a transport: kernels store to the host heaps of this host. */
static bool goes_by_proxy(const job *of, const void *host_memory, int rank)
{
    const char *mapped = getenv("WEFT_EP_MAPPED");
    return (mapped != NULL && strcmp(mapped, "0") == 0) || weft_ptr(of->world, host_memory, rank) == NULL;
}

static uint64_t bytes_moved(job *of)
{
    weft_counters counters;
    CHECK_OK(weft_barrier(of->world)); /* what was sent has come */
    CHECK_OK(weft_world_counters(of->world, &counters));
    CHECK_OK(weft_barrier(of->world));
    return counters.remote_put_bytes;
}

/* Whether so many tokens in slots go directly. */
static bool goes_directly(const int *domain, int pes, int tokens)
{
    const char *direct = getenv("WEFT_EP_DIRECT");
    int most = 0;
    for (int pe = 0; pe < pes; pe++) {
        int size;
        (void)place_in_domain(domain, pes, pe, &size);
        most = size > most ? size : most;
    }
    return tokens * most <= (direct != NULL ? atoi(direct) : 32);
}

static void check_bytes(const char *call, uint64_t bytes, uint64_t rows, int domains)
{
    const uint64_t least = rows * BYTES_ROW;
    check_that(bytes >= least && bytes <= least + least / 50 + 16 * (uint64_t)domains, __FILE__, __LINE__,
               "a %s moves %llu bytes for %llu rows of %llu", call, (unsigned long long)bytes, (unsigned long long)rows,
               (unsigned long long)BYTES_ROW);
}

/* One row a (token, domain) each way, directly one a (token, rank), where the proxy moves them. */
static void test_bytes(job *of, arena *all, weft_ep_layout layout)
{
    const int pes = of->pe->pes;
    const int pe = of->pe->pe;
    weft_stream *stream = gpu_stream_of(of->pe);
    weft_ep *ep = NULL;
    weft_ep_route *route = NULL;
    weft_ep_host_counts counts;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_rows in = WEFT_EP_ROWS_INIT;
    weft_ep_received got = WEFT_EP_RECEIVED_INIT;
    int domain[EP_RANKS_MAX];
    int domains = 0;
    int32_t *ids = (int32_t *)(void *)all->pinned;
    config.experts = 2 * pes;
    config.tokens_max = BYTES_TOKENS;
    config.topk_max = plan.topk = BYTES_TOPK;
    plan.layout = layout;
    config.row_bytes_max = BYTES_ROW;
    config.on_device = 1;
    for (int i = 0; i < BYTES_TOKENS * BYTES_TOPK; i++) {
        ids[i] = bytes_id(2 * pes, pe, i / BYTES_TOPK, i % BYTES_TOPK);
    }
    gpu_copy(of->pe, all->base[PLAIN], all->pinned, BYTES_TOKENS * BYTES_TOPK * sizeof *ids);
    (void)ep_group_open(of->world, &config, &plan, &ep, &route);
    CHECK_OK(weft_ep_domains(ep, domain, &domains));
    choices.tokens = BYTES_TOKENS;
    choices.ids = all->base[PLAIN];
    in.data = all->base[PLAIN] + (1 << 20);
    in.dtype = WEFT_EP_BF16;
    in.hidden = BYTES_HIDDEN;
    got.rows = in;
    got.rows.data = all->base[HEAP];
    got.rows_capacity = (size_t)BYTES_TOKENS * (size_t)pes;
    uint64_t outward = 0;
    uint64_t back = 0;
    int size;
    void *host_memory = NULL;
    CHECK_OK(weft_malloc(of->world, 64, &host_memory));
    const int place = place_in_domain(domain, pes, pe, &size);
    const bool is_direct = ep_is_slots(layout) && goes_directly(domain, pes, BYTES_TOKENS);
    for (int other = 0; other < pes; other++) {
        int theirs;
        if (!goes_by_proxy(of, host_memory, other)) {
            continue;
        }
        const bool is_forwarded_here = place_in_domain(domain, pes, other, &theirs) % size == place;
        outward += is_direct || other == domain[other] ? bytes_rows(domain, pes, pe, other, is_direct) : 0;
        back += is_direct || is_forwarded_here ? bytes_rows(domain, pes, other, pe, is_direct) : 0;
    }
    uint64_t before = bytes_moved(of);
    CHECK_OK(weft_ep_route_choose(route, &choices));
    if (is_direct) { /* rows leave with send, as far as rings hold them */
        CHECK_OK(weft_ep_dispatch_send(route, &in, &got, stream));
        gpu_wait(of->pe);
        check_that((bytes_moved(of) > before) == (outward > 0), __FILE__, __LINE__, "send sends %llu rows: %llu bytes",
                   (unsigned long long)outward, (unsigned long long)(bytes_moved(of) - before));
        CHECK_OK(weft_ep_dispatch_recv(route, stream));
    } else {
        CHECK_OK(weft_ep_dispatch(route, &in, &got, stream));
    }
    CHECK_OK(weft_ep_route_query(route, stream, &counts));
    uint64_t after = bytes_moved(of);
    check_bytes("dispatch", after - before, outward, is_direct ? pes : domains);
    before = after;
    if (is_direct) {
        CHECK_OK(weft_ep_combine_send(route, &got.rows, &in, 0, stream));
        gpu_wait(of->pe);
        check_that((bytes_moved(of) > before) == (back > 0), __FILE__, __LINE__,
                   "send sends back %llu rows: %llu bytes", (unsigned long long)back,
                   (unsigned long long)(bytes_moved(of) - before));
        CHECK_OK(weft_ep_combine_recv(route, stream));
    } else {
        CHECK_OK(weft_ep_combine(route, &got.rows, &in, 0, stream));
    }
    CHECK_OK(weft_ep_route_query(route, stream, &counts));
    check_bytes("combine", bytes_moved(of) - before, back, is_direct ? pes : (pes + size - 1) / size);
    CHECK_OK(weft_free(of->world, host_memory));
    ep_group_close(ep, route);
}

/* ---- positions ---- */

#define NUMBERED_TOKENS 5

/* The position of a token at a rank: turned around, or none, as two tokens of the last rank have the same. */
static int32_t numbered_position(int pes, int rank, int token, int to, bool is_odd)
{
    const bool is_last = rank == pes - 1 && to == pes - 1;
    return is_odd && is_last && token == 0 ? 0 : NUMBERED_TOKENS - 1 - token;
}

/* Positions order what each rank receives; if those of any rank are none, its tokens keep their order, and its route
 * says so. */
static void test_positions(job *of, arena *all, bool is_odd)
{
    const int pes = of->pe->pes;
    const int pe = of->pe->pe;
    weft_stream *stream = gpu_stream_of(of->pe);
    weft_ep *ep = NULL;
    weft_ep_route *route = NULL;
    weft_ep_host_counts counts;
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    weft_ep_rows in = WEFT_EP_ROWS_INIT;
    weft_ep_received got = WEFT_EP_RECEIVED_INIT;
    int32_t *read = (int32_t *)(void *)all->pinned;
    const size_t rows = (size_t)NUMBERED_TOKENS * (size_t)pes;
    config.experts = 2 * pes;
    config.tokens_max = NUMBERED_TOKENS;
    config.topk_max = pes;
    config.row_bytes_max = 16;
    config.on_device = 1;
    plan.flags = WEFT_EP_DESTINATIONS;
    for (int i = 0; i < NUMBERED_TOKENS * pes; i++) {
        read[i] = numbered_position(pes, pe, i / pes, i % pes, is_odd);
    }
    gpu_copy(of->pe, all->base[PLAIN], read, rows * sizeof *read);
    (void)ep_group_open(of->world, &config, &plan, &ep, &route);
    choices.tokens = NUMBERED_TOKENS;
    choices.positions = (const int32_t *)(const void *)all->base[PLAIN];
    in.data = all->base[PLAIN] + (1 << 20);
    in.dtype = WEFT_EP_BF16;
    in.hidden = 8;
    got.rows = in;
    got.rows.data = all->base[HEAP];
    got.rows_capacity = rows;
    got.source_token = (int32_t *)(void *)(all->base[PLAIN] + (2 << 20));
    CHECK_OK(weft_ep_route_choose(route, &choices));
    CHECK_OK(weft_ep_dispatch(route, &in, &got, stream));
    CHECK_OK(weft_ep_route_query(route, stream, &counts));
    CHECK_STATUS((weft_status)counts.status, is_odd && pe == pes - 1 ? WEFT_ERR_RANGE : WEFT_OK);
    gpu_copy(of->pe, read, got.source_token, rows * sizeof *read);
    for (size_t i = 0; i < rows; i++) {
        const int source = (int)i / NUMBERED_TOKENS;
        const int number = (int)i % NUMBERED_TOKENS;
        const int token = is_odd && source == pes - 1 ? number : NUMBERED_TOKENS - 1 - number;
        check_that(read[i] == token, __FILE__, __LINE__, "row %zu is of token %d, not %d", i, read[i], token);
    }
    ep_group_close(ep, route);
}

/* ---- two pairs ---- */

#define PAIRS 2
#define PAIR_TOKENS 6
#define PAIR_HIDDEN 16

/* One of two pairs: each token has one expert, so it comes back as it went. */
typedef struct pair {
    weft_ep_route *route;
    weft_ep_choices choices;
    weft_ep_rows in;
    weft_ep_rows back;
    weft_ep_received got;
} pair;

static void pair_open(job *of, arena *all, weft_ep *ep, int number, pair *pair)
{
    const weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    const weft_ep_rows rows = WEFT_EP_ROWS_INIT;
    const weft_ep_received got = WEFT_EP_RECEIVED_INIT;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    const size_t bytes = PAIR_TOKENS * PAIR_HIDDEN * 2;
    unsigned char *memory = all->base[PLAIN] + number * (1 << 20);
    int32_t *ids = (int32_t *)(void *)all->pinned;
    plan.topk = 1;
    plan.order = number == 1 ? WEFT_EP_ORDER_CHOICE : WEFT_EP_ORDER_RANK;
    CHECK_OK(weft_ep_route_create(ep, &plan, NULL, &pair->route));
    for (int i = 0; i < PAIR_TOKENS; i++) {
        ids[i] = (of->pe->pe + i + number) % of->pe->pes;
    }
    gpu_copy(of->pe, memory, all->pinned, PAIR_TOKENS * sizeof *ids);
    gpu_set(of->pe, memory + 4096, 0x3c + number, bytes);
    gpu_set(of->pe, memory + 8192, 0, bytes);
    pair->choices = choices;
    pair->choices.tokens = PAIR_TOKENS;
    pair->choices.ids = memory;
    pair->in = rows;
    pair->in.dtype = WEFT_EP_BF16;
    pair->in.hidden = PAIR_HIDDEN;
    pair->in.data = memory + 4096;
    pair->back = pair->in;
    pair->back.data = memory + 8192;
    pair->got = got;
    pair->got.rows = pair->in;
    pair->got.rows.data = all->base[HEAP] + number * (1 << 20);
    pair->got.rows_capacity = (size_t)PAIR_TOKENS * (size_t)of->pe->pes;
}

static void pair_check(job *of, arena *all, const pair *pair, int number)
{
    const size_t bytes = PAIR_TOKENS * PAIR_HIDDEN * 2;
    weft_ep_host_counts counts;
    CHECK_OK(weft_ep_route_query(pair->route, gpu_stream_of(of->pe), &counts));
    gpu_copy(of->pe, all->pinned, pair->back.data, bytes);
    for (size_t i = 0; i < bytes; i++) {
        const int seen = ((const unsigned char *)all->pinned)[i];
        check_that(seen == 0x3c + number, __FILE__, __LINE__, "pair %d: byte %zu is %d", number, i, seen);
    }
}

/* By source and by choice a combine has no values beside choices of its own. */
static void refuse_values(job *of, const pair *pair)
{
    weft_ep_combine_options options = WEFT_EP_COMBINE_OPTIONS_INIT;
    float *values = (float *)(void *)((unsigned char *)pair->back.data + 4096);
    options.ids = pair->choices.ids;
    options.values_in = values;
    options.values_out = values;
    CHECK_STATUS(weft_ep_combine_with(pair->route, &pair->got.rows, &pair->back, &options, gpu_stream_of(of->pe)),
                 WEFT_ERR_UNSUPPORTED);
    check_that(strstr(weft_last_error(), "WEFT_EP_ORDER_CHOICE") != NULL, __FILE__, __LINE__, "%s", weft_last_error());
}

/* Two pairs are outstanding at once, of two routes and of one; receives come in any order, a third has to wait, and one
 * stream has all. */
static void test_pairs(job *of, arena *all)
{
    weft_stream *stream = gpu_stream_of(of->pe);
    weft_stream *another = (weft_stream *)(void *)all->pinned; /* any but that: it is refused, not used */
    weft_ep *ep = NULL;
    pair pairs[PAIRS];
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = of->pe->pes;
    config.tokens_max = PAIR_TOKENS;
    config.topk_max = 1;
    config.row_bytes_max = PAIR_HIDDEN * 2;
    config.on_device = 1;
    config.pairs_max = PAIRS;
    if (!CHECK_OK(weft_ep_create(weft_team_world(of->world), &config, &ep))) {
        return;
    }
    for (int i = 0; i < PAIRS; i++) {
        pair_open(of, all, ep, i, &pairs[i]);
        CHECK_OK(weft_ep_route_choose(pairs[i].route, &pairs[i].choices));
    }
    CHECK_OK(weft_ep_dispatch_send(pairs[0].route, &pairs[0].in, &pairs[0].got, stream));
    CHECK_STATUS(weft_ep_dispatch_send(pairs[1].route, &pairs[1].in, &pairs[1].got, another), WEFT_ERR_UNSUPPORTED);
    CHECK_OK(weft_ep_dispatch_send(pairs[1].route, &pairs[1].in, &pairs[1].got, stream));
    CHECK_STATUS(weft_ep_dispatch(pairs[1].route, &pairs[1].in, &pairs[1].got, stream), WEFT_ERR_STATE);
    CHECK_OK(weft_ep_dispatch_recv(pairs[1].route, stream));
    CHECK_OK(weft_ep_dispatch_recv(pairs[0].route, stream));
    for (int i = 0; i < PAIRS; i++) {
        CHECK_OK(weft_ep_combine_send(pairs[i].route, &pairs[i].got.rows, &pairs[i].back, 0, stream));
    }
    for (int i = 0; i < PAIRS; i++) {
        CHECK_OK(weft_ep_combine_recv(pairs[i].route, stream));
        pair_check(of, all, &pairs[i], i);
    }
    refuse_values(of, &pairs[1]);
    gpu_set(of->pe, pairs[0].got.rows.data, 0, PAIR_TOKENS * PAIR_HIDDEN * 2 * (size_t)of->pe->pes);
    weft_ep_received other = pairs[0].got; /* the rows of pair 1 by the routing of pair 0 */
    other.rows.data = pairs[1].got.rows.data;
    CHECK_OK(weft_ep_dispatch_send(pairs[0].route, &pairs[0].in, &pairs[0].got, stream));
    CHECK_OK(weft_ep_dispatch_send(pairs[0].route, &pairs[1].in, &other, stream));
    CHECK_OK(weft_ep_dispatch_recv(pairs[0].route, stream));
    CHECK_OK(weft_ep_dispatch_recv(pairs[0].route, stream));
    CHECK_OK(weft_ep_combine(pairs[0].route, &other.rows, &pairs[0].back, 0, stream));
    pair_check(of, all, &pairs[0], 1);
    CHECK_OK(weft_ep_combine(pairs[0].route, &pairs[0].got.rows, &pairs[0].back, 0, stream));
    pair_check(of, all, &pairs[0], 0);
    for (int i = 0; i < PAIRS; i++) {
        CHECK_OK(weft_ep_route_destroy(pairs[i].route));
    }
    CHECK_OK(weft_ep_destroy(ep));
}

/* ---- ranks that do not come ---- */

#ifdef __SANITIZE_ADDRESS__
#define ABSENT_DEADLINE_NS UINT64_C(1000000000)
#else
#define ABSENT_DEADLINE_NS UINT64_C(500000000)
#endif

/* Whether the text of the last error names one of these ranks. */
static bool names_one_of(const int *masked, int ranks)
{
    bool names = false;
    for (int rank = 0; rank < ranks; rank++) {
        char number[16];
        snprintf(number, sizeof number, " %d", rank);
        names = names || (masked[rank] && strstr(weft_last_error(), number) != NULL);
    }
    return names;
}

static weft_ep_choices absence_choices(const arena *all, const ep_setup *setup)
{
    weft_ep_choices choices = WEFT_EP_CHOICES_INIT;
    choices.tokens = setup->config.tokens_max < 8 ? setup->config.tokens_max : 8;
    choices.ids = all->base[PLAIN]; /* all are expert 0 */
    return choices;
}

/* The call in which ranks are missed: it names some of them where all of a domain are, or each rank waits for all; else
 * it may name who waited for them, or nobody, where blocks of its own were late with all processors busy. Ranks of
 * another domain than the first come to it once the first have given it up, and leave them chunks that nobody takes. */
static void fail_without(job *of, const arena *all, const ep_setup *setup, const int *masked, weft_ep_route *route,
                         bool names_them)
{
    const weft_ep_choices choices = absence_choices(all, setup);
    weft_ep_host_counts counts;
    if (setup->domain[of->pe->pe] != setup->domain[0]) {
        usleep((useconds_t)(2 * ABSENT_DEADLINE_NS / 1000));
    }
    CHECK_OK(weft_ep_route_update(route, &choices, gpu_stream_of(of->pe)));
    CHECK_STATUS(weft_ep_route_query(route, gpu_stream_of(of->pe), &counts), WEFT_ERR_TIMEOUT);
    check_that(strstr(weft_last_error(), "waited in vain for rank") != NULL ||
                   strstr(weft_last_error(), "blocks of this rank's own did not come") != NULL,
               __FILE__, __LINE__, "names no rank: %s", weft_last_error());
    check_that(!names_them || names_one_of(masked, of->pe->pes), __FILE__, __LINE__,
               "names no rank of those that do not come: %s", weft_last_error());
    CHECK_STATUS(weft_ep_route_update(route, &choices, gpu_stream_of(of->pe)), WEFT_ERR_TIMEOUT);
}

/* They are masked one after the other. Those of this rank's domain are in no call, so nobody waits for them. */
static void mask_ranks(weft_ep *ep, int pes, const int *masked)
{
    const double begun_s = now_s();
    int count = 0;
    int wanted = 0;
    for (int rank = 0; rank < pes; rank++) {
        wanted += masked[rank];
        CHECK_OK(masked[rank] ? weft_ep_mask(ep, rank, 0) : WEFT_OK);
    }
    const double took_s = now_s() - begun_s;
    check_that(took_s < DOMAINS_DEADLINE_NS / 2e9, __FILE__, __LINE__, "masking takes %.1f s", took_s);
    CHECK_OK(weft_ep_mask_query(ep, NULL, &count));
    check_that(count == wanted, __FILE__, __LINE__, "%d ranks are masked", count);
    CHECK_STATUS(weft_ep_mask(ep, pes - 1, 1), WEFT_ERR_UNSUPPORTED);
}

/* Tokens whose only expert is of a rank that will be masked: they come back as they are; once it is masked nobody gets
 * them, and they come back as 0. */
static void choose_last(job *of, arena *all, const ep_setup *setup, const int *masked, weft_ep_route *route,
                        bool is_masked, bool has_slots)
{
    weft_stream *stream = gpu_stream_of(of->pe);
    weft_ep_choices choices = absence_choices(all, setup);
    weft_ep_host_counts counts;
    weft_ep_received got = WEFT_EP_RECEIVED_INIT;
    weft_ep_rows in = WEFT_EP_ROWS_INIT;
    unsigned char *read = (unsigned char *)all->pinned;
    int32_t lost = 0;
    while (!masked[setup->owner[lost]]) {
        lost++;
    }
    for (int i = 0; i < choices.tokens; i++) {
        ((int32_t *)(void *)all->pinned)[i] = lost;
    }
    gpu_copy(of->pe, all->base[PLAIN], all->pinned, (size_t)choices.tokens * sizeof lost);
    in.dtype = WEFT_EP_BF16;
    in.hidden = (int)(setup->config.row_bytes_max / 16 * 8);
    in.data = all->base[PLAIN] + (1 << 20);
    got.rows = in;
    got.rows.data = all->base[HEAP];
    got.rows_capacity = (size_t)setup->config.tokens_max * (size_t)of->pe->pes;
    const size_t bytes = (size_t)choices.tokens * (size_t)in.hidden * 2;
    gpu_set(of->pe, in.data, 0x3c, bytes);
    CHECK_OK(weft_ep_route_choose(route, &choices));
    CHECK_OK(weft_ep_dispatch(route, &in, &got, stream));
    CHECK_OK(weft_ep_combine(route, &got.rows, &in, 0, stream));
    CHECK_OK(weft_ep_route_query(route, stream, &counts));
    check_that((counts.rows == 0 || !is_masked || has_slots) && counts.status == WEFT_OK && counts.dropped == 0,
               __FILE__, __LINE__, "%lld rows of experts of a masked rank, %lld dropped, status %d",
               (long long)counts.rows, (long long)counts.dropped, counts.status);
    gpu_copy(of->pe, read, in.data, bytes);
    size_t at = 0;
    while (at < bytes && read[at] == (is_masked ? 0 : 0x3c)) {
        at++;
    }
    check_that(at == bytes, __FILE__, __LINE__, "byte %zu of %zu is %d", at, bytes, at < bytes ? read[at] : 0);
}

/* The next state of `common` of which a group is drawn that has tokens, and an expert of the last rank. */
static uint64_t find_absence(uint64_t common, int pes)
{
    for (;; (void)random_next(&common)) {
        uint64_t state = common;
        const ep_setup setup = ep_setup_draw(random_next(&state), pes, &ep_size_small);
        for (int expert = 0; expert < setup.config.experts && setup.config.tokens_max > 0; expert++) {
            if (setup.owner[expert] == pes - 1) {
                return common;
            }
        }
    }
}

/* Who will not come any more: the last domain, or the last rank and others, of which some live. */
static void draw_absent(const ep_setup *setup, int pes, bool is_domain, uint64_t *common, int *masked)
{
    for (int rank = 0; rank < pes; rank++) {
        masked[rank] =
            is_domain ? setup->domain[rank] == setup->domain[pes - 1] : rank > 0 && random_below(common, 3) == 0;
    }
    masked[pes - 1] = 1;
}

/* The ranks make calls without those that are masked, and then without all of the last domain, too: of which nobody has
 * missed a call. */
static void go_on(job *of, const ep_setup *setup, weft_ep *ep, int *masked, uint64_t *common)
{
    const int pes = of->pe->pes;
    run_layouts(of, ep, setup, &ep_size_small, masked, common);
    ep_cover(EP_COVER_MASKED, 1);
    int is_left = 0;
    for (int rank = 0; rank < pes; rank++) {
        is_left += setup->domain[rank] == setup->domain[pes - 1] && !masked[rank];
        masked[rank] = masked[rank] || setup->domain[rank] == setup->domain[pes - 1];
    }
    if (is_left > 0 && !masked[of->pe->pe]) {
        mask_ranks(ep, pes, masked);
        run_layouts(of, ep, setup, &ep_size_small, masked, common);
    }
}

/* Ranks make calls, and then none. The others say so, mask them, and go on without them, with the bits of the
 * reference. A routing that there was is none any more. In slots the call that fails is a direct one. */
static void test_absence(job *of, arena *all, weft_ep_layout layout, bool is_domain)
{
    const int pes = of->pe->pes;
    uint64_t common = find_absence(of->pe->seed, pes);
    ep_setup setup;
    weft_ep_host_counts counts;
    weft_ep_route *route = NULL;
    weft_ep_plan plan = WEFT_EP_PLAN_INIT;
    int masked[EP_RANKS_MAX] = {};
    plan.topk = 1;
    plan.layout = layout;
    weft_ep *ep = open_group(of, &ep_size_small, &common, &setup);
    if (ep == NULL || !CHECK_OK(weft_ep_route_create(ep, &plan, NULL, &route))) {
        return;
    }
    if (is_domain) {
        run_layouts(of, ep, &setup, &ep_size_small, NULL, &common); /* sums of all domains are in memory */
    }
    draw_absent(&setup, pes, is_domain, &common, masked);
    choose_last(of, all, &setup, masked, route, false, ep_is_slots(layout));
    gpu_set(of->pe, all->base[PLAIN], 0, 1024);
    const weft_ep_choices choices = absence_choices(all, &setup);
    CHECK_OK(weft_ep_route_update(route, &choices, gpu_stream_of(of->pe)));
    CHECK_OK(weft_ep_route_query(route, gpu_stream_of(of->pe), &counts));
    CHECK_OK(weft_barrier(of->world)); /* nobody waits for whoever is last with the shorter deadline */
    const unsigned salt = of->salt; /* as all ranks have it: those that are absent make no more calls */
    CHECK_OK(weft_device_deadline(of->world, ABSENT_DEADLINE_NS));
    if (!masked[of->pe->pe]) {
        const bool is_direct = ep_is_slots(layout) && goes_directly(setup.domain, pes, setup.config.slot_tokens_max);
        int size;
        int size_there;
        const int place = place_in_domain(setup.domain, pes, of->pe->pe, &size);
        (void)place_in_domain(setup.domain, pes, pes - 1, &size_there);
        fail_without(of, all, &setup, masked, route, is_direct || (is_domain && place < size_there));
        CHECK_OK(weft_device_deadline(of->world, DOMAINS_DEADLINE_NS));
        mask_ranks(ep, pes, masked);
        weft_ep_rows rows = WEFT_EP_ROWS_INIT;
        rows.data = all->base[PLAIN];
        rows.dtype = WEFT_EP_BF16;
        rows.hidden = 8;
        CHECK_STATUS(weft_ep_combine(route, &rows, &rows, 0, gpu_stream_of(of->pe)), WEFT_ERR_STATE);
        choose_last(of, all, &setup, masked, route, true, ep_is_slots(layout));
        go_on(of, &setup, ep, masked, &common);
    }
    CHECK_OK(weft_device_deadline(of->world, DOMAINS_DEADLINE_NS));
    CHECK_OK(weft_barrier(of->world));
    for (int rank = 0; rank < pes && masked[of->pe->pe]; rank++) { /* so that its group ends without the others, too */
        CHECK_OK(rank != of->pe->pe ? weft_ep_mask(ep, rank, 0) : WEFT_OK);
    }
    CHECK_OK(weft_ep_route_destroy(route));
    CHECK_OK(weft_ep_destroy(ep));
    CHECK_OK(weft_barrier(of->world));
    of->salt = salt;
}

static void test_body(test_pe *pe)
{
    ep_told_take = take_pinned;
    ep_told_give = give_pinned;
    arena all = {};
    job of = {};
    const int cases = pe->cases > 0 ? pe->cases : CASES;
    check_as_pe(pe->pe);
    of.pe = pe;
    of.world = test_world(pe, "ep_domains", (size_t)4 << 30, ON_GPU ? (size_t)512 << 20 : (size_t)128 << 20);
    CHECK_OK(weft_device_deadline(of.world, DOMAINS_DEADLINE_NS));
    arena_open(&all, pe, of.world, &of.memory);
    take_memory();
    CHECK_OK(weft_barrier(of.world));
    uint64_t common = pe->seed * UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < cases && check_failures() == 0; i++) {
        of.own = common ^ (uint64_t)(pe->pe + 1) * UINT64_C(0xbf58476d1ce4e5b9);
        const uint64_t seed = random_next(&common);
        run_case(&of, seed, i % 3 == 2 && pe->pes <= 4 ? &ep_size_full : &ep_size_small);
        if (check_failures() != 0) {
            fprintf(stderr, "PE %d: case %d, seed %llu\n", pe->pe, i, (unsigned long long)seed);
        }
    }
    if (check_failures() == 0) {
        test_bytes(&of, &all, WEFT_EP_RANK_MAJOR);
        test_bytes(&of, &all, WEFT_EP_SLOTS_SOURCE);
        test_positions(&of, &all, false);
        test_positions(&of, &all, true);
        test_pairs(&of, &all);
        for (int i = 0; i < 4; i++) {
            test_order(&of, &all, i % 2 == 0 ? WEFT_EP_RANK_MAJOR : WEFT_EP_SLOTS_SOURCE, i < 2 ? -1 : pe->pes - 1);
        }
    }
    for (int i = 0; i < 2 && check_failures() == 0; i++) {
        test_late(&of, &all, i == 1);
    }
    CHECK_OK(weft_barrier(of.world));
    arena_deregister(&all, of.world);
    for (int i = 0; i < 4 && check_failures() == 0; i++) {
        test_absence(&of, &all, i % 2 == 0 ? WEFT_EP_RANK_MAJOR : WEFT_EP_SLOTS_SOURCE, i < 2);
    }
    CHECK_OK(weft_world_destroy(of.world));
    give_memory();
    arena_close(&all);
    if (pe->pe == 0) {
        pe->failures += check_failures() != 0;
        printf("%d cases, %u calls:\n", cases, of.salt);
        ep_coverage_print();
    }
}

int main(int argc, char **argv)
{
    return test_main(argc, argv);
}
