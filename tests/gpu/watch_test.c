/* Goal: in a world without a deadline a kernel's wait ends when another PE has ended, and the host is told who.
 * Method: two processes, each with a GPU of the fake driver. One waits on its stream for a word that the other, which
 * is killed, never writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/durations.h"
#include "os/os.h"
#include "support/check.h"
#include "support/crew.h"
#include "weft.h"

static weft_status create(weft_world **world, uint64_t **word)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_device_config device = WEFT_DEVICE_CONFIG_INIT;
    device.choice = WEFT_DEVICE_ORDINAL;
    device.heap_max_bytes = (size_t)32 << 20;
    config.heap_max_bytes = (size_t)1 << 20;
    config.deadline_ns = WEFT_FOREVER;
    config.device = &device;
    WEFT_TRY(weft_world_create(&config, world));
    WEFT_TRY(weft_device_malloc(*world, sizeof **word, (void **)word));
    WEFT_TRY(weft_uint64_p(*world, *word, 0, weft_world_pe(*world)));
    return weft_barrier(*world);
}

static void run_pe(const crew *c, int pe, void *context)
{
    weft_world *world;
    uint64_t *word;
    int culprit = -1;
    uint64_t start = wefti_os_now_ns();
    weft_status status = create(&world, &word);
    (void)context;
    crew_tell(c, pe, 0, status, start);
    if (pe == 1) {
        (void)pause();
        _exit(0);
    }
    start = wefti_os_now_ns();
    status = weft_signal_wait_until_on_stream(world, word, WEFT_CMP_EQ, 1, NULL);
    while (status == WEFT_OK && wefti_os_now_ns() - start < 30000 * WEFTI_MILLISECOND_NS) {
        wefti_os_sleep_ns(10 * WEFTI_MILLISECOND_NS);
        status = weft_world_fault(world, &culprit);
    }
    if (status == WEFT_ERR_PEER && culprit == 1) {
        status = weft_barrier(world); /* for its text */
    }
    crew_tell(c, pe, 1, status, start);
    (void)weft_world_destroy(world);
}

static void test_a_kernel_that_waits(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    crew c;
    crew_report r = {0};
    crew_start(&c, 2, &random, run_pe, NULL);
    for (int ready = 0; ready < 2; ready++) {
        CHECK_SAY(crew_hear(&c, &r, wefti_os_now_ns() + 30000 * WEFTI_MILLISECOND_NS) && r.status == WEFT_OK,
                  "PE %d: %s", r.pe, r.text);
    }
    wefti_os_sleep_ns(300 * WEFTI_MILLISECOND_NS);
    (void)kill(c.pids[1], SIGKILL);
    CHECK_SAY(crew_hear(&c, &r, wefti_os_now_ns() + 30000 * WEFTI_MILLISECOND_NS), "the kernel waits for ever");
    CHECK_SAY(r.pe == 0 && r.status == WEFT_ERR_PEER && text_names_pe(r.text, 1), "PE %d: %s: %s", r.pe,
              weft_status_name(r.status), r.text);
    crew_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECKED_TEST(test_a_kernel_that_waits)};
    (void)setenv("WEFT_LOG", "none", 1);
    (void)unsetenv("WEFT_BOOTSTRAP");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
