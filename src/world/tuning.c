/* The one tuning table of the collectives, how WEFT_COLL overrides it, and how it is printed. */
#include "world/tuning.h"

#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "weft/coll.h"
#include "weft/protocol/coll_layout.h"
#include "world/world.h"

#define ANY_PES 0xffffffffu
#define ANY_BYTES SIZE_MAX
#define SLOT_BYTES 0 /* as much as a slot holds */
#define WHOLE_BYTES 1 /* as much as a slot holds if it has a block for each member */
#define PAIRS_PES_MAX 63 /* members each have a bit of a word */

/* Whom a rule is for: all teams, those whose members share memory, or those whose members also share processors. In the
 * latter a member that waits goes on only after the others have run, so that a call costs as many such rounds as it has
 * waits one behind the other, however many flags it stores. */
typedef enum whom { ANYWHERE, NEAR, OVERSUBSCRIBED } whom;

/* For a team of at most pes_max, messages of at most bytes_max: the first rule that holds. What `bytes` counts: of a
 * broadcast the message, of an alltoall a pair's block, else a member's contribution. */
typedef struct rule {
    wefti_collective collective;
    wefti_algorithm algorithm;
    unsigned pes_max;
    size_t bytes_max;
    whom whom;
} rule;

static const rule rules[] = {
    {WEFTI_COLL_BROADCAST, WEFTI_ALGORITHM_PUSH, ANY_PES, 2048, ANYWHERE},
    {WEFTI_COLL_BROADCAST, WEFTI_ALGORITHM_PULL, ANY_PES, ANY_BYTES, ANYWHERE},
    {WEFTI_COLL_COLLECT, WEFTI_ALGORITHM_PUSH, ANY_PES, ANY_BYTES,
     ANYWHERE}, /* each member: its block, or where it lies */
    {WEFTI_COLL_FCOLLECT, WEFTI_ALGORITHM_PUSH, ANY_PES, 2048, ANYWHERE},
    {WEFTI_COLL_FCOLLECT, WEFTI_ALGORITHM_PULL, ANY_PES, ANY_BYTES, ANYWHERE},
    {WEFTI_COLL_ALLTOALL, WEFTI_ALGORITHM_PUSH, ANY_PES, WHOLE_BYTES, OVERSUBSCRIBED},
    {WEFTI_COLL_ALLTOALL, WEFTI_ALGORITHM_PAIRS, PAIRS_PES_MAX, 16384, OVERSUBSCRIBED},
    {WEFTI_COLL_ALLTOALL, WEFTI_ALGORITHM_PUSH, ANY_PES, 2048, ANYWHERE},
    {WEFTI_COLL_ALLTOALL, WEFTI_ALGORITHM_PULL, ANY_PES, ANY_BYTES, ANYWHERE},
    {WEFTI_COLL_ALLTOALLS, WEFTI_ALGORITHM_PUSH, ANY_PES, SLOT_BYTES, ANYWHERE},
    {WEFTI_COLL_ALLTOALLS, WEFTI_ALGORITHM_PULL, ANY_PES, ANY_BYTES, ANYWHERE},
    {WEFTI_COLL_REDUCE, WEFTI_ALGORITHM_PUSH, 32, SLOT_BYTES, ANYWHERE},
    {WEFTI_COLL_REDUCE, WEFTI_ALGORITHM_DOUBLING, ANY_PES, SLOT_BYTES, ANYWHERE},
    {WEFTI_COLL_REDUCE, WEFTI_ALGORITHM_SLICES, ANY_PES, ANY_BYTES, ANYWHERE},
    {WEFTI_COLL_REDUCE_SCATTER, WEFTI_ALGORITHM_PUSH, ANY_PES, 2048, ANYWHERE},
    {WEFTI_COLL_REDUCE_SCATTER, WEFTI_ALGORITHM_PULL, ANY_PES, ANY_BYTES, ANYWHERE},
    {WEFTI_COLL_SCAN, WEFTI_ALGORITHM_PUSH, ANY_PES, 2048, ANYWHERE},
    {WEFTI_COLL_SCAN, WEFTI_ALGORITHM_SLICES, ANY_PES, ANY_BYTES, ANYWHERE},
    {WEFTI_COLL_SYNC, WEFTI_ALGORITHM_COUNT, ANY_PES, ANY_BYTES, OVERSUBSCRIBED},
    {WEFTI_COLL_SYNC, WEFTI_ALGORITHM_ROUNDS, ANY_PES, ANY_BYTES, ANYWHERE},
    {WEFTI_COLL_ALLTOALL_READY, WEFTI_ALGORITHM_PUSH, ANY_PES, WHOLE_BYTES, OVERSUBSCRIBED},
    {WEFTI_COLL_ALLTOALL_READY, WEFTI_ALGORITHM_PUSH, ANY_PES, WEFTI_COLL_LINE_DATA_BYTES, ANYWHERE},
    {WEFTI_COLL_ALLTOALL_READY, WEFTI_ALGORITHM_DIRECT, ANY_PES, ANY_BYTES, NEAR},
    {WEFTI_COLL_ALLTOALL_READY, WEFTI_ALGORITHM_PULL, ANY_PES, ANY_BYTES, ANYWHERE},
};
#define RULES (sizeof rules / sizeof rules[0])

static const char *const collective_names[] = {
#define NAME(id, name) [WEFTI_COLL_##id] = name,
    WEFTI_COLLECTIVE_TABLE(NAME)
#undef NAME
};

static const char *const algorithm_names[] = {
#define NAME(id, name, text) [WEFTI_ALGORITHM_##id] = name,
    WEFTI_ALGORITHM_TABLE(NAME)
#undef NAME
};

const char *wefti_algorithm_name(wefti_algorithm algorithm)
{
    return algorithm_names[algorithm];
}

static int through_slots(wefti_algorithm algorithm)
{
    return algorithm == WEFTI_ALGORITHM_PUSH || algorithm == WEFTI_ALGORITHM_DOUBLING;
}

static size_t slot_data_bytes_of(unsigned pes)
{
    return wefti_coll_slot_bytes(pes) - sizeof(wefti_coll_slot);
}

/* The most that a rule carries on a team of `pes`. */
static size_t limit_of(const rule *r, unsigned pes)
{
    const size_t slot_data_bytes = slot_data_bytes_of(pes);
    int bounded = through_slots(r->algorithm) && r->collective != WEFTI_COLL_COLLECT;
    if (r->bytes_max == WHOLE_BYTES) {
        return slot_data_bytes / pes;
    }
    return r->bytes_max == SLOT_BYTES || (bounded && r->bytes_max > slot_data_bytes) ? slot_data_bytes : r->bytes_max;
}

wefti_algorithm wefti_algorithm_of(wefti_collective collective, int place)
{
    uint32_t seen = 0;
    for (size_t i = 0; i < RULES; i++) {
        const uint32_t bit = UINT32_C(1) << rules[i].algorithm;
        if (rules[i].collective == collective && (seen & bit) == 0 && place-- == 0) {
            return rules[i].algorithm;
        }
        seen |= rules[i].collective == collective ? bit : 0;
    }
    return WEFTI_ALGORITHMS;
}

static int has_rule(wefti_collective collective, wefti_algorithm algorithm)
{
    for (int place = 0; wefti_algorithm_of(collective, place) != WEFTI_ALGORITHMS; place++) {
        if (wefti_algorithm_of(collective, place) == algorithm) {
            return 1;
        }
    }
    return 0;
}

/* ---- WEFT_COLL: "collective:algorithm[,collective:algorithm...]" ---- */

static int find(const char *const *names, int count, const char *text, size_t length)
{
    for (int i = 0; i < count; i++) {
        if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0) {
            return i;
        }
    }
    return -1;
}

weft_status wefti_preferences_read(wefti_preferences *preferences)
{
    const char *text = wefti_env_word(WEFTI_ENV_COLL);
    memset(preferences->algorithms, WEFTI_ALGORITHMS, sizeof preferences->algorithms);
    for (const char *at = text; *at != '\0';) {
        size_t length = strcspn(at, ",");
        const char *colon = memchr(at, ':', length);
        size_t first = colon != NULL ? (size_t)(colon - at) : length;
        int collective = find(collective_names, WEFTI_COLLECTIVES, at, first);
        int algorithm = colon != NULL ? find(algorithm_names, WEFTI_ALGORITHMS, colon + 1, length - first - 1) : -1;
        if (collective < 0 || algorithm < 0 || !has_rule((wefti_collective)collective, (wefti_algorithm)algorithm)) {
            return wefti_error(WEFT_ERR_ARGUMENT,
                               "WEFT_COLL=\"%s\" cannot be read at \"%.*s\": give collective:algorithm, separated by "
                               "commas, of those that weft-info tuning lists",
                               text, (int)length, at);
        }
        preferences->algorithms[collective] = (unsigned char)algorithm;
        at += length + (at[length] == ',');
    }
    return WEFT_OK;
}

uint64_t wefti_preferences_key(const wefti_preferences *preferences)
{
    _Static_assert(WEFTI_ALGORITHMS < 16 && WEFTI_COLLECTIVES <= 16, "four bits each");
    uint64_t key = 0;
    for (int c = 0; c < WEFTI_COLLECTIVES; c++) {
        key |= (uint64_t)(WEFTI_ALGORITHMS - preferences->algorithms[c]) << 4 * c;
    }
    return key;
}

/* ---- one team ---- */

static int fits(const rule *r, const weft_team *team)
{
    const int is_one_of_them = r->whom == ANYWHERE || (r->whom == NEAR ? team->near : team->oversubscribed);
    return (unsigned)team->pes <= r->pes_max && is_one_of_them;
}

/* Whether a team of this kind can do what the rule says at all. */
static int possible(const rule *r, const weft_team *team)
{
    switch (r->algorithm) {
    case WEFTI_ALGORITHM_PAIRS:
        return fits(r, team);
    case WEFTI_ALGORITHM_COUNT:
    case WEFTI_ALGORITHM_DIRECT:
        return team->near;
    default:
        return 1;
    }
}

/* A preferred algorithm without its rule's own limits. */
static void prefer(wefti_choice *choices, int *count, const rule *r, unsigned pes)
{
    choices[0].algorithm = r->algorithm;
    choices[0].bytes_max =
        through_slots(r->algorithm) && r->collective != WEFTI_COLL_COLLECT ? slot_data_bytes_of(pes) : ANY_BYTES;
    *count = 1;
}

static void choose_one(wefti_choice *choices, wefti_collective collective, const weft_team *team)
{
    const wefti_algorithm preferred = team->world->preferences.algorithms[collective];
    int count = 0;
    for (size_t i = 0; i < RULES; i++) {
        if (rules[i].collective == collective && rules[i].algorithm == preferred && possible(&rules[i], team)) {
            prefer(choices, &count, &rules[i], (unsigned)team->pes);
        }
    }
    for (size_t i = 0; i < RULES && count < WEFTI_CHOICES_MAX; i++) {
        size_t limit = limit_of(&rules[i], (unsigned)team->pes);
        if (rules[i].collective == collective && fits(&rules[i], team) && rules[i].algorithm != preferred &&
            (count == 0 || limit > choices[count - 1].bytes_max)) {
            choices[count].algorithm = rules[i].algorithm;
            choices[count].bytes_max = limit;
            count++;
        }
    }
}

void wefti_tuning_init(wefti_tuning *tuning, const weft_team *team)
{
    for (int c = 0; c < WEFTI_COLLECTIVES; c++) {
        choose_one(tuning->choices[c], (wefti_collective)c, team);
    }
}

void wefti_team_set_meeting(weft_team *team)
{
    wefti_choice choices[WEFTI_CHOICES_MAX];
    team->near = 1;
    for (int i = 0; i < team->pes && team->near; i++) {
        team->near = wefti_pe_is_near(&team->world->view, wefti_member(team, i));
    }
    team->oversubscribed = team->world->oversubscribed && team->near && team->pes > 1;
    choose_one(choices, WEFTI_COLL_SYNC, team);
    team->counted = choices[0].algorithm == WEFTI_ALGORITHM_COUNT;
}

/* ---- the table as text ---- */

typedef struct text_out {
    char *text;
    size_t bytes;
    size_t length;
} text_out;

static void add_choice(text_out *out, const char *collective, const wefti_choice *choice)
{
    char limit[32] = "any";
    if (choice->bytes_max != ANY_BYTES) {
        (void)snprintf(limit, sizeof limit, "<= %zu", choice->bytes_max);
    }
    size_t room = out->length < out->bytes ? out->bytes - out->length : 0;
    int added = snprintf(room > 0 ? out->text + out->length : NULL, room, "%-15s %-9s %s\n", collective,
                         algorithm_names[choice->algorithm], limit);
    out->length += added > 0 ? (size_t)added : 0;
}

weft_status weft_team_tuning(const weft_team *team, char *text, size_t bytes, size_t *length)
{
    WEFT_TRY(wefti_team_expect(team, "weft_team_tuning"));
    if ((text == NULL && bytes > 0) || length == NULL) {
        return wefti_error_null("weft_team_tuning", length == NULL ? "length" : "text");
    }
    wefti_tuning tuning;
    wefti_tuning_init(&tuning, team);
    text_out out = {.text = text, .bytes = bytes};
    for (int c = 0; c < WEFTI_COLLECTIVES; c++) {
        const wefti_choice *choice = tuning.choices[c];
        for (;; choice++) {
            add_choice(&out, collective_names[c], choice);
            if (choice->bytes_max == ANY_BYTES) {
                break;
            }
        }
    }
    *length = out.length;
    return WEFT_OK;
}
