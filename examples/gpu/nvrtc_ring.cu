/* The kernel of nvrtc_ring.c: every PE writes its number to its right neighbour, and all wait for all. */
#include "weft_device.cuh"

extern "C" __global__ void ring(const __grid_constant__ weft_dev_team team, int *from, int *status)
{
    const weft_dev &dev = team.world;
    if (threadIdx.x == 0) {
        (void)weft_dev_p(dev, from, dev.pe, (dev.pe + 1) % dev.pes);
    }
    int outcome = weft_dev_barrier(weft_block(), team);
    if (threadIdx.x == 0) {
        *status = outcome;
    }
}
