/* The writes and reads that are under way, and the memory of this PE that others may write and read. */
#include "transport/am/am.h"
#include "weft/protocol/layout.h"

#define RANGES_SOON 32 /* so many registrations follow the heap's growth; later ones are for an eighth more at least */

void wefti_am_rma_init(wefti_am *am, unsigned char *memory)
{
    for (int i = 0; i < WEFTI_AM_RMA_MAX; i++) {
        wefti_am_buffer *op = &am->rma[i];
        op->role = WEFTI_AM_RMA;
        op->header = (wefti_am_header *)(void *)(memory + (size_t)i * WEFTI_AM_RMA_BYTES);
        op->next = am->free_rma;
        am->free_rma = op;
    }
    am->free_rma_count = WEFTI_AM_RMA_MAX;
}

void wefti_am_rma_fini(wefti_am *am)
{
    for (uint32_t i = 0; i < am->range_count; i++) {
        am->wire.ops->unshare(&am->wire, &am->ranges[i].at);
    }
    am->range_count = 0;
}

/* ---- this PE's memory ---- */

/* Each registration is of all the memory that there is; peers go on with the keys that they have. */
const wefti_am_range *wefti_am_rma_share(wefti_am *am)
{
    const wefti_control *control = (const wefti_control *)(const void *)am->setup.slot;
    const uint64_t reserved = wefti_ld64(&control->reserved, WEFTI_RELAXED);
    wefti_am_range *last = am->range_count > 0 ? &am->ranges[am->range_count - 1] : NULL;
    const uint64_t covered = last != NULL ? last->first + last->bytes : WEFTI_AM_SHARED_FROM;
    if (am->wire.rma == WEFTI_WIRE_NO_RMA || reserved <= covered || am->range_count == WEFTI_AM_RANGES_MAX ||
        (am->range_count >= RANGES_SOON && reserved - covered < covered / 8)) {
        return last;
    }
    wefti_am_range *range = &am->ranges[am->range_count];
    *range = (wefti_am_range){.first = WEFTI_AM_SHARED_FROM, .bytes = reserved - WEFTI_AM_SHARED_FROM};
    if (!am->wire.ops->share(&am->wire, am->setup.slot + WEFTI_AM_SHARED_FROM, range->bytes, &range->at)) {
        return last;
    }
    am->range_count++;
    return range;
}

/* ---- writes and reads that are complete ---- */

void wefti_am_rma_free(wefti_am *am, wefti_am_buffer *op)
{
    am->peers[op->pe].rma--;
    op->next = am->free_rma;
    am->free_rma = op;
    am->free_rma_count++;
}

void wefti_am_rma_take(wefti_am *am, wefti_am_buffer *op, int has_failed)
{
    am->peers[op->pe].writes -= op->is_write;
    op->is_done = 1;
    op->has_failed = has_failed != 0;
    if (op->get != 0) {
        wefti_am_take_left_read(am, op, has_failed);
    }
    if (op->is_left) {
        wefti_am_rma_free(am, op);
    }
}
