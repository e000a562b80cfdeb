/* Whether memory suffices for the first heaps of all PEs together: each PE alone would find enough while the others
 * have not taken theirs yet. */
#include "base/error.h"
#include "world/directory.h"

/* PEs of the node, this one among them, and those of them that its control group limits. */
static void count_sharers(const wefti_directory *directory, int pes, int pe, int *on_node, int *in_group)
{
    *on_node = 0;
    *in_group = 0;
    for (int other = 0; other < pes; other++) {
        *on_node += directory->pes[other].node == directory->pes[pe].node;
        *in_group += directory->pes[other].group == directory->pes[pe].group;
    }
}

static weft_status refuse(int pe, int sharers, uint64_t bytes, uint64_t left, const char *whose)
{
    return wefti_error(
        WEFT_ERR_MEMORY,
        "weft_world_create: the heaps of the %d PEs of %s begin with %llu bytes each, and it has %llu bytes "
        "of memory left for PE %d and them; lower heap_bytes or WEFT_HEAP, or start fewer PEs",
        sharers, whose, (unsigned long long)bytes, (unsigned long long)left, pe);
}

weft_status wefti_directory_expect_heaps(const wefti_directory *directory, int pes, int pe,
                                         const wefti_os_memory_left *left, uint64_t bytes)
{
    int on_node;
    int in_group;
    count_sharers(directory, pes, pe, &on_node, &in_group);
    if (bytes > left->machine / (uint64_t)on_node) {
        return refuse(pe, on_node, bytes, left->machine, "this node");
    }
    if (left->group == UINT64_MAX) {
        return WEFT_OK;
    }
    return bytes <= left->group / (uint64_t)in_group
               ? WEFT_OK
               : refuse(pe, in_group, bytes, left->group, "this control group (container)");
}
