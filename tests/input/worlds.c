/* Statuses, bootstraps, worlds, the heap, teams, contexts, regions. */
#include <stdlib.h>
#include <string.h>

#include "input/table.h"
#include "support/pes.h"

#define UNTOUCHED ((void *)(uintptr_t)0x5a5a)

/* ---- statuses ---- */

COVERED(weft_version_text)
CASE(weft_version)
{
    (void)s;
    CHECK(weft_version() == WEFT_VERSION);
    CHECK(weft_version_text()[0] == '0' + WEFT_VERSION_MAJOR);
}

COVERED(weft_status_text)
COVERED(weft_last_error)
CASE(weft_status_name)
{
    const int wrong[] = {1, -100, INT_MAX, INT_MIN};
    (void)s;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK(strcmp(weft_status_name((weft_status)wrong[i]), "WEFT_ERR_(unknown)") == 0);
        CHECK(weft_status_text((weft_status)wrong[i]) != NULL);
    }
    CHECK(weft_last_error() != NULL);
}

CASE(weft_last_error_set)
{
    (void)s;
    CHECK(weft_last_error_set(WEFT_ERR_STATE, "%s%n: said elsewhere") == WEFT_ERR_STATE);
    CHECK(strcmp(weft_last_error(), "%s%n: said elsewhere") == 0);
    CHECK(weft_last_error_set((weft_status)1, NULL) == (weft_status)1);
    CHECK(weft_last_error()[0] == '\0');
}

/* ---- bootstraps ---- */

COVERED(weft_threads_destroy)
CASE(weft_threads_create)
{
    const int wrong[] = {0, -1, INT_MIN};
    weft_threads *threads = UNTOUCHED;
    (void)s;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_STATUS(weft_threads_create(wrong[i], &threads), WEFT_ERR_ARGUMENT);
    }
    CHECK_STATUS(weft_threads_create(2, NULL), WEFT_ERR_ARGUMENT);
    CHECK(threads == UNTOUCHED);
    weft_threads_destroy(NULL);
}

COVERED(weft_uid_discard)
CASE(weft_uid_create)
{
    weft_uid uid;
    weft_uid unread;
    (void)s;
    memset(&uid, POISON, sizeof uid);
    memset(&unread, POISON, sizeof unread);
    CHECK_STATUS(weft_uid_create(NULL, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_uid_create("no such interface", &uid), WEFT_ERR_ARGUMENT);
    CHECK(memcmp(&uid, &unread, sizeof uid) == 0);
    CHECK_STATUS(weft_uid_discard(NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_uid_discard(&uid), WEFT_ERR_ARGUMENT);
    if (weft_uid_create("lo", &uid) == WEFT_OK) { /* without libsodium there are no ids */
        CHECK_OK(weft_uid_discard(&uid));
        CHECK_STATUS(weft_uid_discard(&uid), WEFT_ERR_ARGUMENT);
    }
}

/* ---- worlds ---- */

static void refuse_config(const weft_world_config *config, const char *what)
{
    weft_world *world = UNTOUCHED;
    weft_status status = weft_world_create(config, &world);
    CHECK_SAY(status == WEFT_ERR_ARGUMENT && world == UNTOUCHED, "a config with %s gave %s", what,
              weft_status_name(status));
    status = weft_world_create_many(config, 1, &world);
    CHECK_SAY(status == WEFT_ERR_ARGUMENT && world == UNTOUCHED, "create_many of a config with %s gave %s", what,
              weft_status_name(status));
}

#define REFUSE_CONFIG(FIELD, WRONG)                                                                                    \
    do {                                                                                                               \
        weft_world_config bad = config;                                                                                \
        bad.FIELD = WRONG;                                                                                             \
        refuse_config(&bad, #FIELD " " #WRONG);                                                                        \
    } while (0)

/* A config of newer headers, with a field that this library does not know. A struct has as many bytes as its size
 * says. */
static void refuse_newer_config(const weft_world_config *config)
{
    struct {
        weft_world_config known;
        uint64_t unknown;
    } newer = {.known = *config, .unknown = 1};
    newer.known.size = sizeof newer;
    refuse_config(&newer.known, "a field that is set beyond those known");
}

COVERED(weft_world_create_many)
CASE(weft_world_create)
{
    char long_name[65];
    weft_threads *threads = pes_meeting(1);
    const weft_world_config config = pes_config(threads, 0, 1);
    const weft_callback_ops no_call = {.size = sizeof no_call};
    weft_world *world = UNTOUCHED;
    (void)s;
    memset(long_name, 'n', sizeof long_name);
    long_name[64] = '\0';
    CHECK_STATUS(weft_world_create(&config, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_world_create_many(NULL, 1, &world), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_world_create_many(&config, 0, &world), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_world_create_many(&config, 1, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_world_create_many(&config, SIZE_MAX, &world), WEFT_ERR_MEMORY);
    CHECK_STATUS(weft_world_create_many(&config, SIZE_MAX / sizeof config + 2, &world), WEFT_ERR_MEMORY);
    CHECK(world == UNTOUCHED);
    REFUSE_CONFIG(size, 0);
    REFUSE_CONFIG(size, SIZE_MAX);
    REFUSE_CONFIG(name, "");
    REFUSE_CONFIG(name, long_name);
    REFUSE_CONFIG(pe, -1);
    REFUSE_CONFIG(pe, INT_MIN);
    REFUSE_CONFIG(pes, -1);
    REFUSE_CONFIG(pes, INT_MAX);
    REFUSE_CONFIG(pes, INT_MIN);
    REFUSE_CONFIG(bootstrap, (weft_bootstrap_kind)-1);
    REFUSE_CONFIG(bootstrap, (weft_bootstrap_kind)100);
    REFUSE_CONFIG(bootstrap, WEFT_BOOTSTRAP_UID);
    REFUSE_CONFIG(bootstrap, WEFT_BOOTSTRAP_CALLBACK);
    REFUSE_CONFIG(threads, NULL);
    REFUSE_CONFIG(heap_max_bytes, SIZE_MAX);
    REFUSE_CONFIG(heap_bytes, SIZE_MAX);
    REFUSE_CONFIG(heap_bytes, config.heap_max_bytes + 1);
    REFUSE_CONFIG(sparse_bytes, SIZE_MAX);
    REFUSE_CONFIG(deadline_ns, WEFT_FOREVER - 1);
    weft_world_config by_callback = config;
    by_callback.bootstrap = WEFT_BOOTSTRAP_CALLBACK;
    by_callback.callback = &no_call;
    refuse_config(&by_callback, "a callback without an allgather");
    refuse_newer_config(&config);
    weft_threads_destroy(threads);
    threads = pes_meeting(1);
    weft_world_config beyond = pes_config(threads, INT_MAX, 1);
    /* The others must hear of it, so it is refused where they meet, which then is used up. */
    CHECK_STATUS(weft_world_create(&beyond, &world), WEFT_ERR_MISMATCH);
    beyond.pe = 0;
    CHECK_STATUS(weft_world_create(&beyond, &world), WEFT_ERR_STATE);
    CHECK(world == UNTOUCHED);
    weft_threads_destroy(threads);
}

CASE(weft_world_destroy)
{
    CHECK_OK(weft_world_destroy(NULL));
    use_destroyed(s);
}

CASE(weft_world_abort)
{
    (void)s;
    CHECK_STATUS(weft_world_abort(NULL, 1), WEFT_ERR_ARGUMENT);
}

CASE(weft_world_fault)
{
    int culprit = 11;
    CHECK_STATUS(weft_world_fault(NULL, &culprit), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_world_fault(s->world, NULL));
    CHECK(culprit == 11);
}

COVERED(weft_world_pes)
CASE(weft_world_pe)
{
    (void)s;
    CHECK(weft_world_pe(NULL) == -1);
    CHECK(weft_world_pes(NULL) == -1);
}

CASE(weft_world_sparse)
{
    weft_sparse sparse = {.bytes = 11};
    CHECK_STATUS(weft_world_sparse(NULL, &sparse), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_world_sparse(s->world, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_world_sparse(s->world, &sparse), WEFT_ERR_UNSUPPORTED);
    CHECK(sparse.bytes == 11);
}

CASE(weft_world_phases)
{
    weft_world_phase phase = {.name = UNTOUCHED};
    CHECK(weft_world_phases(NULL, &phase, 1) == 0);
    CHECK(weft_world_phases(s->world, NULL, SIZE_MAX) > 0);
    CHECK(weft_world_phases(s->world, &phase, 0) > 0);
    CHECK(phase.name == UNTOUCHED);
}

CASE(weft_world_transport_map)
{
    char text[4] = {POISON, POISON, POISON, POISON};
    CHECK(weft_world_transport_map(NULL, NULL, 0) == 0);
    CHECK(weft_world_transport_map(s->world, NULL, 0) > 0);
    CHECK(weft_world_transport_map(s->world, NULL, SIZE_MAX) > 0);
    CHECK(weft_world_transport_map(s->world, text, 0) > 0);
    CHECK(text[0] == (char)POISON);
    CHECK(weft_world_transport_map(s->world, text, 2) > 2);
    CHECK(text[1] == '\0' && text[2] == (char)POISON);
}

CASE(weft_world_counter)
{
    uint64_t number = 11;
    CHECK(weft_world_counter(NULL, 0, &number) == NULL);
    CHECK(weft_world_counter(s->world, 0, NULL) == NULL);
    CHECK(weft_world_counter(s->world, sizeof(weft_counters) / sizeof(uint64_t), &number) == NULL);
    CHECK(weft_world_counter(s->world, SIZE_MAX, &number) == NULL);
    CHECK(number == 11);
    CHECK(weft_world_counter(s->world, 0, &number) != NULL);
}

CASE(weft_world_counters)
{
    weft_counters counters = {.heap_allocs = 11};
    CHECK_STATUS(weft_world_counters(NULL, &counters), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_world_counters(s->world, NULL), WEFT_ERR_ARGUMENT);
    CHECK(counters.heap_allocs == 11);
}

/* ---- the heap ---- */

COVERED(weft_team_malloc)
COVERED(weft_calloc)
COVERED(weft_align)
CASE(weft_malloc)
{
    const size_t too_large[] = {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2, (size_t)1 << 40};
    const size_t no_alignment[] = {0, 3, 65, (size_t)32 << 20, SIZE_MAX};
    void *block = UNTOUCHED;
    CHECK_STATUS(weft_malloc(NULL, 8, &block), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_malloc(s->world, 8, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_malloc(NULL, 8, &block), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_malloc(s->team, 8, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_calloc(NULL, 1, 8, &block), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_calloc(s->world, 1, 8, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_calloc(s->world, SIZE_MAX / 8 + 2, 8, &block), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_align(NULL, 64, 8, &block), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_align(s->world, 64, 8, NULL), WEFT_ERR_ARGUMENT);
    for (size_t i = 0; i < sizeof too_large / sizeof too_large[0]; i++) {
        CHECK_STATUS(weft_malloc(s->world, too_large[i], &block), WEFT_ERR_MEMORY);
        CHECK_STATUS(weft_team_malloc(s->team, too_large[i], &block), WEFT_ERR_MEMORY);
        CHECK_STATUS(weft_calloc(s->world, 1, too_large[i], &block), WEFT_ERR_MEMORY);
        CHECK_STATUS(weft_align(s->world, 4096, too_large[i], &block), WEFT_ERR_MEMORY);
    }
    for (size_t i = 0; i < sizeof no_alignment / sizeof no_alignment[0]; i++) {
        CHECK_STATUS(weft_align(s->world, no_alignment[i], 8, &block), WEFT_ERR_ARGUMENT);
    }
    CHECK(block == UNTOUCHED);
    CHECK_OK(weft_malloc(s->world, 0, &block));
    CHECK(block == NULL);
    block = UNTOUCHED;
    CHECK_OK(weft_calloc(s->world, 0, SIZE_MAX, &block));
    CHECK(block == NULL);
    block = UNTOUCHED;
    CHECK_OK(weft_align(s->world, 64, 0, &block));
    CHECK(block == NULL);
}

COVERED(weft_team_realloc)
CASE(weft_realloc)
{
    static long not_symmetric;
    void *block = NULL;
    void *result = UNTOUCHED;
    CHECK_OK(weft_malloc(s->world, 256, &block));
    void *const wrong[] = {&not_symmetric,     s->other,          s->foreign_block,          s->end,
                           (char *)block + 64, (char *)block + 1, (void *)(UINTPTR_MAX - 63)};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_STATUS(weft_realloc(s->world, wrong[i], 8, &result), WEFT_ERR_ARGUMENT);
        CHECK_STATUS(weft_team_realloc(s->team, wrong[i], 8, &result), WEFT_ERR_ARGUMENT);
        CHECK_STATUS(weft_realloc(s->world, wrong[i], 0, &result), WEFT_ERR_ARGUMENT);
    }
    CHECK_STATUS(weft_realloc(NULL, block, 8, &result), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_realloc(NULL, block, 8, &result), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_realloc(s->world, block, 8, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_realloc(s->world, NULL, 8, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_realloc(s->world, block, SIZE_MAX, &result), WEFT_ERR_MEMORY);
    CHECK_STATUS(weft_realloc(s->world, block, (size_t)1 << 40, &result), WEFT_ERR_MEMORY);
    CHECK_STATUS(weft_team_realloc(weft_team_node(s->world), block, 8, &result), WEFT_ERR_ARGUMENT); /* not its block */
    CHECK(result == UNTOUCHED);
    CHECK_OK(weft_realloc(s->world, block, 0, &result));
    CHECK(result == NULL);
    CHECK_STATUS(weft_realloc(s->world, block, 8, &result), WEFT_ERR_ARGUMENT); /* freed already */
}

COVERED(weft_team_free)
CASE(weft_free)
{
    static long not_symmetric;
    void *block = NULL;
    CHECK_OK(weft_malloc(s->world, 256, &block));
    void *const wrong[] = {&not_symmetric, s->other,           s->foreign_block,  s->end,
                           s->end + 4096,  (char *)block + 64, (char *)block + 1, (void *)(UINTPTR_MAX - 63)};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_STATUS(weft_free(s->world, wrong[i]), WEFT_ERR_ARGUMENT);
        CHECK_STATUS(weft_team_free(s->team, wrong[i]), WEFT_ERR_ARGUMENT);
    }
    CHECK_STATUS(weft_free(NULL, block), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_free(NULL, block), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_free(s->foreign, block), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_free(weft_team_world(s->foreign), block), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_free(s->world, NULL));
    CHECK_OK(weft_team_free(s->team, NULL));
    CHECK_OK(weft_free(s->world, block));
    CHECK_STATUS(weft_free(s->world, block), WEFT_ERR_ARGUMENT); /* freed already */
    CHECK_STATUS(weft_team_free(s->team, block), WEFT_ERR_ARGUMENT);
}

COVERED(weft_pe_accessible)
CASE(weft_addr_accessible)
{
    static long not_symmetric;
    const int no_pe[] = {-1, s->pes, INT_MAX, INT_MIN};
    CHECK(weft_addr_accessible(s->world, s->block, 1 - s->me) == 1 && weft_pe_accessible(s->world, 1) == 1);
    CHECK(weft_addr_accessible(NULL, s->block, 0) == 0 && weft_pe_accessible(NULL, 0) == 0);
    CHECK(weft_addr_accessible(s->world, NULL, 0) == 0);
    CHECK(weft_addr_accessible(s->world, &not_symmetric, 0) == 0);
    CHECK(weft_addr_accessible(s->world, s->foreign_block, 0) == 0);
    CHECK(weft_addr_accessible(s->world, s->end, 0) == 0);
    for (size_t i = 0; i < sizeof no_pe / sizeof no_pe[0]; i++) {
        CHECK(weft_addr_accessible(s->world, s->block, no_pe[i]) == 0 && weft_pe_accessible(s->world, no_pe[i]) == 0);
    }
}

CASE(weft_ptr)
{
    static long not_symmetric;
    const int no_pe[] = {-1, s->pes, INT_MAX, INT_MIN};
    CHECK(weft_ptr(NULL, s->block, 0) == NULL);
    CHECK(weft_ptr(s->world, NULL, 0) == NULL);
    CHECK(weft_ptr(s->world, &not_symmetric, 0) == NULL);
    CHECK(weft_ptr(s->world, s->other, 0) == NULL);
    CHECK(weft_ptr(s->world, s->foreign_block, 0) == NULL);
    CHECK(weft_ptr(s->world, s->end, 0) == NULL);
    CHECK(weft_ptr(s->world, (void *)UINTPTR_MAX, 0) == NULL);
    for (size_t i = 0; i < sizeof no_pe / sizeof no_pe[0]; i++) {
        CHECK(weft_ptr(s->world, s->block, no_pe[i]) == NULL);
    }
}

/* ---- teams ---- */

COVERED(weft_team_node)
COVERED(weft_team_link)
COVERED(weft_team_same_slot)
CASE(weft_team_world)
{
    (void)s;
    CHECK(weft_team_world(NULL) == NULL);
    CHECK(weft_team_node(NULL) == NULL);
    CHECK(weft_team_link(NULL) == NULL);
    CHECK(weft_team_same_slot(NULL) == NULL);
}

CASE(weft_team_split_strided)
{
    static const struct {
        int start, stride, size;
    } wrong[] = {{-1, 1, 1},      {0, 1, 0},  {0, 1, -1},      {0, 1, 3},       {0, 1, INT_MAX},
                 {0, 0, 2},       {2, 1, 1},  {INT_MAX, 1, 1}, {INT_MIN, 1, 1}, {0, INT_MAX, 2},
                 {0, INT_MIN, 2}, {0, -1, 2}, {1, INT_MAX, 2}, {1, 1, 2},       {0, 1, INT_MIN}};
    weft_team *team = UNTOUCHED;
    CHECK_STATUS(weft_team_split_strided(NULL, 0, 1, 1, &team), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_split_strided(s->team, 0, 1, 1, NULL), WEFT_ERR_ARGUMENT);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_STATUS(weft_team_split_strided(s->team, wrong[i].start, wrong[i].stride, wrong[i].size, &team),
                     WEFT_ERR_RANGE);
    }
    CHECK(team == UNTOUCHED);
}

CASE(weft_team_join)
{
    static const struct {
        int start, stride, size;
    } wrong[] = {{-1, 1, 1}, {0, 1, 0}, {0, 1, -1}, {0, 1, 3}, {0, 0, 2}, {INT_MAX, 1, 1}, {0, INT_MIN, 2}, {0, -1, 2}};
    weft_team *team = UNTOUCHED;
    CHECK_STATUS(weft_team_join(NULL, 0, 1, 1, s->block, &team), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_join(s->world, s->me, 1, 1, s->block, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_join(s->world, 1 - s->me, 1, 1, s->block, &team), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_team_join(s->world, s->me, 1, 1, NULL, &team), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_team_join(s->world, s->me, 1, 1, s->in, &team), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_team_join(s->world, s->me, 1, 1, s->block + 1, &team), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_team_join(s->world, s->me, 1, 1, s->end - 8, &team), WEFT_ERR_RANGE);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_STATUS(weft_team_join(s->world, wrong[i].start, wrong[i].stride, wrong[i].size, s->block, &team),
                     WEFT_ERR_RANGE);
    }
    CHECK(team == UNTOUCHED);
}

CASE(weft_team_join_list)
{
    const int both[] = {0, 1};
    const int twice[] = {s->me, s->me};
    const int other[] = {1 - s->me};
    const int outside[] = {s->me, 2};
    weft_team *team = UNTOUCHED;
    CHECK_STATUS(weft_team_join_list(NULL, both, 2, s->block, &team), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_join_list(s->world, both, 2, s->block, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_join_list(s->world, NULL, 1, s->block, &team), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_join_list(s->world, both, 0, s->block, &team), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_join_list(s->world, both, 3, s->block, &team), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_join_list(s->world, other, 1, s->block, &team), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_join_list(s->world, twice, 2, s->block, &team), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_team_join_list(s->world, outside, 2, s->block, &team), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_team_join_list(s->world, both, 2, NULL, &team), WEFT_ERR_RANGE);
    CHECK_STATUS(weft_team_join_list(s->world, both, 2, s->block + 1, &team), WEFT_ERR_RANGE);
    CHECK(team == UNTOUCHED);
}

CASE(weft_team_split_2d)
{
    const int wrong[] = {0, -1, INT_MIN};
    weft_team *x = UNTOUCHED;
    weft_team *y = UNTOUCHED;
    CHECK_STATUS(weft_team_split_2d(NULL, 1, &x, &y), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_split_2d(s->team, 1, NULL, &y), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_split_2d(s->team, 1, &x, NULL), WEFT_ERR_ARGUMENT);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_STATUS(weft_team_split_2d(s->team, wrong[i], &x, &y), WEFT_ERR_RANGE);
    }
    CHECK(x == UNTOUCHED && y == UNTOUCHED);
}

CASE(weft_team_create)
{
    const int lists[][2] = {{0, 2}, {-1, 0}, {INT_MAX, INT_MIN}, {s->me, s->me}};
    const int not_me[] = {1 - s->me};
    weft_team *team = UNTOUCHED;
    CHECK_STATUS(weft_team_create(NULL, lists[0], 1, &team), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_create(s->team, lists[0], 1, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_create(s->team, NULL, 1, &team), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_create(s->team, lists[0], -1, &team), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_create(s->team, lists[0], INT_MIN, &team), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_create(s->team, lists[0], 3, &team), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_create(s->team, lists[0], INT_MAX, &team), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_create(s->team, not_me, 1, &team), WEFT_ERR_ARGUMENT);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        CHECK_STATUS(weft_team_create(s->team, lists[i], 2, &team), WEFT_ERR_RANGE);
    }
    CHECK(team == UNTOUCHED);
}

CASE(weft_team_destroy)
{
    CHECK_OK(weft_team_destroy(NULL));
    CHECK_STATUS(weft_team_destroy(s->team), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_destroy(weft_team_node(s->world)), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_destroy(weft_team_link(s->world)), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_destroy(weft_team_same_slot(s->world)), WEFT_ERR_ARGUMENT);
}

COVERED(weft_team_query)
CASE(weft_team_configure)
{
    weft_team_config config = WEFT_TEAM_CONFIG_INIT;
    weft_team_config negative = config;
    weft_team_config unsized = config;
    weft_team_config asked = WEFT_TEAM_CONFIG_INIT;
    config.contexts = 3;
    negative.contexts = -1;
    unsized.size = 0;
    CHECK_OK(weft_team_configure(s->team, &config));
    CHECK_STATUS(weft_team_configure(NULL, &config), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_configure(s->team, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_configure(s->team, &negative), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_configure(s->team, &unsized), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_query(NULL, &asked), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_query(s->team, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_team_query(s->team, &unsized), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_team_query(s->team, &asked));
    CHECK(asked.contexts == 3 && unsized.contexts == 0);
}

COVERED(weft_team_pes)
COVERED(weft_team_owner)
CASE(weft_team_pe)
{
    (void)s;
    CHECK(weft_team_pe(NULL) == -1);
    CHECK(weft_team_pes(NULL) == -1);
    CHECK(weft_team_owner(NULL) == NULL);
}

CASE(weft_team_translate)
{
    const int no_pe[] = {-1, s->pes, INT_MAX, INT_MIN};
    CHECK(weft_team_translate(NULL, 0, s->team) == -1);
    CHECK(weft_team_translate(s->team, 0, NULL) == -1);
    CHECK(weft_team_translate(s->team, 0, weft_team_world(s->foreign)) == -1);
    for (size_t i = 0; i < sizeof no_pe / sizeof no_pe[0]; i++) {
        CHECK(weft_team_translate(s->team, no_pe[i], s->team) == -1);
    }
}

/* ---- contexts and regions ---- */

COVERED(weft_ctx_destroy)
COVERED(weft_ctx_team)
CASE(weft_ctx_create)
{
    const unsigned no_options[] = {8, UINT_MAX, 1u << 31};
    weft_ctx *ctx = UNTOUCHED;
    CHECK_STATUS(weft_ctx_create(NULL, 0, &ctx), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ctx_create(s->team, 0, NULL), WEFT_ERR_ARGUMENT);
    for (size_t i = 0; i < sizeof no_options / sizeof no_options[0]; i++) {
        CHECK_STATUS(weft_ctx_create(s->team, no_options[i], &ctx), WEFT_ERR_ARGUMENT);
    }
    CHECK(ctx == UNTOUCHED);
    CHECK_OK(weft_ctx_destroy(NULL));
    CHECK(weft_ctx_team(NULL) == NULL);
}

COVERED(weft_ctx_session_stop)
CASE(weft_ctx_session_start)
{
    CHECK_STATUS(weft_ctx_session_start(NULL, 0, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ctx_session_start(s->ctx, 4, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ctx_session_start(s->ctx, UINT_MAX, 0), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_ctx_session_stop(NULL), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_ctx_session_start(s->ctx, WEFT_SESSION_BATCH | WEFT_SESSION_SAME_AMO, SIZE_MAX));
    CHECK_OK(weft_ctx_session_stop(s->ctx));
}

COVERED(weft_unregister)
COVERED(weft_region_address)
COVERED(weft_region_bytes)
CASE(weft_register)
{
    weft_region *region = UNTOUCHED;
    CHECK_STATUS(weft_register(NULL, s->in, 8, &region), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_register(s->world, NULL, 8, &region), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_register(s->world, s->in, 8, NULL), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_register(s->world, s->in, 0, &region), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_register(s->world, s->in, SIZE_MAX, &region), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_register(s->world, s->block, 8, &region), WEFT_ERR_ARGUMENT);
    /* from far before the heap to its middle */
    CHECK_STATUS(weft_register(s->world, (void *)(uintptr_t)4096, (uintptr_t)s->block - 4096, &region),
                 WEFT_ERR_ARGUMENT);
    CHECK(region == UNTOUCHED);
    CHECK_OK(weft_unregister(NULL));
    CHECK(weft_region_address(NULL) == NULL && weft_region_bytes(NULL) == 0);
}

static void use_destroyed_slab(weft_slab *slab)
{
#ifdef NDEBUG
    (void)slab;
#else
    weft_slab_use use = WEFT_SLAB_USE_INIT;
    void *piece = UNTOUCHED;
    CHECK_STATUS(weft_slab_destroy(slab), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_slab_alloc(slab, 1, 0, &piece), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_slab_free(slab, UNTOUCHED), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_slab_query(slab, &use), WEFT_ERR_ARGUMENT);
    CHECK(piece == UNTOUCHED);
#endif
}

COVERED(weft_slab_alloc)
COVERED(weft_slab_contains)
COVERED(weft_slab_create)
COVERED(weft_slab_destroy)
COVERED(weft_slab_free)
CASE(weft_slab_query)
{
    weft_slab *slab = UNTOUCHED;
    weft_slab_use use = WEFT_SLAB_USE_INIT;
    void *piece = UNTOUCHED;
    CHECK_STATUS(weft_slab_create(NULL, 64, &slab), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_slab_create(s->dest, 0, &slab), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_slab_create(s->dest, SIZE_MAX, &slab), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_slab_create(s->dest, 64, NULL), WEFT_ERR_ARGUMENT);
    CHECK(slab == UNTOUCHED);
    CHECK_OK(weft_slab_create(s->dest, PART_BYTES, &slab));
    CHECK_STATUS(weft_slab_alloc(NULL, 1, 0, &piece), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_slab_alloc(slab, 1, 3, &piece), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_slab_alloc(slab, 1, 0, NULL), WEFT_ERR_ARGUMENT);
    CHECK(piece == UNTOUCHED);
    CHECK_STATUS(weft_slab_free(NULL, s->dest), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_slab_free(slab, s->dest), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_slab_free(slab, NULL));
    CHECK(!weft_slab_contains(NULL, s->dest));
    CHECK_STATUS(weft_slab_query(NULL, &use), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_slab_query(slab, NULL), WEFT_ERR_ARGUMENT);
    CHECK_OK(weft_slab_alloc(slab, 1, 0, &piece));
    CHECK_STATUS(weft_slab_destroy(slab), WEFT_ERR_STATE);
    CHECK_OK(weft_slab_free(slab, piece));
    CHECK_OK(weft_slab_destroy(slab));
    CHECK_OK(weft_slab_destroy(NULL));
    use_destroyed_slab(slab);
}
