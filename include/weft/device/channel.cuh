/* weft/device/channel.cuh: what collectives inside kernels are made of: the steps of a channel, packed units, and the
 * meeting of all members.
 *
 * A step has a number, equal on all members, which a call reads from the channel at its beginning and writes there at
 * its end. Data of at most slot_units units a pair goes packed: each 8 bytes with the step's number, stored into the
 * receiver's slot for this sender, so that data and flag are one access and nothing is fenced. A slot of one parity is
 * used again two steps later, when its reader is known to be done with it: a step in which each member waits for all
 * others shows that the step before is over; after one in which they do not (a broadcast), each member tells the others
 * when it has left. More data goes plain, straight to its place, between two meetings: all have come (IN), all are done
 * (OUT).
 *
 * A thread whose wait fails has latched why; it goes on without waiting, so that the scope's barriers match, and all
 * threads return the fault. */
#ifndef WEFTI_DEVICE_CHANNEL_CUH
#define WEFTI_DEVICE_CHANNEL_CUH

#include "weft/device/slice.cuh"
#include "weft/device/sync.cuh"

typedef struct wefti_dev_call {
    weft_scope scope;
    const weft_dev_team *team;
    wefti_u64 channel; /* this PE's */
    wefti_u64 epoch; /* of the step under way */
    int status; /* this thread's */
} wefti_dev_call;

/* ---- where things are ---- */

/* The member `hop` places after this one. */
WEFTI_DEVICE int wefti_call_after(const wefti_dev_call &call, wefti_u32 hop)
{
    int number = call.team->pe + (int)hop;
    return number < call.team->pes ? number : number - call.team->pes;
}

/* Where member `number` has the symmetric `bytes` bytes at `address`; 0 and the status when it has not. FLAT, here and
 * below: for functions that are out of line themselves. */
template <bool FLAT = false>
WEFTI_DEVICE wefti_u64 wefti_call_place(wefti_dev_call &call, wefti_u64 address, wefti_u64 bytes, int number)
{
    const weft_dev *dev = &call.team->world;
    int pe = wefti_dev_member(*call.team, number);
    wefti_u64 at =
        FLAT ? wefti_dev_peer_flat(dev, address, bytes, pe) : wefti_dev_peer(*dev, (const void *)address, bytes, pe);
    if (__builtin_expect(at == 0, 0)) {
        call.status = FLAT ? wefti_dev_latch_here(dev, WEFT_ERR_RANGE, pe) : wefti_dev_no_place(*dev, pe);
    }
    return at;
}

WEFTI_DEVICE wefti_u64 wefti_call_word(const wefti_dev_call &call, wefti_dev_word kind, int writer)
{
    return call.channel + sizeof(wefti_dev_channel) +
           (wefti_u64)((wefti_u32)kind * (wefti_u32)call.team->pes + (wefti_u32)writer) * sizeof(wefti_dev_packed);
}

WEFTI_DEVICE wefti_u64 wefti_call_slot(const wefti_dev_call &call, int writer)
{
    wefti_u32 index = (wefti_u32)(call.epoch & 1) * (wefti_u32)call.team->pes + (wefti_u32)writer;
    return call.channel + sizeof(wefti_dev_channel) + WEFTI_DEV_WORD_BYTES(call.team->pes) +
           index * WEFTI_DEV_SLOT_BYTES(call.team->slot_units);
}

/* ---- waiting, one thread each ---- */

WEFTI_DEVICE int wefti_packed_wait_long_here(const weft_dev *dev, const wefti_dev_packed *word, wefti_u64 epoch, int pe)
{
    int status = WEFT_OK;
    wefti_dev_waiter waiter = {0, 0};
    while (status == WEFT_OK && wefti_ld_packed(word).epoch != epoch) {
        status = wefti_dev_pause_flat(*dev, &waiter);
    }
    return status == WEFT_ERR_TIMEOUT ? wefti_dev_latch_here(dev, status, pe) : status;
}

WEFTI_DEVICE_SLOW int wefti_packed_wait_long(const weft_dev *dev, const wefti_dev_packed *word, wefti_u64 epoch, int pe)
{
    return wefti_packed_wait_long_here(dev, word, epoch, pe);
}

/* The packed word of this step that member `writer` writes; its value, undefined after a failure. */
WEFTI_DEVICE wefti_u64 wefti_packed_wait(wefti_dev_call &call, const wefti_dev_packed *word, int writer)
{
    WEFTI_UNROLL(1)
    for (wefti_u32 looks = 0; looks < WEFTI_DEV_LOOKS && call.status == WEFT_OK; looks++) {
        wefti_dev_packed seen = wefti_ld_packed(word);
        if (seen.epoch == call.epoch) {
            return seen.value;
        }
    }
    if (call.status == WEFT_OK) {
        call.status = wefti_packed_wait_long(&call.team->world, word, call.epoch, wefti_dev_member(*call.team, writer));
    }
    return wefti_ld_packed(word).value;
}

/* Until the flag that member `writer` writes has reached `epoch`, as an acquire. */
template <bool FLAT = false>
WEFTI_DEVICE void wefti_call_wait(wefti_dev_call &call, wefti_dev_word kind, int writer, wefti_u64 epoch)
{
    const wefti_dev_packed *word = (const wefti_dev_packed *)wefti_call_word(call, kind, writer);
    const weft_dev *dev = &call.team->world;
    if (call.status == WEFT_OK) {
        const int status = FLAT ? wefti_dev_wait_here(dev, &word->epoch, WEFT_CMP_GE, epoch)
                                : wefti_dev_wait_word(*dev, &word->epoch, WEFT_CMP_GE, epoch);
        const int pe = wefti_dev_member(*call.team, writer);
        call.status = status != WEFT_ERR_TIMEOUT ? status
                      : FLAT                     ? wefti_dev_latch_here(dev, status, pe)
                                                 : wefti_dev_latch(dev, status, pe);
    }
}

/* ---- steps ---- */

WEFTI_DEVICE wefti_u32 wefti_call_others(const wefti_dev_call &call)
{
    return (wefti_u32)call.team->pes - 1;
}

/* In the step before not each waited for all others: wait until all have left the one before that. */
WEFTI_DEVICE void wefti_call_catch_up(wefti_dev_call &call)
{
    for (wefti_u32 r = call.scope.rank; r < wefti_call_others(call); r += call.scope.size) {
        wefti_call_wait(call, WEFTI_DEV_LEFT, wefti_call_after(call, 1 + r), call.epoch - 2);
    }
    wefti_scope_sync(call.scope);
}

WEFTI_DEVICE wefti_dev_call wefti_call_begin(weft_scope scope, const weft_dev_team &team, wefti_u32 channel)
{
    wefti_dev_call call = {scope, &team, team.channels + channel * team.channel_bytes, 0, WEFT_OK};
    wefti_dev_channel *head = (wefti_dev_channel *)call.channel;
    if (scope.rank == 0) {
        call.status = wefti_dev_use_begin(team.world, &head->in_use);
    }
    wefti_u64 epoch = wefti_ld_relaxed(&head->epoch);
    wefti_u64 met = wefti_ld_relaxed(&head->met);
    call.epoch = epoch + 1;
    if (met != epoch) {
        wefti_call_catch_up(call);
    }
    return call;
}

/* Tell all that this member has left the step. After a barrier of the scope. */
WEFTI_DEVICE void wefti_call_leave(wefti_dev_call &call)
{
    for (wefti_u32 r = call.scope.rank; r < wefti_call_others(call); r += call.scope.size) {
        wefti_u64 word = wefti_call_word(call, WEFTI_DEV_LEFT, call.team->pe);
        wefti_u64 at = wefti_call_place(call, word, sizeof(wefti_dev_packed), wefti_call_after(call, 1 + r));
        if (at != 0) {
            wefti_st_relaxed(&((wefti_dev_packed *)at)->epoch, call.epoch);
        }
    }
}

/* The next step of the same call, after one in which each waited for all others, or in which they did not. */
WEFTI_DEVICE void wefti_call_next_met(wefti_dev_call &call)
{
    wefti_scope_sync(call.scope);
    call.epoch++;
}

WEFTI_DEVICE void wefti_call_next_unmet(wefti_dev_call &call)
{
    wefti_scope_sync(call.scope);
    wefti_call_leave(call);
    call.epoch++;
    wefti_call_catch_up(call);
}

/* The end of a call without data: no step. */
WEFTI_DEVICE int wefti_call_none(const wefti_dev_call &call)
{
    if (call.scope.rank == 0) {
        wefti_dev_use_end(&((wefti_dev_channel *)call.channel)->in_use);
    }
    return WEFT_OK;
}

/* All threads get the status; what all have written is visible to all. `met`: in the last step each waited for all
 * others. */
WEFTI_DEVICE int wefti_call_end(wefti_dev_call &call, bool met)
{
    wefti_dev_channel *head = (wefti_dev_channel *)call.channel;
    int status = wefti_dev_share_any(call.scope, call.team->world, call.status);
    if (call.scope.rank == 0) {
        wefti_st_relaxed(&head->epoch, call.epoch);
        if (met) {
            wefti_st_relaxed(&head->met, call.epoch);
        }
        wefti_dev_use_end(&head->in_use);
    }
    if (!met) {
        wefti_call_leave(call);
    }
    return status;
}

/* ---- packed units ---- */

template <bool FLAT = false>
WEFTI_DEVICE void wefti_unit_send(wefti_dev_call &call, int number, wefti_u32 place, wefti_wide unit)
{
    wefti_u64 at = wefti_call_place<FLAT>(call, wefti_call_slot(call, call.team->pe) + place * sizeof(wefti_dev_packed),
                                          sizeof(wefti_dev_packed), number);
    if (__builtin_expect(at != 0, 1)) {
        wefti_st_packed((wefti_dev_packed *)at, wefti_wide_low(unit), call.epoch);
        wefti_st_packed((wefti_dev_packed *)at + call.team->slot_units, wefti_wide_high(unit), call.epoch);
    }
}

/* A slot has two planes, so that neighbouring threads store next to each other: the low halves, and the high ones. */

/* Whether the unit of this step has come. */
WEFTI_DEVICE bool wefti_unit_look(const wefti_dev_call &call, int number, wefti_u32 place, wefti_wide *unit)
{
    const wefti_dev_packed *at = (const wefti_dev_packed *)wefti_call_slot(call, number) + place;
    wefti_dev_packed low = wefti_ld_packed(at);
    wefti_dev_packed high = wefti_ld_packed(at + call.team->slot_units);
    *unit = wefti_wide_of(low.value, high.value);
    return low.epoch == call.epoch && high.epoch == call.epoch;
}

WEFTI_DEVICE int wefti_unit_wait_long_here(const weft_dev *dev, wefti_u64 at, wefti_u32 apart, wefti_u64 epoch, int pe)
{
    int status = wefti_packed_wait_long_here(dev, (const wefti_dev_packed *)at, epoch, pe);
    return status == WEFT_OK ? wefti_packed_wait_long_here(dev, (const wefti_dev_packed *)at + apart, epoch, pe)
                             : status;
}

WEFTI_DEVICE_SLOW int wefti_unit_wait_long(const weft_dev *dev, wefti_u64 at, wefti_u32 apart, wefti_u64 epoch, int pe)
{
    return wefti_unit_wait_long_here(dev, at, apart, epoch, pe);
}

/* Of each of the M places place, place + step and so on, look at the units of those of the members first ..
 * first + N - 1 that are `wanted`, a bit each; whether all have come. */
template <int M, int N>
WEFTI_DEVICE bool wefti_units_look(const wefti_dev_call &call, int first, wefti_u32 wanted, wefti_u32 place,
                                   wefti_u32 step, wefti_wide (&units)[M][N])
{
    bool are_there = true;
    WEFTI_UNROLL(M)
    for (int m = 0; m < M; m++) {
        WEFTI_UNROLL(N)
        for (int j = 0; j < N; j++) {
            if ((wanted >> j & 1) != 0) {
                are_there &= wefti_unit_look(call, first + j, place + (wefti_u32)m * step, &units[m][j]);
            }
        }
    }
    return are_there;
}

/* The units that they have sent there. Undefined after a failure. */
template <bool FLAT, int M, int N>
WEFTI_DEVICE void wefti_units_receive(wefti_dev_call &call, int first, wefti_u32 wanted, wefti_u32 place,
                                      wefti_u32 step, wefti_wide (&units)[M][N])
{
    WEFTI_UNROLL(1)
    for (wefti_u32 looks = 0; looks < WEFTI_DEV_LOOKS && call.status == WEFT_OK; looks++) {
        if (wefti_units_look(call, first, wanted, place, step, units)) {
            return;
        }
    }
    WEFTI_UNROLL(1)
    for (int i = 0; i < M * N; i++) {
        const int j = i % N;
        if ((wanted >> j & 1) != 0 && call.status == WEFT_OK) {
            const wefti_u64 at =
                wefti_call_slot(call, first + j) + (place + (wefti_u32)(i / N) * step) * sizeof(wefti_dev_packed);
            const int pe = wefti_dev_member(*call.team, first + j);
            call.status = FLAT ? wefti_unit_wait_long_here(&call.team->world, at, call.team->slot_units, call.epoch, pe)
                               : wefti_unit_wait_long(&call.team->world, at, call.team->slot_units, call.epoch, pe);
        }
    }
    (void)wefti_units_look(call, first, wanted, place, step, units);
}

template <bool FLAT = false>
WEFTI_DEVICE wefti_wide wefti_unit_receive(wefti_dev_call &call, int number, wefti_u32 place)
{
    wefti_wide unit[1][1];
    wefti_units_receive<FLAT>(call, number, 1, place, 0, unit);
    return unit[0][0];
}

/* Units in flight a thread, where a thread or a warp has many of them; a block's threads have one each. */
#define WEFTI_UNITS_IN_FLIGHT 4

/* A unit of those that a call sends or receives. */
typedef struct wefti_unit_at {
    int number; /* of the other member */
    wefti_u32 place;
} wefti_unit_at;

/* The i-th of `units` units of each other member. */
WEFTI_DEVICE wefti_unit_at wefti_unit_of_all(const wefti_dev_call &call, wefti_u32 units, wefti_u32 i)
{
    const wefti_u32 hop = i / units;
    const wefti_unit_at at = {wefti_call_after(call, 1 + hop), i - hop * units};
    return at;
}

/* N units from the i-th on, all loaded before the first goes. */
template <int N, bool FLAT, class From>
WEFTI_DEVICE void wefti_units_send_all(wefti_dev_call &call, wefti_u32 units, wefti_u32 i, const From &from)
{
    wefti_wide unit[N];
    WEFTI_UNROLL(N)
    for (wefti_u32 k = 0; k < N; k++) {
        const wefti_unit_at at = wefti_unit_of_all(call, units, i + k * call.scope.size);
        unit[k] = from(at.number, at.place);
    }
    WEFTI_UNROLL(N)
    for (wefti_u32 k = 0; k < N; k++) {
        const wefti_unit_at at = wefti_unit_of_all(call, units, i + k * call.scope.size);
        wefti_unit_send<FLAT>(call, at.number, at.place, unit[k]);
    }
}

/* Send every other member `units` units. from(member, place) is the unit. */
template <bool FLAT = false, class From>
WEFTI_DEVICE void wefti_call_send_all(wefti_dev_call &call, wefti_u32 units, const From &from)
{
    const wefti_u32 count = wefti_call_others(call) * units;
    wefti_u32 i = call.scope.rank;
    if (call.scope.kind != WEFTI_SCOPE_BLOCK) {
        WEFTI_UNROLL(1)
        for (; i + (WEFTI_UNITS_IN_FLIGHT - 1) * call.scope.size < count;
             i += WEFTI_UNITS_IN_FLIGHT * call.scope.size) {
            wefti_units_send_all<WEFTI_UNITS_IN_FLIGHT, FLAT>(call, units, i, from);
        }
    }
    WEFTI_UNROLL(1)
    for (; i < count; i += call.scope.size) {
        wefti_units_send_all<1, FLAT>(call, units, i, from);
    }
}

/* The units of a call that where(i), where(i + the scope's size) and so on name. to(member, place, unit) takes each. */
template <int N, class Where, class To>
WEFTI_DEVICE void wefti_units_receive_each(wefti_dev_call &call, wefti_u32 i, const Where &where, const To &to)
{
    wefti_wide unit[N];
    bool are_there = false;
    WEFTI_UNROLL(1)
    for (wefti_u32 looks = 0; looks < WEFTI_DEV_LOOKS && !are_there && call.status == WEFT_OK; looks++) {
        are_there = true;
        WEFTI_UNROLL(N)
        for (wefti_u32 k = 0; k < N; k++) {
            const wefti_unit_at at = where(i + k * call.scope.size);
            are_there &= wefti_unit_look(call, at.number, at.place, &unit[k]);
        }
    }
    if (!are_there) { /* one after another: it is long already */
        WEFTI_UNROLL(1)
        for (wefti_u32 k = 0; k < N && call.status == WEFT_OK; k++) {
            const wefti_unit_at at = where(i + k * call.scope.size);
            call.status = wefti_unit_wait_long(
                &call.team->world, wefti_call_slot(call, at.number) + at.place * sizeof(wefti_dev_packed),
                call.team->slot_units, call.epoch, wefti_dev_member(*call.team, at.number));
        }
        WEFTI_UNROLL(N)
        for (wefti_u32 k = 0; k < N; k++) {
            const wefti_unit_at at = where(i + k * call.scope.size);
            (void)wefti_unit_look(call, at.number, at.place, &unit[k]);
        }
    }
    WEFTI_UNROLL(N)
    for (wefti_u32 k = 0; k < N; k++) {
        const wefti_unit_at at = where(i + k * call.scope.size);
        if (call.status == WEFT_OK) {
            to(at.number, at.place, unit[k]);
        }
    }
}

template <class Where, class To>
WEFTI_DEVICE void wefti_call_receive_each(wefti_dev_call &call, wefti_u32 count, const Where &where, const To &to)
{
    wefti_u32 i = call.scope.rank;
    if (call.scope.kind != WEFTI_SCOPE_BLOCK) {
        WEFTI_UNROLL(1)
        for (; i + (WEFTI_UNITS_IN_FLIGHT - 1) * call.scope.size < count;
             i += WEFTI_UNITS_IN_FLIGHT * call.scope.size) {
            wefti_units_receive_each<WEFTI_UNITS_IN_FLIGHT>(call, i, where, to);
        }
    }
    WEFTI_UNROLL(1)
    for (; i < count; i += call.scope.size) {
        const wefti_unit_at at = where(i);
        const wefti_wide unit = wefti_unit_receive(call, at.number, at.place);
        if (call.status == WEFT_OK) {
            to(at.number, at.place, unit);
        }
    }
}

/* Receive from every other member; to(member, place, unit) takes it. */
template <class To> WEFTI_DEVICE void wefti_call_receive_all(wefti_dev_call &call, wefti_u32 units, const To &to)
{
    wefti_call_receive_each(
        call, wefti_call_others(call) * units, [&](wefti_u32 i) { return wefti_unit_of_all(call, units, i); }, to);
}

/* ---- meetings ---- */

/* Tell each other member that this one has come, and value(member) with it; wait for all. */
template <class Value> WEFTI_DEVICE void wefti_call_meet_in(wefti_dev_call &call, const Value &value)
{
    wefti_u64 mine = wefti_call_word(call, WEFTI_DEV_IN, call.team->pe);
    for (wefti_u32 r = call.scope.rank; r < wefti_call_others(call); r += call.scope.size) {
        int number = wefti_call_after(call, 1 + r);
        wefti_u64 at = wefti_call_place(call, mine, sizeof(wefti_dev_packed), number);
        if (at != 0) {
            wefti_st_packed((wefti_dev_packed *)at, value(number), call.epoch);
        }
    }
    for (wefti_u32 r = call.scope.rank; r < wefti_call_others(call); r += call.scope.size) {
        int number = wefti_call_after(call, 1 + r);
        (void)wefti_packed_wait(call, (const wefti_dev_packed *)wefti_call_word(call, WEFTI_DEV_IN, number), number);
    }
    wefti_scope_sync(call.scope);
}

/* The same, after which members load what others have at their addresses: what the scope's threads have stored
 * themselves. What earlier kernels of a stream have stored is there anyway. */
WEFTI_DEVICE void wefti_call_meet_in_to_load(wefti_dev_call &call, wefti_slice slice)
{
    const bool tells = call.scope.rank < wefti_call_others(call);
    if (slice.is_alone && tells) {
        wefti_fence_acq_rel();
    }
    wefti_call_meet_in(call, [](int) { return (wefti_u64)0; });
    if (slice.is_alone) {
        if (tells) {
            wefti_fence_acq_rel();
        }
        wefti_scope_sync(call.scope);
    }
}

/* What another member said when it came. */
WEFTI_DEVICE wefti_u64 wefti_call_said(const wefti_dev_call &call, int number)
{
    return wefti_ld_packed((const wefti_dev_packed *)wefti_call_word(call, WEFTI_DEV_IN, number)).value;
}

/* Tell each other member `epoch` in the flag `kind`, after all that the scope has stored. */
WEFTI_DEVICE void wefti_call_flag_all(wefti_dev_call &call, wefti_dev_word kind, wefti_u64 epoch)
{
    wefti_scope_sync(call.scope);
    if (call.scope.rank >= wefti_call_others(call)) {
        return;
    }
    wefti_fence_acq_rel();
    for (wefti_u32 r = call.scope.rank; r < wefti_call_others(call); r += call.scope.size) {
        wefti_u64 at = wefti_call_place(call, wefti_call_word(call, kind, call.team->pe), sizeof(wefti_dev_packed),
                                        wefti_call_after(call, 1 + r));
        if (at != 0) {
            wefti_st_relaxed(&((wefti_dev_packed *)at)->epoch, epoch);
        }
    }
}

/* This member has done what it does to others' buffers; so have they when this returns. Before wefti_call_end. */
WEFTI_DEVICE void wefti_call_meet_out(wefti_dev_call &call)
{
    wefti_call_flag_all(call, WEFTI_DEV_OUT, call.epoch);
    for (wefti_u32 r = call.scope.rank; r < wefti_call_others(call); r += call.scope.size) {
        wefti_call_wait(call, WEFTI_DEV_OUT, wefti_call_after(call, 1 + r), call.epoch);
    }
}

#endif
