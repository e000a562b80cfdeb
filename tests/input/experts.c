/* Expert parallelism: a group on both PEs, on which every wrong call is made by both. Single fields of the structs:
 * tests/threads/ep_arguments_test.c. */
#include <string.h>

#include "input/table.h"
#include "weft_ep.h"

#define UNTOUCHED ((void *)(uintptr_t)0x5a5a)
#define TOKENS 4
#define TOPK 2
#define HIDDEN 8

/* A group, a route that has a routing, and one that has none. */
typedef struct party {
    weft_ep *ep;
    weft_ep_route *route;
    weft_ep_route *unrouted;
    weft_ep_plan plan;
    weft_ep_choices choices;
    weft_ep_rows in;
    weft_ep_received received;
    weft_ep_rows out;
} party;

static const int32_t ids[TOKENS * TOPK] = {0, 1, 1, 2, 2, -1, 0, 3};
static _Alignas(16) const float tokens[TOKENS * HIDDEN];

static weft_ep_config good_config(void)
{
    weft_ep_config config = WEFT_EP_CONFIG_INIT;
    config.experts = 4;
    config.tokens_max = TOKENS;
    config.topk_max = TOPK;
    config.row_bytes_max = HIDDEN * sizeof(float);
    return config;
}

static void party_init(party *p, scene *s)
{
    const weft_ep_config config = good_config();
    memset(p, 0, sizeof *p);
    p->plan = (weft_ep_plan)WEFT_EP_PLAN_INIT;
    p->plan.topk = TOPK;
    p->choices = (weft_ep_choices)WEFT_EP_CHOICES_INIT;
    p->choices.tokens = TOKENS;
    p->choices.ids = ids;
    p->in = (weft_ep_rows)WEFT_EP_ROWS_INIT;
    p->in.data = (void *)(uintptr_t)tokens;
    p->in.dtype = WEFT_EP_F32;
    p->in.hidden = HIDDEN;
    p->out = p->in;
    p->out.data = s->dest;
    p->received = (weft_ep_received)WEFT_EP_RECEIVED_INIT;
    p->received.rows = p->out;
    p->received.rows_capacity = 4 * TOKENS;
    CHECK_OK(weft_ep_create(s->team, &config, &p->ep));
    CHECK_OK(weft_ep_route_create(p->ep, &p->plan, NULL, &p->route));
    CHECK_OK(weft_ep_route_create(p->ep, &p->plan, NULL, &p->unrouted));
    CHECK_OK(weft_ep_route_update(p->route, &p->choices, NULL));
}

/* The group still works, and goes. */
static void party_fini(party *p, scene *s)
{
    float sums[TOKENS * HIDDEN]; /* not where the rows lie: the other PE may still read those */
    weft_ep_rows out = p->out;
    out.data = sums;
    CHECK_OK(weft_ep_dispatch(p->route, &p->in, &p->received, NULL));
    CHECK_OK(weft_ep_combine(p->route, &p->received.rows, &out, 0, NULL));
    memset(s->dest, POISON, PART_BYTES);
    CHECK_OK(weft_ep_route_destroy(p->route));
    CHECK_OK(weft_ep_route_destroy(p->unrouted));
    CHECK_OK(weft_ep_destroy(p->ep));
}

CASE(weft_ep_bytes)
{
    const weft_ep_config config = good_config();
    weft_ep_config bad = config;
    weft_ep_memory memory = WEFT_EP_MEMORY_INIT;
    CHECK(s->pes == 2);
    CHECK_STATUS(weft_ep_bytes(NULL, 2, &memory), WEFT_ERR_ARGUMENT);
    CHECK(strstr(weft_last_error(), "weft_ep_bytes") != NULL);
    CHECK_STATUS(weft_ep_bytes(&config, 0, &memory), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_bytes(&config, INT_MIN, &memory), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_bytes(&config, 2, NULL), WEFT_ERR_ARGUMENT);
    bad.experts = -1;
    CHECK_STATUS(weft_ep_bytes(&bad, 2, &memory), WEFT_ERR_ARGUMENT);
    memory.size = 8;
    CHECK_STATUS(weft_ep_bytes(&config, 2, &memory), WEFT_ERR_ARGUMENT);
    CHECK(memory.symmetric_bytes == 0);
}

COVERED(weft_ep_destroy)
CASE(weft_ep_create)
{
    static const int labels[64] = {-1};
    const weft_ep_config config = good_config();
    weft_ep_config bad = config;
    weft_ep *ep = UNTOUCHED;
    party p;
    CHECK_STATUS(weft_ep_create(NULL, &config, &ep), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_create(s->team, &config, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_create(s->team, NULL, &ep), WEFT_ERR_ARGUMENT);
    bad.size = 0;
    CHECK_STATUS(weft_ep_create(s->team, &bad, &ep), WEFT_ERR_ARGUMENT);
    bad = config;
    bad.experts = INT_MIN;
    CHECK_STATUS(weft_ep_create(s->team, &bad, &ep), WEFT_ERR_ARGUMENT);
    bad = config;
    bad.row_bytes_max = SIZE_MAX;
    CHECK_STATUS(weft_ep_create(s->team, &bad, &ep), WEFT_ERR_ARGUMENT);
    bad = config;
    bad.pairs_max = 3;
    CHECK_STATUS(weft_ep_create(s->team, &bad, &ep), WEFT_ERR_ARGUMENT);
    bad = config;
    bad.flags = 32;
    CHECK_STATUS(weft_ep_create(s->team, &bad, &ep), WEFT_ERR_ARGUMENT);
    bad = config;
    bad.windows = 2; /* of no bytes */
    CHECK_STATUS(weft_ep_create(s->team, &bad, &ep), WEFT_ERR_ARGUMENT);
    bad.window_bytes = SIZE_MAX;
    CHECK_STATUS(weft_ep_create(s->team, &bad, &ep), WEFT_ERR_ARGUMENT);
    bad = config;
    bad.domain_ranks = -1;
    CHECK_STATUS(weft_ep_create(s->team, &bad, &ep), WEFT_ERR_ARGUMENT);
    bad.domain_ranks = INT_MAX;
    CHECK_STATUS(weft_ep_create(s->team, &bad, &ep), WEFT_ERR_ARGUMENT);
    bad.domain_of = labels;
    CHECK_STATUS(weft_ep_create(s->team, &bad, &ep), WEFT_ERR_ARGUMENT); /* both */
    bad.domain_ranks = 0;
    CHECK_STATUS(weft_ep_create(s->team, &bad, &ep), WEFT_ERR_ARGUMENT);
    bad = config;
    bad.overflow = (weft_ep_overflow)-1;
    CHECK_STATUS(weft_ep_create(s->team, &bad, &ep), WEFT_ERR_ARGUMENT);
    CHECK(ep == UNTOUCHED);
    party_init(&p, s);
    CHECK_STATUS(weft_ep_destroy(p.ep), WEFT_ERR_STATE); /* its routes are alive */
    party_fini(&p, s);
    CHECK_OK(weft_ep_destroy(NULL));
}

COVERED(weft_ep_route_bytes)
COVERED(weft_ep_sms_hint)
COVERED(weft_ep_route_destroy)
CASE(weft_ep_route_create)
{
    weft_ep_route *route = UNTOUCHED;
    size_t bytes = 11;
    party p;
    party_init(&p, s);
    weft_ep_plan bad = p.plan;
    bad.flags = 8;
    CHECK_STATUS(weft_ep_route_bytes(p.ep, &bad, &bytes), WEFT_ERR_ARGUMENT);
    bad.flags = WEFT_EP_ALL_WEIGHTS;
    bad.layout = WEFT_EP_EXPERT_MAJOR;
    CHECK_STATUS(weft_ep_route_bytes(p.ep, &bad, &bytes), WEFT_ERR_ARGUMENT);
    bad.layout = p.plan.layout;
    bad.flags = WEFT_EP_DESTINATIONS;
    bad.topk = 1; /* neither 0 nor the ranks */
    CHECK_STATUS(weft_ep_route_bytes(p.ep, &bad, &bytes), WEFT_ERR_ARGUMENT);
    bad.topk = 0;
    bad.layout = WEFT_EP_EXPERT_MAJOR;
    CHECK_STATUS(weft_ep_route_bytes(p.ep, &bad, &bytes), WEFT_ERR_ARGUMENT);
    bad = p.plan;
    bad.order = (weft_ep_order)2;
    CHECK_STATUS(weft_ep_route_bytes(p.ep, &bad, &bytes), WEFT_ERR_ARGUMENT);
    bad = p.plan;
    bad.layout = (weft_ep_layout)-1;
    CHECK_STATUS(weft_ep_route_bytes(NULL, &p.plan, &bytes), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_bytes(p.ep, NULL, &bytes), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_bytes(p.ep, &p.plan, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_bytes(p.ep, &bad, &bytes), WEFT_ERR_ARGUMENT);
    int sms = 7;
    CHECK_STATUS(weft_ep_sms_hint(NULL, &p.plan, &sms), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_sms_hint(p.ep, NULL, &sms), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_sms_hint(p.ep, &p.plan, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_sms_hint(p.ep, &bad, &sms), WEFT_ERR_ARGUMENT);
    CHECK(sms == 7);
    CHECK_OK(weft_ep_sms_hint(p.ep, &p.plan, &sms));
    CHECK(sms == 0); /* on the host */
    CHECK_STATUS(weft_ep_route_create(NULL, &p.plan, NULL, &route), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_create(p.ep, NULL, NULL, &route), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_create(p.ep, &p.plan, NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_create(p.ep, &p.plan, s->block + 1, &route), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_create(p.ep, &bad, NULL, &route), WEFT_ERR_ARGUMENT);
    CHECK(route == UNTOUCHED && bytes == 11);
    CHECK_OK(weft_ep_route_destroy(NULL));
    party_fini(&p, s);
}

COVERED(weft_ep_route_counts)
COVERED(weft_ep_route_query)
CASE(weft_ep_route_update)
{
    weft_ep_counts counts = {.rows = UNTOUCHED};
    weft_ep_host_counts host = {.rows = 11};
    party p;
    party_init(&p, s);
    weft_ep_choices bad = p.choices;
    CHECK_STATUS(weft_ep_route_update(NULL, &p.choices, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_update(p.unrouted, NULL, NULL), WEFT_ERR_ARGUMENT);
    bad.tokens = INT_MAX;
    CHECK_STATUS(weft_ep_route_update(p.unrouted, &bad, NULL), WEFT_ERR_ARGUMENT);
    bad = p.choices;
    bad.id_type = (weft_ep_id_type)-1;
    CHECK_STATUS(weft_ep_route_update(p.unrouted, &bad, NULL), WEFT_ERR_ARGUMENT);
    bad = p.choices;
    bad.destinations = (const unsigned char *)ids; /* the plan has no WEFT_EP_DESTINATIONS */
    CHECK_STATUS(weft_ep_route_update(p.unrouted, &bad, NULL), WEFT_ERR_ARGUMENT);
    bad.destinations = NULL;
    bad.positions = ids;
    CHECK_STATUS(weft_ep_route_update(p.unrouted, &bad, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_counts(NULL, &counts), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_counts(p.route, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_counts(p.unrouted, &counts), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_route_query(NULL, NULL, &host), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_query(p.route, NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_query(p.unrouted, NULL, &host), WEFT_ERR_STATE);
    CHECK(counts.rows == UNTOUCHED && host.rows == 11);
    party_fini(&p, s);
}

COVERED(weft_ep_combine)
CASE(weft_ep_dispatch)
{
    party p;
    party_init(&p, s);
    weft_ep_rows bad = p.in;
    weft_ep_received small = p.received;
    bad.hidden = INT_MAX;
    small.rows_capacity = 0;
    CHECK_STATUS(weft_ep_dispatch(NULL, &p.in, &p.received, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch(p.route, NULL, &p.received, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch(p.route, &p.in, NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch(p.route, &bad, &p.received, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch(p.route, &p.in, &small, NULL), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_ep_dispatch(p.unrouted, &p.in, &p.received, NULL), WEFT_ERR_STATE);
    small = p.received;
    small.scale_group_stride = 64; /* neither slots by expert nor scales */
    CHECK_STATUS(weft_ep_dispatch(p.route, &p.in, &small, NULL), WEFT_ERR_ARGUMENT);
    small = p.received;
    small.expert_type = (weft_ep_id_type)2;
    CHECK_STATUS(weft_ep_dispatch(p.route, &p.in, &small, NULL), WEFT_ERR_ARGUMENT);
    small.expert_type = WEFT_EP_INT64;
    small.experts = (int32_t *)(void *)((char *)s->dest + 4);
    CHECK_STATUS(weft_ep_dispatch(p.route, &p.in, &small, NULL), WEFT_ERR_ARGUMENT);
    small = p.received;
    small.experts_are_global = 2;
    CHECK_STATUS(weft_ep_dispatch(p.route, &p.in, &small, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine(NULL, &p.in, &p.out, 0, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine(p.route, NULL, &p.out, 0, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine(p.route, &p.in, NULL, 0, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine(p.route, &bad, &p.out, 0, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine(p.route, &p.in, &p.out, 1u << 31, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine(p.unrouted, &p.in, &p.out, 0, NULL), WEFT_ERR_STATE);
    CHECK(s->dest[0] == POISON);
    party_fini(&p, s);
}

/* Each is refused before anything is called. */
static void bad_options(const party *p, const weft_ep_combine_options *bad)
{
    CHECK_STATUS(weft_ep_combine_with(p->route, &p->in, &p->out, bad, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_send_with(p->route, &p->in, &p->out, bad, NULL), WEFT_ERR_ARGUMENT);
}

COVERED(weft_ep_combine_send_with)
CASE(weft_ep_combine_with)
{
    party p;
    float weights[TOKENS * TOPK] = {0};
    party_init(&p, s);
    const weft_ep_combine_options good = WEFT_EP_COMBINE_OPTIONS_INIT;
    weft_ep_combine_options bad = good;
    weft_ep_rows bias = p.in;
    CHECK_STATUS(weft_ep_combine_with(NULL, &p.in, &p.out, &good, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_with(p.route, NULL, &p.out, &good, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_with(p.route, &p.in, NULL, &good, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_with(p.unrouted, &p.in, &p.out, &good, NULL), WEFT_ERR_STATE);
    bad_options(&p, NULL);
    bad.size = 0;
    bad_options(&p, &bad);
    bad = good;
    bad.flags = 2;
    bad_options(&p, &bad);
    bad = good;
    bad.weights = weights; /* without the flag */
    bad_options(&p, &bad);
    bad = good;
    bad.flags = WEFT_EP_WEIGHTED;
    bad.ids = weights; /* without weights */
    bad_options(&p, &bad);
    bad = good;
    bad.id_type = (weft_ep_id_type)7;
    bad_options(&p, &bad);
    bad = good;
    bad.bias[1] = &bias; /* without the first */
    bad_options(&p, &bad);
    bad = good;
    bad.values_in = weights; /* without values_out */
    bad_options(&p, &bad);
    bad = good;
    bias.hidden /= 2;
    bad.bias[0] = &bias;
    bad_options(&p, &bad);
    CHECK(s->dest[0] == POISON);
    party_fini(&p, s);
}

CASE(weft_ep_domains)
{
    party p;
    party_init(&p, s);
    int count = 11;
    int of[64];
    CHECK_STATUS(weft_ep_domains(NULL, of, &count), WEFT_ERR_ARGUMENT);
    CHECK(count == 11);
    CHECK_OK(weft_ep_domains(p.ep, NULL, NULL));
    CHECK_OK(weft_ep_domains(p.ep, of, NULL));
    CHECK_OK(weft_ep_domains(p.ep, NULL, &count));
    CHECK(count == 1 && of[0] == 0);
    party_fini(&p, s);
}

CASE(weft_ep_limits)
{
    party p;
    party_init(&p, s);
    weft_ep_config limits = WEFT_EP_CONFIG_INIT;
    CHECK_STATUS(weft_ep_limits(NULL, &limits), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_limits(p.ep, NULL), WEFT_ERR_ARGUMENT);
    limits.size = 8;
    CHECK_STATUS(weft_ep_limits(p.ep, &limits), WEFT_ERR_ARGUMENT);
    CHECK(limits.experts == 0);
    limits.size = sizeof limits;
    CHECK_OK(weft_ep_limits(p.ep, &limits));
    CHECK(limits.experts == good_config().experts && limits.size == sizeof limits);
    party_fini(&p, s);
}

COVERED(weft_ep_mask_words)
COVERED(weft_ep_calls)
COVERED(weft_ep_rejoin)
CASE(weft_ep_mask_query)
{
    party p;
    party_init(&p, s);
    int count = 11;
    CHECK_STATUS(weft_ep_mask_query(NULL, NULL, &count), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_mask_words(NULL, UNTOUCHED), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_mask_words(p.ep, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_calls(NULL, UNTOUCHED), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_calls(p.ep, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_rejoin(NULL, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_rejoin(p.ep, 0), WEFT_ERR_ARGUMENT); /* it has made one call */
    CHECK(count == 11);
    CHECK_OK(weft_ep_mask_query(p.ep, NULL, NULL));
    CHECK_OK(weft_ep_mask_query(p.ep, NULL, &count));
    CHECK(count == 0);
    party_fini(&p, s);
}

COVERED(weft_ep_stats_clear)
CASE(weft_ep_stats_query)
{
    party p;
    weft_ep_stats stats = WEFT_EP_STATS_INIT;
    party_init(&p, s);
    CHECK_STATUS(weft_ep_stats_query(NULL, &stats), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_stats_query(p.ep, &stats), WEFT_ERR_STATE); /* it keeps none */
    CHECK_STATUS(weft_ep_stats_clear(NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_stats_clear(p.ep), WEFT_ERR_STATE);
    party_fini(&p, s);
}

CASE(weft_ep_mask)
{
    party p;
    party_init(&p, s);
    int rank = weft_team_pe(s->team);
    CHECK_STATUS(weft_ep_mask(NULL, 0, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_mask(p.ep, rank, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_mask(p.ep, !rank, 7), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_mask(p.ep, -1, 0), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_ep_mask(p.ep, INT_MAX, 0), WEFT_ERR_RANGE);
    party_fini(&p, s);
}

CASE(weft_ep_failure)
{
    party p;
    party_init(&p, s);
    CHECK_STATUS(weft_ep_failure(NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_failure(p.ep), WEFT_OK);
    party_fini(&p, s);
}

CASE(weft_ep_overflow_query)
{
    party p;
    weft_ep_overflow_report report = WEFT_EP_OVERFLOW_REPORT_INIT;
    party_init(&p, s);
    CHECK_STATUS(weft_ep_overflow_query(NULL, &report), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_overflow_query(p.ep, NULL), WEFT_ERR_ARGUMENT);
    report.size--;
    CHECK_STATUS(weft_ep_overflow_query(p.ep, &report), WEFT_ERR_ARGUMENT);
    report.size++;
    CHECK_STATUS(weft_ep_overflow_query(p.ep, &report), WEFT_ERR_UNSUPPORTED); /* on the host */
    party_fini(&p, s);
}

CASE(weft_ep_route_attach)
{
    static _Alignas(64) char memory[64];
    party p;
    party_init(&p, s);
    CHECK_STATUS(weft_ep_route_attach(NULL, memory, SIZE_MAX, WEFT_EP_CONTENTS_NONE, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_attach(p.route, NULL, SIZE_MAX, WEFT_EP_CONTENTS_NONE, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_attach(p.route, memory + 8, SIZE_MAX, WEFT_EP_CONTENTS_NONE, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_attach(p.route, memory, 64, WEFT_EP_CONTENTS_NONE, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_attach(p.route, memory, SIZE_MAX, (weft_ep_contents)2, NULL), WEFT_ERR_ARGUMENT);
    /* of GPUs */
    CHECK_STATUS(weft_ep_route_attach(p.route, memory, SIZE_MAX, WEFT_EP_CONTENTS_NONE, NULL), WEFT_ERR_UNSUPPORTED);
    party_fini(&p, s);
}

CASE(weft_ep_route_move)
{
    static _Alignas(64) char memory[64];
    party p;
    party_init(&p, s);
    CHECK_STATUS(weft_ep_route_move(NULL, memory, SIZE_MAX), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_move(p.route, NULL, SIZE_MAX), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_move(p.route, memory + 8, SIZE_MAX), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_move(p.route, memory, 64), WEFT_ERR_ARGUMENT); /* too few */
    CHECK_STATUS(weft_ep_route_move(p.route, memory, SIZE_MAX), WEFT_ERR_ARGUMENT); /* of the library's memory */
    party_fini(&p, s);
}

CASE(weft_ep_window)
{
    party p;
    void *window = s;
    party_init(&p, s);
    CHECK_STATUS(weft_ep_window(NULL, 0, &window), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_window(p.ep, 0, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_window(p.ep, -1, &window), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_ep_window(p.ep, 0, &window), WEFT_ERR_RANGE); /* the group has none */
    CHECK(window == s);
    party_fini(&p, s);
}

CASE(weft_ep_route_sms)
{
    party p;
    party_init(&p, s);
    CHECK_STATUS(weft_ep_route_sms(NULL, 4), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_sms(p.route, -1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_sms(p.route, INT_MIN), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_ep_route_sms(p.route, INT_MAX)); /* of no effect on the host */
    party_fini(&p, s);
}

COVERED(weft_ep_route_require)
COVERED(weft_ep_route_expect)
CASE(weft_ep_route_generation)
{
    party p;
    uint64_t generation = 11;
    party_init(&p, s);
    CHECK_STATUS(weft_ep_route_generation(NULL, &generation), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_generation(p.route, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_expect(NULL, 0), WEFT_ERR_ARGUMENT);
    CHECK(generation == 11);
    CHECK_OK(weft_ep_route_generation(p.unrouted, &generation));
    CHECK(generation == 0);
    CHECK_OK(weft_ep_route_generation(p.route, &generation));
    CHECK(generation == 1);
    CHECK_OK(weft_ep_route_expect(p.route, generation));
    CHECK_OK(weft_ep_dispatch(p.route, &p.in, &p.received, NULL));
    CHECK_OK(weft_ep_route_expect(p.route, generation)); /* the same routing */
    CHECK_OK(weft_ep_route_choose(p.route, &p.choices));
    weft_ep_received small = p.received;
    small.rows_capacity = 0;
    small.rows.data = NULL;
    weft_ep_rows none = p.in;
    none.data = NULL;
    CHECK_STATUS(weft_ep_dispatch(p.route, &none, &small, NULL), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_ep_route_expect(p.route, generation)); /* that has routed nothing */
    CHECK_OK(weft_ep_dispatch(p.route, &p.in, &p.received, NULL));
    CHECK_STATUS(weft_ep_route_expect(p.route, generation), WEFT_ERR_STATE);
    CHECK_OK(weft_ep_route_update(p.route, &p.choices, NULL));
    CHECK_OK(weft_ep_route_expect(p.route, generation + 2));
    CHECK_STATUS(weft_ep_route_require(NULL, 0), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_ep_route_require(p.route, generation));
    CHECK_STATUS(weft_ep_dispatch(p.route, &p.in, &p.received, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_combine(p.route, &p.in, &p.out, 0, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_combine_send(p.route, &p.in, &p.out, 0, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_dispatch_bwd(p.route, &p.in, NULL, &p.out, NULL, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_combine_bwd(p.route, &p.out, NULL, &p.in, NULL, 0, NULL), WEFT_ERR_STATE);
    CHECK_OK(weft_ep_route_require(p.route, generation + 2));
    CHECK_OK(weft_ep_dispatch(p.route, &p.in, &p.received, NULL));
    CHECK_OK(weft_ep_route_update(p.route, &p.choices, NULL));
    CHECK_STATUS(weft_ep_dispatch(p.route, &p.in, &p.received, NULL), WEFT_ERR_STATE);
    CHECK_OK(weft_ep_route_require(p.route, 0));
    CHECK_OK(weft_ep_dispatch(p.route, &p.in, &p.received, NULL));
    party_fini(&p, s);
}

COVERED(weft_ep_route_counts_wait)
CASE(weft_ep_route_counts_to)
{
    party p;
    uint64_t generation[3] = {11, 11, 11};
    int32_t rows[2];
    party_init(&p, s);
    weft_ep_count_arrays bad = WEFT_EP_COUNT_ARRAYS_INIT;
    CHECK_STATUS(weft_ep_route_counts_to(NULL, &bad), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_counts_to(p.route, &bad), WEFT_ERR_ARGUMENT);
    bad.generation = (uint64_t *)(void *)((char *)generation + 4);
    CHECK_STATUS(weft_ep_route_counts_to(p.route, &bad), WEFT_ERR_ARGUMENT);
    bad.generation = generation;
    bad.type = (weft_ep_id_type)2;
    CHECK_STATUS(weft_ep_route_counts_to(p.route, &bad), WEFT_ERR_ARGUMENT);
    bad.type = WEFT_EP_INT32;
    bad.rows = (char *)rows + 2;
    CHECK_STATUS(weft_ep_route_counts_to(p.route, &bad), WEFT_ERR_ARGUMENT);
    bad.rows = rows;
    bad.size = 8;
    CHECK_STATUS(weft_ep_route_counts_to(p.route, &bad), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_counts_wait(NULL, 1), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_counts_wait(p.route, 1), WEFT_ERR_STATE);
    CHECK(generation[0] == 11 && generation[1] == 11);
    bad.size = sizeof bad;
    CHECK_OK(weft_ep_route_counts_to(p.route, &bad));
    CHECK(generation[0] == 0 && generation[1] == 0);
    CHECK_STATUS(weft_ep_route_counts_wait(p.route, 0), WEFT_ERR_RANGE);
    CHECK_OK(weft_ep_route_update(p.route, &p.choices, NULL));
    CHECK_OK(weft_ep_route_counts_wait(p.route, 1));
    CHECK_OK(weft_ep_route_update(p.route, &p.choices, NULL));
    CHECK_OK(weft_ep_route_update(p.route, &p.choices, NULL));
    CHECK_STATUS(weft_ep_route_counts_wait(p.route, 1), WEFT_ERR_RANGE);
    CHECK_OK(weft_ep_route_counts_to(p.route, NULL));
    CHECK_STATUS(weft_ep_route_counts_wait(p.route, 3), WEFT_ERR_STATE);
    bad.on_stream = 1;
    CHECK_STATUS(weft_ep_route_counts_to(p.route, &bad), WEFT_ERR_ARGUMENT);
    bad.generation = NULL;
    bad.on_stream = 2;
    CHECK_STATUS(weft_ep_route_counts_to(p.route, &bad), WEFT_ERR_ARGUMENT);
    bad.on_stream = 1;
    bad.with_dropped = 2;
    CHECK_STATUS(weft_ep_route_counts_to(p.route, &bad), WEFT_ERR_ARGUMENT);
    bad.with_dropped = 1;
    CHECK_OK(weft_ep_route_counts_to(p.route, &bad));
    CHECK_STATUS(weft_ep_route_counts_wait(p.route, 1), WEFT_ERR_STATE);
    party_fini(&p, s);
}

CASE(weft_ep_route_choose)
{
    party p;
    party_init(&p, s);
    weft_ep_choices bad = p.choices;
    bad.tokens = -1;
    CHECK_STATUS(weft_ep_route_choose(NULL, &p.choices), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_choose(p.unrouted, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_choose(p.unrouted, &bad), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch(p.unrouted, &p.in, &p.received, NULL), WEFT_ERR_STATE); /* nothing is chosen */
    party_fini(&p, s);
}

CASE(weft_ep_route_weigh)
{
    party p;
    party_init(&p, s);
    const float weights[64] = {0};
    CHECK_STATUS(weft_ep_route_weigh(NULL, weights), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_weigh(p.unrouted, weights), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_route_weigh(p.route, (const float *)(const void *)((const char *)weights + 1)),
                 WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_ep_route_weigh(p.route, weights));
    CHECK_OK(weft_ep_route_weigh(p.route, NULL)); /* which the choice drops */
    CHECK_OK(weft_ep_route_choose(p.route, &p.choices));
    CHECK_STATUS(weft_ep_route_weigh(p.route, weights), WEFT_ERR_STATE);
    CHECK_OK(weft_ep_dispatch(p.route, &p.in, &p.received, NULL));
    party_fini(&p, s);
}

CASE(weft_ep_route_pad)
{
    party p;
    uint64_t mark[2] = {0, 0};
    party_init(&p, s);
    weft_ep_received bad = p.received;
    CHECK_STATUS(weft_ep_route_pad(NULL, &p.received, mark, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_pad(p.route, NULL, mark, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_route_pad(p.unrouted, &p.received, mark, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_route_pad(p.route, &p.received, (uint64_t *)(void *)((char *)mark + 4), NULL),
                 WEFT_ERR_ARGUMENT);
    bad.rows.hidden = INT_MAX;
    CHECK_STATUS(weft_ep_route_pad(p.route, &bad, mark, NULL), WEFT_ERR_ARGUMENT);
    bad = p.received;
    bad.size = 4; /* of no header */
    CHECK_STATUS(weft_ep_route_pad(p.route, &bad, mark, NULL), WEFT_ERR_ARGUMENT);
    CHECK(mark[0] == 0 && mark[1] == 0);
    CHECK_OK(weft_ep_route_pad(p.route, &p.received, mark, NULL));
    CHECK_OK(weft_ep_route_pad(p.route, &p.received, NULL, NULL));
    CHECK_OK(weft_ep_dispatch(p.route, &p.in, &p.received, NULL));
    party_fini(&p, s);
}

COVERED(weft_ep_dispatch_recv)
COVERED(weft_ep_combine_send)
COVERED(weft_ep_combine_recv)
CASE(weft_ep_dispatch_send)
{
    party p;
    party_init(&p, s);
    weft_ep_rows bad = p.in;
    bad.hidden = INT_MAX;
    CHECK_STATUS(weft_ep_dispatch_send(NULL, &p.in, &p.received, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch_send(p.route, &bad, &p.received, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch_send(p.unrouted, &p.in, &p.received, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_dispatch_recv(NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch_recv(p.route, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_combine_send(NULL, &p.in, &p.out, 0, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_send(p.route, &bad, &p.out, 0, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_send(p.unrouted, &p.in, &p.out, 0, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_combine_recv(NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_recv(p.route, NULL), WEFT_ERR_STATE);
    CHECK(s->dest[0] == POISON);
    CHECK_OK(weft_ep_dispatch_send(p.route, &p.in, &p.received, NULL));
    CHECK_STATUS(weft_ep_dispatch(p.route, &p.in, &p.received, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_combine(p.route, &p.received.rows, &p.out, 0, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_combine_recv(p.route, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_dispatch_recv(p.unrouted, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_route_update(p.unrouted, &p.choices, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_route_choose(p.route, &p.choices), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_route_destroy(p.route), WEFT_ERR_STATE);
    CHECK_OK(weft_ep_dispatch_recv(p.route, NULL));
    CHECK_STATUS(weft_ep_dispatch_recv(p.route, NULL), WEFT_ERR_STATE);
    party_fini(&p, s);
}

COVERED(weft_ep_combine_bwd)
CASE(weft_ep_dispatch_bwd)
{
    party p;
    party_init(&p, s);
    float weights[TOKENS * TOPK * 4] = {0};
    weft_ep_rows bad = p.in;
    weft_ep_rows rows = p.received.rows;
    bad.hidden = INT_MAX;
    CHECK_STATUS(weft_ep_dispatch_bwd(NULL, &rows, NULL, &p.out, NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch_bwd(p.route, NULL, NULL, &p.out, NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch_bwd(p.route, &rows, NULL, NULL, NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch_bwd(p.route, &rows, NULL, &bad, NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch_bwd(p.route, &rows, weights, &p.out, NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch_bwd(p.route, &rows, NULL, &p.out, weights, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_dispatch_bwd(p.unrouted, &rows, NULL, &p.out, NULL, NULL), WEFT_ERR_STATE);
    CHECK_STATUS(weft_ep_combine_bwd(NULL, &p.in, NULL, &rows, NULL, 0, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_bwd(p.route, NULL, NULL, &rows, NULL, 0, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_bwd(p.route, &p.in, NULL, NULL, NULL, 0, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_bwd(p.route, &p.in, &bad, &rows, weights, WEFT_EP_WEIGHTED, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_bwd(p.route, &p.in, NULL, &rows, weights, WEFT_EP_WEIGHTED, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_bwd(p.route, &p.in, &rows, &rows, NULL, WEFT_EP_WEIGHTED, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_bwd(p.route, &p.in, &rows, &rows, weights, 0, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_bwd(p.route, &p.in, NULL, &rows, NULL, 2, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ep_combine_bwd(p.unrouted, &p.in, NULL, &rows, NULL, 0, NULL), WEFT_ERR_STATE);
    CHECK(s->dest[0] == POISON);
    party_fini(&p, s);
}
