/* weft/device/dev.h: what a kernel is told of a world and of a team: plain structs, passed by value.
 *
 * Compiled by C, C++, nvcc and NVRTC, so no standard header is included. Fields may be appended, with a new
 * WEFT_DEV_ABI; none is moved or changes its meaning. A kernel never keeps state here: what changes while it runs lies
 * in the memory that these structs point to. */
#ifndef WEFT_DEVICE_DEV_H
#define WEFT_DEVICE_DEV_H

#define WEFT_DEV_ABI 6

typedef unsigned int wefti_u32;
typedef int wefti_i32;
typedef unsigned long long wefti_u64;
typedef long long wefti_i64;

/* A PE whose number is in the range of near ones but that load and store do not reach. */
#define WEFTI_DEV_FAR ((wefti_i64)(-0x7fffffffffffffffLL - 1))

/* Registered memory: the byte at `a` here is at a + delta[p - near_first] on PE p. */
typedef struct wefti_dev_region {
    wefti_u64 base;
    wefti_u64 bytes;
    const wefti_i64 *delta;
    wefti_u64 number; /* the same on all PEs */
} wefti_dev_region;

/* All of a PE's, in its own device memory: the head; one region of no bytes at address 0, then `used` in the order of
 * their addresses; then the base of each by its number; then the deltas. */
typedef struct wefti_dev_regions {
    wefti_u64 used;
    wefti_u64 unused;
} wefti_dev_regions;

#define WEFTI_DEV_REGIONS_MAX 65535

/* First in each PE's slot of the device window. The words of the first line are read by other PEs, those of the second
 * are this PE's: written by the host at any time, read by its kernels. */
typedef struct wefti_dev_control {
    wefti_u64 proof[2]; /* what this PE told the others over the host: who reads it here can load and store here */
    wefti_u64 unused_proof[14];

    wefti_u64 deadline_ns;
    wefti_u64 fault; /* 0, or the first fault: WEFTI_DEV_FAULT_SET | (culprit PE + 1) << 32 | -status */
    wefti_u64 abort; /* address of this PE's abort word in host memory; 0: not mapped */
    wefti_u64 host_fault; /* address of the word in host memory that gets a copy of `fault`; 0: not mapped */
    wefti_u64
        region_version; /* counts (un)registrations; region_tables[version & 1] is the table then, of version 0 none */
    wefti_u64 ring; /* address of this PE's wefti_dev_ring; 0: load and store reach every PE */
    wefti_u64 ring_tail; /* requests that this PE's kernels have made, ever */
    wefti_u64 ring_end; /* a copy of the ring's end, as its kernels have seen it */
    wefti_u64 region_tables[2]; /* addresses of wefti_dev_regions: the other one is made before the version grows */
    wefti_u64 unused[6];
} wefti_dev_control;

#define WEFTI_DEV_FAULT_SET ((wefti_u64)1 << 63)

/* One member's flags of a team, in symmetric device memory, zero before first use.
 *   epoch     the step at which this member has arrived; written by its own kernels only
 *   arrivals  how many arrivals of others this member has been told of, ever: each member adds 1 to every other's at
 *             every step. Step e is over when it has reached e * (members - 1): nobody arrives at e + 1 before all have
 *             arrived at e, so an early arrival never stands in for a missing one. */
typedef struct wefti_dev_team_area {
    wefti_u64 epoch;
    wefti_u64 in_use; /* as a channel's */
    wefti_u64 unused_epoch[14];
    wefti_u64 arrivals;
    wefti_u64 unused_arrivals[15];
} wefti_dev_team_area;

/* A collective runs through one channel, or several side by side, each of which takes a slice of the data. A channel
 * has steps, numbered equally on all members; nothing is cleaned between them. In symmetric device memory, zero before
 * first use: this head, then for each kind of word one a member that writes it, then the slots: for the two parities of
 * the step, for each member that writes there, a plane of packed words for the low halves of units of 16 bytes, and one
 * for the high halves.
 *   epoch   the last step that this member has finished; written by its own kernels only
 *   met     the last step in which every member waited for every other, so that all had finished the one before
 *   in_use  1 while a call runs through it; only with WEFT_DEVICE_CHECKS
 *   drawn   in the first channel: pieces of the data that this member's warps have taken; goes back to 0 by itself */
typedef struct wefti_dev_channel {
    wefti_u64 epoch;
    wefti_u64 met;
    wefti_u64 drawn;
    wefti_u64 in_use;
    wefti_u64 unused[12];
} wefti_dev_channel;

/* 16 bytes that are written and read at once: data, and the step it belongs to. */
typedef struct wefti_dev_packed {
    wefti_u64 value;
    wefti_u64 epoch;
} wefti_dev_packed;

/* IN: this member has entered step `epoch`, its buffers may be used. OUT: it has done what it does to others'. LEFT: it
 * has finished a step in which not each waited for all others. */
typedef enum wefti_dev_word { WEFTI_DEV_IN = 0, WEFTI_DEV_OUT, WEFTI_DEV_LEFT, WEFTI_DEV_WORDS } wefti_dev_word;

#define WEFTI_DEV_UNIT 16
#define WEFTI_DEV_WORD_BYTES(pes)                                                                                      \
    (((wefti_u64)WEFTI_DEV_WORDS * (wefti_u64)(pes) * sizeof(wefti_dev_packed) + 127) / 128 * 128)
/* Up to here, a pair, a scope sends packed: a slot of the channel of kernels has room for it. */
#define WEFTI_DEV_PACKED_BYTES 4096
#define WEFTI_DEV_SLOT_BYTES(units) ((wefti_u64)(units)*2 * sizeof(wefti_dev_packed))
#define WEFTI_DEV_CHANNEL_BYTES(pes, units)                                                                            \
    (sizeof(wefti_dev_channel) + WEFTI_DEV_WORD_BYTES(pes) + 2 * (wefti_u64)(pes)*WEFTI_DEV_SLOT_BYTES(units))

/* ---- PEs that load and store do not reach ----
 * Their memory is reached by requests: a ring of entries in this PE's host memory, which a thread of the host, its
 * proxy, takes in order and carries to the PE they are for. Requests to one PE take effect in the order of their
 * tickets. */

/* A symmetric byte, as every PE calls it: what it is in, and where. 0: nowhere. */
#define WEFTI_DEV_OFFSET_BITS 46
#define WEFTI_DEV_PLACE(space, offset) ((wefti_u64)(space) << WEFTI_DEV_OFFSET_BITS | (wefti_u64)(offset))
#define WEFTI_DEV_PLACE_SPACE(place) ((int)((place) >> WEFTI_DEV_OFFSET_BITS))
#define WEFTI_DEV_PLACE_OFFSET(place) ((place) & (((wefti_u64)1 << WEFTI_DEV_OFFSET_BITS) - 1))
typedef enum wefti_dev_space {
    WEFTI_DEV_SPACE_DEVICE = 1, /* the device heap */
    WEFTI_DEV_SPACE_HOST,
    WEFTI_DEV_SPACE_REGION /* and those after it: registered memory, by its number */
} wefti_dev_space;

typedef enum wefti_dev_request_kind {
    WEFTI_DEV_REQUEST_PUT = 1, /* data to place */
    WEFTI_DEV_REQUEST_GET, /* the answer has the data */
    WEFTI_DEV_REQUEST_AMO, /* op: a wefti_dev_amo; the answer has the value before */
    WEFTI_DEV_REQUEST_SIGNAL, /* op: a weft_signal_op */
    /* (5: between proxies and the library's own kernels.) Long ones, whose data is not in the request, but in memory
     * that the proxy's copies reach, at `value`: */
    WEFTI_DEV_REQUEST_LONG_PUT = 6, /* from there to place */
    WEFTI_DEV_REQUEST_LONG_GET /* from place to there */
} wefti_dev_request_kind;

/* What the answer to a request, if its caller waits for one, tells: */
typedef enum wefti_dev_answer {
    WEFTI_DEV_ANSWER_NONE = 0,
    WEFTI_DEV_ANSWER_DONE, /* it has taken effect */
    WEFTI_DEV_ANSWER_READ /* LONG_PUT: the source has been read */
} wefti_dev_answer;

/* The values of wefti_amo_op, and what only kernels have: the sum of two floats, or doubles, by `bits`. */
typedef enum wefti_dev_amo {
    WEFTI_DEV_AMO_FETCH = 0,
    WEFTI_DEV_AMO_SET,
    WEFTI_DEV_AMO_SWAP,
    WEFTI_DEV_AMO_COMPARE_SWAP,
    WEFTI_DEV_AMO_ADD,
    WEFTI_DEV_AMO_AND,
    WEFTI_DEV_AMO_OR,
    WEFTI_DEV_AMO_XOR,
    WEFTI_DEV_AMO_ADD_FLOAT
} wefti_dev_amo;

#define WEFTI_DEV_REQUEST_BYTES 8064 /* of data */
#define WEFTI_DEV_LONG_BYTES ((wefti_u64)32 << 10) /* from so many on a request is long, where there are such */
#define WEFTI_DEV_LONG_MAX ((wefti_u64)64 << 20) /* and of one at most, for a deadline of its own */

typedef struct wefti_dev_request {
    wefti_i32 kind; /* a wefti_dev_request_kind */
    wefti_i32 op;
    wefti_i32 bits; /* AMO: 32 or 64 */
    wefti_i32 answer; /* a wefti_dev_answer */
    wefti_u64 place;
    wefti_u64 bytes;
    wefti_u64 value;
    wefti_u64 cond;
    wefti_u64 unused[2];
    unsigned char data[WEFTI_DEV_REQUEST_BYTES];
} wefti_dev_request;

/* Written by the caller but for what the answer is. An entry can be filled again once it has been carried out and, if
 * it has an answer, that has been taken. */
typedef struct wefti_dev_entry {
    wefti_u64 filled; /* its ticket + 1 once the request is there */
    wefti_u64 answered; /* its ticket + 1 once the answer is there: status, old, and the request's data */
    wefti_u64 taken; /* its ticket + 1 once the caller needs the answer no more */
    wefti_u64 old;
    wefti_i32 status;
    wefti_i32 pe;
    wefti_u64 unused[3];
    wefti_dev_request request;
} wefti_dev_entry;

#define WEFTI_DEV_RING_ENTRIES 128

/* Ticket t, counted from 0, has entry t % WEFTI_DEV_RING_ENTRIES. Written by the proxy but for the entries. */
typedef struct wefti_dev_ring {
    wefti_u64 end; /* tickets before this one have an entry to fill */
    wefti_u64 done; /* requests before this ticket have taken effect */
    wefti_u64 awaited; /* the PE that the first of the others is for, + 1 */
    wefti_u64 has_long; /* not 0: long requests are taken */
    wefti_u64 unused[12];
    wefti_dev_entry entries[WEFTI_DEV_RING_ENTRIES];
} wefti_dev_ring;

typedef struct weft_dev {
    wefti_u32 abi; /* WEFT_DEV_ABI */
    wefti_i32 pe; /* this PE and their number */
    wefti_i32 pes;
    wefti_u32 near_first; /* PEs near_first .. near_first + near_count - 1 are reached by load and store */
    wefti_u32 near_count;
    wefti_u32 host_atomics; /* not 0: atomics on the host heap are atomic against the CPU's */
    /* The device heap. The byte at `a` here is at a + (p - pe) * stride on PE p, or at a + delta[p - near_first]. */
    wefti_u64 heap;
    wefti_u64 heap_bytes; /* at most: part of it may not be backed yet */
    wefti_u64 plain_bytes; /* heap_bytes, or 0 when `delta` must be used */
    wefti_i64 stride;
    wefti_u64 home; /* pe * stride */
    const wefti_i64 *delta;
    /* The host heap, likewise, where host_delta is not WEFTI_DEV_FAR; host_bytes 0 when kernels do not reach it. */
    wefti_u64 host_heap;
    wefti_u64 host_bytes;
    wefti_i64 host_stride;
    const wefti_i64 *host_delta;
    wefti_dev_control *control;
    wefti_u32 far_count; /* PEs of whose memory load and store do not reach all */
    wefti_u32 abroad_count; /* of these, near ones of other hosts: their host heap is not reached */
} weft_dev;

/* How the data of a collective goes: packed in one hop, packed and handed on, plain, or plain and unasked. */
typedef enum wefti_way {
    WEFTI_WAY_PACKED = 0,
    WEFTI_WAY_FORWARD = 1,
    WEFTI_WAY_PLAIN = 2,
    WEFTI_WAY_PUSH = 3
} wefti_way;

typedef struct weft_dev_team {
    weft_dev world;
    wefti_i32 pe; /* this PE's number in the team, and that of members */
    wefti_i32 pes;
    /* Member i is the world's PE start + i * stride, or list[i] when there is no such rule. */
    wefti_i32 start;
    wefti_i32 stride;
    const wefti_i32 *list;
    wefti_dev_team_area *area; /* this PE's */
    /* This PE's channels, channel_count of them, equally many on all members. */
    wefti_u64 channels;
    wefti_u64 channel_bytes;
    wefti_u32 channel_count;
    wefti_u32 slot_units; /* that a member sends another in one step */
    wefti_u32 far_count; /* members that load and store do not reach; 0 on all members or on none */
    wefti_u32 abroad_count; /* near members of other hosts, likewise: their host heap is not reached */
} weft_dev_team;

#endif
