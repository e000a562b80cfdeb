/* bootstrap/callback/callback.c: PEs that exchange through the embedder's own allgather. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/sized.h"
#include "bootstrap/bootstrap.h"

#define RECORD_MAGIC UINT32_C(0x77656674) /* "weft" */

typedef struct callback_state {
    weft_callback_ops ops;
    char name[WEFTI_BOOTSTRAP_NAME_BYTES];
} callback_state;

/* What the PEs compare before anything else. */
typedef struct callback_record {
    uint32_t magic;
    uint32_t version;
    int32_t pe;
    int32_t pes;
    char name[WEFTI_BOOTSTRAP_NAME_BYTES];
} callback_record;

/* Write into this PE's own place what it does not contribute, so that check_own finds an allgather that leaves the
 * place alone: what the memory held before may be just this contribution. */
static void spoil_own(int pe, const void *mine, void *all, size_t bytes)
{
    unsigned char *own = (unsigned char *)all + (size_t)pe * bytes;
    for (size_t i = 0; i < bytes; i++) {
        own[i] = (unsigned char)~((const unsigned char *)mine)[i];
    }
}

static weft_status call(const callback_state *state, int pe, const void *mine, void *all, size_t bytes)
{
    spoil_own(pe, mine, all, bytes);
    int code = state->ops.allgather(state->ops.context, mine, all, bytes);
    if (code != 0) {
        return wefti_error(WEFT_ERR_PEER,
                           "world \"%s\": the embedder's allgather failed on PE %d with code %d; its own log says why",
                           state->name, pe, code);
    }
    return WEFT_OK;
}

/* Whether an allgather left this PE's own place alone, or filled it with something else. */
static weft_status check_own(const callback_state *state, int pe, const void *mine, const void *all, size_t bytes)
{
    if (memcmp((const char *)all + (size_t)pe * bytes, mine, bytes) == 0) {
        return WEFT_OK;
    }
    return wefti_error(WEFT_ERR_MISMATCH,
                       "world \"%s\": the embedder's allgather gave PE %d something else in its own place than what it "
                       "contributed; it must fill all[pe * bytes ...] of every PE, this one's too",
                       state->name, pe);
}

/* Compare what the PE in place `place` says with what this PE (`mine`) says. */
static weft_status check_record(const callback_record *mine, const callback_record *other, int place)
{
    if (other->magic != mine->magic || other->version != mine->version) {
        return wefti_error(WEFT_ERR_MISMATCH, "world \"%.63s\": PE %d uses another version of weft than PE %d",
                           mine->name, place, mine->pe);
    }
    if (other->pe != place) {
        return wefti_error(
            WEFT_ERR_MISMATCH,
            "world \"%.63s\": rank %d of the embedder's allgather says that it is PE %d; config.pe must be "
            "the rank",
            mine->name, place, other->pe);
    }
    if (other->pes != mine->pes) {
        return wefti_error(WEFT_ERR_MISMATCH, "world \"%.63s\": PE %d was given %d PEs, PE %d was given %d", mine->name,
                           place, other->pes, mine->pe, mine->pes);
    }
    if (memcmp(other->name, mine->name, sizeof mine->name) != 0) {
        return wefti_error(WEFT_ERR_MISMATCH, "PE %d creates the world \"%.63s\" where PE %d creates \"%.63s\"", place,
                           other->name, mine->pe, mine->name);
    }
    return WEFT_OK;
}

/* All PEs see the same records, but each compares with PE 0's, so that all name the same offender. */
static weft_status check_records(const callback_record *records, int pes)
{
    for (int place = 0; place < pes; place++) {
        WEFT_TRY(check_record(&records[0], &records[place], place));
    }
    return WEFT_OK;
}

static weft_status introduce(const callback_state *state, int pe, int pes)
{
    callback_record mine = {
        .magic = RECORD_MAGIC,
        .version = WEFT_VERSION,
        .pe = pe,
        .pes = pes,
    };
    (void)snprintf(mine.name, sizeof mine.name, "%s", state->name);
    callback_record *records = wefti_alloc_zeroed((size_t)pes, sizeof *records);
    if (records == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "world \"%s\": PE %d has no memory to meet %d PEs", state->name, pe, pes);
    }
    weft_status status = call(state, pe, &mine, records, sizeof mine);
    if (status == WEFT_OK && records[pe].magic != RECORD_MAGIC) {
        status = check_own(state, pe, &mine, records, sizeof mine);
    }
    if (status == WEFT_OK) {
        status = check_records(records, pes);
    }
    wefti_free(records);
    return status;
}

static weft_status check_config(const weft_world_config *config)
{
    static const wefti_sized form =
        WEFTI_SIZED_FORM(weft_callback_ops, allgather, "its own size, which is the first field");
    const weft_callback_ops *ops = config->callback;
    weft_callback_ops own;
    if (ops == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "WEFT_BOOTSTRAP_CALLBACK needs config.callback");
    }
    WEFTI_SIZED_TRY(&form, "WEFT_BOOTSTRAP_CALLBACK", "config.callback", ops, &own);
    if (ops->allgather == NULL) {
        return wefti_error(WEFT_ERR_ARGUMENT, "WEFT_BOOTSTRAP_CALLBACK needs config.callback with an allgather");
    }
    if (config->pes < 1 || config->pe >= config->pes) {
        return wefti_error(WEFT_ERR_ARGUMENT,
                           "WEFT_BOOTSTRAP_CALLBACK needs config.pe and config.pes: the rank in, and the size of, what "
                           "the allgather spans (PE %d of %d given)",
                           config->pe, config->pes);
    }
    return WEFT_OK;
}

static weft_status callback_open(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    WEFT_TRY(check_config(config));
    callback_state *state = wefti_alloc_zeroed(1, sizeof *state);
    if (state == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "PE %d has no memory to create a world", config->pe);
    }
    state->ops = *config->callback;
    (void)snprintf(state->name, sizeof state->name, "%s", wefti_bootstrap_world_name(config));
    weft_status status = introduce(state, config->pe, config->pes);
    if (status != WEFT_OK) {
        wefti_free(state);
        return status;
    }
    bootstrap->pe = config->pe;
    bootstrap->pes = config->pes;
    bootstrap->state = state;
    return WEFT_OK;
}

static weft_status callback_allgather(wefti_bootstrap *bootstrap, const void *mine, void *all, size_t bytes)
{
    WEFT_TRY(call(bootstrap->state, bootstrap->pe, mine, all, bytes));
    return check_own(bootstrap->state, bootstrap->pe, mine, all, bytes);
}

static void callback_close(wefti_bootstrap *bootstrap)
{
    wefti_free(bootstrap->state);
}

const wefti_bootstrap_ops wefti_bootstrap_callback = {
    .name = "callback",
    .open = callback_open,
    .allgather = callback_allgather,
    .close = callback_close,
};
