/* Who is still there. A PE that ends cannot say so: the system does, by what its process signed (os/os.h). A PE that
 * destroys its world says so in the head of the window, which stays while others of the node share the memory. Of PEs
 * of other nodes the transport that reaches them tells. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/pe_list.h"
#include "weft/inline/rma.h"
#include "world/world.h"

#define LOST_LOOKS 5
#define LOST_LOOK_NS UINT64_C(50000000)

_Static_assert(WEFTI_GONE_BYTES > WEFTI_PE_LIST_BYTES + 16, "there is room for any list");

void wefti_world_come(weft_world *world)
{
    if (!wefti_os_memory_sign(&world->window->memory, world->slot)) {
        wefti_st64(&wefti_world_presence(world, world->slot)->unseen, 1, WEFTI_RELEASE);
        wefti_log(WEFTI_LOG_WARN,
                  "world \"%s\" PE %u: the system refuses record locks (fcntl), so that nobody will see when this PE "
                  "ends; others wait for it until their deadlines",
                  world->name, world->view.pe);
    }
}

void wefti_world_leave(weft_world *world)
{
    if (world->control != NULL) {
        wefti_st64(&wefti_world_presence(world, world->slot)->left, 1, WEFTI_RELEASE);
    }
}

/* The record of another PE of this node; NULL for all others. */
static const wefti_presence *neighbour(const weft_world *world, int pe)
{
    int is_neighbour = wefti_pe_is_near(&world->view, pe) && pe != (int)world->view.pe;
    return is_neighbour ? wefti_world_presence(world, wefti_world_slot(world, pe)) : NULL;
}

/* What is known of a PE of another node; of all others WEFTI_FATE_THERE. */
static wefti_transport_fate far_fate(const weft_world *world, int pe)
{
    const wefti_transport *last = &world->transports[world->transport_count - 1];
    return world->knows_fates && !wefti_pe_is_near(&world->view, pe) ? last->ops->fate(last, pe) : WEFTI_FATE_THERE;
}

int wefti_world_has_left(const weft_world *world, int pe)
{
    const wefti_presence *other = neighbour(world, pe);
    return other != NULL ? wefti_ld64(&other->left, WEFTI_ACQUIRE) != 0 : far_fate(world, pe) == WEFTI_FATE_LEFT;
}

int wefti_world_shares_process(const weft_world *world, int pe)
{
    const wefti_presence *mine = wefti_world_presence(world, world->slot);
    const wefti_presence *other = neighbour(world, pe);
    return other != NULL && wefti_ld64(&other->process, WEFTI_RELAXED) == wefti_ld64(&mine->process, WEFTI_RELAXED);
}

static int neighbour_has_ended(const weft_world *world, int pe)
{
    const wefti_presence *other = neighbour(world, pe);
    if (other == NULL || wefti_world_shares_process(world, pe) || wefti_ld64(&other->unseen, WEFTI_RELAXED) != 0) {
        return 0;
    }
    /* In this order: who leaves says so before its process closes the memory, with which its signature goes. */
    return !wefti_os_memory_is_signed(&world->window->memory, wefti_world_slot(world, pe)) &&
           wefti_ld64(&other->left, WEFTI_ACQUIRE) == 0;
}

int wefti_world_has_ended(const weft_world *world, int pe)
{
    return neighbour_has_ended(world, pe) || far_fate(world, pe) == WEFTI_FATE_ENDED;
}

int wefti_world_is_unreachable(const weft_world *world, int pe)
{
    return far_fate(world, pe) == WEFTI_FATE_SILENT;
}

int wefti_world_is_lost(const weft_world *world, int pe)
{
    return wefti_world_has_ended(world, pe) || wefti_world_is_unreachable(world, pe);
}

/* A near PE that has left is gone. A far one that has left is not: what it sent before may still arrive. */
int wefti_world_is_gone(const weft_world *world, int pe)
{
    return wefti_world_is_lost(world, pe) || (wefti_pe_is_near(&world->view, pe) && wefti_world_has_left(world, pe));
}

wefti_completion wefti_world_completion_without(const weft_world *world, int pe)
{
    if (wefti_world_is_lost(world, pe)) {
        return WEFTI_COMPLETION_IMPOSSIBLE;
    }
    if (!wefti_world_has_left(world, pe)) {
        return WEFTI_COMPLETION_POSSIBLE;
    }
    return world->knows_fates ? WEFTI_COMPLETION_DOUBTFUL : WEFTI_COMPLETION_IMPOSSIBLE;
}

int wefti_world_has_lost(const weft_world *world)
{
    for (int pe = 0; pe < (int)world->view.pes; pe++) {
        if (wefti_world_is_lost(world, pe)) {
            return 1;
        }
    }
    return 0;
}

static int count_lost(const weft_world *world)
{
    int count = 0;
    for (int pe = 0; pe < (int)world->view.pes; pe++) {
        count += wefti_world_is_lost(world, pe);
    }
    return count;
}

void wefti_world_await_all_lost(const weft_world *world)
{
    int known = 0;
    int lost = count_lost(world);
    for (int looks = 0; lost > known && looks < LOST_LOOKS; looks++) {
        known = lost;
        wefti_os_sleep_ns(LOST_LOOK_NS);
        lost = count_lost(world);
    }
}

/* Append the PEs for which `is_so`, if there are any. */
static void append(const weft_world *world, int (*is_so)(const weft_world *, int), const char *what,
                   unsigned char *marks, char text[WEFTI_GONE_BYTES])
{
    char list[WEFTI_PE_LIST_BYTES];
    size_t used = strlen(text);
    for (int pe = 0; pe < (int)world->view.pes; pe++) {
        marks[pe] = is_so(world, pe) != 0;
    }
    int count = wefti_pe_list_text(marks, (int)world->view.pes, 1, list);
    if (count > 0) {
        (void)snprintf(text + used, WEFTI_GONE_BYTES - used, "; %s %s %s", list, count == 1 ? "has" : "have", what);
    }
}

const char *wefti_world_gone_text(const weft_world *world, char text[WEFTI_GONE_BYTES])
{
    unsigned char *marks = wefti_alloc_zeroed(world->view.pes, 1);
    text[0] = '\0';
    if (marks != NULL) {
        append(world, wefti_world_has_ended, "ended", marks, text);
        append(world, wefti_world_is_unreachable, "become unreachable", marks, text);
        append(world, wefti_world_has_left, "left the world", marks, text);
    }
    wefti_free(marks);
    return text;
}
