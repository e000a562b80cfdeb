/* The writes and reads that are under way, and the memory of this PE that others may write and read. */
#include "transport/ofi/ofi.h"
#include "weft/protocol/layout.h"

#define RANGES_SOON 32 /* so many registrations as memory grows; then by an eighth at least */

void wefti_ofi_rma_init(wefti_ofi *ofi, unsigned char *memory)
{
    for (int i = 0; i < WEFTI_OFI_RMA_MAX; i++) {
        wefti_ofi_buffer *op = &ofi->rma[i];
        op->role = WEFTI_OFI_RMA;
        op->header = (wefti_ofi_header *)(void *)(memory + (size_t)i * WEFTI_OFI_RMA_BYTES);
        op->next = ofi->free_rma;
        ofi->free_rma = op;
    }
    ofi->free_rma_count = WEFTI_OFI_RMA_MAX;
}

void wefti_ofi_rma_fini(wefti_ofi *ofi)
{
    for (uint32_t i = 0; i < ofi->range_count; i++) {
        (void)fi_close(&ofi->ranges[i].at.registration->fid);
    }
    ofi->range_count = 0;
}

/* ---- this PE's memory ---- */

/* Each registration is of all the memory that there is; peers go on with the keys that they have. */
const wefti_ofi_range *wefti_ofi_rma_share(wefti_ofi *ofi)
{
    const wefti_control *control = (const wefti_control *)(const void *)ofi->setup.slot;
    const uint64_t reserved = wefti_ld64(&control->reserved, WEFTI_RELAXED);
    wefti_ofi_range *last = ofi->range_count > 0 ? &ofi->ranges[ofi->range_count - 1] : NULL;
    const uint64_t covered = last != NULL ? last->first + last->bytes : WEFTI_OFI_SHARED_FROM;
    if (ofi->fabric.rma == WEFTI_FABRIC_NO_RMA || reserved <= covered || ofi->range_count == WEFTI_OFI_RANGES_MAX ||
        (ofi->range_count >= RANGES_SOON && reserved - covered < covered / 8)) {
        return last;
    }
    wefti_ofi_range *range = &ofi->ranges[ofi->range_count];
    *range = (wefti_ofi_range){.first = WEFTI_OFI_SHARED_FROM, .bytes = reserved - WEFTI_OFI_SHARED_FROM};
    if (!wefti_fabric_share(&ofi->fabric, ofi->setup.slot + WEFTI_OFI_SHARED_FROM, range->bytes, &range->at)) {
        return last;
    }
    ofi->range_count++;
    return range;
}

/* ---- what is over ---- */

void wefti_ofi_rma_free(wefti_ofi *ofi, wefti_ofi_buffer *op)
{
    ofi->peers[op->pe].rma--;
    op->next = ofi->free_rma;
    ofi->free_rma = op;
    ofi->free_rma_count++;
}

void wefti_ofi_rma_take(wefti_ofi *ofi, wefti_ofi_buffer *op, int has_failed)
{
    ofi->peers[op->pe].writes -= op->is_write;
    op->is_done = 1;
    op->has_failed = has_failed != 0;
    if (op->is_left) {
        wefti_ofi_rma_free(ofi, op);
    }
}
