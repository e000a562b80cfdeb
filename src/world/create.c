/* Creating and destroying a world. The steps, each ended by a verdict that all PEs share, so that creation succeeds
 * everywhere or fails everywhere with one cause:
 *   meet    the bootstrap opens; PEs say hello and compare configurations. Nothing is mapped yet
 *   window  the first PE of the node makes the memory, writes its proof into the window's head and opens a port
 *   reach   one PE of each other process sees that this port is in reach, which its node's identity only hints at, so
 *           that nobody waits where it is not
 *   map     one PE of each other process takes the descriptor and maps it; every PE reserves its slot's first pages,
 *           shows in the window's head that it is there, and reads the first PE's proof in mapped memory: who finds it
 *           there has mapped the same as all others who do, and is in one link domain with them
 *   network where there are several nodes, PEs learn each other's addresses in it
 * The bootstrap is closed at the end. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/thread_state.h"
#include "os/socket.h"
#include "world/directory.h"
#include "world/timeline.h"
#include "world/world.h"

#define ADDRESS_SPACE_MAX ((uint64_t)1 << (WEFTI_TSAN ? 38 : 45)) /* of one window at most */
#define HAND_OVER_NS UINT64_C(60000000000) /* of memory, where nobody is seen to end and there is no deadline */
#define SLOT_ALIGNMENT ((uint64_t)WEFTI_OS_MEMORY_ALIGNMENT)

/* What creation knows beside the world; gone at its end. */
typedef struct wefti_creation {
    wefti_world_settings settings;
    wefti_transport_gpu gpu;
    wefti_bootstrap bootstrap;
    wefti_hello mine;
    wefti_directory *directory; /* of all PEs */
    wefti_os_ticket ticket; /* to the window that this PE made for its process */
    wefti_os_ticket *tickets; /* of all, where a process has several */
    int node_first; /* the node's lowest PE: it makes the memory */
    int node_pes;
    int node_last;
    int sharing_cores; /* the node's PEs that may run on this PE's processors, and on those of its first */
    int sharing_cores_of_first;
    int process_first; /* this process's lowest PE: it maps */
    int processes; /* of the node */
    wefti_window_shape window;
    int is_one_process; /* all PEs of the world */
    wefti_os_mark mark;
    wefti_os_pass pass;
} wefti_creation;

void wefti_world_phase(weft_world *world, const char *name)
{
    uint64_t now = wefti_os_now_ns();
    if (world->phase_count < WEFTI_WORLD_PHASES_MAX) {
        world->phases[world->phase_count++] = (weft_world_phase){.name = name, .ns = now - world->phase_start_ns};
    }
    world->phase_start_ns = now;
}

/* Who shares this PE's node, process and processors. One pass: where a node has many PEs, each of them makes it. */
static void find_neighbours(wefti_creation *creation, weft_world *world)
{
    const wefti_directory_pe *all = creation->directory->pes;
    const wefti_directory_pe *mine = &all[world->view.pe];
    creation->node_first = (int)mine->node;
    creation->process_first = (int)mine->process;
    creation->processes = 0;
    creation->node_pes = 0;
    creation->sharing_cores = 0;
    creation->sharing_cores_of_first = 0;
    for (int pe = creation->node_first; pe < (int)world->view.pes; pe++) {
        if (all[pe].node != mine->node) {
            continue;
        }
        if (pe == (int)world->view.pe) {
            world->slot = (size_t)creation->node_pes;
        }
        creation->node_last = pe;
        creation->node_pes++;
        creation->processes += all[pe].process == (uint32_t)pe;
        creation->sharing_cores += all[pe].cores == mine->cores;
        creation->sharing_cores_of_first += all[pe].cores == mine->node;
    }
}

static void set_slots(wefti_creation *creation, weft_world *world)
{
    uint64_t heap_max = creation->settings.heap_max_bytes;
    if (heap_max == 0) {
        uint64_t suggested = creation->directory->heap_auto_bytes;
        heap_max = ADDRESS_SPACE_MAX / world->view.pes; /* by all PEs of the world, so equal on all nodes */
        heap_max = suggested < heap_max ? suggested : heap_max;
        heap_max -= heap_max % SLOT_ALIGNMENT;
    }
    uint64_t page = wefti_os_page_bytes();
    world->sparse_bytes = (creation->settings.config.sparse_bytes + page - 1) / page * page;
    world->heap_max_bytes = (heap_max + page - 1) / page * page + world->sparse_bytes; /* the same on all PEs */
    uint64_t slot = wefti_layout_heap(world->view.pes, page) + world->heap_max_bytes;
    creation->window = (wefti_window_shape){
        .head_bytes = wefti_layout_head((size_t)creation->node_pes),
        .slots = (size_t)creation->node_pes,
        .stride = (slot + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT,
    };
}

/* ---- meet ---- */

/* PEs say hello and get the directory of all; `status` is what this PE knows to be wrong already. They agree whether
 * anything is. */
static weft_status exchange_hellos(wefti_creation *creation, weft_status status)
{
    wefti_bootstrap *bootstrap = &creation->bootstrap;
    const size_t bytes = wefti_directory_bytes(bootstrap->pes);
    creation->directory = wefti_alloc(bytes);
    if (creation->directory == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_world_create: no memory to meet %d PEs", bootstrap->pes);
    }
    WEFT_TRY(wefti_hello_init(&creation->mine, &creation->settings, bootstrap));
    creation->mine.status = status;
    const wefti_digest_call call = {.mine = &creation->mine,
                                    .bytes = sizeof creation->mine,
                                    .make = wefti_directory_make,
                                    .digest = creation->directory,
                                    .digest_bytes = bytes};
    WEFT_TRY(wefti_bootstrap_digest(bootstrap, &call));
    creation->directory->text[sizeof creation->directory->text - 1] = '\0';
    WEFT_TRY(wefti_verdict_tell(bootstrap, &creation->directory->verdict));
    if (creation->directory->status != WEFT_OK) {
        return wefti_error_relay((weft_status)creation->directory->status, creation->directory->text);
    }
    return wefti_directory_check(creation->directory, bootstrap->pes);
}

/* This PE cannot take part, with `status` and this thread's error. Where its config says how to meet the others they
 * are told, and all return the same; else they miss it at their deadline. */
static weft_status meet_to_refuse(wefti_creation *creation, weft_status status)
{
    char text[WEFTI_ERROR_BYTES];
    memcpy(text, wefti_thread_text(), sizeof text);
    if (creation->settings.can_meet &&
        wefti_bootstrap_open(&creation->settings.config, &creation->bootstrap) == WEFT_OK) {
        memcpy(wefti_thread_text(), text, sizeof text);
        weft_status told = exchange_hellos(creation, status);
        if (told != WEFT_ERR_TIMEOUT && told != WEFT_ERR_PEER) {
            return told;
        }
    }
    memcpy(wefti_thread_text(), text, sizeof text);
    return status;
}

/* What a PE that has too few free descriptors to connect to the others has to tell them. */
typedef struct refusal {
    const wefti_world_settings *settings;
    weft_status status;
    char text[WEFTI_ERROR_BYTES];
} refusal;

static void refuse_apart(void *argument)
{
    const refusal *own = argument;
    wefti_creation creation = {.settings = *own->settings};
    if (wefti_os_descriptors_unshare()) {
        memcpy(wefti_thread_text(), own->text, sizeof own->text);
        (void)meet_to_refuse(&creation, own->status);
        wefti_bootstrap_close(&creation.bootstrap);
        wefti_free(creation.directory);
    }
}

/* Opens the bootstrap. Where descriptors lack so that nobody could be told, a thread that has some of its own does. */
static weft_status open_bootstrap(wefti_creation *creation)
{
    weft_status status = wefti_bootstrap_open(&creation->settings.config, &creation->bootstrap);
    if (status != WEFT_ERR_SYSTEM || creation->bootstrap.has_met || !wefti_os_descriptors_are_spent()) {
        return status;
    }
    wefti_os_thread *thread;
    refusal own = {.settings = &creation->settings, .status = status};
    memcpy(own.text, wefti_thread_text(), sizeof own.text);
    if (wefti_os_thread_start(&thread, refuse_apart, &own) == WEFT_OK) {
        wefti_os_thread_join(thread);
    }
    return wefti_error_relay(status, own.text);
}

static weft_status meet(wefti_creation *creation, weft_world *world)
{
    wefti_bootstrap *bootstrap = &creation->bootstrap;
    WEFT_TRY(open_bootstrap(creation));
    world->view.pe = (uint32_t)bootstrap->pe;
    world->view.pes = (uint32_t)bootstrap->pes;
    wefti_world_phase(world, "bootstrap");
    WEFT_TRY(exchange_hellos(creation, WEFT_OK));
    world->key = wefti_hello_key(creation->directory->secret);
    find_neighbours(creation, world);
    creation->is_one_process = creation->node_pes == bootstrap->pes && creation->processes == 1;
    wefti_world_phase(world, "hello");
    return WEFT_OK;
}

/* ---- a slot ---- */

/* What belongs to `pe` of this world alone. */
static void derive(const wefti_creation *creation, wefti_hello_purpose purpose, int pe,
                   unsigned char name[WEFTI_HELLO_NAME_BYTES])
{
    wefti_hello_derive(creation->directory->secret, purpose, pe, name);
}

/* Who is near, and where: by rule when the node's PEs are consecutive, else by a table. */
static weft_status set_view(wefti_creation *creation, weft_world *world)
{
    wefti_view *view = &world->view;
    view->stride = (int64_t)creation->window.stride;
    view->near_first = (uint32_t)creation->node_first;
    view->near_count = (uint32_t)(creation->node_last - creation->node_first + 1);
    view->remote = creation->node_pes < (int)view->pes;
    if ((int)view->near_count == creation->node_pes) {
        return WEFT_OK;
    }
    world->delta = wefti_alloc(view->near_count * sizeof *world->delta);
    if (world->delta == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_world_create: no memory for a table of %u PEs", view->near_count);
    }
    int64_t slot = 0;
    for (uint32_t i = 0; i < view->near_count; i++) {
        int is_near = creation->directory->pes[view->near_first + i].node == view->near_first;
        world->delta[i] = is_near ? (slot++ - (int64_t)world->slot) * view->stride : WEFTI_FAR;
    }
    view->delta = world->delta;
    return WEFT_OK;
}

/* Say in the head of the window that this PE is here.
 *
 * First it changes a word of the head's first page to what it is: a page that is first read is mapped by the system
 * together with its neighbours, which nobody reads as long as all goes well and each PE has to map and unmap. */
static void show(const wefti_creation *creation, weft_world *world)
{
    wefti_presence *presence = wefti_world_presence(world, world->slot);
    (void)wefti_add64(&world->head->abort, 0);
    unsigned char proof[sizeof presence->proof];
    derive(creation, WEFTI_HELLO_PROOF, (int)world->view.pe, proof);
    wefti_copy(presence->proof, proof, sizeof proof);
    wefti_st64(&presence->process, wefti_hello_process(&creation->mine), WEFTI_RELAXED);
    wefti_st64(&presence->pe, world->view.pe, WEFTI_RELEASE);
}

static size_t heap_bytes_at_first(const wefti_creation *creation)
{
    size_t page = wefti_os_page_bytes();
    return (creation->settings.heap_bytes + page - 1) / page * page;
}

static weft_status fill_slot(wefti_creation *creation, weft_world *world)
{
    size_t offset = wefti_window_slot(world->window, world->slot);
    size_t heap_offset = wefti_layout_heap(world->view.pes, wefti_os_page_bytes());
    size_t heap_bytes = heap_bytes_at_first(creation);
    unsigned char *slot = world->window->memory.base + offset;
    wefti_os_memory *memory = &world->window->memory;
    world->placement = wefti_os_memory_place(memory, offset, heap_offset + world->heap_max_bytes);
    WEFT_TRY(wefti_os_memory_reserve(memory, offset, heap_offset));
    WEFT_TRY(wefti_os_memory_reserve(memory, offset + heap_offset + world->sparse_bytes, heap_bytes));
    world->head = (wefti_head *)(void *)world->window->memory.base;
    world->control = (wefti_control *)(void *)slot;
    wefti_st64(&world->control->reserved, heap_offset + world->sparse_bytes + heap_bytes, WEFTI_RELAXED);
    show(creation, world);
    world->heap = slot + heap_offset;
    world->view.heap = (uintptr_t)world->heap;
    world->view.heap_bytes = world->sparse_bytes + heap_bytes;
    wefti_blocks_init(&world->blocks, world->heap_max_bytes);
    world->blocks.lead = heap_offset; /* slots are aligned to all that a block can be */
    if (world->sparse_bytes > 0) {
        WEFT_TRY(wefti_blocks_take(&world->blocks, 0, world->sparse_bytes, WEFTI_OWNER_LIBRARY));
    }
    WEFT_TRY(set_view(creation, world));
    wefti_world_come(world);
    return WEFT_OK;
}

/* ---- window ---- */

static int makes_memory(const wefti_creation *creation, const weft_world *world)
{
    return creation->node_first == (int)world->view.pe;
}

/* Whether this PE is the lowest of its process. */
static int is_first(const wefti_creation *creation, const weft_world *world)
{
    return creation->process_first == (int)world->view.pe;
}

/* Where a process has several PEs, all will learn where its first has put the window. */
static weft_status make_room_for_tickets(wefti_creation *creation)
{
    const int pes = creation->bootstrap.pes;
    if (wefti_directory_shares_process(creation->directory, pes)) {
        creation->tickets = wefti_alloc((size_t)pes * sizeof *creation->tickets);
        if (creation->tickets == NULL) {
            return wefti_error(WEFT_ERR_MEMORY, "weft_world_create: no memory for the tickets of %d PEs", pes);
        }
    }
    return WEFT_OK;
}

static weft_status make_window(wefti_creation *creation, weft_world *world)
{
    WEFT_TRY(make_room_for_tickets(creation));
    set_slots(creation, world);
    const uint64_t heap_max_bytes = world->heap_max_bytes - world->sparse_bytes;
    if (creation->settings.heap_bytes > heap_max_bytes) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "weft_world_create: heap_bytes %llu exceeds the %llu that are the most by default; set "
                           "heap_max_bytes or WEFT_HEAP_MAX",
                           (unsigned long long)creation->settings.heap_bytes, (unsigned long long)heap_max_bytes);
    }
    WEFT_TRY(wefti_directory_expect_heaps(creation->directory, (int)world->view.pes, (int)world->view.pe,
                                          &creation->mine.left, heap_bytes_at_first(creation)));
    if (is_first(creation, world)) {
        WEFT_TRY(wefti_window_create(&creation->ticket, &world->window));
    }
    if (makes_memory(creation, world)) {
        WEFT_TRY(wefti_window_make(world->window, &creation->window));
        WEFT_TRY(fill_slot(creation, world));
        if (creation->processes > 1) {
            unsigned char name[WEFTI_HELLO_NAME_BYTES];
            derive(creation, WEFTI_HELLO_MARK, creation->node_first, name);
            WEFT_TRY(wefti_os_mark_open(&creation->mark, name));
            derive(creation, WEFTI_HELLO_PORT, creation->node_first, name);
            WEFT_TRY(wefti_os_pass_open(&creation->pass, name));
        }
    }
    return WEFT_OK;
}

/* ---- reach ---- */

static weft_status look_for_maker(wefti_creation *creation, weft_world *world)
{
    wefti_os_mark_sight sight = WEFTI_OS_MARK_SEEN;
    unsigned char name[WEFTI_HELLO_NAME_BYTES];
    if (!makes_memory(creation, world) && is_first(creation, world)) {
        derive(creation, WEFTI_HELLO_MARK, creation->node_first, name);
        WEFT_TRY(wefti_os_mark_look(name, &sight));
    }
    if (sight == WEFTI_OS_MARK_SEEN) {
        return WEFT_OK;
    }
    return wefti_error(
        WEFT_ERR_UNREACHABLE,
        "weft_world_create: PE %u cannot reach PE %d, though both claim one node: %s; give PEs that share "
        "no memory different values of WEFT_NODE_ID, others the same or none",
        world->view.pe, creation->node_first,
        sight == WEFTI_OS_MARK_FOREIGN ? "they belong to different users"
                                       : "they are on different hosts or in different network namespaces");
}

/* ---- map ---- */

static weft_status take(wefti_creation *creation, weft_world *world, const wefti_os_watch *watch, uint64_t until_ns)
{
    unsigned char port[WEFTI_HELLO_NAME_BYTES];
    unsigned char token[WEFTI_HELLO_NAME_BYTES];
    int descriptor;
    derive(creation, WEFTI_HELLO_PORT, creation->node_first, port);
    derive(creation, WEFTI_HELLO_TOKEN, creation->node_first, token);
    WEFT_TRY(wefti_os_pass_take(port, token, until_ns, watch, &descriptor));
    return wefti_window_adopt(world->window, descriptor, &creation->window);
}

/* All PEs of a process use the window of its lowest. */
static weft_status join_window(const wefti_creation *creation, weft_world *world, uint64_t until_ns)
{
    int first = creation->process_first;
    weft_status status = wefti_window_join(&creation->tickets[first], &world->window);
    if (status == WEFT_ERR_PEER) {
        return wefti_error(WEFT_ERR_PEER,
                           "world \"%s\": PE %d, of the same process as PE %u, has given up its creation", world->name,
                           first, world->view.pe);
    }
    return status == WEFT_OK ? wefti_window_wait(world->window, until_ns) : status;
}

/* Until when memory is handed over in a world without a deadline: for ever if the bootstrap notices who is gone. */
static uint64_t hand_over_limit_ns(const wefti_bootstrap *bootstrap)
{
    return bootstrap->ops->check != NULL ? UINT64_MAX : wefti_os_now_ns() + HAND_OVER_NS;
}

static weft_status check_others(void *bootstrap)
{
    return wefti_bootstrap_check(bootstrap);
}

static weft_status take_or_serve(wefti_creation *creation, weft_world *world)
{
    /* Gives up a little before the deadline, at which others, who wait for the verdict already, give up. */
    uint64_t until_ns = world->deadline_ns != WEFT_FOREVER
                            ? creation->bootstrap.until_ns - creation->bootstrap.deadline_ns / 16
                            : hand_over_limit_ns(&creation->bootstrap);
    const wefti_os_watch watch = {check_others, &creation->bootstrap};
    if (makes_memory(creation, world)) {
        unsigned char token[WEFTI_HELLO_NAME_BYTES];
        derive(creation, WEFTI_HELLO_TOKEN, creation->node_first, token);
        return creation->processes > 1 ? wefti_os_pass_serve(&creation->pass, token, world->window->memory.descriptor,
                                                             creation->processes - 1, until_ns, &watch)
                                       : WEFT_OK;
    }
    if (!is_first(creation, world)) {
        return join_window(creation, world, until_ns);
    }
    weft_status status = take(creation, world, &watch, until_ns);
    if (status != WEFT_OK) {
        wefti_window_fail(world->window);
    }
    return status;
}

/* ---- teams ---- */

/* Fill in the record of a predefined team, whose words lie at `area_offset` in the slot. */
static void team_record(weft_team *team, weft_world *world, int pe, int start, int pes, size_t area_offset)
{
    memset(team, 0, sizeof *team);
    team->world = world;
    team->number = ++world->teams_made;
    team->pe = pe;
    team->pes = pes;
    team->start = start;
    team->stride = 1;
    team->rounds = wefti_rounds((unsigned)pes);
    team->area = (wefti_team_area *)(void *)((unsigned char *)world->control + area_offset);
    team->epochs = &team->area->epochs;
    team->predefined = 1;
}

/* The node team's members, when they follow no rule. */
static weft_status list_node(wefti_creation *creation, weft_world *world)
{
    weft_team *team = &world->team_node;
    if (world->delta == NULL) {
        return WEFT_OK;
    }
    team->list = wefti_alloc((size_t)team->pes * sizeof *team->list);
    if (team->list == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_world_create: no memory for the list of %d PEs of the node",
                           team->pes);
    }
    int count = 0;
    for (int pe = creation->node_first; pe <= creation->node_last; pe++) {
        if (wefti_pe_is_near(&world->view, pe)) {
            team->list[count++] = pe;
        }
    }
    return WEFT_OK;
}

/* How many PEs share a processor of `pe`, rounded up. PEs bound to a processor each do not, though each sees one
 * only. */
static unsigned pes_per_core_of(const wefti_directory_pe *pe, int sharing_cores)
{
    const unsigned all = (unsigned)sharing_cores;
    return all / pe->cores_count + (all % pe->cores_count != 0);
}

static void set_waiting(const wefti_creation *creation, weft_world *world)
{
    const uint64_t spins = creation->settings.spins;
    world->pes_per_core = pes_per_core_of(&creation->directory->pes[world->view.pe], creation->sharing_cores);
    world->view.spins = spins != 0 ? (uint32_t)spins : wefti_os_spins(world->pes_per_core, world->view.remote != 0);
    world->oversubscribed = /* the same on all PEs of the node */
        pes_per_core_of(&creation->directory->pes[creation->node_first], creation->sharing_cores_of_first) > 1;
    wefti_team_set_meeting(&world->team_world);
    wefti_team_set_meeting(&world->team_node);
    wefti_team_set_meeting(&world->team_same_slot);
    wefti_team_set_meeting(&world->team_link);
}

/* On one node every PE is alone in its slot. */
static weft_status set_same_slot(const wefti_creation *creation, weft_world *world)
{
    int me = (int)world->view.pe;
    int pes = (int)world->view.pes;
    int32_t *members = NULL;
    int count = 1;
    int number = 0;
    if (creation->node_pes < pes) {
        WEFT_TRY(wefti_directory_same_slot(creation->directory, pes, me, &members, &count, &number));
    }
    team_record(&world->team_same_slot, world, number, me, count, wefti_layout_same_slot_area(world->view.pes));
    world->team_same_slot.list = members;
    return WEFT_OK;
}

/* The window reaches every PE of the node, and no other. */
static weft_status set_link_domains(const wefti_creation *creation, weft_world *world)
{
    size_t pes = world->view.pes;
    if (creation->node_pes == (int)pes) {
        return WEFT_OK;
    }
    world->link_domain = wefti_alloc(pes * sizeof *world->link_domain);
    if (world->link_domain == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_world_create: no memory for the link domains of %zu PEs", pes);
    }
    for (size_t pe = 0; pe < pes; pe++) {
        world->link_domain[pe] = (int32_t)creation->directory->pes[pe].node;
    }
    return WEFT_OK;
}

static weft_status set_teams(wefti_creation *creation, weft_world *world)
{
    team_record(&world->team_world, world, (int)world->view.pe, 0, (int)world->view.pes, wefti_layout_world_area());
    team_record(&world->team_node, world, (int)world->slot, creation->node_first, creation->node_pes,
                wefti_layout_node_area(world->view.pes));
    WEFT_TRY(list_node(creation, world));
    WEFT_TRY(set_link_domains(creation, world));
    team_record(&world->team_link, world, (int)world->slot, creation->node_first, creation->node_pes,
                wefti_layout_link_area(world->view.pes));
    world->team_link.list = world->team_node.list;
    wefti_presence *presence = wefti_world_presence(world, world->slot);
    world->team_node.epochs = &presence->node;
    world->team_link.epochs = &presence->link;
    if (world->view.remote == 0) {
        world->team_world.epochs = &presence->world;
    }
    return set_same_slot(creation, world);
}

/* ---- the map step ---- */

/* Whether what this PE has mapped is what the maker has: the maker's proof is there, which no other memory holds. */
static weft_status find_maker(const wefti_creation *creation, const weft_world *world)
{
    const int maker = creation->node_first;
    const wefti_presence *presence = wefti_world_presence(world, wefti_world_slot(world, maker));
    unsigned char found[sizeof presence->proof];
    unsigned char proof[sizeof presence->proof];
    uint64_t number = wefti_ld64(&presence->pe, WEFTI_ACQUIRE);
    wefti_copy(found, presence->proof, sizeof found);
    derive(creation, WEFTI_HELLO_PROOF, maker, proof);
    if (number == (uint64_t)maker && memcmp(found, proof, sizeof proof) == 0) {
        return WEFT_OK;
    }
    return wefti_error(WEFT_ERR_UNREACHABLE,
                       "weft_world_create: PE %u does not find PE %d in mapped memory, though both claim one node; if "
                       "they run on different hosts, give those different values of WEFT_NODE_ID",
                       world->view.pe, maker);
}

static weft_status map_window(wefti_creation *creation, weft_world *world)
{
    wefti_bootstrap *bootstrap = &creation->bootstrap;
    if (creation->tickets != NULL) {
        WEFT_TRY(bootstrap->ops->allgather(bootstrap, &creation->ticket, creation->tickets, sizeof creation->ticket));
    }
    WEFT_TRY(take_or_serve(creation, world));
    if (!makes_memory(creation, world)) {
        WEFT_TRY(fill_slot(creation, world));
        WEFT_TRY(find_maker(creation, world));
    }
    WEFT_TRY(wefti_world_transports_open(world));
    return set_teams(creation, world);
}

/* ---- the network step ---- */

static weft_status gather_over_bootstrap(void *context, const void *mine, void *all, size_t bytes)
{
    wefti_bootstrap *bootstrap = context;
    return bootstrap->ops->allgather(bootstrap, mine, all, bytes);
}

static weft_status open_network(wefti_creation *creation, weft_world *world)
{
    const wefti_transport_exchange exchange = {gather_over_bootstrap, &creation->bootstrap};
    creation->gpu.config = creation->settings.config.device;
    weft_status status = wefti_world_network_open(world, creation->directory->networks, &exchange,
                                                  creation->gpu.find_pci != NULL ? &creation->gpu : NULL);
    if (status != WEFT_ERR_UNREACHABLE) {
        return status;
    }
    char text[WEFTI_ERROR_BYTES];
    (void)snprintf(text, sizeof text, "%s", wefti_thread_text());
    return wefti_error(status, "weft_world_create: nothing connects %.200s: %s", creation->directory->text, text);
}

/* ---- all of it ---- */

typedef struct step {
    const char *name;
    weft_status (*run)(wefti_creation *creation, weft_world *world);
} step;

/* The PEs of a process have one environment, so its lowest PE warns. If the PEs have not met, nobody knows who shares
 * its process, and each warns. */
static void warn_of_environment(const wefti_creation *creation, const weft_world *world, weft_status met)
{
    if (met != WEFT_OK || is_first(creation, world)) {
        char who[WEFTI_WORLD_NAME_BYTES + 16];
        (void)snprintf(who, sizeof who, "world \"%s\"", world->name);
        wefti_env_warn_of_unknown(who);
    }
}

static weft_status run_steps(wefti_creation *creation, weft_world *world)
{
    static const step steps[] = {
        {"window", make_window},
        {"reach", look_for_maker},
        {"map", map_window},
        {"network", open_network},
    };
    weft_status met = meet(creation, world);
    warn_of_environment(creation, world, met);
    WEFT_TRY(met);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if ((steps[i].run == look_for_maker && creation->is_one_process) ||
            (steps[i].run == open_network && creation->directory->text[0] == '\0')) {
            continue;
        }
        WEFT_TRY(wefti_verdict_reach(&creation->bootstrap, steps[i].run(creation, world)));
        wefti_world_phase(world, steps[i].name);
    }
    set_waiting(creation, world);
    WEFTI_COUNT_SET(world, heap_bytes_reserved, world->view.heap_bytes - world->sparse_bytes);
    for (size_t i = 0; i < world->phase_count; i++) {
        WEFTI_COUNT(world, create_ns, world->phases[i].ns);
    }
    world->owner = wefti_os_owner_number();
    world->magic = WEFTI_WORLD_MAGIC;
    return WEFT_OK;
}

static void creation_fini(wefti_creation *creation)
{
    wefti_os_mark_close(&creation->mark);
    wefti_os_pass_close(&creation->pass);
    wefti_bootstrap_close(&creation->bootstrap);
    wefti_os_ticket_close(&creation->ticket);
    wefti_free(creation->tickets);
    wefti_free(creation->directory);
}

static void end_attachments(weft_world *world)
{
    while (world->attachments != NULL) {
        wefti_attachment *attachment = world->attachments;
        wefti_world_detach(world, attachment);
        attachment->end(attachment);
    }
}

/* Leave in the handle's memory what makes every call refuse the world and its teams, as long as the memory is not used
 * again (wefti_free_late): a view without heap or PEs, which sends inline calls to their out-of-line half,
 * WEFTI_WORLD_ENDED, and dead teams. */
static void retire(weft_world *world)
{
    weft_team *const teams[] = {&world->team_world, &world->team_node, &world->team_same_slot, &world->team_link};
    memset(&world->view, 0, sizeof world->view);
    world->view.remote = 1;
    world->view.device = 1;
    for (size_t i = 0; i < sizeof teams / sizeof *teams; i++) {
        memset(teams[i], 0, sizeof *teams[i]);
        teams[i]->world = world;
        teams[i]->predefined = 1;
        teams[i]->destroyed = 1;
        teams[i]->dead = WEFT_ERR_STATE;
        (void)snprintf(teams[i]->dead_text, sizeof teams[i]->dead_text, "the world \"%s\" has been destroyed",
                       world->name);
    }
    world->magic = WEFTI_WORLD_ENDED;
    if (wefti_os_owned_give(world, sizeof *world)) {
        wefti_free_late(world);
    }
}

void wefti_world_free(weft_world *world)
{
    if (world == NULL) {
        return;
    }
    end_attachments(world);
    for (size_t i = 0; i < WEFTI_LATE_FREES; i++) {
        wefti_free(world->late_frees[i]);
    }
    wefti_timeline_close(world);
    if (world->device != NULL) {
        world->device->ops->detach(world->device);
    }
    wefti_world_transports_close(world);
    wefti_blocks_fini(&world->blocks);
    wefti_free(world->team_node.list);
    wefti_free(world->team_same_slot.list);
    wefti_free(world->team_link.coll);
    wefti_free(world->link_domain);
    wefti_free(world->team_same_slot.coll);
    wefti_free(world->team_node.coll);
    wefti_free(world->team_world.coll);
    wefti_free(world->delta);
    if (world->heap_lock != NULL) {
        wefti_os_monitor_destroy(world->heap_lock);
    }
    wefti_world_leave(world);
    wefti_window_leave(world->window);
    retire(world);
}

/* On failure *out may be half a world. */
static weft_status world_alloc(const wefti_world_settings *settings, weft_world **out)
{
    weft_world *world = wefti_os_owned_alloc(sizeof *world);
    if (world == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "weft_world_create: no memory for a world");
    }
    *out = world;
    world->view.abi = WEFTI_VIEW_ABI;
    world->phase_start_ns = wefti_os_now_ns();
    world->deadline_ns = settings->deadline_ns;
    world->warn_ns = settings->warn_ns;
    world->silence_ns = settings->silence_ns;
    world->progress_inline = settings->progress_inline;
    world->preferences = settings->preferences;
    world->prints_counters = settings->prints_counters != 0;
    world->interrupted = settings->config.interrupted;
    world->interrupted_context = settings->config.interrupted_context;
    world->check_call = wefti_world_check_call;
    strcpy(world->name, settings->config.name);
    return wefti_os_monitor_create(&world->heap_lock);
}

/* Newer headers may compile in what reads beyond this library's view. Of a newer patch level they are alike. */
static weft_status check_headers(const wefti_headers *headers)
{
    if (headers->view_abi <= WEFTI_VIEW_ABI && headers->version >> 8 <= WEFT_VERSION >> 8) {
        return WEFT_OK;
    }
    return wefti_error(
        WEFT_ERR_UNSUPPORTED,
        "weft_world_create: this program was compiled with headers of weft %d.%d.%d (ABI %u), the library "
        "is %s (ABI %d); install the library of the headers, or a newer one, or compile the program with "
        "the headers of this one",
        headers->version >> 16, headers->version >> 8 & 0xff, headers->version & 0xff, headers->view_abi,
        weft_version_text(), WEFTI_VIEW_ABI);
}

weft_status wefti_world_make(const weft_world_config *config, const wefti_headers *headers,
                             int (*find_pci)(const weft_device_config *config, char *text, int bytes),
                             wefti_world_settings *settings, weft_world **out)
{
    wefti_creation creation = {
        .gpu.find_pci = find_pci, .mark = {.listener = -1}, .pass = {.listener = -1}, .ticket.descriptor = -1};
    weft_world *world = NULL;
    weft_status status = wefti_world_settings_init(&creation.settings, config);
    if (status == WEFT_OK) {
        status = check_headers(headers);
    }
    if (status == WEFT_OK) {
        status = world_alloc(&creation.settings, &world);
    }
    status = status == WEFT_OK ? run_steps(&creation, world) : meet_to_refuse(&creation, status);
    creation_fini(&creation);
    if (status != WEFT_OK) {
        wefti_world_free(world);
        return status;
    }
    *settings = creation.settings;
    *out = world;
    return WEFT_OK;
}

weft_status weft_world_destroy(weft_world *world)
{
    if (world == NULL || wefti_world_is_forked(world)) {
        return WEFT_OK;
    }
    WEFT_TRY(wefti_world_expect(world, "weft_world_destroy"));
    wefti_world_counters_print(world);
    wefti_world_free(world);
    return WEFT_OK;
}
