/* faces/nvshmem/teams.c: teams. A handle is a number: a place in the table of this PE. */
#include <stdio.h>
#include <string.h>

#include "faces/nvshmem/binding.h"

/* The predefined teams of a world whose heap is the host's; device.c puts the shared one right for GPUs. */
void wefti_nv_teams_open(void)
{
    memset(wefti_nvshmem.teams, 0, sizeof wefti_nvshmem.teams);
    wefti_nvshmem.teams[NVSHMEM_TEAM_WORLD].team = weft_team_world(WORLD);
    wefti_nvshmem.teams[NVSHMEM_TEAM_SHARED].team = weft_team_link(WORLD);
    wefti_nvshmem.teams[NVSHMEMX_TEAM_NODE].team = weft_team_node(WORLD);
    wefti_nvshmem.teams[NVSHMEMX_TEAM_SAME_MYPE_NODE].team = weft_team_same_slot(WORLD);
}

void wefti_nv_teams_close(void)
{
    memset(wefti_nvshmem.teams, 0, sizeof wefti_nvshmem.teams); /* they end with their world */
}

/* ---- handles ---- */

static nvshmem_team_t free_handle(void)
{
    for (nvshmem_team_t handle = NVSHMEM_TEAMS_MIN; handle < WEFTI_NV_TEAMS; handle++) {
        if (wefti_nvshmem.teams[handle].team == NULL) {
            return handle;
        }
    }
    return NVSHMEM_TEAM_INVALID;
}

nvshmem_team_t wefti_nv_team_after(uint64_t number)
{
    nvshmem_team_t first = NVSHMEM_TEAM_INVALID;
    for (nvshmem_team_t handle = NVSHMEM_TEAMS_MIN; handle < WEFTI_NV_TEAMS; handle++) {
        const wefti_nv_team *const team = &wefti_nvshmem.teams[handle];
        if (team->team != NULL && team->number > number &&
            (first == NVSHMEM_TEAM_INVALID || team->number < wefti_nvshmem.teams[first].number)) {
            first = handle;
        }
    }
    return first;
}

int wefti_nv_team_open(const char *call, weft_team *team, const nvshmem_team_config_t *config, long mask,
                       nvshmem_team_t *handle)
{
    *handle = NVSHMEM_TEAM_INVALID;
    if (team == NULL) {
        return NVSHMEMX_SUCCESS;
    }
    wefti_nv_lock();
    const nvshmem_team_t mine = free_handle();
    if (mine != NVSHMEM_TEAM_INVALID) {
        const int is_said = config != NULL && (mask & NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS) != 0;
        wefti_nvshmem.teams[mine] = (wefti_nv_team){
            .team = team, .contexts = is_said ? config->num_contexts : 0, .number = ++wefti_nvshmem.teams_made};
    }
    wefti_nv_unlock();
    if (mine == NVSHMEM_TEAM_INVALID) {
        return wefti_nv_refuse(call, NVSHMEMX_ERROR_OUT_OF_MEMORY, "no handle is free; destroy some of 1024 teams");
    }
    weft_status status = wefti_nv_device_team(mine);
    if (status != WEFT_OK) {
        wefti_nvshmem.teams[mine].team = NULL;
        return wefti_nv_fail(call, status);
    }
    *handle = mine;
    return NVSHMEMX_SUCCESS;
}

/* ---- queries ---- */

int nvshmem_team_my_pe(nvshmem_team_t team)
{
    return weft_team_pe(wefti_nv_members(team));
}

int nvshmem_team_n_pes(nvshmem_team_t team)
{
    return weft_team_pes(wefti_nv_members(team));
}

int nvshmem_team_translate_pe(nvshmem_team_t src_team, int src_pe, nvshmem_team_t dest_team)
{
    return weft_team_translate(wefti_nv_members(src_team), src_pe, wefti_nv_members(dest_team));
}

void nvshmem_team_get_config(nvshmem_team_t team, nvshmem_team_config_t *config)
{
    if (wefti_nv_members(team) == NULL || config == NULL) {
        wefti_nv_latch_refusal(__func__, NVSHMEMX_ERROR_INVALID_VALUE,
                               "give argument 'team' of which this PE is a member, and 'config' that is not NULL");
        return;
    }
    *config = (nvshmem_team_config_t)NVSHMEM_TEAM_CONFIG_INITIALIZER;
    config->num_contexts = wefti_nvshmem.teams[team].contexts;
}

/* ---- making and ending ---- */

int nvshmem_team_split_strided(nvshmem_team_t parent_team, int PE_start, int PE_stride, int PE_size,
                               const nvshmem_team_config_t *config, long config_mask, nvshmem_team_t *new_team)
{
    weft_team *team = NULL;
    *new_team = NVSHMEM_TEAM_INVALID;
    weft_status status = weft_team_split_strided(wefti_nv_members(parent_team), PE_start, PE_stride, PE_size, &team);
    if (status != WEFT_OK) {
        return wefti_nv_fail(__func__, status);
    }
    return wefti_nv_team_open(__func__, team, config, config_mask, new_team);
}

int nvshmem_team_split_2d(nvshmem_team_t parent_team, int xrange, const nvshmem_team_config_t *xaxis_config,
                          long xaxis_mask, nvshmem_team_t *xaxis_team, const nvshmem_team_config_t *yaxis_config,
                          long yaxis_mask, nvshmem_team_t *yaxis_team)
{
    weft_team *x = NULL;
    weft_team *y = NULL;
    *xaxis_team = NVSHMEM_TEAM_INVALID;
    *yaxis_team = NVSHMEM_TEAM_INVALID;
    weft_status status = weft_team_split_2d(wefti_nv_members(parent_team), xrange, &x, &y);
    if (status != WEFT_OK) {
        return wefti_nv_fail(__func__, status);
    }
    int result = wefti_nv_team_open(__func__, x, xaxis_config, xaxis_mask, xaxis_team);
    return result != NVSHMEMX_SUCCESS ? result : wefti_nv_team_open(__func__, y, yaxis_config, yaxis_mask, yaxis_team);
}

void nvshmem_team_destroy(nvshmem_team_t team)
{
    weft_team *const members = wefti_nv_members(team);
    if (team == NVSHMEM_TEAM_INVALID) {
        return;
    }
    if (team < NVSHMEM_TEAMS_MIN || members == NULL) {
        wefti_nv_latch_refusal(__func__, NVSHMEMX_ERROR_INVALID_VALUE,
                               "argument 'team' is none that the program has made, or was destroyed");
        return;
    }
    if (wefti_nvshmem.teams[team].scratch != NULL) {
        CHECK(weft_team_free(members, wefti_nvshmem.teams[team].scratch), 1);
    }
    CHECK(weft_team_destroy(members), 1);
    wefti_nvshmem.teams[team] = (wefti_nv_team){.team = NULL};
    (void)wefti_nv_device_team(team);
}
