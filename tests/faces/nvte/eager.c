/* Goal: steps as TransformerEngine's extension of PyTorch makes them are right, in buffers of as many rows as come, and
 * none.
 *
 * Method: as steps.c. */
#include <stdlib.h>
#include <string.h>

#include "faces/nvte/layer.h"

/* Buffers of as many rows as the counts say, at NULL where there are none. */
static void take_exact(layer *l)
{
    const size_t rows = (size_t)l->total;
    l->received = tensor(rows != 0 ? l->rows : NULL, kNVTEFloat32, rows, HIDDEN);
    l->received_weights = tensor(rows != 0 ? l->row_weights : NULL, kNVTEFloat32, rows, 0);
}

/* In a group without max_recv_tokens_per_rank: each layer prepares, waits for its counts, which come to memory of the
 * host, and dispatches into buffers of that many rows; the backwards of all layers in reverse, each layer's memory
 * being used again by the next step. Rows behind the buffers stay as they were. */
void eager(rig *r)
{
    static const struct {
        int topk;
        size_t alignment;
    } kinds[] = {{2, 4}, {3, 0}, {2, 4}};
    const int count = sizeof kinds / sizeof *kinds;
    for (int i = 0; i < count; i++) {
        open_layer(r, &r->layers[i], kinds[i].topk, kinds[i].alignment);
    }
    for (unsigned seed = 0; seed < 3; seed++) {
        for (int i = 0; i < count; i++) {
            layer *l = &r->layers[i];
            choose(r, l, seed + (unsigned)i);
            for (size_t at = 0; at < l->tokens * (size_t)l->topk && seed == 1; at++) {
                l->ids[at] = at % 2 == 0 ? 0 : -1; /* to one expert, so that other ranks receive nothing */
            }
            prepare(r, l);
            CHECK(seed != 1 || (l->total == 0) == (r->rank != 0));
            take_exact(l);
            memset(l->rows, 0xff, sizeof l->rows);
            OK(nvte_ep_dispatch(&l->handle_mem, &l->idx, &l->in, none, &l->topk_weights, none, &l->received, none,
                                &l->received_weights, none, NULL));
            uint32_t behind = 0;
            memcpy(&behind, l->rows[l->total], sizeof behind);
            CHECK(behind == UINT32_MAX);
            work(r, l);
            combine(r, l);
        }
        for (int i = count - 1; i >= 0; i--) {
            backward(r, &r->layers[i]);
        }
    }
    for (int i = 0; i < count; i++) {
        close_layer(&r->layers[i]);
    }
}
