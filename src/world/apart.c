/* Whether something connects all PEs, by what their hellos say: those of one node share memory, and between nodes there is
 * a network in simulations only. Every PE finds the same pair. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "world/hello.h"

#ifdef WEFT_SIM
#define HAS_NETWORK 1
#else
#define HAS_NETWORK 0
#endif
#define WORDS_BYTES 256

static int is_same_node(const wefti_hello *a, const wefti_hello *b)
{
    return memcmp(a->identity.node, b->identity.node, sizeof a->identity.node) == 0;
}

/* Two PEs of one host that differ in their network namespace, user or both. */
static void tell_what_differs(const wefti_os_identity *a, const wefti_os_identity *b, char words[WORDS_BYTES])
{
    int used = snprintf(words, WORDS_BYTES, "they are on one host, but ");
    if (a->network != b->network) {
        used += snprintf(words + used, WORDS_BYTES - (size_t)used,
                         "in different network namespaces (net:[%llu] and net:[%llu])",
                         (unsigned long long)a->network_file, (unsigned long long)b->network_file);
    }
    if (a->user != b->user) {
        (void)snprintf(words + used, WORDS_BYTES - (size_t)used, "%s different users (%llu and %llu)",
                       a->network == b->network ? "of" : ", and of", (unsigned long long)a->user,
                       (unsigned long long)b->user);
    }
}

/* Why two PEs are not on one node, and what to do. */
static const char *explain(const wefti_os_identity *a, const wefti_os_identity *b, char words[WORDS_BYTES])
{
    if (a->is_named || b->is_named) {
        (void)snprintf(words, WORDS_BYTES, "WEFT_NODE_ID says that they are on different nodes");
        return "give all PEs the same one, or none";
    }
    if (a->host != b->host) {
        (void)snprintf(words, WORDS_BYTES, "they are on different hosts");
        return "start all PEs on one host";
    }
    tell_what_differs(a, b, words);
    if (a->network == b->network) {
        return "start all PEs as one user";
    }
    return a->user == b->user ? "start all PEs in one network namespace (containers: docker run --network=host)"
                              : "start all PEs in one network namespace and as one user";
}

weft_status wefti_hello_check_nodes(const wefti_hello *all, int pes)
{
    char words[WORDS_BYTES];
    for (int pe = 1; pe < pes && !HAS_NETWORK; pe++) {
        if (!is_same_node(&all[0], &all[pe])) {
            const char *remedy = explain(&all[0].identity, &all[pe].identity, words);
            return wefti_error(WEFT_ERR_UNREACHABLE,
                               "weft_world_create: nothing connects PE 0 with PE %d: %s, and this build of weft has no "
                               "network between nodes; %s",
                               pe, words, remedy);
        }
    }
    return WEFT_OK;
}
