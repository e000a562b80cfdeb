/* gpu/support/ep_rig.h: a group on GPUs for tests of its rules: two PEs as threads on the fake driver
 * (src/testing/fake_driver), whose device memory is this machine's, so that arrays may lie anywhere; what is received
 * lies in the device heap, before marked rows. */
#ifndef WEFT_TESTS_EP_RIG_H
#define WEFT_TESTS_EP_RIG_H

#include <pthread.h>

#include "cuda/ep/host/group.h"
#include "support/check.h"
#include "weft_ep.h"

#define EP_RIG_PES 2
#define EP_RIG_TOKENS 8
#define EP_RIG_TOPK 2
#define EP_RIG_LOCAL_EXPERTS 2
#define EP_RIG_HIDDEN 16
#define EP_RIG_ROWS 64 /* more than ever come */
#define EP_RIG_MARK 0x5a

typedef float ep_rig_row[EP_RIG_HIDDEN];

typedef struct ep_rig {
    weft_world *world;
    int rank;
    weft_ep *ep;
    weft_ep_route *route;
    int32_t ids[EP_RIG_TOKENS * EP_RIG_TOPK];
    weft_ep_choices choices;
    weft_ep_rows in;
    weft_ep_received received;
    ep_rig_row *there; /* EP_RIG_ROWS */
    wefti_cuda_ep_control *later;
    pthread_t thread;
    _Alignas(64) ep_rig_row tokens[EP_RIG_TOKENS];
} ep_rig;

weft_ep_rows ep_rig_rows(ep_rig_row *data);

int ep_rig_attach(weft_world *world); /* returns 0 after a failed check */
weft_ep_config ep_rig_config(void);
void ep_rig_open(ep_rig *rig, weft_world *world, weft_ep_layout layout, int slot_tokens);
void ep_rig_open_with(ep_rig *rig, weft_world *world, weft_ep_layout layout, const weft_ep_config *config,
                      int slot_tokens);
void ep_rig_close(ep_rig *rig);
/* Close it where rank 0 has masked rank 1; the deadline is a long one again. */
void ep_rig_close_alone(ep_rig *rig);

/* All tokens to one expert; ranks have EP_RIG_LOCAL_EXPERTS each. */
void ep_rig_choose(ep_rig *rig, int expert);
weft_status ep_rig_status(const ep_rig *rig); /* of the route */
int ep_rig_rows_written(const ep_rig *rig);
wefti_cuda_ep_control *ep_rig_control(const ep_rig *rig);

/* A step that goes well: each rank's tokens to the next rank. */
void ep_rig_expect_step(ep_rig *rig);
/* Whoever looks first learns that an earlier call did not match, and what the calls of rank 0 and of rank 1 were. */
void ep_rig_expect_mismatch(const ep_rig *rig, const char *call0, const char *call1);

/* Some cases of a file, each run with which = 0 .. whiches - 1, in one world of threads: each thread that launches has
 * its own stacks on the fake driver. */
typedef struct ep_rig_case {
    void (*body)(weft_world *world, int which);
    int whiches;
} ep_rig_case;

typedef struct ep_rig_cases {
    const ep_rig_case *cases;
    size_t count;
} ep_rig_cases;

void ep_rig_run(const ep_rig_cases *cases);

#endif
