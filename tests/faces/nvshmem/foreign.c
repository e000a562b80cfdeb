/* A program that is linked with NVIDIA's device library is told so by its init, and nothing of it runs; so is one whose
 * host has called an init of ours, at its first collective launch.
 * Method: the calls of that library to the host's, by their names and forms, and what they write to standard error. */
#include <unistd.h>

#include "faces/nvshmem/check.h"

extern int nvshmem_selected_device_transport;
int nvshmemid_hostlib_init_attr(int requested, int *provided, unsigned int flags, nvshmemx_init_attr_t *attributes,
                                nvshmemi_version_t version, int (*announce)(void **state, void **transport_state));
void nvshmemid_hostlib_finalize(void *state, void *transport_state);
int nvshmemid_init_status(void);

static char written[4096];

/* Standard error into `written`, between the two calls. */
static int begin_reading(FILE *into)
{
    (void)fflush(stderr);
    const int before = dup(2);
    CHECK(before >= 0 && dup2(fileno(into), 2) == 2);
    return before;
}

static void end_reading(FILE *from, int before)
{
    (void)fflush(stderr);
    CHECK(dup2(before, 2) == 2);
    (void)close(before);
    rewind(from);
    written[fread(written, 1, sizeof written - 1, from)] = '\0';
    (void)fclose(from);
}

static int announced;

static int announce(void **state, void **transport_state)
{
    (void)state;
    (void)transport_state;
    announced = 1;
    return 0;
}

static void init_of_a_foreign_program(void)
{
    const nvshmemi_version_t version = {3, 4, 5};
    int provided = -1;
    FILE *const file = tmpfile();
    const int before = begin_reading(file);
    const int result = nvshmemid_hostlib_init_attr(NVSHMEM_THREAD_SERIALIZED, &provided, 0, NULL, version, announce);
    end_reading(file, before);
    CHECK(result == NVSHMEMX_ERROR_NOT_SUPPORTED && provided == -1 && !announced);
    CHECK_SAY(strstr(written, "NVIDIA's device library 3.4.5") != NULL &&
                  strstr(written, "compile and link it again") != NULL,
              "it says: %s", written);
    CHECK(nvshmemx_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED);
    CHECK(nvshmemid_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED);
    nvshmemid_hostlib_finalize(NULL, NULL);
    CHECK(nvshmem_selected_device_transport == 0);
}

/* The host's init is ours, as where a program has two libraries. It is told once, and ours goes on. */
static void launch_of_a_foreign_library(void)
{
    nvshmem_init();
    for (int i = 0; i < 2; i++) {
        FILE *const file = tmpfile();
        const int before = begin_reading(file);
        CHECK(nvshmemid_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED);
        end_reading(file, before);
        CHECK_SAY((strstr(written, "NVIDIA's device library") != NULL) == (i == 0), "call %d says: %s", i, written);
    }
    nvshmemid_hostlib_finalize(NULL, NULL);
    int *const to = ZEROED(int, 1);
    nvshmem_int_p(to, 7, (nvshmem_my_pe() + 1) % nvshmem_n_pes());
    nvshmem_barrier_all();
    CHECK(*to == 7);
    nvshmem_free(to);
}

int main(void)
{
    init_of_a_foreign_program();
    launch_of_a_foreign_library();
    return check_end();
}
