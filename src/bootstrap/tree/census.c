/* bootstrap/tree/census.c: who has come to PE 0, and whether they agree. */
#include "bootstrap/tree/census.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/pe_list.h"
#include "os/os.h"
#include "weft/protocol/mutate.h"

/* Arrivals beyond the world's size are heard, since they show that something is wrong, but not without end. */
#define EXCESS_MAX 64

weft_status wefti_census_init(wefti_census *census, int pes)
{
    memset(census, 0, sizeof *census);
    census->expected = pes - 1;
    census->places = wefti_alloc_zeroed((size_t)pes, sizeof *census->places);
    census->contacts = wefti_alloc_zeroed((size_t)pes, sizeof *census->contacts);
    if (census->places == NULL || census->contacts == NULL) {
        wefti_census_fini(census);
        return wefti_error(WEFT_ERR_MEMORY, "no memory to meet %d PEs", pes);
    }
    return WEFT_OK;
}

void wefti_census_fini(wefti_census *census)
{
    wefti_free(census->places);
    wefti_free(census->contacts);
    memset(census, 0, sizeof *census);
}

/* ---- offences ---- */

/* Decide what is wrong with a hello, if anything is. */
static weft_status check(const wefti_census *census, const wefti_tree *tree, const wefti_tree_hello *said)
{
    const wefti_tree_hello *own = &tree->hello;
    if (said->version != own->version) {
        return wefti_error(WEFT_ERR_MISMATCH,
                           "world \"%s\": PE %d uses version %u.%u.%u of weft, PE 0 uses %u.%u.%u; install the same",
                           own->name, said->pe, said->version >> 16, said->version >> 8 & 255, said->version & 255,
                           own->version >> 16, own->version >> 8 & 255, own->version & 255);
    }
    if (strcmp(said->name, own->name) != 0) {
        return wefti_error(WEFT_ERR_MISMATCH, "PE %d creates the world \"%s\" where PE 0 creates \"%s\"", said->pe,
                           said->name, own->name);
    }
    if (said->pes != own->pes) {
        return wefti_error(WEFT_ERR_MISMATCH, "world \"%s\": PE %d was given %d PEs, PE 0 was given %d", own->name,
                           said->pe, said->pes, own->pes);
    }
    if (said->pe < 0 || said->pe >= tree->pes) {
        return wefti_error(WEFT_ERR_MISMATCH, "world \"%s\": PE %d does not fit a world of %d PEs", own->name, said->pe,
                           own->pes);
    }
    if (said->pe == 0 || (census->places[said->pe] != 0 && !WEFTI_MUTATED(NUMBER_TWICE))) {
        return wefti_error(WEFT_ERR_MISMATCH, "world \"%s\": PE %d came twice; give each PE a number of its own",
                           own->name, said->pe);
    }
    return WEFT_OK;
}

/* Send somebody away with the first offence. Who cannot take all of it at once stays until then. */
static void dismiss(const wefti_census *census, wefti_link *link)
{
    wefti_tree_failure failure = {.status = census->status};
    if (wefti_link_is_open(link)) {
        memcpy(failure.text, census->text, sizeof failure.text);
        if (!wefti_link_send(link, WEFTI_FRAME_FAILURE, 0, &failure, sizeof failure) || wefti_link_is_flushed(link)) {
            wefti_link_fini(link);
        }
    }
}

/* An error that this thread has just decided or taken over. */
static void note_offence(wefti_census *census, wefti_tree *tree, weft_status status)
{
    census->last_ns = wefti_os_now_ns();
    if (census->offences++ == 0) {
        census->status = status;
        (void)snprintf(census->text, sizeof census->text, "%s", weft_last_error());
        for (size_t i = 0; i < tree->star_count; i++) {
            dismiss(census, &tree->star[i]);
        }
    }
}

void wefti_census_refuse(wefti_census *census, wefti_tree *tree, weft_status status)
{
    note_offence(census, tree, status);
}

/* ---- arrivals ---- */

/* Whoever was given a larger size shows that more may come. */
static void expect_claimed(wefti_census *census, const wefti_tree *tree, int claimed_pes)
{
    if (claimed_pes > census->expected + 1 && claimed_pes <= tree->pes + EXCESS_MAX) {
        census->expected = claimed_pes - 1;
    }
}

weft_status wefti_census_add(wefti_census *census, wefti_tree *tree, wefti_link *link, const wefti_tree_hello *said)
{
    weft_status status = wefti_tree_add_star(tree, link);
    if (status != WEFT_OK) {
        wefti_link_fini(link);
        return status;
    }
    census->arrived++;
    census->last_ns = wefti_os_now_ns();
    status = check(census, tree, said);
    if (status != WEFT_OK) {
        expect_claimed(census, tree, said->pes);
        note_offence(census, tree, status);
    } else {
        census->places[said->pe] = (int)tree->star_count;
        census->contacts[said->pe] = said->listens_at;
    }
    if (census->offences > 0) {
        dismiss(census, &tree->star[tree->star_count - 1]);
    }
    return WEFT_OK;
}

void wefti_census_hear(wefti_census *census, wefti_tree *tree)
{
    for (size_t i = 0; i < tree->star_count; i++) {
        wefti_link *link = &tree->star[i];
        wefti_link_event event;
        int is_ready = wefti_link_is_open(link) && wefti_link_ready(link, &tree->polls);
        if (census->offences > 0 && wefti_link_is_flushed(link)) {
            wefti_link_fini(link); /* it has been told */
        }
        if (!is_ready || census->offences > 0) {
            continue;
        }
        weft_status status = wefti_tree_hear(tree, link, &event);
        if (status != WEFT_OK) {
            wefti_link_fini(link);
            note_offence(census, tree, status);
        }
    }
}

int wefti_census_is_complete(const wefti_census *census, const wefti_tree *tree)
{
    return census->arrived >= (census->offences == 0 ? tree->pes - 1 : census->expected);
}

/* ---- the result ---- */

/* Write the PEs that have not come. Returns 0 when there is no memory for it. */
static int mark_missing(const wefti_census *census, const wefti_tree *tree, unsigned char **missing)
{
    *missing = wefti_alloc_zeroed((size_t)tree->pes, 1);
    for (int pe = 1; pe < tree->pes && *missing != NULL; pe++) {
        (*missing)[pe] = census->places[pe] == 0;
    }
    return *missing != NULL;
}

void wefti_census_warn(const wefti_census *census, const wefti_tree *tree)
{
    char list[WEFTI_PE_LIST_BYTES];
    unsigned char *missing;
    if (mark_missing(census, tree, &missing)) {
        (void)wefti_pe_list_text(missing, tree->pes, 1, list);
        wefti_log(WEFTI_LOG_WARN, "world \"%s\": PE 0 still waits for %s to come", tree->hello.name, list);
    }
    wefti_free(missing);
}

weft_status wefti_census_judge(const wefti_census *census, wefti_tree *tree)
{
    unsigned char *missing;
    if (census->offences > 0) {
        tree->names_culprit = 1;
        tree->heard_from = NULL;
        return wefti_error_relay(census->status, census->text);
    }
    if (wefti_census_is_complete(census, tree)) {
        return WEFT_OK;
    }
    if (!mark_missing(census, tree, &missing)) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory to name the PEs that did not come");
    }
    weft_status status = wefti_tree_missing(tree, missing, "its creation");
    wefti_free(missing);
    return status;
}
