/* PES: 3 */
/* Goal: a PE that takes nothing, or one that is flooded, stops nobody else; what is under way to it is bounded; a call
 * that ends late names who is to blame. Method: PE 2 is stopped, over a network; PE 0 puts until that fails, counts
 * what went, and works with PE 1; PE 2 goes on. Then two PEs flood the third, which makes calls meanwhile. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/os.h"
#include "support/check.h"
#include "support/pattern.h"
#include "support/pe_main.h"

#define PUT_BYTES ((size_t)15 << 10) /* one message of the network */
#define MESSAGES_MAX 64 /* that a PE may have under way to another */
#define FLOOD_NS UINT64_C(1500000000)
#define PATIENCE_NS UINT64_C(20000000000)
#define STOPPING_NS UINT64_C(100000000) /* until all threads of a process have the signal */

typedef struct scene {
    weft_world *world;
    unsigned char *block;
    uint64_t *word; /* who is done; of PE 2, its process */
    unsigned char *data;
} scene;

/* Without calls, whose deadline is short here. */
static void wait_for_word(const volatile uint64_t *word, uint64_t value)
{
    const uint64_t until = wefti_os_now_ns() + PATIENCE_NS;
    while (*word != value && wefti_os_now_ns() < until) {
        wefti_os_sleep_ns(1000000);
    }
    CHECK_SAY(*word == value, "the word is %llu, not %llu", (unsigned long long)*word, (unsigned long long)value);
}

/* ---- a PE that is stopped ---- */

static void put_until_refused(const scene *s)
{
    weft_status status = WEFT_OK;
    int sent = 0;
    while (status == WEFT_OK && sent < 100000) {
        status = weft_putmem_nbi(s->world, s->block, s->data, PUT_BYTES, 2);
        sent += status == WEFT_OK;
    }
    CHECK_STATUS(status, WEFT_ERR_TIMEOUT);
    CHECK_NAMES(2);
    CHECK_SAY(sent <= MESSAGES_MAX, "%d messages went to a PE that takes none", sent);
}

static void work_with_others(const scene *s)
{
    unsigned char *back = malloc(8 * PUT_BYTES);
    uint64_t before = 7;
    for (int i = 0; i < 50; i++) {
        CHECK_OK(weft_putmem(s->world, s->block, s->data, PUT_BYTES, 1));
        CHECK_OK(weft_uint64_atomic_fetch_add(s->world, s->word, 0, 1, &before));
        CHECK(before == 0);
    }
    CHECK_OK(weft_getmem(s->world, back, s->block, 8 * PUT_BYTES, 1));
    CHECK(memcmp(back, s->data, PUT_BYTES) == 0);
    free(back);
}

/* It takes what came before, and what comes now. */
static void work_with_recovered(const scene *s)
{
    weft_status status = WEFT_ERR_TIMEOUT;
    for (int i = 0; i < 5 && status == WEFT_ERR_TIMEOUT; i++) {
        status = weft_quiet(s->world);
    }
    CHECK_OK(status);
    pattern_fill(s->data, PUT_BYTES, 0, 2);
    CHECK_OK(weft_putmem(s->world, s->block + PUT_BYTES, s->data, PUT_BYTES, 2));
    CHECK_OK(weft_quiet(s->world));
}

static void with_stopped(const scene *s)
{
    const int me = weft_world_pe(s->world);
    if (me == 2) {
        CHECK_OK(weft_uint64_p(s->world, s->word, (uint64_t)getpid(), 0));
    }
    CHECK_OK(weft_barrier(s->world));
    const uint64_t process = *s->word;
    CHECK_OK(weft_barrier(s->world));
    memset(s->word, 0, 3 * sizeof *s->word);
    CHECK_OK(weft_barrier(s->world));
    if (me == 0) {
        pattern_fill(s->data, PUT_BYTES, 0, 1);
        /* PE 2 is in no call whose deadline would end while it is stopped, and has sent PE 1 all of the barrier's. */
        wait_for_word(s->word + 1, 1);
        wait_for_word(s->word + 2, 1);
        (void)kill((pid_t)process, SIGSTOP);
        wefti_os_sleep_ns(STOPPING_NS);
        put_until_refused(s);
        CHECK_STATUS(weft_quiet(s->world), WEFT_ERR_TIMEOUT);
        CHECK_NAMES(2);
        work_with_others(s);
        (void)kill((pid_t)process, SIGCONT);
        work_with_recovered(s);
        CHECK_OK(weft_uint64_p(s->world, s->word, 1, 1));
        CHECK_OK(weft_uint64_p(s->world, s->word, 1, 2));
    } else {
        CHECK_OK(weft_uint64_p(s->world, s->word + me, 1, 0));
        wait_for_word(s->word, 1);
    }
    if (me == 2) {
        pattern_check(s->block, PUT_BYTES, 0, 1, "a put to who was stopped");
        pattern_check(s->block + PUT_BYTES, PUT_BYTES, 0, 2, "a put to who goes on");
    }
    CHECK_OK(weft_barrier(s->world));
}

/* ---- a PE that is flooded ---- */

static void flood(const scene *s)
{
    const uint64_t until = wefti_os_now_ns() + FLOOD_NS;
    const size_t me = (size_t)weft_world_pe(s->world);
    while (wefti_os_now_ns() < until) {
        for (int i = 0; i < 20; i++) {
            CHECK_OK(weft_putmem_nbi(s->world, s->block + me * PUT_BYTES, s->data, PUT_BYTES, 0));
            CHECK_OK(weft_uint64_p(s->world, s->word + me, (uint64_t)i, 0));
        }
    }
}

static void work_in_flood(const scene *s)
{
    const uint64_t until = wefti_os_now_ns() + FLOOD_NS;
    uint64_t value = 0;
    long calls = 0;
    for (; wefti_os_now_ns() < until; calls++) {
        CHECK_OK(weft_uint64_atomic_fetch_inc(s->world, s->word, 1 + (int)(calls % 2), &value));
        CHECK_SAY(value == (uint64_t)(calls / 2), "call %ld counts %llu", calls, (unsigned long long)value);
    }
    CHECK_SAY(calls >= 10, "%ld calls in all", calls);
}

static void with_flood(const scene *s)
{
    if (weft_world_pe(s->world) == 0) {
        work_in_flood(s);
    } else {
        flood(s);
    }
    CHECK_OK(weft_barrier(s->world));
}

static void body(weft_world *world)
{
    scene s = {.world = world, .data = malloc(PUT_BYTES)};
    s.block = pe_zeroed(world, 8 * PUT_BYTES);
    s.word = pe_zeroed(world, 3 * sizeof *s.word);
    pattern_fill(s.data, PUT_BYTES, 0, 0);
    if (getenv("WEFT_NODE_ID") != NULL) { /* memory that is shared takes puts whoever is stopped */
        with_stopped(&s);
        memset(s.word, 0, 3 * sizeof *s.word);
        CHECK_OK(weft_barrier(world));
    }
    with_flood(&s);
    CHECK_OK(weft_free(world, s.word));
    CHECK_OK(weft_free(world, s.block));
    free(s.data);
}

int main(int argc, char **argv)
{
    (void)setenv("WEFT_DEADLINE", "2", 0);
    return pe_main(argc, argv, body);
}
