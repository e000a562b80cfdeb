/* coll/step.h: what the algorithms of data collectives are written in.
 *
 * A step is one epoch of the team's scratch (weft/protocol/coll_layout.h): in it a member sends each other member at
 * most one message, which is a word and data of at most a slot's size. All members go through the same number of steps
 * a call. Large data moves between the users' buffers, which the receiver reads (pull) or the sender writes (push).
 *
 * Near members are reached by load and store, others by the transport's put_signal, get and put.
 *
 * An algorithm, in order: wefti_step_sign what only it compares, and wefti_step_carry what its messages hold; in each
 * step post, then await; wefti_step_next before another step; and at its end wefti_step_leave, before it waits until
 * those that read its buffers have left (wefti_step_await_left): the other way round all wait in a circle. */
#ifndef WEFTI_COLL_STEP_H
#define WEFTI_COLL_STEP_H

#include "coll/fold.h"
#include "team/team.h"
#include "weft/coll.h"
#include "weft/protocol/coll_layout.h"
#include "weft/protocol/wait.h"
#include "world/tuning.h"

#define WEFTI_COLL_CHUNKS 4
#define WEFTI_COLL_CHUNK_BYTES WEFTI_FOLD_BYTES /* pieces of long vectors: they stay in the first cache */

/* factor * count, or SIZE_MAX, which no heap holds. */
static inline size_t wefti_coll_times(size_t count, size_t factor)
{
    size_t product;
    return __builtin_mul_overflow(count, factor, &product) ? SIZE_MAX : product;
}

/* A team's private half of its scratch; one allocation. */
struct wefti_coll {
    wefti_coll_area *area;
    wefti_coll_shape shape;
    size_t slot_data_bytes;
    wefti_tuning tuning;
    unsigned char *chunks; /* WEFTI_COLL_CHUNKS of them: 0 stages messages to far members, the others are free */
    uint64_t history; /* a hash of the arguments of all calls so far */
    int parity; /* parity of the number of steps in which members came by bits (alltoall/pairs.c) */
    uint64_t moved; /* what area->moved is once all blocks of all calls so far have been moved */
    int32_t *pending; /* members from which a message of this step is yet to be taken */
    uint64_t left[]; /* by member: a step that it is known to have left */
};
typedef struct wefti_coll wefti_coll;

typedef struct wefti_step {
    weft_team *team;
    wefti_coll *coll;
    const char *call;
    uint64_t epoch;
    uint64_t signature; /* 16 bits above the epoch in each flag: the upper ones of `history`, and wefti_step_sign's */
    size_t count; /* of the call's arguments */
    wefti_span span;
    wefti_coll_ring ring; /* through which the messages go */
    int shared; /* a message is stored once, at its sender, and read there */
    int streams; /* stores of moved data go past the caches */
    int pending; /* how many in coll->pending */
    wefti_waiter waiter;
} wefti_step;

/* What must be equal on all members of a call. It goes into the hash of which 16 bits go with every message. */
typedef struct wefti_call_arguments {
    unsigned kind; /* which collective: a wefti_collective */
    int root;
    size_t count;
    uint64_t more; /* operation and type, or what else must be equal */
} wefti_call_arguments;

/* scratch.c: make the scratch. Collective; the same status on all members. */
weft_status wefti_coll_open(weft_team *team, const char *call);

/* Begin a call with its first step. */
weft_status wefti_step_begin(wefti_step *step, weft_team *team, const char *call,
                             const wefti_call_arguments *arguments);
/* Compare one more number, which only this algorithm has; before its first message. */
void wefti_step_sign(wefti_step *step, uint64_t number);
/* The call has returned `status`, which is returned; `element` bytes each of its count. */
static inline weft_status wefti_step_end(const wefti_step *step, size_t element, weft_status status)
{
    return wefti_team_span_end(step->team, &step->span, step->count * element, status);
}
/* A rule of world/tuning.h names an algorithm that the collective's NAME.c has no case for. The same on all members. */
weft_status wefti_step_no_case(const wefti_step *step, wefti_algorithm algorithm);
/* The call's messages have so many bytes; before the first of them. Without it they are words without data. */
static inline void wefti_step_carry(wefti_step *step, size_t bytes)
{
    step->ring = bytes > WEFTI_COLL_LINE_DATA_BYTES ? WEFTI_COLL_IN_SLOTS : WEFTI_COLL_IN_LINES;
}
/* The call's messages are a word each, without data, and who sends them does not wait for those who receive them:
 * several share a cache line, which brings those who lag behind more than one. Not where many read the one line, since
 * each that has caught up takes it from its writer. Before the first of them. */
static inline void wefti_step_carry_words(wefti_step *step)
{
    step->ring = step->team->oversubscribed ? WEFTI_COLL_IN_LINES : WEFTI_COLL_IN_WORDS;
}
/* The call's messages are alike for all receivers. Where members share processors each is stored once, at its sender,
 * and read there, so that a line goes from processor to processor and not from member to member. Before the first of
 * them. */
static inline void wefti_step_share(wefti_step *step)
{
    step->shared = step->team->oversubscribed;
}
/* Each member pulls, or pushes, so many bytes in this call; before the first of them. What the caches cannot hold of
 * all of them goes past them: such a store does not first read what it replaces. */
static inline void wefti_step_moves(wefti_step *step, size_t bytes)
{
    step->streams = wefti_coll_times(bytes, (size_t)step->team->pes) >= wefti_stream_bytes();
}
/* What this member moved is stored no later than what it stores next. Before the flag that says so. */
static inline void wefti_step_moved(const wefti_step *step)
{
    if (step->streams) {
        wefti_copy_stream_end();
    }
}
/* Leave this step: nobody's slots or buffers of it are read by this member any more. */
static inline void wefti_step_leave(wefti_step *step)
{
    wefti_step_moved(step);
    wefti_st64(&step->coll->area->done, step->epoch, WEFTI_RELEASE);
}
/* Leave this step and begin the next. */
void wefti_step_next(wefti_step *step);

/* Send to member `to`: once a step at most, at most coll->slot_data_bytes. `data` may be any memory. */
weft_status wefti_step_post(wefti_step *step, int to, uint64_t word, const void *data, size_t bytes);
/* The same to all other members, once a step at most. */
weft_status wefti_step_post_all(wefti_step *step, uint64_t word, const void *data, size_t bytes);
/* The message of member `from` in this step. */
weft_status wefti_step_await(wefti_step *step, int from, wefti_coll_slot **slot);
/* The messages of all other members in the order in which they come: expect, then take until *from is -1. */
void wefti_step_expect_all(wefti_step *step);
weft_status wefti_step_take(wefti_step *step, int *from, wefti_coll_slot **slot);
/* Pause between two polls of what others, `from` among them, will store at `address` in this step. Fails if that can
 * not come any more. */
weft_status wefti_step_pause(wefti_step *step, int from, const void *address);
/* All members are known to have begun this step, without a message of each. */
void wefti_step_all_came(wefti_step *step);
/* Members made different calls, `from` and this one among them: the status, and the team is dead. */
weft_status wefti_step_refuse(wefti_step *step, int from);
/* Wait until member `of` has left this step. */
weft_status wefti_step_await_left(wefti_step *step, int of);

/* A word to all others and one from each: all have begun this step, and what they stored before is visible. */
weft_status wefti_step_meet(wefti_step *step);
/* All others have left this step. */
weft_status wefti_step_await_all_left(wefti_step *step);

/* Read from the slot of the window of member `from`, write to that of member `to`. */
weft_status wefti_step_pull(wefti_step *step, int from, void *dest, uint64_t offset, size_t bytes);
weft_status wefti_step_push(wefti_step *step, int to, uint64_t offset, const void *source, size_t bytes);

/* Where member `of` has the byte at `offset`, or NULL when it is far. */
static inline const void *wefti_step_view(const wefti_step *step, int of, uint64_t offset)
{
    const weft_world *world = step->team->world;
    int pe = wefti_member(step->team, of);
    return wefti_pe_is_near(&world->view, pe)
               ? wefti_peer_address(world, (const unsigned char *)world->control + offset, pe)
               : NULL;
}

/* The member `distance` after this one, in a circle. */
static inline int wefti_step_after(const wefti_step *step, int distance)
{
    int to = step->team->pe + distance;
    return to >= step->team->pes ? to - step->team->pes : to;
}

/* Between this member's own buffers; equal ones need nothing. */
static inline void wefti_step_copy(void *dest, const void *source, size_t bytes)
{
    if (bytes > 0 && dest != source) {
        wefti_copy(dest, source, bytes);
    }
}

/* Private memory of WEFTI_COLL_CHUNK_BYTES; index 1 .. WEFTI_COLL_CHUNKS - 1. */
static inline unsigned char *wefti_step_chunk(const wefti_step *step, int index)
{
    return step->coll->chunks + (size_t)index * WEFTI_COLL_CHUNK_BYTES;
}

/* ---- arguments ---- */

/* A buffer of a collective: count elements of `element` bytes, in the symmetric heap. */
weft_status wefti_coll_check_buffer(const weft_team *team, const char *call, const char *name, const void *buffer,
                                    size_t count, size_t element);
#endif
