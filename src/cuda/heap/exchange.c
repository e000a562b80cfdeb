/* cuda/heap/exchange.c: handing an allocation to other processes: a POSIX descriptor through a local socket, or a
 * fabric handle through the records, which reach other
 * nodes, too. Owners hand out one after another, in the order of their numbers, so that nobody
 * waits in a circle. The socket's name and token follow from what only the world's PEs know. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "cuda/device.h"

#define HAND_OVER_NS UINT64_C(60000000000) /* where there is no deadline */

wefti_cuda_offer wefti_cuda_offer_init(const weft_team *team, int takers)
{
    return (wefti_cuda_offer){
        .number = {(uint64_t)((uintptr_t)team->area - (uintptr_t)team->world->control),
                   wefti_ld64(&team->epochs->agree, WEFTI_RELAXED)},
        .takers = takers,
        .pass = {.listener = -1},
        .descriptor = -1,
    };
}

/* 16 bytes for the owner's offer of this exchange, as a name or as a token. */
static void derive(const wefti_cuda *cuda, uint32_t owner, const wefti_cuda_offer *offer, const char *purpose,
                   unsigned char out[16])
{
    const weft_world *world = cuda->world;
    const wefti_presence *presence =
        wefti_world_presence(world, wefti_world_slot(world, (int)(cuda->near_first + owner)));
    unsigned char text[sizeof offer->number + 16] = {0};
    memcpy(text, offer->number, sizeof offer->number);
    strncpy((char *)text + sizeof offer->number, purpose, 15);
    wefti_hash(presence->proof, text, sizeof text, out);
}

weft_status wefti_cuda_offer_open(wefti_cuda *cuda, CUmemGenericAllocationHandle handle, wefti_cuda_offer *offer)
{
    if (offer->takers == 0) {
        return WEFT_OK;
    }
    if (cuda->sharing == WEFTI_CUDA_FABRIC) {
        return wefti_cuda_check(
            &cuda->driver,
            cuda->driver.cuMemExportToShareableHandle(&cuda->record->fabric, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0),
            "cuMemExportToShareableHandle (fabric)");
    }
    WEFT_TRY(wefti_cuda_check(&cuda->driver,
                              cuda->driver.cuMemExportToShareableHandle(&offer->descriptor, handle,
                                                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                              "cuMemExportToShareableHandle (descriptor)"));
    (void)fcntl(offer->descriptor, F_SETFD, FD_CLOEXEC); /* the driver need not have done so */
    unsigned char name[16];
    derive(cuda, wefti_cuda_own_index(cuda), offer, "cuda name", name);
    return wefti_os_pass_open(&offer->pass, name);
}

void wefti_cuda_offer_close(wefti_cuda_offer *offer)
{
    wefti_os_pass_close(&offer->pass);
    if (offer->descriptor >= 0) {
        (void)close(offer->descriptor);
        offer->descriptor = -1;
    }
}

static weft_status hand_out(wefti_cuda *cuda, wefti_cuda_offer *offer, uint64_t until_ns)
{
    unsigned char token[16];
    if (offer->descriptor < 0) {
        return WEFT_OK;
    }
    derive(cuda, wefti_cuda_own_index(cuda), offer, "cuda token", token);
    return wefti_os_pass_serve(&offer->pass, token, offer->descriptor, offer->takers, until_ns, NULL);
}

static weft_status import_handle(wefti_cuda *cuda, uint32_t owner, const wefti_cuda_offer *offer, uint64_t until_ns,
                                 CUmemGenericAllocationHandle *handle)
{
    unsigned char name[16];
    unsigned char token[16];
    int descriptor = -1;
    if (cuda->sharing == WEFTI_CUDA_FABRIC) {
        CUmemFabricHandle fabric = wefti_cuda_record_of(cuda, owner)->fabric;
        return wefti_cuda_check(&cuda->driver,
                                cuda->driver.cuMemImportFromShareableHandle(handle, &fabric, CU_MEM_HANDLE_TYPE_FABRIC),
                                "cuMemImportFromShareableHandle (fabric)");
    }
    derive(cuda, owner, offer, "cuda name", name);
    derive(cuda, owner, offer, "cuda token", token);
    WEFT_TRY(wefti_os_pass_take(name, token, until_ns, NULL, &descriptor));
    weft_status status =
        wefti_cuda_check(&cuda->driver,
                         cuda->driver.cuMemImportFromShareableHandle(handle, (void *)(intptr_t)descriptor,
                                                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                         "cuMemImportFromShareableHandle (descriptor)");
    (void)close(descriptor);
    return status;
}

weft_status wefti_cuda_exchange(wefti_cuda *cuda, const wefti_cuda_taking *taking)
{
    weft_status first = WEFT_OK;
    uint64_t now_ns = wefti_os_now_ns(); /* all are in this exchange, so also without a deadline it has an end */
    uint64_t until_ns = now_ns + (cuda->world->deadline_ns == WEFT_FOREVER ? HAND_OVER_NS : cuda->world->deadline_ns);
    for (uint32_t owner = 0; owner < cuda->near_count; owner++) {
        weft_status status = WEFT_OK;
        if (owner == wefti_cuda_own_index(cuda)) {
            status = hand_out(cuda, taking->offer, until_ns);
        } else if (cuda->group[owner] >= 0 && taking->wants(cuda, owner, taking->context)) {
            CUmemGenericAllocationHandle handle;
            status = import_handle(cuda, owner, taking->offer, until_ns, &handle);
            if (status == WEFT_OK) {
                status = taking->take(cuda, owner, handle, taking->context);
            }
        }
        first = first == WEFT_OK ? status : first;
    }
    return first;
}
