/* bootstrap/collective/collective.c: PE 0's unique id by an allgather. */
#include "bootstrap/collective/collective.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "bootstrap/uid/id.h"
#include "os/os.h"

#define RECORD_MAGIC UINT32_C(0x74666577) /* "weft" */
#define TEXT_BYTES 200

/* A PE's contribution to the exchange. */
typedef struct record {
    uint32_t magic;
    uint32_t version;
    int32_t pe;
    int32_t pes;
    int32_t status; /* PE 0's: whether there is an id */
    char name[WEFTI_BOOTSTRAP_NAME_BYTES];
    char text[TEXT_BYTES];
    weft_uid uid; /* of PE 0 */
} record;

/* Compare what the PE in place `place` says with what PE 0 says: all name the same offender. */
static weft_status check_record(const wefti_collective *collective, const record *first, const record *other, int place)
{
    if (other->magic != RECORD_MAGIC || other->version != first->version) {
        return wefti_error(WEFT_ERR_MISMATCH,
                           "PE %d uses another version of weft than PE 0, or %s brought what it did "
                           "not say",
                           place, collective->name);
    }
    if (other->pe != place) {
        return wefti_error(WEFT_ERR_MISMATCH,
                           "rank %d of %s says that it is PE %d; config.pe must be the rank, or "
                           "config.pes 0",
                           place, collective->name, other->pe);
    }
    if (other->pes != collective->pes) {
        return wefti_error(WEFT_ERR_MISMATCH,
                           "PE %d was given %d PEs, and %s spans %d; give config.pes 0, or a "
                           "communicator of that size",
                           place, other->pes, collective->name, collective->pes);
    }
    if (strncmp(other->name, first->name, sizeof other->name) != 0) {
        return wefti_error(WEFT_ERR_MISMATCH, "PE %d creates the world \"%.63s\" where PE 0 creates \"%.63s\"", place,
                           other->name, first->name);
    }
    return WEFT_OK;
}

static weft_status check_all(const wefti_collective *collective, record *all)
{
    for (int place = 0; place < collective->pes; place++) {
        WEFT_TRY(check_record(collective, &all[0], &all[place], place));
    }
    all[0].text[TEXT_BYTES - 1] = '\0';
    return all[0].status == WEFT_OK ? WEFT_OK : wefti_error_relay(all[0].status, all[0].text);
}

static weft_status exchange(const wefti_collective *collective, const record *mine, record *all)
{
    const int code = collective->allgather(collective->context, mine, all, sizeof *mine);
    if (code != 0) {
        return wefti_error(WEFT_ERR_PEER, "world \"%.63s\": the allgather of %s failed on PE %d with code %d",
                           mine->name, collective->name, collective->pe, code);
    }
    if (memcmp(&all[collective->pe], mine, sizeof *mine) != 0) {
        return wefti_error(
            WEFT_ERR_MISMATCH,
            "world \"%.63s\": the allgather of %s gave PE %d something else in its own place than what it "
            "contributed",
            mine->name, collective->name, collective->pe);
    }
    return check_all(collective, all);
}

static void fill(const wefti_collective *collective, const weft_world_config *config, record *mine)
{
    memset(mine, 0, sizeof *mine);
    mine->magic = RECORD_MAGIC;
    mine->version = WEFT_VERSION;
    mine->pe = config->pes == 0 ? collective->pe : config->pe;
    mine->pes = config->pes == 0 ? collective->pes : config->pes;
    (void)snprintf(mine->name, sizeof mine->name, "%s", wefti_bootstrap_world_name(config));
    if (collective->pe == 0) {
        mine->status = collective->pes == 1 ? WEFT_OK : weft_uid_create(NULL, &mine->uid);
        (void)snprintf(mine->text, sizeof mine->text, "%.*s", TEXT_BYTES - 1,
                       mine->status == WEFT_OK ? "" : weft_last_error());
    }
}

static weft_status share(const wefti_collective *collective, const weft_world_config *config, weft_uid *uid)
{
    record mine;
    fill(collective, config, &mine);
    record *all = wefti_alloc_zeroed((size_t)collective->pes, sizeof *all);
    weft_status status = all == NULL ? wefti_error(WEFT_ERR_MEMORY, "PE %d has no memory to meet %d PEs",
                                                   collective->pe, collective->pes)
                                     : exchange(collective, &mine, all);
    if (status == WEFT_OK) {
        *uid = all[0].uid;
    } else if (collective->pe == 0 && mine.status == WEFT_OK && collective->pes > 1) {
        wefti_uid_drop(&mine.uid);
    }
    wefti_free(all);
    return status;
}

static weft_status check_place(const wefti_collective *collective)
{
    return collective->pes >= 1 && collective->pe >= 0 && collective->pe < collective->pes
               ? WEFT_OK
               : wefti_error(WEFT_ERR_ARGUMENT, "%s says that this is process %d of %d, which cannot be",
                             collective->name, collective->pe, collective->pes);
}

weft_status wefti_collective_open(const wefti_collective *collective, const weft_world_config *config,
                                  wefti_bootstrap *bootstrap)
{
    weft_world_config copy = *config;
    weft_uid uid;
    const uint64_t until_ns = wefti_os_now_ns() + config->deadline_ns;
    WEFT_TRY(check_place(collective));
    WEFT_TRY(share(collective, config, &uid));
    copy.pe = collective->pe;
    copy.pes = collective->pes;
    copy.uid = &uid;
    const uint64_t now_ns = wefti_os_now_ns();
    copy.deadline_ns = now_ns < until_ns ? until_ns - now_ns : 1;
    bootstrap->ops = copy.pes == 1 ? &wefti_bootstrap_self : &wefti_bootstrap_uid;
    weft_status status = bootstrap->ops->open(&copy, bootstrap);
    if (status != WEFT_OK && copy.pe == 0 && copy.pes > 1) {
        wefti_uid_drop(&uid);
    }
    explicit_bzero(&uid, sizeof uid);
    return status;
}
