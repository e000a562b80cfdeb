/* Goal: shared memory is sparse, shared, of a fixed size, and a status when there is none; nothing of it stays behind.
 * Method: two mappings of one file see each other; blocks of the file are counted around reserve and release; a foreign
 * descriptor, a wrong size and more memory than the machine has are refused; a file that has the number of a descriptor
 * that the program closed is left alone; torture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"
#include "support/ledger.h"
#include "support/torture.h"

#define MEMORY_BYTES (UINT64_C(1) << 34)
#define PART_BYTES (UINT64_C(12) << 20)

static int be_quiet(void **state)
{
    (void)state;
    return setenv("WEFT_LOG", "none", 1);
}

static uint64_t real_bytes(const wefti_os_memory *memory)
{
    struct stat about;
    assert_int_equal(fstat(memory->descriptor, &about), 0);
    return (uint64_t)about.st_blocks * 512;
}

static void test_memory_is_sparse(void **state)
{
    (void)state;
    wefti_os_memory memory = {0};
    size_t offset = MEMORY_BYTES / 2;
    assert_int_equal(wefti_os_memory_create(&memory, MEMORY_BYTES), WEFT_OK);
    assert_int_equal(memory.bytes, MEMORY_BYTES);
    assert_int_equal((uintptr_t)memory.base % WEFTI_OS_MEMORY_ALIGNMENT, 0);
    assert_int_equal(real_bytes(&memory), 0);
    assert_int_equal(wefti_os_memory_reserve(&memory, offset, PART_BYTES), WEFT_OK);
    assert_int_equal(real_bytes(&memory), PART_BYTES);
    assert_int_equal(memory.base[offset], 0);
    memory.base[offset] = 1;
    memory.base[offset + PART_BYTES - 1] = 2;
    assert_int_equal(wefti_os_memory_reserve(&memory, offset, PART_BYTES), WEFT_OK);
    assert_int_equal(memory.base[offset], 1);
    wefti_os_memory_release(&memory, offset, PART_BYTES);
    assert_int_equal(real_bytes(&memory), 0);
    assert_int_equal(memory.base[offset + PART_BYTES - 1], 0);
    wefti_os_memory_fini(&memory);
}

/* A process signs, says so, and ends by itself, or killed; or closes the memory, and is there for a while. */
static void test_signatures_end_with_their_process(void **state)
{
    enum { ENDS, IS_KILLED, CLOSES };
    (void)state;
    wefti_os_memory memory = {0};
    assert_int_equal(wefti_os_memory_create(&memory, 1 << 16), WEFT_OK);
    for (int how = ENDS; how <= CLOSES; how++) {
        int ready[2];
        char byte;
        assert_int_equal(pipe(ready), 0);
        pid_t child = fork();
        if (child == 0) {
            wefti_os_memory_sign(&memory, 3);
            wefti_os_memory_sign(&memory, 5);
            if (how == CLOSES) {
                wefti_os_memory_fini(&memory);
            }
            (void)!write(ready[1], "r", 1);
            (void)raise(how != ENDS ? SIGSTOP : 0);
            _exit(0);
        }
        assert_int_equal(read(ready[0], &byte, 1), 1);
        if (how != ENDS) {
            assert_int_equal(wefti_os_memory_is_signed(&memory, 3), how == IS_KILLED);
            assert_int_equal(wefti_os_memory_is_signed(&memory, 5), how == IS_KILLED);
            assert_false(wefti_os_memory_is_signed(&memory, 4));
            assert_int_equal(kill(child, SIGKILL), 0);
        }
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_false(wefti_os_memory_is_signed(&memory, 3));
        close(ready[0]);
        close(ready[1]);
    }
    wefti_os_memory_sign(&memory, 7);
    assert_false(wefti_os_memory_is_signed(&memory, 7)); /* its own */
    wefti_os_memory_fini(&memory);
    assert_true(wefti_os_memory_is_signed(&memory, 7)); /* cannot be told */
}

static void test_memory_is_shared(void **state)
{
    (void)state;
    wefti_os_memory first = {0};
    wefti_os_memory second = {0};
    assert_int_equal(wefti_os_memory_create(&first, MEMORY_BYTES), WEFT_OK);
    assert_int_equal(wefti_os_memory_adopt(&second, dup(first.descriptor), MEMORY_BYTES), WEFT_OK);
    assert_ptr_not_equal(first.base, second.base);
    assert_int_equal(wefti_os_memory_reserve(&second, 0, PART_BYTES), WEFT_OK);
    first.base[17] = 42;
    assert_int_equal(second.base[17], 42);
    wefti_os_memory_fini(&first);
    assert_int_equal(second.base[17], 42);
    wefti_os_memory_fini(&second);
}

static void test_size_cannot_change(void **state)
{
    (void)state;
    wefti_os_memory memory = {0};
    assert_int_equal(wefti_os_memory_create(&memory, PART_BYTES), WEFT_OK);
    assert_int_not_equal(ftruncate(memory.descriptor, 4096), 0);
    assert_int_not_equal(ftruncate(memory.descriptor, 2 * PART_BYTES), 0);
    wefti_os_memory_fini(&memory);
}

static void test_wrong_descriptors_are_refused(void **state)
{
    (void)state;
    ledger before = ledger_read();
    wefti_os_memory memory = {0};
    wefti_os_memory other = {0};
    assert_int_equal(wefti_os_memory_create(&memory, PART_BYTES), WEFT_OK);
    assert_int_equal(wefti_os_memory_adopt(&other, dup(memory.descriptor), PART_BYTES / 2), WEFT_ERR_MISMATCH);
    wefti_os_memory_fini(&memory);
    int unsealed = memfd_create("other", MFD_CLOEXEC);
    assert_int_equal(ftruncate(unsealed, PART_BYTES), 0);
    assert_int_equal(wefti_os_memory_adopt(&other, unsealed, PART_BYTES), WEFT_ERR_MISMATCH);
    assert_null(other.base);
    ledger_assert_same(&before);
}

static void test_wrong_parts_are_refused(void **state)
{
    (void)state;
    wefti_os_memory memory = {0};
    size_t page = wefti_os_page_bytes();
    assert_int_equal(wefti_os_memory_create(&memory, 4 * page), WEFT_OK);
    assert_int_equal(wefti_os_memory_reserve(&memory, 1, page), WEFT_ERR_RANGE);
    assert_int_equal(wefti_os_memory_reserve(&memory, 0, 1), WEFT_ERR_RANGE);
    assert_int_equal(wefti_os_memory_reserve(&memory, 0, 5 * page), WEFT_ERR_RANGE);
    assert_int_equal(wefti_os_memory_reserve(&memory, 5 * page, 0), WEFT_ERR_RANGE);
    assert_int_equal(wefti_os_memory_reserve(&memory, page, SIZE_MAX & ~(page - 1)), WEFT_ERR_RANGE);
    assert_int_equal(wefti_os_memory_reserve(&memory, 4 * page, 0), WEFT_OK);
    assert_int_equal(wefti_os_memory_reserve(&memory, 0, 4 * page), WEFT_OK);
    wefti_os_memory_fini(&memory);
    assert_int_equal(wefti_os_memory_create(&memory, 0), WEFT_ERR_ARGUMENT);
}

static void test_lack_of_memory_is_a_status(void **state)
{
    (void)state;
    wefti_os_memory memory = {0};
    size_t page = wefti_os_page_bytes();
    size_t bytes = 2 * wefti_os_memory_bytes() & ~(page - 1);
    assert_int_equal(wefti_os_memory_create(&memory, bytes), WEFT_OK);
    assert_int_equal(wefti_os_memory_reserve(&memory, 0, bytes), WEFT_ERR_MEMORY);
    assert_non_null(strstr(weft_last_error(), "allocate less"));
    wefti_os_memory_fini(&memory);
}

static void test_close_keeps_the_mapping(void **state)
{
    (void)state;
    ledger before = ledger_read();
    wefti_os_memory memory = {0};
    size_t page = wefti_os_page_bytes();
    wefti_os_memory_close(&memory);
    wefti_os_memory_fini(&memory);
    assert_int_equal(wefti_os_memory_create(&memory, 4 * page), WEFT_OK);
    assert_int_equal(wefti_os_memory_reserve(&memory, 0, page), WEFT_OK);
    wefti_os_memory_close(&memory);
    wefti_os_memory_close(&memory);
    memory.base[page - 1] = 1;
    assert_int_equal(wefti_os_memory_reserve(&memory, page, page), WEFT_ERR_STATE);
    wefti_os_memory_fini(&memory);
    wefti_os_memory_fini(&memory);
    ledger_assert_same(&before);
}

static int is_locked_for_others(int descriptor)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_len = 1};
        _exit(fcntl(descriptor, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

/* The program closes all descriptors and opens a file, which has the number then. */
static void test_another_file_of_the_number_is_left_alone(void **state)
{
    (void)state;
    wefti_os_memory memory = {0};
    struct stat about;
    struct flock whole = {.l_type = F_WRLCK};
    const size_t page = wefti_os_page_bytes();
    assert_int_equal(wefti_os_memory_create(&memory, 4 * page), WEFT_OK);
    assert_int_equal(wefti_os_memory_reserve(&memory, 0, page), WEFT_OK);
    int other = memfd_create("the program's", MFD_CLOEXEC);
    assert_int_equal(write(other, "text", 4), 4);
    assert_int_equal(fcntl(other, F_SETLK, &whole), 0);
    int number = memory.descriptor;
    assert_int_equal(dup2(other, number), number);
    assert_int_equal(fcntl(other, F_SETLK, &whole), 0);
    assert_int_equal(wefti_os_memory_reserve(&memory, page, page), WEFT_ERR_STATE);
    wefti_os_memory_release(&memory, 0, page);
    wefti_os_memory_sign(&memory, 1);
    assert_true(wefti_os_memory_is_signed(&memory, 2)); /* cannot be told */
    memory.base[page - 1] = 1;
    wefti_os_memory_fini(&memory);
    assert_int_equal(fstat(number, &about), 0);
    assert_int_equal(about.st_size, 4);
    assert_int_equal(about.st_blocks * 512, page);
    assert_true(is_locked_for_others(other));
    close(number);
    close(other);
}

static weft_status adopt_copy(const wefti_os_memory *memory)
{
    wefti_os_memory copy = {0};
    int descriptor = dup(memory->descriptor);
    WEFT_TRY(wefti_os_memory_adopt(&copy, descriptor, memory->bytes));
    wefti_os_memory_fini(&copy);
    return WEFT_OK;
}

static weft_status use_memory(void *context)
{
    (void)context;
    wefti_os_memory memory = {0};
    WEFT_TRY(wefti_os_memory_create(&memory, MEMORY_BYTES));
    weft_status status = wefti_os_memory_reserve(&memory, 0, PART_BYTES);
    if (status == WEFT_OK) {
        memory.base[PART_BYTES - 1] = 1;
        status = adopt_copy(&memory);
    }
    wefti_os_memory_release(&memory, 0, PART_BYTES);
    wefti_os_memory_fini(&memory);
    return status;
}

static void test_failing_calls(void **state)
{
    (void)state;
    assert_true(torture(use_memory, NULL) >= 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signatures_end_with_their_process),
        cmocka_unit_test(test_memory_is_sparse),
        cmocka_unit_test(test_memory_is_shared),
        cmocka_unit_test(test_size_cannot_change),
        cmocka_unit_test(test_wrong_descriptors_are_refused),
        cmocka_unit_test(test_wrong_parts_are_refused),
        cmocka_unit_test(test_lack_of_memory_is_a_status),
        cmocka_unit_test(test_close_keeps_the_mapping),
        cmocka_unit_test(test_another_file_of_the_number_is_left_alone),
        cmocka_unit_test(test_failing_calls),
    };
    return cmocka_run_group_tests_name("memory", tests, be_quiet, NULL);
}
