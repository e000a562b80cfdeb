/* Large puts and gets by the provider's own writes and reads, in which the target's part of the library has no hand.
 * They go by the endpoint of requests, so that the provider's order, where there is one, holds among them and messages.
 * A message is served some time after it has come, and what follows it by this way may be there before: a write after a
 * fence, and a read, first see to it that earlier messages have been served. */
#include <string.h>

#include "base/env.h"
#include "transport/ofi/ofi.h"
#include "weft/protocol/layout.h"

#define WINDOW 8 /* writes or reads of one call that are under way at once */
#define ASK_AGAIN_NS UINT64_C(100000000) /* for the key of memory that was not there the last time */

/* ---- settings ---- */

weft_status wefti_ofi_rma_settings(wefti_ofi *ofi, wefti_fabric_rma *wanted)
{
    const char *order = wefti_env_word(WEFTI_ENV_RMA_ORDER);
    const int completes = strcmp(order, "completion") == 0;
    uint64_t least;
    if (!completes && strcmp(order, "provider") != 0 && strcmp(order, "auto") != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "WEFT_RMA_ORDER is \"%s\"; give provider, completion or auto", order);
    }
    WEFT_TRY(wefti_env_size(WEFTI_ENV_RMA_BYTES, &least));
    if (least > 0 && least <= WEFTI_OFI_SMALL_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "WEFT_RMA_BYTES is %llu; give 257 at least (what is shorter goes in one message with "
                           "others) or 0 (all go by message)",
                           (unsigned long long)least);
    }
    ofi->rma_bytes_min = least == 0 ? UINT64_MAX : least;
    *wanted = least == 0 ? WEFTI_FABRIC_NO_RMA : completes ? WEFTI_FABRIC_RMA_COMPLETES : WEFTI_FABRIC_RMA_ORDERED;
    return WEFT_OK;
}

/* ---- one write or read ---- */

static int may_begin(const wefti_ofi *ofi, int pe)
{
    return ofi->peers[pe].rma < ofi->free_rma_count;
}

/* A caller that has others open asks may_begin before: those that callers hold while they wait would never end. */
static weft_status begin(wefti_ofi_wait *now, wefti_ofi_buffer **out)
{
    wefti_ofi *ofi = now->ofi;
    while (!may_begin(ofi, now->pe)) {
        if (ofi->peers[now->pe].is_lost) {
            return wefti_ofi_lost(now);
        }
        WEFT_TRY(wefti_ofi_wait_step(now));
    }
    wefti_ofi_buffer *op = ofi->free_rma;
    ofi->free_rma = op->next;
    ofi->free_rma_count--;
    ofi->peers[now->pe].rma++;
    op->pe = (uint32_t)now->pe;
    op->is_write = op->is_left = op->is_done = op->has_failed = 0;
    *out = op;
    return WEFT_OK;
}

/* Memory of this PE's, or of the call's, that one write or read moves, and where. */
typedef struct piece {
    void *local;
    void *descriptor;
    size_t bytes;
    uint64_t offset;
} piece;

static int hand_over(wefti_ofi *ofi, wefti_ofi_buffer *op, const piece *what)
{
    const wefti_ofi_peer *peer = &ofi->peers[op->pe];
    struct iovec local = {.iov_base = what->local, .iov_len = what->bytes};
    void *descriptor = what->descriptor;
    const struct fi_rma_iov remote = {.addr = peer->range.at.base + (what->offset - peer->range.first),
                                      .len = what->bytes,
                                      .key = peer->range.at.key};
    const struct fi_msg_rma message = {.msg_iov = &local,
                                       .desc = &descriptor,
                                       .iov_count = 1,
                                       .addr = peer->at[WEFTI_FABRIC_REQUESTS],
                                       .rma_iov = &remote,
                                       .rma_iov_count = 1,
                                       .context = &op->context};
    struct fid_ep *endpoint = ofi->fabric.endpoints[WEFTI_FABRIC_REQUESTS];
    const uint64_t delivered = ofi->fabric.rma == WEFTI_FABRIC_RMA_COMPLETES ? FI_DELIVERY_COMPLETE : 0;
    return (int)(op->is_write ? fi_writemsg(endpoint, &message, FI_COMPLETION | delivered)
                              : fi_readmsg(endpoint, &message, FI_COMPLETION));
}

/* If the provider does not take it, it is free again. */
static weft_status submit(wefti_ofi_wait *now, wefti_ofi_buffer *op, const piece *what)
{
    wefti_ofi *ofi = now->ofi;
    wefti_ofi_peer *peer = &ofi->peers[now->pe];
    weft_status status = WEFT_OK;
    while (status == WEFT_OK && !peer->is_lost) {
        const int error = hand_over(ofi, op, what);
        if (error == 0) {
            peer->writes += op->is_write;
            peer->is_met = 1;
            return WEFT_OK;
        }
        if (error != -FI_EAGAIN) {
            wefti_ofi_lose(ofi, (uint32_t)now->pe);
            break;
        }
        status = wefti_ofi_wait_step(now);
    }
    wefti_ofi_rma_free(ofi, op);
    return status == WEFT_OK ? wefti_ofi_lost(now) : status;
}

/* It is over; or it is left, with the memory for its data, until it is. */
static weft_status await(wefti_ofi_wait *now, wefti_ofi_buffer *op, unsigned char *dest, size_t bytes)
{
    const wefti_ofi_peer *peer = &now->ofi->peers[now->pe];
    weft_status status = WEFT_OK;
    while (status == WEFT_OK && !op->is_done && !peer->is_lost) {
        status = wefti_ofi_wait_step(now);
    }
    if (!op->is_done) {
        op->is_left = 1;
        return status == WEFT_OK ? wefti_ofi_lost(now) : status;
    }
    status = op->has_failed ? wefti_ofi_lost(now) : WEFT_OK;
    if (status == WEFT_OK && dest != NULL) {
        memcpy(dest, op->header, bytes);
    }
    wefti_ofi_rma_free(now->ofi, op);
    return status;
}

/* ---- which way ---- */

static int has_key(const wefti_ofi_range *range, uint64_t offset, size_t bytes)
{
    return offset >= range->first && bytes <= range->bytes && offset - range->first <= range->bytes - bytes;
}

/* What the PE's memory is now; it may be too small to be asked for again at once. */
static weft_status ask_key(wefti_ofi_wait *now)
{
    wefti_ofi_buffer *buffer;
    wefti_ofi_request *request;
    WEFT_TRY(wefti_ofi_begin_request(now, WEFTI_OFI_KEY, NULL, 0, &buffer, &request));
    WEFT_TRY(wefti_ofi_submit(now, buffer));
    return wefti_ofi_close_request(now, request, NULL);
}

weft_status wefti_ofi_rma_is_used(wefti_ofi_wait *now, uint64_t offset, size_t bytes, int *is_so)
{
    wefti_ofi *ofi = now->ofi;
    wefti_ofi_peer *peer = &ofi->peers[now->pe];
    weft_status status = WEFT_OK;
    *is_so = 0;
    if (ofi->fabric.rma == WEFTI_FABRIC_NO_RMA || bytes < ofi->rma_bytes_min || offset < WEFTI_OFI_SHARED_FROM) {
        return WEFT_OK;
    }
    const uint64_t now_ns = wefti_os_now_ns();
    if (!has_key(&peer->range, offset, bytes) &&
        (peer->key_asked_ns == 0 || now_ns - peer->key_asked_ns > ASK_AGAIN_NS)) {
        peer->key_asked_ns = now_ns;
        status = ask_key(now);
    }
    *is_so = status == WEFT_OK && has_key(&peer->range, offset, bytes);
    return status;
}

/* ---- put ---- */

/* Whether the provider can take it where it is; what is in the heap stays mapped, however the call ends. */
static int is_taken_in_place(wefti_ofi *ofi, const unsigned char *source, size_t bytes, void **descriptor)
{
    const wefti_control *control = (const wefti_control *)(const void *)ofi->setup.slot;
    const uint64_t at = (uint64_t)(uintptr_t)source - (uint64_t)(uintptr_t)ofi->setup.slot;
    *descriptor = NULL;
    if ((ofi->fabric.info->domain_attr->mr_mode & FI_MR_LOCAL) != 0) {
        const wefti_ofi_range *range = wefti_ofi_rma_share(ofi);
        *descriptor = range != NULL ? fi_mr_desc(range->at.registration) : NULL;
        return range != NULL && has_key(range, at, bytes);
    }
    return has_key(&(wefti_ofi_range){.bytes = wefti_ld64(&control->reserved, WEFTI_RELAXED)}, at, bytes);
}

/* A call that moves its bytes piece by piece. */
typedef struct move {
    wefti_ofi_buffer *ops[WINDOW];
    size_t begun;
    size_t over;
    size_t pieces;
    size_t bytes;
} move;

static move move_of(size_t bytes)
{
    return (move){.bytes = bytes, .pieces = (bytes + WEFTI_OFI_RMA_BYTES - 1) / WEFTI_OFI_RMA_BYTES};
}

static size_t piece_bytes(const move *m, size_t number)
{
    const size_t left = m->bytes - number * WEFTI_OFI_RMA_BYTES;
    return left < WEFTI_OFI_RMA_BYTES ? left : WEFTI_OFI_RMA_BYTES;
}

/* Whether the next piece may begin; else the oldest is to be awaited. */
static int begins_next(const move *m, const wefti_ofi_wait *now)
{
    const size_t open = m->begun - m->over;
    return m->begun < m->pieces && open < WINDOW && (open == 0 || may_begin(now->ofi, now->pe));
}

static weft_status await_oldest(move *m, wefti_ofi_wait *now, unsigned char *dest)
{
    const size_t number = m->over++;
    return await(now, m->ops[number % WINDOW], dest != NULL ? dest + number * WEFTI_OFI_RMA_BYTES : NULL,
                 piece_bytes(m, number));
}

static weft_status put_piece(move *m, wefti_ofi_wait *now, uint64_t offset, const unsigned char *source)
{
    const size_t at = m->begun * WEFTI_OFI_RMA_BYTES;
    piece what = {.bytes = piece_bytes(m, m->begun), .offset = offset + at};
    wefti_ofi_buffer *op = NULL;
    WEFT_TRY(begin(now, &op));
    op->is_write = 1;
    if (is_taken_in_place(now->ofi, source + at, what.bytes, &what.descriptor)) {
        what.local = (void *)(uintptr_t)(source + at);
    } else {
        what.local = memcpy(op->header, source + at, what.bytes);
        what.descriptor = now->ofi->fabric.descriptor;
    }
    WEFT_TRY(submit(now, op, &what));
    m->ops[m->begun++ % WINDOW] = op;
    return WEFT_OK;
}

weft_status wefti_ofi_rma_put(wefti_ofi_wait *now, uint64_t offset, const unsigned char *source, size_t bytes)
{
    move m = move_of(bytes);
    WEFT_TRY(wefti_ofi_flush_messages(now, now->ofi->peers[now->pe].fenced_put));
    weft_status status = wefti_ofi_send_gathered(now);
    while (status == WEFT_OK && m.over < m.pieces) {
        status = begins_next(&m, now) ? put_piece(&m, now, offset, source) : await_oldest(&m, now, NULL);
    }
    while (m.over < m.begun) { /* after a failure */
        (void)await_oldest(&m, now, NULL);
    }
    return status;
}

/* ---- get ---- */

static weft_status get_piece(move *m, wefti_ofi_wait *now, uint64_t offset)
{
    piece what = {.bytes = piece_bytes(m, m->begun),
                  .offset = offset + m->begun * WEFTI_OFI_RMA_BYTES,
                  .descriptor = now->ofi->fabric.descriptor};
    wefti_ofi_buffer *op = NULL;
    WEFT_TRY(begin(now, &op));
    what.local = op->header;
    WEFT_TRY(submit(now, op, &what));
    m->ops[m->begun++ % WINDOW] = op;
    return WEFT_OK;
}

/* Writes that are under way come before by the provider's order, or are awaited by the message that asks whether
 * earlier ones have been served. */
static weft_status await_puts(wefti_ofi_wait *now)
{
    const wefti_ofi_peer *peer = &now->ofi->peers[now->pe];
    WEFT_TRY(wefti_ofi_flush_messages(now, peer->message_put));
    while (peer->writes > 0 && now->ofi->fabric.rma != WEFTI_FABRIC_RMA_ORDERED) {
        if (peer->is_lost) {
            return wefti_ofi_lost(now);
        }
        WEFT_TRY(wefti_ofi_wait_step(now));
    }
    return WEFT_OK;
}

weft_status wefti_ofi_rma_get(wefti_ofi_wait *now, uint64_t offset, unsigned char *dest, size_t bytes)
{
    move m = move_of(bytes);
    weft_status status = await_puts(now);
    while (status == WEFT_OK && m.over < m.pieces) {
        status = begins_next(&m, now) ? get_piece(&m, now, offset) : await_oldest(&m, now, dest);
    }
    while (m.over < m.begun) {
        (void)await_oldest(&m, now, NULL);
    }
    return status;
}
