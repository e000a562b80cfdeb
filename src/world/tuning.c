/* The one tuning table of the collectives, how WEFT_COLL overrides it, and how it is printed. */
#include "world/tuning.h"

#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "weft/coll.h"
#include "weft/protocol/coll_layout.h"
#include "world/world.h"

/* Words of WEFTI_RULE_TABLE. */
#define ANY_PES 0xffffffffu
#define ANY_BYTES SIZE_MAX
#define SLOT_BYTES 0
#define WHOLE_BYTES 1
#define PAIRS_PES_MAX 63 /* members each have a bit of a word */
typedef enum whom { ANYWHERE, NEAR, OVERSUBSCRIBED } whom;

typedef struct rule {
    wefti_collective collective;
    wefti_algorithm algorithm;
    unsigned pes_max;
    size_t bytes_max;
    whom whom;
} rule;

static const rule rules[] = {
#define ROW(collective, algorithm, pes_max, bytes_max, whom)                                                           \
    {WEFTI_COLL_##collective, WEFTI_ALGORITHM_##algorithm, pes_max, bytes_max, whom},
    WEFTI_RULE_TABLE(ROW)
#undef ROW
};
#define RULES (sizeof rules / sizeof rules[0])

static const char *const collective_names[] = {
#define NAME(id, name) [WEFTI_COLL_##id] = name,
    WEFTI_COLLECTIVE_TABLE(NAME)
#undef NAME
};

/* Columns of WEFTI_ALGORITHM_TABLE. */
typedef enum data_by { BY_SLOTS, BY_BUFFERS } data_by;
typedef enum teams_of { OF_ALL, OF_NEAR, OF_RULE } teams_of;

static const struct {
    const char *name;
    data_by data;
    teams_of teams;
} algorithms[] = {
#define ROW(id, name, data, teams) [WEFTI_ALGORITHM_##id] = {name, BY_##data, OF_##teams},
    WEFTI_ALGORITHM_TABLE(ROW)
#undef ROW
};

const char *wefti_algorithm_name(wefti_algorithm algorithm)
{
    return algorithms[algorithm].name;
}

/* Whether a message of this rule has to fit in a slot. A collect sends where a block lies that does not. */
static int is_bounded(const rule *r)
{
    return algorithms[r->algorithm].data == BY_SLOTS && r->collective != WEFTI_COLL_COLLECT;
}

static size_t slot_data_bytes_of(unsigned pes)
{
    return wefti_coll_slot_bytes(pes) - sizeof(wefti_coll_slot);
}

/* The most that a rule carries on a team of `pes`. */
static size_t limit_of(const rule *r, unsigned pes)
{
    const size_t slot_data_bytes = slot_data_bytes_of(pes);
    if (r->bytes_max == WHOLE_BYTES) {
        return slot_data_bytes / pes;
    }
    return r->bytes_max == SLOT_BYTES || (is_bounded(r) && r->bytes_max > slot_data_bytes) ? slot_data_bytes
                                                                                           : r->bytes_max;
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

static int is_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

static int find_collective(const char *text, size_t length)
{
    int found = WEFTI_COLLECTIVES - 1;
    while (found >= 0 && !is_name(collective_names[found], text, length)) {
        found--;
    }
    return found;
}

static int find_algorithm(const char *text, size_t length)
{
    int found = WEFTI_ALGORITHMS - 1;
    while (found >= 0 && !is_name(algorithms[found].name, text, length)) {
        found--;
    }
    return found;
}

weft_status wefti_preferences_read(wefti_preferences *preferences)
{
    const char *text = wefti_env_word(WEFTI_ENV_COLL);
    memset(preferences->algorithms, WEFTI_ALGORITHMS, sizeof preferences->algorithms);
    for (const char *at = text; *at != '\0';) {
        size_t length = strcspn(at, ",");
        const char *colon = memchr(at, ':', length);
        size_t first = colon != NULL ? (size_t)(colon - at) : length;
        int collective = find_collective(at, first);
        int algorithm = colon != NULL ? find_algorithm(colon + 1, length - first - 1) : -1;
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
    const teams_of teams = algorithms[r->algorithm].teams;
    return teams == OF_ALL || (teams == OF_NEAR ? team->near : fits(r, team));
}

/* A preferred algorithm without its rule's own limits. */
static void prefer(wefti_choice *choices, int *count, const rule *r, unsigned pes)
{
    choices[0].algorithm = r->algorithm;
    choices[0].bytes_max = is_bounded(r) ? slot_data_bytes_of(pes) : ANY_BYTES;
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
                         wefti_algorithm_name(choice->algorithm), limit);
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
