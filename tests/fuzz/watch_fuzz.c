/* Goal: what comes over the connections by which PEs notice who is gone does no harm, whatever it is, and whoever
 * connects: nothing is touched outside of what is known of PEs, each PE becomes gone once and is never there again, no
 * descriptor stays open.
 * Method: a watch goes round its loop on a network whose other ends say what the input says (wire.h). Every proof is
 * zeros, so that what comes behind a proof is tried too. Before that the input says where PEs listen, and of which
 * nodes they are. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "fuzz/wire.h"

static void hash_to_zeros(const unsigned char key[WEFTI_HASH_BYTES], const void *bytes, size_t count,
                          unsigned char out[WEFTI_HASH_BYTES])
{
    (void)key;
    (void)bytes;
    (void)count;
    memset(out, 0, WEFTI_HASH_BYTES);
}

#define wefti_hash hash_to_zeros
#include "transport/am/watch.c"
#include "transport/am/watch_link.c"

#define PES_MAX 12
#define ROUNDS 40
#define ROUND_NS UINT64_C(1000000000)

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes);

static unsigned char lost_count[PES_MAX];

static void note_lost(void *context, int pe, wefti_transport_fate fate)
{
    (void)context;
    (void)fate;
    if (++lost_count[pe] > 1) {
        abort();
    }
}

/* Two bytes a PE. */
static void read_contacts(const uint8_t *input, int pes, wefti_watch_contact *contacts)
{
    for (int pe = 0; pe < pes; pe++) {
        const uint8_t leader = input[2 * pe];
        const uint8_t host = input[2 * pe + 1];
        memset(&contacts[pe], host, sizeof contacts[pe]);
        contacts[pe].leader = leader < 0xf0 ? leader % (uint32_t)pes : leader * UINT32_C(0x01010101);
        contacts[pe].host_bytes = host < 0xf0 ? sizeof(struct sockaddr_in) * (host & 1) : host * UINT32_C(0x01010101);
        contacts[pe].host[0] = AF_INET;
        contacts[pe].host[1] = 0;
    }
}

static void check(const wefti_watch *watch, const unsigned char *before)
{
    if (watch->told_count > 2 * (size_t)watch->pes) {
        abort();
    }
    for (int pe = 0; pe < watch->pes; pe++) {
        if (watch->fates[pe] >= WEFTI_FATES || (before[pe] != WEFTI_FATE_THERE && before[pe] != watch->fates[pe])) {
            abort();
        }
    }
}

static void go_round(wefti_watch *watch)
{
    unsigned char before[PES_MAX];
    memcpy(before, watch->fates, (size_t)watch->pes);
    const uint64_t wait_ns = expire(watch);
    seek(watch);
    send_gone(watch);
    await_events(watch, wait_ns < ROUND_NS ? wait_ns : ROUND_NS);
    serve_links(watch);
    accept_all(watch);
    check(watch, before);
}

static void run_watch(int pe, int pes, const wefti_watch_contact *contacts)
{
    struct sockaddr_in host = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const wefti_view view = {.near_first = (uint32_t)pe, .near_count = (uint32_t)pes};
    const wefti_transport_setup world = {
        .world = 1, .pe = pe, .pes = pes, .view = &view, .silence_ns = UINT64_C(5000000000)};
    const wefti_watch_setup setup = {.world = &world, .host = (struct sockaddr *)&host, .lost = note_lost};
    wefti_watch *watch;
    wefti_watch_contact own;
    if (wefti_watch_create(&setup, &watch, &own) != WEFT_OK) {
        return;
    }
    take_contacts(watch, contacts, sizeof *contacts);
    watch->must_seek = 1;
    for (int round = 0; round < ROUNDS; round++) {
        go_round(watch);
    }
    send_leaving(watch);
    watch_free(watch);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes)
{
    wefti_watch_contact contacts[PES_MAX];
    if (bytes < 2 + 2 * PES_MAX) {
        return 0;
    }
    const int pes = 1 + input[1] % PES_MAX;
    memset(lost_count, 0, sizeof lost_count);
    read_contacts(input + 2, pes, contacts);
    wire_begin(input + 2 + 2 * PES_MAX, bytes - 2 - 2 * PES_MAX);
    run_watch(input[0] % pes, pes, contacts);
    if (wire_open_count() != 0) {
        abort();
    }
    return 0;
}
