/* bootstrap/shmem/shmem.c: the PEs of the OpenSHMEM library that the program has loaded and initialised.
 *
 * It uses calls that all versions of OpenSHMEM have and that need none of its types: each PE puts its contribution
 * where the others read it. */
#include <string.h>

#include "base/error.h"
#include "base/library.h"
#include "bootstrap/collective/collective.h"

typedef struct shmem {
    int (*my_pe)(void);
    int (*n_pes)(void);
    void *(*alloc)(size_t bytes);
    void (*free)(void *memory);
    void (*barrier_all)(void);
    void (*getmem)(void *to, const void *from, size_t bytes, int pe);
    int pes;
} shmem;

static weft_status find(shmem *s)
{
    if (!wefti_library_find_loaded(NULL, "shmem_my_pe", &s->my_pe) ||
        !wefti_library_find_loaded(NULL, "shmem_n_pes", &s->n_pes) ||
        !wefti_library_find_loaded(NULL, "shmem_malloc", &s->alloc) ||
        !wefti_library_find_loaded(NULL, "shmem_free", &s->free) ||
        !wefti_library_find_loaded(NULL, "shmem_barrier_all", &s->barrier_all) ||
        !wefti_library_find_loaded(NULL, "shmem_getmem", &s->getmem)) {
        return wefti_error(
            WEFT_ERR_UNSUPPORTED,
            "the bootstrap \"shmem\" takes the OpenSHMEM library that the program has loaded, and it has "
            "none: link the program with one, and call shmem_init before");
    }
    return WEFT_OK;
}

static int allgather(void *context, const void *mine, void *all, size_t bytes)
{
    const shmem *s = context;
    char *said = s->alloc(bytes);
    if (said == NULL) {
        return 1; /* on all PEs: allocation is collective */
    }
    memcpy(said, mine, bytes);
    s->barrier_all();
    for (int pe = 0; pe < s->pes; pe++) {
        s->getmem((char *)all + (size_t)pe * bytes, said, bytes, pe);
    }
    s->barrier_all();
    s->free(said);
    return 0;
}

static weft_status shmem_open(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    shmem s = {0};
    WEFT_TRY(find(&s));
    s.pes = s.n_pes();
    const wefti_collective collective = {
        .name = "OpenSHMEM", .pe = s.my_pe(), .pes = s.pes, .context = &s, .allgather = allgather};
    if (collective.pe < 0 || collective.pes < 1) {
        return wefti_error(WEFT_ERR_STATE, "OpenSHMEM is not initialised: call shmem_init before");
    }
    return wefti_collective_open(&collective, config, bootstrap);
}

const wefti_bootstrap_ops wefti_bootstrap_shmem = {.name = "shmem", .open = shmem_open};
