/* sim/each.c: support/each.c for simulations: the PEs are strands that the running one starts. */
#include <stdlib.h>

#include "os/os.h"
#include "support/check.h"
#include "support/pes.h"

typedef struct one_strand {
    wefti_os_thread *thread;
    int pe;
    void (*body)(int pe, void *context);
    void *context;
} one_strand;

static void run_one(void *argument)
{
    one_strand *one = argument;
    one->body(one->pe, one->context);
}

void pes_each(int pes, void (*body)(int pe, void *context), void *context)
{
    one_strand strands[PES_MAX];
    for (int pe = 0; pe < pes; pe++) {
        strands[pe] = (one_strand){.pe = pe, .body = body, .context = context};
        if (wefti_os_thread_start(&strands[pe].thread, run_one, &strands[pe]) != WEFT_OK) {
            abort(); /* the others would wait for it */
        }
    }
    for (int pe = 0; pe < pes; pe++) {
        wefti_os_thread_join(strands[pe].thread);
    }
}
