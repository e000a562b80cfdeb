/* Goal: what WEFT_RMA_BYTES and WEFT_RMA_ORDER may be, and what they mean.
 * Method: each value is read as when a world's network is opened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "transport/am/am.h"

static weft_status read_settings(const char *bytes, const char *order, wefti_am *am, wefti_wire_rma *wanted)
{
    (void)setenv("WEFT_RMA_BYTES", bytes, 1);
    (void)setenv("WEFT_RMA_ORDER", order, 1);
    weft_status status = wefti_am_rma_settings(am, wanted);
    (void)unsetenv("WEFT_RMA_BYTES");
    (void)unsetenv("WEFT_RMA_ORDER");
    return status;
}

static void test_what_is_taken(void **state)
{
    (void)state;
    static wefti_am am;
    wefti_wire_rma wanted;
    CHECK_OK(read_settings("257", "completion", &am, &wanted));
    CHECK(am.rma_bytes_min == 257 && wanted == WEFTI_WIRE_RMA_COMPLETES);
    CHECK_OK(read_settings("512", "counted", &am, &wanted));
    CHECK(am.rma_bytes_min == 512 && wanted == WEFTI_WIRE_RMA_COUNTED);
    CHECK_OK(read_settings("1M", "provider", &am, &wanted));
    CHECK(am.rma_bytes_min == 1 << 20 && wanted == WEFTI_WIRE_RMA_ORDERED);
    CHECK_OK(read_settings("", "", &am, &wanted)); /* the defaults */
    CHECK(am.rma_bytes_min > 256 && wanted == WEFTI_WIRE_RMA_ORDERED);
    CHECK_OK(read_settings("0", "completion", &am, &wanted));
    CHECK(am.rma_bytes_min == UINT64_MAX && wanted == WEFTI_WIRE_NO_RMA);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const char *const cases[][3] = {{"256", "auto", "257"},
                                           {"1", "auto", "WEFT_RMA_BYTES"},
                                           {"some", "auto", "WEFT_RMA_BYTES"},
                                           {"4K", "any", "any"}};
    static wefti_am am;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wefti_wire_rma wanted = WEFTI_WIRE_NO_RMA;
        CHECK_STATUS(read_settings(cases[i][0], cases[i][1], &am, &wanted), WEFT_ERR_ARGUMENT);
        CHECK_SAY(strstr(weft_last_error(), cases[i][2]) != NULL, "\"%s\" does not name %s", weft_last_error(),
                  cases[i][2]);
        CHECK(wanted == WEFTI_WIRE_NO_RMA && am.rma_bytes_min == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(test_what_is_taken), CHECKED_TEST(test_what_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
