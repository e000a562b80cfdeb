/* Goal: speeds and GIDs of ports are read as Linux tells them. Method: a folder that is made as sysfs is, with a
 * dual-port NIC of InfiniBand, one of RoCE, an Ethernet interface, and files that say nothing of use. */
#include "topo/sysfs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[] = "/tmp/weft_sysfs_test_XXXXXX";

static void put(const char *path, const char *text)
{
    char all[300];
    (void)snprintf(all, sizeof all, "%s/%s", root, path);
    for (char *slash = strchr(all + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(all, 0700);
        *slash = '/';
    }
    FILE *to = fopen(all, "we");
    assert_non_null(to);
    assert_true(fputs(text, to) >= 0);
    assert_int_equal(fclose(to), 0);
}

#define IB "class/infiniband/"
#define ZERO "0000:0000:0000:0000:0000:0000:0000:0000\n"

static int fill(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(root));
    put(IB "mlx4_0/ports/1/rate", "56 Gb/sec (4X FDR)\n");
    put(IB "mlx4_0/ports/1/link_layer", "InfiniBand\n");
    put(IB "mlx4_0/ports/1/gids/0", "fe80:0000:0000:0000:0002:c903:0010:0001\n");
    put(IB "mlx4_0/ports/1/gids/1", ZERO);
    put(IB "mlx4_0/ports/2/rate", "nonsense\n");
    put(IB "mlx4_0/ports/2/link_layer", "InfiniBand\n");
    put(IB "mlx4_0/ports/2/gids/0", "fe80:0000:0000:0000:0002:c903:0010:0002\n");
    put(IB "mlx4_0/ports/2/gids/1", "no address\n");
    put(IB "mlx4_0/ports/2/gids/2", "fe80:0000:0000:0000:0002:c903:0010:0003\n");
    put(IB "mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
    put(IB "mlx5_0/ports/1/link_layer", "Ethernet\n");
    put(IB "mlx5_0/ports/1/gids/0", ZERO);
    put(IB "mlx5_0/ports/1/gids/1", ZERO);
    put(IB "mlx5_0/ports/1/gids/2", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
    put(IB "mlx5_0/ports/1/gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
    put(IB "mlx5_0/ports/1/gid_attrs/types/2", "IB/RoCE v1\n");
    put(IB "mlx5_0/ports/1/gid_attrs/types/3", "RoCE v2\n");
    put("class/net/eth0/speed", "25000\n");
    put("class/net/eth1/speed", "-1\n"); /* no link */
    put("class/net/eth0/address", "02:00:00:00:00:01\n");
    put("class/net/ib1/address", "80:00:02:09:fe:80:00:00:00:00:00:00:00:02:c9:03:00:10:00:02\n");
    put("class/net/ib2/address", "80:00:02:09:fe:80:00:00:00:00:00:00:00:02:c9:03:00:10:00:0x\n");
    return 0;
}

static int drop(const char *path, const struct stat *found, int type, struct FTW *at)
{
    (void)found;
    (void)type;
    (void)at;
    return remove(path);
}

static int clear(void **state)
{
    (void)state;
    return nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS);
}

static int add(wefti_topo *topo, int host, const char *name, int port)
{
    const int index = wefti_topo_add(topo, WEFTI_TOPO_NIC, host, name);
    assert_true(index > 0);
    topo->objects[index].port = port;
    return index;
}

static void assert_gid(const wefti_topo *topo, int at, int nic, int index, wefti_topo_gid_type type,
                       const char *address)
{
    char text[INET6_ADDRSTRLEN];
    assert_true(at < topo->gid_count);
    assert_int_equal(topo->gids[at].nic, nic);
    assert_int_equal(topo->gids[at].index, index);
    assert_int_equal(topo->gids[at].type, type);
    assert_string_equal(inet_ntop(AF_INET6, topo->gids[at].address, text, sizeof text), address);
}

static void reads_ports(void **state)
{
    wefti_topo topo;
    (void)state;
    wefti_topo_init(&topo);
    const int host = wefti_topo_add(&topo, WEFTI_TOPO_HOST, -1, "h");
    const int other = wefti_topo_add(&topo, WEFTI_TOPO_HOST, -1, "other");
    const int ib1 = add(&topo, host, "mlx4_0", 1);
    const int ib2 = add(&topo, host, "mlx4_0", 2);
    const int roce = add(&topo, host, "mlx5_0", 1);
    const int eth0 = add(&topo, host, "eth0", 1);
    const int eth1 = add(&topo, host, "eth1", 1);
    const int nothing = add(&topo, host, "eth2", 1);
    const int elsewhere = add(&topo, other, "mlx5_0", 1);
    assert_int_equal(wefti_topo_add_sysfs(&topo, host, root), WEFT_OK);
    assert_int_equal(topo.objects[ib1].speed_gbits, 56);
    assert_int_equal(topo.objects[ib2].speed_gbits, 0);
    assert_int_equal(topo.objects[roce].speed_gbits, 100);
    assert_int_equal(topo.objects[eth0].speed_gbits, 25);
    assert_int_equal(topo.objects[eth1].speed_gbits, 0);
    assert_int_equal(topo.objects[nothing].speed_gbits, 0);
    assert_int_equal(topo.objects[elsewhere].speed_gbits, 0);
    assert_int_equal(topo.gid_count, 5);
    assert_gid(&topo, 0, ib1, 0, WEFTI_TOPO_GID_IB, "fe80::2:c903:10:1");
    assert_gid(&topo, 1, ib2, 0, WEFTI_TOPO_GID_IB, "fe80::2:c903:10:2");
    assert_gid(&topo, 2, ib2, 2, WEFTI_TOPO_GID_IB, "fe80::2:c903:10:3");
    assert_gid(&topo, 3, roce, 2, WEFTI_TOPO_GID_ROCE_V1, "::ffff:10.0.0.1");
    assert_gid(&topo, 4, roce, 3, WEFTI_TOPO_GID_ROCE_V2, "::ffff:10.0.0.1");
    wefti_topo_fini(&topo);
}

static void reads_gids_of_interfaces(void **state)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char gid[16];
    (void)state;
    assert_int_equal(wefti_topo_gid_of_interface(root, "ib1", gid), 1);
    assert_string_equal(inet_ntop(AF_INET6, gid, text, sizeof text), "fe80::2:c903:10:2");
    assert_int_equal(wefti_topo_gid_of_interface(root, "ib2", gid), 0);
    assert_int_equal(wefti_topo_gid_of_interface(root, "eth0", gid), 0);
    assert_int_equal(wefti_topo_gid_of_interface(root, "nothing", gid), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads_ports), cmocka_unit_test(reads_gids_of_interfaces)};
    return cmocka_run_group_tests_name("sysfs", tests, fill, clear);
}
