/* Goal: of what libfabric offers, a PE uses the NICs that the plan says, and the first of the best where nothing asks
 * for a plan. Method: lists as libfabric gives them on machines that are not here, with machines of tests/topo. */
#include "transport/ofi/interface.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define MACHINES WEFT_SOURCE_DIR "/tests/topo/machines/"
#define OFFERS_MAX 8

/* Of libfabric's structures what is looked at. */
typedef struct offer {
    struct fi_info info;
    struct fi_fabric_attr fabric;
    struct fi_domain_attr domain;
    struct fid_nic nic;
    struct fi_device_attr device;
    struct sockaddr_in address;
} offer;

static offer offers[OFFERS_MAX];
static int offer_count;

static void offer_one(const char *provider, const char *domain, const char *nic)
{
    offer *o = &offers[offer_count];
    memset(o, 0, sizeof *o);
    o->fabric.prov_name = (char *)(uintptr_t)provider;
    o->domain.name = (char *)(uintptr_t)domain;
    o->device.name = (char *)(uintptr_t)nic;
    o->nic.device_attr = &o->device;
    o->info.fabric_attr = &o->fabric;
    o->info.domain_attr = &o->domain;
    o->info.nic = nic != NULL ? &o->nic : NULL;
    o->info.addr_format = FI_SOCKADDR_IN;
    o->address.sin_addr.s_addr = htonl(strcmp(domain, "lo") == 0 ? INADDR_LOOPBACK : 0x0a000001);
    o->info.src_addr = &o->address;
    if (offer_count > 0) {
        offers[offer_count - 1].info.next = &o->info;
    }
    offer_count++;
}

static void offer_ip(void)
{
    offer_count = 0;
    offer_one("sockets", "eth0", NULL);
    offer_one("tcp;ofi_rxm", "lo", NULL);
    offer_one("tcp;ofi_rxm", "eth0", NULL);
    offer_one("tcp;ofi_rxm", "eth1", NULL);
}

static void offer_rdma(void)
{
    offer_count = 0;
    offer_one("verbs;ofi_rxm", "mlx5_1-rxm", "mlx5_1");
    offer_one("verbs;ofi_rxm", "mlx5_0-rxm", "mlx5_0");
    offer_one("tcp;ofi_rxm", "eth0", NULL);
}

static void offer_efa(const char *fourth)
{
    offer_count = 0;
    offer_one("efa", "rdmap82s0-rdm", fourth);
    offer_one("efa", "rdmap80s0-rdm", "rdmap80s0");
    offer_one("efa", "rdmap79s0-rdm", "rdmap79s0");
    offer_one("tcp;ofi_rxm", "rdmap81s0", NULL);
}

static void give_address(int i, uint32_t address)
{
    offers[i].address.sin_family = AF_INET;
    offers[i].address.sin_addr.s_addr = htonl(address);
    offers[i].info.src_addrlen = sizeof offers[i].address;
}

/* One NIC as the verbs provider tells of its two ports: what it offers differs in the addresses alone. */
static void offer_ports(uint32_t first, uint32_t second)
{
    offer_count = 0;
    offer_one("verbs;ofi_rxm", "mlx5_0-rxm", "mlx5_0");
    offer_one("verbs;ofi_rxm", "mlx5_0-rxm", "mlx5_0");
    give_address(0, first);
    give_address(1, second);
}

static const wefti_topo_pe first_of_numa0 = {.gpu = WEFTI_TOPO_PCI_NONE, .numa = 0, .number = 0};
static const wefti_topo_pe first_of_numa1 = {.gpu = WEFTI_TOPO_PCI_NONE, .numa = 1, .number = 0};

static void assert_chosen(const wefti_topo_pe *pe, const char *name, const char *provider)
{
    wefti_ofi_interfaces chosen;
    assert_int_equal(wefti_ofi_interfaces_choose(&offers[0].info, pe, &chosen), WEFT_OK);
    assert_string_equal(wefti_ofi_interface_name(chosen.infos[0]), name);
    assert_string_equal(chosen.infos[0]->fabric_attr->prov_name, provider);
    assert_true(chosen.reason[0] != '\0');
}

static int clear(void **state)
{
    (void)state;
    (void)unsetenv("WEFT_TOPO_FILE");
    (void)unsetenv("WEFT_NIC_LIST");
    (void)unsetenv("WEFT_NIC_MAPPING");
    (void)unsetenv("WEFT_NIC_RAILS");
    return 0;
}

static void takes_the_first_of_the_best(void **state)
{
    (void)state;
    offer_ip();
    assert_chosen(&first_of_numa0, "eth0", "tcp;ofi_rxm");
    assert_chosen(&first_of_numa1, "eth0", "tcp;ofi_rxm");
}

static void goes_by_the_plan(void **state)
{
    (void)state;
    assert_int_equal(setenv("WEFT_TOPO_FILE", MACHINES "pcie-8gpu.topo", 1), 0);
    offer_rdma();
    assert_chosen(&first_of_numa0, "mlx5_0", "verbs;ofi_rxm");
    assert_chosen(&first_of_numa1, "mlx5_1", "verbs;ofi_rxm");
    for (int i = 0; i < 2; i++) {
        wefti_topo_pe pe = {.numa = -1};
        assert_true(wefti_topo_pci_parse(i == 0 ? "0000:24:00.0" : "0000:a4:00.0", &pe.gpu));
        assert_chosen(&pe, i == 0 ? "mlx5_0" : "mlx5_1", "verbs;ofi_rxm");
    }
}

/* Lists for GPUs steer PEs whose GPU is known; one that the machine does not show is an error then, and else none. */
static void goes_by_the_gpu(void **state)
{
    (void)state;
    wefti_ofi_interfaces chosen;
    wefti_topo_pe pe = {.numa = 0};
    assert_int_equal(setenv("WEFT_TOPO_FILE", MACHINES "pcie-8gpu.topo", 1), 0);
    offer_rdma();
    assert_true(wefti_topo_pci_parse("0000:77:00.0", &pe.gpu));
    assert_chosen(&pe, "mlx5_0", "verbs;ofi_rxm");
    assert_int_equal(setenv("WEFT_NIC_MAPPING", "mlx5_1:1:4,mlx5_0:1:4", 1), 0);
    assert_int_equal(wefti_ofi_interfaces_choose(&offers[0].info, &pe, &chosen), WEFT_ERR_RANGE);
    assert_true(wefti_topo_pci_parse("0000:21:00.0", &pe.gpu));
    assert_chosen(&pe, "mlx5_1", "verbs;ofi_rxm");
    assert_true(wefti_topo_pci_parse("0000:a1:00.0", &pe.gpu));
    assert_chosen(&pe, "mlx5_0", "verbs;ofi_rxm");
    assert_int_equal(unsetenv("WEFT_NIC_MAPPING"), 0);
    assert_int_equal(setenv("WEFT_NIC_ROUND_ROBIN", "1", 1), 0);
    assert_int_equal(setenv("WEFT_NIC_LIST", "mlx5_1,mlx5_0", 1), 0);
    assert_chosen(&pe, "mlx5_1", "verbs;ofi_rxm"); /* the fifth of ports mlx5_1:1, mlx5_1:2, mlx5_0:1, mlx5_0:2 */
    assert_int_equal(unsetenv("WEFT_NIC_ROUND_ROBIN"), 0);
}

static void assert_rails(const wefti_topo_pe *pe, int count, const char *first, const char *last)
{
    wefti_ofi_interfaces chosen;
    assert_int_equal(wefti_ofi_interfaces_choose(&offers[0].info, pe, &chosen), WEFT_OK);
    assert_int_equal(chosen.own, count);
    assert_int_equal(chosen.count, count);
    assert_string_equal(wefti_ofi_interface_name(chosen.infos[0]), first);
    assert_string_equal(wefti_ofi_interface_name(chosen.infos[count - 1]), last);
}

/* Those of the plan that the first one's provider has; with a list all of them must be there. */
static void takes_several(void **state)
{
    (void)state;
    wefti_topo_pe pe = {.numa = -1};
    wefti_ofi_interfaces chosen;
    assert_true(wefti_topo_pci_parse("0000:53:00.0", &pe.gpu));
    assert_int_equal(setenv("WEFT_TOPO_FILE", MACHINES "efa-p5.topo", 1), 0);
    offer_efa("rdmap82s0");
    assert_rails(&pe, 3, "rdmap79s0", "rdmap82s0"); /* not the third, which TCP alone has */
    offer_efa("rdmap79s0");
    assert_rails(&pe, 2, "rdmap79s0", "rdmap80s0");
    assert_int_equal(setenv("WEFT_NIC_RAILS", "one", 1), 0);
    assert_rails(&pe, 1, "rdmap79s0", "rdmap79s0");
    assert_int_equal(unsetenv("WEFT_NIC_RAILS"), 0);
    assert_int_equal(setenv("WEFT_NIC_LIST", "^rdmap80s0", 1), 0);
    assert_int_equal(wefti_ofi_interfaces_choose(&offers[0].info, &pe, &chosen), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(), "rdmap81s0"));
    assert_non_null(strstr(weft_last_error(), "of the provider efa"));
    assert_int_equal(setenv("WEFT_NIC_RAILS", "few", 1), 0);
    assert_int_equal(wefti_ofi_interfaces_choose(&offers[0].info, &pe, &chosen), WEFT_ERR_ARGUMENT);
}

/* A description of another machine does not stop a world; a list does. */
static void falls_back_unless_asked(void **state)
{
    (void)state;
    wefti_ofi_interfaces chosen;
    assert_int_equal(setenv("WEFT_TOPO_FILE", MACHINES "pcie-8gpu.topo", 1), 0);
    offer_ip();
    assert_chosen(&first_of_numa0, "eth0", "tcp;ofi_rxm");
    assert_int_equal(setenv("WEFT_NIC_LIST", "mlx5_1", 1), 0);
    assert_int_equal(wefti_ofi_interfaces_choose(&offers[0].info, &first_of_numa0, &chosen), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(), "mlx5_1"));
    assert_non_null(strstr(weft_last_error(), "interfaces here are: eth0, lo, eth1"));
    offer_rdma();
    assert_chosen(&first_of_numa0, "mlx5_1", "verbs;ofi_rxm");
}

/* By the address, which is one of the port's GIDs; both ports of a NIC are two rails. */
static void tells_ports_apart(void **state)
{
    (void)state;
    const wefti_topo_pe alone = {.gpu = WEFTI_TOPO_PCI_NONE, .numa = 0, .count = 1};
    wefti_ofi_interfaces chosen;
    assert_int_equal(setenv("WEFT_TOPO_FILE", MACHINES "roce-dual-port.topo", 1), 0);
    for (uint32_t round = 0; round < 2; round++) { /* whichever is offered first */
        offer_ports(0x0a000001 + round, 0x0a000002 - round);
        for (int port = 1; port <= 2; port++) {
            assert_int_equal(setenv("WEFT_NIC_LIST", port == 1 ? "mlx5_0:1" : "mlx5_0:2", 1), 0);
            assert_int_equal(wefti_ofi_interfaces_choose(&offers[0].info, &alone, &chosen), WEFT_OK);
            assert_int_equal(chosen.count, 1);
            assert_int_equal(chosen.ports[0], port);
            assert_ptr_equal(chosen.infos[0], &offers[(uint32_t)port - 1 == round ? 0 : 1].info);
        }
        assert_int_equal(unsetenv("WEFT_NIC_LIST"), 0);
        assert_int_equal(wefti_ofi_interfaces_choose(&offers[0].info, &alone, &chosen), WEFT_OK);
        assert_int_equal(chosen.count, 2);
        assert_int_equal(chosen.ports[0], 1);
        assert_int_equal(chosen.ports[1], 2);
        assert_ptr_equal(chosen.infos[0], &offers[round].info);
        assert_ptr_equal(chosen.infos[1], &offers[1 - round].info);
    }
    /* An address of no port that is known: an error for who asks for that port, else not used. */
    offer_ports(0x0a000001, 0x0a000003);
    assert_int_equal(wefti_ofi_interfaces_choose(&offers[0].info, &alone, &chosen), WEFT_OK);
    assert_int_equal(chosen.count, 1);
    assert_int_equal(chosen.ports[0], 1);
    assert_int_equal(setenv("WEFT_NIC_LIST", "mlx5_0:2", 1), 0);
    assert_int_equal(wefti_ofi_interfaces_choose(&offers[0].info, &alone, &chosen), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(), "is mlx5_0:2, by"));
    assert_non_null(strstr(weft_last_error(), "none of the addresses that libfabric has of mlx5_0 is of that port"));
    /* GIDs that are not known. */
    assert_int_equal(setenv("WEFT_TOPO_FILE", MACHINES "pcie-8gpu.topo", 1), 0);
    assert_int_equal(wefti_ofi_interfaces_choose(&offers[0].info, &alone, &chosen), WEFT_OK);
    assert_int_equal(chosen.ports[0], 0);
}

static void refuses_what_cannot_be_read(void **state)
{
    (void)state;
    wefti_ofi_interfaces chosen;
    offer_rdma();
    assert_int_equal(setenv("WEFT_TOPO_FILE", MACHINES "pcie-8gpu.topo", 1), 0);
    assert_int_equal(setenv("WEFT_NIC_LIST", "mlx5_0:x", 1), 0);
    assert_int_equal(wefti_ofi_interfaces_choose(&offers[0].info, &first_of_numa0, &chosen), WEFT_ERR_ARGUMENT);
    assert_int_equal(unsetenv("WEFT_NIC_LIST"), 0);
    assert_int_equal(setenv("WEFT_NIC_MAPPING", "mlx5_0:1:3", 1), 0);
    assert_int_equal(wefti_ofi_interfaces_choose(&offers[0].info, &first_of_numa0, &chosen), WEFT_ERR_RANGE);
    assert_int_equal(unsetenv("WEFT_NIC_MAPPING"), 0);
    assert_int_equal(setenv("WEFT_TOPO_FILE", "/nowhere/machine.topo", 1), 0);
    assert_int_not_equal(wefti_ofi_interfaces_choose(&offers[0].info, &first_of_numa0, &chosen), WEFT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(takes_the_first_of_the_best, clear),
        cmocka_unit_test_setup(goes_by_the_plan, clear),
        cmocka_unit_test_setup(goes_by_the_gpu, clear),
        cmocka_unit_test_setup(takes_several, clear),
        cmocka_unit_test_setup(falls_back_unless_asked, clear),
        cmocka_unit_test_setup(tells_ports_apart, clear),
        cmocka_unit_test_setup(refuses_what_cannot_be_read, clear),
    };
    setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests_name("interface", tests, NULL, NULL);
}
