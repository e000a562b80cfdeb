/* faces/nvte/sizes.c: the bytes of a layer's memory name its group, top_k and alignment.
 *
 * A call has no other argument that says them: the memory's address may be another each time, as where a framework
 * copies it, and to read what it holds would stop the stream. So the size is the next multiple of 64 KiB plus a number
 * below that: 6 bits of the group, 4 of the alignment, 6 of top_k. */
#include "faces/nvte/face.h"

#define GRAIN ((size_t)1 << 16)
#define ALIGNMENT_SHIFT 6
#define NUMBER_SHIFT 10

size_t nvte_size_of(const nvte_layer *layer, size_t bytes)
{
    size_t name =
        (size_t)layer->number << NUMBER_SHIFT | (size_t)layer->alignment << ALIGNMENT_SHIFT | (size_t)(layer->topk - 1);
    return (bytes + GRAIN - 1) / GRAIN * GRAIN + name;
}

int nvte_layer_of(size_t size, nvte_layer *layer)
{
    size_t name = size % GRAIN;
    layer->number = (int)(name >> NUMBER_SHIFT);
    layer->alignment = (int)(name >> ALIGNMENT_SHIFT & 15);
    layer->topk = (int)(name & (NVTE_TOPK_MAX - 1)) + 1;
    return layer->number != 0 && layer->alignment < NVTE_ALIGNMENTS;
}
