/* bootstrap/tree/backend.h: slots of wefti_bootstrap_ops that all backends made of a tree have in common. Their state
 * begins with the wefti_tree; it is NULL in a world of one PE, which needs none. */
#ifndef WEFTI_BOOTSTRAP_TREE_BACKEND_H
#define WEFTI_BOOTSTRAP_TREE_BACKEND_H

#include "bootstrap/bootstrap.h"

weft_status wefti_tree_backend_allgather(wefti_bootstrap *bootstrap, const void *mine, void *all, size_t bytes);
weft_status wefti_tree_backend_digest(wefti_bootstrap *bootstrap, const wefti_digest_call *call);
weft_status wefti_tree_backend_check(wefti_bootstrap *bootstrap);

#endif
