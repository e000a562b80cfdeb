/* input/table.c: what a row is put through. */
#include "input/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/pes.h"

#define PES 2
#define COUNT_GOOD 2
#define STRIDE_GOOD 2
#define OUT_STEP 128 /* from one output of a call to the next */
#define BLOCK_BYTES (4 * PART_BYTES)
#define BAD_MAX 20

static row *first;
static row *last;
static const uint64_t zeros[PART_BYTES / sizeof(uint64_t)];

void table_add(row *r)
{
    if (last == NULL) {
        first = r;
    } else {
        last->next = r;
    }
    last = r;
}

int table_names(int argc, char **argv)
{
    if (argc != 2 || strcmp(argv[1], "--names") != 0) {
        return 0;
    }
    for (const row *r = first; r != NULL; r = r->next) {
        puts(r->name);
    }
    return 1;
}

/* ---- good and bad values ---- */

typedef struct bad_value {
    const char *what;
    value v;
    weft_status status;
} bad_value;

typedef struct bad_values {
    int count;
    bad_value all[BAD_MAX];
} bad_values;

static int has(const row *r, kind k)
{
    for (int i = 0; i < r->count; i++) {
        if (r->kinds[i] == k) {
            return 1;
        }
    }
    return 0;
}

static value good(scene *s, const row *r, int i)
{
    switch (r->kinds[i]) {
    case KIND_WORLD:
        return (value){.pointer = s->world};
    case KIND_TEAM:
        return (value){.pointer = s->team};
    case KIND_CTX:
        return (value){.pointer = s->ctx};
    case KIND_SYM:
        return (value){.pointer = s->dest};
    case KIND_SOURCE:
        return (value){.pointer = s->source};
    case KIND_AMO:
    case KIND_VARIABLE:
    case KIND_VARIABLES:
        return (value){.pointer = s->words + 64};
    case KIND_SIGNAL:
        return (value){.pointer = s->words};
    case KIND_IN:
        return (value){.pointer = s->in};
    case KIND_ZEROS:
        return (value){.pointer = (void *)(uintptr_t)zeros};
    case KIND_OUT:
    case KIND_MAYBE:
        return (value){.pointer = s->out + (size_t)i * OUT_STEP};
    case KIND_COUNT:
    case KIND_VALUES:
        return (value){.number = COUNT_GOOD};
    case KIND_ELEMENT:
        return (value){.number = (long long)r->element};
    case KIND_STRIDE:
        return (value){.number = STRIDE_GOOD};
    case KIND_BLOCK:
        return (value){.number = 1};
    case KIND_PE:
        return (value){.number = (s->me + 1) % s->pes};
    case KIND_OP:
        return (value){.number = WEFT_SIGNAL_ADD};
    case KIND_CMP:
        return (value){.number = WEFT_CMP_NE};
    case KIND_NONE:
    case KIND_ROOT:
    case KIND_VALUE:
        break;
    }
    return (value){.number = 0};
}

static void add(bad_values *bad, weft_status status, const char *what, value v)
{
    bad->all[bad->count++] = (bad_value){.what = what, .v = v, .status = status};
}

static void add_pointer(bad_values *bad, weft_status status, const char *what, const void *pointer)
{
    add(bad, status, what, (value){.pointer = (void *)(uintptr_t)pointer});
}

static void add_number(bad_values *bad, weft_status status, const char *what, long long number)
{
    add(bad, status, what, (value){.number = number});
}

static void outside_the_heap(const scene *s, bad_values *bad)
{
    static uint64_t not_symmetric[64];
    weft_counters counters = {0};
    CHECK_OK(weft_world_counters(s->world, &counters));
    add_pointer(bad, WEFT_ERR_RANGE, "a static variable", not_symmetric);
    add_pointer(bad, WEFT_ERR_RANGE, "a variable on the stack", &counters);
    add_pointer(bad, WEFT_ERR_RANGE, "the other PE's heap", s->other);
    add_pointer(bad, WEFT_ERR_RANGE, "the heap of another world", s->foreign_block);
    add_pointer(bad, WEFT_ERR_RANGE, "before the heap", s->end - counters.heap_bytes_reserved - 64);
    add_pointer(bad, WEFT_ERR_RANGE, "behind the heap", s->end);
    add_pointer(bad, WEFT_ERR_RANGE, "far behind the heap", s->end + ((size_t)1 << 20));
    add_pointer(bad, WEFT_ERR_RANGE, "the first page", (void *)(uintptr_t)64);
    add_pointer(bad, WEFT_ERR_RANGE, "the last addresses", (void *)(UINTPTR_MAX - 63));
}

static void too_many(const scene *s, const row *r, bad_values *bad)
{
    add_number(bad, WEFT_ERR_RANGE, "SIZE_MAX", (long long)SIZE_MAX);
    add_number(bad, WEFT_ERR_RANGE, "overflowing bytes", (long long)(SIZE_MAX / r->element + (r->element > 1)));
    add_number(bad, WEFT_ERR_RANGE, "overflowing twice", (long long)(SIZE_MAX / 2 / r->element + 2));
    add_number(bad, WEFT_ERR_RANGE, "one too many", (long long)((size_t)(s->end - s->dest) / r->element + 1));
}

static void no_member(const scene *s, bad_values *bad)
{
    add_number(bad, WEFT_ERR_RANGE, "-1", -1);
    add_number(bad, WEFT_ERR_RANGE, "the number of PEs", s->pes);
    add_number(bad, WEFT_ERR_RANGE, "INT_MAX", INT_MAX);
    add_number(bad, WEFT_ERR_RANGE, "INT_MIN", INT_MIN);
}

static void no_enumerator(int count, bad_values *bad)
{
    add_number(bad, WEFT_ERR_ARGUMENT, "-1", -1);
    add_number(bad, WEFT_ERR_ARGUMENT, "one behind the last", count);
    add_number(bad, WEFT_ERR_ARGUMENT, "INT_MAX", INT_MAX);
    add_number(bad, WEFT_ERR_ARGUMENT, "INT_MIN", INT_MIN);
}

static void no_stride(const row *r, bad_values *bad)
{
    add_number(bad, WEFT_ERR_ARGUMENT, "0", 0);
    add_number(bad, WEFT_ERR_ARGUMENT, "-1", -1);
    add_number(bad, WEFT_ERR_ARGUMENT, "PTRDIFF_MIN", PTRDIFF_MIN);
    add_number(bad, WEFT_ERR_RANGE, "PTRDIFF_MAX", PTRDIFF_MAX);
    add_number(bad, WEFT_ERR_RANGE, "half of the address space",
               (long long)((size_t)PTRDIFF_MAX / r->element + (r->element > 1)));
    add_number(bad, WEFT_ERR_RANGE, "all of the address space",
               r->element > 2 ? (long long)(SIZE_MAX / r->element + 1) : PTRDIFF_MAX);
}

static bad_values bad_of(scene *s, const row *r, int i)
{
    bad_values bad = {0};
    const kind k = r->kinds[i];
    const unsigned char *word = s->words + 64;
    switch (k) {
    case KIND_TEAM:
        if (has(r, KIND_SYM)) {
            add_pointer(&bad, WEFT_ERR_RANGE, "the team of another world", weft_team_world(s->foreign));
        }
        break;
    case KIND_SYM:
    case KIND_SOURCE:
        outside_the_heap(s, &bad);
        if (has(r, KIND_COUNT)) {
            add_pointer(&bad, WEFT_ERR_RANGE, "over the end of the heap", s->end - r->element);
        }
        break;
    case KIND_SIGNAL:
        word = s->words;
        /* fallthrough */
    case KIND_AMO:
    case KIND_VARIABLES:
        outside_the_heap(s, &bad);
        /* fallthrough */
    case KIND_VARIABLE:
        add_pointer(&bad, WEFT_ERR_ARGUMENT, "an address that is not aligned", word + 1);
        add_pointer(&bad, WEFT_ERR_ARGUMENT, "half an alignment", word + (k == KIND_SIGNAL ? 4 : r->element / 2));
        break;
    case KIND_COUNT:
    case KIND_VALUES:
        too_many(s, r, &bad);
        return bad;
    case KIND_ELEMENT:
        add_number(&bad, WEFT_ERR_ARGUMENT, "0", 0);
        add_number(&bad, WEFT_ERR_RANGE, "SIZE_MAX", (long long)SIZE_MAX);
        add_number(&bad, WEFT_ERR_RANGE, "half of the address space", (long long)(SIZE_MAX / 2 + 1));
        return bad;
    case KIND_STRIDE:
        no_stride(r, &bad);
        return bad;
    case KIND_BLOCK:
        add_number(&bad, WEFT_ERR_ARGUMENT, "more than the strides", STRIDE_GOOD + 1);
        add_number(&bad, WEFT_ERR_ARGUMENT, "SIZE_MAX", (long long)SIZE_MAX);
        return bad;
    case KIND_PE:
    case KIND_ROOT:
        no_member(s, &bad);
        return bad;
    case KIND_OP:
        no_enumerator(WEFT_SIGNAL_ADD + 1, &bad);
        return bad;
    case KIND_CMP:
        no_enumerator(WEFT_CMP_LE + 1, &bad);
        return bad;
    case KIND_MAYBE:
    case KIND_NONE:
    case KIND_VALUE:
        return bad;
    default:
        break;
    }
    add_pointer(&bad, WEFT_ERR_ARGUMENT, "NULL", NULL);
    return bad;
}

/* ---- the checks around calls ---- */

static int is_poison(const unsigned char *bytes, size_t count)
{
    return bytes[0] == POISON && memcmp(bytes, bytes + 1, count - 1) == 0;
}

static void poison(scene *s)
{
    memset(s->block, POISON, BLOCK_BYTES);
    memset(s->in, POISON, sizeof s->in);
    memset(s->out, POISON, sizeof s->out);
}

static void check_untouched(scene *s, const row *r, const char *when)
{
    if (!CHECK_SAY(is_poison(s->out, sizeof s->out), "%s wrote an output %s", r->name, when)) {
        memset(s->out, POISON, sizeof s->out);
    }
    if (!CHECK_SAY(is_poison(s->block, BLOCK_BYTES), "%s wrote into the heap %s", r->name, when)) {
        memset(s->block, POISON, BLOCK_BYTES);
    }
}

/* All PEs have come, and a put and a get arrive. */
static void check_works(scene *s, const row *r)
{
    const int next = (s->me + 1) % s->pes;
    unsigned char *probe = s->block + 3 * PART_BYTES; /* where no row writes */
    unsigned char back = 0;
    CHECK_SAY(weft_barrier(s->world) == WEFT_OK, "no barrier after %s: %s", r->name, weft_last_error());
    check_untouched(s, r, "when it refused");
    CHECK_OK(weft_barrier(s->world)); /* all have looked, before anyone writes */
    CHECK_SAY(weft_putmem(s->world, probe, s->in, 64, next) == WEFT_OK &&
                  weft_getmem(s->world, &back, probe, 1, next) == WEFT_OK && back == POISON,
              "no put and get after %s: %s", r->name, weft_last_error());
}

static void call_badly(scene *s, const row *r)
{
    value v[ARGUMENTS_MAX];
    for (int i = 0; i < r->count; i++) {
        const bad_values bad = bad_of(s, r, i);
        for (int b = 0; b < bad.count; b++) {
            for (int k = 0; k < r->count; k++) {
                v[k] = good(s, r, k);
                if (r->kinds[k] == KIND_ROOT) {
                    v[k].number = s->me; /* whose source is looked at */
                }
            }
            v[i] = bad.all[b].v;
            weft_status status = r->call(v);
            CHECK_SAY(status == bad.all[b].status, "%s with %s as argument %d gave %s, not %s", r->name,
                      bad.all[b].what, i, weft_status_name(status), weft_status_name(bad.all[b].status));
            if (!is_poison(s->out, sizeof s->out)) {
                check_untouched(s, r, bad.all[b].what);
            }
        }
    }
}

static void call_well(scene *s, const row *r, size_t count)
{
    value v[ARGUMENTS_MAX];
    for (int k = 0; k < r->count; k++) {
        v[k] = good(s, r, k);
        if (r->kinds[k] == KIND_COUNT) {
            v[k].number = (long long)count;
        }
    }
    weft_status status = r->call(v);
    CHECK_SAY(status == WEFT_OK, "%s with good arguments, count %zu, gave %s: %s", r->name, count,
              weft_status_name(status), weft_last_error());
}

static void run_row(scene *s, const row *r)
{
    if (r->body != NULL) {
        r->body(s);
    } else if (r->call != NULL) {
        call_badly(s, r);
        if (has(r, KIND_COUNT)) {
            call_well(s, r, 0);
        }
    }
    check_works(s, r);
    if (r->call != NULL) {
        call_well(s, r, COUNT_GOOD);
        CHECK_OK(weft_barrier(s->world));
        poison(s);
        CHECK_OK(weft_barrier(s->world));
    }
}

/* ---- in a forked process ---- */

/* Whether a call may succeed there: it changes nothing, and what it waits for is so. */
static int is_idle(const row *r)
{
    return has(r, KIND_VARIABLE) || has(r, KIND_VARIABLES) || strstr(r->name, "fence") != NULL ||
           strstr(r->name, "quiet") != NULL;
}

static void call_forked(scene *s, const row *r)
{
    value v[ARGUMENTS_MAX];
    for (int k = 0; k < r->count; k++) {
        v[k] = good(s, r, k);
    }
    const weft_status status = r->call(v);
    const int is_refused = status == WEFT_ERR_STATE && strstr(weft_last_error(), "forked") != NULL;
    CHECK_SAY(is_refused || (status == WEFT_OK && is_idle(r)), "%s in a forked process gave %s: %s", r->name,
              weft_status_name(status), weft_last_error());
    if (is_refused || !is_idle(r)) {
        check_untouched(s, r, "in a forked process");
    }
    poison(s);
}

static void run_forked(scene *s)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        const long before = check_failures();
        for (const row *r = first; r != NULL; r = r->next) {
            if (r->call != NULL) {
                call_forked(s, r);
            }
        }
        check_exit(check_failures() != before);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_SAY(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status 0x%x", (unsigned)status);
}

/* ---- all rows ---- */

static void scene_init(scene *s, weft_world *world)
{
    weft_counters counters;
    weft_threads *threads = pes_meeting(1);
    weft_world_config config = pes_config(threads, 0, 1);
    void *block = NULL;
    void *foreign = NULL;
    s->world = world;
    s->team = weft_team_world(world);
    s->me = weft_world_pe(world);
    s->pes = weft_world_pes(world);
    CHECK_OK(weft_malloc(world, BLOCK_BYTES, &block)); /* the heap's first */
    CHECK_OK(weft_ctx_create(s->team, 0, &s->ctx));
    CHECK_OK(weft_world_create(&config, &s->foreign));
    CHECK_OK(weft_malloc(s->foreign, PART_BYTES, &foreign));
    weft_threads_destroy(threads);
    s->block = block;
    s->foreign_block = foreign;
    s->dest = s->block;
    s->source = s->block + PART_BYTES;
    s->words = s->block + 2 * PART_BYTES;
    s->other = weft_ptr(world, s->block, (s->me + 1) % s->pes);
    CHECK(s->other != NULL);
    poison(s);
    CHECK_OK(weft_long_broadcast(s->team, (long *)block, (long *)block, 1, 0)); /* the scratch is made here */
    poison(s);
    CHECK_OK(weft_world_counters(world, &counters));
    s->end = s->block + counters.heap_bytes_reserved;
    CHECK_OK(weft_barrier(world));
}

static void scene_fini(scene *s)
{
    CHECK_OK(weft_ctx_destroy(s->ctx));
    CHECK_OK(weft_free(s->world, s->block));
    CHECK_OK(weft_world_fault(s->world, NULL));
    CHECK_OK(weft_world_destroy(s->foreign));
}

static void run_table(weft_world *world, void *context)
{
    static _Thread_local scene s;
    (void)context;
    scene_init(&s, world);
    for (const row *r = first; r != NULL; r = r->next) {
        run_row(&s, r);
    }
    if (s.me == 0) {
        run_forked(&s);
    }
    CHECK_OK(weft_barrier(world));
    CHECK(is_poison(s.block, BLOCK_BYTES));
    scene_fini(&s);
}

void table_run(void **state)
{
    (void)state;
    (void)setenv("WEFT_LOG", "none", 0);
    pes_run(PES, run_table, NULL);
}
