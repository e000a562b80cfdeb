#include "topo/spread.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

typedef struct work {
    wefti_topo_spread *spread;
    int gpus;
    int nics;
    int *loads; /* by port */
    int *queue; /* ports */
    int *moved; /* by port: the GPU that moves there, or -1: not reached */
} work;

static int is_near(const work *w, int gpu, int nic)
{
    return w->spread->is_near[(size_t)gpu * (size_t)w->nics + (size_t)nic];
}

static void find_nearest(work *w, const wefti_topo *topo, const int *gpus, const int *nics)
{
    for (int gpu = 0; gpu < w->gpus; gpu++) {
        wefti_topo_distance nearest = WEFTI_TOPO_NONE;
        for (int nic = 0; nic < w->nics; nic++) {
            const wefti_topo_distance distance = wefti_topo_distance_of(topo, gpus[gpu], nics[nic]);
            nearest = distance < nearest ? distance : nearest;
        }
        for (int nic = 0; nic < w->nics; nic++) {
            const int is = wefti_topo_distance_of(topo, gpus[gpu], nics[nic]) == nearest;
            w->spread->is_near[(size_t)gpu * (size_t)w->nics + (size_t)nic] = (unsigned char)is;
            w->spread->alternatives[gpu] += is;
        }
    }
}

static void take_least_used(work *w)
{
    for (int gpu = 0; gpu < w->gpus; gpu++) {
        int best = -1;
        for (int nic = 0; nic < w->nics; nic++) {
            if (is_near(w, gpu, nic) && (best < 0 || w->loads[nic] < w->loads[best])) {
                best = nic;
            }
        }
        w->spread->first[gpu] = best;
        w->loads[best]++;
    }
}

/* From port `from` by GPUs that could use another: a port with at least two GPUs fewer, or -1. */
static int find_path(work *w, int from)
{
    int head = 0;
    int tail = 0;
    for (int nic = 0; nic < w->nics; nic++) {
        w->moved[nic] = -1;
    }
    w->queue[tail++] = from;
    while (head < tail) {
        const int at = w->queue[head++];
        for (int gpu = 0; gpu < w->gpus; gpu++) {
            for (int nic = 0; w->spread->first[gpu] == at && nic < w->nics; nic++) {
                if (nic == from || w->moved[nic] >= 0 || !is_near(w, gpu, nic)) {
                    continue;
                }
                w->moved[nic] = gpu;
                if (w->loads[nic] + 2 <= w->loads[from]) {
                    return nic;
                }
                w->queue[tail++] = nic;
            }
        }
    }
    return -1;
}

static void move_along(work *w, int from, int to)
{
    w->loads[from]--;
    w->loads[to]++;
    while (to != from) {
        const int gpu = w->moved[to];
        const int before = w->spread->first[gpu];
        w->spread->first[gpu] = to;
        to = before;
    }
}

static void balance(work *w)
{
    for (int nic = 0; nic < w->nics; nic++) {
        const int to = find_path(w, nic);
        if (to >= 0) {
            move_along(w, nic, to);
            nic = -1; /* again from the first: paths that had none may now have one */
        }
    }
}

static void give_spares(work *w)
{
    for (int nic = 0; nic < w->nics; nic++) {
        int best = -1;
        for (int gpu = 0; gpu < w->gpus && w->loads[nic] == 0; gpu++) {
            if (is_near(w, gpu, nic) && (best < 0 || w->queue[gpu] < w->queue[best])) {
                best = gpu;
            }
        }
        w->spread->spare[nic] = best;
        if (best >= 0) {
            w->queue[best]++; /* spare ports of the GPU so far */
        }
    }
}

static weft_status fill(work *w, const wefti_topo *topo, const int *gpus, const int *nics)
{
    const size_t most = (size_t)(w->nics > w->gpus ? w->nics : w->gpus) + 1;
    w->loads = wefti_alloc_zeroed(most, sizeof *w->loads);
    w->queue = wefti_alloc_zeroed(most, sizeof *w->queue);
    w->moved = wefti_alloc_zeroed(most, sizeof *w->moved);
    if (w->loads == NULL || w->queue == NULL || w->moved == NULL) {
        return WEFT_ERR_MEMORY;
    }
    find_nearest(w, topo, gpus, nics);
    take_least_used(w);
    balance(w);
    memset(w->queue, 0, most * sizeof *w->queue);
    for (int nic = 0; nic < w->nics; nic++) {
        w->spread->spare[nic] = -1;
    }
    if (w->nics > w->gpus) {
        give_spares(w);
    }
    return WEFT_OK;
}

weft_status wefti_topo_spread_make(wefti_topo_spread *spread, const wefti_topo *topo, const int *gpus, int gpu_count,
                                   const int *nics, int nic_count)
{
    work w = {.spread = spread, .gpus = gpu_count, .nics = nic_count};
    spread->first = wefti_alloc_zeroed((size_t)gpu_count + 1, sizeof *spread->first);
    spread->alternatives = wefti_alloc_zeroed((size_t)gpu_count + 1, sizeof *spread->alternatives);
    spread->spare = wefti_alloc_zeroed((size_t)nic_count + 1, sizeof *spread->spare);
    spread->is_near = wefti_alloc_zeroed((size_t)gpu_count * (size_t)nic_count + 1, 1);
    weft_status status = WEFT_ERR_MEMORY;
    if (spread->first != NULL && spread->alternatives != NULL && spread->spare != NULL && spread->is_near != NULL) {
        status = fill(&w, topo, gpus, nics);
    }
    wefti_free(w.loads);
    wefti_free(w.queue);
    wefti_free(w.moved);
    if (status != WEFT_OK) {
        wefti_topo_spread_fini(spread);
        return wefti_error(WEFT_ERR_MEMORY, "topology: no memory for a plan of %d GPUs and %d ports", gpu_count,
                           nic_count);
    }
    return WEFT_OK;
}

void wefti_topo_spread_fini(wefti_topo_spread *spread)
{
    wefti_free(spread->first);
    wefti_free(spread->alternatives);
    wefti_free(spread->spare);
    wefti_free(spread->is_near);
    memset(spread, 0, sizeof *spread);
}
