/* cuda/ep/throughput/recv.cuh: what has come, unit by unit of all sources: records and scales to the route tables and
 * the caller's arrays as soon as they are here; then rows, which may only have to be waited for, or go to the caller's
 * when they are staged in the area, as those are that left with send (eager.cuh). */
#ifndef WEFTI_CUDA_EP_THROUGHPUT_RECV_CUH
#define WEFTI_CUDA_EP_THROUGHPUT_RECV_CUH

#include "cuda/ep/throughput/replicate.cuh"
#include "cuda/ep/throughput/send.cuh"

#define EP_WORDS_AT_ONCE 4

/* The records of a fresh unit, which lie at `from`: into the route tables and the caller's arrays. A warp. */
EP_DEVICE void ep_receive_records_from(const ep_dispatch &args, int source, wefti_u32 place, wefti_u32 count,
                                       const wefti_u32 *from)
{
    const int words = wefti_cuda_ep_record_words(args.topk, 0);
    const wefti_u64 first = (wefti_u64)place * (wefti_u64)words;
    const int end = (int)count * words;
    for (int base = ep_lane(); base < end; base += 32 * EP_WORDS_AT_ONCE) {
        wefti_u32 values[EP_WORDS_AT_ONCE];
#pragma unroll
        for (int j = 0; j < EP_WORDS_AT_ONCE; j++) {
            values[j] = base + 32 * j < end ? from[base + 32 * j] : 0;
        }
#pragma unroll
        for (int j = 0; j < EP_WORDS_AT_ONCE; j++) {
            int i = base + 32 * j;
            if (i < end) {
                args.tables.records[first + (wefti_u64)i] = values[j];
                ep_spread(args, (wefti_u64)place + (wefti_u64)(i / words), i % words, values[j], source);
            }
        }
    }
}

EP_DEVICE void ep_receive_records(const ep_dispatch &args, int source, wefti_u32 place, wefti_u32 count)
{
    const wefti_u64 first = (wefti_u64)place * (wefti_u64)wefti_cuda_ep_record_words(args.topk, 0);
    ep_receive_records_from(args, source, place, count,
                            (const wefti_u32 *)(args.group.area[args.group.rank] + args.group.at.records) + first);
}

/* New weights of a unit, in records at `from`: into the records of the route, and what those say to the caller's
 * arrays. A warp. */
template <class LAYOUT>
EP_DEVICE void ep_receive_new_weights_from(const ep_dispatch *args, int source, wefti_u32 place, wefti_u32 count,
                                           const wefti_u32 *from)
{
    const int topk = args->topk;
    const int words = LAYOUT::record_words(topk);
    wefti_u32 *records = args->tables.records + (wefti_u64)place * (wefti_u64)words;
    for (int i = ep_lane(); i < (int)count * topk; i += 32) {
        const int at = i / topk * words + 1 + topk + i % topk;
        records[at] = from[at];
    }
    __syncwarp();
    for (int i = ep_lane(); !LAYOUT::ROWS_OF_CHOICES && i < (int)count * words; i += 32) {
        ep_spread(*args, (wefti_u64)place + (wefti_u64)(i / words), i % words, records[i], source);
    }
    for (int i = 0; LAYOUT::ROWS_OF_CHOICES && i < (int)count; i++) {
        ep_label(*args, records + i * words, source);
    }
}

template <class LAYOUT>
EP_DEVICE_SLOW void ep_receive_new_weights(const ep_dispatch *args, int source, wefti_u32 place, wefti_u32 count)
{
    const wefti_u64 first = (wefti_u64)place * (wefti_u64)LAYOUT::record_words(args->topk);
    ep_receive_new_weights_from<LAYOUT>(
        args, source, place, count,
        (const wefti_u32 *)(args->group.area[args->group.rank] + args->group.at.records) + first);
}

/* The scales of a unit, which lie at `from`: to the caller's. A warp. */
EP_DEVICE void ep_receive_scales_from(const ep_dispatch &args, wefti_u32 place, wefti_u32 count, const wefti_u32 *from)
{
    const int words = (int)args.scale_words;
    const int pitch = wefti_cuda_ep_padded(words);
#pragma unroll 4
    for (int i = ep_lane(); i < (int)count * words; i += 32) {
        args.out_scales.words[((wefti_u64)place + (wefti_u64)(i / words)) * args.out_scales.row_stride +
                              (wefti_u64)(i % words) * args.out_scales.word_stride] =
            from[i / words * pitch + i % words];
    }
}

EP_DEVICE void ep_receive_scales(const ep_dispatch &args, wefti_u32 place, wefti_u32 count)
{
    ep_receive_scales_from(args, place, count,
                           (const wefti_u32 *)(args.group.area[args.group.rank] + args.group.at.scales) +
                               (wefti_u64)place * (wefti_u64)wefti_cuda_ep_padded((int)args.scale_words));
}

/* ---- in which order ---- */

/* What this rank receives, in the order in which it leaves if the others have as many blocks and sender warps: of every
 * block's share the first unit of each sender warp, grain by grain if `fine`, then the second, and so on; of each all
 * sources, and `parts` parts. This warp's are every `step`-th. */
typedef struct ep_incoming {
    bool fine;
    int parts;
    int first;
    int step;
    int end;
} ep_incoming;

EP_DEVICE int ep_grains(int tokens, bool fine)
{
    return fine ? wefti_cuda_ep_unit(tokens) / wefti_cuda_ep_grain(tokens) : 1;
}

EP_DEVICE ep_incoming ep_incoming_of(const ep_dispatch &args, const ep_call *call, bool fine, int parts)
{
    const int blocks = (int)gridDim.x;
    const int mine = ep_warp() - args.blocks.sender_warps;
    int rounds = 0;
    for (int rank = 0; rank < args.group.ranks; rank++) {
        const int each = (wefti_cuda_ep_units(call->tokens_of[rank]) + blocks - 1) / blocks;
        const int grains = ep_grains(call->tokens_of[rank], fine);
        const int sender_warps = grains > 1 ? args.blocks.sender_warps : 1;
        const int here = (each + sender_warps - 1) / sender_warps * sender_warps * grains;
        rounds = here > rounds ? here : rounds;
    }
    ep_incoming incoming;
    incoming.fine = fine;
    incoming.parts = parts;
    incoming.step = args.blocks.receiver_warps * blocks;
    incoming.end = rounds * blocks * parts * args.group.ranks;
    incoming.first = mine < args.blocks.receiver_warps ? mine * blocks + (int)blockIdx.x : incoming.end;
    return incoming;
}

typedef struct ep_coming {
    int source;
    int unit; /* -1: none */
    int word; /* of `rows_ready` */
    int part;
} ep_coming;

EP_DEVICE ep_coming ep_coming_of(const ep_dispatch &args, const ep_call *call, const ep_incoming &incoming, int i)
{
    const int blocks = (int)gridDim.x;
    const int number = i / args.group.ranks / incoming.parts;
    const int round = number / blocks;
    int first;
    int end;
    ep_coming coming;
    coming.source = (args.group.rank + i) % args.group.ranks;
    coming.part = i / args.group.ranks % incoming.parts;
    const int tokens = call->tokens_of[coming.source];
    const int grains = ep_grains(tokens, incoming.fine);
    const int sender_warps = grains > 1 ? args.blocks.sender_warps : 1;
    ep_share_of(wefti_cuda_ep_units(tokens), number % blocks, blocks, &first, &end);
    coming.unit = first + round / (sender_warps * grains) * sender_warps + round % sender_warps;
    coming.word = coming.unit * grains + round / sender_warps % grains;
    if (coming.unit >= end || coming.word * (wefti_cuda_ep_unit(tokens) / grains) >= tokens) {
        coming.unit = -1;
    }
    return coming;
}

/* ---- units ---- */

/* Wait for what has come: `meta_ready` of its unit, its word in `rows_ready`, or both; the tokens that the latter says,
 * or else the former. A warp. False: one did not come. */
EP_DEVICE bool ep_await_coming(const ep_dispatch &args, const ep_call *call, bool waits_meta, bool waits_rows,
                               const ep_coming &coming, wefti_u32 *place, wefti_u32 *count)
{
    const ep_group &group = args.group;
    wefti_u32 value = 0;
    bool well = true;
    if (ep_lane() < waits_meta + waits_rows) {
        const wefti_u64 *word = waits_meta && ep_lane() == 0
                                    ? ep_meta_ready(group, group.rank, coming.source) + coming.unit
                                    : ep_rows_ready(group, group.rank, coming.source) + coming.word;
        well = ep_await(group, word, call->tag, coming.source, args.blocks.rest_ns, &value);
    }
    __syncwarp(); /* what a lane has acquired is every lane's: votes and shuffles order no memory */
    if (!__all_sync(~0u, well)) {
        return false;
    }
    value = __shfl_sync(~0u, value, waits_meta && waits_rows ? 1 : 0);
    *place = wefti_cuda_ep_place_of(value);
    *count = wefti_cuda_ep_count_of(value);
    return true;
}

/* What a unit's source sent beside its rows: records of a new routing, or new weights, and scales given with the rows.
 * `waits_rows`: its rows are waited for as well. A warp. */
template <class LAYOUT>
EP_DEVICE bool ep_receive_meta(const ep_dispatch &args, const ep_call *call, bool waits_rows, const ep_coming &coming)
{
    const int source = coming.source;
    wefti_u32 place;
    wefti_u32 count;
    if (!ep_await_coming(args, call, true, waits_rows, coming, &place, &count)) {
        return false;
    }
    if (ep_is(args, WEFTI_CUDA_EP_NEW_WEIGHTS)) {
        ep_receive_new_weights<LAYOUT>(&args, source, place, count);
    }
    if constexpr (!LAYOUT::ROWS_OF_CHOICES) {
        if (ep_is(args, WEFTI_CUDA_EP_FRESH)) {
            ep_receive_records(args, source, place, count);
        }
        if (args.given_words != 0) {
            ep_receive_scales(args, place, count);
        }
    } else {
        for (wefti_u32 i = 0; i < count; i++) {
            const wefti_u32 *record = ep_record_here(args, place + i);
            if (ep_is(args, WEFTI_CUDA_EP_FRESH)) {
                ep_keep_record(args, place + i, record);
                ep_label(args, record, source);
            }
            if (args.given_words != 0) {
                ep_replicate_scales(args, record, place + i);
            }
        }
    }
    return true;
}

/* Scales that were made on the way come with the rows. */
EP_DEVICE bool ep_scales_move(const ep_dispatch &args)
{
    return args.scale_words != args.given_words;
}

/* By source: what is left to do when a unit's rows are there. */
EP_DEVICE bool ep_receive_rows(const ep_dispatch &args, const ep_call *call, const ep_coming &coming)
{
    wefti_u32 place;
    wefti_u32 count;
    if (!ep_await_coming(args, call, false, true, coming, &place, &count)) {
        return false;
    }
    if (ep_scales_move(args)) {
        ep_receive_scales(args, place, count);
    }
    if (ep_is(args, WEFTI_CUDA_EP_STAGE) && coming.source != args.group.rank) {
        const unsigned char *landed = (const unsigned char *)(args.group.area[args.group.rank] + args.group.at.rows);
        for (wefti_u32 i = 0; i < count; i++) {
            wefti_u64 row = (wefti_u64)place + i;
            ep_copy_row(args.out + row * args.out_pitch, landed + row * args.row_bytes, args.row_bytes);
        }
    }
    return true;
}

/* By expert: a part of each of the rows of a grain. False: they did not come. A receiver warp. */
EP_DEVICE bool ep_receive_partial(const ep_dispatch &args, const ep_call *call, const ep_coming &coming, int parts)
{
    wefti_u32 place;
    wefti_u32 count;
    if (!ep_await_coming(args, call, ep_is(args, WEFTI_CUDA_EP_FRESH), true, coming, &place, &count)) {
        return false;
    }
    for (wefti_u32 i = 0; i < count; i++) {
        const wefti_u32 *record = ep_record_here(args, place + i);
        if (coming.part == 0 && ep_scales_move(args)) {
            ep_replicate_scales(args, record, place + i);
        }
        ep_replicate(args, record, ep_came_to_place{coming.source, place + i}, coming.part, parts);
    }
    return true;
}

/* ---- rows that left with send ---- */

/* By expert, of a new routing: where each source's rows of this rank's experts begin here. All threads, once it is
 * known what is accepted. */
EP_DEVICE void ep_post_eager_bases(const ep_dispatch &args, const ep_call *call)
{
    const ep_group &group = args.group;
    const int first = group.first_expert[group.rank];
    const int local = group.first_expert[group.rank + 1] - first;
    const int source = ep_lane();
    for (int i = ep_warp() * (int)gridDim.x + (int)blockIdx.x; i < local; i += ep_warps() * (int)gridDim.x) {
        wefti_u32 begin = 0;
        wefti_u32 rows = 0;
        bool well = ep_await_value(group, &args.tables.begin[i], call->tag, group.rank, &begin);
        if (source < group.ranks && (call->alive >> source & 1) != 0) {
            const wefti_u64 *counts = ep_counts(group, call, group.rank, source);
            well = ep_await_value(group, &counts[first + i], call->tag, source, &rows) && well;
        }
        const wefti_u32 end = ep_scan(rows);
        if (__all_sync(~0u, well) && source < group.ranks) {
            wefti_st_relaxed(ep_eager_base(args, i, source), ep_packed(call->tag, begin + end - rows));
        }
    }
}

/* How many of a source's tokens first .. first + count - 1 are accepted here. Of all its tokens the first ones are. */
EP_DEVICE wefti_u32 ep_accepted_landed(const ep_call *call, int source, wefti_u32 first, wefti_u32 count)
{
    const wefti_u32 accepted = call->count[source];
    const wefti_u32 left = accepted > first ? accepted - first : 0;
    return count < left ? count : left;
}

/* By expert: copy to `record` a token's record that left with send. Its rows, which are numbers among those that the
 * source has of the expert, become rows of this rank. A warp. False: where the source's rows begin did not become known
 * (ep_post_eager_bases). */
EP_DEVICE bool ep_complete_record(const ep_dispatch &args, const ep_call *call, int source, const wefti_u32 *left,
                                  wefti_u32 *record)
{
    bool well = true;
    for (int i = ep_lane(); i < wefti_cuda_ep_record_words(args.topk, 1); i += 32) {
        const int k = i - 1 - 2 * args.topk;
        wefti_u32 value = left[i];
        if (k >= 0 && value != WEFTI_CUDA_EP_NO_ROW) {
            wefti_u32 base = 0;
            well = ep_await_value(args.group, ep_eager_base(args, (int)ep_record_expert(left, k), source), call->tag,
                                  args.group.rank, &base) &&
                   well;
            value += base;
        }
        record[i] = value;
    }
    __syncwarp();
    return __all_sync(~0u, well) != 0;
}

/* What ep_receive_meta does, of what left with send. By expert the unit's word in `meta_ready` tells this rank's other
 * warps of its records. A warp. */
template <class LAYOUT>
EP_DEVICE bool ep_receive_landed_meta(const ep_dispatch &args, const ep_call *call, const ep_coming &coming)
{
    const ep_group &group = args.group;
    const int source = coming.source;
    const int words = LAYOUT::record_words(args.topk);
    wefti_u32 value = 0;
    bool well = true;
    if (ep_lane() == 0) {
        well = ep_await(group, ep_eager_meta_words(args, call, group.rank, source) + coming.unit, call->tag & ~1u,
                        source, args.blocks.rest_ns, &value);
    }
    __syncwarp(); /* what a lane has acquired is every lane's */
    if (!__all_sync(~0u, well)) {
        return false;
    }
    value = __shfl_sync(~0u, value, 0);
    const wefti_u32 first = wefti_cuda_ep_place_of(value);
    const wefti_u32 count = ep_accepted_landed(call, source, first, wefti_cuda_ep_count_of(value));
    const wefti_u32 place = call->from[source] + first;
    const wefti_u32 *left =
        ep_eager_records(args, call, group.rank, source, words) + (wefti_u64)first * (wefti_u64)words;
    if (ep_is(args, WEFTI_CUDA_EP_NEW_WEIGHTS)) {
        ep_receive_new_weights_from<LAYOUT>(&args, source, place, count, left);
    }
    if constexpr (!LAYOUT::ROWS_OF_CHOICES) {
        if (ep_is(args, WEFTI_CUDA_EP_FRESH)) {
            ep_receive_records_from(args, source, place, count, left);
        }
        if (args.given_words != 0) {
            ep_receive_scales_from(args, place, count, ep_eager_scales(args, call, group.rank, source, first));
        }
    } else {
        const bool fresh = ep_is(args, WEFTI_CUDA_EP_FRESH);
        wefti_u32 *records = (wefti_u32 *)(group.area[group.rank] + group.at.records);
        for (wefti_u32 i = 0; i < count; i++) {
            if (fresh) {
                wefti_u32 *record = records + (wefti_u64)(place + i) * (wefti_u64)words;
                if (!ep_complete_record(args, call, source, left + (wefti_u64)i * (wefti_u64)words, record)) {
                    return false;
                }
                ep_keep_record(args, place + i, record);
                ep_label(args, record, source);
            }
            if (args.given_words != 0) {
                const wefti_u32 *scales = ep_eager_scales(args, call, group.rank, source, first + i);
                ep_replicate_scales_from(args, ep_record_here(args, place + i), [&](int) { return scales; });
            }
        }
        __syncwarp(); /* records are written by all lanes */
        if (fresh && ep_lane() == 0) {
            wefti_st_release(ep_meta_ready(group, group.rank, source) + coming.unit,
                             ep_packed(call->tag, wefti_cuda_ep_unit_value(place, (int)count)));
        }
    }
    return true;
}

/* Wait for the word of a unit that left with send, and, where its records are needed, of these; of its tokens that are
 * accepted here the first, among those of its source, and how many. A warp. False: one did not come. */
EP_DEVICE bool ep_await_landed(const ep_dispatch &args, const ep_call *call, bool waits_meta, const ep_coming &coming,
                               wefti_u32 *first, wefti_u32 *count)
{
    const ep_group &group = args.group;
    wefti_u32 value = 0;
    bool well = true;
    if (ep_lane() < 1 + waits_meta) {
        const bool is_meta = ep_lane() != 0;
        const wefti_u64 *word = is_meta ? ep_meta_ready(group, group.rank, coming.source) + coming.unit
                                        : ep_eager_words(args, call, group.rank, coming.source) + coming.unit;
        const wefti_u32 tag = is_meta ? call->tag : call->tag & ~1u; /* rows left before there was a second round */
        well = ep_await(group, word, tag, coming.source, args.blocks.rest_ns, &value);
    }
    __syncwarp(); /* what a lane has acquired is every lane's */
    if (!__all_sync(~0u, well)) {
        return false;
    }
    value = __shfl_sync(~0u, value, 0);
    *first = wefti_cuda_ep_place_of(value);
    *count = ep_accepted_landed(call, coming.source, *first, wefti_cuda_ep_count_of(value));
    return true;
}

/* Of the rows of a unit a part, and with the first part their scales, to where the caller wants them. A warp. */
template <class LAYOUT>
EP_DEVICE bool ep_receive_landed(const ep_dispatch &args, const ep_call *call, const ep_coming &coming, int parts)
{
    const int rank = args.group.rank;
    const int vectors = (int)(args.row_bytes / 16);
    const int each = (vectors + parts - 1) / parts;
    const int from = coming.part * each;
    const int end = from + each < vectors ? from + each : vectors;
    const bool moves_scales = ep_scales_move(args) && coming.part == 0;
    wefti_u32 first;
    wefti_u32 count;
    if (!ep_await_landed(args, call, LAYOUT::ROWS_OF_CHOICES && ep_is(args, WEFTI_CUDA_EP_FRESH), coming, &first,
                         &count)) {
        return false;
    }
    for (wefti_u32 i = 0; i < count; i++) {
        const wefti_u64 index = (wefti_u64)first + i;
        const wefti_u32 place = call->from[coming.source] + first + i;
        const unsigned char *row =
            (const unsigned char *)(ep_eager_rows(args, call, rank, coming.source) + index * args.row_bytes);
        const wefti_u32 *scales = ep_eager_scales(args, call, rank, coming.source, index);
        if constexpr (LAYOUT::ROWS_OF_CHOICES) {
            const wefti_u32 *record = ep_record_here(args, place);
            if (moves_scales) {
                ep_replicate_scales_from(args, record, [&](int) { return scales; });
            }
            ep_replicate(args, record, ep_came_with_send{row}, coming.part, parts);
        } else {
            for (int word = ep_lane(); moves_scales && word < (int)args.scale_words; word += 32) {
                args.out_scales.words[(wefti_u64)place * args.out_scales.row_stride +
                                      (wefti_u64)word * args.out_scales.word_stride] = scales[word];
            }
            ep_copy_to<8>(1u, (wefti_u64)args.out + (wefti_u64)place * args.out_pitch, row, from, end);
        }
    }
    return true;
}

/* ---- all units, of all sources ---- */

/* Wait until all rows are there, where nothing else is left to do: a lane a unit. */
EP_DEVICE void ep_await_rows(const ep_dispatch &args, const ep_call *call, const ep_incoming &incoming)
{
    for (int i = incoming.first + ep_lane() * incoming.step; i < incoming.end; i += 32 * incoming.step) {
        const ep_coming coming = ep_coming_of(args, call, incoming, i);
        wefti_u32 value;
        if (coming.unit >= 0 &&
            !ep_await(args.group, ep_rows_ready(args.group, args.group.rank, coming.source) + coming.unit, call->tag,
                      coming.source, args.blocks.rest_ns, &value)) {
            return;
        }
    }
}

/* Takes in what came beside the rows of this warp's share of all sources' units. False: some did not come. A receiver
 * warp. */
template <class LAYOUT, class WAY>
EP_DEVICE bool ep_receive_all_meta(const ep_dispatch &args, const ep_call *call, const ep_incoming &incoming,
                                   bool waits_rows)
{
    for (int i = incoming.first; i < incoming.end; i += incoming.step) {
        const ep_coming come = ep_coming_of(args, call, incoming, i);
        if constexpr (WAY::IS_EAGER) {
            if (come.unit >= 0 && !ep_receive_landed_meta<LAYOUT>(args, call, come)) {
                return false;
            }
        } else if (come.unit >= 0 && !ep_receive_meta<LAYOUT>(args, call, waits_rows, come)) {
            return false;
        }
    }
    return true;
}

/* What there is to do with what has come. */
template <class LAYOUT, class WAY>
EP_DEVICE bool ep_receive_coming(const ep_dispatch &args, const ep_call *call, const ep_coming &coming, int parts)
{
    if constexpr (WAY::IS_BACKWARD) {
        return WAY::template receive_unit<LAYOUT>(args, call, coming);
    } else if constexpr (WAY::IS_EAGER) {
        return ep_receive_landed<LAYOUT>(args, call, coming, parts);
    } else if constexpr (LAYOUT::ROWS_OF_CHOICES) {
        return ep_receive_partial(args, call, coming, parts);
    } else {
        return ep_receive_rows(args, call, coming);
    }
}

/* This warp's share of the rows of all sources, until some do not come. A receiver warp. */
template <class LAYOUT, class WAY> EP_DEVICE void ep_receive_all_rows(const ep_dispatch &args, const ep_call *call)
{
    const bool fine = LAYOUT::ROWS_OF_CHOICES && !WAY::IS_BACKWARD && !WAY::IS_EAGER;
    const ep_incoming incoming = ep_incoming_of(args, call, fine, fine || WAY::IS_EAGER ? ep_replica_parts(args) : 1);
    for (int i = incoming.first; i < incoming.end; i += incoming.step) {
        const ep_coming come = ep_coming_of(args, call, incoming, i);
        if (come.unit >= 0 && !ep_receive_coming<LAYOUT, WAY>(args, call, come, incoming.parts)) {
            return;
        }
    }
}

/* By position: wait until all units of all sources are there. A warp. False: one did not come. */
EP_DEVICE bool ep_await_all_units(const ep_dispatch &args, const ep_call *call)
{
    const ep_group &group = args.group;
    const int kinds = ep_has_meta(args) + ep_is(args, WEFTI_CUDA_EP_MOVE);
    bool well = true;
    for (int source = 0; source < group.ranks; source++) {
        const int words = wefti_cuda_ep_units(call->tokens_of[source]) * kinds;
        for (int i = ep_lane(); i < words && well; i += 32) {
            const wefti_u64 *word = ep_has_meta(args) && i % kinds == 0
                                        ? ep_meta_ready(group, group.rank, source) + i / kinds
                                        : ep_rows_ready(group, group.rank, source) + i / kinds;
            wefti_u32 value;
            well = ep_await(group, word, call->tag, source, args.blocks.rest_ns, &value);
        }
    }
    __syncwarp(); /* what a lane has acquired is every lane's */
    return __all_sync(~0u, well) != 0;
}

/* What comes beside rows is received before rows are waited for, which come last; but if no warp has two units, both
 * are waited for at once, which is sooner. */
template <class LAYOUT, class WAY> EP_DEVICE void ep_receive(const ep_dispatch &args, const ep_call *call)
{
    const bool moves = ep_is(args, WEFTI_CUDA_EP_MOVE);
    const bool waits = moves && !LAYOUT::ROWS_OF_CHOICES && !WAY::IS_BACKWARD && !WAY::IS_EAGER &&
                       !ep_scales_move(args) && !ep_is(args, WEFTI_CUDA_EP_STAGE);
    const ep_incoming units = ep_incoming_of(args, call, false, 1);
    const bool at_once = waits && ep_has_meta(args) && units.step >= units.end;
    if (EP_BY_POSITION && !ep_await_all_units(args, call)) {
        return;
    }
    if (ep_has_meta(args) && !ep_receive_all_meta<LAYOUT, WAY>(args, call, units, at_once)) {
        return;
    }
    if (waits && !at_once) {
        ep_await_rows(args, call, units);
    } else if (moves && !at_once) {
        ep_receive_all_rows<LAYOUT, WAY>(args, call);
    }
}

#endif
