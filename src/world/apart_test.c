/* Goal: PEs that nothing connects are found from their hellos: the pair is named, and why, and what to do.
 * Method: hellos made by hand, that differ in one thing or in two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "world/hello.h"

#define PES 4
#define ODD 2

static void fill(wefti_hello all[PES])
{
    memset(all, 0, PES * sizeof *all);
    for (int pe = 0; pe < PES; pe++) {
        all[pe].identity.host = 7;
        all[pe].identity.network = 1;
        all[pe].identity.network_file = 4026531840;
        all[pe].identity.user = 1000;
        all[pe].identity.process[0] = (unsigned char)pe;
    }
}

static void assert_told(const wefti_hello all[PES], const char *const words[])
{
    char why[WEFTI_ERROR_BYTES];
    uint32_t networks;
    assert_int_equal(wefti_hello_check_nodes(all, PES, why, &networks), WEFT_ERR_UNREACHABLE);
    assert_string_equal(why, "");
    const char *text = weft_last_error();
    assert_true(text_names_pe(text, 0) && text_names_pe(text, ODD));
    for (; *words != NULL; words++) {
        if (strstr(text, *words) == NULL) {
            fail_msg("no \"%s\" in: %s", *words, text);
        }
    }
}

static void test_one_node(void **state)
{
    (void)state;
    wefti_hello all[PES];
    char why[WEFTI_ERROR_BYTES];
    uint32_t networks;
    fill(all);
    assert_int_equal(wefti_hello_check_nodes(all, PES, why, &networks), WEFT_OK);
    assert_string_equal(why, "");
    assert_int_equal(wefti_hello_check_nodes(all, 1, why, &networks), WEFT_OK);
}

static void test_networks(void **state)
{
    (void)state;
    wefti_hello all[PES];
    char why[WEFTI_ERROR_BYTES];
    uint32_t networks;
    fill(all);
    all[ODD].identity.node[0] = 1;
    all[ODD].identity.host = 8;
    const uint32_t both = wefti_networks_append(WEFTI_NETWORK_UCX, WEFTI_NETWORK_OFI);
    all[0].networks = both;
    for (int pe = 1; pe < PES; pe++) {
        all[pe].networks = wefti_networks_append(WEFTI_NETWORK_OFI, WEFTI_NETWORK_UCX);
    }
    assert_int_equal(wefti_hello_check_nodes(all, PES, why, &networks), WEFT_OK);
    assert_int_equal(networks, both); /* PE 0's order */
    all[1].networks = WEFTI_NETWORK_OFI;
    assert_int_equal(wefti_hello_check_nodes(all, PES, why, &networks), WEFT_OK);
    assert_int_equal(networks, WEFTI_NETWORK_OFI);
    assert_non_null(strstr(why, "PE 0 with PE 2: they are on different hosts"));
    all[3].networks = WEFTI_NETWORK_SIM;
    assert_told(all, (const char *const[]){"different hosts", "PE 3 has no network", "WEFT_TRANSPORT", NULL});
}

static void test_reasons(void **state)
{
    (void)state;
    wefti_hello all[PES];
    wefti_os_identity *odd = &all[ODD].identity;
    fill(all);
    odd->node[3] = 1;
    odd->host = 8;
    odd->user = 0;
    assert_told(all, (const char *const[]){"different hosts", "one host", NULL});
    odd->host = 7;
    assert_told(all, (const char *const[]){"of different users (1000 and 0)", "as one user", NULL});
    odd->network = 9;
    odd->network_file = 4026532000;
    assert_told(all, (const char *const[]){"network namespaces (net:[4026531840] and net:[4026532000])",
                                           "and of different users (1000 and 0)", NULL});
    odd->user = 1000;
    assert_told(all, (const char *const[]){"in different network namespaces", "--network=host", NULL});
    odd->is_named = 1;
    assert_told(all, (const char *const[]){"WEFT_NODE_ID", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_node),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_networks),
    };
    setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests_name("apart", tests, NULL, NULL);
}
