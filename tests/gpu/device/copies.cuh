/* device/copies.cuh: put, get and bulk put, of device memory and of the host heap. */
#ifndef DEVICE_COPIES_CUH
#define DEVICE_COPIES_CUH

#include "support/bench.h"

template <int KIND>
__global__ void put_kernel(const __grid_constant__ weft_dev dev, unsigned char *dest, const unsigned char *source,
                           wefti_u64 bytes, int pe, int *status)
{
    *status = weft_dev_put(scope_of<KIND>(), dev, dest, source, bytes, pe);
    (void)weft_dev_quiet(dev);
}

template <int KIND>
__global__ void get_kernel(const __grid_constant__ weft_dev dev, unsigned char *dest, const unsigned char *source,
                           wefti_u64 bytes, int pe, int *status)
{
    *status = weft_dev_get(scope_of<KIND>(), dev, dest, source, bytes, pe);
}

template <int KIND>
__global__ void put_bulk_kernel(const __grid_constant__ weft_dev dev, unsigned char *dest, const unsigned char *source,
                                wefti_u64 bytes, int pe, unsigned shared_bytes, int *status)
{
#if ON_GPU
    extern __shared__ __align__(128) unsigned char shared[];
#else
    unsigned char *shared = NULL;
#endif
    *status = weft_dev_put_bulk(scope_of<KIND>(), dev, dest, source, bytes, pe, shared, shared_bytes);
    (void)weft_dev_quiet(dev);
}

/* put, bulk put and get of odd sizes and alignments against the host's put on the host heap. */
static void test_copies(test_pe *pe, bench *all)
{
    static const int sizes[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 64, 100, 127, 513, 1000, 4096, 4099, 20000, 65536};
    size_t part = ROOM;
    unsigned char *expected = (unsigned char *)malloc(part * (size_t)pe->pes);
    unsigned char *seen = (unsigned char *)malloc(part * (size_t)pe->pes);
    unsigned char *data = (unsigned char *)malloc(ROOM * 2);
    uint64_t state = pe->seed;
    pe->stage = "copies";
    for (size_t which = 0; which < sizeof sizes / sizeof *sizes; which++) {
        for (int kind = 0; kind < KINDS; kind++) {
            uint64_t dice = next_random(&state);
            int bytes = sizes[which];
            int to_offset = (int)(dice & 63);
            int from_offset = dice & 64 ? to_offset : (int)(dice >> 8 & 63); /* often equal modulo 16 */
            int way = (int)((dice >> 16) % 3); /* put, bulk put, get */
            int to = (pe->pe + 1 + (int)((dice >> 24) % (uint64_t)pe->pes)) % pe->pes;
            for (int i = 0; i < ROOM * 2; i++) {
                data[i] = (unsigned char)(i * 7 + pe->pe * 31 + (int)(dice >> 32));
            }
            memset(all->host_target, POISON, part * (size_t)pe->pes);
            fill(pe, all->world, all->target, POISON, part * (size_t)pe->pes);
            OK(pe, weft_putmem(all->world, all->source, data, ROOM * 2, pe->pe));
            OK(pe, weft_barrier(all->world));
            /* Each PE writes its own part of the target; a get reads what a put would have brought. */
            size_t place = (size_t)pe->pe * part + (size_t)to_offset;
            OK(pe, weft_putmem(all->world, all->host_target + place, data + from_offset, (size_t)bytes, to));
            unsigned char *dest = all->target + place;
            const unsigned char *source = all->source + from_offset;
            if (way == 0) {
                LAUNCH_KIND(put_kernel, kind, pe, 0, all->dev, dest, source, (wefti_u64)bytes, to, all->status);
            } else if (way == 1) {
                LAUNCH_KIND(put_bulk_kernel, kind, pe, 16384, all->dev, dest, source, (wefti_u64)bytes, to, 16384u,
                            all->status);
            } else {
                /* From PE `to`'s source into this PE's own target; the host likewise. */
                memset(all->host_target + (size_t)pe->pe * part, POISON, part);
                LAUNCH_KIND(get_kernel, kind, pe, 0, all->dev, dest, source, (wefti_u64)bytes, to, all->status);
            }
            CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
            OK(pe, weft_barrier(all->world));
            OK(pe, weft_getmem(all->world, seen, all->target, part * (size_t)pe->pes, pe->pe));
            if (way == 2) {
                unsigned char *want = expected;
                memset(want, POISON, part * (size_t)pe->pes);
                for (int i = 0; i < bytes; i++) {
                    want[place + (size_t)i] = (unsigned char)((i + from_offset) * 7 + to * 31 + (int)(dice >> 32));
                }
                CHECK_SAY(pe, memcmp(seen, want, part * (size_t)pe->pes) == 0,
                          "get of %d bytes, scope %d, offsets %d %d", bytes, kind, to_offset, from_offset);
            } else {
                size_t wrong = 0;
                while (wrong < part * (size_t)pe->pes && seen[wrong] == all->host_target[wrong]) {
                    wrong++;
                }
                CHECK_SAY(pe, wrong == part * (size_t)pe->pes,
                          "%s of %d bytes, scope %d, offsets %d %d: byte %zu of the part of PE %zu is %d, not %d",
                          way == 0 ? "put" : "bulk put", bytes, kind, to_offset, from_offset, wrong % part,
                          wrong / part, seen[wrong], all->host_target[wrong]);
            }
            OK(pe, weft_barrier(all->world));
        }
    }
    free(data);
    free(seen);
    free(expected);
}

/* What calls of the host begin is complete after a quiet, a barrier, or a barrier or quiet on a stream, whichever comes
 * first, and is ordered by a fence before what the CPU stores then. */
static void test_nbi(test_pe *pe, bench *all)
{
    enum { BLOCKS = 16, BYTES = 3000 };
    unsigned char data[BLOCKS * BYTES];
    unsigned char seen[BLOCKS * BYTES];
    const int right = (pe->pe + 1) % pe->pes;
    const int left = (pe->pe + pe->pes - 1) % pe->pes;
    weft_stream *stream = (weft_stream *)(uintptr_t)pe->stream;
    pe->stage = "nbi";
    for (int how = 0; how < 4; how++) {
        for (int i = 0; i < BLOCKS * BYTES; i++) {
            data[i] = (unsigned char)(i * 3 + how * 17 + pe->pe * 41);
        }
        fill(pe, all->world, all->target, POISON, sizeof data);
        OK(pe, weft_barrier(all->world));
        for (size_t at = 0; at < sizeof data; at += BYTES) {
            OK(pe, weft_putmem_nbi(all->world, all->target + at, data + at, BYTES, right));
        }
        if (how == 0) {
            OK(pe, weft_quiet(all->world));
        } else if (how == 1) {
            OK(pe, weft_fence(all->world));
        } else if (how == 2) {
            OK(pe, weft_quiet_on_stream(all->world, stream));
        } else {
            OK(pe, weft_barrier_on_stream(all->world, stream));
            finish(pe);
        }
        memset(data, POISON, sizeof data);
        OK(pe, how == 3 ? WEFT_OK : weft_sync(all->world));
        memset(seen, POISON, sizeof seen);
        for (size_t at = 0; at < sizeof seen; at += BYTES) {
            OK(pe, weft_getmem_nbi(all->world, seen + at, all->target + at, BYTES, pe->pe));
        }
        OK(pe, weft_barrier(all->world));
        size_t wrong = 0;
        while (wrong < sizeof seen && seen[wrong] == (unsigned char)((int)wrong * 3 + how * 17 + left * 41)) {
            wrong++;
        }
        CHECK_SAY(pe, wrong == sizeof seen, "way %d: byte %zu is %d", how, wrong, seen[wrong % sizeof seen]);
    }
}

/* The host heap from kernels, also what was added to it after attaching. */
static void test_host_heap(test_pe *pe, bench *all)
{
    unsigned char *host = NULL;
    size_t bytes = (size_t)5 << 20;
    int right = (pe->pe + 1) % pe->pes;
    int left = (pe->pe + pe->pes - 1) % pe->pes;
    pe->stage = "host heap";
    OK(pe, weft_malloc(all->world, bytes, (void **)&host));
    memset(host, POISON, bytes);
    unsigned char *data = (unsigned char *)malloc(60000);
    for (int i = 0; i < 60000; i++) {
        data[i] = (unsigned char)(i + pe->pe * 91);
    }
    OK(pe, weft_putmem(all->world, all->source, data, 60000, pe->pe));
    OK(pe, weft_barrier(all->world));
    LAUNCH_KIND(put_kernel, KINDS - 1, pe, 0, all->dev, host + bytes - 60001, all->source, (wefti_u64)60000, right,
                all->status);
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    OK(pe, weft_barrier(all->world));
    int wrong = 0;
    while (wrong < 60000 && host[bytes - 60001 + (size_t)wrong] == (unsigned char)(wrong + left * 91)) {
        wrong++;
    }
    CHECK_SAY(pe, wrong == 60000 && host[bytes - 1] == POISON && host[bytes - 60002] == POISON, "byte %d", wrong);
    LAUNCH_KIND(get_kernel, KINDS - 1, pe, 0, all->dev, all->target, host + bytes - 60001, (wefti_u64)60000, right,
                all->status);
    CHECK(pe, read_status(pe, all->world, all->status) == WEFT_OK);
    unsigned char *seen = (unsigned char *)malloc(60000);
    OK(pe, weft_getmem(all->world, seen, all->target, 60000, pe->pe));
    CHECK(pe, memcmp(seen, data, 60000) == 0);
    OK(pe, weft_barrier(all->world));
    OK(pe, weft_free(all->world, host));
    free(seen);
    free(data);
}

#endif
