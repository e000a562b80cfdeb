/* bootstrap/tree/backend.c: what a backend made of a tree does once it is open. */
#include "bootstrap/tree/backend.h"

#include <string.h>

#include "bootstrap/tree/tree.h"

weft_status wefti_tree_backend_allgather(wefti_bootstrap *bootstrap, const void *mine, void *all, size_t bytes)
{
    wefti_tree *tree = bootstrap->state;
    if (tree == NULL) {
        memmove(all, mine, bytes);
        return WEFT_OK;
    }
    return wefti_tree_allgather(tree, mine, all, bytes, wefti_bootstrap_limit_ns(bootstrap));
}

weft_status wefti_tree_backend_digest(wefti_bootstrap *bootstrap, const wefti_digest_call *call)
{
    wefti_tree *tree = bootstrap->state;
    return tree == NULL ? call->make(call->mine, 1, call->digest)
                        : wefti_tree_digest(tree, call, wefti_bootstrap_limit_ns(bootstrap));
}

weft_status wefti_tree_backend_check(wefti_bootstrap *bootstrap)
{
    wefti_tree *tree = bootstrap->state;
    return tree == NULL ? WEFT_OK : wefti_tree_check(tree);
}
