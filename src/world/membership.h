/* world/membership.h: who is in a team: the record behind a weft_team. A world carries the records of its predefined
 * teams; src/team makes the others. */
#ifndef WEFTI_WORLD_MEMBERSHIP_H
#define WEFTI_WORLD_MEMBERSHIP_H

#include <stdint.h>

#include "common/attachment.h"
#include "weft/device/dev.h"
#include "weft/protocol/layout.h"
#include "weft/team.h"

struct wefti_coll;

/* What refers to a team and may outlive it: *team becomes NULL when the team ends. */
typedef struct wefti_team_user {
    struct wefti_team_user *next;
    struct wefti_team_user **link; /* what points here; NULL when the team has ended */
    weft_team **team;
} wefti_team_user;

#define WEFTI_TEAM_CALLS (WEFTI_COUNTER_scans - WEFTI_COUNTER_barriers + 1)

struct weft_team {
    wefti_attachment attachment;
    weft_world *world;
    uint32_t number; /* this PE's teams of the world are numbered from 1 on; a number is not given again */
    int pe; /* this PE's number in the team */
    int pes;
    /* Member i is the world's PE start + i * stride, or list[i] when there is no such rule. */
    int start;
    int stride;
    int32_t *list;
    unsigned rounds;
    int near; /* all members are in one link domain */
    int oversubscribed; /* near, and they share processors */
    int counted; /* they meet and agree by counting, not by rounds */
    wefti_team_area *area; /* this PE's, in its slot of the window */
    wefti_epochs *epochs; /* this PE's, in the area or in the head of the window */
    wefti_dev_team_area *device_area; /* this PE's, in device memory; NULL before weft_team_dev */
    /* Likewise: the channel of collectives inside kernels, and those of collectives on streams. */
    unsigned char *device_channel;
    unsigned char *stream_channels;
    uint32_t stream_channel_count;
    int stream_blocks; /* of a collective on a stream, at most, on all members; 0: not agreed yet */
    int stream_sms; /* claimed for them */
    uint64_t calls[WEFTI_TEAM_CALLS]; /* of a predefined team: the counters from `barriers` on */
    int contexts; /* weft_team_config */
    wefti_team_user *users; /* the world's heap_lock */
    int predefined; /* lives in the world; its area lies before the heap */
    int destroyed; /* and kept: see weft_team_destroy */
    weft_status dead; /* once a collective call has failed: what it returned; the team cannot be used again */
    char dead_text[256];
    /* Of its data collectives, made by the first of them: the record, one allocation, and the symmetric block. */
    struct wefti_coll *coll;
    void *coll_scratch;
};

static inline int wefti_member(const weft_team *team, int pe)
{
    return team->list != NULL ? team->list[pe] : team->start + pe * team->stride;
}

#endif
