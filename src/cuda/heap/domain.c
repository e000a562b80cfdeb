/* cuda/heap/domain.c: which PEs are near: those whose GPUs reach each other's memory, on the same host by peer access,
 * beyond it by a fabric. Every PE tells all others what its GPU is and reaches, and works out all link domains from
 * that (topo/domain.h), so that all know the same. Inside a node this goes by the records, beyond it by a collective of
 * the host heap. PEs that are in no domain with this one are reached by a proxy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "cuda/device.h"
#include "weft/coll.h"

#define TRIED_WORDS 16
#define TRIED_MAX (TRIED_WORDS * 64) /* PEs of one clique that are tried: the largest of today have 72 GPUs */

/* From which PEs of its clique, in order, a PE has imported memory. */
typedef struct tried {
    uint64_t words[TRIED_WORDS];
} tried;

typedef struct study {
    wefti_cuda *cuda;
    weft_team *team;
    const char *call;
    uint64_t limit; /* WEFT_CUDA_DOMAIN */
    wefti_cuda_trial trial;
    wefti_cuda_gpu_of_pe *gpus; /* of all PEs */
    wefti_topo_gpu_of_pe *topo; /* the parts `topo` of gpus */
    tried *imports; /* of all PEs; NULL: none were tried */
    int32_t *numbers; /* of all PEs, each in its clique; -1: in none that counts */
    int32_t *domain_of;
    int domains;
} study;

static int spans_nodes(const study *s)
{
    return s->team->pes > s->cuda->world->team_node.pes;
}

/* ---- what this PE's GPU reaches on its host ---- */

/* Flags and the atomics of users need read-modify-writes on each other's memory that are atomic against the owner's. */
static int has_atomics(const wefti_cuda *cuda, CUdevice other)
{
    int value = 0;
    return cuda->driver.cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, cuda->ordinal,
                                                other) != CUDA_SUCCESS ||
           value != 0;
}

/* Why this PE's GPU does not reach that one of its host, or NULL. A device that this process does not see shows when
 * its memory is mapped. */
static const char *refusal_of(const wefti_cuda *cuda, const CUuuid *wanted)
{
    int count = 0;
    (void)cuda->driver.cuDeviceGetCount(&count);
    for (CUdevice other = 0; other < count; other++) {
        CUuuid uuid;
        int can = 0;
        if (other == cuda->ordinal || cuda->driver.cuDeviceGetUuid(&uuid, other) != CUDA_SUCCESS ||
            memcmp(&uuid, wanted, sizeof uuid) != 0) {
            continue;
        }
        if (cuda->driver.cuDeviceCanAccessPeer(&can, cuda->ordinal, other) != CUDA_SUCCESS || !can) {
            return "cannot access its memory (peer access needs NVLink or a common PCIe root)";
        }
        return has_atomics(cuda, other) ? NULL : "has no atomics there (PCIe has none between GPUs)";
    }
    return NULL;
}

/* GPUs of the node have numbers in the order of the lowest PE that uses each. */
static weft_status tell_reach(study *s)
{
    wefti_cuda *cuda = s->cuda;
    const wefti_view *view = &cuda->world->view;
    wefti_topo_gpu_of_pe *gpu = &cuda->record->gpu.topo;
    const char *missing = NULL;
    int missing_pe = 0;
    const CUuuid *uuids[WEFTI_TOPO_GPUS_OF_HOST_MAX];
    int known = 0;
    for (uint32_t pe = view->near_first; pe < view->near_first + view->near_count; pe++) {
        if (!wefti_pe_is_near(view, (int)pe)) {
            continue;
        }
        const CUuuid *uuid = &((wefti_cuda_record *)wefti_peer_address(cuda->world, cuda->record, (int)pe))->uuid;
        int i = 0;
        while (i < known && memcmp(uuids[i], uuid, sizeof *uuid) != 0) {
            i++;
        }
        if (i == WEFTI_TOPO_GPUS_OF_HOST_MAX) {
            return wefti_error(WEFT_ERR_UNSUPPORTED, "%s: the PEs of this node use more than %d GPUs", s->call, i);
        }
        if (i == known) {
            const char *refusal = refusal_of(cuda, uuid);
            uuids[known++] = uuid;
            gpu->reaches |= refusal == NULL ? (uint64_t)1 << i : 0;
            missing_pe = missing == NULL ? (int)pe : missing_pe;
            missing = missing == NULL ? refusal : missing;
        }
        if (memcmp(uuid, &cuda->record->uuid, sizeof *uuid) == 0) {
            gpu->ordinal = (uint8_t)i;
        }
    }
    if (missing != NULL && s->limit == 0) {
        wefti_log(
            WEFTI_LOG_WARN,
            "GPU %d of PE %u does not reach that of PE %d: it %s; a thread copies between them through host memory",
            cuda->ordinal, view->pe, missing_pe, missing);
    }
    return WEFT_OK;
}

/* A host of its own is what may at most be one domain there. */
static void tell_host(const study *s)
{
    const wefti_view *view = &s->cuda->world->view;
    const uint64_t limit = s->limit == 0 ? UINT64_MAX : s->limit;
    const uint64_t host[2] = {view->near_first, s->cuda->world->slot / limit};
    wefti_topo_gpu_of_pe *gpu = &s->cuda->record->gpu.topo;
    memcpy(gpu->host, host, sizeof gpu->host);
    gpu->has_gpu = 1;
}

/* ---- what others tell ---- */

/* `bytes` bytes of every PE. Collective. */
static weft_status gather(const study *s, const void *mine, void *all, size_t bytes)
{
    void *block;
    const size_t total = (size_t)s->team->pes * bytes;
    WEFT_TRY(wefti_team_alloc(s->team, s->call, total + bytes, WEFTI_CACHE_LINE, &block));
    memcpy((unsigned char *)block + total, mine, bytes);
    weft_status status = weft_fcollectmem(s->team, block, (unsigned char *)block + total, bytes);
    if (status == WEFT_OK) {
        memcpy(all, block, total);
        status = wefti_team_dealloc(s->team, s->call, block);
    }
    return status;
}

static weft_status alloc_gpus(study *s)
{
    const size_t pes = (size_t)s->team->pes;
    s->gpus = wefti_alloc_zeroed(pes, sizeof *s->gpus);
    s->topo = wefti_alloc_zeroed(pes, sizeof *s->topo);
    s->domain_of = wefti_alloc_zeroed(pes, sizeof *s->domain_of);
    return s->gpus == NULL || s->topo == NULL || s->domain_of == NULL
               ? wefti_error(WEFT_ERR_MEMORY, "%s: no memory for what %zu PEs tell of their GPUs", s->call, pes)
               : WEFT_OK;
}

static weft_status gather_gpus(study *s)
{
    wefti_cuda *cuda = s->cuda;
    if (spans_nodes(s)) {
        WEFT_TRY(gather(s, &cuda->record->gpu, s->gpus, sizeof *s->gpus));
    }
    for (int pe = 0; pe < s->team->pes; pe++) {
        if (!spans_nodes(s)) {
            s->gpus[pe] = ((wefti_cuda_record *)wefti_peer_address(cuda->world, cuda->record, pe))->gpu;
        }
        s->topo[pe] = s->gpus[pe].topo;
    }
    return WEFT_OK;
}

/* ---- trials between hosts ---- */

static int is_same_clique(const study *s, int pe, int other)
{
    const wefti_topo_fabric *l = &s->topo[pe].fabric;
    const wefti_topo_fabric *r = &s->topo[other].fabric;
    return s->numbers[pe] >= 0 && s->numbers[other] >= 0 && l->clique == r->clique &&
           memcmp(l->cluster, r->cluster, sizeof l->cluster) == 0;
}

/* Members of a clique are counted from the last one on, which mostly is the PE before. */
static void number_members(study *s)
{
    for (int pe = 0; pe < s->team->pes; pe++) {
        int before = pe - 1;
        s->numbers[pe] = wefti_topo_fabric_refusal(&s->topo[pe].fabric) == NULL ? 0 : -1;
        while (before >= 0 && !is_same_clique(s, pe, before)) {
            before--;
        }
        s->numbers[pe] = before >= 0 ? s->numbers[before] + 1 : s->numbers[pe];
    }
}

static void try_all(const study *s, tried *mine)
{
    const int me = (int)s->cuda->world->view.pe;
    for (int pe = 0; pe < s->team->pes; pe++) {
        const int number = s->numbers[pe];
        if (number < TRIED_MAX && is_same_clique(s, me, pe) &&
            memcmp(s->topo[pe].host, s->topo[me].host, sizeof s->topo[pe].host) != 0) {
            mine->words[number / 64] |= (uint64_t)wefti_cuda_trial_take(s->cuda, &s->gpus[pe]) << number % 64;
        }
    }
}

static int has_imported(void *context, int pe, int other)
{
    const study *s = context;
    const int number = s->numbers[other];
    return number < TRIED_MAX && (s->imports[pe].words[number / 64] >> number % 64 & 1) != 0;
}

/* Trials are made by all PEs, or by none. */
static weft_status try_imports(study *s)
{
    tried mine = {{0}};
    const size_t pes = (size_t)s->team->pes;
    const int spans = spans_nodes(s) ? wefti_topo_spans_hosts(s->topo, s->team->pes) : 0;
    weft_status status = WEFT_OK;
    void *told;
    if (spans == 0) {
        return WEFT_OK;
    }
    s->imports = wefti_alloc_zeroed(pes, sizeof *s->imports);
    s->numbers = wefti_alloc_zeroed(pes, sizeof *s->numbers);
    if (spans < 0 || s->imports == NULL || s->numbers == NULL) {
        status = wefti_error(WEFT_ERR_MEMORY, "%s: no memory for trials of a fabric", s->call);
    } else {
        number_members(s);
        try_all(s, &mine);
    }
    WEFT_TRY(wefti_cuda_verdict(s->cuda, s->team, s->call, 8, status));
    WEFT_TRY(wefti_team_alloc(s->team, s->call, pes * sizeof *s->cuda->records_shared, WEFTI_CACHE_LINE, &told));
    s->cuda->records_shared = told;
    return gather(s, &mine, s->imports, sizeof mine);
}

/* ---- what follows ---- */

/* Whether some GPU says that it is of a fabric cluster: a world that is divided all the same is worth a warning. */
static int has_cluster(const study *s)
{
    static const unsigned char zero[sizeof s->topo->fabric.cluster];
    int has = 0;
    for (int pe = 0; pe < s->team->pes; pe++) {
        has |= memcmp(s->topo[pe].fabric.cluster, zero, sizeof zero) != 0;
    }
    return has;
}

static void tell_world(void *context, const char *text)
{
    const study *s = context;
    if (s->cuda->world->view.pe == 0) {
        wefti_log(has_cluster(s) ? WEFTI_LOG_WARN : WEFTI_LOG_INFO, "world \"%s\": device memory: %s",
                  s->cuda->world->name, text);
    }
}

static int is_near(const study *s, uint32_t pe)
{
    return s->domain_of[pe] == s->domain_of[s->cuda->world->view.pe];
}

static weft_status make_tables(wefti_cuda *cuda, const char *call)
{
    const size_t count = cuda->near_count;
    cuda->group = wefti_alloc_zeroed(count, sizeof *cuda->group);
    cuda->delta = wefti_alloc_zeroed(count, sizeof *cuda->delta);
    cuda->reach = wefti_alloc_zeroed(count, sizeof *cuda->reach);
    cuda->slots = wefti_alloc_zeroed(count, sizeof *cuda->slots);
    cuda->ipc_opened = wefti_alloc_zeroed(count, sizeof *cuda->ipc_opened);
    return cuda->group == NULL || cuda->delta == NULL || cuda->reach == NULL || cuda->slots == NULL ||
                   cuda->ipc_opened == NULL
               ? wefti_error(WEFT_ERR_MEMORY, "%s: no memory for a table of %zu PEs", call, count)
               : WEFT_OK;
}

/* The window of a process has a slot for each PE in a link domain of one of its node's PEs, in order. */
static weft_status place_slots(study *s)
{
    wefti_cuda *cuda = s->cuda;
    const wefti_view *view = &cuda->world->view;
    unsigned char *has_slots = wefti_alloc_zeroed((size_t)s->team->pes, 1); /* a domain, by its lowest PE */
    if (has_slots == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "%s: no memory for the slots of a node", s->call);
    }
    for (uint32_t pe = view->near_first; pe < view->near_first + view->near_count; pe++) {
        has_slots[s->domain_of[pe]] |= wefti_pe_is_near(view, (int)pe) != 0;
    }
    for (uint32_t pe = 0; pe < view->pes; pe++) {
        if (is_near(s, pe)) {
            cuda->slots[pe - cuda->near_first] = cuda->slot_count;
        }
        cuda->slot_count += has_slots[s->domain_of[pe]];
    }
    wefti_free(has_slots);
    return WEFT_OK;
}

static weft_status make_abroad(wefti_cuda *cuda, const char *call)
{
    cuda->host_delta = wefti_alloc_zeroed(cuda->near_count, sizeof *cuda->host_delta);
    cuda->records_fetched =
        cuda->base.abroad_count == 0 ? NULL : wefti_alloc_zeroed(cuda->near_count, sizeof *cuda->records_fetched);
    if (cuda->host_delta == NULL || (cuda->records_fetched == NULL && cuda->base.abroad_count > 0)) {
        return wefti_error(WEFT_ERR_MEMORY, "%s: no memory for what %u PEs of other nodes tell", call,
                           cuda->near_count);
    }
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        const int pe = (int)(cuda->near_first + i);
        cuda->host_delta[i] = !wefti_cuda_is_near(cuda, pe) || wefti_cuda_is_abroad(cuda, i)
                                  ? WEFTI_DEV_FAR
                                  : (int64_t)((uintptr_t)wefti_peer_address(cuda->world, cuda->world->heap, pe) -
                                              (uintptr_t)cuda->world->heap);
    }
    return WEFT_OK;
}

static weft_status settle(study *s)
{
    wefti_cuda *cuda = s->cuda;
    const wefti_view *view = &cuda->world->view;
    uint32_t last = view->pe;
    s->domains = wefti_topo_domains(s->topo, s->team->pes, s->domain_of, s->imports == NULL ? NULL : has_imported,
                                    s->limit == 0 ? tell_world : NULL, s);
    if (s->domains < 0) {
        return wefti_error(WEFT_ERR_MEMORY, "%s: no memory for the link domains of %d PEs", s->call, s->team->pes);
    }
    cuda->has_strangers = s->domains > 1;
    cuda->near_first = (uint32_t)s->domain_of[view->pe];
    for (uint32_t pe = view->pe; pe < view->pes; pe++) {
        last = is_near(s, pe) ? pe : last;
    }
    cuda->near_count = last + 1 - cuda->near_first;
    WEFT_TRY(make_tables(cuda, s->call));
    cuda->base.far_count = view->pes;
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        cuda->group[i] = is_near(s, cuda->near_first + i) ? 0 : -1;
        const int is_abroad = wefti_cuda_is_abroad(cuda, i);
        cuda->base.abroad_count += is_abroad != 0;
        cuda->base.far_count -= cuda->group[i] == 0 && !is_abroad;
    }
    if (cuda->base.abroad_count > 0) {
        cuda->sharing = WEFTI_CUDA_FABRIC;
    }
    cuda->record->sharing = (int32_t)cuda->sharing;
    WEFT_TRY(place_slots(s));
    return cuda->base.abroad_count > 0 || view->delta != NULL ? make_abroad(cuda, s->call) : WEFT_OK;
}

/* The lowest PE of a domain says what it is. */
static void tell_domain(const study *s)
{
    const wefti_cuda *cuda = s->cuda;
    static const char *const by[] = {
        [WEFTI_CUDA_POSIX] = "descriptors", [WEFTI_CUDA_FABRIC] = "fabric handles", [WEFTI_CUDA_IPC] = "cudaIpc"};
    int members = 0;
    for (int pe = 0; pe < s->team->pes; pe++) {
        members += is_near(s, (uint32_t)pe);
    }
    if (cuda->near_first == cuda->world->view.pe) {
        wefti_log(WEFTI_LOG_INFO, "world \"%s\": device memory: a link domain of %d PEs from PE %u on, of %d, by %s",
                  cuda->world->name, members, cuda->near_first, s->domains, by[cuda->sharing]);
    }
}

static weft_status find(study *s)
{
    uint64_t fabric;
    weft_status status = wefti_env_count(WEFTI_ENV_CUDA_FABRIC, &fabric);
    if (status == WEFT_OK && fabric != 0 && s->limit == 0 && spans_nodes(s)) {
        wefti_cuda_trial_open(s->cuda, &s->trial, &s->cuda->record->gpu);
    }
    status = status == WEFT_OK ? tell_reach(s) : status;
    tell_host(s);
    status = status == WEFT_OK ? alloc_gpus(s) : status;
    WEFT_TRY(wefti_cuda_verdict(s->cuda, s->team, s->call, 9, status));
    WEFT_TRY(gather_gpus(s));
    WEFT_TRY(try_imports(s));
    status = settle(s);
    if (status == WEFT_OK) {
        tell_domain(s);
        status = wefti_cuda_find_granularity(s->cuda);
    }
    return wefti_cuda_verdict(s->cuda, s->team, s->call, 10, status);
}

weft_status wefti_cuda_find_domain(wefti_cuda *cuda, weft_team *team, const char *call, uint64_t pes)
{
    study s = {.cuda = cuda, .team = team, .call = call, .limit = pes};
    const weft_status status = find(&s);
    wefti_cuda_trial_close(cuda, &s.trial);
    wefti_free(s.gpus);
    wefti_free(s.topo);
    wefti_free(s.imports);
    wefti_free(s.numbers);
    cuda->domain_of = s.domain_of;
    return status;
}

void wefti_cuda_domain_fini(wefti_cuda *cuda)
{
    wefti_free(cuda->group);
    wefti_free(cuda->domain_of);
    wefti_free(cuda->delta);
    wefti_free(cuda->reach);
    wefti_free(cuda->host_delta);
    wefti_free(cuda->slots);
    wefti_free(cuda->records_fetched);
}

/* ---- near PEs ---- */

static int same_process(const wefti_cuda_record *a, const wefti_cuda_record *b)
{
    return a->process[0] == b->process[0] && a->process[1] == b->process[1];
}

static void find_groups(wefti_cuda *cuda)
{
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        for (uint32_t j = 0; j <= i && cuda->group[i] >= 0; j++) {
            if (cuda->group[j] >= 0 && same_process(wefti_cuda_record_of(cuda, i), wefti_cuda_record_of(cuda, j))) {
                cuda->group[i] = (int)j;
                break;
            }
        }
    }
}

int wefti_cuda_near_devices(const wefti_cuda *cuda, CUdevice devices[WEFTI_CUDA_DEVICES_MAX])
{
    int count = 0;
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        const int is_here = cuda->group[i] >= 0 && cuda->group[i] == cuda->group[wefti_cuda_own_index(cuda)];
        const CUdevice device = is_here ? wefti_cuda_record_of(cuda, i)->ordinal : -1;
        int known = 0;
        while (known < count && devices[known] != device) {
            known++;
        }
        if (is_here && known == count) {
            devices[count++] = device; /* the window has refused more than there is room for */
        }
    }
    return count;
}

/* What differs between PEs that must not. */
static weft_status check_equal(const wefti_cuda *cuda, uint32_t index)
{
    const wefti_cuda_record *other = wefti_cuda_record_of(cuda, index);
    if (other->sharing != cuda->record->sharing) {
        return wefti_error(
            WEFT_ERR_MISMATCH,
            "weft_device_attach: PE %u shares device memory in another way than PE %u; set WEFT_CUDA_VMM "
            "and WEFT_CUDA_FABRIC equally, or take GPUs of one kind",
            cuda->near_first + index, cuda->world->view.pe);
    }
    return WEFT_OK;
}

weft_status wefti_cuda_study_peers(wefti_cuda *cuda)
{
    find_groups(cuda);
    for (uint32_t i = 0; i < cuda->near_count; i++) {
        if (cuda->group[i] >= 0) {
            WEFT_TRY(check_equal(cuda, i));
        }
    }
    return WEFT_OK;
}
