/* Goal: a record is shared by those who are in, stays until the last has left, and cannot be joined by who comes too
 * late, whatever its number means by then. Method: in turn; with another file under the number; threads that come and
 * go at once; torture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"
#include "support/check.h"
#include "support/ledger.h"
#include "support/pes.h"
#include "support/torture.h"

static void leave(void *record)
{
    if (wefti_os_record_leave(record)) {
        wefti_os_record_free(record);
    }
}

static void test_is_shared_until_the_last_leaves(void **state)
{
    (void)state;
    ledger before = ledger_read();
    wefti_os_ticket ticket;
    void *mine;
    void *yours;
    assert_int_equal(wefti_os_record_create(100, &ticket, &mine), WEFT_OK);
    assert_int_equal(((unsigned char *)mine)[99], 0);
    assert_int_equal((uintptr_t)mine % 64, 0);
    assert_int_equal(wefti_os_record_join(&ticket, &yours), WEFT_OK);
    assert_ptr_equal(mine, yours);
    assert_false(wefti_os_record_leave(mine));
    ((unsigned char *)yours)[99] = 7;
    void *third;
    assert_int_equal(wefti_os_record_join(&ticket, &third), WEFT_OK);
    assert_int_equal(((unsigned char *)third)[99], 7);
    leave(yours);
    assert_true(wefti_os_record_leave(third));
    void *late;
    assert_int_equal(wefti_os_record_join(&ticket, &late), WEFT_ERR_PEER);
    wefti_os_record_free(third);
    wefti_os_ticket_close(&ticket);
    wefti_os_ticket_close(&ticket);
    ledger_assert_same(&before);
}

static void test_refuses_what_its_number_means_later(void **state)
{
    (void)state;
    wefti_os_ticket ticket;
    wefti_os_ticket other_ticket;
    void *mine;
    void *other;
    void *late;
    assert_int_equal(wefti_os_record_create(8, &ticket, &mine), WEFT_OK);
    wefti_os_ticket told = ticket;
    wefti_os_ticket_close(&ticket);
    leave(mine);
    assert_int_equal(wefti_os_record_join(&told, &late), WEFT_ERR_PEER); /* it means nothing */
    assert_int_equal(wefti_os_record_create(8, &other_ticket, &other), WEFT_OK);
    assert_int_equal(other_ticket.descriptor, told.descriptor);
    assert_int_equal(wefti_os_record_join(&told, &late), WEFT_ERR_PEER); /* it means another record */
    wefti_os_ticket_close(&other_ticket);
    leave(other);
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(pipes[0], told.descriptor);
    assert_int_equal(wefti_os_record_join(&told, &late), WEFT_ERR_PEER); /* it means something else */
    close(pipes[0]);
    close(pipes[1]);
}

/* Whether another process would find a record lock on the first byte. */
static int is_locked(int descriptor)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
        _exit(fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

/* By then the number is another file's, on which this process has a record lock: that ends when any descriptor of the
 * file is closed. */
static void test_leaves_the_locks_of_other_files(void **state)
{
    (void)state;
    wefti_os_ticket ticket;
    void *mine;
    void *late;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    assert_int_equal(wefti_os_record_create(8, &ticket, &mine), WEFT_OK);
    wefti_os_ticket told = ticket;
    wefti_os_ticket_close(&ticket);
    leave(mine);
    int other = memfd_create("other", MFD_CLOEXEC);
    assert_int_equal(other, told.descriptor);
    assert_int_equal(fcntl(other, F_SETLK, &lock), 0);
    assert_true(is_locked(other));
    assert_int_equal(wefti_os_record_join(&told, &late), WEFT_ERR_PEER);
    assert_true(is_locked(other));
    close(other);
}

/* All but PE 0 come, and each may find it gone. */
static void come_and_go(int pe, void *context)
{
    wefti_os_ticket *ticket = context;
    void *record;
    if (pe == 0) {
        leave((void *)(uintptr_t)(ticket->address + 64));
        return;
    }
    weft_status status = wefti_os_record_join(ticket, &record);
    CHECK(status == WEFT_OK || status == WEFT_ERR_PEER);
    if (status == WEFT_OK) {
        (void)__atomic_add_fetch((uint64_t *)record, 1, __ATOMIC_RELAXED);
        leave(record);
    }
}

static void test_is_freed_once(void **state)
{
    (void)state;
    ledger before = ledger_read();
    for (int i = 0; i < 300; i++) {
        wefti_os_ticket ticket;
        void *mine;
        CHECK_OK(wefti_os_record_create(8, &ticket, &mine));
        CHECK(mine == (void *)(uintptr_t)(ticket.address + 64));
        pes_each(4, come_and_go, &ticket);
        wefti_os_ticket_close(&ticket);
    }
    ledger_assert_same(&before);
}

static weft_status make_and_join(void *context)
{
    (void)context;
    wefti_os_ticket ticket;
    void *mine;
    void *yours;
    WEFT_TRY(wefti_os_record_create(8, &ticket, &mine));
    weft_status status = wefti_os_record_join(&ticket, &yours);
    if (status == WEFT_OK) {
        leave(yours);
    }
    wefti_os_ticket_close(&ticket);
    leave(mine);
    return status;
}

static void test_survives_every_fault(void **state)
{
    (void)state;
    assert_true(torture(make_and_join, NULL) >= 5);
}

static void test_refuses_what_does_not_fit(void **state)
{
    (void)state;
    wefti_os_ticket ticket;
    void *mine;
    assert_int_equal(wefti_os_record_create(WEFTI_OS_RECORD_BYTES_MAX + 1, &ticket, &mine), WEFT_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_is_shared_until_the_last_leaves),
        CHECKED_TEST(test_refuses_what_its_number_means_later),
        CHECKED_TEST(test_leaves_the_locks_of_other_files),
        CHECKED_TEST(test_is_freed_once),
        CHECKED_TEST(test_survives_every_fault),
        CHECKED_TEST(test_refuses_what_does_not_fit),
    };
    (void)setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
