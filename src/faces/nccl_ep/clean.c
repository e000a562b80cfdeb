/* faces/nccl_ep/clean.c: ncclEpMaskClean: the ranks that are left meet, those that are gone are not needed, and one
 * that was only late may come, too, at the same time or after them.
 *
 * Each tells every rank, also those that are gone, how many calls of the group it has made and whom it has masked, and
 * waits for the others that are left: those that neither it nor one of them has masked. Then all of them go on with the
 * most calls of any. Who finds itself masked was late, and waits for those that the ranks that masked it have not
 * masked. Who has masked all others does not know which of both it is: it waits for any, at most the deadline. */
#include "faces/nccl_ep/face.h"

#define MASK_WORDS 4 /* of the most ranks of a group on GPUs */

/* What a rank tells. */
typedef struct nep_told {
    uint64_t calls;
    uint64_t masked[MASK_WORDS];
} told;

/* A set of ranks: bits of words. */
typedef struct set {
    uint64_t words[MASK_WORDS];
} set;

static int has(const uint64_t *words, int rank)
{
    return (words[rank / 64] >> (rank % 64) & 1) != 0;
}

static void add(set *of, const uint64_t *words)
{
    for (int i = 0; i < MASK_WORDS; i++) {
        of->words[i] |= words[i];
    }
}

weft_status nep_clean_open(struct ncclEpGroup *group)
{
    const size_t ranks = (size_t)group->ranks;
    nep_clean *clean = &group->clean;
    void *memory = NULL;
    weft_status status = weft_calloc(group->world, 2 * ranks, sizeof(told) + sizeof(uint64_t), &memory);
    for (size_t i = 0; i < 2 && status == WEFT_OK; i++) {
        clean->tells[i] = (told *)memory + i * ranks;
        clean->came[i] = (uint64_t *)((told *)memory + 2 * ranks) + i * ranks;
    }
    return status;
}

/* A meeting, of which this rank knows who has come. */
typedef struct meeting {
    const struct ncclEpGroup *group;
    uint64_t number;
    const uint64_t *came;
    const told *tells;
    set here; /* who has come, itself too */
    set masked; /* by this rank */
} meeting;

static int is_alone(const meeting *m)
{
    for (int rank = 0; rank < m->group->ranks; rank++) {
        if (rank != m->group->rank && !has(m->masked.words, rank)) {
            return 0;
        }
    }
    return 1;
}

/* Whom the ranks have masked that have come and that have, or have not, masked this one; `trusted`: and that this one
 * has not masked. *any: there is such a rank. */
static set masked_by(const meeting *m, int mask_this, int trusted, int *any)
{
    set all = {{0}};
    *any = 0;
    for (int rank = 0; rank < m->group->ranks; rank++) {
        const told *tells = &m->tells[rank];
        if (rank != m->group->rank && has(m->here.words, rank) && !(trusted && has(m->masked.words, rank)) &&
            has(tells->masked, m->group->rank) == mask_this) {
            add(&all, tells->masked);
            *any = 1;
        }
    }
    return all;
}

/* The ranks that are not waited for, as far as is known by now; returns 0: nothing is, and all are waited for. */
static int find_gone(const meeting *m, set *gone)
{
    const int alone = is_alone(m);
    int is_late;
    int any;
    *gone = masked_by(m, 1, !alone, &is_late);
    if (!is_late) {
        *gone = masked_by(m, 0, !alone, &any);
        add(gone, m->masked.words);
    }
    for (int rank = 0; rank < m->group->ranks; rank++) {
        if (rank != m->group->rank && !has(gone->words, rank)) {
            return 1;
        }
    }
    *gone = (set){{0}};
    return 0;
}

static void look_who_came(meeting *m)
{
    for (int rank = 0; rank < m->group->ranks; rank++) {
        uint64_t last = __atomic_load_n(&m->came[rank], __ATOMIC_ACQUIRE);
        m->here.words[rank / 64] |= (uint64_t)(last >= m->number) << (rank % 64);
    }
}

/* Of the ranks that are neither here nor gone; R: there is none. */
static int first_missing(const meeting *m, const set *gone)
{
    int rank = 0;
    while (rank < m->group->ranks && (has(m->here.words, rank) || has(gone->words, rank))) {
        rank++;
    }
    return rank;
}

/* Wait for one of them. */
static weft_status await_one(const meeting *m, const set *gone)
{
    size_t index;
    int skips[64 * MASK_WORDS];
    for (int rank = 0; rank < m->group->ranks; rank++) {
        skips[rank] = has(m->here.words, rank) || has(gone->words, rank);
    }
    return weft_uint64_wait_until_any(m->group->world, m->came, (size_t)m->group->ranks, skips, WEFT_CMP_GE, m->number,
                                      &index);
}

/* Until all have come that are waited for, or nobody has, of whom it is not known. */
static ncclResult_t await_all(meeting *m)
{
    for (;;) {
        set gone;
        look_who_came(m);
        const int is_known = find_gone(m, &gone);
        if (first_missing(m, &gone) == m->group->ranks) {
            return ncclSuccess;
        }
        const weft_status status = await_one(m, &gone);
        if (!is_known && (status == WEFT_ERR_TIMEOUT || status == WEFT_ERR_PEER)) {
            return ncclSuccess;
        }
        if (status == WEFT_ERR_TIMEOUT || status == WEFT_ERR_PEER) {
            return nep_fail(ncclRemoteError,
                            "ncclEpMaskClean: rank %d, which is not masked, did not come; mask it, or "
                            "call again where it failed",
                            first_missing(m, &gone));
        }
        NEP_TRY(nep_result_of(status));
    }
}

/* Tell all, of whom some may be gone, and this rank itself. */
static weft_status tell_all(const struct ncclEpGroup *group, const meeting *m, const told *what)
{
    const nep_clean *clean = &group->clean;
    const int parity = (int)(m->number % 2);
    for (int i = 0; i < group->ranks; i++) {
        const int rank = (group->rank + i) % group->ranks;
        weft_status status = weft_putmem_signal(group->world, &clean->tells[parity][group->rank], what, sizeof *what,
                                                &clean->came[parity][group->rank], m->number, WEFT_SIGNAL_SET, rank);
        if (status != WEFT_OK && !has(m->masked.words, rank)) {
            return status;
        }
    }
    return WEFT_OK;
}

/* The meeting that this rank comes to: the next one, or the one that others were in without it. */
static uint64_t number_of(const struct ncclEpGroup *group)
{
    uint64_t number = group->clean.meetings + 1;
    for (int i = 0; i < 2 * group->ranks; i++) {
        uint64_t last = __atomic_load_n(&group->clean.came[0][i], __ATOMIC_ACQUIRE);
        number = last > number ? last : number;
    }
    return number;
}

ncclResult_t nep_clean_meet(struct ncclEpGroup *group, const uint64_t *masked, uint64_t calls, uint64_t *most)
{
    nep_clean *clean = &group->clean;
    meeting m = {.group = group, .number = number_of(group)};
    told what = {.calls = calls};
    m.came = clean->came[m.number % 2];
    m.tells = clean->tells[m.number % 2];
    for (int i = 0; i < (group->ranks + 63) / 64; i++) {
        what.masked[i] = m.masked.words[i] = __atomic_load_n(&masked[i], __ATOMIC_ACQUIRE);
    }
    NEP_TRY(nep_result_of(tell_all(group, &m, &what)));
    NEP_TRY(await_all(&m));
    clean->meetings = m.number;
    *most = calls;
    for (int rank = 0; rank < group->ranks; rank++) {
        if (has(m.here.words, rank) && m.tells[rank].calls > *most) {
            *most = m.tells[rank].calls;
        }
    }
    return ncclSuccess;
}
