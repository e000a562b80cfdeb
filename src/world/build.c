/* The build's key. The sources' hash covers every layout, protocol and table there is, also the next one; what one
 * source gives differently by compiler, processor and option is beside it. The build system says WEFTI_SOURCE_HASH. */
#include "world/build.h"

#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "weft/device/dev.h"
#include "weft/protocol/coll_layout.h"
#include "weft/protocol/ep_layout.h"
#include "weft/protocol/layout.h"

uint64_t wefti_build_key(void)
{
    static const unsigned char no_secret[WEFTI_HASH_BYTES] = {0};
    const uint64_t numbers[] = {
        WEFTI_SOURCE_HASH,
        WEFTI_TSAN, /* which leaves less address space */
        __BYTE_ORDER__,
        sizeof(void *),
        sizeof(int),
        sizeof(wefti_control),
        sizeof(wefti_vote_line),
        sizeof(wefti_team_area),
        sizeof(wefti_coll_area),
        sizeof(wefti_coll_slot),
        sizeof(wefti_ep_call_header),
        sizeof(wefti_ep_reply),
        sizeof(wefti_dev_control),
        sizeof(wefti_dev_ring),
    };
    unsigned char hash[WEFTI_HASH_BYTES];
    uint64_t key;
    wefti_hash(no_secret, numbers, sizeof numbers, hash);
    memcpy(&key, hash, sizeof key);
    return key;
}
