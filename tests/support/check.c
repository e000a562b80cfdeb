/* support/check.c: checks that may fail in any thread, and seeds. */
#include "support/check.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FAILURES_SHOWN 20

static long failures;
static _Thread_local int pe_here = -1;
void (*check_stop)(const char *text);

void check_as_pe(int pe)
{
    pe_here = pe;
}

int check_pe(void)
{
    return pe_here;
}

long check_failures(void)
{
    return __atomic_load_n(&failures, __ATOMIC_ACQUIRE);
}

int check_begin(void **state)
{
    (void)state;
    __atomic_store_n(&failures, 0, __ATOMIC_RELEASE);
    return 0;
}

int check_end(void **state)
{
    (void)state;
    return check_failures() != 0;
}

/* One write a line, so that lines of several PEs do not mix. */
static void show(const char *file, int line, const char *text)
{
    char whole[1024];
    int bytes;
    if (pe_here >= 0) {
        bytes = snprintf(whole, sizeof whole, "%s:%d: PE %d: %s\n", file, line, pe_here, text);
    } else {
        bytes = snprintf(whole, sizeof whole, "%s:%d: %s\n", file, line, text);
    }
    size_t length = bytes < (int)sizeof whole ? (size_t)bytes : sizeof whole - 1;
    if (write(STDERR_FILENO, whole, length) < 0) {
        return; /* the count still tells */
    }
}

int check_that(int holds, const char *file, int line, const char *format, ...)
{
    if (holds) {
        return 1;
    }
    char text[900];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (check_stop != NULL) {
        check_stop(text);
    }
    long number = __atomic_add_fetch(&failures, 1, __ATOMIC_ACQ_REL);
    if (number <= FAILURES_SHOWN) {
        show(file, line, text);
    } else if (number == FAILURES_SHOWN + 1) {
        show(file, line, "more checks failed; their lines are left out");
    }
    return 0;
}

int check_status(weft_status got, weft_status wanted, const char *file, int line, const char *call)
{
    return check_that(got == wanted, file, line, "%s gave %s, not %s (last error: \"%s\")", call, weft_status_name(got),
                      weft_status_name(wanted), weft_last_error());
}

int check_names(int pe, const char *file, int line)
{
    return check_that(text_names_pe(weft_last_error(), pe), file, line, "PE %d is not named by \"%s\"", pe,
                      weft_last_error());
}

/* The list of numbers and ranges at `text`; whether `pe` is in it. */
static int list_has(const char *text, int pe)
{
    while (isdigit((unsigned char)*text)) {
        char *end;
        long first = strtol(text, &end, 10);
        long last = first;
        if (end[0] == '-' && isdigit((unsigned char)end[1])) {
            last = strtol(end + 1, &end, 10);
        }
        if (first <= pe && pe <= last) {
            return 1;
        }
        text = end;
        if (strncmp(text, ", ", 2) == 0) {
            text += 2;
        } else if (strncmp(text, " and ", 5) == 0) {
            text += 5;
        }
    }
    return 0;
}

int text_names_pe(const char *text, int pe)
{
    static const char *const words[] = {"PE ", "PEs ", "number ", "rank "};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        for (const char *at = strstr(text, words[i]); at != NULL; at = strstr(at + 1, words[i])) {
            if (list_has(at + strlen(words[i]), pe)) {
                return 1;
            }
        }
    }
    return 0;
}

uint64_t test_seed(void)
{
    const char *given = getenv("WEFT_TEST_SEED");
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    uint64_t fresh = (uint64_t)now.tv_nsec << 22 ^ (uint64_t)getpid();
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : random_next(&fresh);
    printf("WEFT_TEST_SEED=%#llx repeats this run\n", (unsigned long long)seed);
    (void)fflush(stdout);
    return seed;
}

uint64_t random_next(uint64_t *state)
{
    uint64_t value = *state += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

unsigned random_below(uint64_t *state, unsigned limit)
{
    return (unsigned)(random_next(state) % limit);
}

void random_order(uint64_t *state, int *order, int count)
{
    for (int i = 0; i < count; i++) {
        int j = (int)random_below(state, (unsigned)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

#ifdef WEFT_COVERAGE
void __gcov_dump(void); /* of the compiler's library */
#endif

void check_exit(int code)
{
#ifdef WEFT_COVERAGE
    __gcov_dump();
#endif
    _exit(code);
}
