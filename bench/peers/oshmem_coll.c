/* A peer: the measurements of bench/coll.c against another OpenSHMEM library, through its public API alone. Run it as
 * `oshrun -n N [--bind-to core] oshmem_coll [--json FILE] [--blocks N]`. */
#include "peers/face_oshmem.h"

#include "peers/coll_oshmem.h"

#include "suite/coll.h"

int main(int argc, char **argv)
{
    static suite s;
    if (suite_open(&s, argc, argv) != 0) {
        return 1;
    }
    return suite_close(&s, suite_run_coll(&s, 0));
}
