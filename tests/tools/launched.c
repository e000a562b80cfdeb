/* What launchers start in tests/tools/launchers.sh: a process that meets the others and checks that they are there.
 * Usage: launched [MODE [LIBRARY]]
 *   world          a world as the environment says; twice (the default)
 *   child PROGRAM  PE 0 starts another program, which must not be taken for PE 0
 *   parts          worlds of the even and the odd processes of the job
 *   mpi LIBRARY    by the MPI that the process has loaded and initialised, its world's communicator
 *   auto LIBRARY   the same, and what the environment says
 *   shmem LIBRARY  by OpenSHMEM
 * Exits with 3 when no world comes about, 4 where a library cannot be loaded. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "weft.h"

#define FAIL(...) (fprintf(stderr, __VA_ARGS__), exit(1))

static weft_world *create(const weft_world_config *config)
{
    weft_world *world;
    if (weft_world_create(config, &world) != WEFT_OK) {
        fprintf(stderr, "no world: %s\n", weft_last_error());
        exit(3);
    }
    return world;
}

/* Each PE reads what the next one says that it is. */
static void check(weft_world *world, int pes)
{
    uint64_t *place;
    uint64_t read = 0;
    const int me = weft_world_pe(world);
    const int next = (me + 1) % weft_world_pes(world);
    if (pes != 0 && weft_world_pes(world) != pes) {
        FAIL("a world of %d PEs in place of one of %d\n", weft_world_pes(world), pes);
    }
    if (weft_malloc(world, sizeof *place, (void **)&place) != WEFT_OK) {
        FAIL("%s\n", weft_last_error());
    }
    *place = (uint64_t)me + 100;
    if (weft_barrier(world) != WEFT_OK || weft_getmem(world, &read, place, sizeof read, next) != WEFT_OK ||
        weft_barrier(world) != WEFT_OK) {
        FAIL("%s\n", weft_last_error());
    }
    if (read != (uint64_t)next + 100) {
        FAIL("PE %d says that it is PE %d\n", next, (int)read - 100);
    }
    if (me == 0) {
        printf("a world of %d\n", weft_world_pes(world));
    }
    if (weft_world_destroy(world) != WEFT_OK) {
        FAIL("%s\n", weft_last_error());
    }
}

static void *load(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(4);
    }
    return handle;
}

static void call(void *handle, const char *name, int takes_arguments)
{
    void *symbol = dlsym(handle, name);
    int (*two)(int *count, char ***arguments);
    void (*none)(void);
    if (symbol == NULL) {
        exit(4);
    }
    memcpy(&two, &symbol, sizeof symbol);
    memcpy(&none, &symbol, sizeof symbol);
    if (takes_arguments) {
        (void)two(NULL, NULL);
    } else {
        none();
    }
}

static void run_beside(weft_world_config *config, int pes, const char *library, const char *first, const char *last)
{
    void *handle = load(library);
    call(handle, first, strncmp(first, "MPI", 3) == 0);
    check(create(config), pes);
    config->name = "second";
    check(create(config), pes);
    (void)fflush(stdout);
    call(handle, last, 0);
}

/* The program says why it is not PE 0, and is a world of one if it is told so. */
static void run_child(const weft_world_config *config, const char *program)
{
    char command[1024];
    weft_world *world = create(config);
    if (weft_world_pe(world) == 0) {
        (void)snprintf(command, sizeof command, "%s world 2>&1 | grep -q inherited", program);
        if (system(command) != 0) {
            FAIL("a program that a PE started was not told that it had inherited the launcher's variables\n");
        }
        (void)snprintf(command, sizeof command, "WEFT_BOOTSTRAP=self %s world 1", program);
        if (system(command) != 0) {
            FAIL("a program that a PE started was no world of one\n");
        }
    }
    check(world, 0);
}

static void run_parts(weft_world_config *config)
{
    const char *rank_text = getenv("PMI_RANK") != NULL ? getenv("PMI_RANK") : getenv("PMIX_RANK");
    const char *size_text = getenv("PMI_SIZE") != NULL ? getenv("PMI_SIZE") : getenv("OMPI_COMM_WORLD_SIZE");
    const int rank = atoi(rank_text);
    const int size = atoi(size_text);
    config->name = rank % 2 == 0 ? "even" : "odd";
    config->pe = rank / 2;
    config->pes = (size + 1 - rank % 2) / 2;
    check(create(config), config->pes);
}

int main(int count, char **arguments)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    const char *mode = count > 1 ? arguments[1] : "world";
    const char *what = count > 2 ? arguments[2] : "";
    const int pes = count > 3 ? atoi(arguments[3]) : 0;
    if (strcmp(mode, "child") == 0) {
        run_child(&config, what);
    } else if (strcmp(mode, "parts") == 0) {
        run_parts(&config);
    } else if (strcmp(mode, "mpi") == 0 || strcmp(mode, "auto") == 0) {
        config.bootstrap = mode[0] == 'm' ? WEFT_BOOTSTRAP_MPI : WEFT_BOOTSTRAP_AUTO;
        run_beside(&config, pes, what, "MPI_Init", "MPI_Finalize");
    } else if (strcmp(mode, "shmem") == 0) {
        config.bootstrap = WEFT_BOOTSTRAP_SHMEM;
        run_beside(&config, pes, what, "shmem_init", "shmem_finalize");
    } else {
        check(create(&config), atoi(what));
        check(create(&config), atoi(what));
    }
    return 0;
}
