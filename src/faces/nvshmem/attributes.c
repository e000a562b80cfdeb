/* faces/nvshmem/attributes.c: how the PEs meet: unique ids, MPI's communicators, and what the environment says.
 *
 * A unique id of weft has more bytes than one of NVSHMEM. What it holds lies at its beginning, so that one with a
 * single address fits, and the rest is zero. */
#include <dlfcn.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "faces/nvshmem/setup.h"

/* ---- attributes ---- */

/* The version of a struct is the upper half of its first word, the lower half its size. Older programs may have
 * left it out. */
static int version_of(int word, size_t size)
{
    return (size_t)(word & 0xffff) == size ? word >> 16 : 0;
}

int nvshmemx_set_attr_uniqueid_args(const int myrank, const int nranks, const nvshmemx_uniqueid_t *uniqueid,
                                    nvshmemx_init_attr_t *attributes)
{
    if (uniqueid == NULL || attributes == NULL || nranks < 1 || myrank < 0 || myrank >= nranks) {
        return wefti_nv_refuse(
            __func__, NVSHMEMX_ERROR_INVALID_VALUE,
            "give arguments 'uniqueid' and 'attributes' that are not NULL, 'nranks' of at least 1, and "
            "'myrank' of 0 to nranks - 1");
    }
    attributes->args.uid_args.version = WEFT_NVSHMEM_VERSIONED(1, nvshmemx_uniqueid_args_t);
    attributes->args.uid_args.id = (nvshmemx_uniqueid_t *)(uintptr_t)uniqueid;
    attributes->args.uid_args.myrank = myrank;
    attributes->args.uid_args.nranks = nranks;
    return NVSHMEMX_SUCCESS;
}

int nvshmemx_set_attr_mpi_comm_args(void *mpi_comm, nvshmemx_init_attr_t *attributes)
{
    if (mpi_comm == NULL || attributes == NULL) {
        return wefti_nv_refuse(
            __func__, NVSHMEMX_ERROR_INVALID_VALUE,
            "give arguments 'mpi_comm', the address of a communicator, and 'attributes', neither NULL");
    }
    attributes->mpi_comm = mpi_comm;
    return NVSHMEMX_SUCCESS;
}

/* ---- unique ids ---- */

static int fits(const weft_uid *uid)
{
    for (size_t i = sizeof((nvshmemx_uniqueid_t *)0)->internal; i < sizeof uid->bytes; i++) {
        if (uid->bytes[i] != 0) {
            return 0;
        }
    }
    return 1;
}

/* The first interface that other hosts may reach, else the first. */
static int name_interface(char name[IF_NAMESIZE])
{
    struct ifaddrs *all;
    int rank = 0;
    if (getifaddrs(&all) != 0) {
        return 0;
    }
    for (const struct ifaddrs *one = all; one != NULL; one = one->ifa_next) {
        const int family = one->ifa_addr == NULL ? 0 : one->ifa_addr->sa_family;
        if ((one->ifa_flags & IFF_UP) == 0 || (family != AF_INET && family != AF_INET6)) {
            continue;
        }
        const int own = ((one->ifa_flags & IFF_LOOPBACK) == 0 ? 2 : 0) + (family == AF_INET ? 2 : 1);
        if (own > rank) {
            rank = own;
            (void)snprintf(name, IF_NAMESIZE, "%s", one->ifa_name);
        }
    }
    freeifaddrs(all);
    return rank > 0;
}

static weft_status make_short(weft_uid *uid)
{
    char name[IF_NAMESIZE];
    const char *interface = wefti_nv_variable("BOOTSTRAP_UID_SOCK_IFNAME");
    weft_status status = weft_uid_create(interface, uid);
    if (status == WEFT_OK && !fits(uid) && name_interface(name)) {
        (void)weft_uid_discard(uid);
        status = weft_uid_create(name, uid);
    }
    return status;
}

int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t *uniqueid)
{
    weft_uid uid;
    if (uniqueid == NULL) {
        return wefti_nv_refuse(__func__, NVSHMEMX_ERROR_INVALID_VALUE, "argument 'uniqueid' is NULL");
    }
    weft_status status = make_short(&uid);
    if (status != WEFT_OK) {
        return wefti_nv_refuse(__func__, NVSHMEMX_ERROR_INTERNAL, weft_last_error());
    }
    if (!fits(&uid)) {
        (void)weft_uid_discard(&uid);
        return wefti_nv_refuse(__func__, NVSHMEMX_ERROR_INTERNAL,
                               "too many addresses for an id; name one interface in NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME");
    }
    uniqueid->version = WEFT_NVSHMEM_VERSIONED(1, nvshmemx_uniqueid_t);
    memcpy(uniqueid->internal, uid.bytes, sizeof uniqueid->internal);
    return NVSHMEMX_SUCCESS;
}

static int read_uid(const char *call, const nvshmemx_init_attr_t *attributes, wefti_nv_meeting *meeting)
{
    const nvshmemx_uniqueid_args_t *const args = attributes == NULL ? NULL : &attributes->args.uid_args;
    if (args == NULL || args->id == NULL || args->nranks < 1 || args->myrank < 0 || args->myrank >= args->nranks) {
        return wefti_nv_refuse(
            call, NVSHMEMX_ERROR_INVALID_VALUE,
            "NVSHMEMX_INIT_WITH_UNIQUEID needs attributes with an id, a rank and the number of ranks; "
            "nvshmemx_set_attr_uniqueid_args puts them there");
    }
    meeting->bootstrap = WEFT_BOOTSTRAP_UID;
    meeting->pe = args->myrank;
    meeting->pes = args->nranks;
    memset(&meeting->uid, 0, sizeof meeting->uid);
    memcpy(meeting->uid.bytes, args->id->internal, sizeof args->id->internal);
    return NVSHMEMX_SUCCESS;
}

/* ---- which way of meeting ---- */

/* The PEs of the OpenSHMEM that the program has loaded and initialised. */
static int meet_by_shmem(const char *call, wefti_nv_meeting *meeting)
{
    if (dlsym(RTLD_DEFAULT, "shmem_my_pe") == NULL) {
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_NOT_SUPPORTED,
                               "NVSHMEMX_INIT_WITH_SHMEM and NVSHMEM_BOOTSTRAP=SHMEM take the OpenSHMEM library of the "
                               "program, which has none; link it with one and call shmem_init before");
    }
    meeting->bootstrap = WEFT_BOOTSTRAP_SHMEM;
    return NVSHMEMX_SUCCESS;
}

/* The processes of a communicator (an MPI_Comm *; NULL: MPI_COMM_WORLD) of the MPI that the program has loaded. */
static int meet_by_mpi(void *comm, wefti_nv_meeting *meeting)
{
    meeting->bootstrap = WEFT_BOOTSTRAP_MPI;
    meeting->mpi_comm = comm;
    return NVSHMEMX_SUCCESS;
}

/* Without a flag NVSHMEM_BOOTSTRAP says how the PEs meet; if it is not set, the launcher is used. */
static int read_variable(const char *call, wefti_nv_meeting *meeting)
{
    const char *said = wefti_nv_variable("BOOTSTRAP");
    meeting->bootstrap = WEFT_BOOTSTRAP_AUTO;
    if (said != NULL && strcasecmp(said, "MPI") == 0) {
        return meet_by_mpi(NULL, meeting);
    }
    if (said != NULL && strcasecmp(said, "SHMEM") == 0) {
        return meet_by_shmem(call, meeting);
    }
    if (said == NULL || strcasecmp(said, "PMI") == 0) { /* a launcher's: weft knows which one it is */
        return NVSHMEMX_SUCCESS;
    }
    char cause[256];
    (void)snprintf(
        cause, sizeof cause,
        "NVSHMEM_BOOTSTRAP is \"%.60s\"; without attributes it can be PMI (what the launcher offers), MPI or "
        "SHMEM; WEFT_BOOTSTRAP names weft's",
        said);
    return wefti_nv_refuse(call, NVSHMEMX_ERROR_NOT_SUPPORTED, cause);
}

/* By a communicator of MPI. What mpi_comm is for a program's own plugin only that knows: in PyTorch's world a process
 * group. NVSHMEM's, in all versions, has mpi in its name. */
static int meet_by_communicator(const char *call, const nvshmemx_init_attr_t *attributes, wefti_nv_meeting *meeting)
{
    const char *plugin = wefti_nv_variable("BOOTSTRAP_MPI_PLUGIN");
    const char *slash = plugin != NULL ? strrchr(plugin, '/') : NULL;
    if (attributes == NULL || attributes->mpi_comm == NULL) {
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_INVALID_VALUE,
                               "NVSHMEMX_INIT_WITH_MPI_COMM needs attributes with the address of a communicator");
    }
    if (plugin != NULL && strstr(slash != NULL ? slash : plugin, "mpi") == NULL) {
        char cause[320];
        (void)snprintf(cause, sizeof cause,
                       "NVSHMEM_BOOTSTRAP_MPI_PLUGIN is \"%.60s\", which is not loaded here, and whose mpi_comm may be "
                       "no communicator; give NVSHMEMX_INIT_WITH_UNIQUEID an id that one PE has sent to all, or unset "
                       "the variable if mpi_comm is one of MPI",
                       plugin);
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_NOT_SUPPORTED, cause);
    }
    return meet_by_mpi(attributes->mpi_comm, meeting);
}

int wefti_nv_meeting_read(const char *call, unsigned flags, const nvshmemx_init_attr_t *attributes,
                          wefti_nv_meeting *meeting)
{
    meeting->device = -1;
    if (attributes != NULL && version_of(attributes->args.version, sizeof attributes->args) >= 2) {
        meeting->device = attributes->args.cuda_device_id;
        if (meeting->device < -1) {
            return wefti_nv_refuse(call, NVSHMEMX_ERROR_INVALID_VALUE,
                                   "cuda_device_id is neither a GPU's number nor -1, which means the current one");
        }
    }
    switch (flags) {
    case 0:
        return read_variable(call, meeting);
    case NVSHMEMX_INIT_WITH_UNIQUEID:
        return read_uid(call, attributes, meeting);
    case NVSHMEMX_INIT_WITH_MPI_COMM:
        return meet_by_communicator(call, attributes, meeting);
    case NVSHMEMX_INIT_WITH_SHMEM:
        return meet_by_shmem(call, meeting);
    default:
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_NOT_SUPPORTED,
                               "of the flags only NVSHMEMX_INIT_WITH_UNIQUEID, NVSHMEMX_INIT_WITH_MPI_COMM and "
                               "NVSHMEMX_INIT_WITH_SHMEM are supported, one at a time");
    }
}
