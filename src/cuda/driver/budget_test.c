/* Goal: claims of multiprocessors never add up to more than the device has, whoever asks at the same time; PEs and
 * later claims get parts; what a PE leaves behind is given back; processes that share a GPU count together. */
#include "cuda/driver/budget.h"

#include <pthread.h>
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

enum { DEVICE = 63, SMS = 132, MOST = SMS - SMS / 4, PES = 12, FEW = 2, ROUNDS = 100000 };

static weft_status join(wefti_cuda_budget *budget, int device, int sms, int *pes)
{
    const wefti_cuda_gpu gpu = {.device = device, .sms = sms, .all_sms = sms};
    return wefti_cuda_budget_join(budget, &gpu, pes);
}

static void test_quotas(void **state)
{
    (void)state;
    wefti_cuda_budget pe[PES];
    int pes = 0;
    int sum = 0;
    for (int i = 0; i < PES; i++) {
        assert_int_equal(join(&pe[i], DEVICE, SMS, &pes), WEFT_OK);
        assert_int_equal(pes, i + 1);
    }
    for (int claim = 0; claim < 3; claim++) { /* several teams, all PEs each */
        for (int i = 0; i < PES; i++) {
            const int got = wefti_cuda_budget_take_quota(&pe[i], 32);
            assert_true(got >= 1);
            assert_true(got <= SMS / 2 / PES);
            sum += got;
        }
    }
    assert_int_equal(wefti_cuda_budget_free(&pe[0]), SMS - sum);
    assert_int_equal(wefti_cuda_budget_take(&pe[3], SMS - sum + 1, "take"), WEFT_ERR_STATE);
    assert_int_equal(wefti_cuda_budget_take(&pe[3], SMS - sum, "take"), WEFT_OK);
    assert_int_equal(wefti_cuda_budget_take_quota(&pe[4], 32), 0);
    wefti_cuda_budget_give(&pe[3], 1000000); /* what it has, no more */
    wefti_cuda_budget_give(&pe[3], 1);
    for (int i = 0; i < PES; i++) {
        wefti_cuda_budget_leave(&pe[i]);
        wefti_cuda_budget_leave(&pe[i]);
    }
    assert_int_equal(join(&pe[0], DEVICE, SMS, &pes), WEFT_OK);
    assert_int_equal(pes, 1);
    assert_int_equal(wefti_cuda_budget_free(&pe[0]), SMS);
    assert_int_equal(wefti_cuda_budget_take_quota(&pe[0], 32), 32);
    assert_int_equal(wefti_cuda_budget_take_quota(&pe[0], 1000), (SMS - 32) / 2);
    wefti_cuda_budget_leave(&pe[0]);
}

/* Guests have equal shares of what is not claimed, but of three quarters at most; one that leaves without a word takes
 * its guests along. */
static void test_guests(void **state)
{
    (void)state;
    wefti_cuda_budget pe[2];
    int pes;
    assert_int_equal(join(&pe[0], DEVICE, SMS, &pes), WEFT_OK);
    assert_int_equal(join(&pe[1], DEVICE, SMS, &pes), WEFT_OK);
    wefti_cuda_budget_add_guest(&pe[0]);
    assert_int_equal(wefti_cuda_budget_share(&pe[0]), MOST);
    wefti_cuda_budget_add_guest(&pe[1]);
    wefti_cuda_budget_add_guest(&pe[1]);
    assert_int_equal(wefti_cuda_budget_share(&pe[0]), MOST / 3);
    assert_int_equal(wefti_cuda_budget_take(&pe[1], SMS - 3, "take"), WEFT_OK);
    assert_int_equal(wefti_cuda_budget_share(&pe[0]), 1);
    assert_int_equal(wefti_cuda_budget_take(&pe[1], 1, "take"), WEFT_OK);
    assert_int_equal(wefti_cuda_budget_share(&pe[0]), 0);
    wefti_cuda_budget_leave(&pe[1]);
    assert_int_equal(wefti_cuda_budget_share(&pe[0]), MOST);
    wefti_cuda_budget_remove_guest(&pe[0]);
    wefti_cuda_budget_remove_guest(&pe[0]);
    wefti_cuda_budget_add_guest(&pe[0]);
    wefti_cuda_budget_add_guest(&pe[0]);
    assert_int_equal(wefti_cuda_budget_share(&pe[0]), MOST / 2);
    wefti_cuda_budget_leave(&pe[0]);
}

static int in_use; /* atomic */
static int over; /* atomic */

/* On a device so small that two claims at once are too many. */
static void *claimer(void *argument)
{
    wefti_cuda_budget *budget = argument;
    for (int i = 0; i < ROUNDS; i++) {
        const int got = i % 2 == 0 ? wefti_cuda_budget_take_quota(budget, FEW)
                                   : (wefti_cuda_budget_take(budget, FEW, "take") == WEFT_OK ? FEW : 0);
        if (__atomic_add_fetch(&in_use, got, __ATOMIC_SEQ_CST) > FEW) {
            __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
        }
        __atomic_fetch_sub(&in_use, got, __ATOMIC_SEQ_CST);
        wefti_cuda_budget_give(budget, got);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    wefti_cuda_budget pe[THREADS];
    pthread_t threads[THREADS];
    int pes;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(join(&pe[i], DEVICE, FEW, &pes), WEFT_OK);
        assert_int_equal(pthread_create(&threads[i], NULL, claimer, &pe[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(over, 0);
    assert_int_equal(wefti_cuda_budget_free(&pe[0]), FEW);
    for (int i = 0; i < THREADS; i++) {
        wefti_cuda_budget_leave(&pe[i]);
    }
}

/* ---- processes that run on a GPU at the same time ---- */

static const char *name_of(void)
{
    static char name[64];
    (void)snprintf(name, sizeof name, "budget-test-%d", (int)getpid());
    return name;
}

/* Claims on its own, when it is told to go on, and says how many it got. */
typedef struct claimer_process {
    pid_t pid;
    int go[2];
    int said[2];
} claimer_process;

static void claim_in_child(const claimer_process *child, const char *name)
{
    const wefti_cuda_gpu gpu = {.device = DEVICE, .sms = SMS / 2, .all_sms = SMS, .name = name};
    wefti_cuda_budget pe;
    int pes = 0;
    char byte;
    int got = wefti_cuda_budget_join(&pe, &gpu, &pes) == WEFT_OK && pes == 1 ? 0 : -1;
    while (got >= 0 && read(child->go[0], &byte, 1) == 1) {
        got = byte == 'p' ? wefti_cuda_budget_take_quota(&pe, SMS)
                          : (wefti_cuda_budget_take(&pe, byte, "take") == WEFT_OK ? byte : 0);
        (void)!write(child->said[1], &got, sizeof got);
    }
    _exit(0);
}

static claimer_process start(const char *name)
{
    claimer_process child;
    assert_int_equal(pipe(child.go), 0);
    assert_int_equal(pipe(child.said), 0);
    child.pid = fork();
    assert_true(child.pid >= 0);
    if (child.pid == 0) {
        close(child.go[1]);
        claim_in_child(&child, name);
    }
    close(child.go[0]);
    close(child.said[1]);
    return child;
}

static int ask(const claimer_process *child, char what)
{
    int got = -1;
    assert_int_equal(write(child->go[1], &what, 1), 1);
    assert_int_equal(read(child->said[0], &got, sizeof got), sizeof got);
    return got;
}

static void end(claimer_process *child)
{
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    close(child->go[1]);
    close(child->said[0]);
}

/* Each process may use half of the GPU (MPS's share of it), and they share the GPU: neither its own half nor the whole
 * is claimed twice. A child is forked while its parent has claims, which are not the child's; and what one leaves that
 * is killed is had again. */
static void test_processes(void **state)
{
    (void)state;
    const char *name = name_of();
    const wefti_cuda_gpu gpu = {.device = DEVICE, .sms = SMS, .all_sms = SMS, .name = name};
    wefti_cuda_budget pe;
    int pes = 0;
    assert_int_equal(wefti_cuda_budget_join(&pe, &gpu, &pes), WEFT_OK);
    assert_int_equal(pes, 1);
    assert_int_equal(wefti_cuda_budget_take(&pe, 40, "take"), WEFT_OK);
    claimer_process a = start(name);
    claimer_process b = start(name);
    assert_int_equal(ask(&a, SMS / 2 + 1), 0); /* its half is all that it may use */
    assert_int_equal(ask(&a, 60), 60);
    assert_int_equal(ask(&b, 33), 0);
    assert_int_equal(ask(&b, 'p'), (SMS - 100) / 2 / 3); /* of the rest, as one of three PEs */
    assert_int_equal(wefti_cuda_budget_free(&pe), SMS - 105);
    assert_int_equal(wefti_cuda_budget_share(&pe), SMS - 105);
    assert_int_equal(wefti_cuda_budget_take(&pe, SMS - 104, "take"), WEFT_ERR_STATE);
    end(&a);
    assert_int_equal(wefti_cuda_budget_take(&pe, SMS - 104, "take"), WEFT_OK);
    end(&b);
    wefti_cuda_budget_leave(&pe);
    char path[128];
    (void)snprintf(path, sizeof path, "/dev/shm/weft-%u-%s", (unsigned)geteuid(), name);
    assert_int_equal(unlink(path), 0);
}

/* Another process that has stopped where it claims is named, and what cannot be shared is counted alone. */
static void test_stopped(void **state)
{
    (void)state;
    const char *name = name_of();
    const wefti_cuda_gpu gpu = {.device = DEVICE, .sms = SMS, .all_sms = SMS, .name = name};
    wefti_cuda_budget pe;
    wefti_os_rows other;
    int pes = 0;
    assert_int_equal(wefti_os_rows_open(&other, name), WEFT_OK);
    assert_int_equal(wefti_os_rows_lock(&other), 1);
    assert_int_equal(wefti_cuda_budget_join(&pe, &gpu, &pes), WEFT_OK);
    assert_int_equal(wefti_cuda_budget_take(&pe, 1, "take"), WEFT_ERR_TIMEOUT);
    assert_non_null(strstr(weft_last_error(), "another process of this user"));
    wefti_os_rows_close(&other);
    assert_int_equal(wefti_cuda_budget_take(&pe, 1, "take"), WEFT_OK);
    wefti_cuda_budget_leave(&pe);

    char path[128];
    (void)snprintf(path, sizeof path, "/dev/shm/weft-%u-%s", (unsigned)geteuid(), name);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(wefti_cuda_budget_join(&pe, &gpu, &pes), WEFT_OK);
    assert_int_equal(wefti_cuda_budget_take(&pe, SMS, "take"), WEFT_OK);
    wefti_cuda_budget_leave(&pe);
    assert_int_equal(unlink(path), 0);
}

static void test_devices(void **state)
{
    (void)state;
    wefti_cuda_budget budget = {0};
    int pes;
    wefti_cuda_budget_leave(&budget); /* never joined */
    assert_int_equal(join(&budget, WEFTI_CUDA_DEVICES_MAX, SMS, &pes), WEFT_ERR_UNSUPPORTED);
    assert_int_equal(join(&budget, -1, SMS, &pes), WEFT_ERR_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quotas),    cmocka_unit_test(test_guests),  cmocka_unit_test(test_threads),
        cmocka_unit_test(test_processes), cmocka_unit_test(test_stopped), cmocka_unit_test(test_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
