/* Goal: memory management and registration.
 * Method: blocks are symmetric where the other PEs find them by nvshmem_ptr and by gets; alignment, zeros, a heap
 * that is full; registrations are counted. */
#include "faces/nvshmem/check.h"

static int me;
static int pes;

static void check_blocks(void)
{
    int local;
    int *block = nvshmem_malloc(100 * sizeof *block);
    CHECK(block != NULL && nvshmem_malloc(0) == NULL && nvshmem_calloc(0, 8) == NULL);
    block[0] = 100 + me;
    nvshmem_barrier_all();
    for (int pe = 0; pe < pes; pe++) {
        const int *theirs = nvshmem_ptr(block, pe);
        CHECK(theirs != NULL && *theirs == 100 + pe && nvshmem_int_g(block, pe) == 100 + pe);
    }
    CHECK(nvshmem_ptr(&local, me) == NULL && nvshmem_ptr(block, pes) == NULL && nvshmem_ptr(block, -1) == NULL);
    CHECK(nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, block) == NULL);
    nvshmem_barrier_all();
    nvshmem_free(block);
    nvshmem_free(NULL);
    for (size_t alignment = 8; alignment <= (size_t)2 << 20; alignment *= 8) {
        void *aligned = nvshmem_align(alignment, 1000);
        CHECK(aligned != NULL && (uintptr_t)aligned % alignment == 0);
        nvshmem_free(aligned);
    }
    char *zeros = nvshmem_calloc(1000, 10);
    CHECK(zeros != NULL && zeros[0] == 0 && zeros[9999] == 0);
    nvshmem_free(zeros);
    nvshmem_free(&local); /* no block */
    CHECK(nvshmem_team_sync(NVSHMEM_TEAM_WORLD) == NVSHMEMX_ERROR_INVALID_VALUE);
}

/* What the heap may grow to is what the variable says and what the library takes; more is a NULL, on all PEs. */
static void check_full(void)
{
    CHECK(nvshmem_malloc((size_t)1 << 30) == NULL);
    CHECK(nvshmem_team_sync(NVSHMEM_TEAM_WORLD) == 0); /* no mistake */
    void *block = nvshmem_malloc((size_t)16 << 20);
    CHECK(block != NULL);
    nvshmem_free(block);
}

static void check_registered(void)
{
    static char buffer[3][4096];
    char *block = ZEROED(char, 4096);
    for (int i = 0; i < 3; i++) {
        CHECK(nvshmemx_buffer_register(buffer[i], sizeof buffer[i]) == 0);
    }
    memset(buffer[0], 'x', sizeof buffer[0]);
    nvshmem_putmem(block, buffer[0], sizeof buffer[0], me);
    nvshmem_quiet();
    CHECK(block[4095] == 'x');
    CHECK(nvshmemx_buffer_unregister(buffer[1]) == 0);
    CHECK(nvshmemx_buffer_unregister(buffer[1]) == NVSHMEMX_ERROR_INVALID_VALUE);
    nvshmemx_buffer_unregister_all();
    CHECK(nvshmemx_buffer_unregister(buffer[0]) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_buffer_register(NULL, 8) == NVSHMEMX_ERROR_INVALID_VALUE);
    /* Symmetric memory of the program's own is a GPU's. */
    if (!check_on_gpu) {
        CHECK(nvshmemx_buffer_register_symmetric(buffer[0], sizeof buffer[0], 0) == NULL);
        CHECK(nvshmem_team_sync(NVSHMEM_TEAM_WORLD) == NVSHMEMX_ERROR_GPU_NOT_SELECTED);
    }
    CHECK(nvshmemx_buffer_register(buffer[0], sizeof buffer[0]) == 0); /* ends with the world */
    nvshmem_free(block);
}

/* Whether of this page and the one before one is locked: the fake driver, as CUDA, copies no memory of which a part
 * is. */
static int is_edge(char *page)
{
    static int (*copy)(unsigned long long to, unsigned long long from, size_t bytes, void *stream);
    char bytes[16];
    if (copy == NULL) {
        *(void **)&copy = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemcpyAsync");
    }
    return copy((uintptr_t)bytes, (uintptr_t)page - 8, sizeof bytes, NULL) != 0;
}

/* The fake driver locks 4,096 pieces; what cannot be locked whole is not registered at all. */
static void check_too_many(void)
{
    static char pages[2 * 4099 * 4096] __attribute__((aligned(4096)));
    int count = 0;
    while (count < 4098 && nvshmemx_buffer_register(&pages[(size_t)count * 8192], 4) == 0) {
        count++;
    }
    CHECK(count > 4000 && count < 4098);
    char *const last = &pages[(size_t)(count - 1) * 8192];
    CHECK(nvshmemx_buffer_register(last, 8192) == NVSHMEMX_ERROR_INTERNAL); /* its first page is locked */
    CHECK(nvshmemx_buffer_unregister(last) == 0 && !is_edge(last));
    nvshmemx_buffer_unregister_all();
    CHECK(!is_edge(&pages[8192]));
}

/* Memory of which one page of several is locked is put and got all the same. */
static void check_half_locked(char *memory, char *page)
{
    const size_t bytes = 8000;
    char *block = ZEROED(char, 8192);
    for (size_t i = 0; i < bytes; i++) {
        memory[i] = (char)number_of(me, (int)i);
    }
    CHECK(nvshmemx_buffer_register(page, 4) == 0 && is_edge(page));
    nvshmem_putmem(block, memory, bytes, (me + 1) % pes);
    nvshmem_barrier_all();
    memset(memory, 0, bytes);
    nvshmem_getmem(memory, block, bytes, me);
    const int before = (me + pes - 1) % pes;
    int wrong = 0;
    for (size_t i = 0; i < bytes; i++) {
        wrong += memory[i] != (char)number_of(before, (int)i);
    }
    CHECK(wrong == 0);
    CHECK(nvshmemx_buffer_unregister(page) == 0);
    nvshmem_free(block);
}

/* Memory of a GPU may be made symmetric again before it ends: each registration ends by itself. */
static void check_symmetric(void)
{
    static const size_t bytes = (size_t)2 << 20;
    void *const driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*allocate)(unsigned long long *address, size_t bytes);
    int (*release)(unsigned long long address);
    unsigned long long address = 0;
    *(void **)&allocate = dlsym(driver, "cuMemAlloc_v2");
    *(void **)&release = dlsym(driver, "cuMemFree_v2");
    CHECK(allocate(&address, 2 * bytes) == 0);
    int *const block = (int *)(uintptr_t)address;
    CHECK(nvshmemx_buffer_register_symmetric(block, bytes, 0) == block);
    CHECK(nvshmemx_buffer_register_symmetric_at_preferred_address(block, bytes, block + 1000, 0) == block);
    CHECK(nvshmemx_buffer_register_symmetric(block, 2 * bytes, 0) == NULL); /* not the same memory */
    CHECK(nvshmem_team_sync(NVSHMEM_TEAM_WORLD) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_buffer_unregister_symmetric(block, bytes) == 0);
    nvshmem_int_p(block, me + 1, (me + 1) % pes);
    nvshmem_barrier_all();
    CHECK(block[0] == (me + pes - 1) % pes + 1 && nvshmem_ptr(block, (me + 1) % pes) != NULL);
    CHECK(nvshmemx_buffer_unregister_symmetric(block, bytes) == 0);
    CHECK(nvshmem_ptr(block, (me + 1) % pes) == NULL);
    CHECK(nvshmemx_buffer_unregister_symmetric(block, bytes) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(release(address) == 0);
}

/* Kernels reach registered memory of the host: its pages are locked, once, until the last that is there ends. */
static void check_locked(void)
{
    static char pages[6 * 4096] __attribute__((aligned(4096)));
    char *const page[] = {pages, pages + 4096, pages + 2 * 4096, pages + 3 * 4096, pages + 4 * 4096};
    CHECK(!is_edge(page[1]) && !is_edge(page[2]) && !is_edge(page[3]));
    CHECK(nvshmemx_buffer_register(page[2] + 100, 4) == 0);
    CHECK(nvshmemx_buffer_register(page[2] + 104, 4) == 0);
    CHECK(is_edge(page[2]) && is_edge(page[3]) && !is_edge(page[1]) && !is_edge(page[4]));
    CHECK(nvshmemx_buffer_register(page[2] - 4, 4096 + 8) == 0); /* one locked page in three */
    CHECK(is_edge(page[1]) && is_edge(page[4]));
    CHECK(nvshmemx_buffer_unregister(page[2] + 104) == 0);
    CHECK(nvshmemx_buffer_unregister(page[2] - 4) == 0);
    CHECK(is_edge(page[2]) && is_edge(page[3]) && !is_edge(page[1]) && !is_edge(page[4]));
    CHECK(nvshmemx_buffer_unregister(page[2] + 100) == 0);
    CHECK(!is_edge(page[2]) && !is_edge(page[3]));
    CHECK(nvshmemx_buffer_register(page[2], 4096) == 0 && is_edge(page[2]));
    nvshmemx_buffer_unregister_all();
    CHECK(!is_edge(page[2]));
    check_half_locked(page[1] + 4000, page[2]);
    check_too_many();
    CHECK(nvshmemx_buffer_register(page[2], 4096) == 0);
    nvshmem_finalize();
    CHECK(!is_edge(page[2]));
    nvshmem_init();
}

static void check_queues(void)
{
    nvshmemx_qp_handle_t *handles = NULL;
    CHECK(nvshmemx_qp_create(3, &handles) == 0 && handles != NULL && handles[2] == NVSHMEMX_QP_DEFAULT);
    free(handles);
    CHECK(nvshmemx_qp_create(0, &handles) == NVSHMEMX_ERROR_INVALID_VALUE);
}

int main(void)
{
    (void)setenv("NVSHMEM_SYMMETRIC_SIZE", "32m", 1);
    nvshmem_init();
    me = nvshmem_my_pe();
    pes = nvshmem_n_pes();
    check_blocks();
    check_full();
    check_registered();
    if (check_on_gpu) {
        check_symmetric();
        check_locked();
    }
    check_queues();
    return check_end();
}
