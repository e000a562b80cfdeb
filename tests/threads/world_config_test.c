/* Goal: configurations that disagree or cannot be are the same error on every PE, which names the offender, before any
 * memory is made; PEs that do not come are named at the deadline; the environment's values hold.
 * Method: PEs as threads, one of which, each in turn, is given a wrong config. This program has a memfd_create of its
 * own, which counts: no symmetric memory is made in a creation that fails so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/durations.h"
#include "os/os.h"
#include "support/check.h"
#include "support/ledger.h"
#include "support/load.h"
#include "support/pes.h"

#define SHORT_DEADLINE_NS load_patience_ns(400 * WEFTI_MILLISECOND_NS)

static int files_made;

/* Takes the place of the C library's. */
int memfd_create(const char *name, unsigned flags)
{
    __atomic_fetch_add(&files_made, 1, __ATOMIC_RELAXED);
    return (int)syscall(SYS_memfd_create, name, flags);
}

static int be_quiet(void **state)
{
    (void)state;
    return setenv("WEFT_LOG", "none", 1);
}

/* ---- one offender ---- */

#define PES 4

/* What a wrong config leads to. */
typedef struct wrong {
    const char *name;
    void (*spoil)(weft_world_config *config);
    weft_status on_offender;
    weft_status on_others;
    enum { NAMES_OFFENDER, NAMES_DUPLICATE, NAMES_BEYOND } named; /* who is in the text: the one before, or PE PES */
} wrong;

static void more_pes(weft_world_config *config)
{
    config->pes++;
}

static void fewer_pes(weft_world_config *config)
{
    config->pes = config->pe + 1;
}

static void duplicate(weft_world_config *config)
{
    config->pe = (config->pe + 1) % PES;
}

static void other_heap_max(weft_world_config *config)
{
    config->heap_max_bytes *= 2;
}

static void no_heap_max(weft_world_config *config)
{
    config->heap_max_bytes = 0;
}

static void other_heap(weft_world_config *config)
{
    config->heap_bytes = 1 << 16;
}

static void other_sparse(weft_world_config *config)
{
    config->sparse_bytes = 1 << 16;
}

/* Named by its program, though its sizes differ, too. */
static void other_program(weft_world_config *config)
{
    config->program[WEFT_PROGRAM_BYTES - 1] = 1;
    config->sparse_bytes = 1 << 16;
}

static void small_struct(weft_world_config *config)
{
    config->size = offsetof(weft_world_config, heap_max_bytes) - 1;
}

static void no_struct_size(weft_world_config *config)
{
    config->size = 0;
}

static void number_too_large(weft_world_config *config)
{
    config->pe = PES;
}

static void number_negative(weft_world_config *config)
{
    config->pe = -1;
}

static void pes_negative(weft_world_config *config)
{
    config->pes = -PES;
}

static void no_such_bootstrap(weft_world_config *config)
{
    config->bootstrap = (weft_bootstrap_kind)17;
}

static void no_meeting(weft_world_config *config)
{
    config->threads = NULL;
}

static void empty_name(weft_world_config *config)
{
    config->name = "";
}

static void long_name(weft_world_config *config)
{
    config->name = "a name of sixty-four bytes is one byte too long: abcdefghijklmno";
}

static void heap_above_max(weft_world_config *config)
{
    config->heap_bytes = config->heap_max_bytes + 1;
}

static void long_deadline(weft_world_config *config)
{
    config->deadline_ns = WEFT_FOREVER - 1;
}

/* All PEs learn of these at once: they could talk to each other. */
static const wrong told[] = {
    {"more PEs", more_pes, WEFT_ERR_MISMATCH, WEFT_ERR_MISMATCH, NAMES_OFFENDER},
    {"duplicate number", duplicate, WEFT_ERR_MISMATCH, WEFT_ERR_MISMATCH, NAMES_DUPLICATE},
    {"pe == pes", number_too_large, WEFT_ERR_MISMATCH, WEFT_ERR_MISMATCH, NAMES_BEYOND},
    {"larger heap_max_bytes", other_heap_max, WEFT_ERR_MISMATCH, WEFT_ERR_MISMATCH, NAMES_OFFENDER},
    {"default heap_max_bytes", no_heap_max, WEFT_ERR_MISMATCH, WEFT_ERR_MISMATCH, NAMES_OFFENDER},
    {"other heap_bytes", other_heap, WEFT_ERR_MISMATCH, WEFT_ERR_MISMATCH, NAMES_OFFENDER},
    {"other sparse_bytes", other_sparse, WEFT_ERR_MISMATCH, WEFT_ERR_MISMATCH, NAMES_OFFENDER},
    {"other program", other_program, WEFT_ERR_MISMATCH, WEFT_ERR_MISMATCH, NAMES_OFFENDER},
    {"heap_bytes above heap_max_bytes", heap_above_max, WEFT_ERR_ARGUMENT, WEFT_ERR_ARGUMENT, NAMES_OFFENDER},
    {"too long a deadline", long_deadline, WEFT_ERR_ARGUMENT, WEFT_ERR_ARGUMENT, NAMES_OFFENDER},
};

/* These leave the offender with nothing it could say to the others, who miss it. */
static const wrong missed[] = {
    {"struct too small to meet with", small_struct, WEFT_ERR_ARGUMENT, WEFT_ERR_TIMEOUT, NAMES_OFFENDER},
    {"struct without size", no_struct_size, WEFT_ERR_ARGUMENT, WEFT_ERR_TIMEOUT, NAMES_OFFENDER},
    {"negative pe", number_negative, WEFT_ERR_ARGUMENT, WEFT_ERR_TIMEOUT, NAMES_OFFENDER},
    {"negative pes", pes_negative, WEFT_ERR_ARGUMENT, WEFT_ERR_TIMEOUT, NAMES_OFFENDER},
    {"no such bootstrap", no_such_bootstrap, WEFT_ERR_ARGUMENT, WEFT_ERR_TIMEOUT, NAMES_OFFENDER},
    {"no meeting point", no_meeting, WEFT_ERR_ARGUMENT, WEFT_ERR_TIMEOUT, NAMES_OFFENDER},
    {"empty name", empty_name, WEFT_ERR_ARGUMENT, WEFT_ERR_TIMEOUT, NAMES_OFFENDER},
    {"long name", long_name, WEFT_ERR_ARGUMENT, WEFT_ERR_TIMEOUT, NAMES_OFFENDER},
};

static void try_wrong(const wrong *w, int offender, uint64_t deadline_ns)
{
    weft_threads *meeting = pes_meeting(PES);
    weft_world_config configs[PES];
    pes_outcome outcomes[PES];
    uint64_t waited_ns = 0; /* by the PE that waited longest */
    ledger before = ledger_read();
    for (int pe = 0; pe < PES; pe++) {
        configs[pe] = pes_config(meeting, pe, PES);
        configs[pe].deadline_ns = deadline_ns;
    }
    w->spoil(&configs[offender]);
    __atomic_store_n(&files_made, 0, __ATOMIC_RELAXED);
    pes_create(configs, PES, outcomes);
    CHECK_SAY(__atomic_load_n(&files_made, __ATOMIC_RELAXED) == 0, "%s: memory was made", w->name);
    for (int pe = 0; pe < PES; pe++) {
        weft_status wanted = pe == offender ? w->on_offender : w->on_others;
        const int names[] = {offender, (offender + 1) % PES, PES};
        int named = names[w->named];
        CHECK_SAY(outcomes[pe].status == wanted, "%s of PE %d: PE %d got %s: %s", w->name, offender, pe,
                  weft_status_name(outcomes[pe].status), outcomes[pe].text);
        CHECK_SAY(w->on_offender != w->on_others || strcmp(outcomes[pe].text, outcomes[0].text) == 0,
                  "%s: PE %d was told \"%s\", PE 0 \"%s\"", w->name, pe, outcomes[pe].text, outcomes[0].text);
        CHECK_SAY((pe == offender && w->on_offender != w->on_others) || text_names_pe(outcomes[pe].text, named),
                  "%s: PE %d is not named to PE %d by \"%s\"", w->name, named, pe, outcomes[pe].text);
        waited_ns = outcomes[pe].ns > waited_ns ? outcomes[pe].ns : waited_ns;
    }
    /* Who comes later is told when the first one's deadline passes. */
    CHECK_SAY(w->on_others != WEFT_ERR_TIMEOUT || waited_ns >= deadline_ns, "%s: a deadline of %llu ns met after %llu",
              w->name, (unsigned long long)deadline_ns, (unsigned long long)waited_ns);
    weft_threads_destroy(meeting);
    ledger after = ledger_read();
    CHECK(after.maps == before.maps && after.descriptors == before.descriptors);
}

static void test_all_are_told(void **state)
{
    (void)state;
    ledger before = ledger_read();
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        for (int offender = 0; offender < PES; offender++) {
            try_wrong(&told[i], offender, 30000 * WEFTI_MILLISECOND_NS);
        }
    }
    ledger_assert_same(&before);
}

static void test_fewer_pes(void **state)
{
    (void)state;
    const wrong fewer = {"fewer PEs", fewer_pes, WEFT_ERR_MISMATCH, WEFT_ERR_MISMATCH, NAMES_OFFENDER};
    for (int offender = 0; offender < PES - 1; offender++) {
        try_wrong(&fewer, offender, 30000 * WEFTI_MILLISECOND_NS);
    }
}

/* Which of two names is the wrong one cannot be told before all have come: both are in the text. */
static void test_other_name(void **state)
{
    (void)state;
    for (int offender = 0; offender < PES; offender++) {
        weft_threads *meeting = pes_meeting(PES);
        weft_world_config configs[PES];
        pes_outcome outcomes[PES];
        for (int pe = 0; pe < PES; pe++) {
            configs[pe] = pes_config(meeting, pe, PES);
            configs[pe].name = pe == offender ? "odd one" : "right one";
        }
        files_made = 0;
        pes_create(configs, PES, outcomes);
        CHECK(files_made == 0);
        for (int pe = 0; pe < PES; pe++) {
            CHECK(outcomes[pe].status == WEFT_ERR_MISMATCH);
            CHECK_SAY(strstr(outcomes[pe].text, "odd one") != NULL && strstr(outcomes[pe].text, "right one") != NULL,
                      "PE %d was told \"%s\"", pe, outcomes[pe].text);
            CHECK(strcmp(outcomes[pe].text, outcomes[0].text) == 0);
        }
        weft_threads_destroy(meeting);
    }
}

/* Both programs are in the text. */
static void test_other_program(void **state)
{
    (void)state;
    weft_threads *meeting = pes_meeting(2);
    weft_world_config configs[2];
    pes_outcome outcomes[2];
    for (int pe = 0; pe < 2; pe++) {
        configs[pe] = pes_config(meeting, pe, 2);
        configs[pe].program[0] = (unsigned char)(0xa0 + pe);
        configs[pe].sparse_bytes = (size_t)4096 << pe;
    }
    pes_create(configs, 2, outcomes);
    for (int pe = 0; pe < 2; pe++) {
        CHECK_SAY(strstr(outcomes[pe].text, "program a100") != NULL && strstr(outcomes[pe].text, "PE 0 a000") != NULL,
                  "PE %d was told \"%s\"", pe, outcomes[pe].text);
    }
    weft_threads_destroy(meeting);
}

static void test_offender_is_missed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof missed / sizeof *missed; i++) {
        int offender = (int)(i % PES); /* each in turn, over the table: a deadline passes each time */
        try_wrong(&missed[i], offender, SHORT_DEADLINE_NS);
    }
}

static void test_missing_are_named(void **state)
{
    (void)state;
    const unsigned sets[] = {0x01, 0x10, 0x0a, 0x1e}; /* of five PEs, who does not come */
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        weft_threads *meeting = pes_meeting(5);
        weft_world_config configs[5];
        pes_outcome outcomes[5];
        int come = 0;
        uint64_t deadline_ns = SHORT_DEADLINE_NS;
        for (int pe = 0; pe < 5; pe++) {
            if ((sets[i] >> pe & 1) == 0) {
                configs[come] = pes_config(meeting, pe, 5);
                configs[come++].deadline_ns = deadline_ns;
            }
        }
        files_made = 0;
        pes_create(configs, come, outcomes);
        CHECK(files_made == 0);
        for (int i_come = 0; i_come < come; i_come++) {
            const pes_outcome *outcome = &outcomes[i_come];
            CHECK(outcome->status == WEFT_ERR_TIMEOUT);
            CHECK_SAY(outcome->ns < deadline_ns + load_patience_ns(2000 * WEFTI_MILLISECOND_NS),
                      "a deadline of %llu ns met after %llu ns", (unsigned long long)deadline_ns,
                      (unsigned long long)outcome->ns);
            for (int pe = 0; pe < 5; pe++) {
                CHECK_SAY(text_names_pe(outcome->text, pe) == (int)(sets[i] >> pe & 1), "PE %d: \"%s\"", pe,
                          outcome->text);
            }
        }
        weft_threads_destroy(meeting);
    }
}

/* ---- sizes that cannot be: the same on all PEs, so the same error on all ---- */

static void expect_sizes(size_t heap_max_bytes, size_t heap_bytes, weft_status wanted, const char *what)
{
    weft_threads *meeting = pes_meeting(2);
    weft_world_config configs[2];
    pes_outcome outcomes[2];
    for (int pe = 0; pe < 2; pe++) {
        configs[pe] = pes_config(meeting, pe, 2);
        configs[pe].heap_max_bytes = heap_max_bytes;
        configs[pe].heap_bytes = heap_bytes;
        configs[pe].deadline_ns = 2000 * WEFTI_MILLISECOND_NS;
    }
    pes_create(configs, 2, outcomes);
    for (int pe = 0; pe < 2; pe++) {
        CHECK_SAY(outcomes[pe].status == wanted, "%s: %s: %s", what, weft_status_name(outcomes[pe].status),
                  outcomes[pe].text);
        CHECK_OK(weft_world_destroy(outcomes[pe].world));
    }
    weft_threads_destroy(meeting);
}

static void test_impossible_sizes(void **state)
{
    (void)state;
    ledger before = ledger_read();
    for (size_t less = 0; less <= 1 << 22; less = less == 0 ? 1 : 2 * less) {
        expect_sizes(SIZE_MAX - less, 0, WEFT_ERR_ARGUMENT, "a heap as large as all addresses");
    }
    expect_sizes(SIZE_MAX / 2, 0, WEFT_ERR_ARGUMENT, "half of all addresses");
    expect_sizes((size_t)1 << 60, 0, WEFT_ERR_ARGUMENT, "more than a process has addresses");
    expect_sizes(0, SIZE_MAX, WEFT_ERR_ARGUMENT, "a first heap as large as all addresses");
    expect_sizes(0, (size_t)1 << 50, WEFT_ERR_ARGUMENT, "a first heap above the default largest");
    size_t memory = (size_t)wefti_os_memory_bytes() / 4096 * 4096;
    expect_sizes(4 * memory, 2 * memory, WEFT_ERR_MEMORY, "a first heap above the machine's memory");
    ledger_assert_same(&before);
}

/* ---- structs of other versions' headers ---- */

/* As headers to come may have it. */
typedef struct newer_config {
    weft_world_config config;
    uint64_t more[2];
} newer_config;

typedef struct versions {
    newer_config configs[PES];
    pes_outcome outcomes[PES];
} versions;

static void create_of_version(int pe, void *context)
{
    versions *all = context;
    pes_outcome *outcome = &all->outcomes[pe];
    outcome->world = NULL;
    outcome->text[0] = '\0';
    outcome->status = weft_world_create(&all->configs[pe].config, &outcome->world);
    if (outcome->status != WEFT_OK) {
        (void)snprintf(outcome->text, sizeof outcome->text, "%s", weft_last_error());
    }
}

/* PE 1 has newer headers, with this in a field that is unknown here; PE 2 older ones, whose last fields are not
 * theirs. */
static void try_versions(uint64_t unknown, weft_status wanted)
{
    versions all;
    weft_threads *meeting = pes_meeting(PES);
    memset(&all, 0xa5, sizeof all);
    for (int pe = 0; pe < PES; pe++) {
        all.configs[pe].config = pes_config(meeting, pe, PES);
    }
    all.configs[1].config.size = sizeof(newer_config);
    all.configs[1].more[0] = 0;
    all.configs[1].more[1] = unknown;
    all.configs[2].config.size = offsetof(weft_world_config, warn_ns);
    all.configs[2].config.warn_ns = 1;
    all.configs[2].config.device = (const struct weft_device_config *)&all;
    pes_each(PES, create_of_version, &all);
    for (int pe = 0; pe < PES; pe++) {
        const pes_outcome *outcome = &all.outcomes[pe];
        char byte[32];
        (void)snprintf(byte, sizeof byte, "byte %zu of its %zu", sizeof(weft_world_config) + 8, sizeof(newer_config));
        CHECK_SAY(outcome->status == wanted, "PE %d: %s: %s", pe, weft_status_name(outcome->status), outcome->text);
        CHECK_SAY(wanted == WEFT_OK || (text_names_pe(outcome->text, 1) && strstr(outcome->text, byte) != NULL),
                  "PE %d was told \"%s\"", pe, outcome->text);
        CHECK_OK(weft_world_destroy(outcome->world));
    }
    weft_threads_destroy(meeting);
}

static void test_structs_of_other_versions(void **state)
{
    (void)state;
    try_versions(0, WEFT_OK);
    try_versions(1, WEFT_ERR_ARGUMENT);
}

/* ---- programs compiled with other headers ---- */

typedef struct compiled {
    weft_world_config configs[PES];
    wefti_headers headers[PES];
    pes_outcome outcomes[PES];
} compiled;

/* As the inline call of those headers does. */
static void create_with_headers(int pe, void *context)
{
    compiled *all = context;
    pes_outcome *outcome = &all->outcomes[pe];
    outcome->world = NULL;
    outcome->text[0] = '\0';
    outcome->status = pe == 3 ? wefti_world_create_many(&all->configs[pe], 1, &outcome->world, &all->headers[pe])
                              : wefti_world_create(&all->configs[pe], &outcome->world, &all->headers[pe]);
    if (outcome->status != WEFT_OK) {
        (void)snprintf(outcome->text, sizeof outcome->text, "%s", weft_last_error());
    }
}

static void try_headers(int pe, wefti_headers headers, weft_status wanted, const char *named)
{
    compiled all;
    const wefti_headers own = {WEFTI_VIEW_ABI, 0, WEFT_VERSION};
    weft_threads *meeting = pes_meeting(PES);
    for (int i = 0; i < PES; i++) {
        all.configs[i] = pes_config(meeting, i, PES);
        all.headers[i] = i == pe ? headers : own;
    }
    pes_each(PES, create_with_headers, &all);
    for (int i = 0; i < PES; i++) {
        const pes_outcome *outcome = &all.outcomes[i];
        CHECK_SAY(outcome->status == wanted, "PE %d: %s: %s", i, weft_status_name(outcome->status), outcome->text);
        CHECK_SAY(strstr(outcome->text, named) != NULL, "PE %d was told \"%s\"", i, outcome->text);
        CHECK_SAY(wanted == WEFT_OK || text_names_pe(outcome->text, pe), "PE %d was told \"%s\"", i, outcome->text);
        CHECK_OK(weft_world_destroy(outcome->world));
    }
    weft_threads_destroy(meeting);
}

static void test_other_headers(void **state)
{
    (void)state;
    const wefti_headers own = {WEFTI_VIEW_ABI, 0, WEFT_VERSION};
    for (int pe = 1; pe < PES; pe += 2) {
        wefti_headers older = {1, 0, 0};
        wefti_headers newer_view = own;
        wefti_headers newer = own;
        wefti_headers patch = own;
        newer_view.view_abi++;
        newer.version += 1 << 8;
        patch.version |= 0xff;
        try_headers(pe, older, WEFT_OK, "");
        try_headers(pe, patch, WEFT_OK, "");
        try_headers(pe, newer_view, WEFT_ERR_UNSUPPORTED, "compiled with headers of weft");
        try_headers(pe, newer, WEFT_ERR_UNSUPPORTED, "compiled with headers of weft");
    }
}

/* ---- the environment ---- */

typedef struct env_case {
    uint64_t reserved_bytes;
    size_t fits_bytes;
    size_t too_large_bytes;
} env_case;

static void check_env_heap(weft_world *world, void *context)
{
    const env_case *wanted = context;
    weft_counters counters;
    void *block;
    CHECK_OK(weft_world_counters(world, &counters));
    CHECK_SAY(counters.heap_bytes_reserved == wanted->reserved_bytes, "%llu bytes are reserved",
              (unsigned long long)counters.heap_bytes_reserved);
    CHECK_STATUS(weft_malloc(world, wanted->too_large_bytes, &block), WEFT_ERR_MEMORY);
    CHECK_OK(weft_malloc(world, wanted->fits_bytes, &block));
    CHECK_OK(weft_free(world, block));
}

static void create_by_env(int pes, weft_world **worlds, weft_status wanted, const char *named)
{
    weft_threads *meeting = pes_meeting(pes);
    weft_world_config configs[PES_MAX];
    pes_outcome outcomes[PES_MAX];
    for (int pe = 0; pe < pes; pe++) {
        weft_world_config config = WEFT_WORLD_CONFIG_INIT;
        configs[pe] = config;
        configs[pe].bootstrap = WEFT_BOOTSTRAP_THREADS;
        configs[pe].threads = meeting;
        configs[pe].pe = pe;
        configs[pe].pes = pes;
    }
    pes_create(configs, pes, outcomes);
    for (int pe = 0; pe < pes; pe++) {
        worlds[pe] = outcomes[pe].world;
        CHECK_SAY(outcomes[pe].status == wanted, "%s: %s", weft_status_name(outcomes[pe].status), outcomes[pe].text);
        CHECK_SAY(strstr(outcomes[pe].text, named) != NULL, "%s is not in \"%s\"", named, outcomes[pe].text);
    }
    weft_threads_destroy(meeting);
}

static void test_heap_by_environment(void **state)
{
    (void)state;
    weft_world *worlds[3];
    env_case wanted = {.reserved_bytes = 192 << 10, .fits_bytes = 3 << 20, .too_large_bytes = (3 << 20) + 1};
    setenv("WEFT_HEAP", "192K", 1);
    setenv("WEFT_HEAP_MAX", "3M", 1);
    create_by_env(3, worlds, WEFT_OK, "");
    pes_run_in(3, worlds, check_env_heap, &wanted);
    pes_destroy_world(3, worlds);
    setenv("WEFT_HEAP_MAX", "100K", 1);
    create_by_env(3, worlds, WEFT_ERR_ARGUMENT, "WEFT_HEAP_MAX");
    unsetenv("WEFT_HEAP");
    setenv("WEFT_HEAP_MAX", "lots", 1);
    create_by_env(3, worlds, WEFT_ERR_ARGUMENT, "WEFT_HEAP_MAX");
    unsetenv("WEFT_HEAP_MAX");
    setenv("WEFT_HEAP", "-1", 1);
    create_by_env(3, worlds, WEFT_ERR_ARGUMENT, "WEFT_HEAP");
    unsetenv("WEFT_HEAP");
}

static void test_unreadable_environment(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"WEFT_SPIN", "many"},        {"WEFT_TRACE_EVENTS", "all"}, {"WEFT_COUNTERS", "yes"},  {"WEFT_COLL", "reduce"},
        {"WEFT_COLL", "reduce:"},     {"WEFT_COLL", "reduce:pull"}, {"WEFT_COLL", "sum:push"}, {"WEFT_COLL", ":"},
        {"WEFT_COLL", "scan:push,,"}, {"WEFT_SILENCE", "soon"},     {"WEFT_SILENCE", "1.5"}};
    weft_world *worlds[3];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv(cases[i][0], cases[i][1], 1);
        create_by_env(3, worlds, WEFT_ERR_ARGUMENT, cases[i][0]);
        create_by_env(3, worlds, WEFT_ERR_ARGUMENT, cases[i][1]);
        unsetenv(cases[i][0]);
    }
}

/* ---- no deadline ---- */

/* PE 2 leaves; the others miss it in a call that it has not made. */
static void leave_or_wait(int pe, void *context)
{
    weft_world **worlds = context;
    CHECK_OK(weft_barrier(worlds[pe]));
    if (pe == 2) {
        wefti_os_sleep_ns(50 * WEFTI_MILLISECOND_NS);
        CHECK_OK(weft_world_destroy(worlds[2]));
        return;
    }
    CHECK_STATUS(weft_barrier(worlds[pe]), WEFT_ERR_PEER);
    CHECK_NAMES(2);
    CHECK_SAY(strstr(weft_last_error(), "no deadline") != NULL, "\"%s\"", weft_last_error());
}

static void test_no_deadline(void **state)
{
    (void)state;
    weft_world *worlds[3];
    setenv("WEFT_DEADLINE", "inf", 1);
    create_by_env(3, worlds, WEFT_OK, "");
    unsetenv("WEFT_DEADLINE");
    pes_each(3, leave_or_wait, worlds);
    CHECK_OK(weft_world_destroy(worlds[0]));
    CHECK_OK(weft_world_destroy(worlds[1]));
}

/* ---- variables that are mistyped ---- */

/* What three PEs of this process, all or all but one of which come, write to the log. */
static void log_of_creation(int come, char *log, size_t bytes)
{
    weft_threads *meeting = pes_meeting(3);
    weft_world_config configs[3];
    pes_outcome outcomes[3];
    FILE *file = tmpfile();
    int standard_error = dup(STDERR_FILENO);
    uint64_t deadline_ns = SHORT_DEADLINE_NS;
    for (int pe = 0; pe < 3; pe++) {
        configs[pe] = pes_config(meeting, pe, 3);
        configs[pe].deadline_ns = come < 3 ? deadline_ns : configs[pe].deadline_ns;
        configs[pe].warn_ns = come < 3 ? deadline_ns / 4 : 0;
    }
    (void)dup2(fileno(file), STDERR_FILENO);
    pes_create(configs, come, outcomes);
    (void)dup2(standard_error, STDERR_FILENO);
    close(standard_error);
    for (int pe = 0; pe < come; pe++) {
        CHECK(outcomes[pe].status == (come < 3 ? WEFT_ERR_TIMEOUT : WEFT_OK));
        CHECK_OK(weft_world_destroy(outcomes[pe].world));
    }
    weft_threads_destroy(meeting);
    rewind(file);
    log[fread(log, 1, bytes - 1, file)] = '\0';
    fclose(file);
}

static int count_lines(const char *log, const char *with)
{
    int lines = 0;
    for (const char *at = strstr(log, with); at != NULL; at = strstr(at + 1, with)) {
        lines++;
    }
    return lines;
}

static void test_mistyped_variables(void **state)
{
    (void)state;
    char log[4096];
    setenv("WEFT_LOG", "warn", 1);
    setenv("WEFT_ROOT", "/opt/weft", 1); /* somebody else's */
    log_of_creation(3, log, sizeof log);
    CHECK_SAY(log[0] == '\0', "\"%s\"", log);
    setenv("WEFT_DEADLNE", "1", 1);
    log_of_creation(3, log, sizeof log);
    CHECK_SAY(count_lines(log, "\n") == 1 && strstr(log, " warn: ") != NULL, "\"%s\"", log);
    CHECK_SAY(strstr(log, "no variable WEFT_DEADLNE") != NULL, "\"%s\"", log);
    CHECK_SAY(strstr(log, "did you mean WEFT_DEADLINE?") != NULL, "\"%s\"", log);
    setenv("WEFT_HAEP", "1M", 1);
    log_of_creation(3, log, sizeof log);
    CHECK_SAY(count_lines(log, "\n") == 1 && strstr(log, "Others unknown like it: 1.") != NULL, "\"%s\"", log);
    /* Also who is not met says it. */
    log_of_creation(2, log, sizeof log);
    CHECK_SAY(count_lines(log, "did you mean") == 2, "\"%s\"", log);
    CHECK_SAY(strstr(log, "still waits for PE 2") != NULL, "\"%s\"", log);
    unsetenv("WEFT_DEADLNE");
    unsetenv("WEFT_HAEP");
    unsetenv("WEFT_ROOT");
    setenv("WEFT_LOG", "none", 1);
}

static void test_deadline_by_environment(void **state)
{
    (void)state;
    weft_threads *meeting = pes_meeting(2);
    weft_world_config config = pes_config(meeting, 1, 2);
    pes_outcome outcome;
    config.deadline_ns = 0;
    setenv("WEFT_DEADLINE", "0.3", 1);
    pes_create(&config, 1, &outcome);
    CHECK(outcome.status == WEFT_ERR_TIMEOUT);
    CHECK_SAY(outcome.ns >= 300 * WEFTI_MILLISECOND_NS && outcome.ns < load_patience_ns(2000 * WEFTI_MILLISECOND_NS),
              "%llu ns", (unsigned long long)outcome.ns);
    CHECK(text_names_pe(outcome.text, 0) && !text_names_pe(outcome.text, 1));
    setenv("WEFT_DEADLINE", "soon", 1);
    pes_create(&config, 1, &outcome);
    CHECK(outcome.status == WEFT_ERR_ARGUMENT && strstr(outcome.text, "WEFT_DEADLINE") != NULL);
    setenv("WEFT_DEADLINE", "0", 1);
    pes_create(&config, 1, &outcome);
    CHECK(outcome.status == WEFT_ERR_ARGUMENT);
    unsetenv("WEFT_DEADLINE");
    weft_threads_destroy(meeting);
}

/* ---- the embedder's own exchange ---- */

/* An allgather among threads. */
typedef struct gather {
    pthread_barrier_t barrier;
    unsigned char bytes[PES][8192];
    int fail_at; /* this call fails, on all; 0: none */
    int forget_at; /* in this call each leaves its own place as it was; 0: in none */
} gather;

typedef struct gather_member {
    gather *all;
    int rank;
    int calls;
} gather_member;

static int allgather(void *context, const void *mine, void *all, size_t bytes)
{
    gather_member *member = context;
    member->calls++;
    if (bytes > sizeof member->all->bytes[0] || member->calls == member->all->fail_at) {
        return 5;
    }
    /* the library would else not see that a place was left alone */
    CHECK(bytes == 0 || memcmp((unsigned char *)all + (size_t)member->rank * bytes, mine, bytes) != 0);
    memcpy(member->all->bytes[member->rank], mine, bytes);
    pthread_barrier_wait(&member->all->barrier);
    for (int rank = 0; rank < PES; rank++) {
        if (rank != member->rank || member->calls != member->all->forget_at) {
            memcpy((unsigned char *)all + (size_t)rank * bytes, member->all->bytes[rank], bytes);
        }
    }
    pthread_barrier_wait(&member->all->barrier);
    return 0;
}

/* Create by callback; `spoil` (or NULL) spoils the config of PE `offender`. */
static void create_by_callback(gather *all, void (*spoil)(weft_world_config *config), int offender,
                               pes_outcome *outcomes)
{
    weft_world_config configs[PES];
    gather_member members[PES];
    weft_callback_ops ops[PES];
    pthread_barrier_init(&all->barrier, NULL, PES);
    for (int pe = 0; pe < PES; pe++) {
        members[pe] = (gather_member){.all = all, .rank = pe};
        ops[pe] = (weft_callback_ops){.size = sizeof ops[pe], .context = &members[pe], .allgather = allgather};
        configs[pe] = pes_config(NULL, pe, PES);
        configs[pe].bootstrap = WEFT_BOOTSTRAP_CALLBACK;
        configs[pe].callback = &ops[pe];
    }
    if (spoil != NULL) {
        spoil(&configs[offender]);
    }
    files_made = 0;
    pes_create(configs, PES, outcomes);
    pthread_barrier_destroy(&all->barrier);
}

static void other_name(weft_world_config *config)
{
    config->name = "odd one";
}

static void meet_in_barrier(weft_world *world, void *context)
{
    (void)context;
    CHECK_OK(weft_barrier(world));
}

static void test_callback(void **state)
{
    (void)state;
    void (*const spoils[])(weft_world_config *) = {more_pes, duplicate, other_name, other_heap_max, other_heap};
    static gather all;
    pes_outcome outcomes[PES];
    weft_world *worlds[PES];
    ledger before = ledger_read();
    create_by_callback(&all, NULL, 0, outcomes);
    for (int pe = 0; pe < PES; pe++) {
        CHECK_SAY(outcomes[pe].status == WEFT_OK, "%s", outcomes[pe].text);
        worlds[pe] = outcomes[pe].world;
    }
    pes_run_in(PES, worlds, meet_in_barrier, NULL);
    pes_destroy_world(PES, worlds);
    for (size_t i = 0; i < sizeof spoils / sizeof *spoils; i++) {
        for (int offender = 0; offender < PES; offender++) {
            create_by_callback(&all, spoils[i], offender, outcomes);
            CHECK(files_made == 0);
            for (int pe = 0; pe < PES; pe++) {
                CHECK_SAY(outcomes[pe].status == WEFT_ERR_MISMATCH && text_names_pe(outcomes[pe].text, offender),
                          "kind %zu, offender %d: PE %d got %s: %s", i, offender, pe,
                          weft_status_name(outcomes[pe].status), outcomes[pe].text);
                CHECK(strcmp(outcomes[pe].text, outcomes[0].text) == 0);
            }
        }
    }
    for (all.fail_at = 1; all.fail_at <= 4; all.fail_at++) {
        create_by_callback(&all, NULL, 0, outcomes);
        for (int pe = 0; pe < PES; pe++) {
            CHECK_SAY(outcomes[pe].status == WEFT_ERR_PEER && strstr(outcomes[pe].text, "code 5") != NULL,
                      "call %d fails: %s: %s", all.fail_at, weft_status_name(outcomes[pe].status), outcomes[pe].text);
        }
    }
    all.fail_at = 0;
    for (all.forget_at = 1; all.forget_at <= 3; all.forget_at++) {
        create_by_callback(&all, NULL, 0, outcomes);
        for (int pe = 0; pe < PES; pe++) {
            CHECK_SAY(outcomes[pe].status == WEFT_ERR_MISMATCH && text_names_pe(outcomes[pe].text, pe) &&
                          strstr(outcomes[pe].text, "its own place") != NULL,
                      "call %d forgets: %s: %s", all.forget_at, weft_status_name(outcomes[pe].status),
                      outcomes[pe].text);
        }
    }
    all.forget_at = 0;
    ledger_assert_same(&before);
}

static int gather_nothing(void *context, const void *mine, void *all, size_t bytes)
{
    (void)context;
    (void)mine;
    memset(all, 0xff, bytes);
    return 0;
}

static void test_callback_that_does_nothing(void **state)
{
    (void)state;
    weft_world *world;
    weft_callback_ops ops = {.size = sizeof ops, .allgather = gather_nothing};
    weft_world_config config = pes_config(NULL, 0, 1);
    config.bootstrap = WEFT_BOOTSTRAP_CALLBACK;
    config.callback = &ops;
    CHECK_STATUS(weft_world_create(&config, &world), WEFT_ERR_MISMATCH);
    CHECK(strstr(weft_last_error(), "its own place") != NULL);
}

static void test_callback_that_cannot_be(void **state)
{
    (void)state;
    weft_world *world;
    weft_world_config config = pes_config(NULL, 0, 1);
    config.bootstrap = WEFT_BOOTSTRAP_CALLBACK;
    CHECK_STATUS(weft_world_create(&config, &world), WEFT_ERR_ARGUMENT);
    weft_callback_ops ops = {.size = sizeof ops, .allgather = NULL};
    config.callback = &ops;
    CHECK_STATUS(weft_world_create(&config, &world), WEFT_ERR_ARGUMENT);
    ops = (weft_callback_ops){.size = 0, .allgather = allgather};
    CHECK_STATUS(weft_world_create(&config, &world), WEFT_ERR_ARGUMENT);
    config.pes = 0;
    CHECK_STATUS(weft_world_create(&config, &world), WEFT_ERR_ARGUMENT);
}

static void test_meeting_points_that_cannot_be(void **state)
{
    (void)state;
    weft_threads *threads;
    CHECK_STATUS(weft_threads_create(0, &threads), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_threads_create(-1, &threads), WEFT_ERR_ARGUMENT);
    CHECK_STATUS(weft_threads_create(1, NULL), WEFT_ERR_ARGUMENT);
    weft_threads_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_all_are_told),
        CHECKED_TEST(test_fewer_pes),
        CHECKED_TEST(test_other_program),
        CHECKED_TEST(test_other_name),
        CHECKED_TEST(test_offender_is_missed),
        CHECKED_TEST(test_missing_are_named),
        CHECKED_TEST(test_impossible_sizes),
        CHECKED_TEST(test_structs_of_other_versions),
        CHECKED_TEST(test_other_headers),
        CHECKED_TEST(test_heap_by_environment),
        CHECKED_TEST(test_unreadable_environment),
        CHECKED_TEST(test_no_deadline),
        CHECKED_TEST(test_mistyped_variables),
        CHECKED_TEST(test_deadline_by_environment),
        CHECKED_TEST(test_callback),
        CHECKED_TEST(test_callback_that_does_nothing),
        CHECKED_TEST(test_callback_that_cannot_be),
        CHECKED_TEST(test_meeting_points_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, be_quiet, NULL);
}
