/* Collectives, barrier and lock, beside the copying that they need. Run it as `weftrun -n N [--bind] bench_coll
 * [--json FILE] [--blocks N]`. See bench/README.md. */
#include "suite/face_weft.h"

#include "suite/coll_weft.h"

#include "suite/coll.h"

int main(int argc, char **argv)
{
    static suite s;
    if (suite_open(&s, argc, argv) != 0) {
        return 1;
    }
    return suite_close(&s, suite_run_coll(&s, 1));
}
