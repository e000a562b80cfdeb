/* Goal: descriptions of machines are read as docs/topology.md says, and what is wrong is told with its line and column.
 * Method: the machines of tests/topo/machines, tables of mistakes, and every byte of one description changed in
 * turn. */
#include "topo/description.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define HEAD "weft-topology 1\nhost h\n"
#define PORT HEAD "root r\nnic a parent=r\n"

static const char good[] =
    "weft-topology 1 # a comment\nmachine of two: more words than there is room for others in "
    "any other line of such a file 1 2 3 4 5 6 7 8\nsource nowhere\r\n\nhost h[3-4]\n package p\n"
    "numa n parent=p\nroot r parent=n\nswitch s parent=r\n"
    "gpu 0000:01:00.0 parent=s uuid=GPU-1 cluster=00112233-4455-6677-8899-aabbccddeeff clique=7\n"
    "gpu 10000:02:1f.7 parent=r mig=yes fabric=failed\nnic n0 parent=s pci=0000:03:00.1 port=2 "
    "speed=400 state=down\nnvlink 0000:01:00.0 10000:02:1f.7 4\n"
    "unreachable 0000:01:00.0 10000:02:1f.7";

static void reads_a_description(void **state)
{
    (void)state;
    wefti_topo topo;
    char pci[WEFTI_TOPO_PCI_BYTES];
    assert_int_equal(wefti_topo_parse(&topo, "good", good, sizeof good - 1), WEFT_OK);
    assert_int_equal(topo.count, 16);
    assert_int_equal(topo.link_count, 6);
    for (int host = 0; host < 16; host += 8) {
        const wefti_topo_object *all = &topo.objects[host];
        assert_string_equal(all[0].name, host == 0 ? "h3" : "h4");
        assert_int_equal(all[3].kind, WEFTI_TOPO_ROOT);
        assert_int_equal(all[3].parent, host + 2);
        assert_int_equal(all[5].host, host);
        assert_string_equal(all[5].name, "GPU-1");
        assert_int_equal(all[5].fabric.cluster[15], 0xff);
        assert_int_equal(all[5].fabric.clique, 7);
        assert_int_equal(all[5].fabric.state, WEFTI_TOPO_FABRIC_COMPLETED);
        assert_int_equal(all[6].is_mig, 1);
        assert_int_equal(all[6].fabric.has_failed, 1);
        assert_string_equal(wefti_topo_pci_text(all[6].pci, pci), "10000:02:1f.7");
        assert_int_equal(all[7].port, 2);
        assert_int_equal(all[7].speed_gbits, 400);
        assert_int_equal(all[7].is_down, 1);
        assert_int_equal(topo.links[host == 0 ? 2 : 5].links, 0);
        assert_int_equal(topo.links[host == 0 ? 2 : 5].from, host + 5);
    }
    wefti_topo_fini(&topo);
}

static void points_at_mistakes(void **state)
{
    static const struct {
        const char *text;
        const char *told;
    } cases[] = {
        {"", "t:0:1: expected as the first line"},
        {"weft-topology 2\n", "t:1:15: expected as the first line"},
        {"host h\n", "t:1:1: expected as the first line"},
        {"weft-topology 1\n", "and a host"},
        {"weft-topology 1\n  package p\n", "t:2:3: \"package\" before the first host"},
        {"weft-topology 1\nhost\n", "t:2:5: expected: host NAME"},
        {"weft-topology 1\nhost a b\n", "t:2:8: expected: host NAME"},
        {"weft-topology 1\nhost h[2-1]\n", "t:2:7: the range begins at 2 and ends at 1"},
        {"weft-topology 1\nhost h[1-\n", "t:2:7: expected: [LOW-HIGH]"},
        {"weft-topology 1\nhost h[x-2]\n", "t:2:8: \"x\" is no number"},
        {"weft-topology 1\nhost h[0-99999]\n", "t:2:10: \"99999\" is no number of 0 .. 4096"},
        {HEAD "switches s\n", "t:3:1: \"switches\" is none of"},
        {HEAD "switch s\n", "t:3:8: a switch needs parent"},
        {HEAD "switch s parent=q\n", "t:3:17: nothing of this host"},
        {HEAD "numa n\nswitch s parent=n\n", "t:4:17: a switch cannot be below the numa \"n\""},
        {HEAD "numa n\nnuma n\n", "t:4:6: this host has \"n\" already"},
        {HEAD "numa n parents=p\n", "t:3:8: \"parents=p\" is not known here"},
        {HEAD "root r\ngpu 1:2 parent=r\n", "t:4:5: \"1:2\" is no PCI address"},
        {HEAD "root r\ngpu 0000:01:00.8 parent=r\n", "t:4:5: \"0000:01:00.8\" is no PCI address"},
        {HEAD "root r\ngpu 0000:01:00.0\n", "t:4:1: a gpu needs parent"},
        {HEAD "root r\ngpu 0000:01:00.0 parent=r cluster=12\n", "t:4:37: a cluster is a UUID"},
        {HEAD "root r\ngpu 0000:01:00.0 parent=r cluster=0x\n", "t:4:36: a cluster is a UUID"},
        {HEAD "root r\ngpu 0000:01:00.0 parent=r fabric=done\n", "t:4:34: \"done\" is none of completed"},
        {HEAD "root r\ngpu 0000:01:00.0 parent=r trial=no\n", "t:4:33: \"no\" is neither ok nor failed"},
        {HEAD "root r\ngpu 0000:01:00.0 parent=r\ngpu 0000:01:00.0 parent=r\n", "t:5:18: its parent is known already"},
        {HEAD "root r\nnic a:b parent=r\n", "t:4:5: a name has at most"},
        {HEAD "root r\nnic a parent=r port=256\n", "t:4:21: \"256\" is no number of 0 .. 255"},
        {HEAD "root r\nnic a parent=r speed=-1\n", "t:4:22: \"-1\" is no number"},
        {HEAD "root r\nnic a parent=r state=ok\n", "t:4:22: \"ok\" is neither up nor down"},
        {HEAD "nvlink 0000:01:00.0 0000:02:00.0 1\n", "t:3:8: \"0000:01:00.0\" is the PCI address of no GPU"},
        {HEAD "nvlink all\n", "t:3:11: expected: nvlink"},
        {HEAD "nvlink all many\n", "t:3:12: \"many\" is no number"},
        {HEAD "numa n\nhwloc x.xml\n", "t:4:1: hwloc comes first"},
        {HEAD "gid a 0 fe80::1\n", "t:3:5: \"a\" is no port of this host"},
        {HEAD "gid a 0\n", "t:3:8: expected: gid NIC[:PORT] INDEX ADDRESS"},
        {PORT "gid a:2 0 fe80::1\n", "t:5:5: \"a:2\" is no port of this host"},
        {PORT "gid a:x 0 fe80::1\n", "t:5:7: \"x\" is no number"},
        {PORT "gid a x fe80::1\n", "t:5:7: \"x\" is no number"},
        {PORT "gid a 0 10.0.0.1\n", "t:5:9: \"10.0.0.1\" is no GID"},
        {PORT "gid a 0 ::\n", "t:5:9: \"::\" is no GID"},
        {PORT "gid a 0 fe80::1 type=roce\n", "t:5:22: \"roce\" is none of ib, roce-v1, roce-v2"},
        {PORT "gid a 0 fe80::1 kind=ib\n", "t:5:17: \"kind=ib\" is not known here"},
        {PORT "gid a 0 fe80::1\ngid a:1 0 fe80::2\n", "t:6:9: this port has a GID of the index 0 already"},
        {"weft-topology 1\nhost h[0-1]\nroot r\nnic a parent=r\ngid a 0 fe80::1\n", "t:5:1: a GID is of one port"},
        {HEAD "root r\nnic a parent=r port=0\n", "t:4:21: ports are counted from 1 on"},
        {HEAD "root r\nnic a parent=r speed=1 speed=2\n", "t:4:24: speed is given already"},
        {HEAD "root r\nroot q\nnic a parent=r parent=q\n", "t:5:16: parent is given already"},
        {HEAD "root r\ngpu 0000:01:00.0 parent=r clique=1\n", "t:4:27: clique=N needs cluster=UUID"},
        {HEAD "root r\ngpu 0000:01:00.0 parent=r cluster=00112233445566778899aabbccddeeff\n",
         "t:4:27: cluster=UUID needs clique=N"},
        {HEAD "root r\ngpu 0000:01:00.0 parent=r\nnvlink all 4\n", "t:5:8: this host has no two GPUs"},
        {HEAD "root r\ngpu 0000:01:00.0 parent=r\nnvlink 0000:01:00.0 0000:01:00.0 4\n", "t:5:21: the same GPU"},
        {HEAD "root r\ngpu 0000:01:00.0 parent=r\nunreachable 0000:01:00.0 0000:01:00.0\n", "t:5:26: the same"},
        {HEAD "nvlink 0000:01:00.0 0000:02:00.0 0\n", "t:3:34: no links"},
        {HEAD "root r\nhost h\n", "t:4:6: there is a host \"h\" already"},
        {"weft-topology 1\nhost h12\nhost h[0-20]\n", "t:3:6: there is a host \"h12\" already"},
        {"weft-topology 1\nhost h[0-4096]\nroot r0\nroot r1\nroot r2\nroot r3\nroot r4\nroot r5\nroot r6\n"
         "root r7\nroot r8\nroot r9\nroot ra\nroot rb\nroot rc\nroot rd\nroot re\n\n#\n",
         "t:2:6: these hosts have more than 65536 objects"},
        {HEAD "a b c d e f g h i j k l m n o p q\n", "t:3:33: more than 16 words"},
        {HEAD "numa \001\n", "t:3:6: a control character"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wefti_topo topo;
        assert_int_equal(wefti_topo_parse(&topo, "t", cases[i].text, strlen(cases[i].text)), WEFT_ERR_ARGUMENT);
        if (strstr(weft_last_error(), cases[i].told) == NULL) {
            fail_msg("%zu: \"%s\" does not say \"%s\"", i, weft_last_error(), cases[i].told);
        }
        assert_int_equal(topo.count, 0);
    }
}

/* What a GPU's other keys say of its fabric holds, whichever comes first. */
static void takes_keys_in_any_order(void **state)
{
    static const char text[] = HEAD "root r\n"
                                    "gpu 0000:01:00.0 parent=r handles=no trial=failed clique=1 "
                                    "cluster=00112233445566778899aabbccddeeff\n"
                                    "gpu 0000:02:00.0 parent=r fabric=completed clique=1 "
                                    "cluster=00112233445566778899aabbccddeeff\n"
                                    "gpu 0000:03:00.0 parent=r fabric=none clique=1 "
                                    "cluster=00112233445566778899aabbccddeeff\n";
    wefti_topo topo;
    (void)state;
    assert_int_equal(wefti_topo_parse(&topo, "t", text, sizeof text - 1), WEFT_OK);
    assert_int_equal(topo.count, 5);
    assert_int_equal(topo.objects[2].fabric.state, WEFTI_TOPO_FABRIC_COMPLETED);
    assert_int_equal(topo.objects[2].fabric.has_handles, 0);
    assert_int_equal(topo.objects[2].fabric.was_tried, 0);
    assert_int_equal(topo.objects[3].fabric.has_handles, 1);
    assert_int_equal(topo.objects[3].fabric.was_tried, 1);
    assert_int_equal(topo.objects[4].fabric.state, WEFTI_TOPO_FABRIC_NONE);
    wefti_topo_fini(&topo);
}

static void reads_gids(void **state)
{
    static const char text[] = PORT "nic a parent=r port=2\ngid a:2 3 ::ffff:10.0.0.2 type=roce-v2\ngid a 0 fe80::1\n";
    wefti_topo topo;
    (void)state;
    assert_int_equal(wefti_topo_parse(&topo, "t", text, sizeof text - 1), WEFT_OK);
    assert_int_equal(topo.gid_count, 2);
    assert_int_equal(topo.gids[0].nic, 3);
    assert_int_equal(topo.gids[0].index, 3);
    assert_int_equal(topo.gids[0].type, WEFTI_TOPO_GID_ROCE_V2);
    assert_int_equal(topo.gids[0].address[12], 10);
    assert_int_equal(topo.gids[1].nic, 2);
    assert_int_equal(topo.gids[1].type, WEFTI_TOPO_GID_IB);
    wefti_topo_fini(&topo);
}

static void survives_changed_bytes(void **state)
{
    (void)state;
    char text[sizeof good];
    int refused = 0;
    for (size_t i = 0; i < sizeof good - 1; i++) {
        static const char bytes[] = {'\0', ' ', '\n', '#', 'x', '9', '[', '=', '\177'};
        for (size_t j = 0; j < sizeof bytes; j++) {
            wefti_topo topo;
            memcpy(text, good, sizeof good);
            text[i] = bytes[j];
            const weft_status status = wefti_topo_parse(&topo, NULL, text, sizeof good - 1);
            assert_true(status == WEFT_OK || status == WEFT_ERR_ARGUMENT);
            refused += status != WEFT_OK;
            wefti_topo_fini(&topo);
        }
    }
    assert_true(refused > 1000);
}

static void refuses_files(void **state)
{
    static const char names_xml[] = HEAD "hwloc /nowhere.xml\n";
    wefti_topo topo;
    (void)state;
    assert_int_equal(wefti_topo_parse(&topo, "t", names_xml, sizeof names_xml - 1), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(), "\"/nowhere.xml\" cannot be opened"));
    assert_int_equal(wefti_topo_read(&topo, "/nowhere/at/all"), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(), "\"/nowhere/at/all\" cannot be opened"));
    assert_int_equal(wefti_topo_read(&topo, "/"), WEFT_ERR_ARGUMENT);
    char *large = calloc(1, WEFTI_TOPO_TEXT_MAX + 1);
    assert_non_null(large);
    assert_int_equal(wefti_topo_parse(&topo, "large", large, WEFTI_TOPO_TEXT_MAX + 1), WEFT_ERR_ARGUMENT);
    free(large);
}

int main(void)
{
    (void)setenv("WEFT_LOG", "none", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_description),     cmocka_unit_test(points_at_mistakes),
        cmocka_unit_test(takes_keys_in_any_order), cmocka_unit_test(survives_changed_bytes),
        cmocka_unit_test(refuses_files),           cmocka_unit_test(reads_gids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
