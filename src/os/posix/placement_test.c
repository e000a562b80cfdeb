/* Goal: a PE's memory is bound to the NUMA node on which it runs before any of its pages is there, huge pages are asked
 * for where the system gives them on request, and what came of it is told. Method: the calls by which memory is placed
 * are recorded, and stand in for a machine with two NUMA nodes, since this one may have one. */
#include "os/posix/placement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/os.h"

#define MIB ((size_t)1 << 20)

static struct machine {
    const char *online;
    const char *lists[2];
    const char *huge;
    int has_policy;
    int refuses;
    int own; /* the processor to which the test is bound */
    /* what was asked for */
    unsigned char *bound;
    size_t bound_bytes;
    int bound_numa;
    int resident; /* pages of it that were there by then */
    int preferred;
    size_t advised[2]; /* bytes: of huge pages; populated */
} here;

static ssize_t fake_read(const char *path, char *text, size_t bytes)
{
    const char *found = strstr(path, "/node/online") != NULL              ? here.online
                        : strstr(path, "/node0/cpulist") != NULL          ? here.lists[0]
                        : strstr(path, "/node1/cpulist") != NULL          ? here.lists[1]
                        : strstr(path, "/shmem_enabled") != NULL          ? here.huge
                        : strstr(path, "/0000:1b:00.0/numa_node") != NULL ? "1\n"
                                                                          : NULL;
    return found == NULL ? -1 : snprintf(text, bytes, "%s", found);
}

static int fake_bind(void *address, size_t bytes, int numa)
{
    const size_t pages = bytes / (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *there = calloc(pages, 1);
    assert_int_equal(mincore(address, bytes, there), 0);
    for (size_t i = 0; i < pages; i++) {
        here.resident += there[i] & 1;
    }
    free(there);
    here.bound = address;
    here.bound_bytes = bytes;
    here.bound_numa = numa;
    return here.refuses ? -1 : 0;
}

static int fake_prefer(int numa)
{
    here.preferred = numa;
    return 0;
}

static int fake_policy(void)
{
    return here.has_policy;
}

static int fake_advise(void *address, size_t bytes, int advice)
{
    assert_int_equal((uintptr_t)address % (2 * MIB), 0);
    here.advised[advice != MADV_HUGEPAGE] += bytes;
    return 0;
}

static const wefti_os_placement_calls recording = {fake_read, fake_bind, fake_prefer, fake_policy, fake_advise};

static int set_up(void **state)
{
    static char list[2][32];
    cpu_set_t mine;
    (void)state;
    memset(&here, 0, sizeof here);
    here.own = sched_getcpu();
    CPU_ZERO(&mine);
    CPU_SET(here.own, &mine);
    assert_int_equal(sched_setaffinity(0, sizeof mine, &mine), 0);
    (void)snprintf(list[0], sizeof list[0], "%d-%d,900\n", here.own + 1, here.own + 7);
    (void)snprintf(list[1], sizeof list[1], "%d\n", here.own);
    here.lists[0] = list[0];
    here.lists[1] = list[1];
    here.online = "0-1\n";
    here.huge = "always within_size advise [never] deny force\n";
    here.bound_numa = here.preferred = -9;
    wefti_os_placement = &recording;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wefti_os_placement = &wefti_os_placement_system;
    return 0;
}

/* Place the part from 1 MiB to 8 MiB, and reserve it. */
static const char *place(char text[WEFTI_OS_PLACEMENT_BYTES])
{
    wefti_os_memory memory = {.descriptor = -1};
    assert_int_equal(wefti_os_memory_create(&memory, 16 * MIB), WEFT_OK);
    const wefti_os_placement_made made = wefti_os_memory_place(&memory, MIB, 7 * MIB);
    if (here.bound != NULL) {
        assert_ptr_equal(here.bound, memory.base + MIB);
    }
    assert_int_equal(wefti_os_memory_reserve(&memory, MIB, 7 * MIB), WEFT_OK);
    wefti_os_memory_fini(&memory);
    return wefti_os_placement_text(&made, text);
}

static void binds_to_the_node_of_the_thread(void **state)
{
    char text[WEFTI_OS_PLACEMENT_BYTES];
    (void)state;
    assert_int_equal(wefti_os_numa_here(), 1);
    assert_string_equal(place(text), "memory on NUMA node 1, no huge pages (the system gives none to shared memory)");
    assert_int_equal(here.bound_bytes, 7 * MIB);
    assert_int_equal(here.bound_numa, 1);
    assert_int_equal(here.resident, 0);
    assert_int_equal(here.advised[0] + here.advised[1], 0);
}

static void leaves_alone_what_has_no_one_node(void **state)
{
    char text[WEFTI_OS_PLACEMENT_BYTES];
    (void)state;
    here.lists[0] = here.lists[1];
    assert_int_equal(wefti_os_numa_here(), -1);
    assert_non_null(strstr(place(text), "memory on any NUMA node (the PE may run on several), "));
    here.has_policy = 1;
    assert_non_null(strstr(place(text), "memory on the NUMA nodes of the process's memory policy, "));
    assert_false(wefti_os_numa_prefer(1));
    here.online = "0\n";
    assert_non_null(strstr(place(text), "memory on the only NUMA node, "));
    here.online = NULL;
    assert_int_equal(wefti_os_numa_here(), -1);
    assert_non_null(strstr(place(text), "memory on the only NUMA node, "));
    assert_null(here.bound);
    assert_int_equal(here.preferred, -9);
}

static void says_what_is_refused(void **state)
{
    char text[WEFTI_OS_PLACEMENT_BYTES];
    (void)state;
    here.refuses = 1;
    assert_non_null(strstr(place(text), "memory on any NUMA node (the system refused to bind it), "));
}

/* Of a part that begins and ends inside of huge pages the whole ones, from 2 MiB to 8 MiB; which are had
 * before the rest is reserved. */
static void advises_huge_pages_on_request(void **state)
{
    char text[WEFTI_OS_PLACEMENT_BYTES];
    (void)state;
    here.huge = "always within_size [advise] never deny force\n";
    assert_non_null(strstr(place(text), ", huge pages, as advised"));
    assert_int_equal(here.advised[0], 6 * MIB);
    assert_int_equal(here.advised[1], 6 * MIB);
    here.advised[0] = here.advised[1] = 0;
    here.huge = "[always] within_size advise never deny force\n";
    assert_non_null(strstr(place(text), ", huge pages as the system gives them"));
    assert_int_equal(here.advised[0] + here.advised[1], 0);
    here.huge = NULL;
    assert_non_null(strstr(place(text), ", no huge pages"));
}

static void knows_the_node_of_a_gpu(void **state)
{
    (void)state;
    assert_int_equal(wefti_os_numa_of_pci("0000:1b:00.0"), 1);
    assert_int_equal(wefti_os_numa_of_pci("0000:1B:00.0"), 1); /* as CUDA writes it */
    assert_int_equal(wefti_os_numa_of_pci("0000:1c:00.0"), -1);
    assert_true(wefti_os_numa_prefer(1));
    assert_int_equal(here.preferred, 1);
}

/* What the system says and does here, whatever it is. */
static void goes_well_on_this_machine(void **state)
{
    char text[WEFTI_OS_PLACEMENT_BYTES];
    (void)state;
    wefti_os_placement = &wefti_os_placement_system;
    assert_non_null(strstr(place(text), "memory on "));
    const int numa = wefti_os_numa_here();
    assert_true(numa >= 0); /* the test is bound to one processor */
    if (wefti_os_numa_prefer(numa)) {
        assert_true(wefti_os_placement->has_policy());
        assert_true(wefti_os_numa_prefer(-1));
        assert_false(wefti_os_placement->has_policy());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(binds_to_the_node_of_the_thread, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leaves_alone_what_has_no_one_node, set_up, tear_down),
        cmocka_unit_test_setup_teardown(says_what_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(advises_huge_pages_on_request, set_up, tear_down),
        cmocka_unit_test_setup_teardown(knows_the_node_of_a_gpu, set_up, tear_down),
        cmocka_unit_test_setup_teardown(goes_well_on_this_machine, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}
