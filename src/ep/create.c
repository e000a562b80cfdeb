/* ep/create.c: making a group, with what its backend may call on others. */
#include "ep/backend.h"
#include "ep/group.h"
#include "weft_ep.h"

static const wefti_ep_calls calls = {
    .create = weft_ep_create,
    .destroy = weft_ep_destroy,
    .bytes = weft_ep_bytes,
    .route_create = weft_ep_route_create,
    .route_destroy = weft_ep_route_destroy,
    .route_choose = weft_ep_route_choose,
    .dispatch = weft_ep_dispatch,
    .combine_with = weft_ep_combine_with,
};

weft_status weft_ep_create(weft_team *team, const weft_ep_config *config, weft_ep **ep)
{
    return wefti_ep_create(team, config, &calls, ep);
}

weft_status weft_ep_bytes(const weft_ep_config *config, int ranks, weft_ep_memory *memory)
{
    return wefti_ep_bytes(config, ranks, &calls, memory);
}
