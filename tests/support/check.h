/* support/check.h: checks that may fail in any thread. A failed check says where, on which PE and why, and is counted;
 * the test goes on, so that no PE is left waiting for one that gave up. */
#ifndef SUPPORT_CHECK_H
#define SUPPORT_CHECK_H

#include <stdint.h>

#include "weft/status.h"

/* Which PE this thread is, for the messages of its failed checks; -1, the beginning: none. */
void check_as_pe(int pe);
int check_pe(void);

/* Called with the text of each failed check, unless NULL, the beginning; need not return. */
extern void (*check_stop)(const char *text);

/* Failed checks of this process since the last check_begin. */
long check_failures(void);

/* Around a cmocka test: forget earlier failures; fail the test when a check failed in it. */
int check_begin(void **state);
int check_end(void **state);
#define CHECKED_TEST(test) cmocka_unit_test_setup_teardown(test, check_begin, check_end)

/* Each returns whether it holds. */
int check_that(int holds, const char *file, int line, const char *format, ...) WEFT_PRINTF(4, 5);
int check_status(weft_status got, weft_status wanted, const char *file, int line, const char *call);
int check_names(int pe, const char *file, int line);

#define CHECK(condition) check_that((condition) ? 1 : 0, __FILE__, __LINE__, "not so: %s", #condition)
#define CHECK_SAY(condition, ...) check_that((condition) ? 1 : 0, __FILE__, __LINE__, __VA_ARGS__)
#define CHECK_OK(call) check_status((call), WEFT_OK, __FILE__, __LINE__, #call)
#define CHECK_STATUS(call, wanted) check_status((call), (wanted), __FILE__, __LINE__, #call)
/* The thread's last error names this PE. */
#define CHECK_NAMES(pe) check_names((pe), __FILE__, __LINE__)

/* Whether a text names a PE, as in "PE 3", "PEs 1, 3-5", "PEs 3 and 7", "the number 3". */
int text_names_pe(const char *text, int pe);

/* End a forked child at once, as _exit: nothing of its parent's is flushed or freed. What it ran counts as covered. */
__attribute__((noreturn)) void check_exit(int code);

/* A seed: WEFT_TEST_SEED if that is set, else a fresh one; printed, so that a failing run can be repeated. */
uint64_t test_seed(void);
/* The next of a sequence of random numbers (splitmix64), and one below `limit` (> 0). */
uint64_t random_next(uint64_t *state);
unsigned random_below(uint64_t *state, unsigned limit);
/* A random order of 0 .. count - 1. */
void random_order(uint64_t *state, int *order, int count);

#endif
