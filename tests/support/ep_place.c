/* support/ep_place.c: the host. */
#include "support/ep_place.h"

#include <stdlib.h>
#include <string.h>

#include "support/check.h"

/* One array of four lies beside the heap, and one for which there is no room. In the heap each rank has its own places,
 * of any of the multiples of 16 in a line. */
static void *place_array(void *context, const void *image, size_t bytes, unsigned random)
{
    void *piece = NULL;
    size_t shift = random / 4 % 4 * 16;
    if (random % 4 != 0) {
        CHECK_OK(weft_slab_alloc(context, bytes + shift, 0, &piece));
    }
    unsigned char *there = piece != NULL ? (unsigned char *)piece + shift : malloc(bytes);
    memcpy(there, image, bytes);
    return there;
}

static void fetch_array(void *context, void *image, const void *there, size_t bytes)
{
    (void)context;
    memcpy(image, there, bytes);
}

static void release_array(void *context, void *there, size_t bytes)
{
    memset(there, 0x5a, bytes);
    if (weft_slab_contains(context, there)) {
        CHECK_OK(weft_slab_free(context, (unsigned char *)there - (uintptr_t)there % 64));
    } else {
        free(there);
    }
}

int ep_host_open(ep_place *place, weft_world *world, size_t bytes)
{
    weft_slab *slab;
    *place = (ep_place){.memory = {.place = place_array, .fetch = fetch_array, .release = release_array}};
    if (!CHECK_OK(weft_malloc(world, bytes, &place->block)) ||
        !CHECK_OK(weft_slab_create(place->block, bytes, &slab))) {
        return 0;
    }
    place->memory.context = slab;
    return 1;
}

void ep_host_close(ep_place *place, weft_world *world)
{
    CHECK_OK(weft_slab_destroy(place->memory.context));
    CHECK_OK(weft_free(world, place->block));
}
