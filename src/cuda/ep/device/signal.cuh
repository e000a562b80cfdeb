/* cuda/ep/device/signal.cuh: packed words, and waiting for them.
 *
 * A packed word carries its call's tag (ep_begin_at, routing/header.cuh), so that its arrival is its own flag: one
 * store and one poll, where a value and a flag would need a release between them. What else a word announces (rows,
 * records) is ordered by storing it with release. */
#ifndef WEFTI_CUDA_EP_DEVICE_SIGNAL_CUH
#define WEFTI_CUDA_EP_DEVICE_SIGNAL_CUH

#include "cuda/ep/device/base.cuh"

EP_DEVICE wefti_u64 ep_packed(wefti_u32 tag, wefti_u32 value)
{
    return (wefti_u64)tag << 32 | value;
}

EP_DEVICE wefti_cuda_ep_control *ep_control(const ep_group &group)
{
    return (wefti_cuda_ep_control *)(group.area[group.rank] + group.at.control);
}

/* A call of the group fails, in which ranks, as bits, were waited for in vain. It is noted once for the whole group, so
 * that no other waiter begins a deadline of its own. */
EP_DEVICE_SLOW void ep_fail(const ep_group *group, int status, wefti_u32 missing)
{
    wefti_cuda_ep_control *control = ep_control(*group);
    missing |= atomicOr(&control->missing, missing);
    if (atomicCAS(&control->failed, 0u, (wefti_u32)-status) == 0) { /* the epoch of this call, or that before it */
        wefti_st_relaxed(&control->failed_epoch, wefti_ld_relaxed(&control->epoch));
    }
    wefti_st_release(&group->host_status[WEFTI_CUDA_EP_HOST_STATUS_FAILED],
                     (wefti_u64)missing << 32 | (wefti_u32)-status);
}

/* In a group with WEFT_EP_STATISTICS: how long a thread has waited for another rank, so far. */
EP_DEVICE void ep_note_wait(const wefti_cuda_ep_control *control, int rank, wefti_u64 start_ns)
{
    if (control->waits != 0) {
        atomicMax((unsigned long long *)control->waits + rank, (unsigned long long)(wefti_time_ns() - start_ns));
    }
}

/* Whether to go on waiting for `rank`. Blocks of this rank itself, which no mask takes away, may be late because they
 * wait for another: they have one more deadline, in which whoever waits for that one names it; then nobody is named. */
EP_DEVICE_SLOW bool ep_go_on_slow(const ep_group *group, wefti_u64 start_ns, int rank)
{
    if (wefti_ld_relaxed(&ep_control(*group)->failed) != 0) {
        return false;
    }
    const int status = wefti_dev_pause_slow(&group->dev, start_ns);
    const bool is_late = status == WEFT_ERR_TIMEOUT;
    const bool is_own = rank == group->rank;
    if (!is_own) {
        ep_note_wait(ep_control(*group), rank, start_ns);
    }
    if (status == WEFT_OK ||
        (is_late && is_own && (wefti_time_ns() - start_ns) / 2 < wefti_ld_relaxed(&group->dev.control->deadline_ns))) {
        return true;
    }
    ep_fail(group, status, is_late && !is_own ? 1u << rank : 0u);
    return false;
}

EP_DEVICE bool ep_go_on(const ep_group &group, wefti_dev_waiter *waiter, int rank)
{
    EP_PAUSE();
    if (++waiter->looks % WEFTI_DEV_LOOKS != 0) {
        return true;
    }
    waiter->start_ns = waiter->start_ns == 0 ? wefti_time_ns() : waiter->start_ns;
    return ep_go_on_slow(&group, waiter->start_ns, rank);
}

/* Look until the word is of this tag, or the call has failed; the last word seen. Out of line, because kernels wait
 * in many places. */
EP_DEVICE_SLOW wefti_u64 ep_look(const ep_group *group, const wefti_u64 *word, wefti_u32 tag, int rank,
                                 wefti_u32 rest_ns)
{
    wefti_dev_waiter waiter = {0, 0};
    wefti_u64 seen = wefti_ld_relaxed(word);
    while ((wefti_u32)(seen >> 32) != tag && ep_go_on(*group, &waiter, rank)) {
        if (rest_ns != 0) {
            wefti_rest(rest_ns);
        }
        seen = wefti_ld_relaxed(word);
    }
    return seen;
}

/* Wait for the word of this tag, which `rank` writes, and which announces nothing but its value: of a call header,
 * whose reader stores only to addresses that it finds there, and of counts. False: the call has failed. One thread. */
EP_DEVICE bool ep_await_value(const ep_group &group, const wefti_u64 *word, wefti_u32 tag, int rank, wefti_u32 *value)
{
    wefti_u64 seen = wefti_ld_relaxed(word);
    if ((wefti_u32)(seen >> 32) != tag) {
        seen = ep_look(&group, word, tag, rank, 0);
    }
    *value = (wefti_u32)seen;
    return (wefti_u32)(seen >> 32) == tag;
}

/* The same of a word that announces rows or records: acquires, once, when it is there, because each acquire empties the
 * multiprocessor's cache. What it loads then is the word that was seen: nobody writes it again before this call's end.
 * Rests between looks. */
EP_DEVICE bool ep_await(const ep_group &group, const wefti_u64 *word, wefti_u32 tag, int rank, wefti_u32 rest_ns,
                        wefti_u32 *value)
{
    if ((wefti_u32)(wefti_ld_relaxed(word) >> 32) != tag &&
        (wefti_u32)(ep_look(&group, word, tag, rank, rest_ns) >> 32) != tag) {
        return false;
    }
    *value = (wefti_u32)wefti_ld_acquire(word);
    return true;
}

/* Up to EP_AT_ONCE words at once, `word(i)` the i-th, which rank first_rank + i * rank_step writes; NULL: there is
 * none, and its value is 0. Looks overlap; while something is late only the first word that is gets looked at, and then
 * all again at once. One word after the other would take as many looks as words. False: the call has failed. One
 * thread. */
#define EP_AT_ONCE 8
template <class Word>
EP_DEVICE bool ep_await_each(const ep_group &group, int count, wefti_u32 tag, int first_rank, int rank_step,
                             const Word &word, wefti_u32 *values)
{
    for (;;) {
        wefti_u64 seen[EP_AT_ONCE];
        int late = EP_AT_ONCE;
#pragma unroll
        for (int i = 0; i < EP_AT_ONCE; i++) {
            const wefti_u64 *at = i < count ? word(i) : (const wefti_u64 *)0;
            seen[i] = at != 0 ? wefti_ld_relaxed(at) : ep_packed(tag, 0);
        }
#pragma unroll
        for (int i = EP_AT_ONCE - 1; i >= 0; i--) {
            values[i] = (wefti_u32)seen[i];
            late = (wefti_u32)(seen[i] >> 32) != tag ? i : late;
        }
        if (late == EP_AT_ONCE) {
            return true;
        }
        if ((wefti_u32)(ep_look(&group, word(late), tag, first_rank + late * rank_step, 0) >> 32) != tag) {
            return false;
        }
    }
}

/* The same of `count` words of a table, `stride` apart, which this rank's blocks write. */
EP_DEVICE bool ep_await_values(const ep_group &group, const wefti_u64 *words, int stride, int count, wefti_u32 tag,
                               wefti_u32 *values)
{
    return ep_await_each(
        group, count, tag, group.rank, 0, [&](int i) { return words + (wefti_i64)i * stride; }, values);
}

/* ---- the words of units ---- */

/* The words of `rank`'s units in `meta_ready`, and of its units or grains in `rows_ready`, in the memory of
 * `reader`; a row of the latter has as many words as a combine pushes, which is the most (`at.pushes`). */
EP_DEVICE wefti_u64 *ep_meta_ready(const ep_group &group, int reader, int rank)
{
    return (wefti_u64 *)(group.area[reader] + group.at.meta_ready) + (wefti_u64)rank * group.at.units;
}

EP_DEVICE wefti_u64 *ep_rows_ready(const ep_group &group, int reader, int rank)
{
    return (wefti_u64 *)(group.area[reader] + group.at.rows_ready) + (wefti_u64)rank * group.at.pushes;
}

#endif
