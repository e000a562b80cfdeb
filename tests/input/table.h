/* input/table.h: the table of bad input: what every public function does with arguments that cannot be.
 *
 * HOW TO ADD A FUNCTION. Test bad_input_names fails when a function of the public headers has no row. Give it one, in
 * the file of its subject (onesided.c, collectives.c, worlds.c, experts.c, device.c; simulator.c for weft_sim.h):
 *
 *   1. A function that returns a weft_status and takes the usual arguments is one line that names their kinds:
 *
 *          ROW(sizeof(long), weft_long_put, WORLD, SYM, IN, COUNT, PE)
 *
 *      The first argument is the bytes of an element (1 for calls in bytes). table.c calls it with good arguments,
 *      which must give WEFT_OK, and then once for each bad value of each kind, which must give that value's status
 *      and change nothing. The kinds and their values are in KINDS below and in table.c; a new kind goes into both. A
 *      family over types is a macro of rows over that family's X-macro table, as RMA in onesided.c.
 *   2. Any other is a body of checks:
 *
 *          CASE(weft_ptr)
 *          {
 *              CHECK(weft_ptr(NULL, s->block, 0) == NULL);
 *          }
 *
 * Every row runs on both PEs of a world, in the same order, so that a body may make collective calls. After each row
 * table.c checks that the heap and the outputs are as they were, and that put, get and barrier still work. */
#ifndef INPUT_TABLE_H
#define INPUT_TABLE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "support/check.h"
#include "weft.h"

#define POISON 0xa5
#define PART_BYTES 2048

/* Where a PE's good arguments come from. */
typedef struct scene {
    weft_world *world;
    weft_team *team;
    weft_ctx *ctx;
    int me;
    int pes;
    /* Symmetric: parts of one block, which is poisoned and must stay so. */
    unsigned char *block;
    unsigned char *dest;
    unsigned char *source;
    unsigned char *words; /* signals, variables */
    unsigned char *end; /* just behind the reserved heap */
    unsigned char *other; /* the block of the other PE, in this process */
    /* Local: poisoned too. */
    unsigned char in[PART_BYTES];
    unsigned char out[PART_BYTES];
    /* A world of one PE in the same process. */
    weft_world *foreign;
    unsigned char *foreign_block;
} scene;

/* One argument, of any type. */
typedef struct value {
    void *pointer;
    long long number;
} value;

/* The kinds of arguments and what is bad about them. */
#define KINDS(X)                                                                                                       \
    X(WORLD) /* NULL */                                                                                                \
    X(TEAM) /* NULL; the team of another world, where there are symmetric buffers */                                   \
    X(CTX) /* NULL */                                                                                                  \
    X(SYM) /* symmetric, COUNT elements or one: NULL, outside the heap, over its end */                                \
    X(SOURCE) /* likewise, another part of the block */                                                                \
    X(AMO) /* a symmetric word: likewise, and not aligned to its size */                                               \
    X(SIGNAL) /* likewise, of 8 bytes */                                                                               \
    X(VARIABLE) /* a local word: NULL, not aligned */                                                                  \
    X(VARIABLES) /* VALUES words in this PE's heap: NULL, not aligned, outside the heap */                             \
    X(IN) /* local memory that is read: NULL */                                                                        \
    X(ZEROS) /* likewise, zeros */                                                                                     \
    X(OUT) /* local memory that is written: NULL */                                                                    \
    X(MAYBE) /* an output that may be NULL: nothing is bad */                                                          \
    X(NONE) /* an array that may be NULL, and is */                                                                    \
    X(COUNT) /* elements of SYM: one too many, until the bytes overflow; 0 is good and changes nothing */              \
    X(VALUES) /* elements of VARIABLES: likewise */                                                                    \
    X(ELEMENT) /* bytes of an element: 0, too many */                                                                  \
    X(STRIDE) /* less than 1; beyond the heap or the address space */                                                  \
    X(BLOCK) /* elements of a block: more than STRIDE, also by far; 0 is not tried */                                  \
    X(PE) /* none of the world or team */                                                                              \
    X(ROOT) /* none of the team */                                                                                     \
    X(OP) /* no weft_signal_op */                                                                                      \
    X(CMP) /* no weft_cmp */                                                                                           \
    X(VALUE) /* any will do */

typedef enum kind {
#define KIND_ENUM(KIND) KIND_##KIND,
    KINDS(KIND_ENUM)
#undef KIND_ENUM
} kind;

#define ARGUMENTS_MAX 12

typedef struct row {
    const char *name;
    size_t element;
    int count; /* arguments */
    kind kinds[ARGUMENTS_MAX];
    weft_status (*call)(const value *v); /* NULL: */
    void (*body)(scene *s);
    struct row *next;
} row;

void table_add(row *r);
/* destroyed.c: use handles of what has been destroyed; a part of the body of weft_world_destroy. */
void use_destroyed(scene *s);
/* Run all rows on two PEs; a cmocka test. */
void table_run(void **state);
/* For main: with "--names" print the functions that have a row and return 1. */
int table_names(int argc, char **argv);

#define CASE(FUNCTION)                                                                                                 \
    static void case_##FUNCTION(scene *s);                                                                             \
    __attribute__((constructor)) static void add_##FUNCTION(void)                                                      \
    {                                                                                                                  \
        static row r = {.name = #FUNCTION, .body = case_##FUNCTION};                                                   \
        table_add(&r);                                                                                                 \
    }                                                                                                                  \
    static void case_##FUNCTION(scene *s)

/* A further function that the body of another covers. */
#define COVERED(FUNCTION)                                                                                              \
    __attribute__((constructor)) static void add_##FUNCTION(void)                                                      \
    {                                                                                                                  \
        static row r = {.name = #FUNCTION};                                                                            \
        table_add(&r);                                                                                                 \
    }

#define ROW(ELEMENT_BYTES, FUNCTION, ...)                                                                              \
    static weft_status call_##FUNCTION(const value *v)                                                                 \
    {                                                                                                                  \
        return FUNCTION(PER_ARGUMENT(PASS, __VA_ARGS__));                                                              \
    }                                                                                                                  \
    __attribute__((constructor)) static void add_##FUNCTION(void)                                                      \
    {                                                                                                                  \
        static const kind kinds[] = {PER_ARGUMENT(KIND_OF, __VA_ARGS__)};                                              \
        static row r = {.name = #FUNCTION, .element = (ELEMENT_BYTES), .call = call_##FUNCTION};                       \
        r.count = (int)(sizeof kinds / sizeof kinds[0]);                                                               \
        for (int i = 0; i < r.count; i++) {                                                                            \
            r.kinds[i] = kinds[i];                                                                                     \
        }                                                                                                              \
        table_add(&r);                                                                                                 \
    }

/* PER_ARGUMENT(F, a, b, ...): F(0, a), F(1, b), ... */
#define PASS(I, KIND) PASS_##KIND(v[I])
#define KIND_OF(I, KIND) KIND_##KIND
#define PASS_WORLD(v) (v).pointer
#define PASS_TEAM(v) (v).pointer
#define PASS_CTX(v) (v).pointer
#define PASS_SYM(v) (v).pointer
#define PASS_SOURCE(v) (v).pointer
#define PASS_AMO(v) (v).pointer
#define PASS_SIGNAL(v) (v).pointer
#define PASS_VARIABLE(v) (v).pointer
#define PASS_VARIABLES(v) (v).pointer
#define PASS_IN(v) (v).pointer
#define PASS_ZEROS(v) (v).pointer
#define PASS_OUT(v) (v).pointer
#define PASS_MAYBE(v) (v).pointer
#define PASS_NONE(v) (v).pointer
#define PASS_COUNT(v) (size_t)(v).number
#define PASS_VALUES(v) (size_t)(v).number
#define PASS_ELEMENT(v) (size_t)(v).number
#define PASS_STRIDE(v) (ptrdiff_t)(v).number
#define PASS_BLOCK(v) (size_t)(v).number
#define PASS_PE(v) (int)(v).number
#define PASS_ROOT(v) (int)(v).number
#define PASS_OP(v) (weft_signal_op)(v).number
#define PASS_CMP(v) (weft_cmp)(v).number
#define PASS_VALUE(v) (v).number
#define PER_ARGUMENT(F, ...) PER_PICK(__VA_ARGS__, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)(F, __VA_ARGS__)
#define PER_PICK(a, b, c, d, e, f, g, h, i, j, k, n, ...) PER_JOIN(n)
#define PER_JOIN(n) PER_##n
#define PER_1(F, a) F(0, a)
#define PER_2(F, a, b) PER_1(F, a), F(1, b)
#define PER_3(F, a, b, c) PER_2(F, a, b), F(2, c)
#define PER_4(F, a, b, c, d) PER_3(F, a, b, c), F(3, d)
#define PER_5(F, a, b, c, d, e) PER_4(F, a, b, c, d), F(4, e)
#define PER_6(F, a, b, c, d, e, f) PER_5(F, a, b, c, d, e), F(5, f)
#define PER_7(F, a, b, c, d, e, f, g) PER_6(F, a, b, c, d, e, f), F(6, g)
#define PER_8(F, a, b, c, d, e, f, g, h) PER_7(F, a, b, c, d, e, f, g), F(7, h)
#define PER_9(F, a, b, c, d, e, f, g, h, i) PER_8(F, a, b, c, d, e, f, g, h), F(8, i)
#define PER_10(F, a, b, c, d, e, f, g, h, i, j) PER_9(F, a, b, c, d, e, f, g, h, i), F(9, j)
#define PER_11(F, a, b, c, d, e, f, g, h, i, j, k) PER_10(F, a, b, c, d, e, f, g, h, i, j), F(10, k)

#endif
