/* sim/faults.c: what goes wrong is told, on all PEs that can still be told. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sim/cases.h"

#define MS_NS UINT64_C(1000000)

/* ---- calls that do not match ---- */

void case_mismatch(void *argument)
{
    const case_run *run = argument;
    uint64_t common = run->seed;
    weft_world *world = case_world("mismatch");
    for (int round = 0; round < 3; round++) {
        int odd = common_below(&common, run->pes);
        int is_odd = odd == weft_world_pe(world);
        void *block = NULL;
        weft_status status = weft_malloc(world, is_odd ? 128 : 64, &block);
        if (status != WEFT_ERR_MISMATCH) {
            weft_sim_fail("different sizes gave %s", weft_status_name(status));
        }
        MUST(weft_malloc(world, 64, &block));
        MUST(weft_free(world, block));
    }
    MUST(weft_world_destroy(world));
}

/* ---- an allocation fails ---- */

static void use(weft_world *world)
{
    void *block;
    weft_team *team = NULL;
    if (weft_malloc(world, 2000, &block) != WEFT_OK) {
        return;
    }
    if (weft_team_split_strided(weft_team_world(world), 0, 1, weft_world_pes(world), &team) == WEFT_OK) {
        weft_status status = weft_team_barrier(team);
        if (status == WEFT_OK) {
            status = weft_team_destroy(team);
        }
        (void)status;
    }
    weft_status status = weft_free(world, block);
    (void)status;
}

void case_memory_failure(void *argument)
{
    const case_run *run = argument;
    uint64_t common = run->seed;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    weft_sim_world_config(&config);
    if (weft_sim_pe() == 0) {
        wefti_fault_arm(1 + common_next(&common) % (30 * (uint64_t)run->pes), 1 + common_next(&common) % 3);
    }
    weft_status status = weft_world_create(&config, &world);
    if (status == WEFT_OK) {
        use(world);
        MUST(weft_world_destroy(world));
    }
}

/* ---- a PE is lost ---- */

/* Whether a text has this number, alone or in a range such as "4-7". */
static int has_number(const char *text, int number)
{
    for (const char *at = text; *at != '\0';) {
        char *end;
        if (*at < '0' || *at > '9') {
            at++;
            continue;
        }
        long first = strtol(at, &end, 10);
        long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        if (number >= first && number <= last) {
            return 1;
        }
        at = end;
    }
    return 0;
}

/* Whether members of the world meet and agree by counting: then all come to the same end of a call. */
static int counts(weft_world *world)
{
    char text[2048] = "";
    size_t length;
    MUST(weft_team_tuning(weft_team_world(world), text, sizeof text, &length));
    const char *sync = strstr(text, "sync");
    const char *algorithm = sync == NULL ? NULL : strstr(sync, "count");
    return algorithm != NULL && algorithm < strchr(sync, '\n');
}

void case_lost_peer(void *argument)
{
    const case_run *run = argument;
    uint64_t common = run->seed;
    int lost = common_below(&common, run->pes);
    int killer = (lost + 1 + common_below(&common, run->pes - 1)) % run->pes;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    weft_world *world;
    weft_sim_world_config(&config);
    config.deadline_ns = 50 * MS_NS;
    if (weft_sim_pe() == killer) {
        if (common_below(&common, 2) == 0) {
            weft_sim_sleep_ns(weft_sim_random(20000));
            weft_sim_kill(lost);
        }
    }
    weft_status status = weft_world_create(&config, &world);
    if (status != WEFT_OK) {
        return;
    }
    for (int round = 0; round < 100 && status == WEFT_OK; round++) {
        void *block;
        if (weft_sim_pe() == killer && round == 3) {
            weft_sim_kill(lost);
        }
        status = weft_barrier(world);
        if (status == WEFT_OK) {
            status = weft_malloc(world, 100, &block);
        }
    }
    if (status == WEFT_OK) {
        weft_sim_fail("PE %d is dead, and 100 barriers went well", lost);
    }
    if (status != WEFT_ERR_TIMEOUT && status != WEFT_ERR_PEER) {
        weft_sim_fail("PE %d is dead, but the status is %s: %s", lost, weft_status_name(status), weft_last_error());
    }
    const char *named = strstr(weft_last_error(), "PE");
    if (status == WEFT_ERR_TIMEOUT && counts(world) && (named == NULL || !has_number(named, lost))) {
        weft_sim_fail("PE %d is dead, but the error does not name it: %s", lost, weft_last_error());
    }
    MUST(weft_world_destroy(world));
}

/* ---- an abort ---- */

void case_abort(void *argument)
{
    const case_run *run = argument;
    uint64_t common = run->seed;
    weft_world *world = case_world("abort");
    int culprit = common_below(&common, run->pes);
    if (weft_sim_pe() == culprit) {
        dawdle(2, 3000);
        MUST(weft_world_abort(world, 7));
    }
    weft_status status = WEFT_OK;
    for (int round = 0; round < 1000 && status == WEFT_OK; round++) {
        status = weft_barrier(world);
    }
    int named = -1;
    /* A PE that has been told may leave before the abort has come everywhere: then it is first missed. */
    while (status == WEFT_ERR_PEER && weft_world_fault(world, &named) == WEFT_OK) {
        weft_sim_sleep_ns(1000);
    }
    if ((status != WEFT_ERR_ABORTED && status != WEFT_ERR_PEER) ||
        weft_world_fault(world, &named) != WEFT_ERR_ABORTED || named != culprit) {
        weft_sim_fail("PE %d aborted, but the status is %s and names PE %d", culprit, weft_status_name(status), named);
    }
    MUST(weft_world_destroy(world));
}
