/* Goal: processes share rows of numbers by a name: each has its own, zero at first; one of a process that was killed is
 * cleared; claims exclude each other, and a holder that has stopped stops nobody for good; what another user or program
 * put there is refused by name. Method: openings of one process, and children that are killed or stopped. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/os.h"
#include "support/ledger.h"
#include "support/torture.h"

static char name[64];
static char path[128];

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(name, sizeof name, "rows-test-%d", (int)getpid());
    (void)snprintf(path, sizeof path, "/dev/shm/weft-%u-%s", (unsigned)geteuid(), name);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)unlink(path);
    return 0;
}

static void test_shares(void **state)
{
    (void)state;
    wefti_os_rows a;
    wefti_os_rows b;
    assert_int_equal(wefti_os_rows_open(&a, name), WEFT_OK);
    a.table->row[a.own][1] = 7;
    assert_int_equal(wefti_os_rows_open(&b, name), WEFT_OK);
    assert_int_not_equal(a.own, b.own);
    assert_int_equal(b.table->row[a.own][1], 7);
    assert_int_equal(b.table->row[b.own][1], 0);
    wefti_os_rows_clear_dead(&b);
    assert_int_equal(a.table->row[a.own][1], 7);
    wefti_os_rows_close(&a);
    assert_int_equal(b.table->row[a.own][1], 0);
    assert_int_equal(wefti_os_rows_open(&a, name), WEFT_OK);
    wefti_os_rows_close(&a);
    wefti_os_rows_close(&b);
    wefti_os_rows_close(&b);
}

static void test_full(void **state)
{
    (void)state;
    static wefti_os_rows all[WEFTI_OS_ROWS_MAX + 1];
    for (int i = 0; i < WEFTI_OS_ROWS_MAX; i++) {
        assert_int_equal(wefti_os_rows_open(&all[i], name), WEFT_OK);
    }
    assert_int_equal(wefti_os_rows_open(&all[WEFTI_OS_ROWS_MAX], name), WEFT_ERR_SYSTEM);
    assert_non_null(strstr(weft_last_error(), "all its rows are taken"));
    for (int i = 0; i < WEFTI_OS_ROWS_MAX; i++) {
        wefti_os_rows_close(&all[i]);
    }
}

/* Returns once the child has done `work` with its row, and sleeps. */
static pid_t start(void (*work)(wefti_os_rows *rows))
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        wefti_os_rows rows;
        if (wefti_os_rows_open(&rows, name) == WEFT_OK) {
            work(&rows);
            (void)!write(ready[1], "", 1);
            pause();
        }
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static void end(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void fill(wefti_os_rows *rows)
{
    rows->table->row[rows->own][0] = 3;
}

static int sum(const wefti_os_rows *rows)
{
    int all = 0;
    for (int i = 0; i < WEFTI_OS_ROWS_MAX; i++) {
        all += rows->table->row[i][0];
    }
    return all;
}

static void test_killed(void **state)
{
    (void)state;
    wefti_os_rows rows;
    assert_int_equal(wefti_os_rows_open(&rows, name), WEFT_OK);
    const pid_t child = start(fill);
    wefti_os_rows_clear_dead(&rows);
    assert_int_equal(sum(&rows), 3);
    end(child);
    assert_int_equal(sum(&rows), 3);
    wefti_os_rows_clear_dead(&rows);
    assert_int_equal(sum(&rows), 0);
    wefti_os_rows_close(&rows);
}

static void hold(wefti_os_rows *rows)
{
    (void)wefti_os_rows_lock(rows);
}

static void test_lock(void **state)
{
    (void)state;
    wefti_os_rows rows;
    assert_int_equal(wefti_os_rows_open(&rows, name), WEFT_OK);
    assert_int_equal(wefti_os_rows_lock(&rows), 1);
    wefti_os_rows_unlock(&rows);
    const pid_t child = start(hold);
    assert_int_equal(wefti_os_rows_lock(&rows), 0);
    end(child);
    assert_int_equal(wefti_os_rows_lock(&rows), 1);
    wefti_os_rows_close(&rows);
}

static void refuse(const char *text)
{
    wefti_os_rows rows;
    assert_int_equal(wefti_os_rows_open(&rows, name), WEFT_ERR_SYSTEM);
    assert_non_null(strstr(weft_last_error(), path));
    assert_non_null(strstr(weft_last_error(), text));
}

static void test_foreign(void **state)
{
    (void)state;
    (void)unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    refuse("directory");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("/dev/null", path), 0);
    refuse("symbolic links");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    refuse("no regular file");
    assert_int_equal(unlink(path), 0);
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    assert_int_equal(fchmod(file, 0666), 0);
    refuse("open to others");
    assert_int_equal(fchmod(file, 0600), 0);
    if (geteuid() == 0) {
        assert_int_equal(fchown(file, 12345, 0), 0);
        refuse("another user's");
    }
    close(file);
    assert_int_equal(unlink(path), 0);
}

static weft_status open_and_close(void *context)
{
    wefti_os_rows rows;
    (void)context;
    const weft_status status = wefti_os_rows_open(&rows, name);
    wefti_os_rows_close(&rows);
    return status;
}

static void test_faults(void **state)
{
    (void)state;
    (void)torture(open_and_close, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares), cmocka_unit_test(test_full),    cmocka_unit_test(test_killed),
        cmocka_unit_test(test_lock),   cmocka_unit_test(test_foreign), cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
