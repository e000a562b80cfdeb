#include "support/forked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "os/os.h"

#define AWAIT_NS UINT64_C(60000000000)
#define AGAIN_NS UINT64_C(100000)

void *forked_share(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("forked_share");
        abort();
    }
    return memory;
}

int forked_await(_Atomic unsigned *count, unsigned wanted)
{
    const uint64_t until_ns = wefti_os_now_ns() + AWAIT_NS;
    while (atomic_load(count) < wanted && wefti_os_now_ns() < until_ns) {
        wefti_os_sleep_ns(AGAIN_NS);
    }
    return atomic_load(count) >= wanted;
}

int forked_allgather(void *context, const void *mine, void *all, size_t bytes)
{
    forked_member *own = context;
    forked_exchange *exchange = own->exchange;
    if (bytes > FORKED_PLACE_BYTES || own->pes > FORKED_PES_MAX) {
        return 2;
    }
    memcpy(exchange->places[own->pe], mine, bytes);
    atomic_fetch_add(&exchange->arrived, 1);
    if (!forked_await(&exchange->arrived, (unsigned)own->pes * ++own->calls)) {
        return 1;
    }
    for (int pe = 0; pe < own->pes; pe++) {
        memcpy((char *)all + (size_t)pe * bytes, exchange->places[pe], bytes);
    }
    atomic_fetch_add(&exchange->arrived, 1); /* until all have read, nobody writes its place again */
    return !forked_await(&exchange->arrived, (unsigned)own->pes * ++own->calls);
}
