/* cuda/proxy/direct.c: requests for memory that the transport reaches by itself: the host heap. */
#include <string.h>

#include "cuda/proxy/far.h"
#include "cuda/proxy/move.h"

int wefti_far_is_direct(const wefti_dev_request *request)
{
    return WEFTI_DEV_PLACE_SPACE(request->place) == WEFTI_DEV_SPACE_HOST;
}

static uint64_t sum_of(uint64_t a, uint64_t b, int bits)
{
    uint64_t sum = 0;
    if (bits == 32) {
        const uint32_t low[2] = {(uint32_t)a, (uint32_t)b};
        float parts[2];
        memcpy(parts, low, sizeof parts);
        parts[0] += parts[1];
        memcpy(&sum, parts, sizeof *parts);
    } else {
        double parts[2];
        memcpy(&parts[0], &a, sizeof a);
        memcpy(&parts[1], &b, sizeof b);
        parts[0] += parts[1];
        memcpy(&sum, parts, sizeof sum);
    }
    return sum;
}

/* Add to a float by compare-and-swap: transports add integers only. */
static weft_status add_float(wefti_transport *transport, int pe, uint64_t offset, int bits, uint64_t value,
                             uint64_t *old)
{
    uint64_t expected;
    WEFT_TRY(transport->ops->amo(transport, pe, offset, WEFTI_AMO_FETCH, bits, 0, 0, old));
    do {
        expected = *old;
        WEFT_TRY(transport->ops->amo(transport, pe, offset, WEFTI_AMO_COMPARE_SWAP, bits, sum_of(expected, value, bits),
                                     expected, old));
    } while (*old != expected);
    return WEFT_OK;
}

static weft_status move(const wefti_far_lane *lane, weft_world *world, uint64_t offset,
                        const wefti_dev_request *request)
{
    wefti_dev_move what;
    memcpy(&what, request->data, sizeof what);
    WEFTI_COUNT(world, remote_put_signals, 1);
    WEFTI_COUNT(world, remote_put_bytes, what.bytes);
    const uint64_t signal = (uint64_t)((uintptr_t)world->heap - (uintptr_t)world->control) + what.signal;
    return lane->transport->ops->put_signal(lane->transport, lane->pe, offset, world->heap + what.from, what.bytes,
                                            signal, what.value, WEFT_SIGNAL_SET);
}

static weft_status carry_out(const wefti_far_lane *lane, weft_world *world, uint64_t offset,
                             const wefti_dev_request *request, wefti_far_answer *answer)
{
    wefti_transport *transport = lane->transport;
    const wefti_transport_ops *ops = transport->ops;
    switch (request->kind) {
    case WEFTI_DEV_REQUEST_MOVE:
        return move(lane, world, offset, request);
    case WEFTI_DEV_REQUEST_PUT:
        return ops->put(transport, lane->pe, offset, request->data, request->bytes);
    case WEFTI_DEV_REQUEST_GET:
        return ops->get(transport, lane->pe, offset, answer->data, request->bytes);
    case WEFTI_DEV_REQUEST_SIGNAL:
        return ops->put_signal(transport, lane->pe, 0, NULL, 0, offset, request->value, (weft_signal_op)request->op);
    default:
        break;
    }
    if (request->op == WEFTI_DEV_AMO_ADD_FLOAT) {
        return add_float(transport, lane->pe, offset, request->bits, request->value, &answer->old);
    }
    return ops->amo(transport, lane->pe, offset, (wefti_amo_op)request->op, request->bits, request->value,
                    request->cond, &answer->old);
}

/* ---- what has been sent ---- */

/* Of a flush that failed: the PE that is gone, else the first that something was sent to. */
static int culprit_of(const wefti_cuda_far *far)
{
    for (size_t i = 0; i < far->sent_count; i++) {
        const wefti_far_lane *lane = far->sent[i].lane;
        const wefti_transport_ops *ops = lane->transport->ops;
        if (ops->fate != NULL && ops->fate(lane->transport, lane->pe) != WEFTI_FATE_THERE) {
            return lane->pe;
        }
    }
    return far->sent[0].lane->pe;
}

int wefti_far_flush(wefti_cuda_far *far)
{
    const wefti_transport *flushed = NULL;
    const size_t count = far->sent_count;
    for (size_t i = 0; i < count; i++) {
        wefti_transport *transport = far->sent[i].lane->transport;
        const weft_status status = transport == flushed ? WEFT_OK : transport->ops->quiet(transport);
        if (status != WEFT_OK) {
            wefti_far_latch(far, status, culprit_of(far));
        }
        flushed = transport;
    }
    for (size_t i = 0; i < count; i++) {
        wefti_far_ring_finish(far->sent[i].ring, far->sent[i].ticket);
    }
    far->sent_count = 0;
    return count > 0;
}

/* Whether it need not have taken effect before the next one is taken: among these order is no matter. */
static int is_only_sent(const wefti_dev_request *request)
{
    return !request->answer && (request->kind == WEFTI_DEV_REQUEST_MOVE || (request->kind == WEFTI_DEV_REQUEST_SIGNAL &&
                                                                            request->op == (wefti_i32)WEFT_SIGNAL_ADD));
}

int wefti_far_do_direct(wefti_cuda_far *far, wefti_far_lane *lane, const wefti_far_task *task)
{
    wefti_far_ring *ring = task->ring;
    const uint64_t ticket = task->ticket;
    const wefti_dev_request *request = &wefti_far_ring_entry(ring, ticket)->request;
    weft_world *world = far->cuda->world;
    const uint64_t heap = (uint64_t)((uintptr_t)world->heap - (uintptr_t)world->control);
    if (lane->made != lane->over) {
        return 0;
    }
    if (!is_only_sent(request)) {
        (void)wefti_far_flush(far);
    }
    wefti_far_answer *answer = far->answer;
    answer->old = 0;
    weft_status status = carry_out(lane, world, heap + WEFTI_DEV_PLACE_OFFSET(request->place), request, answer);
    if (status == WEFT_OK && is_only_sent(request)) {
        far->sent[far->sent_count++] = (wefti_far_sent){.ring = ring, .ticket = ticket, .lane = lane};
        return 1;
    }
    if (status == WEFT_OK) {
        status = lane->transport->ops->quiet(lane->transport); /* before a message that comes after it */
    }
    answer->status = (int32_t)status;
    if (status != WEFT_OK && !request->answer) {
        wefti_far_latch(far, status, lane->pe);
    }
    if (request->answer) {
        wefti_far_ring_answer(ring, ticket, answer, request->kind == WEFTI_DEV_REQUEST_GET ? request->bytes : 0);
    }
    wefti_far_ring_finish(ring, ticket);
    return 1;
}
