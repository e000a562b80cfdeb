#include "support/am_rig.h"

#include <string.h>

#include "os/os.h"

static unsigned char memory[WEFTI_AM_REQUESTS_OUT][WEFTI_AM_MESSAGE_MAX];
static unsigned char pieces[WEFTI_AM_RMA_MAX * WEFTI_AM_RMA_BYTES];

int am_rig_open(wefti_am *am, wefti_am_peer *peers, const wefti_transport_setup *setup, const wefti_wire_ops *ops,
                int messages)
{
    static const unsigned alone = 1;
    memset(am, 0, sizeof *am);
    memset(peers, 0, (size_t)setup->pes * sizeof *peers);
    am->setup = *setup;
    am->setup.pes_per_core = &alone;
    am->wire = (wefti_wire){.ops = ops, .am = am};
    am->requests_free = WEFTI_AM_WAITING_MAX;
    am->peers = peers;
    wefti_am_rma_init(am, pieces);
    for (int pe = 0; pe < setup->pes; pe++) {
        if (pe != setup->pe) {
            peers[pe] = (wefti_am_peer){.is_known = 1, .credits = WEFTI_AM_CREDITS_MAX};
        }
    }
    for (int i = 0; i < messages; i++) {
        am->buffers[i] = (wefti_am_buffer){
            .role = WEFTI_AM_REQUEST_OUT, .header = (wefti_am_header *)(void *)memory[i], .next = am->free_out};
        am->free_out = &am->buffers[i];
        am->free_out_count++;
    }
    return wefti_os_monitor_create(&am->lock) == WEFT_OK;
}

void am_rig_close(wefti_am *am)
{
    wefti_os_monitor_destroy(am->lock);
}
