/* cuda/ep/host/growth.c: limits that grow (ep/growth.h) on GPUs. Kernels cannot have other memory, so the hosts agree
 * before they launch: in a group whose limits grow each call begins with a call of a small group of the host's memory,
 * in which its ranks compare what they call and of how many tokens. If any needs more, all wait for what they have
 * launched, take other memory, and go on in it with the same epoch. Calls under capture are not compared, and nothing
 * grows in them or after them, since graphs hold addresses of the memory. */
#include <string.h>

#include "cuda/ep/host/calls.h"
#include "ep/agreement.h"
#include "ep/check.h"
#include "ep/growth.h"

/* ---- the meeting ---- */

weft_status wefti_cuda_ep_open_meeting(weft_ep *ep)
{
    const weft_ep_config config = {.size = sizeof config,
                                   .experts = 1,
                                   .topk_max = 1,
                                   .row_bytes_max = 16,
                                   .flags = ep->config.flags & WEFT_EP_MASK_ON_TIMEOUT,
                                   .domain_ranks = ep->ranks,
                                   .bytes_max = SIZE_MAX};
    return ep->calls->create(ep->team, &config, &ep->device->meeting);
}

/* Who is masked here, or was and is back, is so there. */
static void take_masks(const weft_ep *ep)
{
    weft_ep *meeting = ep->device->meeting;
    wefti_ep_take_masks(ep);
    for (int rank = 0; rank < ep->ranks; rank++) {
        wefti_ep_set_masked(meeting, rank, ep->masked[rank]);
    }
}

weft_status wefti_cuda_ep_close_meeting(const weft_ep *ep)
{
    if (ep->device->meeting == NULL) {
        return WEFT_OK;
    }
    take_masks(ep); /* none: then it ends collectively on all ranks */
    return ep->calls->destroy(ep->device->meeting);
}

/* Who did not come there is masked here, or has to be. */
static weft_status bring_masks(weft_ep *ep)
{
    const weft_ep *meeting = ep->device->meeting;
    memcpy(ep->late, meeting->late, (size_t)ep->ranks);
    for (int rank = 0; rank < ep->ranks; rank++) {
        if (meeting->masked[rank] && !ep->masked[rank]) {
            WEFT_TRY(wefti_cuda_ep_mask(ep, rank, 0));
            wefti_ep_set_masked(ep, rank, 1);
        }
    }
    return WEFT_OK;
}

static weft_status meet(weft_ep *ep, wefti_ep_meeting *meeting, const char *call)
{
    weft_ep *there = ep->device->meeting;
    take_masks(ep);
    weft_status status = there->backend->meet(there, meeting, call); /* a part of the call, without a span of its own */
    weft_status masked = bring_masks(ep);
    return status != WEFT_OK ? status : masked;
}

/* ---- calls ---- */

static weft_status find_capture(const wefti_cuda *cuda, const weft_stream *stream, int *is_captured, const char *call)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    WEFT_TRY(wefti_cuda_enter(cuda));
    CUresult result = cuda->driver.cuStreamIsCapturing((CUstream)(void *)(uintptr_t)stream, &capture);
    wefti_cuda_leave(cuda);
    *is_captured = capture != CU_STREAM_CAPTURE_STATUS_NONE;
    return wefti_cuda_check(&cuda->driver, result, call);
}

uint64_t wefti_cuda_ep_meetings(const weft_ep *ep)
{
    return *ep->device->meeting->started;
}

weft_status wefti_cuda_ep_rejoin_meeting(weft_ep *ep, uint64_t meetings)
{
    weft_ep *there = ep->device->meeting;
    ep->device->has_met = 0;
    memset(there->late, 0, (size_t)there->ranks);
    return there->backend->rejoin(there, meetings);
}

int wefti_cuda_ep_is_captured(const weft_ep *ep)
{
    return ep->device->is_captured;
}

static wefti_ep_need need_of(const wefti_cuda_ep_beginning *of)
{
    wefti_ep_need need = {.tokens_max = 0};
    if (of->fresh != NULL) {
        need = wefti_ep_need_of_routing(&of->route->plan, of->fresh->tokens);
    }
    if (of->in != NULL) {
        wefti_ep_need_rows(&need, of->in);
    }
    if (of->out != NULL) {
        wefti_ep_need_rows(&need, of->out);
    }
    return need;
}

static uint64_t signature_of(const wefti_cuda_ep_beginning *of)
{
    wefti_ep_signature_fields fields = {.kind = of->kind, .flags = of->flags};
    if (of->in != NULL) {
        fields.dtype = (unsigned)of->in->dtype;
        fields.hidden = wefti_ep_width(of->in);
    }
    if (of->out != NULL) {
        fields.out_dtype = (unsigned)of->out->dtype;
        fields.scale_type = (unsigned)of->out->scale_type;
    }
    return wefti_ep_signature(&fields);
}

/* A call that is compared with nobody's: as the kernels are, which find what differs. */
static weft_status refuse_alone(const weft_ep *ep, const wefti_ep_need *need, const char *call, const char *why)
{
    const weft_ep_config *config = &ep->config;
    return wefti_ep_need_exceeds(ep, need)
               ? wefti_error(WEFT_ERR_RANGE,
                             "%s: it needs %d tokens, %d choices, slots of %d tokens, rows of %zu bytes and %d of "
                             "scales, and the limits are %d, %d, %d, %zu and %d; nothing grows %s",
                             call, need->tokens_max, need->topk_max, need->slot_tokens_max, need->row_bytes_max,
                             need->scale_bytes_max, config->tokens_max, config->topk_max, config->slot_tokens_max,
                             config->row_bytes_max, config->scale_bytes_max, why)
               : WEFT_OK;
}

/* Whether this rank can make the call. has_memory: the group has what the call needs. */
static weft_status check_alone(const wefti_cuda_ep_beginning *of, int has_memory, const weft_stream *stream,
                               const char *call)
{
    const wefti_cuda_ep_launch_plan plan = wefti_cuda_ep_plan_launch(of->route, of->kernel);
    WEFT_TRY(wefti_cuda_ep_check_plan(of->route, &plan, stream, call));
    return has_memory && of->staging != NULL ? wefti_cuda_ep_check_staging(of->route->ep, &plan, of->staging, call)
                                             : WEFT_OK;
}

/* The error of all ranks where one does not make the call: `own`, if it is this one. */
static weft_status report_refusal(const wefti_ep_meeting *meeting, weft_status own, const char *call)
{
    return own != WEFT_OK ? own
                          : wefti_error(WEFT_ERR_STATE,
                                        "%s: rank %d cannot make the call, and its error says why; nothing was moved. "
                                        "All ranks may make it again",
                                        call, meeting->refused_rank);
}

static weft_status grow(const wefti_cuda_ep_beginning *of, const wefti_ep_need *need, unsigned holds,
                        const weft_stream *stream, const char *call)
{
    const weft_ep *ep = of->route->ep;
    WEFT_TRY(wefti_ep_grow(of->route, need, holds, of->fresh != NULL, call));
    return wefti_ep_stages(ep) ? WEFT_OK
                               : wefti_ep_agree(ep->team, &ep->config, ep, check_alone(of, 1, stream, call), call);
}

static weft_status meet_and_grow(const wefti_cuda_ep_beginning *of, wefti_ep_need *need, const weft_stream *stream,
                                 const char *call)
{
    weft_ep *ep = of->route->ep;
    weft_status own = of->fresh != NULL ? wefti_cuda_ep_route_fit(of->route, call) : WEFT_OK;
    own = own == WEFT_OK ? check_alone(of, !wefti_ep_need_exceeds(ep, need), stream, call) : own;
    wefti_ep_meeting meeting = {.signature = signature_of(of),
                                .plan = of->fresh != NULL ? &of->route->plan : NULL,
                                .tokens = need->tokens_max,
                                .holds = wefti_ep_holds(ep) | (own != WEFT_OK ? WEFTI_EP_HOLD_REFUSED : 0)};
    WEFT_TRY(meet(ep, &meeting, call));
    if ((meeting.holds & WEFTI_EP_HOLD_REFUSED) != 0) {
        return report_refusal(&meeting, own, call);
    }
    need->tokens_max = meeting.tokens > need->tokens_max ? meeting.tokens : need->tokens_max;
    WEFT_TRY(wefti_ep_need_exceeds(ep, need) ? grow(of, need, meeting.holds, stream, call) : WEFT_OK);
    ep->device->has_met = 1;
    return WEFT_OK;
}

weft_status wefti_cuda_ep_begin(const wefti_cuda_ep_beginning *of, weft_stream *stream, const char *call)
{
    weft_ep *ep = of->route->ep;
    int is_captured;
    WEFT_TRY(ep->device->has_met ? WEFT_OK : wefti_cuda_ep_host_status(ep, call));
    if (!wefti_ep_grows(ep)) {
        return check_alone(of, 1, stream, call);
    }
    wefti_ep_need need = need_of(of);
    WEFT_TRY(find_capture(ep->device->cuda, stream, &is_captured, call));
    if (!is_captured && !ep->device->has_met) {
        return meet_and_grow(of, &need, stream, call);
    }
    WEFT_TRY(of->fresh != NULL ? wefti_cuda_ep_route_fit(of->route, call) : WEFT_OK);
    if (is_captured) {
        ep->device->is_captured = 1;
        WEFT_TRY(refuse_alone(ep, &need, call, "under capture; make such a call once before"));
        return check_alone(of, 1, stream, call);
    }
    WEFT_TRY(refuse_alone(ep, &need, call, "in a call that the other ranks have made already"));
    return check_alone(of, 1, stream, call);
}

weft_status wefti_cuda_ep_note_launch(const weft_ep *ep, const weft_stream *stream, const char *call)
{
    wefti_ep_device *device = ep->device;
    int is_captured;
    device->has_met = 0;
    WEFT_TRY(find_capture(device->cuda, stream, &is_captured, call));
    if (is_captured) {
        return WEFT_OK;
    }
    WEFT_TRY(wefti_cuda_enter(device->cuda));
    CUresult result = device->cuda->driver.cuEventRecord(device->last[ep->bank], (CUstream)(void *)(uintptr_t)stream);
    wefti_cuda_leave(device->cuda);
    device->has_last[ep->bank] = 1;
    return wefti_cuda_check(&device->cuda->driver, result, call);
}

weft_status wefti_cuda_ep_settle(const weft_ep *ep, const char *call)
{
    const wefti_ep_device *device = ep->device;
    const wefti_cuda *cuda = device->cuda;
    CUresult result = CUDA_SUCCESS;
    WEFT_TRY(wefti_cuda_enter(cuda));
    for (int bank = 0; bank < WEFTI_EP_BANKS_MAX && result == CUDA_SUCCESS; bank++) {
        if (device->has_last[bank]) {
            result = cuda->driver.cuStreamWaitEvent(cuda->stream, device->last[bank], 0);
        }
    }
    result = result == CUDA_SUCCESS ? cuda->driver.cuStreamSynchronize(cuda->stream) : result;
    wefti_cuda_leave(cuda);
    return wefti_cuda_check(&cuda->driver, result, call);
}
