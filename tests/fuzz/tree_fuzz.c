/* Goal: whatever bytes come over the connections by which PEs meet, nothing is read or written where it should not be,
 * nothing leaks, no socket stays open and the call ends with a status.
 * Method: a PE forms a tree and takes part in two exchanges, as PE 0 or as another, on a network whose other ends say
 * what the input says (wire.h). Every proof is right, so that what comes behind a proof is tried too. libFuzzer makes
 * inputs (run.sh); replay.c goes over those that are kept. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bootstrap/tcp/site.h"
#include "bootstrap/tree/tree.h"
#include "fuzz/wire.h"
#include "os/os.h"
#include "os/socket.h"

#define PES_MAX 20
#define BLOCK 24

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes);

static weft_status meet(wefti_tree_site *site, wefti_tree_listeners *listeners, wefti_tree_contact *occupied)
{
    (void)site;
    (void)occupied;
    int listener = wefti_os_socket_open(AF_INET);
    if (listener < 0 || wefti_os_socket_listen(listener, 1) != 0) {
        return wefti_error(WEFT_ERR_SYSTEM, "no descriptor to listen at");
    }
    listeners->descriptors[listeners->count++] = listener;
    return WEFT_OK;
}

static void prove(const wefti_tree_site *site, const wefti_tree_handshake *handshake,
                  unsigned char proof[WEFTI_TREE_PROOF_BYTES])
{
    (void)site;
    (void)handshake;
    memset(proof, 0, WEFTI_TREE_PROOF_BYTES);
}

static const wefti_tree_net net = {
    .name = "fuzz",
    .is_shared = 1,
    .refusal_is_final = 1,
    .listen_as_root = meet,
    .listen = wefti_tcp_site_listen,
    .resolve = wefti_tcp_site_resolve,
    .admit = wefti_tcp_site_admit,
    .prove = prove,
    .print = wefti_tcp_site_print,
};

static void run_pe(int pe, int pes)
{
    static wefti_tcp_site tcp;
    static wefti_tree tree;
    unsigned char mine[BLOCK] = "what this PE says";
    unsigned char all[PES_MAX * BLOCK];
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    wefti_tcp_contact root = {.count = 1, .addresses = {{.family = 4, .bytes = {127, 0, 0, 1}}}};
    wefti_tcp_contact_set_port(&root, 7);
    config.deadline_ns = UINT64_C(1000000000);
    memset(&tcp, 0, sizeof tcp);
    tcp.root_is_complete = 1;
    tcp.is_open = 1;
    if (wefti_tcp_site_init(&tcp, &net, &root, NULL) != WEFT_OK ||
        wefti_tree_open(&tree, &tcp.site, &config, pe, pes) != WEFT_OK) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        (void)!wefti_tree_allgather(&tree, mine, all, BLOCK, wefti_os_now_ns() + config.deadline_ns);
    }
    wefti_tree_close(&tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes)
{
    if (bytes < 2) {
        return 0;
    }
    int pes = 1 + input[1] % PES_MAX;
    wire_begin(input + 2, bytes - 2);
    run_pe(input[0] % pes, pes);
    if (wire_open_count() != 0) {
        abort();
    }
    return 0;
}
