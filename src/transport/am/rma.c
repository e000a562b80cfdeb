/* Large puts and gets by the network's own writes and reads, in which the target's part of the library has no hand.
 * They go by the channel of requests, so that the provider's order, where there is one, holds among them and messages.
 * A message is served some time after it has come, and what follows it by this way may be there before: a write after a
 * fence, and a read, first see to it that earlier messages have been served. */
#include <string.h>

#include "base/env.h"
#include "transport/am/am.h"
#include "weft/protocol/layout.h"

#define WINDOW 8 /* writes or reads of one call that are under way at once */
#define ASK_AGAIN_NS UINT64_C(100000000) /* for the key of memory that was not there the last time */

/* ---- settings ---- */

weft_status wefti_am_rma_settings(wefti_am *am, wefti_wire_rma *wanted)
{
    const char *order = wefti_env_word(WEFTI_ENV_RMA_ORDER);
    static const struct {
        const char *word;
        wefti_wire_rma rma;
    } orders[] = {{"auto", WEFTI_WIRE_RMA_ORDERED},
                  {"provider", WEFTI_WIRE_RMA_ORDERED},
                  {"counted", WEFTI_WIRE_RMA_COUNTED},
                  {"completion", WEFTI_WIRE_RMA_COMPLETES}};
    size_t chosen = 0;
    uint64_t least;
    while (chosen < sizeof orders / sizeof *orders && strcmp(order, orders[chosen].word) != 0) {
        chosen++;
    }
    if (chosen == sizeof orders / sizeof *orders) {
        return wefti_error(WEFT_ERR_ARGUMENT, "WEFT_RMA_ORDER is \"%s\"; give provider, counted, completion or auto",
                           order);
    }
    WEFT_TRY(wefti_env_size(WEFTI_ENV_RMA_BYTES, &least));
    if (least > 0 && least <= WEFTI_AM_SMALL_MAX) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "WEFT_RMA_BYTES is %llu; give 257 at least (what is shorter goes in one message with "
                           "others) or 0 (all go by message)",
                           (unsigned long long)least);
    }
    am->rma_bytes_min = least == 0 ? UINT64_MAX : least;
    *wanted = least == 0 ? WEFTI_WIRE_NO_RMA : orders[chosen].rma;
    return WEFT_OK;
}

/* ---- one write or read ---- */

static int may_begin(const wefti_am *am, int pe)
{
    return am->peers[pe].rma < am->free_rma_count;
}

/* A caller that has others open asks may_begin before: those that callers hold while they wait would never end. */
static weft_status begin(wefti_am_wait *now, wefti_am_buffer **out)
{
    wefti_am *am = now->am;
    while (!may_begin(am, now->pe)) {
        if (am->peers[now->pe].is_lost) {
            return wefti_am_lost(now);
        }
        WEFT_TRY(wefti_am_wait_step(now));
    }
    wefti_am_buffer *op = am->free_rma;
    am->free_rma = op->next;
    am->free_rma_count--;
    am->peers[now->pe].rma++;
    op->pe = (uint32_t)now->pe;
    op->is_write = op->is_left = op->is_done = op->has_failed = 0;
    *out = op;
    return WEFT_OK;
}

/* Another thread's message may go by the count of writes before it while this write waits for its turn. */
static weft_status await_counted(wefti_am_wait *now, const wefti_am_buffer *op)
{
    const wefti_am_peer *peer = &now->am->peers[now->pe];
    weft_status status = WEFT_OK;
    while (status == WEFT_OK && op->is_write && now->am->wire.rma == WEFTI_WIRE_RMA_COUNTED &&
           peer->fenced_put > peer->puts_flushed) {
        status = wefti_am_flush_messages(now, peer->fenced_put);
    }
    return status;
}

/* If the wire does not take it, it is free again. */
static weft_status submit(wefti_am_wait *now, wefti_am_buffer *op, wefti_wire_piece *what, uint64_t offset)
{
    wefti_am *am = now->am;
    wefti_am_peer *peer = &am->peers[now->pe];
    weft_status status = await_counted(now, op);
    what->keys = peer->range.keys;
    what->offset = offset - peer->range.first;
    while (status == WEFT_OK && !peer->is_lost) {
        const wefti_wire_answer answer = am->wire.ops->move(&am->wire, op, what);
        if (answer == WEFTI_WIRE_TAKEN) {
            peer->writes += op->is_write;
            peer->writes_sent += op->is_write && am->wire.rma == WEFTI_WIRE_RMA_COUNTED;
            peer->is_met = 1;
            return WEFT_OK;
        }
        if (answer == WEFTI_WIRE_LOST) {
            wefti_am_lose(am, (uint32_t)now->pe);
            break;
        }
        status = wefti_am_wait_step(now);
        status = status == WEFT_OK ? await_counted(now, op) : status;
    }
    wefti_am_rma_free(am, op);
    return status == WEFT_OK ? wefti_am_lost(now) : status;
}

/* It is over; or it is left, with the memory for its data, until it is. */
static weft_status await(wefti_am_wait *now, wefti_am_buffer *op, unsigned char *dest, size_t bytes)
{
    const wefti_am_peer *peer = &now->am->peers[now->pe];
    weft_status status = WEFT_OK;
    while (status == WEFT_OK && !op->is_done && !peer->is_lost) {
        status = wefti_am_wait_step(now);
    }
    if (!op->is_done) {
        op->is_left = 1;
        return status == WEFT_OK ? wefti_am_lost(now) : status;
    }
    status = op->has_failed ? wefti_am_lost(now) : WEFT_OK;
    if (status == WEFT_OK && dest != NULL) {
        memcpy(dest, op->header, bytes);
    }
    wefti_am_rma_free(now->am, op);
    return status;
}

/* ---- which way ---- */

/* Whether `count` bytes from `first` on hold those at `offset`. */
static int holds(uint64_t first, uint64_t count, uint64_t offset, size_t bytes)
{
    return offset >= first && bytes <= count && offset - first <= count - bytes;
}

static int has_key(const wefti_am_peer *peer, uint64_t offset, size_t bytes)
{
    return holds(peer->range.first, peer->range.bytes, offset, bytes);
}

/* Keys that are of no use here leave those that there are, and so do those of less memory: another thread may have
 * asked later, and taken up its answer before. */
static void take_key(wefti_am *am, int pe, const wefti_am_key *told)
{
    wefti_am_peer *peer = &am->peers[pe];
    wefti_wire_key keys[WEFTI_WIRE_RAILS_MAX];
    for (int i = 0; i < WEFTI_WIRE_RAILS_MAX; i++) {
        keys[i] = told->told[i].at;
    }
    if (told->bytes > peer->range.bytes &&
        (am->wire.ops->learn == NULL || am->wire.ops->learn(&am->wire, pe, told->told, keys))) {
        peer->range.first = told->first;
        peer->range.bytes = told->bytes;
        memcpy(peer->range.keys, keys, sizeof keys);
    }
}

/* What the PE's memory is now; it may be too small to be asked for again at once. */
static weft_status ask_key(wefti_am_wait *now)
{
    wefti_am_buffer *buffer;
    wefti_am_request *request;
    wefti_am_key told;
    WEFT_TRY(wefti_am_begin_request(now, WEFTI_AM_KEY, &told, sizeof told, &buffer, &request));
    WEFT_TRY(wefti_am_submit(now, buffer));
    WEFT_TRY(wefti_am_close_request(now, request, NULL));
    take_key(now->am, now->pe, &told);
    return WEFT_OK;
}

weft_status wefti_am_rma_is_used(wefti_am_wait *now, uint64_t offset, size_t bytes, int *is_so)
{
    wefti_am *am = now->am;
    wefti_am_peer *peer = &am->peers[now->pe];
    weft_status status = WEFT_OK;
    *is_so = 0;
    if (am->wire.rma == WEFTI_WIRE_NO_RMA || bytes < am->rma_bytes_min || offset < WEFTI_AM_SHARED_FROM) {
        return WEFT_OK;
    }
    const uint64_t now_ns = wefti_os_now_ns();
    if (!has_key(peer, offset, bytes) && (peer->key_asked_ns == 0 || now_ns - peer->key_asked_ns > ASK_AGAIN_NS)) {
        peer->key_asked_ns = now_ns;
        status = ask_key(now);
    }
    *is_so = status == WEFT_OK && has_key(peer, offset, bytes);
    return status;
}

/* ---- put ---- */

/* Whether the wire can take it where it is; what is in the heap stays mapped, however the call ends. */
static int is_taken_in_place(wefti_am *am, const unsigned char *source, size_t bytes, void **registration)
{
    const wefti_control *control = (const wefti_control *)(const void *)am->setup.slot;
    const uint64_t at = (uint64_t)(uintptr_t)source - (uint64_t)(uintptr_t)am->setup.slot;
    *registration = NULL;
    if (am->wire.needs_registration) {
        const wefti_am_range *range = wefti_am_rma_share(am);
        *registration = range != NULL ? range->at.registration : NULL;
        return range != NULL && holds(range->first, range->bytes, at, bytes);
    }
    return holds(0, wefti_ld64(&control->reserved, WEFTI_RELAXED), at, bytes);
}

/* A call that moves its bytes piece by piece. */
typedef struct move {
    wefti_am_buffer *ops[WINDOW]; /* NULL: of a piece that nobody waits for */
    size_t begun;
    size_t over;
    size_t pieces;
    size_t bytes;
} move;

static move move_of(size_t bytes)
{
    return (move){.bytes = bytes, .pieces = (bytes + WEFTI_AM_RMA_BYTES - 1) / WEFTI_AM_RMA_BYTES};
}

static size_t piece_bytes(const move *m, size_t number)
{
    const size_t left = m->bytes - number * WEFTI_AM_RMA_BYTES;
    return left < WEFTI_AM_RMA_BYTES ? left : WEFTI_AM_RMA_BYTES;
}

/* Whether the next piece may begin; else the oldest is to be awaited. */
static int begins_next(const move *m, const wefti_am_wait *now)
{
    const size_t open = m->begun - m->over;
    return m->begun < m->pieces && open < WINDOW && (open == 0 || may_begin(now->am, now->pe));
}

static weft_status await_oldest(move *m, wefti_am_wait *now, unsigned char *dest)
{
    const size_t number = m->over++;
    wefti_am_buffer *op = m->ops[number % WINDOW];
    return op == NULL
               ? WEFT_OK
               : await(now, op, dest != NULL ? dest + number * WEFTI_AM_RMA_BYTES : NULL, piece_bytes(m, number));
}

/* What is copied goes its way while the call returns: its source can be reused, and this PE sees to others. */
static weft_status put_piece(move *m, wefti_am_wait *now, uint64_t offset, const unsigned char *source)
{
    const size_t at = m->begun * WEFTI_AM_RMA_BYTES;
    wefti_wire_piece what = {.bytes = piece_bytes(m, m->begun)};
    wefti_am_buffer *op = NULL;
    WEFT_TRY(begin(now, &op));
    op->is_write = 1;
    const int is_copied = !is_taken_in_place(now->am, source + at, what.bytes, &what.registration);
    if (is_copied) {
        what.local = memcpy(op->header, source + at, what.bytes);
        what.registration = NULL;
    } else {
        what.local = (void *)(uintptr_t)(source + at);
    }
    WEFT_TRY(submit(now, op, &what, offset + at));
    op->is_left = is_copied;
    m->ops[m->begun++ % WINDOW] = is_copied ? NULL : op;
    return WEFT_OK;
}

/* A write comes behind those before a fence by the provider's order, by their count (wefti_am_flush_messages), or
 * because they are complete. */
static weft_status await_fenced_writes(wefti_am_wait *now)
{
    wefti_am_peer *peer = &now->am->peers[now->pe];
    while (peer->has_fenced_writes && peer->writes > 0) {
        if (peer->is_lost) {
            return wefti_am_lost(now);
        }
        WEFT_TRY(wefti_am_wait_step(now));
    }
    peer->has_fenced_writes = 0;
    return WEFT_OK;
}

weft_status wefti_am_rma_put(wefti_am_wait *now, uint64_t offset, const unsigned char *source, size_t bytes)
{
    move m = move_of(bytes);
    WEFT_TRY(wefti_am_flush_messages(now, now->am->peers[now->pe].fenced_put));
    WEFT_TRY(await_fenced_writes(now));
    weft_status status = wefti_am_send_gathered(now);
    while (status == WEFT_OK && m.over < m.pieces) {
        status = begins_next(&m, now) ? put_piece(&m, now, offset, source) : await_oldest(&m, now, NULL);
    }
    while (m.over < m.begun) { /* after a failure */
        (void)await_oldest(&m, now, NULL);
    }
    return status;
}

/* ---- get ---- */

static weft_status get_piece(move *m, wefti_am_wait *now, uint64_t offset)
{
    wefti_wire_piece what = {.bytes = piece_bytes(m, m->begun)};
    wefti_am_buffer *op = NULL;
    WEFT_TRY(begin(now, &op));
    what.local = op->header;
    WEFT_TRY(submit(now, op, &what, offset + m->begun * WEFTI_AM_RMA_BYTES));
    m->ops[m->begun++ % WINDOW] = op;
    return WEFT_OK;
}

/* Writes that are under way come before by the provider's order, or are awaited here, or by the message that asks
 * whether earlier ones have been served. */
static weft_status await_puts(wefti_am_wait *now)
{
    const wefti_am_peer *peer = &now->am->peers[now->pe];
    WEFT_TRY(wefti_am_flush_messages(now, peer->message_put));
    while (peer->writes > 0 && now->am->wire.rma != WEFTI_WIRE_RMA_ORDERED) {
        if (peer->is_lost) {
            return wefti_am_lost(now);
        }
        WEFT_TRY(wefti_am_wait_step(now));
    }
    return WEFT_OK;
}

weft_status wefti_am_rma_get(wefti_am_wait *now, uint64_t offset, unsigned char *dest, size_t bytes)
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

/* Each piece has a place until it is here: the call waits for those that it finds taken. */
weft_status wefti_am_rma_begin_get(wefti_am_wait *now, uint64_t offset, unsigned char *dest, size_t bytes, uint64_t get)
{
    const move m = move_of(bytes);
    WEFT_TRY(await_puts(now));
    for (size_t i = 0; i < m.pieces; i++) {
        wefti_wire_piece what = {.bytes = piece_bytes(&m, i)};
        wefti_am_buffer *op = NULL;
        WEFT_TRY(begin(now, &op));
        what.local = op->header;
        WEFT_TRY(submit(now, op, &what, offset + i * WEFTI_AM_RMA_BYTES));
        wefti_am_leave_read(now->am, op, get, dest + i * WEFTI_AM_RMA_BYTES, what.bytes);
    }
    return WEFT_OK;
}
