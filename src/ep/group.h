/* ep/group.h: what every weft_ep has, whatever its backend: limits, members, owners. */
#ifndef WEFTI_EP_GROUP_H
#define WEFTI_EP_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "common/attachment.h"
#include "common/timeline.h"
#include "ep/domains.h"
#include "ep/owners.h"
#include "ep/tuning.h"
#include "weft/protocol/fp8.h"
#include "weft/protocol/mem.h"
#include "weft_ep.h"

#define WEFTI_EP_EXPERTS_MAX (1 << 24)
#define WEFTI_EP_TOPK_MAX 65535
#define WEFTI_EP_ROW_BYTES_MAX (1u << 30)
#define WEFTI_EP_SCALE_BYTES_MAX 4092
#define WEFTI_EP_MEMORY_ALIGNMENT 64
#define WEFTI_EP_BANKS_MAX 2

typedef struct wefti_ep_backend wefti_ep_backend;

/* The pair of halves whose second is to come. */
typedef enum wefti_ep_half { WEFTI_EP_HALF_NONE = 0, WEFTI_EP_HALF_DISPATCH, WEFTI_EP_HALF_COMBINE } wefti_ep_half;

struct weft_ep {
    wefti_attachment attachment;
    const wefti_ep_backend *backend;
    const struct wefti_ep_calls *calls;
    struct wefti_ep_host *host; /* of groups in host memory: host_of[bank] */
    struct wefti_ep_host *host_of[WEFTI_EP_BANKS_MAX];
    struct wefti_ep_device *device;
    struct wefti_ep_between *between; /* on GPUs, of a group of several domains, in place of `device` */
    weft_world *world;
    weft_team *team;
    int rank;
    int ranks;
    weft_ep_config config; /* without the tables; slot_tokens_max and scale_bytes_max are what they stand for */
    int64_t rows_limit; /* more rows than this overflow */
    wefti_ep_owners owners;
    wefti_ep_domains domains;
    wefti_ep_settings settings;
    unsigned char *late; /* [R] not 0: named by the last wait that ended without it */
    unsigned char *masked; /* [R] not 0: masked */
    uint64_t *mask_words; /* `masked` as bits, for other threads */
    /* Where kernels mask ranks by themselves (WEFT_EP_MASK_ON_TIMEOUT, GPUs): of each bank the words, as mask_words, in
     * which its kernels tell whom. Else NULL. wefti_ep_take_masks takes them over into the fields above. */
    uint64_t *mask_told[WEFTI_EP_BANKS_MAX];
    unsigned char *windows; /* NULL, or symmetric memory of config.windows times wefti_ep_window_pitch bytes */
    struct wefti_ep_made *made; /* NULL, or which routings lie where (route.c) */
    uint64_t *stats; /* NULL, or L rows of experts, R waits of dispatches, R of combines, and both their numbers */
    weft_ep_route *routes; /* those that are not destroyed */
    /* A bank is all memory that a call works in: flags, counts, staged rows. With pairs_max of 2 a group has two, which
     * calls take in turn, so that two pairs of halves may be outstanding; else one. */
    int bank; /* of the call that runs, or ran last */
    uint64_t *started; /* [1] calls begun: number n is on bank n % banks. Backends without banks leave it 0 */
    /* Of each bank the pair whose recv is to come, its route, and the stream of its send: */
    wefti_ep_half half[WEFTI_EP_BANKS_MAX];
    const weft_ep_route *half_route[WEFTI_EP_BANKS_MAX];
    const weft_stream *half_stream[WEFTI_EP_BANKS_MAX];
    int half_routes[WEFTI_EP_BANKS_MAX]; /* it makes the routing of its route, or brings it weights */
    int is_parted; /* limits may have grown on some ranks and on others not */
    weft_status dead; /* why no call can work any more, or WEFT_OK */
    uint32_t busy; /* a thread is in a call; debug builds check it */
    wefti_span call_span; /* of the call that runs, and of its part, for the timeline */
    wefti_span stage_span;
};

/* Neither NULL nor destroyed: the world keeps the records of those that were destroyed last for this test. */
static inline int wefti_ep_is_alive(const weft_ep *ep)
{
    return ep != NULL && ep->world != NULL;
}

/* weft_ep_create and weft_ep_bytes, with what backends may call (ep/backend.h). */
weft_status wefti_ep_create(weft_team *team, const weft_ep_config *config, const struct wefti_ep_calls *calls,
                            weft_ep **out);
weft_status wefti_ep_bytes(const weft_ep_config *config, int ranks, const struct wefti_ep_calls *calls,
                           weft_ep_memory *memory);

/* WEFT_OK, or what a dead group's calls return. */
weft_status wefti_ep_check_alive(const weft_ep *ep, const char *call);

/* The same, whether the next bank is free, and whether the backend takes the stream. */
weft_status wefti_ep_check_call(const weft_ep *ep, const weft_stream *stream, const char *call);

/* Whether the backend takes the stream. */
weft_status wefti_ep_check_stream(const weft_ep *ep, const weft_stream *stream, const char *call);

/* Begin a collective call on a group that is alive, on the next bank. In debug builds WEFT_ERR_STATE when another
 * thread is inside. */
weft_status wefti_ep_enter(weft_ep *ep, const char *call);

/* The same of a recv, on the bank of its send. */
weft_status wefti_ep_enter_half(weft_ep *ep, int bank, const char *call);

/* Another part of the call begins, for the timeline. */
static inline void wefti_ep_stage(weft_ep *ep, const char *name)
{
    wefti_span_next(&ep->stage_span, name);
}

/* End it. A status that leaves ranks apart kills the group; returns `status`. */
weft_status wefti_ep_leave(weft_ep *ep, weft_status status);

static inline int wefti_ep_banks(const weft_ep *ep)
{
    return ep->config.pairs_max == 2 ? 2 : 1;
}

/* The bank of the next call. */
static inline int wefti_ep_next_bank(const weft_ep *ep)
{
    return (int)((*ep->started + 1) % (unsigned)wefti_ep_banks(ep));
}

/* A send returned `status`: if WEFT_OK, its recv is to come. */
static inline void wefti_ep_open_half(weft_ep *ep, wefti_ep_half half, const weft_ep_route *route,
                                      const weft_stream *stream, weft_status status)
{
    ep->half[ep->bank] = status == WEFT_OK ? half : WEFTI_EP_HALF_NONE;
    ep->half_route[ep->bank] = status == WEFT_OK ? route : NULL;
    ep->half_stream[ep->bank] = stream;
    ep->half_routes[ep->bank] = 0;
}

/* Close the open halves of all pairs. */
static inline void wefti_ep_close_halves(weft_ep *ep)
{
    for (int i = 0; i < WEFTI_EP_BANKS_MAX; i++) {
        ep->half[i] = WEFTI_EP_HALF_NONE;
        ep->half_route[i] = NULL;
    }
}

/* A recv returned `status`: it is still to come if it could not be begun. */
static inline void wefti_ep_end_half(weft_ep *ep, weft_status status)
{
    if (status != WEFT_ERR_STATE && status != WEFT_ERR_UNSUPPORTED) {
        ep->half[ep->bank] = WEFTI_EP_HALF_NONE;
        ep->half_route[ep->bank] = NULL;
    }
}

/* Whether a pair is outstanding; whether one of the route is. */
static inline int wefti_ep_has_halves(const weft_ep *ep)
{
    return ep->half[0] != WEFTI_EP_HALF_NONE || ep->half[1] != WEFTI_EP_HALF_NONE;
}

static inline int wefti_ep_has_half_of(const weft_ep *ep, const weft_ep_route *route)
{
    return ep->half_route[0] == route || ep->half_route[1] == route;
}

/* Whether one is after which the routing is another. */
static inline int wefti_ep_has_routing_half_of(const weft_ep *ep, const weft_ep_route *route)
{
    return (ep->half_route[0] == route && ep->half_routes[0]) || (ep->half_route[1] == route && ep->half_routes[1]);
}

/* Only the thread inside a call, or between calls. */
static inline void wefti_ep_set_masked(const weft_ep *ep, int rank, int masked)
{
    uint64_t bit = UINT64_C(1) << (rank % 64);
    uint64_t word = ep->mask_words[rank / 64];
    ep->masked[rank] = masked != 0;
    wefti_st64(&ep->mask_words[rank / 64], masked ? word | bit : word & ~bit, WEFTI_RELEASE);
    for (int bank = 0; bank < WEFTI_EP_BANKS_MAX && ep->mask_told[bank] != NULL; bank++) {
        wefti_st64(&ep->mask_told[bank][rank / 64], ep->mask_words[rank / 64], WEFTI_RELEASE);
    }
}

/* Which of the ranks from 64 * word on kernels have masked, on any bank, as bits. Any thread. */
static inline uint64_t wefti_ep_told_masks(const weft_ep *ep, int word)
{
    uint64_t told = 0;
    for (int bank = 0; bank < WEFTI_EP_BANKS_MAX && ep->mask_told[bank] != NULL; bank++) {
        told |= wefti_ld64(&ep->mask_told[bank][word], WEFTI_ACQUIRE);
    }
    return told;
}

/* The words that weft_ep_mask_words gives a program. Of a group with one bank those of its kernels, which have what the
 * host masks, too (wefti_ep_set_masked); of two banks neither has what kernels of the other mask. */
static inline const uint64_t *wefti_ep_mask_words(const weft_ep *ep)
{
    return ep->mask_told[0] != NULL && ep->mask_told[1] == NULL ? ep->mask_told[0] : ep->mask_words;
}

/* Whom kernels have masked is masked. As wefti_ep_set_masked. */
static inline void wefti_ep_take_masks(const weft_ep *ep)
{
    for (int word = 0; ep->mask_told[0] != NULL && word < (ep->ranks + 63) / 64; word++) {
        const uint64_t told = wefti_ep_told_masks(ep, word) & ~ep->mask_words[word];
        for (int rank = 64 * word; told != 0 && rank < ep->ranks && rank < 64 * (word + 1); rank++) {
            ep->masked[rank] |= (told >> rank % 64 & 1) != 0;
        }
        wefti_st64(&ep->mask_words[word], ep->mask_words[word] | told, WEFTI_RELEASE);
    }
}

static inline int wefti_ep_local_experts(const weft_ep *ep)
{
    return wefti_ep_owners_count(&ep->owners, ep->rank);
}

/* Where in stats things lie. */
static inline uint64_t *wefti_ep_stats_waits(const weft_ep *ep, int of_combines)
{
    return ep->stats == NULL ? NULL : ep->stats + wefti_ep_local_experts(ep) + (of_combines ? ep->ranks : 0);
}

static inline uint64_t *wefti_ep_stats_calls(const weft_ep *ep, int of_combines)
{
    return ep->stats + wefti_ep_local_experts(ep) + 2 * ep->ranks + of_combines;
}

static inline size_t wefti_ep_stats_words(const weft_ep *ep)
{
    return (size_t)wefti_ep_local_experts(ep) + 2 * (size_t)ep->ranks + 2;
}

/* From one window to the next. */
#define WEFTI_EP_WINDOW_ALIGNMENT ((size_t)256)
static inline size_t wefti_ep_window_pitch(const weft_ep_config *config)
{
    return (config->window_bytes + WEFTI_EP_WINDOW_ALIGNMENT - 1) / WEFTI_EP_WINDOW_ALIGNMENT *
           WEFTI_EP_WINDOW_ALIGNMENT;
}

/* Whether there is memory for rows on their way. */
static inline int wefti_ep_stages(const weft_ep *ep)
{
    return (ep->config.flags & WEFT_EP_NO_STAGING) == 0;
}

/* Whether limits grow; and what calls and plans may ask for. */
static inline int wefti_ep_grows(const weft_ep *ep)
{
    return ep->config.bytes_max != 0;
}

static inline int wefti_ep_tokens_most(const weft_ep *ep)
{
    return wefti_ep_grows(ep) ? INT32_MAX / 2 : ep->config.tokens_max;
}

static inline int wefti_ep_topk_most(const weft_ep *ep)
{
    return wefti_ep_grows(ep) ? WEFTI_EP_TOPK_MAX : ep->config.topk_max;
}

static inline size_t wefti_ep_row_bytes_most(const weft_ep *ep)
{
    return wefti_ep_grows(ep) ? WEFTI_EP_ROW_BYTES_MAX : ep->config.row_bytes_max;
}

static inline int wefti_ep_scale_bytes_most(const weft_ep *ep)
{
    return wefti_ep_grows(ep) ? WEFTI_EP_SCALE_BYTES_MAX : ep->config.scale_bytes_max;
}

/* What scale_bytes_max stands for: at least what fp8 rows have, where opaque ones may have as much. */
static inline int wefti_ep_scale_bytes_max(const weft_ep_config *config)
{
    const size_t of_fp8 = 4 * wefti_fp8_groups(config->row_bytes_max);
    const int least = of_fp8 < WEFTI_EP_SCALE_BYTES_MAX ? (int)of_fp8 : WEFTI_EP_SCALE_BYTES_MAX;
    return config->scale_bytes_max > least ? config->scale_bytes_max : least;
}

/* The most words of scales that a row has. */
static inline size_t wefti_ep_scale_words_max(const weft_ep *ep)
{
    size_t of_fp8 = wefti_fp8_groups(ep->config.row_bytes_max);
    size_t of_bytes = (size_t)ep->config.scale_bytes_max / 4;
    return of_fp8 > of_bytes ? of_fp8 : of_bytes;
}

/* Whether the group is dead since ranks did not come, which may be masked: at the deadline or, where there is none,
 * since one is gone. */
static inline int wefti_ep_missed_ranks(const weft_ep *ep)
{
    return !ep->is_parted && (ep->dead == WEFT_ERR_TIMEOUT || ep->dead == WEFT_ERR_PEER);
}

#endif
