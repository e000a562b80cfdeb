/* sim/ep_flow.h: calls of expert parallelism whose data follow from the call's number, the ranks and the tokens alone:
 * so each rank knows every row that comes to it, of which call and source, and every sum that comes back, while calls
 * are numbered alike. Each rank has one expert, and each token goes to some ranks, once to each. */
#ifndef SIM_EP_FLOW_H
#define SIM_EP_FLOW_H

#include "sim/cases.h"
#include "weft_ep.h"

#define FLOW_RANKS 12
#define FLOW_TOKENS 6
#define FLOW_TOPK 3
#define FLOW_HIDDEN 16
#define FLOW_ROWS (FLOW_RANKS * FLOW_TOKENS)
#define FLOW_CALLS 3 /* that a PE has memory for at once */

typedef enum flow_kind {
    FLOW_UPDATE,
    FLOW_FRESH, /* a dispatch that makes its routing */
    FLOW_DISPATCH,
    FLOW_WEIGHED, /* a dispatch that brings weights */
    FLOW_COMBINE,
    FLOW_COMBINE_BWD,
    FLOW_DISPATCH_BWD,
    FLOW_KINDS
} flow_kind;

typedef struct flow_route {
    weft_ep_route *route;
    uint64_t routing; /* 0: none; else the call that made it, from which its choices follow */
    uint64_t weights; /* and the call that brought its weights */
} flow_route;

typedef struct flow_call {
    flow_kind kind;
    flow_route *on;
    uint64_t number;
    uint64_t routing;
    uint64_t weights;
    int weighted;
    int tokens; /* of this rank */
    float *in; /* of this call: own or shared */
    float *out;
    int32_t ids[FLOW_TOKENS * FLOW_TOPK];
    float of_choices[FLOW_TOKENS * FLOW_TOPK];
    float received_weights[FLOW_ROWS * FLOW_TOPK];
    _Alignas(16) float own_in[FLOW_ROWS * FLOW_HIDDEN];
    _Alignas(16) float own_out[FLOW_ROWS * FLOW_HIDDEN];
    float *shared; /* twice as much symmetric memory */
} flow_call;

/* What is drawn for a group beforehand. */
typedef struct flow_plan {
    uint64_t deadline_ns; /* 0: the world's usual one */
    unsigned flags;
    int pairs_max;
    int crosses; /* several domains, if there are ranks enough */
    int rows_max; /* 0: all; else more are an overflow */
    int drops_rows; /* ranks count before they route, as where choices might be dropped; all have room */
} flow_plan;

typedef struct flow {
    case_run *run;
    weft_world *world;
    weft_ep *ep;
    int rank;
    int ranks;
    int by_expert;
    int domains; /* how many */
    int domain_of[FLOW_RANKS];
    uint64_t absent; /* ranks of which no row is looked for, a bit each: masked here, or nobody knows */
    int is_soiled; /* memory behind the rows, by who is late */
    flow_route routes[2];
    flow_call calls[FLOW_CALLS];
} flow;

/* Collective. */
void flow_open(flow *f, case_run *run, uint64_t *common, const flow_plan *plan);
void flow_close(flow *f);

/* The PE of a rank. */
int flow_pe(const flow *f, int rank);

static inline int flow_routes_anew(flow_kind kind)
{
    return kind == FLOW_UPDATE || kind == FLOW_FRESH;
}

static inline int flow_has_halves(flow_kind kind)
{
    return kind != FLOW_UPDATE && kind < FLOW_COMBINE_BWD;
}

/* Whether results come back, which others read where they are. */
static inline int flow_returns(flow_kind kind)
{
    return kind == FLOW_COMBINE || kind == FLOW_DISPATCH_BWD;
}

/* A call as all ranks make it: any, or, on a route without a routing, one that makes one. */
flow_kind flow_draw(const flow_route *on, uint64_t *common);

/* The next call of the group is this one: its data, and a buffer for what comes that holds nothing of it. A choice and
 * weights are given to the route. */
void flow_prepare(flow *f, flow_call *call, flow_kind kind, flow_route *on);
weft_status flow_whole(const flow_call *call);

/* A dispatch without memory for what comes, which all ranks refuse: a choice is not used up. */
weft_status flow_without_room(const flow_call *call);
weft_status flow_send(const flow_call *call);
weft_status flow_recv(const flow_call *call);

/* The call went well: the route has its routing and weights, and what came is what ranks that are not absent sent. */
void flow_done(const flow *f, const flow_call *call);

/* The same again, where it was done before. */
void flow_check(const flow *f, const flow_call *call);

/* The rows that come to a rank by a routing of which all ranks are part. */
int flow_rows(const flow *f, uint64_t routing, int rank);

/* Rows of the width of all calls. */
weft_ep_rows flow_rows_at(float *data);

/* A call gave another status than it must. */
void flow_expect(const flow *f, weft_status status, weft_status wanted, const char *what);

/* Calls on a route's routing give that status and are not counted; and whether it has a routing to tell of. */
void flow_refused(const flow *f, const flow_route *on, weft_status wanted);
void flow_told(const flow *f, const flow_route *on, int has_routing);

/* The number of calls of this rank, and who is masked here. */
uint64_t flow_made(const flow *f);
uint64_t flow_masked(const flow *f);

/* Until so many PEs have come to point `number`, beside weft: 1, 2, and so on. */
void flow_meet(const flow *f, uint64_t number, int count);

#endif
