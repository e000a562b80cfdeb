/* cuda/ep/device/packet.cuh: rows of few tokens as LL packets: three words and the tag of the call, stored and read as
 * one access, so that each says by itself that it is here. A packet lies as a wefti_dev_packed; `at` counts packets of
 * a row. */
#ifndef WEFTI_CUDA_EP_DEVICE_PACKET_CUH
#define WEFTI_CUDA_EP_DEVICE_PACKET_CUH

#include "cuda/ep/device/call.cuh"
#include "cuda/ep/device/signal.cuh"

/* Three words, of `words` in all; from the end on the last repeats. The fourth is the reader's. */
EP_DEVICE uint4 ep_load_payload(const wefti_u32 *row, int words, int at)
{
    const int word = 3 * at;
    const int last = words - 1;
    return make_uint4(row[word], row[word + 1 < last ? word + 1 : last], row[word + 2 < last ? word + 2 : last], 0);
}

EP_DEVICE void ep_store_payload(wefti_u32 *row, int words, int at, const uint4 &payload)
{
    const int word = 3 * at;
    row[word] = payload.x;
    if (word + 1 < words) {
        row[word + 1] = payload.y;
    }
    if (word + 2 < words) {
        row[word + 2] = payload.z;
    }
}

EP_DEVICE void ep_store_ll_packet(wefti_u64 row, int at, const uint4 &payload, wefti_u32 tag)
{
    wefti_st_packed((wefti_dev_packed *)row + at, (wefti_u64)payload.y << 32 | payload.x, ep_packed(tag, payload.z));
}

/* As it is there now: its fourth word is the tag of whoever stored it last. */
EP_DEVICE uint4 ep_load_ll_packet(wefti_u64 row, int at)
{
    const wefti_dev_packed seen = wefti_ld_packed((const wefti_dev_packed *)row + at);
    return make_uint4((wefti_u32)seen.value, (wefti_u32)(seen.value >> 32), (wefti_u32)seen.epoch,
                      (wefti_u32)(seen.epoch >> 32));
}

/* Until it is of this tag. A lane. False: it did not come. */
EP_DEVICE_SLOW bool ep_await_ll_packet(const ep_group *group, wefti_u64 row, int at, wefti_u32 tag, int rank)
{
    wefti_dev_waiter waiter = {0, 0};
    bool here = ep_load_ll_packet(row, at).w == tag;
    while (!here && ep_go_on(*group, &waiter, rank)) {
        here = ep_load_ll_packet(row, at).w == tag;
    }
    return here;
}

#endif
