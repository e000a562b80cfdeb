/* weft/device/reduce.cuh: combining data of all members of a team inside kernels. (OpenSHMEM 1.5, 9.9.9.)
 *
 * As in coll.cuh, with elements. Members are combined in ascending order, for each element by one member or, of few
 * bytes, by each for itself, so that all get the same bits, in every run. dest may equal source.
 *
 *     weft_dev_reduce<WEFT_OP_SUM>(weft_block(), team, dest, source, count);
 *
 * Types: integers of 1 to 8 bytes, float, double, weft_bf16, weft_fp16, weft_e4m3, weft_e5m2 (number.cuh; those are
 * combined in float and rounded once), weft_dev_complexf and weft_dev_complexd (sum and product). */
#ifndef WEFTI_DEVICE_REDUCE_CUH
#define WEFTI_DEVICE_REDUCE_CUH

#include "weft/device/coll.cuh"
#include "weft/device/reducer.cuh"

/* Members looked at together. */
#define WEFTI_REDUCE_GROUP 4
/* ... in a user's kernel; see `few` in reducer.cuh. */
#define WEFTI_REDUCE_FEW 2

/* All members' contributions to N units in ascending order. fetch(first, units) loads those of GROUP members from
 * `first` on, of which those beyond the last do not count. */
template <int N, int GROUP, class R, class Fetch>
WEFTI_DEVICE void wefti_reduce_units(const wefti_dev_call &call, const R &reducer, const Fetch &fetch,
                                     wefti_wide (&results)[N])
{
    wefti_wide units[N][GROUP];
    typename R::sum all[N];
    fetch(0, units);
    WEFTI_UNROLL(N)
    for (int n = 0; n < N; n++) {
        all[n] = reducer.start(units[n][0]);
        WEFTI_UNROLL(GROUP)
        for (int j = 1; j < GROUP; j++) {
            if (j < call.team->pes) {
                reducer.add(all[n], units[n][j]);
            }
        }
    }
    WEFTI_UNROLL(1)
    for (int first = GROUP; first < call.team->pes; first += GROUP) {
        fetch(first, units);
        WEFTI_UNROLL(N)
        for (int n = 0; n < N; n++) {
            WEFTI_UNROLL(GROUP)
            for (int j = 0; j < GROUP; j++) {
                if (first + j < call.team->pes) {
                    reducer.add(all[n], units[n][j]);
                }
            }
        }
    }
    WEFTI_UNROLL(N)
    for (int n = 0; n < N; n++) {
        results[n] = reducer.finish(all[n]);
    }
}

/* The combination of what has been sent to this member at N places, from `place` on and `step` apart, with its own
 * units, from number `unit` on likewise. */
template <int N, int GROUP, bool FLAT, class R>
WEFTI_DEVICE void wefti_reduce_received(wefti_dev_call &call, const R &reducer, const wefti_vector &vector,
                                        wefti_u32 place, wefti_u64 unit, wefti_u32 step, wefti_wide (&results)[N])
{
    wefti_wide mine[N];
    WEFTI_UNROLL(N)
    for (int n = 0; n < N; n++) {
        mine[n] = wefti_vector_load<FLAT>(vector, call.team->pe, unit + (wefti_u32)n * step);
    }
    wefti_reduce_units<N, GROUP>(
        call, reducer,
        [&](int first, wefti_wide(&units)[N][GROUP]) {
            wefti_u32 wanted = 0;
            WEFTI_UNROLL(GROUP)
            for (int j = 0; j < GROUP; j++) {
                wanted |= first + j < call.team->pes && first + j != call.team->pe ? 1u << j : 0;
            }
            wefti_units_receive<FLAT>(call, first, wanted, place, step, units);
            WEFTI_UNROLL(N)
            for (int n = 0; n < N; n++) {
                WEFTI_UNROLL(GROUP)
                for (int j = 0; j < GROUP; j++) {
                    units[n][j] = first + j == call.team->pe ? mine[n] : units[n][j];
                }
            }
        },
        results);
}

/* Combine N units from `place` on. The last ones may be the same twice. */
template <int N, int GROUP, bool FLAT, class R>
WEFTI_DEVICE void wefti_reduce_packed_units(wefti_dev_call &call, const R &reducer, const wefti_vector &vector,
                                            wefti_u64 base, wefti_u32 place, wefti_u32 step)
{
    wefti_wide results[N];
    wefti_reduce_received<N, GROUP, FLAT>(call, reducer, vector, place, base + place, step, results);
    WEFTI_UNROLL(N)
    for (int n = 0; n < N && call.status == WEFT_OK; n++) {
        wefti_unit_store<WEFTI_HERE, FLAT>(vector.dest, base + place + (wefti_u32)n * step, vector.bytes, results[n]);
    }
}

/* One step of it. A thread that is alone takes two units at once. */
template <int GROUP, bool FLAT, class R>
WEFTI_DEVICE void wefti_reduce_packed_step(wefti_dev_call &call, const R &reducer, const wefti_vector &vector,
                                           wefti_u64 base, wefti_u32 units)
{
    wefti_call_send_all<FLAT>(call, units, [&](int number, wefti_u32 place) {
        return wefti_vector_load<FLAT>(vector, number, base + place);
    });
    wefti_scope_sync(call.scope); /* dest may be the source */
    if (call.scope.kind == WEFTI_SCOPE_THREAD) {
        WEFTI_UNROLL(1)
        for (wefti_u32 place = 0; place < units; place += 2) {
            wefti_reduce_packed_units<2, GROUP, FLAT>(call, reducer, vector, base, place, place + 1 < units ? 1 : 0);
        }
        return;
    }
    WEFTI_UNROLL(1)
    for (wefti_u32 place = call.scope.rank; place < units; place += call.scope.size) {
        wefti_reduce_packed_units<1, GROUP, FLAT>(call, reducer, vector, base, place, 0);
    }
}

/* All send all that these need; each combines for itself. */
template <class R>
WEFTI_DEVICE int wefti_reduce_packed(wefti_dev_call &call, wefti_slice slice, const R &reducer,
                                     const wefti_vector &vector)
{
    const wefti_range range = wefti_slice_units(slice, vector.bytes);
    if (range.first == range.end) {
        return wefti_call_none(call);
    }
    for (wefti_u64 base = range.first; base < range.end; base += call.team->slot_units) {
        const wefti_u32 units = wefti_step_units(call, base, range.end);
        if (base != range.first) {
            wefti_call_next_met(call);
        }
        if (slice.is_alone) {
            wefti_reduce_packed_step<WEFTI_REDUCE_FEW, true>(call, reducer, vector, base, units);
        } else {
            wefti_reduce_packed_step<WEFTI_REDUCE_GROUP, false>(call, reducer, vector, base, units);
        }
    }
    return wefti_call_end(call, true);
}

/* Each member combines its part of the slice and sends the result to all. One step of parts of at most slot_units
 * units, none of them empty. */
template <class R>
WEFTI_DEVICE int wefti_reduce_forward(wefti_dev_call &call, wefti_range range, const R &reducer,
                                      const wefti_vector &vector)
{
    const wefti_u32 members = (wefti_u32)call.team->pes;
    const wefti_range longest = wefti_range_part(range, 0, members, 1);
    const wefti_u32 units = (wefti_u32)(longest.end - longest.first);
    const wefti_range mine = wefti_range_part(range, (wefti_u32)call.team->pe, members, 1);
    for (wefti_u32 i = call.scope.rank; i < (members - 1) * units; i += call.scope.size) {
        const int number = wefti_call_after(call, 1 + i / units);
        const wefti_range part = wefti_range_part(range, (wefti_u32)number, members, 1);
        const wefti_u64 unit = part.first + i % units;
        if (unit < part.end) {
            wefti_unit_send(call, number, i % units, wefti_vector_load(vector, 0, unit));
        }
    }
    for (wefti_u32 place = call.scope.rank; place < mine.end - mine.first; place += call.scope.size) {
        wefti_wide result[1];
        wefti_reduce_received<1, WEFTI_REDUCE_GROUP, false>(call, reducer, vector, place, mine.first + place, 0,
                                                            result);
        call.epoch++;
        for (wefti_u32 hop = 1; hop < members && call.status == WEFT_OK; hop++) {
            wefti_unit_send(call, wefti_call_after(call, hop), place, result[0]);
        }
        call.epoch--;
        if (call.status == WEFT_OK) {
            wefti_unit_store<WEFTI_HERE>(vector.dest, mine.first + place, vector.bytes, result[0]);
        }
    }
    call.epoch++; /* all of this member's units have been sent, so nobody needs its slots of the step before */
    for (wefti_u32 i = call.scope.rank; i < (members - 1) * units; i += call.scope.size) {
        const int number = wefti_call_after(call, 1 + i / units);
        const wefti_range part = wefti_range_part(range, (wefti_u32)number, members, 1);
        const wefti_u64 unit = part.first + i % units;
        if (unit < part.end) {
            const wefti_wide result = wefti_unit_receive(call, number, i % units);
            if (call.status == WEFT_OK) {
                wefti_unit_store<WEFTI_HERE>(vector.dest, unit, vector.bytes, result);
            }
        }
    }
    return wefti_call_end(call, true);
}

/* Load N units of all sources, GROUP members at a time, the first one `unit`, the others a scope apart, those from
 * `end` on not; combine them, and store them to the dest of this member and the receivers - 1 after it. EVEN: they are
 * whole and at multiples of 16, so that nothing stands between the loads. */
template <int N, int GROUP, bool EVEN, bool FLAT, class R>
WEFTI_DEVICE void wefti_reduce_pull(wefti_dev_call &call, wefti_u64 unit, wefti_u64 end, const R &reducer,
                                    const wefti_vector &vector, int receivers)
{
    const wefti_u64 source = vector.source + (wefti_u64)(wefti_u32)call.team->pe * vector.part;
    wefti_wide results[N];
    wefti_reduce_units<N, GROUP>(
        call, reducer,
        [&](int first, wefti_wide(&units)[N][GROUP]) {
            wefti_u64 at[GROUP];
            WEFTI_UNROLL(GROUP)
            for (int j = 0; j < GROUP; j++) {
                at[j] = first + j < call.team->pes ? wefti_call_place<FLAT>(call, source, vector.bytes, first + j) : 0;
            }
            WEFTI_UNROLL(N)
            for (int n = 0; n < N; n++) {
                const wefti_u64 place = unit + n * call.scope.size;
                WEFTI_UNROLL(GROUP)
                for (int j = 0; j < GROUP; j++) {
                    units[n][j] = at[j] == 0 || place >= end ? wefti_wide_of(0, 0)
                                  : EVEN                     ? wefti_ld_remote((const wefti_wide *)at[j] + place)
                                         : wefti_unit_load<WEFTI_THERE, FLAT>(at[j], place, vector.bytes);
                }
            }
        },
        results);
    for (int hop = 0; hop < receivers; hop++) {
        wefti_u64 at = wefti_call_place<FLAT>(call, vector.dest, vector.bytes, wefti_call_after(call, (wefti_u32)hop));
        WEFTI_UNROLL(N)
        for (int n = 0; n < N; n++) {
            const wefti_u64 place = unit + n * call.scope.size;
            if (at != 0 && place < end) {
                if (EVEN) {
                    wefti_st_remote((wefti_wide *)at + place, results[n]);
                } else {
                    wefti_unit_store<WEFTI_THERE, FLAT>(at, place, vector.bytes, results[n]);
                }
            }
        }
    }
}

/* `range` of the units: first those that are whole and at multiples of 16. In flight a thread: as much of the other
 * members' as fills the links with few blocks; ALONE: what few registers hold. */
template <bool ALONE, class R>
WEFTI_DEVICE void wefti_reduce_piece(wefti_dev_call &worker, wefti_range range, const R &reducer,
                                     const wefti_vector &vector, int receivers)
{
    const wefti_u64 together = vector.dest | vector.source | vector.part;
    const wefti_u64 whole = (together & (WEFTI_DEV_UNIT - 1)) == 0 ? vector.bytes / WEFTI_DEV_UNIT : 0;
    const wefti_u64 end = range.end < whole ? range.end : whole;
    const wefti_u32 size = worker.scope.size;
    wefti_u64 unit = range.first + worker.scope.rank;
    if (ALONE) {
        WEFTI_UNROLL(1)
        for (; unit < end; unit += R::few * size) {
            wefti_reduce_pull<R::few, WEFTI_REDUCE_FEW, true, true>(worker, unit, end, reducer, vector, receivers);
        }
    } else if (worker.team->pes == 2) {
        for (; unit < end; unit += 2 * R::units * size) {
            wefti_reduce_pull<2 * R::units, 2, true, false>(worker, unit, end, reducer, vector, receivers);
        }
    } else {
        for (; unit < end; unit += R::units * size) {
            wefti_reduce_pull<R::units, WEFTI_REDUCE_GROUP, true, false>(worker, unit, end, reducer, vector, receivers);
        }
    }
    WEFTI_UNROLL(1)
    for (unit = (range.first < end ? end : range.first) + worker.scope.rank; unit < range.end; unit += size) {
        wefti_reduce_pull<1, 1, false, ALONE>(worker, unit, range.end, reducer, vector, receivers);
    }
}

/* Units: those of a warp in one round, of two members and of more. */
#define WEFTI_REDUCE_PIECE_OF_TWO 128
#define WEFTI_REDUCE_PIECE 64

/* Each member combines its part of all sources and stores it to all; for reduce_scatter, its block, for itself. */
template <class R>
WEFTI_DEVICE int wefti_reduce_plain(wefti_dev_call &call, wefti_slice slice, const R &reducer,
                                    const wefti_vector &vector)
{
    const wefti_range units = {0, (vector.bytes + WEFTI_DEV_UNIT - 1) / WEFTI_DEV_UNIT};
    const bool is_scatter = vector.part != 0;
    const wefti_range mine =
        is_scatter ? units : wefti_range_part(units, (wefti_u32)call.team->pe, (wefti_u32)call.team->pes, 1);
    const wefti_u64 length = mine.end - mine.first;
    const wefti_u64 piece = call.team->pes == 2 ? WEFTI_REDUCE_PIECE_OF_TWO : WEFTI_REDUCE_PIECE;
    const wefti_u64 piece_units = slice.is_alone && length != 0 ? length : piece;
    const int receivers = is_scatter ? 1 : call.team->pes;
    wefti_call_meet_in_to_load(call, slice);
    if (slice.is_alone) {
        wefti_reduce_piece<true>(call, mine, reducer, vector, receivers);
    } else {
        wefti_for_pieces(call, slice, wefti_piece_count(length, piece_units),
                         [&](wefti_dev_call &worker, wefti_u32 number) {
                             wefti_reduce_piece<false>(worker, wefti_piece_range(mine, piece_units, number), reducer,
                                                       vector, receivers);
                         });
    }
    wefti_call_meet_out(call);
    return wefti_call_end(call, true);
}

/* Whether the slice can go by wefti_reduce_forward. */
WEFTI_DEVICE bool wefti_reduce_can_forward(const weft_dev_team &team, wefti_range range)
{
    const wefti_range longest = wefti_range_part(range, 0, (wefti_u32)team.pes, 1);
    const wefti_u64 part = longest.end - longest.first;
    return part <= team.slot_units && (wefti_u64)(team.pes - 1) * part < range.end - range.first;
}

template <class R>
WEFTI_DEVICE int wefti_reduce(weft_scope scope, const weft_dev_team &team, wefti_slice slice, wefti_way way,
                              const R &reducer, const wefti_vector &vector)
{
    wefti_dev_call call = wefti_call_begin(scope, team, slice.index);
    const wefti_range range = wefti_slice_units(slice, vector.bytes);
    if (way == WEFTI_WAY_PACKED) {
        return wefti_reduce_packed(call, slice, reducer, vector);
    }
    if (way == WEFTI_WAY_FORWARD && wefti_reduce_can_forward(team, range)) {
        return wefti_reduce_forward(call, range, reducer, vector);
    }
    return wefti_reduce_plain(call, slice, reducer, vector);
}

/* ---- inside kernels ---- */

/* dest[k] = source[k] of all members combined. */
template <weft_op OP, class T>
WEFTI_DEVICE int weft_dev_reduce(weft_scope scope, const weft_dev_team &team, T *dest, const T *source, wefti_u64 count)
{
    const wefti_vector vector = {(wefti_u64)dest, (wefti_u64)source, count * sizeof(T), 0};
    wefti_scope_sync(scope);
    if (count == 0) {
        return WEFT_OK;
    }
    return __builtin_expect((team.far_count | team.abroad_count) != 0, 0) &&
                   wefti_dev_is_wide(&team, (wefti_u64)dest, (wefti_u64)source)
               ? wefti_wide_reduce(scope, &team, WEFTI_ALONE, wefti_reducer<T, OP>(), vector)
               : wefti_reduce(scope, team, WEFTI_ALONE, wefti_dev_way(vector.bytes), wefti_reducer<T, OP>(), vector);
}

/* source has `count` elements a member; dest gets the combination of this member's. dest may be its own block. */
template <weft_op OP, class T>
WEFTI_DEVICE int weft_dev_reduce_scatter(weft_scope scope, const weft_dev_team &team, T *dest, const T *source,
                                         wefti_u64 count)
{
    const wefti_vector vector = {(wefti_u64)dest, (wefti_u64)source, count * sizeof(T), count * sizeof(T)};
    wefti_scope_sync(scope);
    if (count == 0) {
        return WEFT_OK;
    }
    return __builtin_expect((team.far_count | team.abroad_count) != 0, 0) &&
                   wefti_dev_is_wide(&team, (wefti_u64)dest, (wefti_u64)source)
               ? wefti_wide_reduce(scope, &team, WEFTI_ALONE, wefti_reducer<T, OP>(), vector)
               : wefti_reduce(scope, team, WEFTI_ALONE, wefti_dev_way(vector.bytes), wefti_reducer<T, OP>(), vector);
}

#endif
