/* Goal: claims of multiprocessors never add up to more than the device has, whoever asks at the same time; PEs and
 * later claims get parts; what a PE leaves behind is given back. */
#include "cuda/driver/budget.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { DEVICE = 63, SMS = 132, MOST = SMS - SMS / 4, PES = 12, FEW = 2, ROUNDS = 100000 };

static void test_parts(void **state)
{
    (void)state;
    wefti_cuda_budget pe[PES];
    int pes = 0;
    int sum = 0;
    for (int i = 0; i < PES; i++) {
        assert_int_equal(wefti_cuda_budget_join(&pe[i], DEVICE, SMS, &pes), WEFT_OK);
        assert_int_equal(pes, i + 1);
    }
    for (int claim = 0; claim < 3; claim++) { /* several teams, all PEs each */
        for (int i = 0; i < PES; i++) {
            const int got = wefti_cuda_budget_take_part(&pe[i], 32);
            assert_true(got >= 1);
            assert_true(got <= SMS / 2 / PES);
            sum += got;
        }
    }
    assert_int_equal(wefti_cuda_budget_free(&pe[0]), SMS - sum);
    assert_int_equal(wefti_cuda_budget_take(&pe[3], SMS - sum + 1, "take"), WEFT_ERR_STATE);
    assert_int_equal(wefti_cuda_budget_take(&pe[3], SMS - sum, "take"), WEFT_OK);
    assert_int_equal(wefti_cuda_budget_take_part(&pe[4], 32), 0);
    wefti_cuda_budget_give(&pe[3], 1000000); /* what it has, no more */
    wefti_cuda_budget_give(&pe[3], 1);
    for (int i = 0; i < PES; i++) {
        wefti_cuda_budget_leave(&pe[i]);
        wefti_cuda_budget_leave(&pe[i]);
    }
    assert_int_equal(wefti_cuda_budget_join(&pe[0], DEVICE, SMS, &pes), WEFT_OK);
    assert_int_equal(pes, 1);
    assert_int_equal(wefti_cuda_budget_free(&pe[0]), SMS);
    assert_int_equal(wefti_cuda_budget_take_part(&pe[0], 32), 32);
    assert_int_equal(wefti_cuda_budget_take_part(&pe[0], 1000), (SMS - 32) / 2);
    wefti_cuda_budget_leave(&pe[0]);
}

/* Guests have equal shares of what is not claimed, but of three quarters at most; one that leaves without a word takes
 * its guests along. */
static void test_guests(void **state)
{
    (void)state;
    wefti_cuda_budget pe[2];
    int pes;
    assert_int_equal(wefti_cuda_budget_join(&pe[0], DEVICE, SMS, &pes), WEFT_OK);
    assert_int_equal(wefti_cuda_budget_join(&pe[1], DEVICE, SMS, &pes), WEFT_OK);
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
        const int got = i % 2 == 0 ? wefti_cuda_budget_take_part(budget, FEW)
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
        assert_int_equal(wefti_cuda_budget_join(&pe[i], DEVICE, FEW, &pes), WEFT_OK);
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

static void test_devices(void **state)
{
    (void)state;
    wefti_cuda_budget budget = {0};
    int pes;
    wefti_cuda_budget_leave(&budget); /* never joined */
    assert_int_equal(wefti_cuda_budget_join(&budget, WEFTI_CUDA_DEVICES_MAX, SMS, &pes), WEFT_ERR_UNSUPPORTED);
    assert_int_equal(wefti_cuda_budget_join(&budget, -1, SMS, &pes), WEFT_ERR_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_guests),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
