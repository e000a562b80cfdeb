/* Which gets that return before their data is here are open. */
#include <string.h>

#include "transport/am/am.h"

static void note_failure(wefti_am *am, uint32_t pe, weft_status status)
{
    if (status != WEFT_OK) {
        am->failures.count++;
        am->failures.pe = (int)pe;
        am->failures.status = status;
    }
}

/* ---- what is open ---- */

void wefti_am_leave_request(wefti_am_request *request, uint64_t get)
{
    request->get = get;
}

void wefti_am_leave_read(wefti_am *am, wefti_am_buffer *op, uint64_t get, unsigned char *dest, size_t bytes)
{
    op->get = get;
    op->dest = dest;
    op->bytes = bytes;
    op->is_left = 1;
    am->reads_left++;
}

/* It may go on, but is part of no get any more. */
static void end_read(wefti_am *am, wefti_am_buffer *op)
{
    op->get = 0;
    op->dest = NULL;
    am->reads_left--;
}

void wefti_am_take_left_read(wefti_am *am, wefti_am_buffer *op, int has_failed)
{
    if (has_failed) {
        note_failure(am, op->pe, WEFT_ERR_PEER);
    } else {
        memcpy(op->dest, op->header, op->bytes);
    }
    end_read(am, op);
}

/* ---- what ends without its data ---- */

/* Parts of the gets number `first` to `last` that are open at PE `pe`, or at any if that is negative. */
static void give_up(wefti_am *am, uint64_t first, uint64_t last, int pe, weft_status status)
{
    for (size_t i = 0; am->requests_left > 0 && i < WEFTI_AM_WAITING_MAX; i++) {
        wefti_am_request *request = &am->requests[i];
        const int is_open = request->number != 0 && request->get != 0;
        if (is_open && request->get >= first && request->get <= last && (pe < 0 || request->pe == (uint32_t)pe)) {
            note_failure(am, request->pe, status);
            wefti_am_forget_request(am, request);
        }
    }
    for (size_t i = 0; am->reads_left > 0 && i < WEFTI_AM_RMA_MAX; i++) {
        wefti_am_buffer *op = &am->rma[i];
        if (op->get != 0 && op->get >= first && op->get <= last && (pe < 0 || op->pe == (uint32_t)pe)) {
            note_failure(am, op->pe, status);
            end_read(am, op);
        }
    }
}

void wefti_am_lose_gets(wefti_am *am, uint32_t pe)
{
    give_up(am, 0, UINT64_MAX, (int)pe, WEFT_ERR_PEER);
}

void wefti_am_give_up_gets(wefti_am *am, uint64_t first, uint64_t last, weft_status status)
{
    give_up(am, first, last, -1, status);
}
