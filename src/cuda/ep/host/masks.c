/* cuda/ep/host/masks.c: going on without a rank, or with one that is back.
 *
 * A rank that is masked may be alive, and late. It has call headers of this rank's in its memory, and stores rows where
 * they say, whenever it comes to those calls. So they are taken back before this rank goes on: a kernel of the masked
 * rank that begins later does not find them. One that had begun before may have read them; it is waited for. This is
 * the host's work, once a mask: calls have no part in it (docs/ep-gpu-ordering.md, "After a mask"). */
#include <string.h>

#include "cuda/ep/host/kind.h"
#include "cuda/ep/masking.h"
#include "os/os.h"
#include "world/world.h"

/* Longer than stores and looks that are under way take, by kernels that wait for nothing. */
#define SETTLE_NS UINT64_C(5000000)
/* A kernel that waits in vain ends within so many deadlines. */
#define DEADLINES 3

uint64_t wefti_cuda_ep_failed_word(const weft_ep *ep)
{
    uint64_t failed = 0;
    for (int bank = 0; bank < wefti_ep_banks(ep); bank++) {
        failed |=
            __atomic_load_n(&wefti_cuda_ep_host_words(ep, bank)[WEFTI_CUDA_EP_HOST_STATUS_FAILED], __ATOMIC_ACQUIRE);
    }
    return failed;
}

/* A routing on which the call that failed was to agree is half one and half the last; which call failed is not known.
 * And the call header of a rank that did not come does not count as one that differs. */
static void forget_failure(weft_ep *ep)
{
    wefti_ep_device *device = ep->device;
    for (weft_ep_route *route = ep->routes; route != NULL; route = route->next) {
        route->is_routed = route->is_routed && !route->device->is_unseen;
    }
    for (int bank = 0; bank < wefti_ep_banks(ep); bank++) {
        device->mismatch_seen[bank] =
            __atomic_load_n(&wefti_cuda_ep_host_words(ep, bank)[WEFTI_CUDA_EP_HOST_STATUS_MISMATCH], __ATOMIC_ACQUIRE);
    }
}

/* ---- what the masked rank may still do ---- */

/* A rank's area, as this one addresses it. */
static uint64_t area_of(const weft_ep *ep, int bank, int rank)
{
    uint64_t left;
    const wefti_ep_device *device = ep->device;
    return wefti_cuda_locate(&device->cuda->base, device->area, device->pe_of[rank], &left) +
           (uint64_t)bank * device->group[0].at.bytes;
}

static wefti_cuda_ep_control *control_at(const weft_ep *ep, int bank, int rank)
{
    return (void *)(uintptr_t)(area_of(ep, bank, rank) + ep->device->group[bank].at.control);
}

static weft_status read_control(const weft_ep *ep, int bank, int rank, wefti_cuda_ep_control *control)
{
    return wefti_cuda_copy(&ep->device->cuda->base, control, control_at(ep, bank, rank), sizeof *control);
}

/* A range of calls, by their epochs. */
typedef struct call_range {
    uint64_t first;
    uint64_t last;
} call_range;

/* Those that this rank may not have completed, and which the others may still be in: from the last failure on. None
 * when calls have been made since it was noted: they would have failed. */
static weft_status find_incomplete(const weft_ep *ep, int bank, call_range *open)
{
    wefti_ep_device *device = ep->device;
    wefti_cuda_ep_control own;
    WEFT_TRY(read_control(ep, bank, ep->rank, &own));
    if (own.failed != 0) {
        device->failed_epoch[bank] = own.failed_epoch;
        device->failed_last[bank] = own.epoch;
    }
    const int is_last = own.epoch != 0 && own.epoch == device->failed_last[bank];
    *open = (call_range){is_last ? device->failed_epoch[bank] : own.epoch + 1, own.epoch};
    return WEFT_OK;
}

/* Those that a rank may be in: the last that all its blocks have begun, and one that some have. The epoch behind 2^31
 * calls is left out, as ep_advance of cuda/ep/routing/header.cuh says. */
static call_range running(const wefti_cuda_ep_control *theirs)
{
    call_range seen = {theirs->epoch, theirs->epoch};
    if (theirs->begun != 0) {
        seen.last += (uint32_t)(theirs->epoch + 2) << 1 == 0 ? 3 : 1;
    }
    return seen;
}

/* Whether all calls that ran `then` have ended: by their own failure, also one that its rank has gone on from, or
 * because a later one has begun. */
static int have_ended(call_range then, const wefti_cuda_ep_control *now)
{
    return now->failed != 0 || now->failed_epoch > then.last || now->epoch > then.last ||
           (now->epoch == then.last && now->begun != 0);
}

static weft_status take_back(const weft_ep *ep, uint64_t there, uint64_t words)
{
    static const uint64_t none[512];
    const uint64_t most = sizeof none / sizeof *none;
    for (uint64_t i = 0; i < words; i += most) {
        const uint64_t count = words - i < most ? words - i : most;
        WEFT_TRY(wefti_cuda_copy(&ep->device->cuda->base, (void *)(uintptr_t)(there + i * sizeof *none), none,
                                 count * sizeof *none));
    }
    return WEFT_OK;
}

/* Of the call headers in a rank's memory, [2][R] of so many words, those of this rank. */
static weft_status take_headers_back(const weft_ep *ep, int bank, int rank, uint64_t words)
{
    const uint64_t headers = area_of(ep, bank, rank) + ep->device->group[bank].at.headers;
    for (uint64_t parity = 0; parity < 2; parity++) {
        const uint64_t number = parity * (uint64_t)ep->ranks + (uint64_t)ep->rank;
        WEFT_TRY(take_back(ep, headers + number * words * sizeof(uint64_t), words));
    }
    return WEFT_OK;
}

weft_status wefti_cuda_ep_revoke_few(const weft_ep *ep, int bank, int rank)
{
    return take_headers_back(ep, bank, rank, WEFTI_CUDA_EP_HEADER_WORDS + (uint64_t)ep->ranks);
}

/* Of many ranks also what this one, as an owner, has answered. */
weft_status wefti_cuda_ep_revoke_many(const weft_ep *ep, int bank, int rank)
{
    const wefti_cuda_ep_layout *at = &ep->device->group[bank].at;
    const uint64_t words = WEFTI_CUDA_EP_REPLY_WORDS + (uint64_t)at->local_max;
    const uint64_t answer = at->counts + (uint64_t)ep->rank * words * sizeof(uint64_t);
    WEFT_TRY(take_headers_back(ep, bank, rank, WEFTI_CUDA_EP_HEADER_WORDS + 1 + (uint64_t)at->local_max));
    return take_back(ep, area_of(ep, bank, rank) + answer, words);
}

/* WEFT_FOREVER where kernels wait without a deadline: their wait for a PE that is gone ends all the same
 * (cuda/watch.c). */
static weft_status find_patience(const weft_ep *ep, uint64_t *patience_ns)
{
    wefti_cuda *cuda = ep->device->cuda;
    const wefti_dev_control *control = (const wefti_dev_control *)(const void *)cuda->slot;
    uint64_t deadline_ns = 0;
    WEFT_TRY(wefti_cuda_copy(&cuda->base, &deadline_ns, &control->deadline_ns, sizeof deadline_ns));
    *patience_ns = deadline_ns < WEFT_FOREVER / DEADLINES ? deadline_ns * DEADLINES : WEFT_FOREVER;
    return WEFT_OK;
}

/* After this a rank stores nothing where words of this rank's said, on a bank. */
static weft_status shut_out(const weft_ep *ep, int bank, int rank, call_range open)
{
    wefti_cuda_ep_control theirs;
    uint64_t patience_ns;
    const int pe = ep->device->pe_of[rank];
    WEFT_TRY(find_patience(ep, &patience_ns));
    WEFT_TRY(ep->device->kind->revoke(ep, bank, rank));
    wefti_os_sleep_ns(SETTLE_NS);
    WEFT_TRY(read_control(ep, bank, rank, &theirs));
    const call_range then = running(&theirs);
    if (then.last < open.first || then.first > open.last) {
        return WEFT_OK;
    }
    const uint64_t start_ns = wefti_os_now_ns();
    while (!have_ended(then, &theirs) && !wefti_world_has_ended(ep->world, pe) &&
           wefti_os_now_ns() - start_ns < patience_ns) {
        WEFT_TRY(wefti_world_ask(ep->world));
        if (weft_world_fault(ep->world, NULL) == WEFT_ERR_ABORTED) {
            return wefti_world_check(ep->world, "weft_ep_mask");
        }
        wefti_os_sleep_ns(SETTLE_NS);
        WEFT_TRY(read_control(ep, bank, rank, &theirs));
    }
    wefti_os_sleep_ns(SETTLE_NS);
    return WEFT_OK;
}

/* ---- the mask ---- */

weft_status wefti_cuda_ep_tell_masked_few(const weft_ep *ep, int bank, const uint32_t *masked)
{
    (void)ep;
    (void)bank;
    (void)masked;
    return WEFT_OK; /* the control words say it */
}

/* Who is masked, and that nobody is missing, to the directory. */
weft_status wefti_cuda_ep_tell_masked_many(const weft_ep *ep, int bank, const uint32_t *masked)
{
    const wefti_ep_device *device = ep->device;
    wefti_cuda_ep_directory *there =
        (void *)(uintptr_t)(wefti_cuda_ep_own_area(ep, bank) + wefti_cuda_ep_directory_at(&device->group[bank].at));
    uint32_t words[2][WEFTI_CUDA_EP_MANY_WORDS] = {{0}};
    memcpy(words[0], masked, sizeof words[0]);
    return wefti_cuda_copy(&device->cuda->base, there->masked, words, sizeof words);
}

/* Mask a rank in one bank. What it may still do, it has done. All calls of this rank have ended, which others may
 * want to know (have_ended). */
static weft_status mask_bank(const weft_ep *ep, int bank, int rank, const uint32_t *masked, int is_new)
{
    const wefti_ep_device *device = ep->device;
    call_range open;
    WEFT_TRY(find_incomplete(ep, bank, &open));
    const wefti_cuda_ep_control control = {.masked = masked[0], .failed_epoch = open.last + 1};
    WEFT_TRY(is_new ? shut_out(ep, bank, rank, open) : WEFT_OK);
    WEFT_TRY(device->kind->tell_masked(ep, bank, masked));
    wefti_cuda_ep_control *own = control_at(ep, bank, ep->rank);
    return wefti_cuda_copy(&device->cuda->base, &own->masked, &control.masked,
                           offsetof(wefti_cuda_ep_control, waits) - offsetof(wefti_cuda_ep_control, masked));
}

/* The words after the mask say what failed, and are cleared with it. No kernel of the group runs on this rank. */
weft_status wefti_cuda_ep_mask(weft_ep *ep, int rank, int alive)
{
    wefti_ep_device *device = ep->device;
    const uint32_t bit = UINT32_C(1) << rank % 32;
    uint32_t masked[WEFTI_CUDA_EP_MANY_WORDS];
    for (int word = 0; word < (ep->ranks + 31) / 32 && wefti_cuda_ep_passes_by(ep); word++) { /* kernels', too */
        device->masked[word] |= (uint32_t)(ep->mask_words[word / 2] >> 32 * (word % 2));
    }
    memcpy(masked, device->masked, sizeof masked);
    masked[rank / 32] = alive ? masked[rank / 32] & ~bit : masked[rank / 32] | bit;
    for (int bank = 0; bank < wefti_ep_banks(ep); bank++) {
        WEFT_TRY(mask_bank(ep, bank, rank, masked, masked[rank / 32] > device->masked[rank / 32]));
    }
    memcpy(device->masked, masked, sizeof masked);
    if (ep->dead != WEFT_OK || wefti_cuda_ep_failed_word(ep) != 0) {
        forget_failure(ep);
    }
    for (int bank = 0; bank < wefti_ep_banks(ep); bank++) {
        uint64_t *words = wefti_cuda_ep_host_words(ep, bank);
        memset(&words[WEFTI_CUDA_EP_HOST_STATUS_MISSING], 0, WEFTI_CUDA_EP_MANY_MAX / 8);
        __atomic_store_n(&words[WEFTI_CUDA_EP_HOST_STATUS_FAILED], 0, __ATOMIC_RELEASE);
    }
    return WEFT_OK;
}

uint64_t wefti_cuda_ep_masked_at_few(const wefti_cuda_ep_layout *at)
{
    return at->control + offsetof(wefti_cuda_ep_control, masked);
}

uint64_t wefti_cuda_ep_masked_at_many(const wefti_cuda_ep_layout *at)
{
    return wefti_cuda_ep_directory_at(at) + offsetof(wefti_cuda_ep_directory, masked);
}

weft_status wefti_cuda_ep_launch_masks(const weft_ep *ep, weft_stream *stream, const char *call)
{
    const wefti_cuda *cuda = ep->device->cuda;
    const wefti_ep_device *device = ep->device;
    const uint64_t masked = device->kind->masked_at(&device->group[0].at);
    wefti_cuda_ep_masking_args args = {.masked = (void *)(uintptr_t)(device->own_area[ep->bank] + masked),
                                       .other = (const void *)(uintptr_t)(device->own_area[1 - ep->bank] + masked),
                                       .told = (wefti_u64 *)ep->mask_told[ep->bank],
                                       .words = (ep->ranks + 31) / 32};
    void *arguments[] = {&args};
    WEFT_TRY(wefti_cuda_enter(cuda));
    CUresult result = cuda->driver.cuLaunchKernel(device->masks, 1, 1, 1, WEFTI_CUDA_EP_THREADS, 1, 1, 0,
                                                  (CUstream)(void *)stream, arguments, NULL);
    wefti_cuda_leave(cuda);
    return wefti_cuda_check(&cuda->driver, result, call);
}

/* ---- back in step ---- */

/* A number of calls stands for all counts that ranks must have alike: of each bank's kernels, among whose calls are
 * those of graphs; where limits grow, of the meetings of the hosts; with two banks, which of them is next. Where
 * there are several, each is told by its lowest bits: the other rank has made less than half as many more as they tell
 * apart. */
enum { STEP_COUNTS = WEFTI_EP_BANKS_MAX + 1 };
typedef struct step {
    int counts;
    int bits; /* of each */
    uint64_t count[STEP_COUNTS]; /* of the banks, then of the meetings */
} step;

static uint64_t low(uint64_t count, int bits)
{
    return bits == 64 ? count : count & ((UINT64_C(1) << bits) - 1);
}

static weft_status read_step(const weft_ep *ep, step *own)
{
    const int banks = wefti_ep_banks(ep);
    const int grows = wefti_ep_grows(ep) != 0;
    own->counts = banks + grows;
    own->bits = own->counts == 3 ? 21 : banks == 2 ? 31 : grows ? 32 : 64;
    for (int bank = 0; bank < banks; bank++) {
        wefti_cuda_ep_control control;
        WEFT_TRY(read_control(ep, bank, ep->rank, &control));
        own->count[bank] = control.epoch;
    }
    if (grows) {
        own->count[banks] = wefti_cuda_ep_meetings(ep);
    }
    return WEFT_OK;
}

/* Where a count begins in the number; with two banks the lowest bit tells which is next. */
static int shift_of(const weft_ep *ep, const step *of, int i)
{
    return i * of->bits + (wefti_ep_banks(ep) == 2);
}

/* The device counts, since graphs are replayed without the host. */
weft_status wefti_cuda_ep_calls(const weft_ep *ep, uint64_t *calls)
{
    step own;
    WEFT_TRY(read_step(ep, &own));
    *calls = wefti_ep_banks(ep) == 2 ? *ep->started & 1 : 0;
    for (int i = 0; i < own.counts; i++) {
        *calls |= low(own.count[i], own.bits) << shift_of(ep, &own, i);
    }
    return WEFT_OK;
}

/* What `calls` of another rank stand for, which has made no fewer. */
static weft_status read_calls(const weft_ep *ep, uint64_t calls, step *there)
{
    WEFT_TRY(read_step(ep, there));
    for (int i = 0; i < there->counts; i++) {
        const uint64_t ahead = low((calls >> shift_of(ep, there, i)) - there->count[i], there->bits);
        if (ahead >> (there->bits - 1) != 0) {
            return wefti_error(WEFT_ERR_ARGUMENT,
                               "weft_ep_rejoin: 0x%llx stands for fewer calls than this rank has made, or for 2^%d "
                               "more; give what weft_ep_calls tells on a rank in step",
                               (unsigned long long)calls, there->bits - 1);
        }
        there->count[i] += ahead;
    }
    return WEFT_OK;
}

static weft_status set_step(weft_ep *ep, int bank, uint64_t epoch)
{
    wefti_ep_device *device = ep->device;
    wefti_cuda_ep_control own;
    WEFT_TRY(read_control(ep, bank, ep->rank, &own));
    own = (wefti_cuda_ep_control){.epoch = epoch, .half_epoch = epoch, .waits = own.waits};
    WEFT_TRY(wefti_cuda_copy(&device->cuda->base, control_at(ep, bank, ep->rank), &own, sizeof own));
    WEFT_TRY(device->kind->tell_masked(ep, bank, device->masked));
    device->failed_epoch[bank] = device->failed_last[bank] = 0;
    return WEFT_OK;
}

/* The group is as after so many calls of which none failed. Words of earlier calls have other tags. */
weft_status wefti_cuda_ep_rejoin(weft_ep *ep, uint64_t calls)
{
    step there;
    const int banks = wefti_ep_banks(ep);
    WEFT_TRY(read_calls(ep, calls, &there));
    *ep->started += banks == 2 ? (*ep->started ^ calls) & 1 : 0; /* its calls go on the same bank */
    WEFT_TRY(wefti_ep_grows(ep) ? wefti_cuda_ep_rejoin_meeting(ep, there.count[banks]) : WEFT_OK);
    memset(ep->device->masked, 0, sizeof ep->device->masked);
    for (int bank = 0; bank < banks; bank++) {
        WEFT_TRY(set_step(ep, bank, there.count[bank]));
    }
    forget_failure(ep);
    for (weft_ep_route *route = ep->routes; route != NULL; route = route->next) {
        route->is_routed = 0;
    }
    for (int bank = 0; bank < wefti_ep_banks(ep); bank++) {
        uint64_t *words = wefti_cuda_ep_host_words(ep, bank);
        __atomic_store_n(&words[WEFTI_CUDA_EP_HOST_STATUS_FAILED], 0, __ATOMIC_RELEASE);
    }
    return WEFT_OK;
}
