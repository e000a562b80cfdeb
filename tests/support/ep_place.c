/* support/ep_place.c: the host. */
#include "support/ep_place.h"

#include <stdlib.h>
#include <string.h>

#include "support/check.h"

/* A symmetric block of which the arrays of a call take parts, one behind the other. */
typedef struct arena {
    unsigned char *base;
    size_t bytes;
    size_t used;
    int live;
} arena;

static int is_in_arena(const arena *of, const void *there)
{
    return (const unsigned char *)there >= of->base && (const unsigned char *)there < of->base + of->bytes;
}

/* One array of four lies beside the heap, and one for which there is no room. */
static void *place_array(void *context, const void *image, size_t bytes, unsigned random)
{
    arena *of = context;
    size_t at = of->used + (random / 4 % 8) * 16;
    unsigned char *there = NULL;
    if (random % 4 != 0 && at + bytes <= of->bytes) {
        there = of->base + at;
        of->used = (at + bytes + 15) / 16 * 16;
        of->live++;
    } else {
        there = malloc(bytes);
    }
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
    arena *of = context;
    memset(there, 0x5a, bytes);
    if (!is_in_arena(of, there)) {
        free(there);
    } else if (--of->live == 0) {
        of->used = 0;
    }
}

int ep_host_open(ep_place *place, weft_world *world, size_t bytes)
{
    void *base;
    arena *of = calloc(1, sizeof *of);
    *place =
        (ep_place){.memory = {.context = of, .place = place_array, .fetch = fetch_array, .release = release_array}};
    if (!CHECK_OK(weft_malloc(world, bytes, &base))) {
        return 0;
    }
    of->base = base;
    of->bytes = bytes;
    return 1;
}

void ep_host_close(ep_place *place, weft_world *world)
{
    arena *of = place->memory.context;
    CHECK_OK(weft_free(world, of->base));
    free(of);
}
