/* Goal: a descriptor reaches exactly those who know name and token; strangers neither get it nor hold anybody up; both
 * sides give up in time.
 * Method: takers are threads of this process; strangers speak to the socket by hand; torture of both sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/durations.h"
#include "os/os.h"
#include "support/ledger.h"
#include "support/torture.h"

#define TAKERS 5
#define CROWD 900 /* served one after another, each until it were silent too long, they outlast the deadline */

static const unsigned char token[16] = "token of 16 byte";
static const unsigned char wrong_token[16] = "token of 16 Byte";

static int be_quiet(void **state)
{
    (void)state;
    return setenv("WEFT_LOG", "none", 1);
}

/* A name of its own for each use: tests of several builds may run at once. */
typedef struct meeting {
    unsigned char name[16];
    const unsigned char *token;
    uint64_t until_ns;
    const wefti_os_watch *watch; /* NULL: none */
    weft_status status;
    int descriptor;
} meeting;

static meeting make_place(uint64_t wait_ns)
{
    meeting place = {.token = token, .until_ns = wefti_os_now_ns() + wait_ns, .descriptor = -1};
    assert_int_equal(wefti_os_random(place.name, sizeof place.name), WEFT_OK);
    return place;
}

static void take(void *argument)
{
    meeting *place = argument;
    place->status = wefti_os_pass_take(place->name, place->token, place->until_ns, place->watch, &place->descriptor);
}

static void assert_same_file(int one, int other)
{
    char text[8] = "";
    assert_int_equal(pwrite(one, "weft", 4, 0), 4);
    assert_int_equal(pread(other, text, 4, 0), 4);
    assert_string_equal(text, "weft");
}

static wefti_os_memory make_memory(void)
{
    wefti_os_memory memory = {0};
    assert_int_equal(wefti_os_memory_create(&memory, 4096), WEFT_OK);
    return memory;
}

/* Connect to a place as a stranger. The socket does not block. */
static int connect_to(const meeting *place)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int used = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "weft-");
    for (int i = 0; i < 16; i++) {
        used +=
            snprintf(address.sun_path + 1 + used, sizeof address.sun_path - 1 - (size_t)used, "%02x", place->name[i]);
    }
    int stranger = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)used);
    if (connect(stranger, (struct sockaddr *)&address, bytes) != 0) {
        close(stranger);
        return -1;
    }
    return stranger;
}

static int connect_stranger(const meeting *place)
{
    int stranger = connect_to(place);
    assert_true(stranger >= 0);
    return stranger;
}

static void test_takers_get_the_descriptor(void **state)
{
    (void)state;
    ledger before = ledger_read();
    wefti_os_memory memory = make_memory();
    meeting common = make_place(30 * WEFTI_SECOND_NS);
    meeting takers[TAKERS];
    wefti_os_thread *threads[TAKERS];
    for (int i = 0; i < TAKERS; i++) { /* they come before the name exists */
        takers[i] = common;
        assert_int_equal(wefti_os_thread_start(&threads[i], take, &takers[i]), WEFT_OK);
    }
    wefti_os_sleep_ns(WEFTI_SECOND_NS / 100);
    wefti_os_pass pass;
    assert_int_equal(wefti_os_pass_open(&pass, common.name), WEFT_OK);
    assert_int_equal(wefti_os_pass_serve(&pass, token, memory.descriptor, TAKERS, common.until_ns, NULL), WEFT_OK);
    wefti_os_pass_close(&pass);
    wefti_os_pass_close(&pass);
    for (int i = 0; i < TAKERS; i++) {
        wefti_os_thread_join(threads[i]);
        assert_int_equal(takers[i].status, WEFT_OK);
        assert_same_file(memory.descriptor, takers[i].descriptor);
        close(takers[i].descriptor);
    }
    wefti_os_memory_fini(&memory);
    ledger_assert_same(&before);
}

static void test_strangers_are_dropped(void **state)
{
    (void)state;
    ledger before = ledger_read();
    wefti_os_memory memory = make_memory();
    meeting good = make_place(30 * WEFTI_SECOND_NS);
    meeting bad = good;
    bad.token = wrong_token;
    wefti_os_pass pass;
    wefti_os_thread *threads[2];
    assert_int_equal(wefti_os_pass_open(&pass, good.name), WEFT_OK);
    int silent = connect_stranger(&good);
    int chatty = connect_stranger(&good);
    int brief = connect_stranger(&good);
    assert_int_equal(send(chatty, "too short", 9, MSG_NOSIGNAL), 9);
    close(brief);
    assert_int_equal(wefti_os_thread_start(&threads[0], take, &bad), WEFT_OK);
    wefti_os_sleep_ns(WEFTI_SECOND_NS / 100);
    assert_int_equal(wefti_os_thread_start(&threads[1], take, &good), WEFT_OK);
    uint64_t start_ns = wefti_os_now_ns();
    assert_int_equal(wefti_os_pass_serve(&pass, token, memory.descriptor, 1, good.until_ns, NULL), WEFT_OK);
    assert_true(wefti_os_now_ns() - start_ns < 20 * WEFTI_SECOND_NS);
    wefti_os_pass_close(&pass);
    wefti_os_thread_join(threads[0]);
    wefti_os_thread_join(threads[1]);
    assert_true(bad.status == WEFT_ERR_AUTHENTICATION || bad.status == WEFT_ERR_PEER);
    assert_int_equal(bad.descriptor, -1);
    assert_int_equal(good.status, WEFT_OK);
    assert_same_file(memory.descriptor, good.descriptor);
    close(good.descriptor);
    close(silent);
    close(chatty);
    wefti_os_memory_fini(&memory);
    ledger_assert_same(&before);
}

static void test_silent_strangers_do_not_fill_the_room(void **state)
{
    (void)state;
    ledger before = ledger_read();
    wefti_os_memory memory = make_memory();
    meeting good = make_place(30 * WEFTI_SECOND_NS);
    wefti_os_pass pass;
    wefti_os_thread *thread;
    int strangers[100];
    assert_int_equal(wefti_os_pass_open(&pass, good.name), WEFT_OK);
    for (int i = 0; i < 100; i++) {
        strangers[i] = connect_stranger(&good);
    }
    assert_int_equal(wefti_os_thread_start(&thread, take, &good), WEFT_OK);
    assert_int_equal(wefti_os_pass_serve(&pass, token, memory.descriptor, 1, good.until_ns, NULL), WEFT_OK);
    wefti_os_pass_close(&pass);
    wefti_os_thread_join(thread);
    assert_int_equal(good.status, WEFT_OK);
    close(good.descriptor);
    for (int i = 0; i < 100; i++) {
        close(strangers[i]);
    }
    wefti_os_memory_fini(&memory);
    ledger_assert_same(&before);
}

/* A process of another user that connects many times and says nothing. */
static pid_t fork_crowd(const meeting *place)
{
    pid_t child = fork();
    if (child == 0) {
        int failed = setresuid(65534, 65534, 65534) != 0;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; !failed && i < CROWD; i++) {
            (void)connect_to(place);
        }
        for (;;) {
            (void)pause();
        }
    }
    return child;
}

static void test_other_users_take_no_place(void **state)
{
    (void)state;
    ledger before = ledger_read();
    wefti_os_memory memory = make_memory();
    meeting good = make_place(10 * WEFTI_SECOND_NS);
    wefti_os_pass pass;
    wefti_os_thread *thread;
    if (geteuid() != 0) {
        print_message("not root: no other users\n");
        skip();
    }
    assert_int_equal(wefti_os_pass_open(&pass, good.name), WEFT_OK);
    pid_t crowds[2] = {fork_crowd(&good), fork_crowd(&good)};
    wefti_os_sleep_ns(WEFTI_SECOND_NS / 10);
    assert_int_equal(wefti_os_thread_start(&thread, take, &good), WEFT_OK);
    assert_int_equal(wefti_os_pass_serve(&pass, token, memory.descriptor, 1, good.until_ns, NULL), WEFT_OK);
    wefti_os_pass_close(&pass);
    wefti_os_thread_join(thread);
    for (int i = 0; i < 2; i++) {
        (void)kill(crowds[i], SIGKILL);
        (void)waitpid(crowds[i], NULL, 0);
    }
    assert_int_equal(good.status, WEFT_OK);
    close(good.descriptor);
    wefti_os_memory_fini(&memory);
    ledger_assert_same(&before);
}

/* Another user offers, who was told name and token: that memory is not taken. */
static void test_nothing_is_taken_of_other_users(void **state)
{
    (void)state;
    meeting place = make_place(30 * WEFTI_SECOND_NS);
    if (geteuid() != 0) {
        print_message("not root: no other users\n");
        skip();
    }
    pid_t child = fork();
    if (child == 0) {
        wefti_os_pass pass;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        wefti_os_memory memory = make_memory();
        int failed = setresuid(65534, 65534, 65534) != 0 || wefti_os_pass_open(&pass, place.name) != WEFT_OK;
        (void)!wefti_os_pass_serve(&pass, token, memory.descriptor, 1, place.until_ns, NULL);
        _exit(failed);
    }
    take(&place);
    assert_int_equal(place.status, WEFT_ERR_AUTHENTICATION);
    assert_int_equal(place.descriptor, -1);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
}

static void test_deadlines(void **state)
{
    (void)state;
    ledger before = ledger_read();
    meeting place = make_place(WEFTI_SECOND_NS / 20);
    take(&place); /* nobody has the name */
    assert_int_equal(place.status, WEFT_ERR_TIMEOUT);
    wefti_os_pass pass;
    assert_int_equal(wefti_os_pass_open(&pass, place.name), WEFT_OK);
    place.until_ns = wefti_os_now_ns() + WEFTI_SECOND_NS / 20;
    take(&place); /* nobody serves */
    assert_int_equal(place.status, WEFT_ERR_TIMEOUT);
    assert_int_equal(wefti_os_pass_serve(&pass, token, 0, 2, wefti_os_now_ns() + WEFTI_SECOND_NS / 20, NULL),
                     WEFT_ERR_TIMEOUT);
    assert_non_null(strstr(weft_last_error(), "2 of 2"));
    assert_true(wefti_os_now_ns() < place.until_ns + 20 * WEFTI_SECOND_NS);
    wefti_os_pass_close(&pass);
    ledger_assert_same(&before);
}

/* What a watch is asked: all is well until the time that is given. */
static weft_status check_time(void *until_ns)
{
    return wefti_os_now_ns() < *(uint64_t *)until_ns ? WEFT_OK : WEFT_ERR_ABORTED;
}

static void test_a_watch_ends_a_wait(void **state)
{
    (void)state;
    ledger before = ledger_read();
    uint64_t well_until_ns = wefti_os_now_ns() + WEFTI_SECOND_NS / 10;
    const wefti_os_watch watch = {check_time, &well_until_ns};
    meeting place = make_place(60 * WEFTI_SECOND_NS);
    uint64_t start_ns = wefti_os_now_ns();
    place.watch = &watch;
    take(&place); /* nobody has the name */
    assert_int_equal(place.status, WEFT_ERR_ABORTED);
    wefti_os_pass pass;
    assert_int_equal(wefti_os_pass_open(&pass, place.name), WEFT_OK);
    take(&place); /* nobody serves */
    assert_int_equal(place.status, WEFT_ERR_ABORTED);
    assert_int_equal(wefti_os_pass_serve(&pass, token, 0, 2, place.until_ns, &watch), WEFT_ERR_ABORTED);
    assert_true(wefti_os_now_ns() - start_ns < 50 * WEFTI_SECOND_NS);
    wefti_os_pass_close(&pass);
    ledger_assert_same(&before);
}

static void test_a_server_that_leaves_is_told_apart(void **state)
{
    (void)state;
    meeting place = make_place(30 * WEFTI_SECOND_NS);
    wefti_os_pass pass;
    wefti_os_thread *thread;
    assert_int_equal(wefti_os_pass_open(&pass, place.name), WEFT_OK);
    assert_int_equal(wefti_os_thread_start(&thread, take, &place), WEFT_OK);
    assert_int_equal(wefti_os_pass_serve(&pass, token, 0, 1, 0, NULL), WEFT_ERR_TIMEOUT);
    wefti_os_sleep_ns(WEFTI_SECOND_NS / 5);
    wefti_os_pass_close(&pass);
    wefti_os_thread_join(thread);
    assert_int_equal(place.status, WEFT_ERR_PEER);
}

static void test_a_name_is_taken_once(void **state)
{
    (void)state;
    meeting place = make_place(0);
    wefti_os_pass first;
    wefti_os_pass second = {-1};
    assert_int_equal(wefti_os_pass_open(&first, place.name), WEFT_OK);
    assert_int_equal(wefti_os_pass_open(&second, place.name), WEFT_ERR_SYSTEM);
    wefti_os_pass_close(&second);
    wefti_os_pass_close(&first);
}

/* Open, serve one taker in another thread, close. The faults land on either side. */
static weft_status pass_once(void *context)
{
    const wefti_os_memory *memory = context;
    meeting place = {.token = token, .until_ns = wefti_os_now_ns() + WEFTI_SECOND_NS / 4, .descriptor = -1};
    WEFT_TRY(wefti_os_random(place.name, sizeof place.name));
    wefti_os_thread *thread;
    wefti_os_pass pass = {-1};
    WEFT_TRY(wefti_os_thread_start(&thread, take, &place));
    weft_status status = wefti_os_pass_open(&pass, place.name);
    if (status == WEFT_OK) {
        status = wefti_os_pass_serve(&pass, token, memory->descriptor, 1, place.until_ns, NULL);
    }
    wefti_os_pass_close(&pass);
    wefti_os_thread_join(thread);
    if (place.descriptor >= 0) {
        close(place.descriptor);
    }
    return status;
}

static void test_failing_calls(void **state)
{
    (void)state;
    wefti_os_memory memory = make_memory();
    assert_true(torture(pass_once, &memory) >= 12);
    wefti_os_memory_fini(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_takers_get_the_descriptor),
        cmocka_unit_test(test_strangers_are_dropped),
        cmocka_unit_test(test_silent_strangers_do_not_fill_the_room),
        cmocka_unit_test(test_other_users_take_no_place),
        cmocka_unit_test(test_nothing_is_taken_of_other_users),
        cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_a_watch_ends_a_wait),
        cmocka_unit_test(test_a_server_that_leaves_is_told_apart),
        cmocka_unit_test(test_a_name_is_taken_once),
        cmocka_unit_test(test_failing_calls),
    };
    return cmocka_run_group_tests_name("pass", tests, be_quiet, NULL);
}
