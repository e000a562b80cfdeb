/* Goal: a world's memory is bound to the NUMA node of the PE before any page of it is there, and the transport map
 * tells. Method: the calls by which memory is placed are recorded and stand in for a machine with two nodes. */
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

#include "os/posix/placement.h"
#include "support/check.h"
#include "weft.h"

#define BYTES ((size_t)4 << 20)

static unsigned char *bound;
static size_t bound_bytes;
static int binds;
static int resident;

static ssize_t read_text(const char *path, char *text, size_t bytes)
{
    const int own = sched_getcpu();
    if (strstr(path, "/node/online") != NULL) {
        return snprintf(text, bytes, "0-1\n");
    }
    if (strstr(path, "/cpulist") != NULL) {
        return snprintf(text, bytes, "%d\n", strstr(path, "/node0/") != NULL ? own : own + 1000);
    }
    return -1;
}

static int bind_part(void *address, size_t bytes, int numa)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char there[BYTES / 4096];
    CHECK(numa == 0 && bytes >= BYTES);
    CHECK(mincore(address, BYTES, there) == 0);
    for (size_t i = 0; i < BYTES / page; i++) {
        resident += there[i] & 1;
    }
    bound = address;
    bound_bytes = bytes;
    binds++;
    return 0;
}

static int prefer(int numa)
{
    (void)numa;
    return 0;
}

static int has_policy(void)
{
    return 0;
}

static int advise(void *address, size_t bytes, int advice)
{
    (void)address, (void)bytes, (void)advice;
    return 0;
}

static void test_bound_before_it_is_reserved(void **state)
{
    static const wefti_os_placement_calls recording = {read_text, bind_part, prefer, has_policy, advise};
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world = NULL;
    void *block = NULL;
    char map[1024];
    cpu_set_t mine;
    (void)state;
    CPU_ZERO(&mine);
    CPU_SET(sched_getcpu(), &mine);
    CHECK(sched_setaffinity(0, sizeof mine, &mine) == 0);
    wefti_os_placement = &recording;
    config.bootstrap = WEFT_BOOTSTRAP_SELF;
    config.heap_max_bytes = 2 * BYTES;
    CHECK_OK(weft_world_create(&config, &world));
    CHECK(binds == 1 && resident == 0);
    CHECK_OK(weft_malloc(world, BYTES, &block));
    CHECK((unsigned char *)block >= bound && (unsigned char *)block + BYTES <= bound + bound_bytes);
    CHECK(weft_world_transport_map(world, map, sizeof map) < sizeof map);
    CHECK(strstr(map, "self  PE 0: memory on NUMA node 0, no huge pages") != NULL);
    CHECK_OK(weft_world_destroy(world));
    wefti_os_placement = &wefti_os_placement_system;
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(test_bound_before_it_is_reserved)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
