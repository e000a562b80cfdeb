/* bootstrap/env/master.h: where PE 0 is, by MASTER_ADDR and the port. */
#ifndef WEFTI_BOOTSTRAP_ENV_MASTER_H
#define WEFTI_BOOTSTRAP_ENV_MASTER_H

#include "bootstrap/tcp/contact.h"

typedef struct wefti_env_master {
    wefti_tcp_contact contact;
    /* MASTER_ADDR is loopback by its text, so that all PEs are on one node. A name that leads there on its own host, as
     * many do, says nothing. */
    int is_loopback;
} wefti_env_master;

/* Read the variables and look the name up, again and again until `until_ns`: who names a host may not be up yet. */
weft_status wefti_env_master_find(uint64_t until_ns, wefti_env_master *master);
/* Whether one of the addresses is this host's. */
int wefti_env_master_is_here(const wefti_env_master *master);

#endif
