/* sim/each.c: support/each.c for simulations: the PEs are fibers that the running one starts. */
#include <stdlib.h>

#include "os/os.h"
#include "support/check.h"
#include "support/pes.h"

typedef struct one_fiber {
    wefti_os_thread *thread;
    int pe;
    void (*body)(int pe, void *context);
    void *context;
} one_fiber;

static void run_one(void *argument)
{
    one_fiber *one = argument;
    one->body(one->pe, one->context);
}

void pes_each(int pes, void (*body)(int pe, void *context), void *context)
{
    one_fiber fibers[PES_MAX];
    for (int pe = 0; pe < pes; pe++) {
        fibers[pe] = (one_fiber){.pe = pe, .body = body, .context = context};
        if (wefti_os_thread_start(&fibers[pe].thread, run_one, &fibers[pe]) != WEFT_OK) {
            abort(); /* the others would wait for it */
        }
    }
    for (int pe = 0; pe < pes; pe++) {
        wefti_os_thread_join(fibers[pe].thread);
    }
}
