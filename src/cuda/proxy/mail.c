/* cuda/proxy/mail.c: requests as messages to another PE's proxy, and its answers. */
#include <string.h>

#include "cuda/proxy/far.h"

/* Where PE `writer` writes, on any PE, as an offset of its slot of the host window. */
static uint64_t offset_of(const wefti_cuda_far *far, uint32_t writer, size_t offset)
{
    const unsigned char *mail = (const unsigned char *)&far->mail[writer];
    return (uint64_t)((uintptr_t)mail + offset - (uintptr_t)far->cuda->world->control);
}

/* `body` of a message or an answer at `offset` of this PE's mail there, then the number behind it. */
static weft_status post(wefti_cuda_far *far, wefti_far_lane *lane, size_t offset, const void *body, size_t bytes,
                        size_t number_offset, uint64_t number)
{
    const uint32_t me = far->cuda->world->view.pe;
    return lane->transport->ops->put_signal(lane->transport, lane->pe, offset_of(far, me, offset), body, bytes,
                                            offset_of(far, me, number_offset), number, WEFT_SIGNAL_SET);
}

/* A request that will get no answer of its PE. */
static void fail(wefti_cuda_far *far, const wefti_far_lane *lane, const wefti_far_asked *asked, weft_status status)
{
    wefti_far_answer *answer = far->answer;
    const wefti_dev_entry *entry = &asked->ring->shared->entries[asked->ticket % WEFTI_DEV_RING_ENTRIES];
    answer->status = (int32_t)status;
    answer->old = 0;
    if (!entry->request.answer) {
        wefti_far_latch(far, status, lane->pe);
    }
    wefti_far_ring_finish(asked->ring, asked->ticket, entry->request.answer ? answer : NULL, 0);
}

int wefti_far_send(wefti_cuda_far *far, wefti_far_lane *lane, wefti_far_ring *ring, const wefti_dev_entry *entry)
{
    const wefti_dev_request *request = &entry->request;
    const size_t place = lane->sent % WEFTI_FAR_LETTERS;
    const size_t data = request->kind == WEFTI_DEV_REQUEST_PUT ? request->bytes : 0;
    if (lane->sent - lane->answered == WEFTI_FAR_LETTERS) {
        return 0;
    }
    const wefti_far_asked asked = {.ring = ring, .ticket = wefti_far_ring_take(ring, request->answer)};
    weft_status status = WEFT_ERR_PEER;
    if (!lane->is_gone) {
        status = post(far, lane, offsetof(wefti_far_mail, messages[place].request), request,
                      offsetof(wefti_dev_request, data) + data, offsetof(wefti_far_mail, messages[place].number),
                      lane->sent + 1);
    }
    if (status != WEFT_OK) {
        fail(far, lane, &asked, status);
        return 1;
    }
    if (lane->sent == lane->answered) {
        lane->asked_ns = wefti_os_now_ns();
    }
    lane->asked[place] = asked;
    lane->sent++;
    return 1;
}

/* A PE that has ended or left answers nothing any more. */
#define LOOK_NS UINT64_C(200000000)

static int check_gone(wefti_cuda_far *far, wefti_far_lane *lane)
{
    const uint64_t now = wefti_os_now_ns();
    const weft_world *world = far->cuda->world;
    if (lane->sent == lane->answered || now - lane->asked_ns < LOOK_NS) {
        return 0;
    }
    lane->asked_ns = now;
    if (!wefti_world_is_lost(world, lane->pe) && !wefti_world_has_left(world, lane->pe)) {
        return 0;
    }
    lane->is_gone = 1;
    while (lane->answered < lane->sent) {
        fail(far, lane, &lane->asked[lane->answered++ % WEFTI_FAR_LETTERS], WEFT_ERR_PEER);
    }
    return 1;
}

int wefti_far_collect(wefti_cuda_far *far, wefti_far_lane *lane)
{
    const uint64_t before = lane->answered;
    while (lane->answered < lane->sent) {
        const size_t place = lane->answered % WEFTI_FAR_LETTERS;
        const wefti_far_answer *answer = &far->mail[lane->pe].answers[place];
        if (wefti_ld64(&answer->number, WEFTI_ACQUIRE) != lane->answered + 1) {
            break;
        }
        const wefti_far_asked *asked = &lane->asked[place];
        const wefti_dev_entry *entry = &asked->ring->shared->entries[asked->ticket % WEFTI_DEV_RING_ENTRIES];
        const int is_wanted = entry->request.answer;
        if (!is_wanted && answer->status != WEFT_OK) {
            wefti_far_latch(far, (weft_status)answer->status, lane->pe);
        }
        wefti_far_ring_finish(asked->ring, asked->ticket, is_wanted ? answer : NULL,
                              entry->request.kind == WEFTI_DEV_REQUEST_GET ? entry->request.bytes : 0);
        lane->answered++;
        lane->asked_ns = wefti_os_now_ns();
    }
    return lane->answered != before || check_gone(far, lane);
}

int wefti_far_serve(wefti_cuda_far *far, wefti_far_lane *lane)
{
    const uint64_t before = lane->taken;
    wefti_far_answer *answer = far->answer;
    for (;;) {
        const size_t place = lane->taken % WEFTI_FAR_LETTERS;
        const wefti_far_message *message = &far->mail[lane->pe].messages[place];
        if (wefti_ld64(&message->number, WEFTI_ACQUIRE) != lane->taken + 1) {
            return lane->taken != before;
        }
        const size_t data = message->request.kind == WEFTI_DEV_REQUEST_GET ? message->request.bytes : 0;
        answer->old = 0;
        answer->status = (int32_t)wefti_far_apply(far, &message->request, answer);
        lane->taken++;
        /* A PE that does not get its answer is gone, or meets its deadline. */
        (void)post(far, lane, offsetof(wefti_far_mail, answers[place]), answer,
                   offsetof(wefti_far_answer, data) + (answer->status == WEFT_OK ? data : 0),
                   offsetof(wefti_far_mail, answers[place].number), lane->taken);
    }
}
