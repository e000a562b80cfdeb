/* Whether something connects all PEs, by what their hellos say: those of one node share memory, and nodes need a
 * network that all PEs could use. Every PE finds the same pair. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "world/hello.h"

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

/* The lowest PE of another node than PE 0's; 0: there is none. */
static int find_other_node(const wefti_hello *all, int pes)
{
    for (int pe = 1; pe < pes; pe++) {
        if (!is_same_node(&all[0], &all[pe])) {
            return pe;
        }
    }
    return 0;
}

/* The lowest PE that has none of the networks of all PEs before it; -1: there is none, and all have some in common. */
static int find_without_network(const wefti_hello *all, int pes, uint32_t *common)
{
    *common = all[0].networks;
    for (int pe = 0; pe < pes; pe++) {
        *common = wefti_networks_common(*common, all[pe].networks);
        if (*common == 0) {
            return pe;
        }
    }
    return -1;
}

weft_status wefti_hello_check_nodes(const wefti_hello *all, int pes, char why[WEFTI_ERROR_BYTES], uint32_t *networks)
{
    char words[WORDS_BYTES];
    const int other = find_other_node(all, pes);
    why[0] = '\0';
    *networks = 0;
    if (other == 0) {
        return WEFT_OK;
    }
    const char *remedy = explain(&all[0].identity, &all[other].identity, words);
    const int without = find_without_network(all, pes, networks);
    if (without < 0) {
        (void)snprintf(why, WEFTI_ERROR_BYTES, "PE 0 with PE %d: %s", other, words);
        return WEFT_OK;
    }
    return wefti_error(
        WEFT_ERR_UNREACHABLE,
        "weft_world_create: nothing connects PE 0 with PE %d: %s, and PE %d has no network between nodes, in "
        "its build of weft (which needs the library of one, as libfabric) or by WEFT_TRANSPORT; %s",
        other, words, without, remedy);
}
