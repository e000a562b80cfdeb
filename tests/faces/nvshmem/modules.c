/* Goal: two libraries of a process that know nothing of each other, each of which calls init and finalize, get
 * along: in any order, with other PEs and another way to meet the second time, and when one was built with an
 * older header.
 * Method: each library is module.c, loaded by dlopen with names of its own. They begin and end in all four orders;
 * every time each does its exchange while it has begun. Then the world ends, and they meet as pairs, by a unique
 * id; then, at last, again as the launcher started them. */
#include <dlfcn.h>
#include <unistd.h>

#include "faces/nvshmem/check.h"
#include "faces/nvshmem/module.h"

static struct module {
    int (*begin)(const module_meeting *meeting);
    int (*exchange)(void);
    void (*end)(void);
} modules[2];

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (found == NULL) {
        printf("%s\n", dlerror());
        exit(1);
    }
    return found;
}

static void load(struct module *module, const char *path)
{
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        printf("%s\n", dlerror());
        exit(1);
    }
    *(void **)&module->begin = symbol(library, "module_begin");
    *(void **)&module->exchange = symbol(library, "module_exchange");
    *(void **)&module->end = symbol(library, "module_end");
}

static void check_order(const module_meeting *meeting, int first, int ends_first)
{
    struct module *const one = &modules[first];
    struct module *const other = &modules[!first];
    CHECK(one->begin(meeting) == 0);
    CHECK(one->exchange() == 0);
    CHECK(other->begin(meeting) == 0);
    CHECK(other->exchange() == 0 && one->exchange() == 0);
    struct module *const last = &modules[!ends_first];
    modules[ends_first].end();
    CHECK(nvshmemx_init_status() == NVSHMEM_STATUS_IS_INITIALIZED);
    CHECK(last->exchange() == 0);
    last->end();
    CHECK(nvshmemx_init_status() == NVSHMEM_STATUS_IS_BOOTSTRAPPED);
}

static void check_orders(const module_meeting *meeting)
{
    for (int i = 0; i < 4; i++) {
        check_order(meeting, i & 1, i >> 1);
    }
}

/* Pairs of neighbours: an id each, which serves once, made by the one with the even number. */
static void make_pairs(int me, int pes, nvshmemx_uniqueid_t id[4])
{
    nvshmemx_uniqueid_t *const shared = ZEROED(nvshmemx_uniqueid_t, 4);
    nvshmemx_uniqueid_t mine = NVSHMEMX_UNIQUEID_INITIALIZER;
    for (int i = 0; i < 4 && me % 2 == 0; i++) {
        CHECK(nvshmemx_get_uniqueid(&mine) == 0);
        nvshmem_putmem(&shared[i], &mine, sizeof mine, me);
        nvshmem_putmem(&shared[i], &mine, sizeof mine, me + 1 < pes ? me + 1 : me);
    }
    nvshmem_barrier_all();
    memcpy(id, shared, 4 * sizeof *id);
    nvshmem_barrier_all();
    nvshmem_free(shared);
}

/* Usage: modules MODULE OTHER_MODULE */
int main(int argc, char **argv)
{
    nvshmemx_uniqueid_t id[4];
    if (argc != 3) {
        return 2;
    }
    load(&modules[0], argv[1]);
    load(&modules[1], argv[2]);
    nvshmem_init();
    const int me = nvshmem_my_pe();
    const int pes = nvshmem_n_pes();
    make_pairs(me, pes, id);
    nvshmem_finalize();
    const module_meeting launched = {.id = NULL};
    check_orders(&launched);
    const int is_alone = me - me % 2 + 1 == pes;
    for (int i = 0; i < 4; i++) {
        const module_meeting pair = {.id = &id[i], .rank = me % 2, .ranks = is_alone ? 1 : 2};
        check_order(&pair, i & 1, i >> 1);
    }
    check_orders(&launched);
    return check_failures == 0 ? 0 : 1;
}
