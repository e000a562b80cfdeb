/* Which transport carries what to whom: the transport map. The first open transport that reaches a PE
 * carries everything to it. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread_state.h"
#include "world/world.h"

#define NETWORK_BYTES 640

static weft_status open_one(weft_world *world, const wefti_transport_ops *ops, const wefti_transport_exchange *exchange,
                            const wefti_transport_gpu *gpu)
{
    assert(world->transport_count < WEFTI_WORLD_TRANSPORTS_MAX);
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
        .check = world->check_call,
        .check_context = world,
        .progress_inline = world->progress_inline,
        .exchange = exchange,
        .gpu = gpu,
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

static weft_status worst_of(const int32_t *all, int pes)
{
    weft_status worst = WEFT_OK;
    for (int pe = 0; pe < pes && (worst == WEFT_OK || worst == WEFT_ERR_UNREACHABLE); pe++) {
        worst = all[pe] != WEFT_OK ? (weft_status)all[pe] : worst;
    }
    return worst;
}

/* How it went on all PEs: *worst is WEFT_ERR_UNREACHABLE if nothing else has failed anywhere. */
static weft_status agree(weft_status mine, int pes, const wefti_transport_exchange *exchange, weft_status *worst)
{
    const int32_t told = mine;
    int32_t *all = wefti_alloc((size_t)pes * sizeof *all);
    if (all == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory for the statuses of %d PEs", pes);
    }
    weft_status status = exchange->allgather(exchange->context, &told, all, sizeof told);
    *worst = status == WEFT_OK ? worst_of(all, pes) : status;
    wefti_free(all);
    return status;
}

static void close_last(weft_world *world)
{
    wefti_transport *transport = &world->transports[--world->transport_count];
    transport->ops->close(transport);
}

/* What was tried, and why it does not do, goes before what is tried next. */
static void note(char tried[WEFTI_ERROR_BYTES], const char *name, weft_status status, const char *text)
{
    const size_t used = strlen(tried);
    const char *why = status == WEFT_OK ? "another PE cannot use it" : text;
    (void)snprintf(tried + used, WEFTI_ERROR_BYTES - used, "%s: %.300s; ", name, why);
    wefti_log(WEFTI_LOG_INFO, "the network %s is not used: %s", name, why);
}

/* Open the last network of the list; the caller finds out whether all PEs could. */
static weft_status open_last(weft_world *world, const wefti_transport_ops *ops, const char *tried,
                             const wefti_transport_exchange *exchange, const wefti_transport_gpu *gpu)
{
    weft_status status = open_one(world, ops, exchange, gpu);
    return status != WEFT_ERR_UNREACHABLE || tried[0] == '\0' ? status
                                                              : wefti_error_context(status, "%s%s", tried, ops->name);
}

weft_status wefti_world_network_open(weft_world *world, uint32_t networks, const wefti_transport_exchange *exchange,
                                     const wefti_transport_gpu *gpu)
{
    char tried[WEFTI_ERROR_BYTES] = "";
    for (; networks >> 8 != 0; networks >>= 8) {
        const wefti_transport_ops *ops = wefti_network_ops(networks & 0xff);
        weft_status worst = WEFT_OK;
        wefti_error_expect(1);
        weft_status status = open_one(world, ops, exchange, gpu);
        wefti_error_expect(0);
        char text[WEFTI_ERROR_BYTES] = "";
        if (status != WEFT_OK) {
            (void)snprintf(text, sizeof text, "%s", wefti_thread_text());
        }
        WEFT_TRY(agree(status, (int)world->view.pes, exchange, &worst));
        if (worst != WEFT_ERR_UNREACHABLE) {
            world->knows_fates = status == WEFT_OK && ops->fate != NULL;
            return status == WEFT_OK ? WEFT_OK : wefti_error(status, "%s", text);
        }
        note(tried, ops->name, status, text);
        if (status == WEFT_OK) {
            close_last(world);
        }
    }
    const wefti_transport_ops *last = wefti_network_ops(networks);
    if (last == NULL) {
        return WEFT_OK; /* the simulator's is open already; worlds of several nodes without any are refused (apart.c) */
    }
    WEFT_TRY(open_last(world, last, tried, exchange, gpu));
    world->knows_fates = last->fate != NULL;
    return WEFT_OK;
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
        close_last(world);
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
