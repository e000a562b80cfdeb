/* weft/device/coll.cuh: moving data between all members of a team inside kernels. (OpenSHMEM 1.5, 9.9.)
 *
 * Called by one scope of every member (members may use different scopes), one collective at a time a team, in the same
 * order everywhere, with equal arguments but for what is said below. `dest` and `source` are symmetric, of any alignment,
 * and do not overlap unless a call says that they may be equal. The scope's threads may have written the source before;
 * on return all of them see dest, and both buffers may be used again. Nothing is promised about earlier puts.
 *
 * Every call returns a weft_status: WEFT_ERR_TIMEOUT latches the member that did not come; WEFT_ERR_RANGE. The team is dead
 * then, as for all waits. Few bytes go packed, in one hop; more go plain, between two meetings (channel.cuh). Teams with
 * members that load and store do not reach: wide.cuh. */
#ifndef WEFTI_DEVICE_COLL_CUH
#define WEFTI_DEVICE_COLL_CUH

#include "weft/device/channel.cuh"
#include "weft/device/slice.cuh"
#include "weft/device/wide.cuh"

/* Up to here, a pair, a scope sends packed. */
#define WEFTI_DEV_PACKED_BYTES 4096

/* How data goes: packed in one hop, packed and handed on, or plain. */
typedef enum wefti_way { WEFTI_WAY_PACKED = 0, WEFTI_WAY_FORWARD = 1, WEFTI_WAY_PLAIN = 2 } wefti_way;

WEFTI_DEVICE wefti_u32 wefti_step_units(const wefti_dev_call &call, wefti_u64 first, wefti_u64 end)
{
    return end - first < call.team->slot_units ? (wefti_u32)(end - first) : call.team->slot_units;
}

/* How many pieces to make of `length`: several a slice, each of `least` to `most`. */
WEFTI_DEVICE wefti_u32 wefti_piece_count(wefti_slice slice, wefti_u64 length, wefti_u64 most, wefti_u64 least)
{
    wefti_u64 size = length / (slice.count * 4) + 1;
    size = size < least ? least : size > most ? most : size;
    return (wefti_u32)((length + size - 1) / size);
}

/* Do `pieces` pieces of a call, which all slices take from one counter as they come free: the links do not serve all
 * multiprocessors alike. A slice alone does them in order. */
template <class Do>
WEFTI_DEVICE void wefti_for_pieces(wefti_dev_call &call, wefti_slice slice, wefti_u32 pieces, const Do &work)
{
    wefti_dev_channel *head = (wefti_dev_channel *)call.team->channels;
    wefti_u32 *drawn = (wefti_u32 *)&head->drawn;
    const wefti_u32 limit = pieces + slice.count - 1; /* each slice draws one too many: the last draw resets */
    wefti_u32 next = 0;
    wefti_u32 mine = limit;
    if (slice.count == 1) {
        for (; next < pieces; next++) {
            work(next);
        }
    } else {
        mine = call.scope.rank == 0 ? wefti_atomic_count(drawn, limit) : 0;
        while ((next = wefti_scope_first(call.scope, mine)) < pieces) {
            mine = call.scope.rank == 0 ? wefti_atomic_count(drawn, limit) : 0; /* comes while this one is worked on */
            work(next);
        }
    }
    if (call.scope.rank == 0 && mine == limit) {
        wefti_st_relaxed(&head->dealt, wefti_ld_relaxed(&head->dealt) + 1);
    }
}

/* The number of this call among those whose pieces are shared out, to be asked before wefti_for_pieces: equal on all blocks,
 * as none has drawn its last piece, and on all members that share out the same calls. */
WEFTI_DEVICE wefti_u64 wefti_pieces_number(const wefti_dev_call &call)
{
    return wefti_ld_relaxed(&((wefti_dev_channel *)call.team->channels)->dealt) + 1;
}

/* Put `range` of the bytes at `source` to those at `dest` on member `number`, which may be this one. */
WEFTI_DEVICE void wefti_call_put(wefti_dev_call &call, wefti_u64 dest, wefti_u64 source, wefti_range range, int number)
{
    wefti_u64 bytes = range.end - range.first;
    if (bytes != 0) {
        wefti_u64 at = wefti_call_place(call, dest + range.first, bytes, number);
        if (at != 0 && at != source + range.first) {
            wefti_copy_bytes<wefti_to_remote>(call.scope, (void *)at, (const void *)(source + range.first), bytes);
        }
    }
}

/* ---- alltoall and fcollect: block i of dest comes from member i; to member j goes block j of the source, or all of it --- */

template <bool ALLTOALL>
WEFTI_DEVICE int wefti_exchange_packed(wefti_dev_call &call, wefti_slice slice, wefti_u64 dest, wefti_u64 source,
                                       wefti_u64 bytes)
{
    const wefti_range range = wefti_slice_units(slice, bytes);
    const wefti_u64 step = ALLTOALL ? bytes : 0;
    if (range.first == range.end) {
        return wefti_call_none(call); /* on all members: no step */
    }
    for (wefti_u64 base = range.first; base < range.end; base += call.team->slot_units) {
        const wefti_u32 units = wefti_step_units(call, base, range.end);
        if (base != range.first) {
            wefti_call_next_met(call);
        }
        wefti_call_send_all(call, units, [&](int number, wefti_u32 place) {
            return wefti_unit_load<WEFTI_HERE>(source + (wefti_u64)(wefti_u32)number * step, base + place, bytes);
        });
        const wefti_u64 mine = (wefti_u64)(wefti_u32)call.team->pe;
        for (wefti_u32 place = call.scope.rank; place < units; place += call.scope.size) {
            wefti_unit_store<WEFTI_HERE>(dest + mine * bytes, base + place, bytes,
                                         wefti_unit_load<WEFTI_HERE>(source + mine * step, base + place, bytes));
        }
        wefti_call_receive_all(call, units, [&](int number, wefti_u32 place, wefti_wide unit) {
            wefti_unit_store<WEFTI_HERE>(dest + (wefti_u64)(wefti_u32)number * bytes, base + place, bytes, unit);
        });
    }
    return wefti_call_end(call, true);
}

/* Piece i is a part of what goes to one member; those after it go to the others, so that all links are busy. */
template <bool ALLTOALL>
WEFTI_DEVICE int wefti_exchange_plain(wefti_dev_call &call, wefti_slice slice, wefti_u64 dest, wefti_u64 source,
                                      wefti_u64 bytes)
{
    const wefti_u64 step = ALLTOALL ? bytes : 0;
    const wefti_u32 members = (wefti_u32)call.team->pes;
    const wefti_u32 parts = (wefti_piece_count(slice, bytes * members, 1 << 15, 1 << 14) + members - 1) / members;
    const wefti_range all = {0, bytes};
    wefti_call_meet_in(call, [](int) { return (wefti_u64)0; });
    wefti_for_pieces(call, slice, parts * members, [&](wefti_u32 piece) {
        const int number = wefti_call_after(call, (piece + 1) % members);
        wefti_call_put(call, dest + (wefti_u64)(wefti_u32)call.team->pe * bytes,
                       source + (wefti_u64)(wefti_u32)number * step, wefti_range_part(all, piece / members, parts, 128),
                       number);
    });
    wefti_call_meet_out(call);
    return wefti_call_end(call, true);
}

template <bool ALLTOALL>
WEFTI_DEVICE int wefti_exchange(weft_scope scope, const weft_dev_team &team, wefti_slice slice, wefti_way way,
                                void *dest, const void *source, wefti_u64 bytes)
{
    wefti_dev_call call = wefti_call_begin(scope, team, slice.index);
    return way == WEFTI_WAY_PACKED
               ? wefti_exchange_packed<ALLTOALL>(call, slice, (wefti_u64)dest, (wefti_u64)source, bytes)
               : wefti_exchange_plain<ALLTOALL>(call, slice, (wefti_u64)dest, (wefti_u64)source, bytes);
}

/* ---- broadcast ---- */

/* The root sends all to all. */
WEFTI_DEVICE int wefti_broadcast_packed(wefti_dev_call &call, wefti_slice slice, wefti_u64 dest, wefti_u64 source,
                                        wefti_u64 bytes, int root)
{
    const wefti_range range = wefti_slice_units(slice, bytes);
    if (range.first == range.end) {
        return wefti_call_none(call);
    }
    for (wefti_u64 base = range.first; base < range.end; base += call.team->slot_units) {
        const wefti_u32 units = wefti_step_units(call, base, range.end);
        if (base != range.first) {
            wefti_call_next_unmet(call);
        }
        if (call.team->pe == root) {
            wefti_call_send_all(call, units, [&](int, wefti_u32 place) {
                return wefti_unit_load<WEFTI_HERE>(source, base + place, bytes);
            });
        }
        for (wefti_u32 place = call.scope.rank; place < units; place += call.scope.size) {
            wefti_wide unit[1];
            if (call.team->pe == root) {
                unit[0] = wefti_unit_load<WEFTI_HERE>(source, base + place, bytes);
            } else {
                wefti_units_receive(call, root, place, unit);
            }
            if (call.status == WEFT_OK) {
                wefti_unit_store<WEFTI_HERE>(dest, base + place, bytes, unit[0]);
            }
        }
    }
    return wefti_call_end(call, false);
}

/* The members but the root, in the order in which they come after it: number 0 .. members - 2. */
WEFTI_DEVICE int wefti_follower(const wefti_dev_call &call, int root, wefti_u32 index)
{
    int number = root + 1 + (int)index;
    return number < call.team->pes ? number : number - call.team->pes;
}

WEFTI_DEVICE wefti_u32 wefti_follower_index(const wefti_dev_call &call, int root, int number)
{
    return (wefti_u32)(number > root ? number - root - 1 : number - root - 1 + call.team->pes);
}

/* One step of the next: units base .. of each follower's part. */
typedef struct wefti_parts {
    wefti_range range; /* of the slice */
    wefti_u64 done; /* units of each part before this step */
    wefti_u32 followers;
} wefti_parts;

/* The unit at `place` of follower `index`'s part in this step; false when its part is shorter. */
WEFTI_DEVICE bool wefti_parts_unit(const wefti_parts &parts, wefti_u32 index, wefti_u32 place, wefti_u64 *unit)
{
    const wefti_range part = wefti_range_part(parts.range, index, parts.followers, 1);
    *unit = part.first + parts.done + place;
    return *unit < part.end;
}

/* As the root: each follower gets its part, and this PE its own copy. */
WEFTI_DEVICE void wefti_forward_root(wefti_dev_call &call, const wefti_parts &parts, wefti_u32 units, wefti_u64 dest,
                                     wefti_u64 source, wefti_u64 bytes)
{
    for (wefti_u32 i = call.scope.rank; i < parts.followers * units; i += call.scope.size) {
        wefti_u32 index = i / units;
        wefti_u64 unit;
        if (wefti_parts_unit(parts, index, i - index * units, &unit)) {
            wefti_wide value = wefti_unit_load<WEFTI_HERE>(source, unit, bytes);
            wefti_unit_send(call, wefti_follower(call, call.team->pe, index), i - index * units, value);
            wefti_unit_store<WEFTI_HERE>(dest, unit, bytes, value);
        }
    }
}

/* As a follower: its part comes from the root and goes on to the others, whose parts come from them. */
WEFTI_DEVICE void wefti_forward_follower(wefti_dev_call &call, const wefti_parts &parts, wefti_u32 units,
                                         wefti_u64 dest, wefti_u64 bytes, int root)
{
    const wefti_u32 mine = wefti_follower_index(call, root, call.team->pe);
    wefti_u64 unit;
    wefti_wide value[1];
    for (wefti_u32 place = call.scope.rank; place < units; place += call.scope.size) {
        if (wefti_parts_unit(parts, mine, place, &unit)) {
            wefti_units_receive(call, root, place, value);
            for (wefti_u32 i = 1; i < parts.followers && call.status == WEFT_OK; i++) {
                wefti_unit_send(call, wefti_follower(call, root, (mine + i) % parts.followers), place, value[0]);
            }
            if (call.status == WEFT_OK) {
                wefti_unit_store<WEFTI_HERE>(dest, unit, bytes, value[0]);
            }
        }
    }
    for (wefti_u32 i = call.scope.rank; i < (parts.followers - 1) * units; i += call.scope.size) {
        wefti_u32 index = (mine + 1 + i / units) % parts.followers;
        wefti_u32 place = i % units;
        if (wefti_parts_unit(parts, index, place, &unit)) {
            wefti_units_receive(call, wefti_follower(call, root, index), place, value);
            if (call.status == WEFT_OK) {
                wefti_unit_store<WEFTI_HERE>(dest, unit, bytes, value[0]);
            }
        }
    }
}

WEFTI_DEVICE int wefti_broadcast_forward(wefti_dev_call &call, wefti_slice slice, wefti_u64 dest, wefti_u64 source,
                                         wefti_u64 bytes, int root)
{
    wefti_parts parts = {wefti_slice_units(slice, bytes), 0, wefti_call_others(call)};
    if (parts.followers == 0) {
        return wefti_broadcast_packed(call, slice, dest, source, bytes, root);
    }
    const wefti_range first = wefti_range_part(parts.range, 0, parts.followers, 1); /* the longest */
    if (first.first == first.end) {
        return wefti_call_none(call);
    }
    for (; first.first + parts.done < first.end; parts.done += call.team->slot_units) {
        const wefti_u32 units = wefti_step_units(call, first.first + parts.done, first.end);
        if (parts.done != 0) {
            wefti_call_next_unmet(call);
        }
        if (call.team->pe == root) {
            wefti_forward_root(call, parts, units, dest, source, bytes);
        } else {
            wefti_forward_follower(call, parts, units, dest, bytes, root);
        }
    }
    return wefti_call_end(call, false);
}

/* Plain, in chunks of a part for each follower, which hands its part on while the next chunk comes. */
#define WEFTI_BROADCAST_PART 32768

typedef struct wefti_broadcast_all {
    wefti_u64 dest;
    wefti_u64 source;
    wefti_u64 bytes;
    int root;
    wefti_u32 followers;
    wefti_u32 channels;
    wefti_u64 number; /* of the call */
} wefti_broadcast_all;

/* The bytes of follower `index` in a chunk. */
WEFTI_DEVICE wefti_range wefti_broadcast_part(const wefti_broadcast_all &all, wefti_u32 chunk, wefti_u32 index)
{
    const wefti_u64 length = (wefti_u64)all.followers * WEFTI_BROADCAST_PART;
    wefti_range range = {chunk * length, (chunk + 1) * length};
    range.end = range.end < all.bytes ? range.end : all.bytes;
    return wefti_range_part(range, index, all.followers, 128);
}

/* That a chunk is there is told by a flag of one of the channels, which counts the chunks that it has told of. */
WEFTI_DEVICE wefti_dev_call wefti_broadcast_teller(const wefti_dev_call &call, const wefti_broadcast_all &all,
                                                   wefti_u32 chunk)
{
    wefti_dev_call teller = call;
    teller.channel = call.team->channels + chunk % all.channels * call.team->channel_bytes;
    return teller;
}

WEFTI_DEVICE wefti_u64 wefti_broadcast_flag(const wefti_broadcast_all &all, wefti_u32 chunk)
{
    return all.number << 24 | (chunk / all.channels + 1);
}

/* As the root: the parts of a chunk, each to its follower, and to this PE's own dest while the links carry them. */
WEFTI_DEVICE void wefti_broadcast_deal(wefti_dev_call &call, const wefti_broadcast_all &all, wefti_u32 chunk)
{
    for (wefti_u32 i = 0; i < all.followers; i++) {
        const wefti_u32 index = (chunk + i) % all.followers;
        const wefti_range part = wefti_broadcast_part(all, chunk, index);
        wefti_call_put(call, all.dest, all.source, part, wefti_follower(call, all.root, index));
        wefti_call_put(call, all.dest, all.source, part, all.root);
    }
    if (all.followers == 1) {
        return; /* nobody waits for it */
    }
    wefti_dev_call teller = wefti_broadcast_teller(call, all, chunk);
    if (call.scope.rank == 0 && chunk >= all.channels) { /* another block may still be at the chunk told of before */
        wefti_call_wait(teller, WEFTI_DEV_PART, all.root, wefti_broadcast_flag(all, chunk) - 1);
    }
    wefti_call_flag_all(teller, WEFTI_DEV_PART, wefti_broadcast_flag(all, chunk));
    if (call.scope.rank == 0) {
        wefti_u64 mine = wefti_call_word(teller, WEFTI_DEV_PART, all.root);
        wefti_st_relaxed(&((wefti_dev_packed *)mine)->epoch, wefti_broadcast_flag(all, chunk));
    }
    call.status = teller.status;
}

WEFTI_DEVICE void wefti_broadcast_hand_on(wefti_dev_call &call, const wefti_broadcast_all &all, wefti_u32 chunk)
{
    const wefti_u32 mine = wefti_follower_index(call, all.root, call.team->pe);
    const wefti_range part = wefti_broadcast_part(all, chunk, mine);
    if (call.scope.rank == 0) {
        wefti_dev_call teller = wefti_broadcast_teller(call, all, chunk);
        wefti_call_wait(teller, WEFTI_DEV_PART, all.root, wefti_broadcast_flag(all, chunk));
        call.status = teller.status;
    }
    wefti_scope_sync(call.scope);
    for (wefti_u32 i = 1; i < all.followers; i++) {
        wefti_call_put(call, all.dest, all.dest, part, wefti_follower(call, all.root, (mine + i) % all.followers));
    }
}

WEFTI_DEVICE int wefti_broadcast_plain(wefti_dev_call &call, wefti_slice slice, wefti_u64 dest, wefti_u64 source,
                                       wefti_u64 bytes, int root)
{
    const wefti_broadcast_all all = {dest, source, bytes, root, wefti_call_others(call), slice.count,
                                     wefti_pieces_number(call)};
    const wefti_u64 length = (wefti_u64)all.followers * WEFTI_BROADCAST_PART;
    wefti_call_meet_in(call, [](int) { return (wefti_u64)0; });
    if (all.followers == 0) {
        wefti_call_put(call, dest, source, wefti_slice_bytes(slice, bytes), root);
    } else if (call.team->pe == root) {
        wefti_for_pieces(call, slice, (wefti_u32)((bytes + length - 1) / length),
                         [&](wefti_u32 chunk) { wefti_broadcast_deal(call, all, chunk); });
    } else if (all.followers > 1) {
        wefti_for_pieces(call, slice, (wefti_u32)((bytes + length - 1) / length),
                         [&](wefti_u32 chunk) { wefti_broadcast_hand_on(call, all, chunk); });
    }
    wefti_call_meet_out(call);
    return wefti_call_end(call, true);
}

WEFTI_DEVICE int wefti_broadcast(weft_scope scope, const weft_dev_team &team, wefti_slice slice, wefti_way way,
                                 void *dest, const void *source, wefti_u64 bytes, int root)
{
    wefti_dev_call call = wefti_call_begin(scope, team, slice.index);
    return way == WEFTI_WAY_PACKED
               ? wefti_broadcast_packed(call, slice, (wefti_u64)dest, (wefti_u64)source, bytes, root)
           : way == WEFTI_WAY_FORWARD
               ? wefti_broadcast_forward(call, slice, (wefti_u64)dest, (wefti_u64)source, bytes, root)
               : wefti_broadcast_plain(call, slice, (wefti_u64)dest, (wefti_u64)source, bytes, root);
}

/* ---- collect and alltoallv: what each says when it comes tells the others where to put ---- */

WEFTI_DEVICE int wefti_collect(weft_scope scope, const weft_dev_team &team, wefti_slice slice, void *dest,
                               const void *source, wefti_u64 bytes)
{
    wefti_dev_call call = wefti_call_begin(scope, team, slice.index);
    wefti_u64 offset = 0;
    wefti_call_meet_in(call, [&](int) { return bytes; });
    for (int i = 0; i < team.pe && call.status == WEFT_OK; i++) {
        offset += wefti_call_said(call, i);
    }
    const wefti_range range = wefti_slice_bytes(slice, bytes);
    for (int hop = 0; hop < team.pes && call.status == WEFT_OK; hop++) {
        wefti_call_put(call, (wefti_u64)dest + offset, (wefti_u64)source, range,
                       wefti_call_after(call, (wefti_u32)hop));
    }
    wefti_call_meet_out(call);
    return wefti_call_end(call, true);
}

WEFTI_DEVICE int wefti_alltoallv(weft_scope scope, const weft_dev_team &team, wefti_slice slice, void *dest,
                                 const void *source, const wefti_v &v)
{
    wefti_dev_call call = wefti_call_begin(scope, team, slice.index);
    wefti_call_meet_in(call, [&](int number) { return v.receive_offsets[number]; });
    for (int hop = 0; hop < team.pes && call.status == WEFT_OK; hop++) {
        const int number = wefti_call_after(call, (wefti_u32)hop);
        const wefti_u64 offset = hop == 0 ? v.receive_offsets[number] : wefti_call_said(call, number);
        wefti_call_put(call, (wefti_u64)dest + offset, (wefti_u64)source + v.send_offsets[number],
                       wefti_slice_bytes(slice, v.send_bytes[number]), number);
    }
    wefti_call_meet_out(call);
    return wefti_call_end(call, true);
}

/* ---- inside kernels ---- */

WEFTI_DEVICE wefti_way wefti_dev_way(wefti_u64 bytes)
{
    return bytes <= WEFTI_DEV_PACKED_BYTES ? WEFTI_WAY_PACKED : WEFTI_WAY_PLAIN;
}

#define WEFTI_ALONE                                                                                                    \
    wefti_slice                                                                                                        \
    {                                                                                                                  \
        0, 1                                                                                                           \
    }

/* Copy `bytes` bytes from the root's source to every member's dest, the root's included; dest may equal source. */
WEFTI_DEVICE int weft_dev_broadcast(weft_scope scope, const weft_dev_team &team, void *dest, const void *source,
                                    wefti_u64 bytes, int root)
{
    wefti_scope_sync(scope);
    if (bytes == 0) {
        return WEFT_OK;
    }
    if (__builtin_expect(team.far_count != 0, 0)) {
        const wefti_wide_move move = {WEFTI_WIDE_BROADCAST, root, (wefti_u64)dest, (wefti_u64)source, bytes, {0, 0, 0}};
        return wefti_wide_collective(scope, &team, WEFTI_ALONE, move);
    }
    return wefti_broadcast(scope, team, WEFTI_ALONE, wefti_dev_way(bytes), dest, source, bytes, root);
}

/* Concatenate the members' sources, `bytes` bytes each, in every dest; source may be this member's place in dest. */
WEFTI_DEVICE int weft_dev_fcollect(weft_scope scope, const weft_dev_team &team, void *dest, const void *source,
                                   wefti_u64 bytes)
{
    wefti_scope_sync(scope);
    if (bytes == 0) {
        return WEFT_OK;
    }
    if (__builtin_expect(team.far_count != 0, 0)) {
        const wefti_wide_move move = {WEFTI_WIDE_FCOLLECT, 0, (wefti_u64)dest, (wefti_u64)source, bytes, {0, 0, 0}};
        return wefti_wide_collective(scope, &team, WEFTI_ALONE, move);
    }
    return wefti_exchange<false>(scope, team, WEFTI_ALONE, wefti_dev_way(bytes), dest, source, bytes);
}

/* Likewise when `bytes` differs; dest holds the sum. */
WEFTI_DEVICE int weft_dev_collect(weft_scope scope, const weft_dev_team &team, void *dest, const void *source,
                                  wefti_u64 bytes)
{
    wefti_scope_sync(scope);
    if (__builtin_expect(team.far_count != 0, 0)) {
        const wefti_wide_move move = {WEFTI_WIDE_COLLECT, 0, (wefti_u64)dest, (wefti_u64)source, bytes, {0, 0, 0}};
        return wefti_wide_collective(scope, &team, WEFTI_ALONE, move);
    }
    return wefti_collect(scope, team, WEFTI_ALONE, dest, source, bytes);
}

/* Block j of `bytes` bytes of member i goes to block i of member j. */
WEFTI_DEVICE int weft_dev_alltoall(weft_scope scope, const weft_dev_team &team, void *dest, const void *source,
                                   wefti_u64 bytes)
{
    wefti_scope_sync(scope);
    if (bytes == 0) {
        return WEFT_OK;
    }
    if (__builtin_expect(team.far_count != 0, 0)) {
        const wefti_wide_move move = {WEFTI_WIDE_ALLTOALL, 0, (wefti_u64)dest, (wefti_u64)source, bytes, {0, 0, 0}};
        return wefti_wide_collective(scope, &team, WEFTI_ALONE, move);
    }
    return wefti_exchange<true>(scope, team, WEFTI_ALONE, wefti_dev_way(bytes), dest, source, bytes);
}

/* To member j go the send_bytes[j] bytes at source + send_offsets[j]; those of member i come to dest +
 * receive_offsets[i]. Three arrays with an entry a member, in memory that the kernel can read; not symmetric. */
WEFTI_DEVICE int weft_dev_alltoallv(weft_scope scope, const weft_dev_team &team, void *dest,
                                    const wefti_u64 *receive_offsets, const void *source, const wefti_u64 *send_offsets,
                                    const wefti_u64 *send_bytes)
{
    const wefti_v v = {send_offsets, send_bytes, receive_offsets};
    wefti_scope_sync(scope);
    if (__builtin_expect(team.far_count != 0, 0)) {
        const wefti_wide_move move = {WEFTI_WIDE_ALLTOALLV, 0, (wefti_u64)dest, (wefti_u64)source, 0, v};
        return wefti_wide_collective(scope, &team, WEFTI_ALONE, move);
    }
    return wefti_alltoallv(scope, team, WEFTI_ALONE, dest, source, v);
}

#endif
