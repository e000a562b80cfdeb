/* Goal: scales come to where they belong, packed or with gaps on either side, and nothing between them is touched.
 * Method: words of their own number, copied with every pair of steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "ep/host/span.h"
#include "support/check.h"

#define WORDS 7
#define STEP_MAX 3
#define UNTOUCHED UINT32_C(0xa5a5a5a5)

static void copy_by_steps(size_t to_step, size_t step)
{
    uint32_t from[WORDS * STEP_MAX];
    uint32_t to[WORDS * STEP_MAX];
    for (uint32_t i = 0; i < WORDS * STEP_MAX; i++) {
        from[i] = i;
    }
    memset(to, 0xa5, sizeof to);
    wefti_ep_scales_copy((unsigned char *)to, to_step * sizeof *to, (const unsigned char *)from, step * sizeof *from,
                         WORDS);
    for (size_t i = 0; i < WORDS * STEP_MAX; i++) {
        int is_scale = i % to_step == 0 && i / to_step < WORDS;
        uint32_t wanted = is_scale ? (uint32_t)(i / to_step * step) : UNTOUCHED;
        CHECK_SAY(to[i] == wanted, "steps %zu, %zu: word %zu is %u", to_step, step, i, (unsigned)to[i]);
    }
}

static void scales_with_gaps(void **state)
{
    (void)state;
    for (size_t to_step = 1; to_step <= STEP_MAX; to_step++) {
        for (size_t step = 1; step <= STEP_MAX; step++) {
            copy_by_steps(to_step, step);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(scales_with_gaps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
