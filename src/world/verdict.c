/* How a step of creation went: one answer for all PEs. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "world/hello.h"

/* What each PE contributes to the error of all. */
typedef struct account {
    int32_t is_cause;
    char text[WEFTI_ERROR_BYTES / 2];
} account;

static int is_of_waiting(int32_t status)
{
    return status == WEFT_ERR_TIMEOUT || status == WEFT_ERR_PEER;
}

void wefti_verdict_note(wefti_verdict *verdict, int pe, int32_t status)
{
    if (status != WEFT_OK &&
        (verdict->status == WEFT_OK || (is_of_waiting(verdict->status) && !is_of_waiting(status)))) {
        verdict->status = status;
        verdict->cause = pe;
    }
}

static weft_status make_verdict(const void *all, int pes, void *digest)
{
    const int32_t *statuses = all;
    wefti_verdict verdict = {0};
    for (int pe = 0; pe < pes; pe++) {
        wefti_verdict_note(&verdict, pe, statuses[pe]);
    }
    memcpy(digest, &verdict, sizeof verdict);
    return WEFT_OK;
}

static weft_status pick_text(const void *all, int pes, void *digest)
{
    const account *accounts = all;
    memset(digest, 0, sizeof accounts->text);
    for (int pe = 0; pe < pes; pe++) {
        if (accounts[pe].is_cause) {
            memcpy(digest, accounts[pe].text, sizeof accounts->text);
        }
    }
    return WEFT_OK;
}

weft_status wefti_verdict_tell(wefti_bootstrap *bootstrap, const wefti_verdict *verdict)
{
    if (verdict->status == WEFT_OK) {
        return WEFT_OK;
    }
    account mine = {.is_cause = verdict->cause == bootstrap->pe};
    char told[sizeof mine.text];
    char text[sizeof told + 32];
    if (mine.is_cause) {
        (void)snprintf(mine.text, sizeof mine.text, "%s", weft_last_error());
    }
    const wefti_digest_call call = {
        .mine = &mine, .bytes = sizeof mine, .make = pick_text, .digest = told, .digest_bytes = sizeof told};
    WEFT_TRY(wefti_bootstrap_digest(bootstrap, &call));
    (void)snprintf(text, sizeof text, "PE %d: %.*s", verdict->cause, (int)sizeof told - 1, told);
    return wefti_error_relay((weft_status)verdict->status, text);
}

weft_status wefti_verdict_reach(wefti_bootstrap *bootstrap, weft_status mine)
{
    const int32_t status = mine;
    wefti_verdict verdict;
    const wefti_digest_call call = {.mine = &status,
                                    .bytes = sizeof status,
                                    .make = make_verdict,
                                    .digest = &verdict,
                                    .digest_bytes = sizeof verdict};
    WEFT_TRY(wefti_bootstrap_digest(bootstrap, &call));
    return wefti_verdict_tell(bootstrap, &verdict);
}
