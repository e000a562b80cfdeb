/* Goal: machines are read from XML of hwloc, and whatever is wrong in a file is told with its line and column; no file
 * does harm. Method: versions 1 and 2 of the format in little, tables of mistakes, and a whole file, cut short at each
 * byte and with each byte changed in turn. */
#include "topo/hwloc_xml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MACHINE "<topology version=\"2.0\"><object type=\"Machine\">"
#define END "</object></topology>"
#define ROOT "<object type=\"Bridge\" bridge_type=\"0-1\">"
#define NIC "<object type=\"PCIDev\" pci_busid=\"0000:14:00.0\" pci_type=\"0207 [15b3:1021] [15b3:0041] 00\">"

static weft_status read_text(wefti_topo *topo, const char *text, size_t bytes)
{
    wefti_topo_init(topo);
    const int host = wefti_topo_add(topo, WEFTI_TOPO_HOST, -1, "h");
    assert_int_equal(host, 0);
    return wefti_topo_add_hwloc_xml(topo, host, "t", text, bytes);
}

static void reads_version_2(void **state)
{
    static const char text[] =
        "<?xml version='1.0'?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<!-- > -->\n" MACHINE
        "<info name=\"a&lt;&#65;&#x42;&quot;\" value=''/><object type='Package' os_index='7'>text &amp; more"
        "<object type='MemCache'><object type='NUMANode' os_index='3'/></object><object type='L3Cache'/>" ROOT NIC
        "<object type='OSDev' name='mlx5_0' osdev_type='3'><info name='Port1State' value='4'/>"
        "<info name='Port2State' value='1'/><info name='Port2LID' value='x'/></object>"
        "<object type='OSDev' name='ib0' osdev_type='2'/></object>"
        "<object type='PCIDev' pci_busid='0001:15:00.0' pci_type='0302 [10de:2330]'/></object></object>" END;
    wefti_topo topo;
    (void)state;
    assert_int_equal(read_text(&topo, text, sizeof text - 1), WEFT_OK);
    assert_int_equal(topo.count, 7);
    assert_string_equal(topo.objects[1].name, "package7");
    assert_string_equal(topo.objects[2].name, "numa3");
    assert_int_equal(topo.objects[3].kind, WEFTI_TOPO_ROOT);
    assert_int_equal(topo.objects[3].parent, 2);
    assert_string_equal(topo.objects[4].name, "mlx5_0");
    assert_int_equal(topo.objects[4].is_down, 0);
    assert_int_equal(topo.objects[5].port, 2);
    assert_int_equal(topo.objects[5].is_down, 1);
    assert_int_equal(topo.objects[6].kind, WEFTI_TOPO_GPU);
    assert_int_equal(topo.objects[6].pci, 0x11500 << 0);
    wefti_topo_fini(&topo);
}

/* Nodes are around packages there, and have no version. */
static void reads_version_1(void **state)
{
    static const char text[] =
        "<topology><object type='Machine'><object type='NUMANode' os_index='0'><object type='Socket' os_index='0'>"
        "<object type='Core'/></object>" ROOT NIC "<object type='OSDev' name='eth0' osdev_type='2'/></object></object>"
        "</object><object type='NUMANode' os_index='1'/>" END;
    wefti_topo topo;
    (void)state;
    assert_int_equal(read_text(&topo, text, sizeof text - 1), WEFT_OK);
    assert_int_equal(topo.count, 5);
    assert_string_equal(topo.objects[1].name, "numa0");
    assert_int_equal(topo.objects[2].parent, 1);
    assert_string_equal(topo.objects[3].name, "eth0");
    assert_string_equal(topo.objects[4].name, "numa1");
    wefti_topo_fini(&topo);
}

static void points_at_mistakes(void **state)
{
    static const struct {
        const char *text;
        const char *told;
    } cases[] = {
        {"", "t:1:1: expected an element"},
        {"\n x", "t:2:2: text outside of the root element"},
        {"<a>\n <b>", "t:2:3: this element has no end, </b>"},
        {"<a>\n </b>", "t:2:4: expected the end of a"},
        {"</a>", "t:1:1: no element has begun"},
        {"<a/>\n<b/>", "t:2:1: a second root element"},
        {"<a/>\nb", "t:2:1: text outside"},
        {"<", "t:1:2: expected the name of an element"},
        {"<a", "t:1:1: this element has no end, > or />"},
        {"<a b>", "t:1:5: expected = and a value of b"},
        {"<a b=c>", "t:1:6: expected a value in quotes"},
        {"<a b='c>", "t:1:6: this value has no end"},
        {"<a b='<'>", "t:1:7: < inside of a value"},
        {"<a b=''c=''>", "t:1:8: expected a blank, > or />"},
        {"<a b='' b=''>", "t:1:9: b is given already"},
        {"<a b='&x;'>", "t:1:7: & begins no entity"},
        {"<a b='&#;'>", "t:1:7: & begins no entity"},
        {"<a b='&#xffffffffff;'>", "t:1:7: & begins no entity"},
        {"<a>&", "t:1:4: & begins no entity"},
        {"<a>\001", "t:1:4: a control character, 1"},
        {"<a b='\002'/>", "t:1:7: a control character, 2"},
        {"<!-->", "t:1:1: this comment has no end"},
        {"<?xml", "t:1:1: this declaration has no end"},
        {"<!DOCTYPE a", "t:1:1: this DOCTYPE has no end"},
        {"<!DOCTYPE a [<!ENTITY b 'c'>]><a/>", "t:1:13: a DTD inside"},
        {"<a/><!DOCTYPE a>", "t:1:5: a DOCTYPE behind"},
        {"<a></a b>", "t:1:8: expected >"},
        {"<machine/>", "t:1:2: expected topology"},
        {"<topology version='3.0'/>", "t:1:20: version is no version of hwloc's XML"},
        {"<topology/>", "t:1:2: expected one object"},
        {"<topology><object type='a'/>\n<object type='b'/></topology>", "t:2:2: expected one object"},
        {"<topology><object/></topology>", "t:1:12: expected an attribute type"},
        {MACHINE "\n<object type='Package'/>" END, "t:2:2: expected an attribute os_index"},
        {MACHINE "\n<object type='Package' os_index='1x'/>" END, "t:2:34: os_index is no number"},
        {MACHINE "\n<object type='NUMANode' os_index='-1'/>" END, "t:2:35: os_index is no number"},
        {MACHINE "\n<object type='NUMANode' os_index='99999999999'/>" END, "t:2:35: os_index is no number"},
        {MACHINE "\n<object type='Bridge' bridge_type='1-2'/>" END, "t:2:36: bridge_type is no 0-1 or 1-1"},
        {MACHINE ROOT "\n<object type='PCIDev' pci_busid='14:00.0'/></object>" END, "t:2:34: pci_busid is no PCI"},
        {MACHINE ROOT "\n<object type='PCIDev' pci_busid='0000:14:00.0'/></object>" END,
         "t:2:2: expected an attribute pci_type"},
        {MACHINE ROOT "\n<object type='PCIDev' pci_busid='0000:14:00.0' pci_type='0302'/></object>" END,
         "t:2:58: pci_type is no class"},
        {MACHINE ROOT NIC "\n<object type='OSDev' name='a'/></object></object>" END,
         "t:2:2: expected an attribute osdev_type"},
        {MACHINE ROOT NIC "\n<object type='OSDev' name='a:b' osdev_type='3'/></object></object>" END,
         "t:2:28: name is no name of 1 to 47 bytes"},
        {MACHINE ROOT NIC "\n<object type='OSDev' osdev_type='2'/></object></object>" END,
         "t:2:2: expected an attribute name"},
        {MACHINE ROOT NIC "<object type='OSDev' name='a' osdev_type='3'>\n<info name='Port1State' value='up'/></object>"
                          "</object></object>" END,
         "t:2:32: value is no number"},
        {MACHINE ROOT NIC
         "<object type='OSDev' name='a' osdev_type='3'>\n<info name='Port999State' value='4'/></object>"
         "</object></object>" END,
         "t:2:13: name is no port of 1 .. 255"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wefti_topo topo;
        assert_int_equal(read_text(&topo, cases[i].text, strlen(cases[i].text)), WEFT_ERR_ARGUMENT);
        if (strstr(weft_last_error(), cases[i].told) == NULL) {
            fail_msg("%zu: \"%s\" does not say \"%s\"", i, weft_last_error(), cases[i].told);
        }
        wefti_topo_fini(&topo);
    }
}

static void bounds_depth(void **state)
{
    char text[4096] = "";
    wefti_topo topo;
    (void)state;
    for (int i = 0; i < 200; i++) {
        (void)strcat(text, "<a>");
    }
    assert_int_equal(read_text(&topo, text, strlen(text)), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(), "t:1:193: elements are more than 64 deep"));
    wefti_topo_fini(&topo);
}

static void bounds_elements(void **state)
{
    enum { BYTES = 5 << 20 };
    char *text = malloc(BYTES);
    wefti_topo topo;
    (void)state;
    assert_non_null(text);
    memcpy(text, "<a>\n", 4);
    for (int i = 4; i < BYTES; i += 4) {
        memcpy(text + i, "<b/>", 4);
    }
    assert_int_equal(read_text(&topo, text, BYTES), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(), "t:2:4194301: more than 1048576 elements"));
    wefti_topo_fini(&topo);
    free(text);
}

/* A text of its own, so that reading beyond it shows. Returns 1 if it is refused, then with a place in it. */
static int is_refused(const char *text, size_t bytes)
{
    wefti_topo topo;
    int line = 0;
    int column = 0;
    char *copy = malloc(bytes > 0 ? bytes : 1);
    assert_non_null(copy);
    memcpy(copy, text, bytes);
    const weft_status status = read_text(&topo, copy, bytes);
    free(copy);
    wefti_topo_fini(&topo);
    if (status == WEFT_OK) {
        return 0;
    }
    assert_int_equal(status, WEFT_ERR_ARGUMENT);
    if (sscanf(weft_last_error(), "t:%d:%d: ", &line, &column) != 2 || line < 1 || column < 1) {
        fail_msg("\"%s\" names no place", weft_last_error());
    }
    return 1;
}

static void survives_changed_bytes(void **state)
{
    static char text[16384];
    static const char bytes[] = {'\0', '<', '"', 'x', '9', '&'};
    int refused = 0;
    (void)state;
    FILE *from = fopen(WEFT_SOURCE_DIR "/tests/topo/machines/switches.xml", "re");
    assert_non_null(from);
    const size_t length = fread(text, 1, sizeof text, from);
    assert_int_equal(fclose(from), 0);
    assert_in_range(length, 1000, sizeof text - 1);
    assert_int_equal(is_refused(text, length), 0);
    for (size_t i = 0; i + 1 < length; i++) { /* the last byte is the end of a line */
        const char kept = text[i];
        assert_int_equal(is_refused(text, i), 1);
        text[i] = bytes[i % sizeof bytes];
        refused += is_refused(text, length);
        text[i] = kept;
    }
    assert_true(refused > (int)length / 3);
}

int main(void)
{
    (void)setenv("WEFT_LOG", "none", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_version_2), cmocka_unit_test(reads_version_1), cmocka_unit_test(points_at_mistakes),
        cmocka_unit_test(bounds_depth),    cmocka_unit_test(bounds_elements), cmocka_unit_test(survives_changed_bytes),
    };
    return cmocka_run_group_tests_name("hwloc_xml", tests, NULL, NULL);
}
