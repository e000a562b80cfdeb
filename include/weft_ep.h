/* weft_ep.h: expert parallelism: the dispatch and combine of a mixture-of-experts layer.
 *
 * R ranks (the PEs of a team), E experts, T tokens of this rank in this call, K choices a token, H elements a row, N
 * rows received by this rank. Each rank owns a contiguous range of experts. A step is
 *
 *     route_update   who sends what to whom, from the gate's choices; collective
 *     dispatch       each token's row goes to every rank that owns one of its chosen experts; collective
 *     (the experts work on the received rows)
 *     combine        the results come back and are added up, token by token; collective
 *
 * or, with weft_ep_route_choose, the update is part of the next dispatch. Both moves have halves, for overlap, and
 * backwards, for training. Whole programs: examples/moe_least.c and, with a K of 2, moe_minimal.c. This header
 * includes what it needs beside: weft_ep.h alone has weft_world_create, weft_world_pe, weft_world_pes, weft_team_world
 * and weft_last_error. Its calls, with what is set at least in structs that begin as WEFT_EP_..._INIT:
 *
 *     weft_world_create      (NULL, &world): all processes that weftrun, torchrun or mpirun has started; alone: one PE
 *     weft_ep_create         on weft_team_world(world); config: experts, tokens_max, topk_max, row_bytes_max
 *     weft_ep_route_create   plan: topk; with K over 1 mostly also layout, WEFT_EP_EXPERT_MAJOR: a row for each choice.
 *                            By default a row stands for all of its token's choices at a rank, which then adds the
 *                            results of these experts itself
 *     weft_ep_route_choose   choices: tokens, ids; then weft_ep_dispatch, rows and received.rows: data (aligned to 16
 *                            bytes), dtype, hidden (H elements are a multiple of 16 bytes); received: rows_capacity
 *     weft_ep_route_counts   N, and rows by expert, in device memory on GPUs, where weft_ep_route_query tells the host;
 *                            *counts.status, which tells of a bad id (dispatch returns WEFT_OK all the same). The
 *                            experts work; then weft_ep_combine of N rows, as received.rows, into T rows of other
 *                            memory, which applies choices.weights only with WEFT_EP_WEIGHTED
 *     and at the end weft_ep_route_destroy, weft_ep_destroy, weft_world_destroy
 *
 * Collective calls are made by every rank of the group in the same order, on one thread (or stream) at a time a group;
 * different groups are independent. dispatch and combine may be repeated on one route (a cached route) until its next
 * route_update or route_choose. Nothing is cleaned between steps and no call needs a barrier before or after it: a rank
 * may still work on its last step while others are a step ahead, and nobody writes into its buffers before it has
 * called again.
 *
 * Order and arithmetic, equal on every backend: received rows are ordered by (source rank, token), then by choice.
 * Combine adds in ascending choice inside a rank (fused multiply-add in float32, the partial sum rounded to the row's
 * type), then in ascending rank, unless the plan has another order, in float32, rounded once at the end: the same bits
 * in every run. A choice of -1 is no choice; any other id outside 0 .. E-1 drops that choice and sets the route's
 * status to WEFT_ERR_RANGE. A token without a choice combines to zeros. An expert chosen twice by a token counts twice.
 * Every NaN in a bf16 or float16 sum is 0x7fff.
 *
 * Domains (weft_ep_config.domain_of, domain_ranks): a domain's number is its lowest rank. In a group of several each
 * domain's partial sums are added in the order above and rounded to the rows' type; then the domains are added in
 * ascending number, with the biases before or after them, in float32, rounded once at the end. So the bits follow from
 * the map alone, wherever the ranks run. In a group of one domain there is no rounding between.
 *
 * Ranks that make different calls, or the same with another plan, route, type, width or flags, all get
 * WEFT_ERR_MISMATCH, which names a rank and both calls; the group stays usable (not of several domains on GPUs). On
 * the host a mismatch of a call that routes leaves no routing (WEFT_ERR_STATE) and has used up the choice; after one of
 * another call the routing stays. What was moved, and how the text is read: docs/failures.md.
 *
 * Deadline: as all blocking calls. After WEFT_ERR_TIMEOUT, which names the ranks that did not come, the group's calls
 * return that status until weft_ep_mask is called for a rank that it names, or the group is destroyed. On GPUs it names
 * nobody where blocks of this rank itself did not come within two deadlines; then weft_ep_mask of any rank will do. See
 * docs/expert-parallelism.md.
 *
 * On GPUs (weft_ep_config.on_device) the calls are the same, and these differ:
 *
 *   what is needed   a world with a device heap (weft/device.h), else WEFT_ERR_STATE; peer access among the GPUs of a
 *                    domain, else WEFT_ERR_UNREACHABLE; compute capability 9.0 and later whose blocks may have 220 KiB
 *                    of shared memory, which 12.0 has not; at most 256 ranks and 16384 experts. What GPUs do not
 *                    support is WEFT_ERR_UNSUPPORTED: the lists are in docs/expert-parallelism.md, "On GPUs", and, for
 *                    groups of several domains, in docs/ep-gpu-domains.md
 *   memory           data pointers are device addresses, and so is tokens_at
 *   order            calls are ordered by their stream and return before their outcome is known: an overflow is the
 *                    route's status, a mismatch or a timeout is returned by the group's next call or query. A call that
 *                    returns the mismatch of an earlier one is not made: make it again (docs/failures.md); a choice
 *                    stays chosen. After a mismatch of a call that routes weft_ep_host_counts.status is
 *                    WEFT_ERR_MISMATCH: there is no routing, and calls on it move nothing; after one of a combine the
 *                    routing stays
 *   before an end    the streams of its calls have ended before a group or route is destroyed or a rank is masked
 *   masks            it is not known which call failed, so a routing that was not queried before the timeout is none
 *                    (WEFT_ERR_STATE)
 *   multiprocessors  weft_ep_plan.sms; those of all groups of a GPU must fit on it. weft_ep_route_sms: a call's
 *   slots            where memory for slot_tokens_max tokens from each rank takes at most 256 MiB a rank, memory for
 *                    two more steps of slots is kept, so that a send of slots need not wait, and for combines 8/3 rows
 *                    for each of the first 16 tokens; in groups of more than 32 ranks for one more step, and with
 *                    WEFT_EP_MASK_ON_TIMEOUT only
 *   halves           recv is one launch, send one or, with WEFT_EP_ROWS_WITH_SEND, two; nothing of the call runs
 *                    between them. All ranks call the halves, or all the whole. recv may be given another stream than
 *                    its send: it comes after all that the send's stream has by then; calls that follow are for the
 *                    caller to order behind it. A recv is WEFT_ERR_STATE, and still to come, when others have claimed
 *                    all multiprocessors meanwhile; after the send of a dispatch with a new routing, but where rows of
 *                    slots left with it, already when some of the send's are claimed. Rows of slot layouts leave with
 *                    send in groups of up to 32 ranks, and recv waits for the other ranks' sends only; those of other
 *                    layouts leave so with WEFT_EP_ROWS_WITH_SEND. Else send tells the others what comes, and rows move
 *                    in recv, at the same time on all ranks: to have them move beside other work, make the whole call
 *                    on a stream of its own, with a plan's sms
 *   two pairs        (pairs_max) beside a pair that is outstanding on another stream a call, or a recv on another
 *                    stream than its send's, is WEFT_ERR_UNSUPPORTED, unless both routes have plan.sms, which the
 *                    group then claims twice, and at most half of the multiprocessors */
#ifndef WEFT_EP_H
#define WEFT_EP_H

#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"
#include "weft/stream_type.h"
#include "weft/team.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_ep weft_ep;
typedef struct weft_ep_route weft_ep_route;

/* A weft_stream is one of the backend; NULL on the host backend, where calls run inline and return when they are
 * complete. */

/* X(NAME, value, bytes an element, what it is) */
#define WEFT_EP_DTYPE_TABLE(X)                                                                                         \
    X(WEFT_EP_F32, 1, 4, "float32")                                                                                    \
    X(WEFT_EP_BF16, 2, 2, "bf16")                                                                                      \
    X(WEFT_EP_F16, 3, 2, "float16")                                                                                    \
    X(WEFT_EP_FP8_E4M3, 4, 1, "fp8 e4m3")                                                                              \
    X(WEFT_EP_BYTES, 5, 1, "bytes")

typedef enum weft_ep_dtype {
#define WEFT_EP_DTYPE_ENUM(name, value, bytes, text) name = value,
    WEFT_EP_DTYPE_TABLE(WEFT_EP_DTYPE_ENUM)
#undef WEFT_EP_DTYPE_ENUM
} weft_ep_dtype;

/* WEFT_EP_BYTES: rows that the library moves and does not read, as those of NVFP4 (two elements a byte): H is their
 * bytes, at most 2^24. Dispatches only. */

/* How the scales of fp8 rows are kept: one for each group of 128 elements of a row, the last group perhaps shorter. */
typedef enum weft_ep_scale_type {
    WEFT_EP_SCALE_NONE = 0, /* no scales; not with fp8 */
    WEFT_EP_SCALE_F32 = 1, /* a float32 a group */
    WEFT_EP_SCALE_UE8M0 = 2, /* the power of two 2^(b - 127) as one byte b a group, four to a word, low byte first */
    /* As UE8M0, of groups of 32 elements (MXFP8): as many words as there are groups of 128. */
    WEFT_EP_SCALE_UE8M0_32 = 3,
    /* Of WEFT_EP_BYTES rows: scale_bytes bytes a row, which the library does not read either. */
    WEFT_EP_SCALE_BYTES = 4,
    WEFT_EP_SCALE_F32_POW2 = 5 /* as F32, each the power of two that UE8M0 has */
} weft_ep_scale_type;

typedef enum weft_ep_layout {
    /* One row a (source, token), whatever the number of its experts here. */
    WEFT_EP_RANK_MAJOR = 0,
    /* One row a (source, token, choice), grouped by local expert, each group starting at a multiple of the
     * alignment. */
    WEFT_EP_EXPERT_MAJOR = 1,
    /* Padded, [R][Tmax]: row s * Tmax + i is the i-th token, in token order, that source s sends here;
     * rows_of_source[s] says how many there are, and the rest is left as it was. Otherwise as RANK_MAJOR. */
    WEFT_EP_SLOTS_SOURCE = 2,
    /* Padded, [L][R * Tmax]: local expert l's rows lie one after another from row l * R * Tmax on, ordered by
     * (source, token), rows_of_expert[l] of them, and the rest is left as it was: what a masked grouped GEMM reads.
     * One row a (source, token, expert), also when the token chose the expert more than once: those choices share the
     * row, whose received weight is the sum of theirs, in float32 in ascending choice. */
    WEFT_EP_SLOTS_EXPERT = 3
} weft_ep_layout;

typedef enum weft_ep_overflow {
    /* Too many rows at any rank: no rows move, and the route's status is WEFT_ERR_OVERFLOW on all ranks. */
    WEFT_EP_OVERFLOW_ERROR = 0,
    /* A rank to which more rows would come, padding included, receives the tokens of the longest prefix in (source,
     * token) order whose rows fit. The others are dropped there: counted in dropped_rows, of no part in combine, and of
     * gradient zero. Decided identically on all ranks; the route's status stays WEFT_OK. */
    WEFT_EP_OVERFLOW_DROP = 1,
    /* The same, but in WEFT_EP_EXPERT_MAJOR with rows_max choices are dropped, each by itself: those of a token in
     * front of which rows_max tokens or more come to that rank, in (source, token) order, and those whose rows, laid
     * out as if all came, would not lie below rows_max rounded down to a multiple of the alignment. What is left is
     * packed as any routing: an expert keeps its first rows, and counts are of these. A choice that is dropped counts
     * as one of id -1, and in dropped_rows of its rank. What a smaller rows_capacity does not hold is dropped as
     * WEFT_EP_OVERFLOW_DROP does.
     *
     * A call that routes is then two: ranks count first, about what weft_ep_route_update costs, once more if nothing
     * is dropped, and nothing else is slower. weft_ep_calls counts both, and a dispatch_send of a choice waits for
     * other ranks. On GPUs a rank that called something else meanwhile (WEFT_ERR_MISMATCH) is a call behind
     * (weft_ep_rejoin). Not with pairs_max 2 or bytes_max (WEFT_ERR_UNSUPPORTED). */
    WEFT_EP_OVERFLOW_DROP_ROWS = 2
} weft_ep_overflow;

/* The limits of a group. Equal on all ranks. */
typedef struct weft_ep_config {
    size_t size; /* sizeof(weft_ep_config) */
    int experts; /* E >= 1 */
    int tokens_max; /* most tokens a rank routes in one call; >= 0 */
    int topk_max; /* most choices a token, >= 1 */
    size_t row_bytes_max; /* widest row in bytes; a multiple of 16 */
    /* Most rows a rank receives, padding included. 0: the worst case of any plan: every choice of every token. The
     * padded slot layouts are not bound by it: see slot_tokens_max. */
    size_t rows_max;
    weft_ep_overflow overflow;
    /* NULL: E / R experts each, the first E mod R ranks one more. Else R counts, by rank, that add up to E; 0 is
     * allowed. Read during the call. */
    const int *experts_of_rank;
    /* The most that slot_tokens of a plan may be, at most tokens_max. Memory is reserved for this many tokens from each
     * rank. 0: tokens_max when rows_max is 0; else the group has no plans of slot layouts. */
    int slot_tokens_max;
    /* 0: memory and calls are the host's. 1: they are those of the PEs' GPUs; see "On GPUs" above. */
    int on_device;
    /* Of WEFT_EP_MASK_ON_TIMEOUT, WEFT_EP_STATISTICS, WEFT_EP_NO_LOW_LATENCY, WEFT_EP_NO_STAGING and
     * WEFT_EP_ROWS_WITH_SEND */
    unsigned flags;
    /* The pairs of halves that may be outstanding: 0 and 1: one; 2: two, for which the group takes its memory twice. */
    int pairs_max;
    /* Domains: ranks among which a step crosses once, and whose results for a token are added first; see "Domains"
     * above. NULL and 0: the link domains of the world, of the memory that the group uses. domain_of: R labels, 0 or
     * more, by rank; ranks of one label are a domain. Read during the call. domain_ranks: domains of so many
     * consecutive ranks each, a divisor of R; domain_of is NULL then. On GPUs several domains are whole link domains,
     * else WEFT_ERR_UNSUPPORTED. */
    const int *domain_of;
    int domain_ranks;
    /* On GPUs: NULL, or a group of the same world with which this one shares a claim of multiprocessors: it is the most
     * that a route of either asks for, and is given back with the last of them. Only for groups whose calls run one
     * after another, as on one stream, in the same order on all ranks: calls that run at once could wait for each other
     * for ever. Any number may share; routes of those that do are made on one thread at a time. Ranks may differ. Read
     * during the call; not used on the host. WEFT_ERR_ARGUMENT: destroyed, of another world, or on the host. */
    const weft_ep *claim_with;
    /* Most bytes of scales of a WEFT_EP_BYTES row, a multiple of 4, at most 4092. 0: what the widest fp8 row has, 4 *
     * ceil(row_bytes_max / 128); more memory is reserved only if it is more than that. */
    int scale_bytes_max;
    /* 0: the limits stay as they are given. Else tokens_max, topk_max, row_bytes_max, slot_tokens_max and
     * scale_bytes_max grow: a call of which any rank needs more grows them on all ranks, before anything moves, as long
     * as weft_ep_memory.symmetric_bytes stays at most bytes_max; topk_max and row_bytes_max may then begin as 0. Else,
     * and where a heap has no room, the call is WEFT_ERR_RANGE on all ranks, with the limits and the bytes in its text:
     * the group and a choice stay as they were, a route that was to have a new routing has none. Growing is collective
     * over the team and has the memory twice meanwhile; who is lost in it, or late, leaves the group dead
     * (WEFT_ERR_TIMEOUT), which no mask revives. plan.slot_tokens of 0 is the slot_tokens_max that there is when the
     * route is made; what weft_ep_route_counts told of a route lies elsewhere after a routing that needed more.
     *
     * A call's K, width and types are those of all ranks, grown limits or not: ranks that differ in them make different
     * calls, which is WEFT_ERR_MISMATCH, and no limit grows. What a rank alone may need more of is tokens.
     *
     * No limit grows, and the call is WEFT_ERR_RANGE likewise: while a rank is masked; while another pair of halves is
     * outstanding (pairs_max 2); on GPUs under capture and, since a graph has the memory, after a call of the group was
     * captured. A route in the caller's memory takes more when limits have grown: a call that routes is WEFT_ERR_RANGE
     * on all ranks, with the limits grown, until weft_ep_route_move, or weft_ep_route_attach, has given it
     * weft_ep_route_bytes bytes, or more at once; a routing that is there stays good.
     *
     * On GPUs each call of such a group but a recv, a send too, waits on the CPU until all ranks' CPUs have made it, at
     * most the world's deadline, and tells a mismatch itself; where a rank cannot launch its part, all learn so at
     * once: that one by its error, the others by WEFT_ERR_STATE, which names it, and all may make the call again. It
     * does not wait for its stream, but for the streams of the group's calls when limits grow, and when a route has its
     * first routing after that. Under capture it waits for nobody: all ranks capture a call, or none does. Groups of
     * several domains are WEFT_ERR_UNSUPPORTED. */
    size_t bytes_max;
    /* Symmetric memory that the group lends: so many windows of so many bytes each (weft_ep_window), 0 and 0: none.
     * They stay as they are while limits grow. */
    int windows;
    size_t window_bytes;
} weft_ep_config;

/* A call whose deadline passes masks the ranks that it waits for, as weft_ep_mask does, and goes on without them; it
 * returns WEFT_OK (or what else it finds out), and weft_ep_mask_query and weft_ep_mask_words tell who is masked. A rank
 * that is seen to be in the call, or still in an earlier one, may wait for one that is gone: it has up to four
 * deadlines. One that is between two calls, or does not answer over a network, has one: nobody can tell it from one
 * that is gone, and if it is not it comes back by weft_ep_rejoin. What a masked rank sent or was to send in that call
 * is left as it was: rows, and what is told of them; counts may have its rows. Ranks may mask different ones: a live
 * rank that finds itself masked by another masks that one, too. On the host a combine reads rows where they lie at
 * other ranks. One that comes to it so late that these have masked it, and gone on, masks them, too, and adds up
 * without them. What a masked rank that lives still writes of the call that it is late in changes nothing of later
 * ones: in such groups of the host each source has places of its own at every rank, tokens_max of them or
 * slot_tokens_max, whatever rows_max is (WEFT_EP_OVERFLOW_DROP_ROWS drops no choice for tokens in front of it), and
 * rows pass through the group's memory (WEFT_EP_NO_STAGING: calls that move some are WEFT_ERR_UNSUPPORTED).
 * Routings are agreed on through the owners of experts, whatever the size.
 *
 * On GPUs only dispatches into slots of few tokens, and combines from them, mask ranks so; in other calls a passed
 * deadline is WEFT_ERR_TIMEOUT. A rank is in a call if its call header and counts have come by the deadline. In groups
 * of up to 32 ranks there are no further deadlines, and weft_ep_counts.offset_of_source is s * Tmax, by expert too; in
 * larger ones a rank that is in the call may wait there for one that is gone, and so has two deadlines to answer in a
 * dispatch, three until its rows are there, and two until its results are in a combine. With pairs_max 2 a call knows
 * who was masked before it on its stream; of two that are outstanding each may wait its deadline for a rank.
 * WEFT_ERR_UNSUPPORTED: several domains, no memory for slots or low latency. */
#define WEFT_EP_MASK_ON_TIMEOUT 1u
/* Keep what weft_ep_stats_query tells. */
#define WEFT_EP_STATISTICS 2u
/* On GPUs: no memory for rows of slots that leave before their receivers' call (weft_ep_memory.low_latency_bytes is 0,
 * without WEFT_EP_ROWS_WITH_SEND): slots of few tokens go as all other rows. Of no effect on the host. */
#define WEFT_EP_NO_LOW_LATENCY 4u
/* No memory for rows from or to memory that is not symmetric, nor for partial sums (weft_ep_memory.staging_bytes, but
 * for what crosses between domains): a call that would need it is WEFT_ERR_UNSUPPORTED before it joins. What is left is
 * a dispatch, and a backward of combine, into memory of the heap, registered memory or a window, without
 * scale_group_stride; and a combine, and a backward of dispatch, by source, from such memory. On the host a backward of
 * combine with weights, or of WEFT_EP_SLOTS_EXPERT, needs it; on GPUs all of them but dispatches and combines of few
 * tokens in slots, which go through low-latency memory, need it to add up. Not in groups of several domains on GPUs. */
#define WEFT_EP_NO_STAGING 8u
/* On GPUs: in all layouts the rows of halves leave with send, into memory at their receivers that is for nothing else
 * (weft_ep_memory.low_latency_bytes; for each pair it has twice tokens_max rows of each rank). With them goes what
 * belongs to them: scales, made on the way or given; of a new routing, who receives what; new weights. recv copies rows
 * to their places, or adds them up. It waits for the other ranks' sends, not for their recvs, but in a call that makes
 * a routing and may drop rows (WEFT_EP_OVERFLOW_DROP): then each recv says how often tokens that are accepted chose its
 * experts, and the others wait for that in WEFT_EP_RANK_MAJOR and in slots by source of more than few tokens, by expert
 * only if some rows are dropped. In recv, as without the flag, move: rows of a routing of positions; rows of combines
 * with values; by expert, rows of combines with `weights` or `ids`. A call whose rows leave with send needs no staging
 * (WEFT_EP_NO_STAGING). WEFT_ERR_UNSUPPORTED: more than 32 ranks, several domains. Of no effect on the host. */
#define WEFT_EP_ROWS_WITH_SEND 16u

#define WEFT_EP_CONFIG_INIT WEFTI_SIZED(weft_ep_config)

/* The memory of a rank of a group. */
typedef struct weft_ep_memory {
    size_t size; /* sizeof(weft_ep_memory) */
    size_t symmetric_bytes; /* of the heap, on GPUs of the device heap; blocks are rounded up by the heap */
    size_t staging_bytes; /* of these, for rows from or to memory that is not symmetric, and for partial sums */
    size_t low_latency_bytes; /* of these, on GPUs, for rows that leave before their receivers' call; else 0 */
    size_t private_bytes; /* of host memory that is not symmetric, beside a few KiB */
    size_t window_bytes; /* of the symmetric, for windows */
} weft_ep_memory;

#define WEFT_EP_MEMORY_INIT WEFTI_SIZED(weft_ep_memory)

/* Tell what a group with this config on a team of `ranks` members takes; routes are apart (weft_ep_route_bytes). Local,
 * and needs no world; the variables of groups are read as at creation, and a config without a map of domains is taken
 * as one domain. Errors of weft_ep_create that do not depend on a world. */
WEFT_API weft_status weft_ep_bytes(const weft_ep_config *config, int ranks, weft_ep_memory *memory) WEFT_MUST_CHECK;

/* The map of domains of a group: domain_of [R], the number of each rank's domain, that is, its lowest rank, and *count,
 * how many domains there are; either may be NULL. Local, any thread. WEFT_ERR_ARGUMENT: NULL, or destroyed. */
WEFT_API weft_status weft_ep_domains(const weft_ep *ep, int *domain_of, int *count) WEFT_MUST_CHECK;

/* The limits of a group as they are now: *config becomes its config, with tables of NULL. Local; on the thread of the
 * group's calls where limits grow. WEFT_ERR_ARGUMENT: NULL, destroyed, or a size that no version of the struct had. */
WEFT_API weft_status weft_ep_limits(const weft_ep *ep, weft_ep_config *config) WEFT_MUST_CHECK;

/* The address of window `index`, 0 .. windows - 1, of config.window_bytes bytes aligned to 256: symmetric memory, on
 * GPUs of the device heap, that a dispatch writes in place and a combine reads where it is, as all memory of the heap.
 * The group's until it is destroyed. Local, any thread. WEFT_ERR_ARGUMENT: NULL, or destroyed; WEFT_ERR_RANGE: there is
 * no such window. */
WEFT_API weft_status weft_ep_window(const weft_ep *ep, int index, void **memory) WEFT_MUST_CHECK;

/* Make a group on a team. Collective over the team. The team is used by this group's creation and destruction only (and
 * while limits grow) and must outlive it. Errors, the same on all ranks: WEFT_ERR_ARGUMENT, WEFT_ERR_MISMATCH,
 * WEFT_ERR_MEMORY, WEFT_ERR_TIMEOUT; on GPUs also WEFT_ERR_UNSUPPORTED, WEFT_ERR_STATE, WEFT_ERR_UNREACHABLE. */
WEFT_API weft_status weft_ep_create(weft_team *team, const weft_ep_config *config, weft_ep **ep) WEFT_MUST_CHECK;

/* Free a group. Its routes must be destroyed first (WEFT_ERR_STATE). Collective over the team; local when the team, the
 * group or the world is dead or a rank is masked, and then its symmetric memory stays taken, since a late rank may
 * still write there. NULL is allowed. Whatever it returns but WEFT_ERR_STATE and WEFT_ERR_ARGUMENT, the group is gone.
 * A group or route that was destroyed is WEFT_ERR_ARGUMENT to all calls until the world ends, or 64 other handles of
 * the world have been destroyed since. */
WEFT_API weft_status weft_ep_destroy(weft_ep *ep) WEFT_MUST_CHECK;

/* Go on without a rank that is gone (alive 0), or with one that is back in step (alive 1). Local, between collective
 * calls; every survivor masks the same ranks. From the next call on a masked rank is neither awaited nor sent to: its
 * experts count as -1 in new routings, and on routings that exist it receives and adds nothing, and what it sent is
 * left as it was.
 *
 * A call that failed with WEFT_ERR_TIMEOUT counts like one that was completed, so survivors that fail in the same call
 * agree on the next; where one completed a call in which another failed, their next calls may differ, which is
 * WEFT_ERR_MISMATCH, and then they are in step again. A rank may be named only because it waited for one that is gone:
 * say of it that it is alive. Arrays given to the failed call may still be read and written by ranks that are late,
 * until the next call has succeeded. On the host, where ranks that are late in a dispatch or backward of combine are
 * kept (alive 1), so may the group's memory: rows of the next call may be wrong with WEFT_OK. Let the next be a
 * weft_ep_route_update then, or make the group with WEFT_EP_MASK_ON_TIMEOUT. On GPUs a masked rank no more writes into
 * them, nor into those of later calls, once weft_ep_mask has returned: it takes some milliseconds, and, where that
 * rank is inside a call which failed here, until it has left that, at most three deadlines; without a deadline until
 * then, or until the world is aborted (WEFT_ERR_ABORTED, and nobody is masked).
 *
 * A rank that was masked is unmasked only when it has made every collective call of the group that the others have
 * made, failed ones counted; else its calls are told from theirs and it times out.
 *
 * In a group of several domains on GPUs routings that there were are none any more (WEFT_ERR_STATE), and a rank that is
 * masked stays so (alive 1 of it: WEFT_ERR_UNSUPPORTED). While a domain has masked ranks and others, all calls go
 * directly, as those of few tokens in slots do; graphs with calls that do not are to be captured anew. See
 * docs/ep-gpu-domains.md.
 *
 * Errors: WEFT_ERR_ARGUMENT (NULL, oneself, alive neither 0 nor 1), WEFT_ERR_RANGE (no such rank), WEFT_ERR_STATE
 * (between the halves of a call, or the group is dead for another reason than a timeout). */
WEFT_API weft_status weft_ep_mask(weft_ep *ep, int rank, int alive) WEFT_MUST_CHECK;

/* Which ranks are masked now: masked [R], 1 or 0, and *count of them; either may be NULL. Any thread, also while
 * another is inside a call of the group: a poll for failures. */
WEFT_API weft_status weft_ep_mask_query(const weft_ep *ep, unsigned char *masked, int *count) WEFT_MUST_CHECK;

/* What the group's next collective call would return because of an earlier one that failed, without a text; WEFT_OK
 * while calls can be made: a mismatch, after which they can, is not told. On GPUs a call fails when its stream comes to
 * it, so that a poll tells what no call has yet. Waits for nothing. On GPUs any thread. */
WEFT_API weft_status weft_ep_failure(const weft_ep *ep) WEFT_MUST_CHECK;

/* An overflow (WEFT_ERR_OVERFLOW) of which this rank's GPU has told. */
typedef struct weft_ep_overflow_report {
    size_t size; /* sizeof(weft_ep_overflow_report) */
    uint64_t event; /* 0: there has been none; else another number than before the last one */
    int rank; /* the first rank to which too many rows would have come; -1: none */
    int64_t rows_limit; /* what that rank has room for: rows_max, or fewer, the rows_capacity of its buffer */
} weft_ep_overflow_report;

#define WEFT_EP_OVERFLOW_REPORT_INIT WEFTI_SIZED(weft_ep_overflow_report)

/* The last overflow of the group's calls, none of which returns it on GPUs: it is known there when the stream comes to
 * the call that makes the routing, or to a dispatch whose buffer is too small. With pairs_max 2 it is the last of one
 * of the two calls that take turns, not always the later one. Waits for nothing; any thread. WEFT_ERR_UNSUPPORTED: on
 * the host, and of several domains. */
WEFT_API weft_status weft_ep_overflow_query(const weft_ep *ep, weft_ep_overflow_report *report) WEFT_MUST_CHECK;

/* The masked ranks as bits: ceil(R / 64) words, bit r % 64 of word r / 64 set while rank r is masked. They live as long
 * as the group, and are stored with release. On GPUs they lie in host memory, too; with pairs_max 2 what calls have
 * masked by themselves is there from the group's next call on, and in weft_ep_mask_query at once. */
WEFT_API weft_status weft_ep_mask_words(const weft_ep *ep, const uint64_t **words) WEFT_MUST_CHECK;

/* The number of collective calls that this rank has made, failed ones counted; and set this rank's number to `calls`,
 * read on a rank in step. A rank that was masked and has missed calls comes back so: between two calls of the others it
 * joins and they say of it that it is alive (weft_ep_mask). Joining revives a group that is dead by timeout and unmasks
 * all ranks here; routes need new routings. Local. WEFT_ERR_ARGUMENT: fewer calls than this rank has made;
 * WEFT_ERR_STATE: between the halves of a call, or the group is dead otherwise. On GPUs when the streams of the group's
 * calls have ended; WEFT_ERR_UNSUPPORTED: several domains. With pairs_max 2 or bytes_max the number on GPUs has several
 * counts in it, and says nothing by itself; a rank may then have missed less than 2^30 calls, or with both less than
 * 2^20. */
WEFT_API weft_status weft_ep_calls(const weft_ep *ep, uint64_t *calls) WEFT_MUST_CHECK;
WEFT_API weft_status weft_ep_rejoin(weft_ep *ep, uint64_t calls) WEFT_MUST_CHECK;

/* What a group with WEFT_EP_STATISTICS has met since it was made or its statistics were cleared. Arrays of the
 * caller's, in host memory, any NULL. On GPUs a wait is the longest that a thread of the call waited for the rank at
 * once, for its call header or its rows, if it was long enough to look more than a hundred times; a small kernel after
 * each call adds them up. */
typedef struct weft_ep_stats {
    size_t size; /* sizeof(weft_ep_stats) */
    uint64_t dispatches; /* that were completed */
    uint64_t combines;
    uint64_t *rows_of_expert; /* [L] rows that dispatches received for each local expert, padding not counted */
    uint64_t *dispatch_wait_ns; /* [R] how long this rank, its own rows gone, waited for those of each source */
    uint64_t *combine_wait_ns; /* [R] how long, after its own were ready, for each rank's results to be ready */
} weft_ep_stats;

#define WEFT_EP_STATS_INIT WEFTI_SIZED(weft_ep_stats)

/* Fill `stats` and the arrays that it names; set all to 0. Between calls of the group, on GPUs when their streams have
 * ended. WEFT_ERR_STATE: it keeps none. */
WEFT_API weft_status weft_ep_stats_query(const weft_ep *ep, weft_ep_stats *stats) WEFT_MUST_CHECK;
WEFT_API weft_status weft_ep_stats_clear(weft_ep *ep) WEFT_MUST_CHECK;

/* In which order a token's partial sums, one from each rank that owns a choice of it, are added, from +0. */
typedef enum weft_ep_order {
    WEFT_EP_ORDER_RANK = 0, /* ascending rank, then biases */
    /* Biases, then ranks by the place of the last of the token's choices there that takes part, ascending. */
    WEFT_EP_ORDER_CHOICE = 1
} weft_ep_order;

/* How the steps of a route work. Equal on all ranks. */
typedef struct weft_ep_plan {
    size_t size; /* sizeof(weft_ep_plan) */
    int topk; /* K, 1 .. topk_max */
    weft_ep_layout layout;
    int alignment; /* expert-major: a group of rows starts at a multiple of this many rows; 0 or 1: packed */
    int slot_tokens; /* slot layouts: Tmax, the most tokens a rank sends in a step; 0: the group's slot_tokens_max */
    unsigned flags; /* WEFT_EP_ZERO_PADDING, WEFT_EP_DESTINATIONS, WEFT_EP_ALL_WEIGHTS or 0 */
    /* Multiprocessors that a call of this route may use. The group claims the most that a route of it asks for
     * until it is destroyed (as weft_device_sms_take; claim_with above); WEFT_ERR_STATE when fewer are left. 0: an
     * equal share of what nobody has claimed when the call is made or captured, among all groups on the GPU with such a
     * route, which together leave a quarter of the GPU to others: kernels of NCCL's, say, that wait for their peers
     * while this call's wait for theirs. Who asks for more leaves room for such kernels, or orders them by one stream.
     * WEFT_ERR_STATE from the call when nothing is left. Ranks may differ. Not used on the host. */
    int sms;
    weft_ep_order order; /* of all sums over ranks: combine, its values_out, the backward of dispatch */
} weft_ep_plan;

/* The number of multiprocessors, for sms of a plan, beyond which calls of such a route get no faster: as many as there
 * are blocks with work, at most three quarters of this rank's part of the GPU, and with two pairs half of those;
 * plan->sms is not read. A plan's sms may be less: the fewer, the more is left to the experts. On the host 0. Local,
 * any thread. */
WEFT_API weft_status weft_ep_sms_hint(const weft_ep *ep, const weft_ep_plan *plan, int *sms) WEFT_MUST_CHECK;

/* Expert-major: dispatch, and the backward of combine, set the data (and scales) of padding rows to zero. Else they are
 * left as they were. */
#define WEFT_EP_ZERO_PADDING 1u

/* Layouts by source: tokens go to ranks, not to experts: weft_ep_choices.destinations or positions in place of ids. K
 * is R (give 0 or R, at most the group's topk_max): choice k of a token stands for rank k, which receives it as a
 * choice of local expert 0, and arrays [T][K] have a place a rank. rows_of_expert are 0. */
#define WEFT_EP_DESTINATIONS 2u

/* Layouts by source: weights received (weft_ep_received.weights) are those of all choices of a token, also where the
 * choice is another rank's or nobody's, in place of 0. */
#define WEFT_EP_ALL_WEIGHTS 4u

#define WEFT_EP_PLAN_INIT WEFTI_SIZED(weft_ep_plan)

/* The bytes of memory a route of this plan needs. Local. */
WEFT_API weft_status weft_ep_route_bytes(const weft_ep *ep, const weft_ep_plan *plan, size_t *bytes) WEFT_MUST_CHECK;

/* Make a route object. Local. `memory`: weft_ep_route_bytes bytes aligned to 64 that outlive the route, or NULL: the
 * library's own. On GPUs nothing is written there before the route's first call, on its stream: until that comes to it
 * the memory may be in use by what was enqueued before, as memory of an allocator that reuses it by stream. A first
 * call that is captured writes there at once, too: give it memory that nothing uses. It and weft_ep_route_destroy may
 * be called while a stream captures, and are not captured. */
WEFT_API weft_status weft_ep_route_create(weft_ep *ep, const weft_ep_plan *plan, void *memory,
                                          weft_ep_route **route) WEFT_MUST_CHECK;
/* The route's memory, which the caller gave and which has `bytes` bytes from now on, at another address, aligned to
 * 64: its contents are copied, and the old memory is the caller's to free. Local; between calls on the route.
 * WEFT_ERR_ARGUMENT: fewer bytes than weft_ep_route_bytes tells, or the memory is the library's own; WEFT_ERR_STATE:
 * between the halves of a call. On GPUs when the stream of the route's calls has ended; what a captured graph has of
 * the route stays where it was. */
WEFT_API weft_status weft_ep_route_move(weft_ep_route *route, void *memory, size_t bytes) WEFT_MUST_CHECK;

/* What memory holds that a route is attached to: nothing that matters, or a routing of a route of the same group and an
 * equal plan, agreed on there, or copied there with all its bytes. */
typedef enum weft_ep_contents { WEFT_EP_CONTENTS_NONE = 0, WEFT_EP_CONTENTS_ROUTING = 1 } weft_ep_contents;

/* Let the route use `memory`, `bytes` bytes aligned to 64, from the next call on: one route serves routings that lie in
 * several places. Nothing is copied or freed; earlier calls have the memory that they were made with, and the memory
 * must outlive them; what the library gave the route stays until it is destroyed. NONE: the memory is cleared on
 * `stream`, and a call that routes comes next. ROUTING: calls use the routing that is there, for which the caller's
 * word is taken; `in` and `out` must hold as many rows as it has tokens; it is one of positions if, and only if, the
 * route's last was. Local, does not wait; between calls on the route. WEFT_ERR_ARGUMENT: fewer bytes than
 * weft_ep_route_bytes tells; WEFT_ERR_STATE: between the halves of a call; WEFT_ERR_UNSUPPORTED: the group is not on
 * GPUs.
 *
 * Where limits grow (bytes_max) NONE clears when the call comes that routes, on that one's stream, unless `stream`
 * captures; and a routing stays as the limits of its time laid it out: for ROUTING `bytes` is exactly what
 * weft_ep_route_bytes told after the call that made it, else WEFT_ERR_ARGUMENT. */
WEFT_API weft_status weft_ep_route_attach(weft_ep_route *route, void *memory, size_t bytes, weft_ep_contents contents,
                                          weft_stream *stream) WEFT_MUST_CHECK;

/* The number of the route's routing: one more with each route_update, or dispatch of a chosen routing, that is begun; 0
 * before the first. */
WEFT_API weft_status weft_ep_route_generation(const weft_ep_route *route, uint64_t *generation) WEFT_MUST_CHECK;

/* WEFT_OK if the route has that routing still, else WEFT_ERR_STATE: before a backward, which would otherwise use one
 * that came later. Local, any thread but one that routes. */
WEFT_API weft_status weft_ep_route_expect(const weft_ep_route *route, uint64_t generation) WEFT_MUST_CHECK;

/* Check the same in each call on the route's routing from now on, backwards and halves among them: another routing than
 * this one is WEFT_ERR_STATE, and nothing moves. 0: any will do again. After weft_ep_route_attach it is the routing in
 * that memory that is looked at: the last that a route of the group has made there, also where the route has been
 * elsewhere meanwhile; of memory that the group has made none in, or more than a thousand others since, the caller's
 * word is taken, and replays of graphs make none. Local; between calls on the route. WEFT_ERR_ARGUMENT: NULL, or
 * destroyed. */
WEFT_API weft_status weft_ep_route_require(weft_ep_route *route, uint64_t generation) WEFT_MUST_CHECK;

/* The multiprocessors of each call that is made, or captured, on the route from now on, in place of plan.sms; 0: as the
 * plan says. A recv goes by what its send was told, in a group of several domains by what is set when it is made.
 * Nothing is claimed or given back, so that groups which are alive at once always run: a call takes at most, where
 * plan.sms is not 0, what the group has claimed (the most that a route of it, or of one that shares the claim, has
 * asked for; with pairs_max 2 twice that is claimed, and a call takes half), else the share that plan.sms of 0 stands
 * for; and never more than there is work for. In a group of several domains it takes no fewer than the rings need.
 * Ranks may differ; the results are the same bits. Of no effect on the host. Local; not while a call of the group is
 * being made. WEFT_ERR_ARGUMENT: NULL, destroyed, or sms below 0. */
WEFT_API weft_status weft_ep_route_sms(weft_ep_route *route, int sms) WEFT_MUST_CHECK;

/* Local. NULL is allowed. */
WEFT_API weft_status weft_ep_route_destroy(weft_ep_route *route);

typedef enum weft_ep_id_type { WEFT_EP_INT32 = 0, WEFT_EP_INT64 = 1 } weft_ep_id_type;

/* The choices of the gate for this rank's tokens. Read during the call. */
typedef struct weft_ep_choices {
    size_t size; /* sizeof(weft_ep_choices) */
    int tokens; /* T, 0 .. tokens_max (slot layouts: Tmax); may differ from rank to rank and from call to call */
    weft_ep_id_type id_type;
    const void *ids; /* [T][K]: global expert ids, -1 for none */
    const float *weights; /* [T][K], or NULL: all 1 */
    /* NULL: T is `tokens`. Else [1], and T is read there when the call runs; `tokens` is then the most it
     * may be: outside 0 .. tokens it is clamped, and the route's status is WEFT_ERR_RANGE. */
    const int32_t *tokens_at;
    /* With WEFT_EP_DESTINATIONS one of these two, and ids NULL; else NULL. */
    const unsigned char *destinations; /* [T][R] not 0: the token goes to that rank */
    /* [T][R] -1: the token does not go to that rank; else its number among this rank's tokens that do, in place of the
     * order of tokens. The numbers of a rank are 0, 1, and so on, each once; if any is not, tokens keep their order,
     * and the route's status is WEFT_ERR_RANGE. On GPUs all ranks give positions, those without tokens too, or none
     * does, else WEFT_ERR_MISMATCH. */
    const int32_t *positions;
} weft_ep_choices;

#define WEFT_EP_CHOICES_INIT WEFTI_SIZED(weft_ep_choices)

/* Agree on a new routing. Collective over the group. On return the route knows its counts, and, per received row, its
 * source, experts and weights. Never returns WEFT_ERR_OVERFLOW or WEFT_ERR_RANGE: those are the route's status (see
 * weft_ep_route_query), so that a bad gate is seen by all ranks and stops none. */
WEFT_API weft_status weft_ep_route_update(weft_ep_route *route, const weft_ep_choices *choices,
                                          weft_stream *stream) WEFT_MUST_CHECK;

/* Choose a new routing: the next dispatch (or dispatch_send) of this route agrees on it on its way, as
 * weft_ep_route_update would have, so that a step is one call. All ranks choose, or none. Local, moves nothing; the
 * ids, weights and tokens_at must stay as they are until that dispatch completes. Choosing again replaces the choice,
 * and an update drops it. Errors: WEFT_ERR_ARGUMENT; WEFT_ERR_STATE between the halves of a dispatch of this route. */
WEFT_API weft_status weft_ep_route_choose(weft_ep_route *route, const weft_ep_choices *choices) WEFT_MUST_CHECK;

/* Give the route's routing other weights [T][K], NULL: all 1: the next dispatch (or dispatch_send) of this route brings
 * them, as if it had been made with them, without agreeing on it once more: for weights that are known later than the
 * choices. All ranks do, or none. Local, moves nothing; they must stay as they are until that dispatch completes.
 * Weighing again replaces them, an update, choice or attachment drops them. Errors: WEFT_ERR_ARGUMENT; WEFT_ERR_STATE
 * without a routing, after route_choose, or between the halves of a call. */
WEFT_API weft_status weft_ep_route_weigh(weft_ep_route *route, const float *weights) WEFT_MUST_CHECK;

/* Where the counts of a route lie: memory of the route, which the next route_update overwrites. After an overflow they
 * tell what would have come (at most INT32_MAX). */
typedef struct weft_ep_counts {
    const int32_t *rows; /* [1] N: the rows a receive buffer must hold, padding included: those to receive, or, in slot
                            layouts, all there are: R * Tmax or L * R * Tmax */
    const int32_t *rows_of_expert; /* [L] rows of each local expert, no padding; by source: choices of it */
    const int32_t *offset_of_expert; /* [L + 1] first row of each local expert; by source: all 0 */
    const int32_t *rows_of_source; /* [R] tokens received from each source */
    /* [R + 1] by source: first row of each source; by expert: how many (source, token) pairs come before its first. */
    const int32_t *offset_of_source;
    const int32_t *dropped; /* [1] this rank's own choices dropped for an id out of range */
    const int32_t *status; /* [1] a weft_status */
    const int32_t *rows_of_expert_source; /* [L][R] of rows_of_expert, those from each source */
    const int32_t *dropped_rows; /* [1] rows (rank-major: tokens) that were kept from this rank (weft_ep_overflow) */
} weft_ep_counts;
/* "By source" are the layouts RANK_MAJOR and SLOTS_SOURCE, "by expert" EXPERT_MAJOR and SLOTS_EXPERT. */

/* Local; valid after the first route_update, or dispatch of a chosen routing. */
WEFT_API weft_status weft_ep_route_counts(const weft_ep_route *route, weft_ep_counts *counts) WEFT_MUST_CHECK;

/* The same for the host, by value. */
typedef struct weft_ep_host_counts {
    int64_t rows; /* N */
    int64_t tokens; /* (source, token) pairs received: N in rank-major */
    int64_t dropped; /* as above */
    int local_experts; /* L */
    int first_expert; /* the global id of local expert 0 */
    /* WEFT_OK, WEFT_ERR_OVERFLOW (all ranks) or WEFT_ERR_RANGE (this rank had an id out of range); on GPUs
     * WEFT_ERR_MISMATCH, until the next, where the last routing was a call that differed between ranks. */
    weft_status status;
    int64_t dropped_rows; /* as above */
} weft_ep_host_counts;

/* Wait for the last routing and read its counts. Local. */
WEFT_API weft_status weft_ep_route_query(const weft_ep_route *route, weft_stream *stream,
                                         weft_ep_host_counts *counts) WEFT_MUST_CHECK;

/* Counts that the host is told while the call still runs: arrays of the caller's in host memory, on GPUs pinned or of
 * the world's heap, any but `generation` NULL, that outlive the route or are replaced. They have two slots: routing g
 * of the route, counted from 1 since weft_ep_route_counts_to, fills slot g % 2 as soon as its counts agree, before rows
 * move, also after an overflow (then with what would have come); then it stores g to generation[g % 2], with release.
 * Who loads g there with acquire sees the slot, which routing g + 2 overwrites. A call that ends in another status than
 * WEFT_OK or WEFT_ERR_OVERFLOW may have counted a routing or not.
 *
 * For what follows the call on its stream: on_stream 1 and `generation` NULL. Then arrays have one slot ([1], [L] and
 * [R]), which each routing fills before its call is complete, and on GPUs may be in any memory that the GPU reaches. */
typedef struct weft_ep_count_arrays {
    size_t size; /* sizeof(weft_ep_count_arrays) */
    uint64_t *generation; /* [2], aligned to 8 bytes */
    weft_ep_id_type type; /* of the elements of all others */
    void *rows; /* [2]: weft_ep_counts.rows */
    void *rows_of_expert; /* [2][L]: without padding */
    void *rows_of_expert_aligned; /* [2][L]: with padding, in WEFT_EP_SLOTS_EXPERT all slots; by source as without */
    void *rows_of_source; /* [2][R] */
    int on_stream;
    void *offset_of_expert; /* [2][L]: by expert the first row of each; by source 0 */
    int with_dropped; /* 1: `rows` with those that are kept from this rank (weft_ep_overflow): as many as would come */
} weft_ep_count_arrays;

#define WEFT_EP_COUNT_ARRAYS_INIT WEFTI_SIZED(weft_ep_count_arrays)

/* Have the route's counts told there from its next routing on; NULL: no longer. Sets both generations to 0. Local;
 * between calls on the route (WEFT_ERR_STATE between the halves of one), on GPUs when the stream of the last has ended;
 * with on_stream calls enqueued before fill the arrays that they were enqueued with, so that it may run.
 * WEFT_ERR_ARGUMENT: an array is missing, not aligned, or where the GPU does not reach it (with on_stream not looked
 * at). */
WEFT_API weft_status weft_ep_route_counts_to(weft_ep_route *route, const weft_ep_count_arrays *arrays) WEFT_MUST_CHECK;

/* Wait until routing `generation` is counted: from any thread, also while another is inside the call that routes.
 * Blocks at most the deadline, after which WEFT_ERR_TIMEOUT (the group stays usable). WEFT_ERR_RANGE: its slot has a
 * later one, or `generation` is 0. WEFT_ERR_STATE: the route tells its counts nowhere, or on_stream. */
WEFT_API weft_status weft_ep_route_counts_wait(const weft_ep_route *route, uint64_t generation) WEFT_MUST_CHECK;

/* Rows of a tensor: row i begins at data + i * stride_bytes. fp8 rows come with scales: W words of 4 bytes a row, that
 * is ceil(H / 128) floats, or words of four ue8m0, ceil(H / 512) of them, or ceil(H / 128) with groups of 32 (what is
 * left of the last word is zero where the library writes it); rows of WEFT_EP_BYTES may have some, W = scale_bytes / 4;
 * word w of row i is at scales + 4 * (i * scale_row_stride + w * scale_word_stride) bytes. */
typedef struct weft_ep_rows {
    size_t size; /* sizeof(weft_ep_rows) */
    void *data; /* aligned to 16 bytes; may be NULL when there are no rows */
    weft_ep_dtype dtype;
    int hidden; /* H; H times the element's bytes is a multiple of 16, at most row_bytes_max */
    size_t stride_bytes; /* 0: packed; else at least the row, a multiple of 16 */
    void *scales; /* aligned to 4 bytes; NULL with WEFT_EP_SCALE_NONE */
    weft_ep_scale_type scale_type; /* fp8: F32.., UE8M0 or UE8M0_32; WEFT_EP_BYTES: BYTES or NONE; else NONE */
    int scale_bytes; /* WEFT_EP_SCALE_BYTES: of a row, a multiple of 4, 4 .. scale_bytes_max; else not read */
    /* In words; both 0: row-major and packed, W and 1. Column-major: 1, and at least the number of rows. No two scales
     * may share a place. */
    size_t scale_row_stride;
    size_t scale_word_stride;
} weft_ep_rows;

#define WEFT_EP_ROWS_INIT WEFTI_SIZED(weft_ep_rows)

/* Where a dispatch puts what it receives: the caller's arrays, each its own, any but rows.data NULL when not wanted. */
typedef struct weft_ep_received {
    size_t size; /* sizeof(weft_ep_received) */
    weft_ep_rows rows; /* at least N rows of the type and width sent. In the symmetric heap: written in place by the
                          senders. Elsewhere: received in the group's buffer and copied before the call returns */
    /* Rows that rows.data holds. Always enough are R * tokens_max by source, R * tokens_max * K by expert, and with an
     * alignment A besides A - 1 for each local expert; in slot layouts N. Fewer than N: WEFT_ERR_RANGE, before anything
     * is written, on a routing that is known; an overflow on all ranks in a dispatch that makes the routing. */
    size_t rows_capacity;
    float *weights; /* by source [N][K], 0 where the choice is not of this rank; by expert [N] */
    int32_t *experts; /* local ids (below); by source [N][K], -1 where the choice is not of this rank; by expert [N] */
    int32_t *source_rank; /* [N] */
    int32_t *source_token; /* [N] */
    /* WEFT_EP_SLOTS_EXPERT with scales of any kind: those of local expert l begin l times so many words after the
     * first, and within an expert row i and word w lie as rows.scale_row_stride and scale_word_stride say: [L][W][M] is
     * M * W, 1 and M. No two scales share a place. On the host rows then pass through the group's memory. 0: rows of
     * all experts are numbered through. */
    size_t scale_group_stride;
    weft_ep_id_type expert_type; /* WEFT_EP_INT64: `experts` is the address of int64_t */
    int experts_are_global; /* 1: `experts` are ids as in weft_ep_choices. Not with WEFT_EP_DESTINATIONS */
} weft_ep_received;
/* Rows of padding in expert-major: weight 0, expert -1, source rank and token -1; their row data is left as it was, or
 * zeroed (WEFT_EP_ZERO_PADDING). Of the rows of a slot layout that nobody fills, nothing is written in any array. */

#ifdef __cplusplus
extern "C++" {
static inline weft_ep_received wefti_ep_received_init()
{
    weft_ep_received received = WEFTI_SIZED(weft_ep_received);
    received.rows.size = sizeof received.rows;
    return received;
}
}
#define WEFT_EP_RECEIVED_INIT wefti_ep_received_init()
#else
#define WEFT_EP_RECEIVED_INIT                                                                                          \
    {                                                                                                                  \
        .size = sizeof(weft_ep_received), .rows = {.size = sizeof(weft_ep_rows) }                                      \
    }
#endif

/* Send the rows of this rank's tokens, `in` (T rows), and receive. Collective over the group. Completes when all rows
 * of this rank have arrived and `in` can be reused. `out->rows` is of the type and width of `in`; or fp8 with a scale
 * type, and then wider rows are quantised on the way, by their sender, as protocol/fp8.h says. Rows of fp8 and of
 * WEFT_EP_BYTES and their scales move unchanged. On a route whose status is WEFT_ERR_OVERFLOW nothing moves and the
 * call returns WEFT_ERR_OVERFLOW, on all ranks.
 *
 * After weft_ep_route_choose the call agrees on the routing first. rows_capacity then is a limit like rows_max: the
 * least of both decides whether a rank overflows, or from where on rows are dropped (slot layouts: a capacity below N
 * is WEFT_ERR_RANGE on this rank, before it joins). After an overflow the call returns WEFT_ERR_OVERFLOW on all ranks,
 * and the counts tell what would have come. */
WEFT_API weft_status weft_ep_dispatch(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_received *out,
                                      weft_stream *stream) WEFT_MUST_CHECK;

/* The halves of a dispatch, for work in between. send starts and waits for no other rank; recv does the rest. The
 * arrays of `in` and `out` (and of the choice) belong to the call until recv returns; the structs do not. Collective;
 * ranks may call halves or the whole. Errors of dispatch; a send that fails needs no recv, and after a failure that
 * leaves the group dead none is to come.
 *
 * A pair is outstanding from its send to its recv. A group has one at most: another collective call of it is then
 * WEFT_ERR_STATE and changes nothing, as is a recv without its send. With pairs_max of 2 one more call, whole or a
 * pair, may come beside it, in the same order on all ranks: send A, send B, recv A, recv B, or recv B before recv A. Of
 * two pairs of one kind on one route recv ends the older. WEFT_ERR_STATE is then
 *   - a call, if the pair that was sent before the last call is outstanding;
 *   - on the route of an outstanding pair a choice, and a call that makes the routing or brings weights for it;
 *   - any call on that route, if the outstanding pair itself does so. */
WEFT_API weft_status weft_ep_dispatch_send(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_received *out,
                                           weft_stream *stream) WEFT_MUST_CHECK;
WEFT_API weft_status weft_ep_dispatch_recv(weft_ep_route *route, weft_stream *stream) WEFT_MUST_CHECK;

/* Apply the route's weights while adding. Expert-major: each choice's row by its weight. Rank-major, where a row stands
 * for all of its token's choices on this rank: by the sum of their weights, in ascending choice, the product rounded to
 * the row's type. */
#define WEFT_EP_WEIGHTED 1u

/* Return the experts' results `in` (N rows, in the order received; padding is not read) to their sources and add them
 * up into `out` (T rows), which is other memory. `out` is of the width of `in` and of any type that can be added up:
 * the one rounding is to that, and row_bytes_max does not bound it; ranks may differ in it. Collective over the group.
 * Completes when `out` is written and no rank reads `in` any more. */
WEFT_API weft_status weft_ep_combine(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                     unsigned flags, weft_stream *stream) WEFT_MUST_CHECK;

/* What a combine may do beside. */
typedef struct weft_ep_combine_options {
    size_t size; /* sizeof(weft_ep_combine_options) */
    unsigned flags; /* WEFT_EP_WEIGHTED or 0 */
    /* With WEFT_EP_WEIGHTED: weights [T][K] in place of the route's, for this call. NULL: the route's. By expert they
     * go to the owners of experts with the call's header. Given, or NULL, equally on all ranks, also on one with T of
     * 0. */
    const float *weights;
    /* [T][K], or NULL. A choice that is -1 here takes no part in this call, though the routing has it; any other value
     * says that the choice is as it was. A rank of which no choice of a token takes part adds nothing to it. Given
     * equally on all ranks, and with WEFT_EP_WEIGHTED only together with `weights`. */
    const void *ids;
    weft_ep_id_type id_type; /* of ids */
    /* None, one (the first) or two tensors [T][H] of the type and width of `in`, which are added in float32, before the
     * one rounding at the end, in this order, after or before the ranks' sums as the plan's `order` has it. Ranks may
     * differ. */
    const weft_ep_rows *bias[2];
    /* Both or neither, equally on all ranks, also on one with N or T of 0: values_in of the shape of
     * weft_ep_received.weights, by source [N][K], by expert [N], and values_out [T][K]: of each place the sum, in
     * float32 from +0 in the order of the ranks (and domains), of the token's values on all ranks that hold it; by
     * expert that is the value of the choice's row, 0 where there is none. Choices turned off by `ids` count as they
     * did. */
    const float *values_in;
    float *values_out;
} weft_ep_combine_options;

#define WEFT_EP_COMBINE_OPTIONS_INIT WEFTI_SIZED(weft_ep_combine_options)

/* weft_ep_combine with options, which are read during the call; their arrays belong to the call as `in` and `out` do.
 * */
WEFT_API weft_status weft_ep_combine_with(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                          const weft_ep_combine_options *options, weft_stream *stream) WEFT_MUST_CHECK;

/* The halves of a combine, as those of a dispatch. Both sends have the same recv. */
WEFT_API weft_status weft_ep_combine_send(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                          unsigned flags, weft_stream *stream) WEFT_MUST_CHECK;
WEFT_API weft_status weft_ep_combine_send_with(weft_ep_route *route, const weft_ep_rows *in, const weft_ep_rows *out,
                                               const weft_ep_combine_options *options,
                                               weft_stream *stream) WEFT_MUST_CHECK;
WEFT_API weft_status weft_ep_combine_recv(weft_ep_route *route, weft_stream *stream) WEFT_MUST_CHECK;

/* The backward of dispatch: gradients of received rows become gradients of tokens. Collective over the group; on the
 * route's routing, without a dispatch if you like.
 *
 * grad_received [N][H], in the order received (padding is not read) -> grad_in [T][H]: the sum over the rows that
 * dispatch made of the token: an unweighted combine, bit for bit, but for choices of WEFT_EP_SLOTS_EXPERT that share a
 * row, which is added once, as it was made once.
 *
 * grad_weights_received, of the shape of weft_ep_received.weights, by source [N][K], by expert [N] -> grad_weights
 * [T][K]: to each choice the value of its place or row, unchanged; 0 where the choice is not received by any rank. Both
 * NULL or neither, equally on all ranks, also on one with N or T of 0. No fp8, no WEFT_EP_BYTES. */
WEFT_API weft_status weft_ep_dispatch_bwd(weft_ep_route *route, const weft_ep_rows *grad_received,
                                          const float *grad_weights_received, const weft_ep_rows *grad_in,
                                          float *grad_weights, weft_stream *stream) WEFT_MUST_CHECK;

/* The backward of combine: gradients of the combined rows become gradients of what was combined. Collective over the
 * group.
 *
 * grad_out [T][H] -> grad_rows [N][H], in the order received. Unweighted: the row of grad_out of the row's token,
 * unchanged (a row that c > 1 choices of WEFT_EP_SLOTS_EXPERT share was added c times: round(c * grad_out)). With
 * WEFT_EP_WEIGHTED round(w * grad_out), where w is the choice's weight, or, where a row stands for several choices, the
 * sum of theirs in float32 in ascending choice; the product is rounded to float32, then to the rows' type. Rows of
 * padding are zeroed if the plan says WEFT_EP_ZERO_PADDING, else left as they were, as are slots that nobody fills.
 *
 * grad_weights [T][K], with WEFT_EP_WEIGHTED only, else NULL, equally on all ranks: to each choice the dot product
 * <row, grad_out> in the order of protocol/dot.h, where `rows` [N][H] is what combine was given (NULL if and only if
 * grad_weights is), and the row is the choice's, by source the one of its token on that rank; 0 where the choice is not
 * received by any rank. No fp8, no WEFT_EP_BYTES. `rows` and grad_rows may be the same memory only if grad_weights is
 * NULL. */
WEFT_API weft_status weft_ep_combine_bwd(weft_ep_route *route, const weft_ep_rows *grad_out, const weft_ep_rows *rows,
                                         const weft_ep_rows *grad_rows, float *grad_weights, unsigned flags,
                                         weft_stream *stream) WEFT_MUST_CHECK;

/* Turn into padding the rows of arrays behind those received, after a dispatch, or a backward of combine, into arrays
 * of more rows than come: for programs that do not know N, as captured graphs, and use all rows of their arrays. Rows N
 * .. D - 1 of `out` get zeroes as data and scales, weight 0, expert -1, source rank and token -1, each where out has
 * the array (data and scales NULL: the rows are left); N is 0 after an overflow. D is the arrays' rows_capacity, or,
 * with `mark`, what *mark says if that is less: how many rows may hold something else, at most INT32_MAX. *mark is
 * where the group's arrays may lie, on GPUs one that the GPU reaches; it becomes N. So arrays that the program keeps
 * from call to call, each with a mark, which begins as 0 if they hold padding and else as their rows, have written what
 * changes. Who writes into such rows sets the mark anew.
 *
 * Local, on the route's routing; on GPUs enqueued after the call, on the same stream, or captured with it. Padding of
 * experts' groups is the plan's (WEFT_EP_ZERO_PADDING). WEFT_ERR_STATE: no routing, or between the halves of a call of
 * the route; WEFT_ERR_UNSUPPORTED: a slot layout, whose unused rows lie between others. */
WEFT_API weft_status weft_ep_route_pad(weft_ep_route *route, const weft_ep_received *out, uint64_t *mark,
                                       weft_stream *stream) WEFT_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
