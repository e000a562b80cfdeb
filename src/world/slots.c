/* world/slots.c: each PE's slot: its place among the PEs of its node. */
#include "base/alloc.h"
#include "base/error.h"
#include "world/directory.h"

/* Each PE's slot, for wefti_free; NULL without memory. */
static int32_t *find_slots(const wefti_directory *directory, int pes)
{
    int32_t *counts = wefti_alloc_zeroed((size_t)pes, sizeof *counts); /* by the lowest PE of a node */
    int32_t *slots = wefti_alloc((size_t)pes * sizeof *slots);
    if (counts == NULL) {
        wefti_free(slots);
        return NULL;
    }
    for (int pe = 0; slots != NULL && pe < pes; pe++) {
        slots[pe] = counts[directory->pes[pe].node]++;
    }
    wefti_free(counts);
    return slots;
}

weft_status wefti_directory_same_slot(const wefti_directory *directory, int pes, int pe, int32_t **members, int *count,
                                      int *number)
{
    int32_t *slots = find_slots(directory, pes);
    int32_t *list = wefti_alloc((size_t)pes * sizeof *list);
    if (slots == NULL || list == NULL) {
        wefti_free(slots);
        wefti_free(list);
        return wefti_error(WEFT_ERR_MEMORY, "weft_world_create: no memory to sort %d PEs by node", pes);
    }
    int found = 0;
    for (int i = 0; i < pes; i++) {
        if (slots[i] == slots[pe]) {
            *number = i == pe ? found : *number;
            list[found++] = i;
        }
    }
    wefti_free(slots);
    *members = list;
    *count = found;
    return WEFT_OK;
}
