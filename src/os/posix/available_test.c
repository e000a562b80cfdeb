/* Goal: the memory available is bounded by the tightest control group around the process, and known on this machine.
 * Method: trees of groups described by files in a temporary folder; torture. */
#include "os/posix/available.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os.h"
#include "support/torture.h"

static int make_root(void **state)
{
    char *root = strdup("/tmp/weft-groups-XXXXXX");
    *state = root;
    return mkdtemp(root) == NULL;
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about;
    (void)kind;
    (void)where;
    return remove(path);
}

static int remove_root(void **state)
{
    int result = nftw(*state, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(*state);
    return result;
}

static void write_file(const char *root, const char *path, const char *text)
{
    char name[512];
    snprintf(name, sizeof name, "%s/%s", root, path);
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    fclose(file);
}

static void make_group(const char *root, const char *path)
{
    char name[512];
    snprintf(name, sizeof name, "%s/%s", root, path);
    assert_int_equal(mkdir(name, 0700), 0);
}

static uint64_t v2(const char *root, const char *path)
{
    uint64_t mark;
    return wefti_os_group_available_bytes(&wefti_os_group_v2, root, path, &mark);
}

static void test_the_tightest_group_counts(void **state)
{
    const char *root = *state;
    assert_true(v2(root, "/a/b") == UINT64_MAX);
    make_group(root, "a");
    make_group(root, "a/b");
    write_file(root, "a/memory.max", "1000000\n");
    write_file(root, "a/memory.current", "600000\n");
    assert_int_equal(v2(root, "/a/b"), 400000);
    write_file(root, "a/memory.stat", "anon 1\nfile 900\ninactive_file 1000\nactive_file 50\n");
    assert_int_equal(v2(root, "/a/b"), 401050);
    write_file(root, "a/b/memory.max", "max\n");
    write_file(root, "a/b/memory.current", "500000\n");
    assert_int_equal(v2(root, "/a/b"), 401050);
    write_file(root, "a/b/memory.max", "500010\n");
    assert_int_equal(v2(root, "/a/b"), 10);
    write_file(root, "a/b/memory.max", "400000\n");
    assert_int_equal(v2(root, "/a/b"), 0);
    assert_int_equal(v2(root, "/a"), 401050);
    assert_true(v2(root, "/") == UINT64_MAX);
}

static void test_version_1(void **state)
{
    const char *root = *state;
    uint64_t mark = 77;
    make_group(root, "a");
    make_group(root, "a/b");
    make_group(root, "a/c");
    write_file(root, "a/b/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    write_file(root, "a/b/memory.usage_in_bytes", "5\n");
    assert_true(wefti_os_group_available_bytes(&wefti_os_group_v1, root, "/a/b", &mark) == UINT64_MAX);
    assert_int_equal(mark, 77);
    write_file(root, "a/memory.limit_in_bytes", "1000000\n");
    write_file(root, "a/memory.usage_in_bytes", "600000\n");
    write_file(root, "a/memory.stat", "inactive_file 7\ntotal_inactive_file 1000\ntotal_active_file 50\n");
    assert_int_equal(wefti_os_group_available_bytes(&wefti_os_group_v1, root, "/a/b", &mark), 401050);
    uint64_t other = 78;
    assert_int_equal(wefti_os_group_available_bytes(&wefti_os_group_v1, root, "/a/c", &other), 401050);
    assert_int_equal(mark, other); /* the group above limits both */
    write_file(root, "a/c/memory.limit_in_bytes", "10\n");
    write_file(root, "a/c/memory.usage_in_bytes", "4\n");
    assert_int_equal(wefti_os_group_available_bytes(&wefti_os_group_v1, root, "/a/c", &other), 6);
    assert_int_not_equal(mark, other);
    /* In a container the path is the host's, and the root is the container's group. */
    write_file(root, "memory.limit_in_bytes", "300\n");
    write_file(root, "memory.usage_in_bytes", "100\n");
    assert_int_equal(wefti_os_group_available_bytes(&wefti_os_group_v1, root, "/docker/0123", &other), 200);
}

static void test_paths(void **state)
{
    (void)state;
    char text[] = "12:cpu,cpuacct:/x\n4:memory:/jobs/7\n0::/user.slice/a b\n";
    assert_null(wefti_os_group_path(text, ":pids:"));
    assert_string_equal(wefti_os_group_path(text, "::"), "/user.slice/a b");
    assert_string_equal(wefti_os_group_path(text, ":memory:"), "/jobs/7");
    char none[] = "";
    assert_null(wefti_os_group_path(none, "::"));
}

static void test_this_machine(void **state)
{
    (void)state;
    uint64_t available = wefti_os_memory_available_bytes();
    assert_true(available > UINT64_C(1) << 20);
    assert_true(available != UINT64_MAX);
}

static weft_status read_available(void *context)
{
    (void)context;
    return wefti_os_memory_available_bytes() > 0 ? WEFT_OK : WEFT_ERR_SYSTEM;
}

static void test_failing_calls(void **state)
{
    (void)state;
    (void)torture(read_available, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_tightest_group_counts, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_version_1, make_root, remove_root),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_failing_calls),
    };
    return cmocka_run_group_tests_name("available", tests, NULL, NULL);
}
