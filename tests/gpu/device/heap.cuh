/* device/heap.cuh: allocation: growth, reuse, disagreement; user memory made symmetric. */
#ifndef DEVICE_HEAP_CUH
#define DEVICE_HEAP_CUH

#include "device/copies.cuh"
#include "device/words.cuh"
#include "support/memory.h"

/* Allocation: growth, reuse, disagreement. */
static void test_allocation(test_pe *pe, bench *all)
{
    weft_device_info before;
    weft_device_info after;
    void *big = NULL;
    void *again = NULL;
    void *wrong = NULL;
    unsigned char mark = (unsigned char)(pe->pe + 1);
    unsigned char seen = 0;
    pe->stage = "allocation";
    OK(pe, weft_device_query(all->world, &before));
    int grows = strcmp(before.memory, "ipc") != 0; /* a heap shared by cudaIpc cannot grow */
    size_t bytes = grows ? before.heap_bytes + ((size_t)3 << 20) : (size_t)3 << 20;
    big = test_malloc(pe, all->world, bytes);
    OK(pe, weft_device_query(all->world, &after));
    CHECK(pe, after.heap_bytes > bytes && (after.heap_bytes > before.heap_bytes) == grows);
    OK(pe, weft_barrier(all->world));
    OK(pe, weft_putmem(all->world, (unsigned char *)big + bytes - 1, &mark, 1, (pe->pe + 1) % pe->pes));
    OK(pe, weft_barrier(all->world));
    OK(pe, weft_getmem(all->world, &seen, (unsigned char *)big + bytes - 1, 1, pe->pe));
    CHECK(pe, seen == (unsigned char)((pe->pe + pe->pes - 1) % pe->pes + 1));
    OK(pe, weft_device_free(all->world, big));
    OK(pe, weft_device_malloc(all->world, bytes, &again));
    CHECK(pe, again == big);
    OK(pe, weft_device_free(all->world, again));
    CHECK(pe, weft_device_free(all->world, again) == WEFT_ERR_ARGUMENT);
    CHECK(pe, weft_device_malloc(all->world, (size_t)1 << 50, &wrong) == WEFT_ERR_MEMORY && wrong == NULL);
    if (pe->pes > 1) {
        CHECK(pe, weft_device_malloc(all->world, pe->pe == 0 ? 100 : 200, &wrong) == WEFT_ERR_MISMATCH);
    }
    CHECK(pe, weft_device_attach(all->world, NULL) == WEFT_ERR_STATE);
    /* The sum of what waiting kernels may use is kept. */
    int sms = 0;
    OK(pe, weft_barrier(all->world));
    if (pe->pe == 0) {
        while (weft_device_sms_take(all->world, 1) == WEFT_OK && sms < 100000) {
            sms++;
        }
        CHECK_SAY(pe, sms > 1 && sms < 1000, "%d", sms);
        OK(pe, weft_device_sms_give(all->world, sms));
        OK(pe, weft_device_sms_take(all->world, sms));
        OK(pe, weft_device_sms_give(all->world, sms));
    }
    OK(pe, weft_barrier(all->world));
}

/* Memory of the driver's VMM calls, as a program's own allocator has. */
static void *vmm_alloc(test_pe *pe, size_t bytes)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at = 0;
    CUmemAllocationProp prop = {};
    CUmemAccessDesc access = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = pe->gpu;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
#define DRIVER(name) ((decltype(&name))gpu_driver(#name))
    CHECK(pe, DRIVER(cuMemCreate)(&handle, bytes, &prop, 0) == CUDA_SUCCESS);
    CHECK(pe, DRIVER(cuMemAddressReserve)(&at, bytes, 0, 0, 0) == CUDA_SUCCESS);
    CHECK(pe, DRIVER(cuMemMap)(at, bytes, 0, handle, 0) == CUDA_SUCCESS);
    CHECK(pe, DRIVER(cuMemSetAccess)(at, bytes, &access, 1) == CUDA_SUCCESS);
    CHECK(pe, DRIVER(cuMemRelease)(handle) == CUDA_SUCCESS);
#undef DRIVER
    return (void *)at;
}

/* Many buffers, in an order of addresses of their own; some are let go in between. */
static void test_many_registrations(test_pe *pe, bench *all)
{
    enum { COUNT = 150, BYTES = 256, APART = 4096 };
    const int right = (pe->pe + 1) % pe->pes;
    const int left = (pe->pe + pe->pes - 1) % pe->pes;
    uint64_t seen = 0;
    pe->stage = "many registered buffers";
    unsigned char *block = gpu_alloc((size_t)COUNT * APART);
    for (int i = 0; i < COUNT; i++) {
        OK(pe, weft_device_register(all->world, block + (size_t)(i * 67 % COUNT) * APART, BYTES));
    }
    CHECK(pe, weft_device_register(all->world, block + APART + BYTES - 8, BYTES) == WEFT_ERR_ARGUMENT);
    for (int i = 0; i < COUNT; i += 3) {
        OK(pe, weft_device_unregister(all->world, block + (size_t)i * APART));
    }
    for (int i = 0; i < COUNT; i += 6) {
        OK(pe, weft_device_register(all->world, block + (size_t)i * APART, BYTES));
    }
    for (int i = 0; i < COUNT; i++) {
        uint64_t *word = (uint64_t *)(block + (size_t)i * APART) + i % 32;
        const int is_there = i % 3 != 0 || i % 6 == 0;
        CHECK_SAY(pe, (weft_ptr(all->world, word, pe->pe) == word) == is_there, "%d", i);
        if (is_there) {
            LAUNCH((p_kernel<uint64_t>), 1, 1, 0, pe, all->dev, word, (uint64_t)(1000 * pe->pe + i), right,
                   all->status);
            CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
        }
    }
    OK(pe, weft_barrier(all->world));
    for (int i = 0; i < COUNT; i++) {
        uint64_t *word = (uint64_t *)(block + (size_t)i * APART) + i % 32;
        if (i % 3 != 0 || i % 6 == 0) {
            OK(pe, weft_uint64_g(all->world, word, pe->pe, &seen));
            CHECK_SAY(pe, seen == (uint64_t)(1000 * left + i), "%d: %llu", i, (unsigned long long)seen);
        }
    }
    OK(pe, weft_barrier(all->world));
    for (int i = 0; i < COUNT; i++) {
        if (i % 3 != 0 || i % 6 == 0) {
            OK(pe, weft_device_unregister(all->world, block + (size_t)i * APART));
        }
    }
    gpu_free(block);
}

/* User memory from cudaMalloc, and from VMM, made symmetric. */
static void test_registration(test_pe *pe, bench *all)
{
    for (int way = 0; way < 2; way++) {
        size_t bytes = (size_t)2 << 20;
        pe->stage = way == 0 ? "registration of cudaMalloc memory" : "registration of VMM memory";
        unsigned char *mine = way == 0 ? gpu_alloc(bytes) : (unsigned char *)vmm_alloc(pe, bytes);
        OK(pe, weft_device_register(all->world, mine + 4096, 100000));
        unsigned char data[5000];
        unsigned char seen[5000];
        int right = (pe->pe + 1) % pe->pes;
        int left = (pe->pe + pe->pes - 1) % pe->pes;
        memset(data, pe->pe + 1, sizeof data);
        OK(pe, weft_putmem(all->world, all->source, data, sizeof data, pe->pe));
        OK(pe, weft_barrier(all->world));
        LAUNCH_KIND(put_kernel, 2, pe, 0, all->dev, mine + 4096 + 17, all->source, (wefti_u64)sizeof data, right,
                    all->status);
        CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
        OK(pe, weft_barrier(all->world));
        OK(pe, weft_getmem(all->world, seen, mine + 4096 + 17, sizeof seen, pe->pe));
        memset(data, left + 1, sizeof data);
        CHECK(pe, memcmp(data, seen, sizeof data) == 0);
        OK(pe, weft_getmem(all->world, seen, mine + 4096 + 17, sizeof seen, right));
        memset(data, pe->pe + 1, sizeof data);
        CHECK(pe, memcmp(data, seen, sizeof data) == 0);
        OK(pe, weft_device_unregister(all->world, mine + 4096));
        CHECK(pe, weft_ptr(all->world, mine + 4096, right) == NULL);
        if (way == 0) {
            gpu_free(mine);
        } /* the VMM buffer goes with the process */
    }
    pe->stage = "registration";
    char here[100];
    CHECK(pe, weft_device_register(all->world, here, sizeof here) == WEFT_ERR_ARGUMENT);
}

#endif
