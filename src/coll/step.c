/* Steps: messages through the scratch, and reads and writes of the members' buffers. */
#include "coll/step.h"

#include "base/error.h"
#include "common/mix.h"

_Static_assert(WEFTI_COUNTER_alltoalls - WEFTI_COUNTER_broadcasts == (int)WEFTI_COLL_ALLTOALL &&
                   WEFTI_COUNTER_scans - WEFTI_COUNTER_broadcasts == (int)WEFTI_COLL_SCAN,
               "collectives are counted in the order of their table");

/* A hash of the arguments of all calls so far, whose highest bits go above the epoch. Of all calls, since in some, as a
 * broadcast, members need not read from each other: two roots show in a later call only. */
static uint64_t history_with(uint64_t history, const wefti_call_arguments *arguments)
{
    uint64_t mix = history ^ ((uint64_t)arguments->kind << 32 | (unsigned)arguments->root);
    mix = wefti_mix(mix ^ mix >> 32 ^ arguments->count);
    return wefti_mix(mix ^ mix >> 32 ^ arguments->more);
}

void wefti_step_sign(wefti_step *step, uint64_t number)
{
    step->signature ^= wefti_mix(number) & ~WEFTI_COLL_EPOCH_MASK;
}

weft_status wefti_step_no_case(const wefti_step *step, wefti_algorithm algorithm)
{
    return wefti_error(
        WEFT_ERR_UNSUPPORTED,
        "%s: a rule of src/world/tuning.h names the algorithm \"%s\", and src/coll has no case for it in "
        "this collective",
        step->call, wefti_algorithm_name(algorithm));
}

weft_status wefti_step_begin(wefti_step *step, weft_team *team, const char *call, const wefti_call_arguments *arguments)
{
    WEFT_TRY(wefti_team_check(team, call));
    wefti_team_count(team, WEFTI_COUNTER_broadcasts + arguments->kind);
    step->count = arguments->count;
    step->span.world = NULL;
    if (WEFTI_UNLIKELY(team->world->timeline != NULL)) {
        step->span = wefti_span_begin(team->world, call);
    }
    if (WEFTI_UNLIKELY(team->coll == NULL)) {
        WEFT_TRY(wefti_coll_open(team, call));
    }
    wefti_coll_area *area = team->coll->area;
    step->team = team;
    step->coll = team->coll;
    step->call = call;
    step->epoch = wefti_ld64(&area->entered, WEFTI_RELAXED) + 1;
    step->coll->history = history_with(step->coll->history, arguments);
    step->signature = step->coll->history & ~WEFTI_COLL_EPOCH_MASK;
    step->ring = WEFTI_COLL_IN_LINES;
    step->shared = 0;
    step->streams = 0;
    step->pending = 0;
    step->waiter = wefti_team_waiter(team, call);
    wefti_st64(&area->marks[step->epoch % WEFTI_COLL_MARKS], step->epoch | step->signature, WEFTI_RELAXED);
    wefti_st64(&area->entered, step->epoch, WEFTI_RELEASE);
    return WEFT_OK;
}

void wefti_step_next(wefti_step *step)
{
    wefti_step_leave(step);
    step->epoch++;
    wefti_st64(&step->coll->area->entered, step->epoch, WEFTI_RELEASE);
}

weft_status wefti_step_refuse(wefti_step *step, int from)
{
    (void)wefti_error(WEFT_ERR_MISMATCH,
                      "%s: PEs %d and %d of the team made different calls or gave different arguments; collective "
                      "calls need the same on all members",
                      step->call, step->team->pe < from ? step->team->pe : from,
                      step->team->pe < from ? from : step->team->pe);
    return wefti_team_fail(step->team, WEFT_ERR_MISMATCH, step->call, NULL, 0);
}

/* Whether member `i` began another call where this one began this or one of the last before it. */
static int is_other_call(const wefti_step *step, int i)
{
    for (unsigned k = 0; k < WEFTI_COLL_MARKS; k++) {
        const uint64_t *mark = &step->coll->area->marks[k];
        uint64_t mine = wefti_ld64(mark, WEFTI_RELAXED);
        uint64_t theirs;
        if (wefti_world_read_soon(step->team->world, mark, wefti_member(step->team, i), &theirs) != WEFT_OK) {
            return 0;
        }
        if (theirs != mine && ((theirs ^ mine) & WEFTI_COLL_EPOCH_MASK) == 0) {
            return 1;
        }
    }
    return 0;
}

/* A wait has failed. If that is because a member is in another call, say so. */
static weft_status fail_wait(wefti_step *step, weft_status status, const uint64_t *epoch_word, uint64_t epoch)
{
    for (int i = 0; i < step->team->pes && status == WEFT_ERR_TIMEOUT; i++) {
        if (is_other_call(step, i)) {
            return wefti_step_refuse(step, i);
        }
    }
    return wefti_team_fail(step->team, status, step->call, epoch_word, epoch);
}

/* Wait until member `of` has left step `epoch`. */
static weft_status await_left(wefti_step *step, int of, uint64_t epoch)
{
    wefti_coll *coll = step->coll;
    weft_team *team = step->team;
    int pe = wefti_member(team, of);
    for (;;) {
        uint64_t left;
        weft_status status = wefti_world_read(team->world, &coll->area->done, pe, &left);
        if (status == WEFT_OK && left >= epoch) {
            coll->left[of] = left;
            wefti_waiter_renew(&step->waiter);
            return WEFT_OK;
        }
        if (status == WEFT_OK) {
            const void *done = wefti_step_view(step, of, wefti_slot_offset(step->team->world, &coll->area->done));
            status = wefti_team_pause(team, &step->waiter, done, &coll->area->done, epoch, of);
        }
        if (WEFTI_UNLIKELY(status != WEFT_OK)) {
            return fail_wait(step, status, &coll->area->done, epoch);
        }
    }
}

/* To a member beyond the link domain: one message of word and data. */
static weft_status post_far(wefti_step *step, wefti_coll_slot *slot, int pe, uint64_t word, const void *data,
                            size_t bytes)
{
    unsigned char *message = step->coll->chunks;
    memcpy(message, &word, sizeof word);
    if (bytes > 0) {
        wefti_copy(message + sizeof word, data, bytes);
    }
    weft_status status = wefti_world_put_flag(step->team->world, &slot->word, message, sizeof word + bytes, &slot->flag,
                                              step->epoch | step->signature, pe);
    return status == WEFT_OK ? WEFT_OK
                             : wefti_team_fail(step->team, status, step->call, &step->coll->area->entered, step->epoch);
}

/* Wait until member `to` has left the step whose line, slot or word comes round in this one. */
static inline weft_status await_slot(wefti_step *step, int to)
{
    unsigned ring = step->ring == WEFTI_COLL_IN_SLOTS ? WEFTI_COLL_SLOTS : step->coll->shape.lines;
    uint64_t left = step->coll->left[to];
    if (WEFTI_UNLIKELY(step->epoch > left + ring)) {
        return await_left(step, to, step->epoch - ring);
    }
    return WEFT_OK;
}

static inline void write_message(const wefti_step *step, wefti_coll_slot *slot, uint64_t word, const void *data,
                                 size_t bytes)
{
    wefti_st64(&slot->word, word, WEFTI_RELAXED);
    if (bytes == sizeof(uint64_t)) {
        wefti_copy(wefti_coll_slot_data(slot), data, sizeof(uint64_t));
    } else if (bytes > 0) {
        wefti_copy(wefti_coll_slot_data(slot), data, bytes);
    }
    wefti_st64(&slot->flag, step->epoch | step->signature, WEFTI_RELEASE);
}

static inline wefti_coll_slot *slot_of(const wefti_step *step, int source)
{
    return wefti_coll_slot_of(step->coll->area, &step->coll->shape, (unsigned)source, step->epoch, step->ring);
}

weft_status wefti_step_post(wefti_step *step, int to, uint64_t word, const void *data, size_t bytes)
{
    weft_team *team = step->team;
    WEFT_TRY(await_slot(step, to));
    int pe = wefti_member(team, to);
    wefti_coll_slot *slot = slot_of(step, team->pe);
    if (WEFTI_UNLIKELY(!wefti_pe_is_near(&team->world->view, pe))) {
        return post_far(step, slot, pe, word, data, bytes);
    }
    write_message(step, wefti_peer_address(team->world, slot, pe), word, data, bytes);
    return WEFT_OK;
}

weft_status wefti_step_post_all(wefti_step *step, uint64_t word, const void *data, size_t bytes)
{
    int pes = step->team->pes;
    for (int i = 1; i < pes; i++) {
        int to = wefti_step_after(step, i);
        WEFT_TRY(step->shared ? await_slot(step, to) : wefti_step_post(step, to, word, data, bytes));
    }
    if (step->shared) {
        write_message(step, slot_of(step, step->team->pe), word, data, bytes);
    }
    return WEFT_OK;
}

/* Where the message of member `from` comes: here, or with its sender. */
static wefti_coll_slot *slot_from(const wefti_step *step, int from)
{
    wefti_coll_slot *slot = slot_of(step, from);
    return step->shared ? wefti_peer_address(step->team->world, slot, wefti_member(step->team, from)) : slot;
}

/* Whether this flag is that of this step. */
static int has_come(const wefti_step *step, uint64_t flag)
{
    return (flag & WEFTI_COLL_EPOCH_MASK) == step->epoch;
}

/* Member `i` is in this step, so it has left the one before. */
static void note_came(wefti_step *step, int i)
{
    if (step->coll->left[i] + 1 < step->epoch) {
        step->coll->left[i] = step->epoch - 1;
    }
}

void wefti_step_all_came(wefti_step *step)
{
    for (int i = 0; i < step->team->pes; i++) {
        note_came(step, i);
    }
}

static weft_status accept(wefti_step *step, int from, uint64_t flag)
{
    if (WEFTI_UNLIKELY(flag != (step->epoch | step->signature))) {
        return wefti_step_refuse(step, from);
    }
    note_came(step, from);
    wefti_waiter_renew(&step->waiter);
    return WEFT_OK;
}

/* It is not there yet. Who has given way before in this wait looks whether it will never be: mostly once is enough. */
weft_status wefti_step_pause(wefti_step *step, int from, const void *address)
{
    uint64_t *entered = &step->coll->area->entered;
    int is_slow = step->waiter.start_ns != 0;
    if (WEFTI_UNLIKELY(is_slow && wefti_pe_is_near(&step->team->world->view, wefti_member(step->team, from)) &&
                       is_other_call(step, from))) {
        return wefti_step_refuse(step, from);
    }
    weft_status status = wefti_team_pause(step->team, &step->waiter, address, entered, step->epoch, from);
    return WEFTI_LIKELY(status == WEFT_OK) ? WEFT_OK : fail_wait(step, status, entered, step->epoch);
}

static weft_status pause_for(wefti_step *step, int from)
{
    return wefti_step_pause(step, from, &slot_from(step, from)->flag);
}

weft_status wefti_step_await(wefti_step *step, int from, wefti_coll_slot **slot)
{
    wefti_coll_slot *mine = slot_from(step, from);
    uint64_t flag = wefti_ld64(&mine->flag, WEFTI_ACQUIRE);
    while (!has_come(step, flag)) {
        WEFT_TRY(pause_for(step, from));
        flag = wefti_ld64(&mine->flag, WEFTI_ACQUIRE);
    }
    *slot = mine;
    return accept(step, from, flag);
}

void wefti_step_expect_all(wefti_step *step)
{
    step->pending = 0;
    for (int i = step->team->pes - 1; i > 0; i--) {
        step->coll->pending[step->pending++] = wefti_step_after(step, i);
    }
}

weft_status wefti_step_take(wefti_step *step, int *from, wefti_coll_slot **slot)
{
    int32_t *pending = step->coll->pending;
    *from = -1;
    while (step->pending > 0) {
        for (int i = step->pending - 1; i >= 0; i--) {
            wefti_coll_slot *mine = slot_from(step, pending[i]);
            uint64_t flag = wefti_ld64(&mine->flag, WEFTI_ACQUIRE);
            if (has_come(step, flag)) {
                *from = pending[i];
                *slot = mine;
                pending[i] = pending[--step->pending];
                return accept(step, *from, flag);
            }
        }
        /* all of them come without this member doing anything, so one word stands for all */
        WEFT_TRY(pause_for(step, pending[0]));
    }
    return WEFT_OK;
}

weft_status wefti_step_await_left(wefti_step *step, int of)
{
    return await_left(step, of, step->epoch);
}

weft_status wefti_step_meet(wefti_step *step)
{
    wefti_coll_slot *slot;
    wefti_step_share(step);
    WEFT_TRY(wefti_step_post_all(step, 0, NULL, 0));
    for (int i = step->team->pes - 1; i > 0; i--) {
        WEFT_TRY(wefti_step_await(step, wefti_step_after(step, i), &slot));
    }
    return WEFT_OK;
}

weft_status wefti_step_await_all_left(wefti_step *step)
{
    for (int i = 1; i < step->team->pes; i++) {
        WEFT_TRY(wefti_step_await_left(step, wefti_step_after(step, i)));
    }
    return WEFT_OK;
}

/* ---- the users' buffers ---- */

static weft_status carried(wefti_step *step, weft_status status)
{
    return status == WEFT_OK ? WEFT_OK
                             : wefti_team_fail(step->team, status, step->call, &step->coll->area->entered, step->epoch);
}

static inline void copy_near(const wefti_step *step, void *dest, const void *source, size_t bytes)
{
    if (step->streams) {
        wefti_copy_stream(dest, source, bytes);
    } else {
        wefti_copy(dest, source, bytes);
    }
}

weft_status wefti_step_pull(wefti_step *step, int from, void *dest, uint64_t offset, size_t bytes)
{
    if (bytes == 0) {
        return WEFT_OK;
    }
    const void *near = wefti_step_view(step, from, offset);
    if (WEFTI_LIKELY(near != NULL)) {
        copy_near(step, dest, near, bytes);
        return WEFT_OK;
    }
    int pe = wefti_member(step->team, from);
    wefti_transport *transport = wefti_world_transport(step->team->world, pe);
    return carried(step, transport->ops->get(transport, pe, offset, dest, bytes));
}

weft_status wefti_step_push(wefti_step *step, int to, uint64_t offset, const void *source, size_t bytes)
{
    if (bytes == 0) {
        return WEFT_OK;
    }
    const void *near = wefti_step_view(step, to, offset);
    if (WEFTI_LIKELY(near != NULL)) {
        copy_near(step, (void *)(uintptr_t)near, source, bytes);
        return WEFT_OK;
    }
    int pe = wefti_member(step->team, to);
    wefti_transport *transport = wefti_world_transport(step->team->world, pe);
    return carried(step, transport->ops->put(transport, pe, offset, source, bytes));
}

/* ---- arguments ---- */

weft_status wefti_coll_check_buffer(const weft_team *team, const char *call, const char *name, const void *buffer,
                                    size_t count, size_t element)
{
    size_t bytes = wefti_coll_times(count, element);
    WEFT_TRY(wefti_team_expect(team, call));
    if (WEFTI_LIKELY(bytes == 0 ||
                     (buffer != NULL && wefti_is_near(team->world, buffer, bytes, (int)team->world->view.pe)))) {
        return WEFT_OK;
    }
    if (buffer == NULL) {
        return wefti_error_null(call, name);
    }
    return wefti_error(WEFT_ERR_RANGE,
                       "%s: the %s, %zu elements of %zu bytes at %p, is not in the symmetric heap of world \"%s\"; "
                       "allocate it with weft_malloc of this world",
                       call, name, count, element, buffer, team->world->name);
}
