/* Goal: a PE gets the ports that the plan of its host says, by its GPU's PCI address, or by its NUMA node and its
 * number on the host, whatever its number in a world; as many as WEFT_NIC_RAILS asks for. Method: machines of
 * tests/topo, and the variables. */
#include "topo/nic_of_pe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topo/description.h"

#define MACHINES WEFT_SOURCE_DIR "/tests/topo/machines/"

static const char *const pcie_gpus[] = {"0000:21:00.0", "0000:22:00.0", "0000:23:00.0", "0000:24:00.0",
                                        "0000:a1:00.0", "0000:a2:00.0", "0000:a3:00.0", "0000:a4:00.0"};

static void load(wefti_topo *topo, const char *file)
{
    assert_int_equal(wefti_topo_read(topo, file), WEFT_OK);
}

static weft_status ask(const wefti_topo *topo, const wefti_topo_pe *pe, wefti_topo_rails *nics)
{
    wefti_topo_rails_ask asked;
    assert_int_equal(wefti_topo_rails_ask_read(&asked), WEFT_OK);
    return wefti_topo_rails_of(topo, &asked, pe, nics);
}

static void assert_nic(const wefti_topo *topo, const wefti_topo_pe *pe, const char *name, int port)
{
    wefti_topo_rails nics;
    assert_int_equal(ask(topo, pe, &nics), WEFT_OK);
    assert_int_equal(nics.own, nics.count);
    assert_int_equal(nics.count, name[0] != '\0');
    assert_string_equal(nics.rails[0].name, name);
    assert_int_equal(nics.rails[0].port, port);
    assert_true(name[0] == '\0' || nics.reason[0] != '\0');
}

/* As "NIC:PORT NIC:PORT", those that are not the PE's own in parentheses. */
static void assert_rails(const wefti_topo *topo, const wefti_topo_pe *pe, const char *expected)
{
    wefti_topo_rails nics;
    char text[400] = "";
    assert_int_equal(ask(topo, pe, &nics), WEFT_OK);
    for (int i = 0; i < nics.count; i++) {
        const size_t length = strlen(text);
        (void)snprintf(text + length, sizeof text - length, i < nics.own ? "%s%s:%d" : "%s(%s:%d)", i > 0 ? " " : "",
                       nics.rails[i].name, nics.rails[i].port);
        for (int j = 0; j < i; j++) {
            assert_int_not_equal(nics.rails[i].slot, nics.rails[j].slot);
        }
    }
    assert_string_equal(text, expected);
}

/* A module whose world has one PE a node and GPU: each PE's number on its node is 0. */
static void goes_by_the_gpu(void **state)
{
    (void)state;
    wefti_topo topo;
    load(&topo, MACHINES "pcie-8gpu.topo");
    assert_int_equal(setenv("WEFT_NIC_MAPPING", "mlx5_0:1:2,mlx5_0:2:2,mlx5_1:1:2,mlx5_1:2:2", 1), 0);
    for (int i = 7; i >= 0; i--) {
        for (int number = 0; number < 8; number += 7) {
            wefti_topo_pe pe = {.numa = -1, .number = number};
            assert_true(wefti_topo_pci_parse(pcie_gpus[i], &pe.gpu));
            assert_nic(&topo, &pe, i < 4 ? "mlx5_0" : "mlx5_1", i % 4 < 2 ? 1 : 2);
        }
    }
    assert_int_equal(unsetenv("WEFT_NIC_MAPPING"), 0);
    wefti_topo_fini(&topo);
}

static wefti_topo_pe of_first_gpu(const wefti_topo *topo)
{
    wefti_topo_pe pe = {.numa = -1};
    for (int i = 0; i < topo->count && pe.gpu == 0; i++) {
        pe.gpu = topo->objects[i].kind == WEFTI_TOPO_GPU ? topo->objects[i].pci : 0;
    }
    return pe;
}

static void has_several_rails(void **state)
{
    (void)state;
    wefti_topo topo;
    wefti_topo_rails nics;
    load(&topo, MACHINES "efa-p5.topo");
    const wefti_topo_pe pe = of_first_gpu(&topo);
    assert_rails(&topo, &pe, "rdmap79s0:1 rdmap80s0:1 rdmap81s0:1 rdmap82s0:1");
    assert_int_equal(setenv("WEFT_NIC_RAILS", "one", 1), 0);
    assert_rails(&topo, &pe, "rdmap79s0:1");
    assert_int_equal(ask(&topo, &pe, &nics), WEFT_OK);
    assert_non_null(strstr(nics.reason, "of GPU 0000:53:00.0: "));
    assert_non_null(
        strstr(nics.reason, "; further ports of the plan, not used: rdmap80s0:1, rdmap81s0:1, rdmap82s0:1"));
    assert_int_equal(setenv("WEFT_NIC_RAILS", "same-slot", 1), 0);
    assert_int_equal(ask(&topo, &pe, &nics), WEFT_ERR_RANGE);
    assert_non_null(strstr(weft_last_error(), "has 32 ports, and a PE at most 8"));
    wefti_topo_fini(&topo);
    load(&topo, MACHINES "pcie-8gpu.topo");
    wefti_topo_pe fourth = {.numa = -1};
    assert_true(wefti_topo_pci_parse("0000:a4:00.0", &fourth.gpu));
    assert_int_equal(ask(&topo, &fourth, &nics), WEFT_OK);
    assert_int_equal(nics.own, 1);
    assert_int_equal(nics.count, 4);
    assert_int_equal(setenv("WEFT_NIC_RAILS", "two", 1), 0);
    wefti_topo_rails_ask asked;
    assert_int_equal(wefti_topo_rails_ask_read(&asked), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(), "WEFT_NIC_RAILS is \"two\""));
    assert_int_equal(unsetenv("WEFT_NIC_RAILS"), 0);
    wefti_topo_fini(&topo);
}

/* Ports that outnumber the PEs of a world on the host are dealt out among them. */
static void deals_out_what_is_left(void **state)
{
    (void)state;
    static const char *const expected[3][3] = {
        {"mlx5_0:1 mlx5_0:2 mlx5_1:1 mlx5_1:2"},
        {"mlx5_0:1 mlx5_1:1", "mlx5_0:2 mlx5_1:2"},
        {"mlx5_0:1 mlx5_1:2", "mlx5_0:2", "mlx5_1:1"},
    };
    wefti_topo topo;
    load(&topo, MACHINES "pcie-8gpu.topo");
    for (int count = 1; count <= 3; count++) {
        for (int number = 0; number < count; number++) {
            const wefti_topo_pe pe = {.gpu = WEFTI_TOPO_PCI_NONE, .numa = -1, .number = number, .count = count};
            assert_rails(&topo, &pe, expected[count - 1][number]);
        }
    }
    wefti_topo_fini(&topo);
}

static void refuses_another_hosts_gpu(void **state)
{
    (void)state;
    wefti_topo topo;
    wefti_topo_rails nic;
    wefti_topo_pe pe = {.numa = -1};
    load(&topo, MACHINES "pcie-8gpu.topo");
    assert_true(wefti_topo_pci_parse("0000:77:00.0", &pe.gpu));
    assert_int_equal(ask(&topo, &pe, &nic), WEFT_ERR_RANGE);
    assert_non_null(strstr(weft_last_error(), "0000:77:00.0"));
    wefti_topo_fini(&topo);
}

static void goes_by_the_numa_node(void **state)
{
    (void)state;
    wefti_topo topo;
    load(&topo, MACHINES "pcie-8gpu.topo");
    for (int numa = 0; numa < 2; numa++) {
        for (int number = 0; number < 4; number++) {
            const wefti_topo_pe pe = {.gpu = WEFTI_TOPO_PCI_NONE, .numa = numa, .number = number, .count = 4};
            assert_nic(&topo, &pe, numa == 0 ? "mlx5_0" : "mlx5_1", 1 + number % 2);
        }
    }
    for (int number = 0; number < 8; number++) { /* on no one node, or one that the description has not: all in turn */
        const wefti_topo_pe pe = {.gpu = WEFTI_TOPO_PCI_NONE, .numa = number < 4 ? -1 : 9, .number = number};
        assert_nic(&topo, &pe, number % 4 < 2 ? "mlx5_0" : "mlx5_1", 1 + number % 2);
    }
    wefti_topo_fini(&topo);
}

static void keeps_to_the_list(void **state)
{
    (void)state;
    wefti_topo topo;
    wefti_topo_rails nic;
    const wefti_topo_pe pe = {.gpu = WEFTI_TOPO_PCI_NONE, .numa = 0, .number = 3};
    load(&topo, MACHINES "pcie-8gpu.topo");
    assert_int_equal(setenv("WEFT_NIC_LIST", "mlx5_1:2", 1), 0);
    assert_nic(&topo, &pe, "mlx5_1", 2);
    assert_int_equal(setenv("WEFT_NIC_LIST", "mlx5_7", 1), 0);
    assert_int_equal(ask(&topo, &pe, &nic), WEFT_ERR_RANGE);
    assert_int_equal(setenv("WEFT_NIC_LIST", "mlx5_1,,", 1), 0);
    assert_int_equal(ask(&topo, &pe, &nic), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(), "character 8"));
    assert_int_equal(unsetenv("WEFT_NIC_LIST"), 0);
    wefti_topo_fini(&topo);
}

static void says_what_is_asked(void **state)
{
    (void)state;
    static const char *const names[] = {"WEFT_NIC_LIST", "WEFT_NIC_MAPPING", "WEFT_NIC_ROUND_ROBIN"};
    wefti_topo_rails_ask asked;
    assert_int_equal(wefti_topo_rails_ask_read(&asked), WEFT_OK);
    assert_false(asked.is_asked);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(setenv(names[i], "1", 1), 0);
        assert_int_equal(wefti_topo_rails_ask_read(&asked), WEFT_OK);
        assert_true(asked.is_asked);
        assert_int_equal(unsetenv(names[i]), 0);
    }
    assert_int_equal(setenv("WEFT_NIC_ROUND_ROBIN", "yes", 1), 0);
    assert_int_equal(wefti_topo_rails_ask_read(&asked), WEFT_ERR_ARGUMENT);
    assert_int_equal(unsetenv("WEFT_NIC_ROUND_ROBIN"), 0);
}

/* A host without NICs gives none; of several hosts it is the one with this machine's name. */
static void finds_the_host(void **state)
{
    (void)state;
    static const char text[] = "weft-topology 1\nhost another\nnuma a\nnic mlx5_3 parent=a\n"
                               "host %s\nnuma b\nnic mlx5_4 parent=b\n";
    const wefti_topo_pe pe = {.gpu = WEFTI_TOPO_PCI_NONE, .numa = -1};
    char name[40] = "";
    char filled[200];
    wefti_topo topo;
    (void)gethostname(name, sizeof name - 1);
    (void)snprintf(filled, sizeof filled, text, name);
    assert_int_equal(wefti_topo_parse(&topo, "here", filled, strlen(filled)), WEFT_OK);
    assert_nic(&topo, &pe, "mlx5_4", 1);
    wefti_topo_fini(&topo);
    load(&topo, MACHINES "cloud-none.topo");
    assert_nic(&topo, &pe, "", 0);
    wefti_topo_fini(&topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_by_the_gpu),       cmocka_unit_test(refuses_another_hosts_gpu),
        cmocka_unit_test(goes_by_the_numa_node), cmocka_unit_test(keeps_to_the_list),
        cmocka_unit_test(says_what_is_asked),    cmocka_unit_test(finds_the_host),
        cmocka_unit_test(has_several_rails),     cmocka_unit_test(deals_out_what_is_left),
    };
    setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests_name("nic_of_pe", tests, NULL, NULL);
}
