/* faces/nvshmem/team_ids.c: teams of any PEs, who have an id of one of them, the root, and call by themselves.
 *
 * The root keeps a table for each of its ids. Every member writes its PE number into the root's table, at its place in
 * the team. When the table is full, the root writes the id to `told` of each member, who then reads the table and adds
 * one to `read` of the root. A PE waits for one id at a time, so that one `told` and one place to join in are enough.
 * All are in the host's symmetric memory. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "faces/nvshmem/binding.h"

/* Ids of one root whose teams are not made yet. */
#define TABLES 16

/* An id: the root, the table, and how many ids the root had given before. */
#define ID(ROOT, TABLE, NUMBER) ((uint64_t)(ROOT) << 36 | (uint64_t)(TABLE) << 32 | (uint32_t)(NUMBER))
#define ROOT_OF(ID) ((int)((ID) >> 36 & 0xffffff))
#define TABLE_OF(ID) ((int)((ID) >> 32 & 15))

/* What the root writes to `told` instead of the id when the members' entries contradict each other. */
#define REFUSED ((uint64_t)1 << 62)

/* A member's entry: which id it means, how many it says that they are, and who it is. */
#define ENTRY(ID, PES, PE) (((ID)&0x3fff) << 48 | (uint64_t)(uint32_t)(PES) << 24 | (uint32_t)((PE) + 1))
#define PES_OF(ENTRY) ((int)((ENTRY) >> 24 & 0xffffff))
#define PE_OF(ENTRY) ((int)((ENTRY)&0xffffff) - 1)

/* Two members at one place. */
#define DOUBLE ((uint64_t)1 << 63)

/* In symmetric memory; a table has an entry for each PE of the world. */
typedef struct meeting_place {
    uint64_t told; /* the id whose table is full, or REFUSED */
    uint64_t read[TABLES]; /* how many members have read the table */
    uint64_t join[WEFT_TEAM_JOIN_BYTES / sizeof(uint64_t)];
    uint64_t tables[];
} meeting_place;

static meeting_place *place;
static uint64_t given[TABLES]; /* the ids; 0: the table is free */
static uint32_t count;

static uint64_t *table_of(int table)
{
    return &place->tables[(size_t)table * (size_t)weft_world_pes(WORLD)];
}

weft_status wefti_nv_team_ids_open(void)
{
    void *block;
    const size_t entries = TABLES * (size_t)weft_world_pes(WORLD);
    WEFT_TRY(weft_calloc(WORLD, 1, sizeof *place + entries * sizeof place->tables[0], &block));
    place = block;
    memset(given, 0, sizeof given);
    return WEFT_OK;
}

void wefti_nv_team_ids_close(void)
{
    place = NULL; /* it ends with its world */
}

int nvshmemx_team_get_uniqueid(nvshmemx_team_uniqueid_t *uniqueid)
{
    if (uniqueid == NULL || WORLD == NULL) {
        return uniqueid == NULL ? wefti_nv_refuse(__func__, NVSHMEMX_ERROR_INVALID_VALUE, "argument 'uniqueid' is NULL")
                                : wefti_nv_fail(__func__, WEFT_ERR_STATE);
    }
    wefti_nv_lock();
    int table = 0;
    while (table < TABLES && given[table] != 0) {
        table++;
    }
    if (table < TABLES) {
        memset(table_of(table), 0, (size_t)weft_world_pes(WORLD) * sizeof(uint64_t));
        place->read[table] = 0;
        *uniqueid = given[table] = ID(weft_world_pe(WORLD), table, ++count);
    }
    wefti_nv_unlock();
    return table < TABLES ? wefti_nv_result(__func__, WEFT_OK)
                          : wefti_nv_refuse(__func__, NVSHMEMX_ERROR_OUT_OF_MEMORY,
                                            "16 ids of this PE have no team yet; make those teams first");
}

/* The root: wait for all, and tell them. */
static weft_status serve(uint64_t id, int pes)
{
    const uint64_t *const table = table_of(TABLE_OF(id));
    uint64_t word = id;
    for (int i = 0; i < pes; i++) {
        WEFT_TRY(weft_uint64_wait_until(WORLD, &table[i], WEFT_CMP_NE, 0));
        const uint64_t entry = __atomic_load_n(&table[i], __ATOMIC_ACQUIRE);
        word = (entry & DOUBLE) != 0 || PES_OF(entry) != pes ? REFUSED : word;
    }
    for (int i = 0; i < pes; i++) {
        WEFT_TRY(weft_uint64_atomic_set(WORLD, &place->told, word, PE_OF(table[i])));
    }
    return WEFT_OK;
}

/* The members, in their order. Until all have them the table stays. */
static weft_status meet(uint64_t id, int pes, int mine, int *members)
{
    const int root = ROOT_OF(id);
    const int me = weft_world_pe(WORLD);
    uint64_t *const table = table_of(TABLE_OF(id));
    uint64_t before;
    WEFT_TRY(weft_uint64_atomic_compare_swap(WORLD, &table[mine], 0, ENTRY(id, pes, me), root, &before));
    if (before != 0) {
        WEFT_TRY(weft_uint64_atomic_compare_swap(WORLD, &table[mine], before, before | DOUBLE, root, &before));
        return WEFT_ERR_MISMATCH;
    }
    if (root == me) {
        WEFT_TRY(serve(id, pes));
    }
    WEFT_TRY(weft_uint64_wait_until(WORLD, &place->told, WEFT_CMP_NE, 0));
    const uint64_t word = __atomic_exchange_n(&place->told, 0, __ATOMIC_ACQUIRE);
    for (int i = 0; i < pes && word == id; i++) {
        uint64_t entry;
        WEFT_TRY(weft_uint64_g(WORLD, &table[i], root, &entry));
        members[i] = PE_OF(entry);
    }
    WEFT_TRY(weft_uint64_atomic_inc(WORLD, &place->read[TABLE_OF(id)], root));
    if (root == me) {
        WEFT_TRY(weft_uint64_wait_until(WORLD, &place->read[TABLE_OF(id)], WEFT_CMP_GE, (uint64_t)pes));
        given[TABLE_OF(id)] = 0;
    }
    return word == id ? WEFT_OK : WEFT_ERR_MISMATCH;
}

static int make_team(const char *call, nvshmem_team_t *team, const nvshmem_team_config_t *config, long mask, int pes,
                     int mine)
{
    weft_team *made;
    int *const members = malloc((size_t)pes * sizeof *members);
    weft_status status = members == NULL ? WEFT_ERR_MEMORY : meet(config->uniqueid, pes, mine, members);
    if (status == WEFT_ERR_MISMATCH) {
        free(members);
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_SYMMETRY,
                               "members of the team gave the same pe_idx_in_team, or another npes");
    }
    status = status == WEFT_OK ? weft_team_join_list(WORLD, members, pes, place->join, &made) : status;
    free(members);
    return status == WEFT_OK ? wefti_nv_team_open(call, made, config, mask, team) : wefti_nv_fail(call, status);
}

int nvshmemx_team_init(nvshmem_team_t *team, nvshmem_team_config_t *config, long config_mask, int npes,
                       int pe_idx_in_team)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    if (team == NULL || config == NULL || (config_mask & NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID) == 0) {
        return wefti_nv_refuse(__func__, NVSHMEMX_ERROR_INVALID_VALUE,
                               "give arguments 'team' and 'config' that are not NULL, and 'config_mask' with "
                               "NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID");
    }
    *team = NVSHMEM_TEAM_INVALID;
    if (WORLD == NULL) {
        return wefti_nv_fail(__func__, WEFT_ERR_STATE);
    }
    const uint64_t id = config->uniqueid;
    if (npes < 1 || npes > weft_world_pes(WORLD) || pe_idx_in_team < 0 || pe_idx_in_team >= npes || id >> 60 != 0 ||
        ROOT_OF(id) >= weft_world_pes(WORLD) || (ROOT_OF(id) == weft_world_pe(WORLD) && given[TABLE_OF(id)] != id)) {
        return wefti_nv_refuse(
            __func__, NVSHMEMX_ERROR_INVALID_VALUE,
            "give config->uniqueid of nvshmemx_team_get_uniqueid that has no team yet, argument 'npes' "
            "of 1 to the number of PEs, and 'pe_idx_in_team' of 0 to npes - 1");
    }
    (void)pthread_mutex_lock(&one_at_a_time);
    const int result = make_team(__func__, team, config, config_mask, npes, pe_idx_in_team);
    (void)pthread_mutex_unlock(&one_at_a_time);
    return result;
}
