/* Which PEs have the same slot: PEs sorted by node, each with its place among those of its node. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "world/hello.h"

typedef struct place {
    const unsigned char *node;
    int pe;
    int slot;
} place;

static int by_node(const void *a, const void *b)
{
    const place *one = a;
    const place *other = b;
    int order = memcmp(one->node, other->node, sizeof((wefti_os_identity *)NULL)->node);
    return order != 0 ? order : one->pe - other->pe;
}

static int by_pe(const void *a, const void *b)
{
    return ((const place *)a)->pe - ((const place *)b)->pe;
}

/* The places in the order of the PEs, slots filled in. */
static place *find_places(const wefti_hello *all, int pes)
{
    place *places = wefti_alloc((size_t)pes * sizeof *places);
    for (int pe = 0; places != NULL && pe < pes; pe++) {
        places[pe] = (place){.node = all[pe].identity.node, .pe = pe};
    }
    if (places != NULL) {
        qsort(places, (size_t)pes, sizeof *places, by_node);
        for (int i = 1; i < pes; i++) {
            int same = memcmp(places[i - 1].node, places[i].node, sizeof all->identity.node) == 0;
            places[i].slot = same ? places[i - 1].slot + 1 : 0;
        }
        qsort(places, (size_t)pes, sizeof *places, by_pe);
    }
    return places;
}

weft_status wefti_hello_same_slot(const wefti_hello *all, int pes, int pe, int32_t **members, int *count, int *number)
{
    place *places = find_places(all, pes);
    int32_t *list = wefti_alloc((size_t)pes * sizeof *list);
    if (places == NULL || list == NULL) {
        wefti_free(places);
        wefti_free(list);
        return wefti_error(WEFT_ERR_MEMORY, "weft_world_create: no memory to sort %d PEs by node", pes);
    }
    int found = 0;
    for (int i = 0; i < pes; i++) {
        if (places[i].slot == places[pe].slot) {
            *number = i == pe ? found : *number;
            list[found++] = i;
        }
    }
    wefti_free(places);
    *members = list;
    *count = found;
    return WEFT_OK;
}
