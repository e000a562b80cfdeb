/* cuda/proxy/serve.c: the messages of other PEs' proxies: all that have come are put on the stream, with a mark behind
 * them, and are answered once that has been passed. */
#include <string.h>

#include "cuda/proxy/far.h"

/* Copies of up to so many bytes are waited for at once: to look at their mark in a later turn would take longer. */
#define FEW_BYTES ((uint64_t)64 << 10)

/* Carry out the lane's oldest message that is not yet carried out. 0: there is none, or no room for what it asks. */
static int serve_one(wefti_cuda_far *far, wefti_far_lane *lane)
{
    const wefti_far_message *message = &far->mail[lane->pe].messages[lane->taken % WEFTI_FAR_LETTERS];
    wefti_dev_request request;
    if (far->served_end - far->served_first == WEFTI_FAR_SERVED ||
        wefti_ld64(&message->number, WEFTI_ACQUIRE) != lane->taken + 1) {
        return 0;
    }
    memcpy(&request, &message->request, offsetof(wefti_dev_request, data)); /* what is checked is what is done */
    const int is_get = request.kind == WEFTI_DEV_REQUEST_GET || request.kind == WEFTI_DEV_REQUEST_LONG_GET;
    wefti_far_served *served = &far->served[far->served_end % WEFTI_FAR_SERVED];
    wefti_far_answer *answer = &far->answers[far->served_end % WEFTI_FAR_SERVED];
    *served =
        (wefti_far_served){.lane = lane, .number = lane->taken + 1, .is_long = wefti_far_is_long(&request), .loan = -1};
    void *data = is_get ? (void *)answer->data : (void *)(uintptr_t)message->request.data;
    if (request.kind == WEFTI_DEV_REQUEST_LONG_PUT && far->chunk_bytes != 0) {
        data = wefti_far_chunk(far, (uint32_t)lane->pe, WEFTI_FAR_OF_MESSAGE, lane->taken);
    } else if (request.kind == WEFTI_DEV_REQUEST_LONG_GET && far->chunk_bytes != 0) {
        if (!lane->is_mapped) {
            served->loan = wefti_far_borrow(far, WEFTI_FAR_OF_ANSWER);
            if (served->loan < 0) {
                return 0;
            }
        }
        data = wefti_far_way_out(far, lane, WEFTI_FAR_OF_ANSWER, lane->taken, served->loan);
    }
    answer->old = 0;
    answer->status = (int32_t)wefti_far_apply(far, &request, data, answer);
    served->bytes = is_get && answer->status == WEFT_OK ? request.bytes : 0;
    far->served_bytes += answer->status == WEFT_OK ? request.bytes : 0;
    far->served_end++;
    lane->taken++;
    return 1;
}

int wefti_far_serve(wefti_cuda_far *far, wefti_far_lane *lane)
{
    int worked = 0;
    while (serve_one(far, lane)) {
        worked = 1;
    }
    return worked;
}

static void set_mark(wefti_cuda_far *far)
{
    const int is_little = far->served_marked == far->served_first && far->served_bytes <= FEW_BYTES;
    const uint64_t mark = is_little ? wefti_far_mark_now(far, &far->asked) : wefti_far_mark(far, &far->asked);
    while (far->served_marked < far->served_end) {
        far->served[far->served_marked++ % WEFTI_FAR_SERVED].mark = mark;
    }
    far->served_bytes = 0;
}

int wefti_far_reply(wefti_cuda_far *far)
{
    const uint64_t before = far->served_first;
    if (far->served_marked < far->served_end) {
        set_mark(far);
    }
    while (far->served_first < far->served_end) {
        const wefti_far_served *served = &far->served[far->served_first % WEFTI_FAR_SERVED];
        wefti_far_answer *answer = &far->answers[far->served_first % WEFTI_FAR_SERVED];
        const size_t place = (served->number - 1) % WEFTI_FAR_LETTERS;
        if (!wefti_far_has_passed(far, &far->asked, served->mark)) {
            break;
        }
        answer->status = answer->status == WEFT_OK ? (int32_t)far->asked.status : answer->status;
        const int has_data = answer->status == WEFT_OK;
        const wefti_far_post post = {
            .offset = offsetof(wefti_far_mail, answers[place]),
            .body = answer,
            .bytes = offsetof(wefti_far_answer, data) + (has_data && !served->is_long ? served->bytes : 0),
            .number_offset = offsetof(wefti_far_mail, answers[place].number),
            .number = served->number,
            .kind = WEFTI_FAR_OF_ANSWER,
            .chunk_bytes = served->bytes,
            .loan = has_data ? served->loan : -1,
        };
        /* A PE that does not get it is gone, or meets its deadline. */
        (void)wefti_far_post_to(far, served->lane, &post);
        wefti_far_give_back(far, WEFTI_FAR_OF_ANSWER, served->loan);
        far->served_first++;
    }
    return far->served_first != before;
}
