/* bootstrap/uid/uid.c: placeholder until the real one lands. */
#include "base/error.h"
#include "bootstrap/bootstrap.h"

static weft_status refuse(void)
{
    return wefti_error(WEFT_ERR_UNSUPPORTED, "unique ids are not built in yet");
}

weft_status weft_uid_create(const char *interface, weft_uid *uid)
{
    (void)interface;
    (void)uid;
    return refuse();
}

weft_status weft_uid_discard(const weft_uid *uid)
{
    (void)uid;
    return refuse();
}

static weft_status uid_open(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    (void)config;
    (void)bootstrap;
    return refuse();
}

const wefti_bootstrap_ops wefti_bootstrap_uid = {.name = "uid", .open = uid_open};
