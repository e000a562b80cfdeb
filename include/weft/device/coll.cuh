/* weft/device/coll.cuh: moving data between all members of a team inside kernels. (OpenSHMEM 1.5, 9.9.)
 *
 * Called by one scope of every member (members may use different scopes), one collective at a time a team, in the same
 * order everywhere, with equal arguments but for what is said below. `dest` and `source` are symmetric, of any
 * alignment, and do not overlap unless a call says that they may be equal. The scope's threads may have written the
 * source before; on return all of them see dest, and both buffers may be used again. Nothing is promised about earlier
 * puts.
 *
 * Every call returns a weft_status: WEFT_ERR_TIMEOUT latches the member that did not come; WEFT_ERR_RANGE. The team is
 * dead then, as for all waits. Few bytes go packed, in one hop; more go plain, between two meetings (channel.cuh).
 * Teams with members that load and store do not reach: wide.cuh. */
#ifndef WEFTI_DEVICE_COLL_CUH
#define WEFTI_DEVICE_COLL_CUH

#include "weft/device/channel.cuh"
#include "weft/device/slice.cuh"
#include "weft/device/wide.cuh"

WEFTI_DEVICE wefti_u32 wefti_step_units(const wefti_dev_call &call, wefti_u64 first, wefti_u64 end)
{
    return end - first < call.team->slot_units ? (wefti_u32)(end - first) : call.team->slot_units;
}

/* ---- pieces: the links do not serve all multiprocessors alike, so workers take pieces of the data as they come free
 * ---- A worker is a warp of the blocks that share a call, so that none waits for another, and a piece is what it has
 * in flight at once: what all of them are at lies close together. A scope that is alone is its only worker. */

WEFTI_DEVICE wefti_u32 wefti_workers_a_slice(const wefti_dev_call &call, wefti_slice slice)
{
    return slice.is_alone ? 1 : call.scope.size / wefti_own_warp(call.scope).size;
}

WEFTI_DEVICE wefti_u32 wefti_piece_count(wefti_u64 length, wefti_u64 piece_bytes)
{
    return (wefti_u32)((length + piece_bytes - 1) / piece_bytes);
}

WEFTI_DEVICE wefti_range wefti_piece_range(wefti_range all, wefti_u64 piece_bytes, wefti_u32 piece)
{
    const wefti_u64 first = all.first + piece * piece_bytes;
    wefti_range range = {first < all.end ? first : all.end,
                         first + piece_bytes < all.end ? first + piece_bytes : all.end};
    return range;
}

/* Do `pieces` pieces: work(worker, piece), where the worker is the call with a scope of its own. Each worker begins
 * with the piece of its own number and takes the others from one counter: one draw a piece, the last of which resets
 * it. */
template <class Work>
WEFTI_DEVICE void wefti_for_pieces(wefti_dev_call &call, wefti_slice slice, wefti_u32 pieces, const Work &work)
{
    if (slice.is_alone) {
        for (wefti_u32 piece = 0; piece < pieces; piece++) {
            work(call, piece);
        }
        return;
    }
    wefti_u32 *drawn = (wefti_u32 *)&((wefti_dev_channel *)call.team->channels)->drawn;
    wefti_dev_call worker = call;
    worker.scope = wefti_own_warp(call.scope);
    const wefti_u32 workers = slice.count * wefti_workers_a_slice(call, slice);
    wefti_u32 piece = call.scope.rank / worker.scope.size * slice.count + slice.index;
    while (piece < pieces) {
        const wefti_u32 mine = worker.scope.rank == 0 ? wefti_atomic_count(drawn, pieces - 1) : 0;
        work(worker, piece); /* the next number comes meanwhile */
        piece = workers + wefti_scope_first(worker.scope, mine);
    }
    call.status = worker.status;
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

/* ---- alltoall and fcollect: block i of dest comes from member i; to member j goes block j of the source, or all of it
 * --- */

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

#define WEFTI_EXCHANGE_PIECE 4096 /* bytes: 8 units a thread of a warp */
#define WEFTI_EXCHANGE_PIECE_ALONE 32768

/* Piece i is a part of what goes to one member; those after it go to the others, so that all links are busy. */
template <bool ALLTOALL>
WEFTI_DEVICE int wefti_exchange_plain(wefti_dev_call &call, wefti_slice slice, wefti_u64 dest, wefti_u64 source,
                                      wefti_u64 bytes)
{
    const wefti_u64 step = ALLTOALL ? bytes : 0;
    const wefti_u32 members = (wefti_u32)call.team->pes;
    const wefti_u64 piece_bytes = slice.is_alone ? WEFTI_EXCHANGE_PIECE_ALONE : WEFTI_EXCHANGE_PIECE;
    const wefti_u32 pieces = wefti_piece_count(bytes, piece_bytes) * members;
    const wefti_range all = {0, bytes};
    if (!slice.is_ready) {
        wefti_call_meet_in(call, [](int) { return (wefti_u64)0; });
    }
    wefti_for_pieces(call, slice, pieces, [&](wefti_dev_call &worker, wefti_u32 piece) {
        const int number = wefti_call_after(worker, (piece + 1) % members);
        wefti_call_put(worker, dest + (wefti_u64)(wefti_u32)worker.team->pe * bytes,
                       source + (wefti_u64)(wefti_u32)number * step,
                       wefti_piece_range(all, piece_bytes, piece / members), number);
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
        const auto keep = [&](int, wefti_u32 place, wefti_wide unit) {
            wefti_unit_store<WEFTI_HERE>(dest, base + place, bytes, unit);
        };
        if (call.team->pe == root) {
            for (wefti_u32 place = call.scope.rank; place < units && call.status == WEFT_OK; place += call.scope.size) {
                keep(root, place, wefti_unit_load<WEFTI_HERE>(source, base + place, bytes));
            }
        } else {
            wefti_call_receive_each(
                call, units,
                [&](wefti_u32 place) {
                    const wefti_unit_at at = {root, place};
                    return at;
                },
                keep);
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

/* One step: the units of each follower's part from `done` on. */
typedef struct wefti_parts {
    wefti_range range; /* of the slice */
    wefti_u64 length; /* of a part; the last ones are shorter */
    wefti_u64 done;
    wefti_u32 followers;
} wefti_parts;

/* The unit at `place` of follower `index`'s part in this step; false when there is none. */
WEFTI_DEVICE bool wefti_parts_unit(const wefti_parts &parts, wefti_u32 index, wefti_u32 place, wefti_u64 *unit)
{
    const wefti_u64 at = parts.done + place;
    *unit = parts.range.first + index * parts.length + at;
    return index < parts.followers && at < parts.length && *unit < parts.range.end;
}

#define WEFTI_FORWARD_GROUP 4 /* parts at a time */

/* As the root: each follower gets its part, and this PE its own copy. */
WEFTI_DEVICE void wefti_forward_root(wefti_dev_call &call, const wefti_parts &parts, wefti_u32 units, wefti_u64 dest,
                                     wefti_u64 source, wefti_u64 bytes)
{
    for (wefti_u32 place = call.scope.rank; place < units; place += call.scope.size) {
        for (wefti_u32 first = 0; first < parts.followers; first += WEFTI_FORWARD_GROUP) {
            wefti_wide values[WEFTI_FORWARD_GROUP];
            wefti_u64 unit;
            WEFTI_UNROLL(WEFTI_FORWARD_GROUP)
            for (wefti_u32 j = 0; j < WEFTI_FORWARD_GROUP; j++) {
                if (wefti_parts_unit(parts, first + j, place, &unit)) {
                    values[j] = wefti_unit_load<WEFTI_HERE>(source, unit, bytes);
                }
            }
            WEFTI_UNROLL(WEFTI_FORWARD_GROUP)
            for (wefti_u32 j = 0; j < WEFTI_FORWARD_GROUP; j++) {
                if (wefti_parts_unit(parts, first + j, place, &unit)) {
                    wefti_unit_send(call, wefti_follower(call, call.team->pe, first + j), place, values[j]);
                    wefti_unit_store<WEFTI_HERE>(dest, unit, bytes, values[j]);
                }
            }
        }
    }
}

/* The units at `place` of the parts that members first .. hand on to this one. */
WEFTI_DEVICE void wefti_forward_receive(wefti_dev_call &call, const wefti_parts &parts, int first, wefti_u32 place,
                                        wefti_u64 dest, wefti_u64 bytes, int root)
{
    wefti_wide values[1][WEFTI_FORWARD_GROUP];
    wefti_u64 unit;
    wefti_u32 wanted = 0;
    WEFTI_UNROLL(WEFTI_FORWARD_GROUP)
    for (int j = 0; j < WEFTI_FORWARD_GROUP; j++) {
        const int number = first + j;
        const bool hands_on = number < call.team->pes && number != call.team->pe && number != root;
        if (hands_on && wefti_parts_unit(parts, wefti_follower_index(call, root, number), place, &unit)) {
            wanted |= 1u << j;
        }
    }
    wefti_units_receive<false>(call, first, wanted, place, 0, values);
    WEFTI_UNROLL(WEFTI_FORWARD_GROUP)
    for (int j = 0; j < WEFTI_FORWARD_GROUP; j++) {
        if ((wanted >> j & 1) != 0 && call.status == WEFT_OK) {
            (void)wefti_parts_unit(parts, wefti_follower_index(call, root, first + j), place, &unit);
            wefti_unit_store<WEFTI_HERE>(dest, unit, bytes, values[0][j]);
        }
    }
}

/* As a follower: its part comes from the root and goes on to the others, whose parts come from them. */
WEFTI_DEVICE void wefti_forward_follower(wefti_dev_call &call, const wefti_parts &parts, wefti_u32 units,
                                         wefti_u64 dest, wefti_u64 bytes, int root)
{
    const wefti_u32 mine = wefti_follower_index(call, root, call.team->pe);
    wefti_u64 unit;
    for (wefti_u32 place = call.scope.rank; place < units; place += call.scope.size) {
        if (wefti_parts_unit(parts, mine, place, &unit)) {
            const wefti_wide value = wefti_unit_receive(call, root, place);
            for (wefti_u32 i = 1; i < parts.followers && call.status == WEFT_OK; i++) {
                wefti_unit_send(call, wefti_follower(call, root, (mine + i) % parts.followers), place, value);
            }
            if (call.status == WEFT_OK) {
                wefti_unit_store<WEFTI_HERE>(dest, unit, bytes, value);
            }
        }
    }
    for (wefti_u32 place = call.scope.rank; place < units; place += call.scope.size) {
        for (int first = 0; first < call.team->pes; first += WEFTI_FORWARD_GROUP) {
            wefti_forward_receive(call, parts, first, place, dest, bytes, root);
        }
    }
}

WEFTI_DEVICE int wefti_broadcast_forward(wefti_dev_call &call, wefti_slice slice, wefti_u64 dest, wefti_u64 source,
                                         wefti_u64 bytes, int root)
{
    wefti_parts parts = {wefti_slice_units(slice, bytes), 0, 0, wefti_call_others(call)};
    if (parts.followers == 0) {
        return wefti_broadcast_packed(call, slice, dest, source, bytes, root);
    }
    if (parts.range.first == parts.range.end) {
        return wefti_call_none(call);
    }
    parts.length = (parts.range.end - parts.range.first + parts.followers - 1) / parts.followers;
    for (; parts.done < parts.length; parts.done += call.team->slot_units) {
        const wefti_u32 units = wefti_step_units(call, parts.done, parts.length);
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

/* Plain: each follower loads its part of the source from the root and stores it to all followers, this one too, so that
 * a byte leaves the root once, and nobody waits for parts of it. */
typedef struct wefti_broadcast_all {
    wefti_u64 dest;
    wefti_u64 source;
    int root;
    wefti_u32 followers;
    wefti_u32 mine; /* this follower's index */
} wefti_broadcast_all;

WEFTI_DEVICE wefti_u64 wefti_broadcast_place(wefti_dev_call &worker, const wefti_broadcast_all &all, wefti_range range,
                                             wefti_u32 hop)
{
    const int number = wefti_follower(worker, all.root, (all.mine + hop) % all.followers);
    return wefti_call_place(worker, all.dest + range.first, range.end - range.first, number);
}

/* N units a thread from `from`, which are `range` of the data, all loaded before the first is stored. */
template <int N>
WEFTI_DEVICE void wefti_broadcast_units(wefti_dev_call &worker, const wefti_broadcast_all &all, wefti_range range,
                                        wefti_u64 from)
{
    const wefti_u32 rank = worker.scope.rank;
    const wefti_u32 size = worker.scope.size;
    wefti_wide held[N];
    WEFTI_UNROLL(N)
    for (int n = 0; n < N; n++) {
        held[n] = wefti_ld_remote((const wefti_wide *)from + (rank + n * size));
    }
    WEFTI_UNROLL(1)
    for (wefti_u32 hop = 0; hop < all.followers; hop++) {
        wefti_wide *to = (wefti_wide *)wefti_broadcast_place(worker, all, range, hop);
        WEFTI_UNROLL(N)
        for (int n = 0; n < N && to != 0; n++) {
            wefti_st_remote(to + (rank + n * size), held[n]);
        }
    }
}

#define WEFTI_BROADCAST_UNITS 4 /* in flight a thread */
#define WEFTI_BROADCAST_PIECE 2048 /* bytes: those of a warp */

/* As a follower: `range` of its part. What is not a multiple of so many units, or not even, goes through its dest. */
WEFTI_DEVICE void wefti_broadcast_pull(wefti_dev_call &worker, const wefti_broadcast_all &all, wefti_range range)
{
    const wefti_u64 step = WEFTI_BROADCAST_UNITS * WEFTI_DEV_UNIT * (wefti_u64)worker.scope.size;
    wefti_u64 from = wefti_call_place(worker, all.source + range.first, range.end - range.first, all.root);
    if (from == 0) {
        return;
    }
    if (((all.dest | all.source) & (WEFTI_DEV_UNIT - 1)) == 0) {
        WEFTI_UNROLL(1)
        for (; range.end - range.first >= step; range.first += step, from += step) {
            const wefti_range units = {range.first, range.first + step};
            wefti_broadcast_units<WEFTI_BROADCAST_UNITS>(worker, all, units, from);
        }
    }
    const wefti_u64 bytes = range.end - range.first;
    if (bytes != 0) {
        const wefti_u64 here = all.dest + range.first;
        wefti_copy_uneven<wefti_from_remote>(worker.scope.rank, worker.scope.size, here, from, bytes);
        wefti_scope_sync(worker.scope);
        for (wefti_u32 hop = 1; hop < all.followers; hop++) {
            const wefti_u64 to = wefti_broadcast_place(worker, all, range, hop);
            if (to != 0) {
                wefti_copy_uneven<wefti_to_remote>(worker.scope.rank, worker.scope.size, to, here, bytes);
            }
        }
    }
}

/* To a single follower the root stores itself: that needs no fence before, and loads go no way over the link. */
WEFTI_DEVICE int wefti_broadcast_push(wefti_dev_call &call, wefti_u64 dest, wefti_u64 source, wefti_u64 bytes, int root)
{
    const wefti_range whole = {0, bytes};
    wefti_call_meet_in(call, [](int) { return (wefti_u64)0; });
    if (call.team->pe == root) {
        wefti_call_put(call, dest, source, whole, wefti_follower(call, root, 0));
        wefti_call_put(call, dest, source, whole, root);
    }
    wefti_call_meet_out(call);
    return wefti_call_end(call, true);
}

/* To followers whose dest is ready: the root stores to them and tells them, and nobody waits for another one. */
WEFTI_DEVICE int wefti_broadcast_push_ready(wefti_dev_call &call, wefti_u64 dest, wefti_u64 source, wefti_u64 bytes,
                                            int root)
{
    const wefti_range whole = {0, bytes};
    if (call.team->pe == root) {
        WEFTI_UNROLL(1)
        for (wefti_u32 i = 0; i < wefti_call_others(call); i++) {
            wefti_call_put(call, dest, source, whole, wefti_follower(call, root, i));
        }
        wefti_call_flag_all(call, WEFTI_DEV_OUT, call.epoch);
        wefti_call_put(call, dest, source, whole, root);
    } else if (call.scope.rank == 0) {
        wefti_call_wait(call, WEFTI_DEV_OUT, root, call.epoch);
    }
    return wefti_call_end(call, false);
}

WEFTI_DEVICE int wefti_broadcast_plain(wefti_dev_call &call, wefti_slice slice, wefti_u64 dest, wefti_u64 source,
                                       wefti_u64 bytes, int root)
{
    const bool is_root = call.team->pe == root;
    const wefti_u32 followers = wefti_call_others(call);
    const wefti_broadcast_all all = {dest, source, root, followers,
                                     is_root ? 0 : wefti_follower_index(call, root, call.team->pe)};
    const wefti_range whole = {0, bytes};
    const wefti_range mine = is_root ? whole : wefti_range_part(whole, all.mine, followers, WEFTI_BROADCAST_PIECE);
    const wefti_u64 length = mine.end - mine.first;
    const wefti_u64 piece_bytes = slice.is_alone && length != 0 ? length : WEFTI_BROADCAST_PIECE;
    wefti_call_meet_in_to_load(call, slice);
    wefti_for_pieces(call, slice, wefti_piece_count(length, piece_bytes), [&](wefti_dev_call &worker, wefti_u32 piece) {
        const wefti_range range = wefti_piece_range(mine, piece_bytes, piece);
        if (is_root) {
            wefti_call_put(worker, dest, source, range, root);
        } else {
            wefti_broadcast_pull(worker, all, range);
        }
    });
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
           : way == WEFTI_WAY_PUSH ? wefti_broadcast_push_ready(call, (wefti_u64)dest, (wefti_u64)source, bytes, root)
           : slice.is_alone && wefti_call_others(call) == 1
               ? wefti_broadcast_push(call, (wefti_u64)dest, (wefti_u64)source, bytes, root)
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

/* Up to here, a pair, a thread sends packed to members that are ready: beyond, half the stores and a fence are less. */
#define WEFTI_DEV_THREAD_PACKED_BYTES 128

WEFTI_DEVICE wefti_way wefti_dev_way_ready(weft_scope scope, wefti_u64 bytes)
{
    return scope.kind == WEFTI_SCOPE_THREAD && bytes > WEFTI_DEV_THREAD_PACKED_BYTES ? WEFTI_WAY_PLAIN
                                                                                     : wefti_dev_way(bytes);
}

/* Few followers: what the root sends several times. */
WEFTI_DEVICE wefti_way wefti_dev_broadcast_way_ready(weft_scope scope, const weft_dev_team &team, wefti_u64 bytes)
{
    const bool is_pushed = team.pes == 2 || bytes <= WEFTI_DEV_PACKED_BYTES;
    const wefti_way way = wefti_dev_way_ready(scope, bytes);
    return way == WEFTI_WAY_PLAIN && is_pushed ? WEFTI_WAY_PUSH : way;
}

WEFTI_DEVICE int wefti_dev_broadcast(weft_scope scope, const weft_dev_team &team, wefti_slice slice, wefti_way way,
                                     void *dest, const void *source, wefti_u64 bytes, int root)
{
    wefti_scope_sync(scope);
    if (bytes == 0) {
        return WEFT_OK;
    }
    if (__builtin_expect((team.far_count | team.abroad_count) != 0, 0) &&
        wefti_dev_is_wide(&team, (wefti_u64)dest, 0)) {
        const wefti_wide_move move = {WEFTI_WIDE_BROADCAST, root, (wefti_u64)dest, (wefti_u64)source, bytes, {0, 0, 0}};
        return wefti_wide_collective(scope, &team, WEFTI_ALONE, move);
    }
    return wefti_broadcast(scope, team, slice, way, dest, source, bytes, root);
}

/* Copy `bytes` bytes from the root's source to every member's dest, the root's included; dest may equal source. */
WEFTI_DEVICE int weft_dev_broadcast(weft_scope scope, const weft_dev_team &team, void *dest, const void *source,
                                    wefti_u64 bytes, int root)
{
    return wefti_dev_broadcast(scope, team, WEFTI_ALONE, wefti_dev_way(bytes), dest, source, bytes, root);
}

/* This and the other calls that end in _ready: likewise, where every member's dest may be written before that member
 * has called, as OpenSHMEM (1.5, 9.9) asks of its callers, and all members call by scopes of one kind. They need not
 * wait for each other before data moves. */
WEFTI_DEVICE int weft_dev_broadcast_ready(weft_scope scope, const weft_dev_team &team, void *dest, const void *source,
                                          wefti_u64 bytes, int root)
{
    return wefti_dev_broadcast(scope, team, WEFTI_ALONE_READY, wefti_dev_broadcast_way_ready(scope, team, bytes), dest,
                               source, bytes, root);
}

template <bool ALLTOALL>
WEFTI_DEVICE int wefti_dev_exchange(weft_scope scope, const weft_dev_team &team, wefti_slice slice, wefti_way way,
                                    void *dest, const void *source, wefti_u64 bytes)
{
    wefti_scope_sync(scope);
    if (bytes == 0) {
        return WEFT_OK;
    }
    if (__builtin_expect((team.far_count | team.abroad_count) != 0, 0) &&
        wefti_dev_is_wide(&team, (wefti_u64)dest, 0)) {
        const wefti_wide_kind kind = ALLTOALL ? WEFTI_WIDE_ALLTOALL : WEFTI_WIDE_FCOLLECT;
        const wefti_wide_move move = {kind, 0, (wefti_u64)dest, (wefti_u64)source, bytes, {0, 0, 0}};
        return wefti_wide_collective(scope, &team, WEFTI_ALONE, move);
    }
    return wefti_exchange<ALLTOALL>(scope, team, slice, way, dest, source, bytes);
}

/* Concatenate the members' sources, `bytes` bytes each, in every dest; source may be this member's place in dest. */
WEFTI_DEVICE int weft_dev_fcollect(weft_scope scope, const weft_dev_team &team, void *dest, const void *source,
                                   wefti_u64 bytes)
{
    return wefti_dev_exchange<false>(scope, team, WEFTI_ALONE, wefti_dev_way(bytes), dest, source, bytes);
}

WEFTI_DEVICE int weft_dev_fcollect_ready(weft_scope scope, const weft_dev_team &team, void *dest, const void *source,
                                         wefti_u64 bytes)
{
    return wefti_dev_exchange<false>(scope, team, WEFTI_ALONE_READY, wefti_dev_way_ready(scope, bytes), dest, source,
                                     bytes);
}

/* Likewise when `bytes` differs; dest holds the sum. */
WEFTI_DEVICE int weft_dev_collect(weft_scope scope, const weft_dev_team &team, void *dest, const void *source,
                                  wefti_u64 bytes)
{
    wefti_scope_sync(scope);
    if (__builtin_expect((team.far_count | team.abroad_count) != 0, 0) &&
        wefti_dev_is_wide(&team, (wefti_u64)dest, 0)) {
        const wefti_wide_move move = {WEFTI_WIDE_COLLECT, 0, (wefti_u64)dest, (wefti_u64)source, bytes, {0, 0, 0}};
        return wefti_wide_collective(scope, &team, WEFTI_ALONE, move);
    }
    return wefti_collect(scope, team, WEFTI_ALONE, dest, source, bytes);
}

/* Block j of `bytes` bytes of member i goes to block i of member j. */
WEFTI_DEVICE int weft_dev_alltoall(weft_scope scope, const weft_dev_team &team, void *dest, const void *source,
                                   wefti_u64 bytes)
{
    return wefti_dev_exchange<true>(scope, team, WEFTI_ALONE, wefti_dev_way(bytes), dest, source, bytes);
}

WEFTI_DEVICE int weft_dev_alltoall_ready(weft_scope scope, const weft_dev_team &team, void *dest, const void *source,
                                         wefti_u64 bytes)
{
    return wefti_dev_exchange<true>(scope, team, WEFTI_ALONE_READY, wefti_dev_way_ready(scope, bytes), dest, source,
                                    bytes);
}

/* To member j go the send_bytes[j] bytes at source + send_offsets[j]; those of member i come to dest +
 * receive_offsets[i]. Three arrays with an entry a member, in memory that the kernel can read; not symmetric. */
WEFTI_DEVICE int weft_dev_alltoallv(weft_scope scope, const weft_dev_team &team, void *dest,
                                    const wefti_u64 *receive_offsets, const void *source, const wefti_u64 *send_offsets,
                                    const wefti_u64 *send_bytes)
{
    const wefti_v v = {send_offsets, send_bytes, receive_offsets};
    wefti_scope_sync(scope);
    if (__builtin_expect((team.far_count | team.abroad_count) != 0, 0) &&
        wefti_dev_is_wide(&team, (wefti_u64)dest, 0)) {
        const wefti_wide_move move = {WEFTI_WIDE_ALLTOALLV, 0, (wefti_u64)dest, (wefti_u64)source, 0, v};
        return wefti_wide_collective(scope, &team, WEFTI_ALONE, move);
    }
    return wefti_alltoallv(scope, team, WEFTI_ALONE, dest, source, v);
}

#endif
