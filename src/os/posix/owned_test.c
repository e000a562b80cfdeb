/* Goal: memory of one process alone reads as zeros in a process that was forked from it, and in a fork of that, until
 * it is given away; it is zeroed and aligned when it is had. Method: forked children, which say by their status what
 * they read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "os/os.h"

#define BYTES 5000

static int has_only(const unsigned char *memory, unsigned char value)
{
    for (size_t i = 0; i < BYTES; i++) {
        if (memory[i] != value) {
            return 0;
        }
    }
    return 1;
}

static int status_of(pid_t child)
{
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* Whether a child, and a child of it, read this. */
static int children_have(const unsigned char *memory, unsigned char value)
{
    pid_t child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            _exit(!has_only(memory, value));
        }
        _exit(status_of(grandchild) != 0 || !has_only(memory, value));
    }
    return status_of(child) == 0;
}

/* An emulator may take the advice and not follow it. */
static int can_wipe(void)
{
    unsigned char *page = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    memset(page, 1, BYTES);
    int can = madvise(page, BYTES, MADV_WIPEONFORK) == 0 && children_have(page, 0);
    munmap(page, BYTES);
    return can;
}

static void test_a_fork_does_not_copy_it(void **state)
{
    (void)state;
    if (!can_wipe()) {
        skip();
    }
    unsigned char *memory = wefti_os_owned_alloc(BYTES);
    unsigned char *beside = wefti_alloc(BYTES);
    assert_non_null(memory);
    assert_non_null(beside);
    assert_int_equal((uintptr_t)memory % 64, 0);
    assert_true(has_only(memory, 0));
    memset(memory, 7, BYTES);
    memset(beside, 9, BYTES);
    assert_true(children_have(memory, 0));
    assert_true(children_have(beside, 9));
    assert_true(has_only(memory, 7));
    assert_true(wefti_os_owned_give(memory, BYTES));
    assert_true(children_have(memory, 7));
    wefti_free(beside);
    wefti_free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fork_does_not_copy_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
