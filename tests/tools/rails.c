/* What tests/tools/rails.py starts on each host: puts and gets over the rails between two hosts.
 * Usage: rails MODE
 *   carry   each PE puts to the next one with a signal, reads it back, and each checks what it got; PE 0 prints the
 *           transport map
 *   down    PE 0 puts, says "ready", reads a line, and puts again; what comes of that is printed. Others wait for it
 * Exits with 3 when no world comes about. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "weft.h"

#define BYTES ((size_t)4 << 20)
#define ROUNDS 4
#define FAIL(...) (fprintf(stderr, __VA_ARGS__), exit(1))
#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) != WEFT_OK) {                                                                                       \
            FAIL("%s: %s\n", #call, weft_last_error());                                                                \
        }                                                                                                              \
    } while (0)

typedef struct block {
    uint64_t signal;
    uint64_t pad[7];
    uint64_t words[BYTES / sizeof(uint64_t)];
} block;

static uint64_t word_of(int pe, uint64_t round, size_t i)
{
    return ((uint64_t)pe << 56) | (round << 48) | i;
}

static void fill(uint64_t *words, int pe, uint64_t round)
{
    for (size_t i = 0; i < BYTES / sizeof *words; i++) {
        words[i] = word_of(pe, round, i);
    }
}

static void check(const uint64_t *words, int pe, uint64_t round, const char *what)
{
    for (size_t i = 0; i < BYTES / sizeof *words; i++) {
        if (words[i] != word_of(pe, round, i)) {
            FAIL("%s: round %d, word %zu is %llx\n", what, (int)round, i, (unsigned long long)words[i]);
        }
    }
}

static void carry(weft_world *world, block *to, uint64_t *own)
{
    const int me = weft_world_pe(world);
    const int pes = weft_world_pes(world);
    const int next = (me + 1) % pes;
    const int before = (me + pes - 1) % pes;
    char map[2048];
    (void)weft_world_transport_map(world, map, sizeof map);
    if (me == 0) {
        puts(map);
    }
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        fill(own, me, round);
        MUST(weft_putmem_signal(world, to->words, own, BYTES, &to->signal, round, WEFT_SIGNAL_SET, next));
        MUST(weft_signal_wait_until(world, &to->signal, WEFT_CMP_GE, round, NULL));
        check(to->words, before, round, "what was put");
        memset(own, 0, BYTES);
        MUST(weft_getmem(world, own, to->words, BYTES, next));
        check(own, me, round, "what was read back");
        MUST(weft_barrier(world));
    }
}

static void go_down(weft_world *world, block *to, uint64_t *own)
{
    char line[16];
    if (weft_world_pe(world) != 0) {
        MUST(weft_barrier(world));
        pause();
    }
    fill(own, 0, 1);
    MUST(weft_putmem(world, to->words, own, BYTES, 1));
    MUST(weft_barrier(world));
    puts("ready");
    (void)fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL) {
        FAIL("nobody says that the rail is down\n");
    }
    weft_status status = weft_putmem(world, to->words, own, BYTES, 1);
    status = status == WEFT_OK ? weft_quiet(world) : status;
    printf("%s: %s\n", weft_status_name(status), status == WEFT_OK ? "" : weft_last_error());
    (void)fflush(stdout);
    _exit(0);
}

int main(int argc, char **argv)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    block *to;
    uint64_t *own = malloc(BYTES);
    if (argc != 2 || own == NULL) {
        FAIL("usage: rails carry|down\n");
    }
    if (weft_world_create(&config, &world) != WEFT_OK) {
        fprintf(stderr, "no world: %s\n", weft_last_error());
        return 3;
    }
    MUST(weft_calloc(world, 1, sizeof *to, (void **)&to));
    MUST(weft_barrier(world));
    if (strcmp(argv[1], "carry") == 0) {
        carry(world, to, own);
    } else {
        go_down(world, to, own);
    }
    MUST(weft_world_destroy(world));
    free(own);
    return 0;
}
