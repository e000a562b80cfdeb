/* bootstrap/mpi/mpi.c: the processes of a communicator of the MPI that the program has loaded and initialised.
 *
 * Nothing is linked, since the handles of the implementations differ: Open MPI's are addresses of objects that it
 * exports, those of MPICH and its kin are numbers of the ABI that they have in common. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/library.h"
#include "bootstrap/collective/collective.h"
#include "bootstrap/mpi/mpi.h"

/* MPICH's ABI. */
#define MPICH_COMM_WORLD 0x44000000
#define MPICH_BYTE 0x4c00010d

#define VERSION_BYTES 16384 /* MPI_MAX_LIBRARY_VERSION_STRING is less everywhere */
#define THREAD_SERIALIZED 2 /* MPI_THREAD_SERIALIZED of both */

typedef struct mpi_of_addresses { /* Open MPI: handles are pointers */
    int (*comm_rank)(void *comm, int *rank);
    int (*comm_size)(void *comm, int *size);
    int (*allgather)(const void *mine, int count, void *type, void *all, int each, void *all_type, void *comm);
    void *comm;
    void *byte;
} mpi_of_addresses;

typedef struct mpi_of_numbers { /* MPICH: handles are numbers */
    int (*comm_rank)(int comm, int *rank);
    int (*comm_size)(int comm, int *size);
    int (*allgather)(const void *mine, int count, int type, void *all, int each, int all_type, int comm);
    int comm;
} mpi_of_numbers;

typedef struct mpi {
    mpi_of_addresses addresses; /* their `byte` is NULL where handles are numbers */
    mpi_of_numbers numbers;
} mpi;

/* Find a symbol among those of the program, or in an MPI library that a part of it has loaded for itself, as Python's
 * modules do. */
static int find_symbol(const char *name, void *function)
{
    static const char *const sonames[] = {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12"};
    for (size_t i = 0; i < sizeof sonames / sizeof *sonames; i++) {
        if (wefti_library_find_loaded(sonames[i], name, function)) {
            return 1;
        }
    }
    return 0;
}

static int asks_yes(const char *name)
{
    int (*ask)(int *flag);
    int flag = 0;
    return find_symbol(name, &ask) && ask(&flag) == 0 && flag;
}

int wefti_mpi_is_up(void)
{
    return asks_yes("MPI_Initialized") && !asks_yes("MPI_Finalized");
}

static weft_status check_state(void)
{
    int (*ask)(int *flag);
    if (!find_symbol("MPI_Initialized", &ask)) {
        return wefti_error(WEFT_ERR_UNSUPPORTED,
                           "the bootstrap \"mpi\" takes the MPI that the program has loaded, and it has none: link the "
                           "program with one, or load it so that its symbols are seen by all (RTLD_GLOBAL)");
    }
    if (!wefti_mpi_is_up()) {
        return wefti_error(WEFT_ERR_STATE, "MPI is not initialised, or is finalised: call MPI_Init before");
    }
    int (*level)(int *provided);
    int provided = THREAD_SERIALIZED;
    if (find_symbol("MPI_Query_thread", &level) && level(&provided) == 0 && provided < THREAD_SERIALIZED &&
        !asks_yes("MPI_Is_thread_main")) {
        return wefti_error(WEFT_ERR_STATE,
                           "MPI was initialised for one thread, and this is another: call MPI_Init_thread with "
                           "MPI_THREAD_SERIALIZED, or create the world in MPI's thread");
    }
    return WEFT_OK;
}

/* Whether handles are numbers, by what the library says of itself. */
static weft_status check_kin(void)
{
    static const char *const kin[] = {"MPICH", "Intel", "MVAPICH", "Cray"};
    int (*version)(char *text, int *length);
    char text[VERSION_BYTES] = "";
    int length = 0;
    if (find_symbol("MPI_Get_library_version", &version)) {
        (void)version(text, &length);
        text[sizeof text - 1] = '\0';
    }
    for (size_t i = 0; i < sizeof kin / sizeof *kin; i++) {
        if (strstr(text, kin[i]) != NULL) {
            return WEFT_OK;
        }
    }
    text[strcspn(text, "\r\n")] = '\0';
    return wefti_error(WEFT_ERR_UNSUPPORTED,
                       "the program's MPI, \"%.80s\", is neither Open MPI nor of MPICH's ABI: compile "
                       "examples/bootstrap_plugin/mpi.c with its mpicc and name the result in WEFT_BOOTSTRAP_PLUGIN",
                       text);
}

static weft_status find(const void *comm, mpi *m)
{
    if (!find_symbol("MPI_Comm_rank", &m->addresses.comm_rank) ||
        !find_symbol("MPI_Comm_size", &m->addresses.comm_size) ||
        !find_symbol("MPI_Allgather", &m->addresses.allgather)) {
        return wefti_error(WEFT_ERR_UNSUPPORTED, "the program's MPI lacks MPI_Comm_rank, MPI_Comm_size or "
                                                 "MPI_Allgather");
    }
    if (find_symbol("ompi_mpi_byte", &m->addresses.byte) && find_symbol("ompi_mpi_comm_world", &m->addresses.comm)) {
        m->addresses.comm = comm != NULL ? *(void *const *)comm : m->addresses.comm;
        return WEFT_OK;
    }
    m->addresses.byte = NULL;
    WEFT_TRY(check_kin());
    (void)find_symbol("MPI_Comm_rank", &m->numbers.comm_rank);
    (void)find_symbol("MPI_Comm_size", &m->numbers.comm_size);
    (void)find_symbol("MPI_Allgather", &m->numbers.allgather);
    m->numbers.comm = comm != NULL ? *(const int *)comm : MPICH_COMM_WORLD;
    return WEFT_OK;
}

static int allgather(void *context, const void *mine, void *all, size_t bytes)
{
    const mpi *m = context;
    const int count = (int)bytes; /* of a record: a few hundred */
    return m->addresses.byte != NULL
               ? m->addresses.allgather(mine, count, m->addresses.byte, all, count, m->addresses.byte,
                                        m->addresses.comm)
               : m->numbers.allgather(mine, count, MPICH_BYTE, all, count, MPICH_BYTE, m->numbers.comm);
}

static weft_status mpi_open(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    mpi m = {0};
    wefti_collective collective = {.name = "MPI's communicator", .context = &m, .allgather = allgather};
    WEFT_TRY(check_state());
    WEFT_TRY(find(config->mpi_comm, &m));
    const int error = m.addresses.byte != NULL ? m.addresses.comm_rank(m.addresses.comm, &collective.pe) |
                                                     m.addresses.comm_size(m.addresses.comm, &collective.pes)
                                               : m.numbers.comm_rank(m.numbers.comm, &collective.pe) |
                                                     m.numbers.comm_size(m.numbers.comm, &collective.pes);
    if (error != 0) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "MPI does not know the communicator: config.mpi_comm is the address of an MPI_Comm");
    }
    return wefti_collective_open(&collective, config, bootstrap);
}

const wefti_bootstrap_ops wefti_bootstrap_mpi = {.name = "mpi", .open = mpi_open};
