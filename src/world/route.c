/* Which transport carries what to whom: the transport map. The first open transport that reaches a PE
 * carries everything to it. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "world/world.h"

#define NETWORK_BYTES 640

static weft_status open_one(weft_world *world, const wefti_transport_ops *ops, const wefti_transport_exchange *exchange,
                            const weft_device_config *device)
{
    wefti_transport *transport = &world->transports[world->transport_count];
    memset(transport, 0, sizeof *transport);
    transport->ops = ops;
    const wefti_transport_setup setup = {
        .world = world->key,
        .pe = (int)world->view.pe,
        .pes = (int)world->view.pes,
        .slot = (unsigned char *)world->control,
        .view = &world->view,
        .pes_per_core = &world->pes_per_core,
        .deadline_ns = world->deadline_ns,
        .silence_ns = world->silence_ns,
        .progress_inline = world->progress_inline,
        .exchange = exchange,
        .device = device,
    };
    WEFT_TRY(ops->open(transport, &setup));
    world->transport_count++;
    return WEFT_OK;
}

weft_status wefti_world_transports_open(weft_world *world)
{
    WEFT_TRY(open_one(world, &wefti_transport_self, NULL, NULL));
    WEFT_TRY(open_one(world, &wefti_transport_map, NULL, NULL));
#ifdef WEFT_SIM
    WEFT_TRY(open_one(world, &wefti_transport_sim, NULL, NULL));
#endif
    return WEFT_OK;
}

weft_status wefti_world_network_open(weft_world *world, const wefti_transport_exchange *exchange,
                                     const weft_device_config *device)
{
#ifdef WEFT_HAVE_OFI
    WEFT_TRY(open_one(world, &wefti_transport_ofi, exchange, device));
    world->knows_fates = wefti_transport_ofi.fate != NULL;
    return WEFT_OK;
#else
    (void)world;
    (void)exchange;
    (void)device;
    return WEFT_OK; /* there is one open already, or worlds of several nodes are refused (apart.c) */
#endif
}

int wefti_world_pause(weft_world *world, uint64_t waited_ns, uint64_t left_ns)
{
    wefti_transport *last = &world->transports[world->transport_count - 1];
    if (last->ops->pause == NULL) {
        return 0;
    }
    last->ops->pause(last, wefti_os_pause_ns(waited_ns, left_ns, world->pes_per_core));
    return 1;
}

void wefti_world_transports_close(weft_world *world)
{
    while (world->transport_count > 0) {
        wefti_transport *transport = &world->transports[--world->transport_count];
        transport->ops->close(transport);
    }
}

wefti_transport *wefti_world_transport(weft_world *world, int pe)
{
    for (size_t i = 0; i < world->transport_count; i++) {
        if (world->transports[i].ops->reaches(&world->transports[i], pe)) {
            return &world->transports[i];
        }
    }
    return NULL;
}

/* The map's line of a transport between nodes, or nothing. */
static void describe_network(const weft_world *world, char text[NETWORK_BYTES])
{
    const wefti_transport *last = &world->transports[world->transport_count - 1];
    char uses[NETWORK_BYTES / 2] = "";
    text[0] = '\0';
    if (last->ops != &wefti_transport_map) {
        if (last->ops->describe != NULL) {
            last->ops->describe(last, uses, sizeof uses);
        }
        (void)snprintf(text, NETWORK_BYTES, "  %s   PEs of other nodes, by messages%s%s\n", last->ops->name,
                       uses[0] != '\0' ? ", " : "", uses);
    }
}

size_t weft_world_transport_map(const weft_world *world, char *text, size_t bytes)
{
    if (!wefti_world_is_alive(world)) {
        if (text != NULL && bytes > 0) {
            text[0] = '\0';
        }
        return 0;
    }
    const wefti_view *view = &world->view;
    char network[NETWORK_BYTES];
    char placement[WEFTI_OS_PLACEMENT_BYTES];
    describe_network(world, network);
    int length = snprintf(text, text == NULL ? 0 : bytes,
                          "world \"%s\", PE %u of %u\n"
                          "  map   PEs %u-%u, by load and store: one window, slots of %zu MiB at a stride of %zu MiB\n"
                          "  self  PE %u: %s\n%s",
                          world->name, view->pe, view->pes, view->near_first, view->near_first + view->near_count - 1,
                          (size_t)(world->heap_max_bytes >> 20), world->window->stride >> 20, view->pe,
                          wefti_os_placement_text(&world->placement, placement), network);
    return length < 0 ? 0 : (size_t)length;
}
