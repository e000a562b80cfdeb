/* team/team.c: making and destroying teams, and questions about them. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/sized.h"
#include "team/team.h"

/* Whether its predefined teams can be named. In a forked process they, too, are refused for what they are. */
static int has_teams(const weft_world *world)
{
    return wefti_world_is_alive(world) || (world != NULL && world->magic == 0);
}

weft_team *weft_team_world(weft_world *world)
{
    return has_teams(world) ? &world->team_world : NULL;
}

weft_team *weft_team_node(weft_world *world)
{
    return has_teams(world) ? &world->team_node : NULL;
}

weft_team *weft_team_link(weft_world *world)
{
    return has_teams(world) ? &world->team_link : NULL;
}

weft_team *weft_team_same_slot(weft_world *world)
{
    return has_teams(world) ? &world->team_same_slot : NULL;
}

static const wefti_sized config_form = WEFTI_SIZED_FORM(weft_team_config, contexts, "WEFT_TEAM_CONFIG_INIT");

weft_status weft_team_configure(weft_team *team, const weft_team_config *config)
{
    static const char call[] = "weft_team_configure";
    weft_team_config copy;
    WEFT_TRY(wefti_team_expect(team, call));
    if (config == NULL) {
        return wefti_error_null(call, "config");
    }
    WEFTI_SIZED_TRY(&config_form, call, "config", config, &copy);
    if (config->contexts < 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: config.contexts is %d; give 0 or more", call, config->contexts);
    }
    team->contexts = config->contexts;
    return WEFT_OK;
}

weft_status weft_team_query(const weft_team *team, weft_team_config *config)
{
    static const char call[] = "weft_team_query";
    const weft_team_config *asked = config; /* only what the caller's struct has is written */
    weft_team_config copy;
    WEFT_TRY(wefti_team_expect(team, call));
    if (config == NULL) {
        return wefti_error_null(call, "config");
    }
    WEFTI_SIZED_TRY(&config_form, call, "config", asked, &copy);
    config->contexts = team->contexts;
    return WEFT_OK;
}

int weft_team_pe(const weft_team *team)
{
    return wefti_team_is_alive(team) ? team->pe : -1;
}

int weft_team_pes(const weft_team *team)
{
    return wefti_team_is_alive(team) ? team->pes : -1;
}

weft_world *weft_team_owner(const weft_team *team)
{
    return wefti_team_is_alive(team) ? team->world : NULL;
}

/* The number in `team` of the world's PE `pe`, or -1. */
static int number_of(const weft_team *team, int pe)
{
    if (team->list == NULL) {
        int distance = pe - team->start;
        int number = team->stride == 0 ? 0 : distance / team->stride;
        return number >= 0 && number < team->pes && team->start + number * team->stride == pe ? number : -1;
    }
    for (int i = 0; i < team->pes; i++) {
        if (team->list[i] == pe) {
            return i;
        }
    }
    return -1;
}

int weft_team_translate(const weft_team *from, int pe, const weft_team *to)
{
    if (!wefti_team_is_alive(from) || !wefti_team_is_alive(to) || pe < 0 || pe >= from->pes ||
        from->world != to->world) {
        return -1;
    }
    return number_of(to, wefti_member(from, pe));
}

/* ---- creation ---- */

/* The members a caller names, by rule or by list, in numbers of the parent. */
typedef struct member_list {
    int count;
    int start;
    int stride;
    const int *list; /* NULL: by rule */
} member_list;

static int member_of(const member_list *members, int i)
{
    return members->list != NULL ? members->list[i] : members->start + i * members->stride;
}

/* A hash of the list or, by rule, of the rule, which all members of a call give alike. */
static uint64_t hash_of(const member_list *members)
{
    static const unsigned char no_secret[WEFTI_HASH_BYTES] = {0};
    unsigned char state[WEFTI_HASH_BYTES + 8] = {0};
    uint64_t hash;
    if (members->list == NULL) {
        const int32_t rule[3] = {members->count, members->start, members->stride};
        wefti_hash(no_secret, rule, sizeof rule, state);
    }
    for (int i = 0; i < members->count && members->list != NULL; i++) {
        int32_t pair[2] = {i, member_of(members, i)};
        memcpy(state + WEFTI_HASH_BYTES, pair, sizeof pair);
        unsigned char next[WEFTI_HASH_BYTES];
        wefti_hash(no_secret, state, sizeof state, next);
        memcpy(state, next, sizeof next);
    }
    memcpy(&hash, state, sizeof hash);
    return hash | 1; /* never that of a PE that joins no team */
}

/* Whether the numbers are members of the parent, none twice, and include this PE. */
static weft_status check_members(const weft_team *parent, const member_list *members, const char *call)
{
    unsigned char *seen = wefti_alloc_zeroed((size_t)parent->pes, 1);
    weft_status status = WEFT_OK;
    if (seen == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "%s: no memory to check %d members", call, members->count);
    }
    for (int i = 0; i < members->count && status == WEFT_OK; i++) {
        int pe = member_of(members, i);
        if (pe < 0 || pe >= parent->pes || seen[pe]) {
            status = wefti_error(WEFT_ERR_RANGE, "%s: member %d is PE %d, which is %s the parent team of %d PEs", call,
                                 i, pe, pe < 0 || pe >= parent->pes ? "outside" : "named twice of", parent->pes);
        } else {
            seen[pe] = 1;
        }
    }
    if (status == WEFT_OK && !seen[parent->pe]) {
        status = wefti_error(WEFT_ERR_ARGUMENT,
                             "%s: PE %d is not in the list that it passes; pass the list of the team that it joins, or "
                             "count 0",
                             call, parent->pe);
    }
    wefti_free(seen);
    return status;
}

/* The record without its area. */
static weft_status record_create(weft_team *parent, const member_list *members, const char *call, weft_team **out)
{
    weft_team *team = wefti_alloc_zeroed(1, sizeof *team);
    if (team == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "%s: no memory for a team", call);
    }
    team->world = parent->world;
    team->number = __atomic_add_fetch(&team->world->teams_made, 1, __ATOMIC_RELAXED);
    team->pes = members->count;
    team->rounds = wefti_rounds((unsigned)members->count);
    team->start = wefti_member(parent, member_of(members, 0));
    team->stride = members->count > 1 ? wefti_member(parent, member_of(members, 1)) - team->start : 1;
    int by_rule = 1;
    for (int i = 0; i < members->count; i++) {
        by_rule &= wefti_member(parent, member_of(members, i)) == team->start + i * team->stride;
        if (member_of(members, i) == parent->pe) {
            team->pe = i;
        }
    }
    if (!by_rule) {
        team->list = wefti_alloc((size_t)members->count * sizeof *team->list);
        if (team->list == NULL) {
            wefti_free(team);
            return wefti_error(WEFT_ERR_MEMORY, "%s: no memory for a list of %d members", call, members->count);
        }
        for (int i = 0; i < members->count; i++) {
            team->list[i] = wefti_member(parent, member_of(members, i));
        }
    }
    wefti_team_set_meeting(team);
    *out = team;
    return WEFT_OK;
}

static void forget_users(weft_team *team)
{
    wefti_os_monitor_enter(team->world->heap_lock);
    for (wefti_team_user *user = team->users; user != NULL; user = user->next) {
        *user->team = NULL;
        user->link = NULL;
    }
    team->users = NULL;
    wefti_os_monitor_leave(team->world->heap_lock);
}

static void record_free(weft_team *team)
{
    forget_users(team);
    wefti_free(team->list);
    wefti_free(team->coll);
    wefti_free(team);
}

/* The area goes with the world's window. */
static void end_with_world(wefti_attachment *attachment)
{
    record_free((weft_team *)(void *)attachment);
}

static void record_destroy(weft_team *team)
{
    if (team != NULL) {
        wefti_world_detach(team->world, &team->attachment);
        record_free(team);
    }
}

/* Keep the record of a destroyed team, as that of a dead one, so that who still uses the handle is told. */
static void record_retire(weft_team *team)
{
    wefti_world_detach(team->world, &team->attachment);
    forget_users(team);
    wefti_free(team->list);
    wefti_free(team->coll);
    team->list = NULL;
    team->coll = NULL;
    team->destroyed = 1;
    team->dead = WEFT_ERR_STATE;
    (void)snprintf(team->dead_text, sizeof team->dead_text, "the team, of world \"%s\", has been destroyed",
                   team->world->name);
    wefti_world_free_late(team->world, team);
}

#define NO_PAIR UINT64_MAX

/* The member that comes after this PE in its list, in a circle, must have published the same hash. Where all do, every
 * member of a list has passed it: the next one has the same list, and so has the one that comes next in it. *pair
 * becomes this PE and the next, or NO_PAIR. */
static weft_status compare_lists(weft_team *parent, const member_list *members, const weft_team *team, uint64_t hash,
                                 uint64_t *pair)
{
    uint64_t theirs = hash;
    *pair = NO_PAIR;
    if (team == NULL) {
        return WEFT_OK;
    }
    const int next = member_of(members, (team->pe + 1) % members->count);
    WEFT_TRY(wefti_world_read(parent->world, &parent->epochs->published, wefti_member(parent, next), &theirs));
    if (theirs != hash) {
        *pair = (uint64_t)(uint32_t)parent->pe << 32 | (uint32_t)next;
    }
    return WEFT_OK;
}

/* Agree that all lists fit: the lowest PE that found another with a different list, and that one, are named to all. */
static weft_status agree_on_lists(weft_team *parent, const member_list *members, const weft_team *team, uint64_t hash,
                                  const uint64_t key[2], const char *call)
{
    wefti_vote vote = wefti_vote_init(parent, call, key[0], key[1] | 1);
    vote.status = compare_lists(parent, members, team, hash, &vote.offset_low);
    WEFT_TRY(wefti_team_agree(parent, &vote, call));
    if (vote.offset_low == NO_PAIR) {
        return WEFT_OK;
    }
    int finder = (int)(vote.offset_low >> 32);
    char text[192];
    (void)snprintf(text, sizeof text,
                   "%s: PEs %d and %d of the parent team passed different lists of members; all members of a team pass "
                   "the same one",
                   call, finder, (int)(uint32_t)vote.offset_low);
    return parent->pe == finder ? wefti_error(WEFT_ERR_MISMATCH, "%s", text)
                                : wefti_error_relay(WEFT_ERR_MISMATCH, text);
}

/* Collective over the parent. Each PE's list is its own team's; `members->count` 0: it joins none. `mine` is what is
 * wrong with this PE's arguments; also a PE that cannot go on takes part in the agreement, so that no other waits for
 * it in vain. All teams made by one call have their areas at one offset, which is therefore agreed by all members of
 * the parent. */
static weft_status agree_and_create(weft_team *parent, const member_list *members, const uint64_t key[2],
                                    const char *call, weft_status mine, weft_team **out)
{
    weft_team *team = NULL;
    void *area = NULL;
    uint64_t hash = 0;
    if (mine == WEFT_OK && members->count > 0) {
        mine = check_members(parent, members, call);
        if (mine == WEFT_OK) {
            hash = hash_of(members);
            mine = record_create(parent, members, call, &team);
        }
    }
    wefti_st64(&parent->epochs->published, hash, WEFTI_RELEASE);
    wefti_vote vote = wefti_vote_init(parent, call, key[0], key[1]);
    vote.status = mine;
    weft_status status = wefti_team_agree(parent, &vote, call);
    if (status == WEFT_OK) {
        size_t bytes = wefti_team_area_bytes((unsigned)parent->pes);
        status = wefti_team_alloc(parent, call, bytes, WEFTI_CACHE_LINE, &area);
    }
    if (status == WEFT_OK) {
        wefti_zero(area, wefti_team_area_bytes((unsigned)parent->pes));
        status = agree_on_lists(parent, members, team, hash, key, call);
        if (status != WEFT_OK && parent->dead == WEFT_OK) {
            (void)wefti_team_dealloc(parent, call, area);
        }
    }
    if (status != WEFT_OK) {
        record_destroy(team);
        return status;
    }
    if (team != NULL) {
        team->area = area;
        team->epochs = &team->area->epochs;
        team->attachment.end = end_with_world;
        wefti_world_attach(parent->world, &team->attachment);
        WEFTI_COUNT(parent->world, teams_created, 1);
    } else {
        wefti_team_forget(parent, area);
    }
    *out = team;
    return WEFT_OK;
}

static weft_status create(weft_team *parent, const member_list *members, const uint64_t key[2], const char *call,
                          weft_status mine, weft_team **out)
{
    const wefti_span span = wefti_team_span_begin(parent, call);
    return wefti_team_span_end(parent, &span, SIZE_MAX, agree_and_create(parent, members, key, call, mine, out));
}

static weft_status check_split(const weft_team *parent, int start, int stride, int size, const char *call)
{
    int64_t last = (int64_t)start + (int64_t)stride * ((int64_t)size - 1);
    if (size < 1 || size > parent->pes || start < 0 || start >= parent->pes || last < 0 || last >= parent->pes ||
        (stride == 0 && size > 1)) {
        return wefti_error(WEFT_ERR_RANGE,
                           "%s: members %d + i * %d for i < %d are not different members of the parent of %d PEs", call,
                           start, stride, size, parent->pes);
    }
    return WEFT_OK;
}

static weft_status check_place(weft_team **team, const char *call)
{
    return team != NULL ? WEFT_OK : wefti_error_null(call, "team");
}

weft_status weft_team_split_strided(weft_team *parent, int start, int stride, int size, weft_team **team)
{
    static const char call[] = "weft_team_split_strided";
    WEFT_TRY(wefti_team_check(parent, call));
    const uint64_t key[2] = {(uint64_t)(uint32_t)start << 32 | (uint32_t)stride, (uint64_t)(uint32_t)size << 1};
    member_list members = {.start = start, .stride = stride};
    weft_status mine = check_place(team, call);
    if (mine == WEFT_OK) {
        mine = check_split(parent, start, stride, size, call);
    }
    if (mine == WEFT_OK) {
        int distance = parent->pe - start;
        int is_member =
            stride == 0 ? distance == 0 : distance % stride == 0 && distance / stride >= 0 && distance / stride < size;
        members.count = is_member ? size : 0;
    }
    return create(parent, &members, key, call, mine, team);
}

weft_status weft_team_split_2d(weft_team *parent, int xrange, weft_team **x, weft_team **y)
{
    static const char call[] = "weft_team_split_2d";
    WEFT_TRY(wefti_team_check(parent, call));
    uint64_t key[2] = {(uint64_t)(uint32_t)xrange, 0};
    weft_status mine = check_place(x == NULL ? x : y, call);
    if (mine == WEFT_OK && xrange < 1) {
        mine = wefti_error(WEFT_ERR_RANGE, "%s: rows of %d members", call, xrange);
    }
    int width = xrange < 1 ? 1 : xrange < parent->pes ? xrange : parent->pes;
    int column = parent->pe % width;
    int first = parent->pe - column;
    const member_list row = {
        .count = parent->pes - first < width ? parent->pes - first : width, .start = first, .stride = 1};
    const member_list members = {.count = (parent->pes - column - 1) / width + 1, .start = column, .stride = width};
    weft_team *teams[2] = {NULL, NULL};
    WEFT_TRY(create(parent, &row, key, call, mine, &teams[0]));
    key[1] = 2; /* a call of its own */
    weft_status status = create(parent, &members, key, call, WEFT_OK, &teams[1]);
    if (status != WEFT_OK) {
        weft_status ended = weft_team_destroy(teams[0]);
        return ended == WEFT_OK || ended == WEFT_ERR_TIMEOUT ? status : ended;
    }
    *x = teams[0];
    *y = teams[1];
    return WEFT_OK;
}

weft_status weft_team_create(weft_team *parent, const int *list, int count, weft_team **team)
{
    static const char call[] = "weft_team_create";
    static const uint64_t key[2] = {0, 0};
    WEFT_TRY(wefti_team_check(parent, call));
    const member_list members = {.count = count, .list = list};
    weft_status mine = check_place(team, call);
    if (mine == WEFT_OK && (count < 0 || count > parent->pes || (count > 0 && list == NULL))) {
        mine = wefti_error(WEFT_ERR_ARGUMENT, "%s: %s of %d members of a parent of %d", call,
                           list == NULL ? "no list" : "a list", count, parent->pes);
    }
    return create(parent, &members, key, call, mine, team);
}

/* ---- a team that its members alone call for ---- */

/* How many bytes of an area a sync by rounds (dissemination) of so many members uses. */
static size_t rounds_bytes(unsigned members)
{
    return sizeof(wefti_team_area) + 3 * (size_t)wefti_rounds(members) * sizeof(wefti_line);
}

static void *line_of(void *place)
{
    return (void *)(((uintptr_t)place + WEFTI_CACHE_LINE - 1) / WEFTI_CACHE_LINE * WEFTI_CACHE_LINE);
}

static weft_status check_room(weft_world *world, int count, const void *place, const char *call)
{
    if (rounds_bytes((unsigned)count) + WEFTI_CACHE_LINE > WEFT_TEAM_JOIN_BYTES) {
        return wefti_error(WEFT_ERR_RANGE, "%s: %d members; a place is large enough for 65536", call, count);
    }
    if (((uintptr_t)place & 7) != 0 || !wefti_is_near(world, place, WEFT_TEAM_JOIN_BYTES, world->team_world.pe)) {
        return wefti_error(WEFT_ERR_RANGE,
                           "%s: the %zu bytes at %p do not lie in the heap of world \"%s\", aligned to 8", call,
                           WEFT_TEAM_JOIN_BYTES, place, world->name);
    }
    return WEFT_OK;
}

static weft_status check_join(weft_world *world, const member_list *members, const void *place, const char *call)
{
    const weft_team *all = &world->team_world;
    WEFT_TRY(check_split(all, members->start, members->stride, members->count, call));
    const int distance = all->pe - members->start;
    const int is_member = members->count == 1 ? distance == 0
                                              : distance % members->stride == 0 && distance / members->stride >= 0 &&
                                                    distance / members->stride < members->count;
    if (!is_member) {
        return wefti_error(WEFT_ERR_RANGE, "%s: PE %d is none of the PEs %d + i * %d for i < %d; members alone call",
                           call, all->pe, members->start, members->stride, members->count);
    }
    return check_room(world, members->count, place, call);
}

/* The members first form a passing team whose flags lie in `place`; over that the team is made as any other. */
static weft_status join(weft_world *world, const member_list *members, const uint64_t key[2], void *place,
                        const char *call, weft_team **team)
{
    const member_list all = {.count = members->count, .start = 0, .stride = 1};
    weft_team *meeting;
    WEFT_TRY(record_create(&world->team_world, members, call, &meeting));
    meeting->counted = 0;
    meeting->area = line_of(place);
    meeting->epochs = &meeting->area->epochs;
    weft_status status = create(meeting, &all, key, call, WEFT_OK, team);
    /* What the others wrote here has been read: leave the place as the next join expects it. */
    if (status == WEFT_OK) {
        wefti_zero(place, WEFT_TEAM_JOIN_BYTES);
    }
    record_free(meeting);
    return status;
}

weft_status weft_team_join(weft_world *world, int start, int stride, int size, void *place, weft_team **team)
{
    static const char call[] = "weft_team_join";
    const member_list members = {.count = size, .start = start, .stride = stride};
    const uint64_t key[2] = {(uint64_t)(uint32_t)start << 32 | (uint32_t)stride, (uint64_t)(uint32_t)size << 1};
    WEFT_TRY(wefti_team_check(weft_team_world(world), call));
    WEFT_TRY(check_place(team, call));
    WEFT_TRY(check_join(world, &members, place, call));
    return join(world, &members, key, place, call, team);
}

weft_status weft_team_join_list(weft_world *world, const int *list, int count, void *place, weft_team **team)
{
    static const char call[] = "weft_team_join_list";
    const member_list members = {.count = count, .list = list};
    WEFT_TRY(wefti_team_check(weft_team_world(world), call));
    WEFT_TRY(check_place(team, call));
    if (count < 1 || count > world->team_world.pes || list == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: %s of %d members of a world of %d PEs", call,
                           list == NULL ? "no list" : "a list", count, world->team_world.pes);
    }
    WEFT_TRY(check_members(&world->team_world, &members, call));
    WEFT_TRY(check_room(world, count, place, call));
    const uint64_t key[2] = {hash_of(&members), 1};
    return join(world, &members, key, place, call, team);
}

/* Destroy a team that the program made and that is not destroyed yet. */
static weft_status destroy(weft_team *team, const char *call)
{
    weft_status status = WEFT_OK;
    if (team->dead == WEFT_OK && weft_world_fault(team->world, NULL) == WEFT_OK) {
        status = wefti_team_dealloc_area(team, call);
        if (status == WEFT_ERR_MISMATCH || (status != WEFT_OK && team->dead == WEFT_OK)) {
            return status; /* the members disagree; the team lives on */
        }
        if (status == WEFT_OK) { /* all have come, so nobody writes there any more */
            if (team->coll_scratch != NULL) {
                wefti_team_forget(team, team->coll_scratch);
            }
            wefti_team_device_forget(team);
        }
    }
    /* The area of a dead team stays taken: a late peer may still write there. */
    wefti_team_device_give_sms(team);
    record_retire(team);
    return status;
}

weft_status weft_team_destroy(weft_team *team)
{
    static const char call[] = "weft_team_destroy";
    if (team == NULL || team->world == NULL || wefti_world_is_forked(team->world)) {
        return WEFT_OK;
    }
    if (team->predefined) {
        return wefti_error(WEFT_ERR_ARGUMENT, "%s: a predefined team lives as long as its world", call);
    }
    WEFT_TRY(wefti_team_expect(team, call));
    const wefti_span span = wefti_span_begin(team->world, call);
    const int members = team->pes;
    weft_status status = destroy(team, call);
    wefti_span_end(&span, (wefti_span_details){.members = members, .bytes = SIZE_MAX, .status = status});
    return status;
}
