/* Goal: in a process without standard input, output and error nothing that the library opens takes their place.
 * Method: a process closes the three, opens one of each kind, and looks what number it got; it exits with the number of
 * the check that failed. Further goal: a thread of a process whose descriptors are spent can have some, and what the
 * process has open stays so. Method: a limit that is filled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/durations.h"
#include "os/os.h"
#include "os/posix/descriptor.h"
#include "os/socket.h"

#define FEW 40 /* descriptors */

static void expect(int holds, int number)
{
    if (!holds) {
        _exit(number);
    }
}

/* Nor is one of the three left open. */
static void expect_beyond(int descriptor, int number)
{
    expect(descriptor > STDERR_FILENO, number);
    for (int standard = STDIN_FILENO; standard <= STDERR_FILENO; standard++) {
        expect(fcntl(standard, F_GETFD) == -1, number + 1);
    }
    expect((fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0, number + 2);
}

static void open_memory(void)
{
    wefti_os_memory memory = {0};
    wefti_os_ticket ticket;
    void *record;
    expect(wefti_os_memory_create(&memory, 1 << 20) == WEFT_OK, 10);
    expect_beyond(memory.descriptor, 11);
    expect(wefti_os_record_create(100, &ticket, &record) == WEFT_OK, 20);
    expect_beyond(ticket.descriptor, 21);
}

static void open_sockets(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t bytes = sizeof address;
    int listener = wefti_os_socket_open(AF_UNIX);
    int near = wefti_os_socket_open(AF_UNIX);
    struct pollfd item = {.fd = listener, .events = POLLIN};
    expect_beyond(listener, 30);
    expect(wefti_os_socket_bind(listener, (struct sockaddr *)&address, sizeof address.sun_family) == 0 &&
               wefti_os_socket_listen(listener, 1) == 0 &&
               wefti_os_socket_name(listener, (struct sockaddr *)&address, &bytes) == 0 &&
               wefti_os_socket_connect(near, (struct sockaddr *)&address, bytes) == 0 &&
               wefti_os_socket_poll(&item, 1, 10 * WEFTI_SECOND_NS) == 1,
           40);
    expect_beyond(wefti_os_socket_accept(listener), 41);
}

static void open_pass(void)
{
    static const unsigned char name[16] = "beyond standard";
    wefti_os_pass pass;
    expect(wefti_os_pass_open(&pass, name) == WEFT_OK, 50);
    expect_beyond(pass.listener, 51);
}

static void run_without_standard(void (*open_some)(void))
{
    int result = -1;
    pid_t pid = fork();
    if (pid == 0) {
        for (int standard = STDIN_FILENO; standard <= STDERR_FILENO; standard++) {
            (void)close(standard);
        }
        open_some();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &result, 0), pid);
    assert_int_equal(result, 0);
}

static void test_memory(void **state)
{
    (void)state;
    run_without_standard(open_memory);
}

static void test_sockets(void **state)
{
    (void)state;
    run_without_standard(open_sockets);
    run_without_standard(open_pass);
}

static void test_standard_moves(void **state)
{
    (void)state;
    int kept = dup(STDIN_FILENO);
    assert_int_not_equal(kept, -1);
    int moved = wefti_os_descriptor_beyond_standard(STDIN_FILENO);
    int left = fcntl(STDIN_FILENO, F_GETFD);
    assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(left, -1);
    assert_true(moved > STDERR_FILENO);
    assert_true((fcntl(moved, F_GETFD) & FD_CLOEXEC) != 0);
    (void)close(moved);
    (void)close(kept);
}

static void test_others_stay(void **state)
{
    (void)state;
    int descriptor = dup(STDERR_FILENO);
    assert_true(descriptor > STDERR_FILENO);
    assert_int_equal(wefti_os_descriptor_beyond_standard(descriptor), descriptor);
    (void)close(descriptor);
    assert_int_equal(wefti_os_descriptor_beyond_standard(-1), -1);
}

typedef struct parting {
    int may; /* a system may refuse it to processes in a container */
    int unshared;
    int spent;
} parting;

static void *unshare_descriptors(void *context)
{
    parting *p = context;
    p->may = unshare(CLONE_FILES) == 0;
    p->unshared = wefti_os_descriptors_unshare();
    p->spent = wefti_os_descriptors_are_spent();
    return NULL;
}

static void test_spent(void **state)
{
    (void)state;
    struct rlimit before;
    int open[FEW];
    int count = 0;
    pthread_t thread;
    parting p = {0};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit few = {.rlim_cur = FEW, .rlim_max = before.rlim_max};
    assert_int_equal(wefti_os_descriptors_are_spent(), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (count < FEW && (open[count] = dup(STDERR_FILENO)) >= 0) {
        count++;
    }
    const int spent = wefti_os_descriptors_are_spent();
    const int started = pthread_create(&thread, NULL, unshare_descriptors, &p) == 0 && pthread_join(thread, NULL) == 0;
    const int still_spent = wefti_os_descriptors_are_spent();
    for (int i = 0; i < count; i++) {
        assert_int_equal(close(open[i]), 0);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(count > 0 && count < FEW);
    assert_true(spent && started && still_spent);
    assert_int_equal(p.unshared, p.may);
    assert_int_equal(p.spent, !p.may);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),      cmocka_unit_test(test_sockets), cmocka_unit_test(test_standard_moves),
        cmocka_unit_test(test_others_stay), cmocka_unit_test(test_spent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
