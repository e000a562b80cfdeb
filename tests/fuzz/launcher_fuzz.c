/* Goal: what a launcher says by PMI-1 or PMI-2, and what the allgather of a plugin or of MPI brings, does no harm,
 * whatever it is: a process finds PE 0's id, or is refused with a status.
 * Method: the first byte of the input chooses the version and what the process wants to do; the rest is what the
 * launcher says, by the network of wire.h, or how an allgather's result is spoilt. */
#include <stdlib.h>
#include <string.h>

#include "bootstrap/collective/collective.h"
#include "bootstrap/pmi/store.h"
#include "fuzz/wire.h"
#include "os/socket.h"

#define ROLE_VALUES 2
#define ROLE_ROOT 4
#define ROLE_COLLECTIVE 8
#define UNTIL_NS UINT64_C(1000000000)

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes);

/* ---- launchers ---- */

/* As PE 0 tells the others, or as one of them asks. */
static void use_job(wefti_job *job, int is_root)
{
    weft_uid uid;
    memset(&uid, 7, sizeof uid);
    const uint64_t until_ns = wefti_os_now_ns() + UNTIL_NS;
    if (!is_root) {
        (void)job->ops->fetch(job, "key", until_ns, &uid);
        return;
    }
    if (job->ops->publish(job, "key", &uid, until_ns) == WEFT_OK && job->ops->is_other != NULL) {
        (void)job->ops->is_other(job, "key", until_ns, &uid);
    }
    if (job->ops->retract != NULL) {
        job->ops->retract(job, "key");
    }
}

/* The calls that this launcher's answers would not lead to. */
static void use_store(wefti_pmi_store *store)
{
    char value[WEFTI_PMI_VALUE_BYTES];
    const uint64_t until_ns = wefti_os_now_ns() + UNTIL_NS;
    (void)store->ops->put(store, "key", "value", until_ns);
    (void)store->ops->fence(store, until_ns);
    if (store->ops->get(store, "key", value, until_ns) == WEFT_OK && strlen(value) >= sizeof value) {
        abort();
    }
}

static void join(wefti_pmi_job *pmi, int descriptor, uint8_t role)
{
    if (wefti_pmi_wire_join(&pmi->store, descriptor, 1 + (role & 1), wefti_os_now_ns() + UNTIL_NS) != WEFT_OK) {
        return;
    }
    if (pmi->store.size <= pmi->store.rank || strlen(pmi->store.job) >= sizeof pmi->store.job) {
        abort();
    }
    if (role & ROLE_VALUES) {
        use_store(&pmi->store);
    } else if (wefti_pmi_job_init(pmi, wefti_os_now_ns() + UNTIL_NS) == WEFT_OK) {
        use_job(&pmi->job, role & ROLE_ROOT);
    }
    wefti_pmi_job_fini(pmi);
    wefti_pmi_wire_leave(&pmi->store);
}

/* ---- allgathers ---- */

/* What a plugin's allgather, or MPI's, hands over: {place, value} over what each would have said. */
typedef struct spoilt {
    const uint8_t *input;
    size_t bytes;
    int pe;
    int pes;
} spoilt;

static int gather_spoilt(void *context, const void *mine, void *all, size_t bytes)
{
    const spoilt *with = context;
    for (int pe = 0; pe < with->pes; pe++) {
        memcpy((unsigned char *)all + (size_t)pe * bytes, mine, bytes);
        memcpy((unsigned char *)all + (size_t)pe * bytes + 2 * sizeof(int32_t), &pe, sizeof pe); /* its number */
    }
    for (size_t i = 0; i + 3 < with->bytes; i += 4) {
        const size_t place = (size_t)with->input[i] << 16 | (size_t)with->input[i + 1] << 8 | with->input[i + 2];
        ((unsigned char *)all)[place % ((size_t)with->pes * bytes)] ^= with->input[i + 3];
    }
    return with->bytes % 31 == 30;
}

static void read_collective(const uint8_t *input, size_t bytes)
{
    spoilt with = {.input = input + 1, .bytes = bytes - 1, .pe = input[0] & 3, .pes = 2 + (input[0] >> 2 & 3)};
    const wefti_collective collective = {
        .name = "the plugin", .pe = with.pe, .pes = with.pes, .context = &with, .allgather = gather_spoilt};
    wefti_bootstrap bootstrap = {0};
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    config.deadline_ns = 1000000;
    if (with.pe != 0 && wefti_collective_open(&collective, &config, &bootstrap) == WEFT_OK) {
        abort(); /* nobody is there */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes)
{
    static wefti_pmi_job pmi;
    if (bytes < 2) {
        return 0;
    }
    if (input[0] & ROLE_COLLECTIVE) {
        wire_begin(input, 0);
        read_collective(input + 1, bytes - 1);
        return 0;
    }
    memset(&pmi, 0, sizeof pmi);
    pmi.store.rank = 1;
    pmi.store.size = 2;
    wire_begin(input + 1, bytes - 1);
    int descriptor = wefti_os_socket_open(AF_UNIX);
    (void)wefti_os_socket_connect(descriptor, NULL, 0);
    join(&pmi, descriptor, input[0]);
    wefti_os_socket_close(descriptor);
    return 0;
}
