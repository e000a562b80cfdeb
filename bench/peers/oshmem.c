/* A peer: the measurements of bench/host.c against another OpenSHMEM library, through its public API alone. Run it as
 * `oshrun -n 2 --bind-to core oshmem [--json FILE] [--blocks N]`. */
#include "peers/face_oshmem.h"

#include "suite/bulk.h"
#include "suite/pairs.h"
#include "suite/words.h"

int main(int argc, char **argv)
{
    static suite s;
    if (suite_open(&s, argc, argv) != 0) {
        return 1;
    }
    int failed = suite_run_words(&s);
    failed |= suite_run_pairs(&s, NULL);
    failed |= suite_run_bulk(&s, 0);
    return suite_close(&s, failed);
}
