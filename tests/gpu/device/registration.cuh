/* gpu/device/registration.cuh: buffers that a team registers, beside those of all PEs, and memory that the caller has
 * mapped itself. */
#ifndef GPU_DEVICE_REGISTRATION_CUH
#define GPU_DEVICE_REGISTRATION_CUH

#include "device/growth.cuh"
#include "device/heap.cuh"

/* Each member, which are the first PEs, writes into the next one's buffer. */
static void test_ring(test_pe *pe, bench *all, weft_team *team, uint64_t *word, uint64_t value)
{
    const int size = weft_team_pes(team);
    uint64_t seen = 0;
    LAUNCH((p_kernel<uint64_t>), 1, 1, 0, pe, all->dev, word, value + (uint64_t)pe->pe, (pe->pe + 1) % size,
           all->status);
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    OK(pe, weft_team_barrier(team));
    OK(pe, weft_uint64_g(all->world, word, pe->pe, &seen));
    const uint64_t wanted = value + (uint64_t)((pe->pe + size - 1) % size);
    CHECK_SAY(pe, seen == wanted, "%llu, not %llu", (unsigned long long)seen, (unsigned long long)wanted);
}

/* All PEs but the last have a buffer that it has no part in; of what all register next they all have the same number,
 * though it was another that was free there. */
static void test_team_registration(test_pe *pe, bench *all)
{
    enum { BYTES = 4096 };
    const int size = pe->pes - 1;
    if (size < 2) {
        return;
    }
    pe->stage = "registration over a team";
    weft_team *const team = team_of(pe, all->world, 0, 1, size);
    const int is_member = pe->pe < size;
    unsigned char *block = gpu_alloc(2 * BYTES);
    uint64_t *const ours = (uint64_t *)block;
    uint64_t *const everyones = (uint64_t *)(block + BYTES);
    if (all->dev.near_count < (unsigned)pe->pes) {
        CHECK(pe, !is_member || weft_device_team_register(team, ours, BYTES) == WEFT_ERR_UNSUPPORTED);
    } else {
        if (is_member) {
            OK(pe, weft_device_team_register(team, ours, BYTES));
            CHECK(pe, weft_device_team_register(team, ours + 8, BYTES) == WEFT_ERR_ARGUMENT);
        }
        OK(pe, weft_device_register(all->world, everyones, BYTES));
        test_ring(pe, all, weft_team_world(all->world), everyones + 3, 100);
        if (is_member) {
            test_ring(pe, all, team, ours + 5, 200);
            CHECK(pe, weft_ptr(all->world, ours, pe->pe) == ours && weft_ptr(all->world, ours, size) == NULL);
            CHECK(pe, weft_uint64_p(all->world, ours, 1, size) == WEFT_ERR_RANGE);
            OK(pe, weft_device_team_unregister(team, ours));
            CHECK(pe, weft_ptr(all->world, ours, pe->pe) == NULL);
            OK(pe, weft_device_team_register(team, ours, BYTES)); /* a number that is free again */
            test_ring(pe, all, team, ours + 7, 300);
            OK(pe, weft_device_team_unregister(team, ours));
        }
        OK(pe, weft_barrier(all->world));
        OK(pe, weft_device_unregister(all->world, everyones));
    }
    if (is_member) {
        OK(pe, weft_team_destroy(team));
    }
    gpu_free(block);
}

/* Memory of another world, which this world is told where it is mapped, as of another library. */
static void test_mapped(test_pe *pe, bench *all)
{
    enum { BYTES = 4096 };
    pe->stage = "registration of mapped memory";
    weft_world *const lender = test_world(pe, "lender", (size_t)4 << 20, 0);
    uint64_t *const mine = (uint64_t *)test_malloc(pe, lender, BYTES);
    void **const peers = (void **)calloc((size_t)pe->pes, sizeof *peers);
    for (int i = 0; i < pe->pes; i++) {
        peers[i] = weft_ptr(lender, mine, i);
    }
    if (all->dev.near_count < (unsigned)pe->pes) {
        CHECK(pe, weft_device_register_mapped(all->world, mine, BYTES, peers) == WEFT_ERR_UNSUPPORTED);
    } else {
        CHECK(pe, weft_device_register_mapped(all->world, mine, BYTES, NULL) == WEFT_ERR_ARGUMENT);
        CHECK(pe, weft_device_register_mapped(all->world, NULL, BYTES, peers) == WEFT_ERR_ARGUMENT);
        CHECK(pe, weft_device_register_mapped(all->world, mine, 0, peers) == WEFT_ERR_ARGUMENT);
        CHECK(pe, weft_device_register_mapped(all->world, mine, (size_t)1 << 46, peers) == WEFT_ERR_ARGUMENT);
        CHECK(pe, weft_device_register_mapped(all->world, mine + 1, BYTES, peers) == WEFT_ERR_ARGUMENT);
        OK(pe, weft_device_register_mapped(all->world, mine, BYTES, peers));
        CHECK(pe, weft_device_register_mapped(all->world, mine, BYTES, peers) == WEFT_ERR_ARGUMENT);
        for (int i = 0; i < pe->pes; i++) {
            CHECK(pe, weft_ptr(all->world, mine + 3, i) == (uint64_t *)peers[i] + 3);
        }
        test_ring(pe, all, weft_team_world(all->world), mine + 3, 400);
        OK(pe, weft_device_unregister(all->world, mine));
        CHECK(pe, weft_ptr(all->world, mine, pe->pe) == NULL);
    }
    free(peers);
    OK(pe, weft_world_destroy(lender));
}

#endif
