/* cuda/ep/host/describe.c: the words for a call of expert parallelism on GPUs. */
#include "cuda/ep/host/describe.h"

#include "base/text.h"
#include "ep/check.h"

#define CALL_BIT(CALL) (1u << WEFTI_CUDA_EP_##CALL)
#define DISPATCHES (CALL_BIT(DISPATCH) | CALL_BIT(DISPATCH_HALVES))
#define COMBINES (CALL_BIT(COMBINE) | CALL_BIT(COMBINE_HALVES))
#define BACKWARDS (CALL_BIT(DISPATCH_BWD) | CALL_BIT(COMBINE_BWD))
#define SCALES(TYPE) (WEFTI_CUDA_EP_SCALES_MASK << WEFTI_CUDA_EP_SCALES_SHIFT), (TYPE << WEFTI_CUDA_EP_SCALES_SHIFT)
#define FLAG(NAME) WEFTI_CUDA_EP_##NAME, WEFTI_CUDA_EP_##NAME

/* What the flags of a signature say: those of `calls` under `mask`, where they are `value`. The route, the layout and
 * WEFTI_CUDA_EP_FRESH and MOVE have words elsewhere; WEFTI_CUDA_EP_ONCE follows from the layout. */
static const struct {
    unsigned calls;
    unsigned mask;
    unsigned value;
    const char *text;
} flag_texts[] = {
    {DISPATCHES, FLAG(WITH_NEW_WEIGHTS), ", new weights"},
    {DISPATCHES, SCALES(WEFT_EP_SCALE_F32), ", float32 scales"},
    {DISPATCHES, SCALES(WEFT_EP_SCALE_UE8M0), ", ue8m0 scales"},
    {DISPATCHES, SCALES(WEFT_EP_SCALE_UE8M0_32), ", ue8m0 (of 32) scales"},
    {COMBINES | CALL_BIT(COMBINE_BWD), FLAG(WEIGHTED), ", weighted"},
    {COMBINES, FLAG(COMBINE_WEIGHTS), ", own weights"},
    {COMBINES, FLAG(COMBINE_IDS), ", own ids"},
    {COMBINES, FLAG(VALUES), ", values"},
    {BACKWARDS, FLAG(VALUES), ", with weights"},
    {COMBINES | CALL_BIT(DISPATCH_BWD), FLAG(BY_CHOICE), ", order by choice"},
};

static void append_flags(wefti_text *to, unsigned call, unsigned flags)
{
    for (size_t i = 0; i < sizeof flag_texts / sizeof *flag_texts; i++) {
        if ((flag_texts[i].calls >> call & 1) != 0 && (flags & flag_texts[i].mask) == flag_texts[i].value) {
            wefti_text_append(to, "%s", flag_texts[i].text);
        }
    }
}

static void append_rows(wefti_text *to, unsigned dtypes, unsigned width, unsigned flags)
{
    const weft_ep_dtype dtype = (weft_ep_dtype)(dtypes & (WEFTI_CUDA_EP_TO_FP8 - 1));
    const unsigned scale_bytes = wefti_ep_width_scale_bytes(dtype, width);
    wefti_text_append(to, " of %u %s", wefti_ep_width_hidden(dtype, width), wefti_ep_dtype_name(dtype));
    if ((dtypes & WEFTI_CUDA_EP_TO_FP8) != 0) {
        wefti_text_append(to, " to %s", wefti_ep_dtype_name(WEFT_EP_FP8_E4M3));
    }
    if (scale_bytes != 0) {
        wefti_text_append(to, " with %u of scales", scale_bytes);
    }
    if (((dtypes & WEFTI_CUDA_EP_TO_FP8) != 0 || dtype == WEFT_EP_FP8_E4M3) &&
        (flags >> WEFTI_CUDA_EP_SCALES_SHIFT & WEFTI_CUDA_EP_SCALES_MASK) == 0) {
        wefti_text_append(to, ", float32 (powers of two) scales");
    }
}

/* The plan of a call that updates its route, or the route's last update. */
static void append_route(wefti_text *to, int is_fresh, weft_ep_layout layout, uint32_t route, int ranks)
{
    static const char *const words[] = {"", ", alignment ", ", Tmax ", ", Tmax "};
    wefti_text_append(to, ", %s", wefti_ep_layout_name(layout));
    if (!is_fresh) {
        wefti_text_append(to, ", on the route updated in call %u", route / 2);
    } else if (layout != WEFT_EP_RANK_MAJOR) { /* of slots by expert 1 + R * Tmax: divided by R that is Tmax */
        wefti_text_append(to, "%s%u", words[layout], layout == WEFT_EP_SLOTS_EXPERT ? route / (uint32_t)ranks : route);
    }
}

void wefti_cuda_ep_describe(char bytes[WEFTI_CUDA_EP_CALL_BYTES], uint64_t signature, uint32_t route, int ranks)
{
    static const char *const calls[] = {"no call",
                                        "a dispatch",
                                        "a combine",
                                        "a dispatch backward",
                                        "a combine backward",
                                        "a dispatch in halves",
                                        "a combine in halves",
                                        "no call"};
    const wefti_cuda_ep_signature_fields fields = wefti_cuda_ep_signature_split(signature);
    const int is_dispatch = (DISPATCHES >> fields.call & 1) != 0;
    const int is_update = is_dispatch && (fields.flags & WEFTI_CUDA_EP_MOVE) == 0;
    wefti_text to = {.bytes = bytes, .size = WEFTI_CUDA_EP_CALL_BYTES};
    wefti_text_append(&to, "%s", is_update ? "an update" : calls[fields.call & 7]);
    if (!is_update) {
        append_rows(&to, fields.dtype, fields.hidden & ~(WEFTI_CUDA_EP_TO_RANKS | WEFTI_CUDA_EP_BY_POSITION),
                    is_dispatch ? fields.flags : ~0u);
    } else if ((fields.hidden & WEFTI_CUDA_EP_COUNTING) != 0) {
        wefti_text_append(&to, ", counting rows to drop");
    }
    append_flags(&to, fields.call, fields.flags);
    wefti_text_append(&to, ", topk %u", fields.topk);
    append_route(&to, is_dispatch && (fields.flags & WEFTI_CUDA_EP_FRESH) != 0,
                 (weft_ep_layout)(fields.flags >> WEFTI_CUDA_EP_LAYOUT_SHIFT & 3), route, ranks);
    if (is_dispatch && (fields.hidden & WEFTI_CUDA_EP_TO_RANKS) != 0) {
        wefti_text_append(&to,
                          (fields.hidden & WEFTI_CUDA_EP_BY_POSITION) != 0 ? ", of positions" : ", of destinations");
    }
}

const char *wefti_cuda_ep_describe_nobody(const weft_ep *ep)
{
    const int has_fault = weft_world_fault(ep->world, NULL) != WEFT_OK;
    return has_fault ? "; this PE's kernels have latched a fault (weft_world_fault)"
           : ep->dead == WEFT_ERR_TIMEOUT
               ? "; blocks of this rank's own did not come within two deadlines: other kernels had its multiprocessors "
                 "(weft_ep_plan.sms, weft_device_sms_take). weft_ep_mask of any rank, as it is, goes on"
               : "";
}
