/* weft/device/wide.cuh: collectives of a wide team: one with members whose memory load and store do not reach.
 * Channels, steps and meetings are those of channel.cuh, but every transfer is a put and a signal of the whole scope,
 * which reach near and far members alike. OUT says here: what this member sends you in this step is there. */
#ifndef WEFTI_DEVICE_WIDE_CUH
#define WEFTI_DEVICE_WIDE_CUH

#include "weft/device/channel.cuh"
#include "weft/device/slice.cuh"

/* Set the 64-bit word `word` on `pe`, wherever that is, after all that this thread did before. */
WEFTI_DEVICE_SLOW int wefti_wide_tell(const weft_dev *dev, wefti_u64 word, wefti_u64 value, int pe)
{
    const wefti_u64 at = wefti_dev_peer_flat(dev, word, sizeof(wefti_u64), pe);
    if (at == 0) {
        return wefti_far_signal_here(dev, word, value, WEFT_SIGNAL_SET, pe);
    }
    wefti_st_release((wefti_u64 *)at, value);
    return WEFT_OK;
}

/* The bytes, wherever `pe` is. */
WEFTI_DEVICE int wefti_wide_put(weft_scope scope, const weft_dev *dev, wefti_u64 dest, wefti_u64 source,
                                wefti_u64 bytes, int pe)
{
    const bool is_beyond = wefti_dev_is_beyond(*dev, dest, pe);
    dest = is_beyond ? wefti_far_place(dev, dest, bytes, pe) : wefti_dev_peer(*dev, (const void *)dest, bytes, pe);
    if (dest == 0) {
        return wefti_dev_no_place(*dev, pe);
    }
    if (is_beyond) {
        return wefti_far_put_at(scope, dev, dest, source, bytes, pe);
    }
    wefti_copy_uneven<wefti_to_remote>(scope.rank, scope.size, dest, source, bytes);
    wefti_scope_sync(scope);
    return WEFT_OK;
}

/* `bytes` bytes at `source` to the symmetric `dest` of member `number`, and that this member has sent them. */
WEFTI_DEVICE void wefti_wide_send(wefti_dev_call &call, wefti_u64 dest, wefti_u64 source, wefti_u64 bytes, int number)
{
    const weft_dev &dev = call.team->world;
    const int pe = wefti_dev_member(*call.team, number);
    if (call.status == WEFT_OK && bytes != 0) {
        call.status = wefti_wide_put(call.scope, &dev, dest, source, bytes, pe);
    }
    if (call.status == WEFT_OK && call.scope.rank == 0 && bytes != 0 && wefti_dev_is_beyond(dev, dest, pe) &&
        !wefti_dev_is_far(dev, pe)) {
        call.status = wefti_far_quiet(&dev); /* what tells of the bytes is stored, and would come before them */
    }
    if (call.status == WEFT_OK && call.scope.rank == 0) {
        wefti_dev_packed *word = (wefti_dev_packed *)wefti_call_word(call, WEFTI_DEV_OUT, call.team->pe);
        call.status = wefti_wide_tell(&dev, (wefti_u64)&word->epoch, call.epoch, pe);
    }
}

/* Until all others have said so in this step, or one of them has. */
WEFTI_DEVICE void wefti_wide_await(wefti_dev_call &call, wefti_dev_word kind)
{
    for (wefti_u32 r = call.scope.rank; r < wefti_call_others(call); r += call.scope.size) {
        wefti_call_wait(call, kind, wefti_call_after(call, 1 + r), call.epoch);
    }
    call.status = wefti_dev_share_any(call.scope, call.team->world, call.status);
}

WEFTI_DEVICE void wefti_wide_await_one(wefti_dev_call &call, wefti_dev_word kind, int number)
{
    if (call.scope.rank == 0) {
        wefti_call_wait(call, kind, number, call.epoch);
    }
    call.status = wefti_dev_share_any(call.scope, call.team->world, call.status);
}

/* Tell each other member that this one has come, and value(member) with it; wait for all. */
template <class Value> WEFTI_DEVICE void wefti_wide_meet(wefti_dev_call &call, const Value &value)
{
    const weft_dev &dev = call.team->world;
    wefti_dev_packed *word = (wefti_dev_packed *)wefti_call_word(call, WEFTI_DEV_IN, call.team->pe);
    for (wefti_u32 r = call.scope.rank; r < wefti_call_others(call); r += call.scope.size) {
        const int number = wefti_call_after(call, 1 + r);
        const int pe = wefti_dev_member(*call.team, number);
        int status = wefti_wide_tell(&dev, (wefti_u64)&word->value, (wefti_u64)value(number), pe);
        if (status == WEFT_OK) {
            status = wefti_wide_tell(&dev, (wefti_u64)&word->epoch, call.epoch, pe);
        }
        call.status = status == WEFT_OK ? call.status : status;
    }
    wefti_wide_await(call, WEFTI_DEV_IN);
}

/* ---- moving data ---- */

typedef enum wefti_wide_kind {
    WEFTI_WIDE_BROADCAST,
    WEFTI_WIDE_FCOLLECT,
    WEFTI_WIDE_COLLECT,
    WEFTI_WIDE_ALLTOALL,
    WEFTI_WIDE_ALLTOALLV
} wefti_wide_kind;

typedef struct wefti_wide_move {
    wefti_wide_kind kind;
    int root;
    wefti_u64 dest;
    wefti_u64 source;
    wefti_u64 bytes;
    wefti_v v;
} wefti_wide_move;

/* Where this member's block goes in each dest of a collect: after those of the members before. */
WEFTI_DEVICE wefti_u64 wefti_wide_sum(const wefti_dev_call &call)
{
    wefti_u64 sum = 0;
    for (int i = 0; i < call.team->pe; i++) {
        sum += wefti_call_said(call, i);
    }
    return sum;
}

/* This PE's slice of what goes to member `number`, which may be itself. */
WEFTI_DEVICE void wefti_wide_part(wefti_dev_call &call, wefti_slice slice, const wefti_wide_move &move, int number)
{
    const wefti_u64 me = (wefti_u64)(wefti_u32)call.team->pe;
    const bool is_self = number == call.team->pe;
    wefti_u64 dest = move.dest;
    wefti_u64 source = move.source;
    wefti_u64 bytes = move.bytes;
    if (move.kind == WEFTI_WIDE_ALLTOALLV) {
        dest += is_self ? move.v.receive_offsets[number] : wefti_call_said(call, number);
        source += move.v.send_offsets[number];
        bytes = move.v.send_bytes[number];
    } else if (move.kind == WEFTI_WIDE_COLLECT) {
        dest += wefti_wide_sum(call);
    } else if (move.kind != WEFTI_WIDE_BROADCAST) {
        dest += me * bytes;
        source += move.kind == WEFTI_WIDE_ALLTOALL ? (wefti_u64)(wefti_u32)number * bytes : 0;
    }
    const wefti_range range = wefti_slice_bytes(slice, bytes);
    if (!is_self) {
        wefti_wide_send(call, dest + range.first, source + range.first, range.end - range.first, number);
    } else if (dest != source && range.end != range.first) {
        wefti_copy_uneven<wefti_to_remote>(call.scope.rank, call.scope.size, dest + range.first, source + range.first,
                                           range.end - range.first);
    }
}

/* Broadcast, fcollect, collect, alltoall, alltoallv. */
WEFTI_DEVICE int wefti_wide_collective(weft_scope scope, const weft_dev_team *team, wefti_slice slice,
                                       const wefti_wide_move move)
{
    const bool is_broadcast = move.kind == WEFTI_WIDE_BROADCAST;
    wefti_dev_call call = wefti_call_begin(scope, *team, slice.index);
    wefti_wide_meet(call, [&](int number) {
        return move.kind == WEFTI_WIDE_COLLECT     ? move.bytes
               : move.kind == WEFTI_WIDE_ALLTOALLV ? move.v.receive_offsets[number]
                                                   : 0;
    });
    WEFTI_UNROLL(1)
    for (wefti_u32 hop = 0; hop <= wefti_call_others(call) && call.status == WEFT_OK; hop++) {
        if (!is_broadcast || team->pe == move.root) {
            wefti_wide_part(call, slice, move, wefti_call_after(call, hop));
        }
    }
    if (!is_broadcast) {
        wefti_wide_await(call, WEFTI_DEV_OUT);
    } else if (team->pe != move.root) {
        wefti_wide_await_one(call, WEFTI_DEV_OUT, move.root);
    }
    return wefti_call_end(call, true);
}

/* ---- combining data ---- */

/* Units of a slot: data as it is, without words between. */
WEFTI_DEVICE wefti_u64 wefti_wide_slot_units(const wefti_dev_call &call)
{
    return WEFTI_DEV_SLOT_BYTES(call.team->slot_units) / WEFTI_DEV_UNIT;
}

WEFTI_DEVICE wefti_u64 wefti_range_bytes(wefti_range units, wefti_u64 bytes)
{
    const wefti_u64 end = units.end * WEFTI_DEV_UNIT < bytes ? units.end * WEFTI_DEV_UNIT : bytes;
    return units.first < units.end ? end - units.first * WEFTI_DEV_UNIT : 0;
}

/* Send each other member its part of this PE's source, into its slot; combine this member's part, in ascending
 * order. */
template <class R>
WEFTI_DEVICE void wefti_wide_combine(wefti_dev_call &call, const R &reducer, const wefti_vector &vector,
                                     wefti_range range)
{
    const wefti_u32 members = (wefti_u32)call.team->pes;
    const wefti_u32 parts = vector.part != 0 ? 1 : members;
    WEFTI_UNROLL(1)
    for (wefti_u32 hop = 1; hop < members; hop++) {
        const int number = wefti_call_after(call, hop);
        const wefti_range part = wefti_range_part(range, parts == 1 ? 0 : (wefti_u32)number, parts, 1);
        wefti_wide_send(call, wefti_call_slot(call, call.team->pe),
                        vector.source + (wefti_u64)(wefti_u32)number * vector.part + part.first * WEFTI_DEV_UNIT,
                        wefti_range_bytes(part, vector.bytes), number);
    }
    wefti_wide_await(call, WEFTI_DEV_OUT);
    const wefti_range mine = wefti_range_part(range, parts == 1 ? 0 : (wefti_u32)call.team->pe, parts, 1);
    const wefti_u64 length = wefti_range_bytes(mine, vector.bytes);
    WEFTI_UNROLL(1)
    for (wefti_u64 unit = mine.first + call.scope.rank; unit < mine.end && call.status == WEFT_OK;
         unit += call.scope.size) {
        typename R::sum all;
        WEFTI_UNROLL(1)
        for (int i = 0; i < call.team->pes; i++) {
            const wefti_wide next =
                i == call.team->pe ? wefti_vector_load(vector, i, unit)
                                   : wefti_unit_load<WEFTI_HERE>(wefti_call_slot(call, i), unit - mine.first, length);
            if (i == 0) {
                all = reducer.start(next);
            } else {
                reducer.add(all, next);
            }
        }
        wefti_unit_store<WEFTI_HERE>(vector.dest, unit, vector.bytes, reducer.finish(all));
    }
}

/* Give all others the part that this member has combined; get theirs. */
WEFTI_DEVICE void wefti_wide_spread(wefti_dev_call &call, const wefti_vector &vector, wefti_range range)
{
    const wefti_range mine = wefti_range_part(range, (wefti_u32)call.team->pe, (wefti_u32)call.team->pes, 1);
    const wefti_u64 at = vector.dest + mine.first * WEFTI_DEV_UNIT;
    WEFTI_UNROLL(1)
    for (wefti_u32 hop = 1; hop <= wefti_call_others(call); hop++) {
        wefti_wide_send(call, at, at, wefti_range_bytes(mine, vector.bytes), wefti_call_after(call, hop));
    }
    wefti_wide_await(call, WEFTI_DEV_OUT);
}

/* Rounds of at most a slot of units for each member: its part of the sources is combined there, then, but for
 * reduce_scatter, spread. A member writes to another's dest when that one has sent it its part, and so read it. */
template <class R>
WEFTI_DEVICE int wefti_wide_reduce(weft_scope scope, const weft_dev_team *team, wefti_slice slice, R reducer,
                                   const wefti_vector vector)
{
    wefti_dev_call call = wefti_call_begin(scope, *team, slice.index);
    const wefti_range all = wefti_slice_units(slice, vector.bytes);
    const wefti_u64 length = wefti_wide_slot_units(call) * (vector.part != 0 ? 1 : (wefti_u64)(wefti_u32)team->pes);
    if (all.first == all.end) {
        return wefti_call_none(call); /* on all members: no step */
    }
    WEFTI_UNROLL(1)
    for (wefti_u64 base = all.first; base < all.end; base += length) {
        const wefti_range range = {base, all.end - base < length ? all.end : base + length};
        if (base != all.first) {
            wefti_call_next_met(call);
        }
        wefti_wide_combine(call, reducer, vector, range);
        if (vector.part == 0) {
            wefti_call_next_met(call);
            wefti_wide_spread(call, vector, range);
        }
    }
    return wefti_call_end(call, true);
}

#endif
