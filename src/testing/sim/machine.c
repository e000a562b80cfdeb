/* testing/sim/machine.c: the machine that PEs see, for os/os.h: every link domain is a node, with processes of a
 * chosen size. */
#include <string.h>

#include "base/alloc.h"
#include "os/socket.h"
#include "testing/sim/machine.h"
#include "testing/sim/sim.h"

#define MEMORY_BYTES ((uint64_t)16 << 30)

static wefti_sim *running_sim(void)
{
    wefti_sim *sim = wefti_sim_current;
    return sim != NULL && sim->running != NULL ? sim : NULL;
}

/* One or enough, by the seed: what PEs do when they are oversubscribed is explored, and what they do when they are
 * not. */
wefti_os_cores wefti_os_cores_query(void)
{
    const wefti_sim *sim = running_sim();
    return (wefti_os_cores){.count = sim != NULL && (sim->seed & 1) != 0 ? UINT32_MAX : 1, .mark = 0};
}

/* The simulation has no files. */
weft_status wefti_os_journal_insert(const wefti_os_journal *journal, const char *text, size_t bytes)
{
    (void)text;
    (void)bytes;
    return wefti_error(WEFT_ERR_UNSUPPORTED, "%s: simulated PEs have no files", journal->path);
}

void wefti_os_journal_discard(const wefti_os_journal *journal)
{
    (void)journal;
}

uint64_t wefti_os_memory_bytes(void)
{
    return MEMORY_BYTES;
}

wefti_os_memory_left wefti_os_memory_left_query(void)
{
    const wefti_sim *sim = running_sim();
    const wefti_os_memory_left *said = sim != NULL ? sim->running->memory_left : NULL;
    if (sim != NULL && sim->running->memory_ns > 0) {
        weft_sim_sleep_ns(sim->running->memory_ns);
    }
    return said != NULL ? *said : (wefti_os_memory_left){.machine = MEMORY_BYTES, .group = UINT64_MAX};
}

void wefti_sim_set_memory_left(const wefti_os_memory_left *left)
{
    running_sim()->running->memory_left = left;
}

void wefti_sim_set_memory_ns(uint64_t ns)
{
    running_sim()->running->memory_ns = ns;
}

uint64_t wefti_os_memory_available_bytes(void)
{
    return MEMORY_BYTES;
}

int wefti_os_numa_here(void)
{
    return 0;
}

int wefti_os_link_is_coming(char name[WEFTI_OS_LINK_BYTES])
{
    (void)name;
    return 0;
}

void wefti_os_link_await(uint64_t most_ns)
{
    (void)most_ns;
}

size_t wefti_os_page_bytes(void)
{
    return 4096;
}

/* Always the same: nobody forks a simulation. */
int wefti_os_owner_number(void)
{
    return 1;
}

void *wefti_os_owned_alloc(size_t bytes)
{
    return wefti_alloc_aligned(64, bytes);
}

int wefti_os_owned_give(void *memory, size_t bytes)
{
    (void)memory;
    (void)bytes;
    return 1;
}

/* The link domain of a PE. */
static int domain_of(const wefti_sim *sim, int pe)
{
    const weft_sim_config *config = &sim->config;
    if (config->domain_of != NULL) {
        return config->domain_of[pe];
    }
    if (config->domain_pes <= 0) {
        return 0;
    }
    int domains = (sim->pes + config->domain_pes - 1) / config->domain_pes;
    return config->round_robin ? pe % domains : pe / config->domain_pes;
}

/* A PE's place among those of its domain: by number while they are consecutive, which is all that processes need. */
static int process_of(const wefti_sim *sim, int pe)
{
    return sim->config.process_pes > 0 ? pe / sim->config.process_pes : 0;
}

int weft_sim_same_process(int a, int b)
{
    const wefti_sim *sim = wefti_sim_current;
    if (sim == NULL || a < 0 || a >= sim->pes || b < 0 || b >= sim->pes) {
        return 0;
    }
    return domain_of(sim, a) == domain_of(sim, b) && process_of(sim, a) == process_of(sim, b);
}

int wefti_os_process_number(void)
{
    wefti_sim *sim = running_sim();
    return sim == NULL ? 0 : 1 + process_of(sim, sim->running->pe);
}

weft_status wefti_os_identity_query(wefti_os_identity *out)
{
    wefti_sim *sim = running_sim();
    int domain = sim == NULL ? 0 : domain_of(sim, sim->running->pe);
    int process = sim == NULL ? 0 : process_of(sim, sim->running->pe);
    memset(out, 0, sizeof *out);
    memcpy(out->node, &domain, sizeof domain);
    out->host = (uint64_t)domain;
    memcpy(out->process, &domain, sizeof domain);
    memcpy(out->process + 8, &process, sizeof process);
    out->process[sizeof out->process - 1] = 1; /* as of a system: never all zeros */
    return WEFT_OK;
}

weft_status wefti_os_random(void *bytes, size_t count)
{
    wefti_sim *sim = running_sim();
    wefti_random outside = {.state = 1};
    unsigned char *to = bytes;
    while (count > 0) {
        uint64_t number = wefti_random_next(sim == NULL ? &outside : &sim->random);
        size_t piece = count < sizeof number ? count : sizeof number;
        memcpy(to, &number, piece);
        to += piece;
        count -= piece;
    }
    return WEFT_OK;
}
