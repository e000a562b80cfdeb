/* bootstrap/tree/root.c: how PE 0 forms a tree. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/pe_list.h"
#include "bootstrap/tree/greeter.h"
#include "bootstrap/tree/shape.h"
#include "bootstrap/tree/tree.h"
#include "os/os.h"

/* When creation is bound to fail: how long after the last arrival the others are still waited for, so that they fail
 * with the same error. */
#define GRACE_NS UINT64_C(300000000)
/* Arrivals beyond the world's size are heard, since they show that something is wrong, but not without end. */
#define EXCESS_MAX 64

/* Who has come. */
typedef struct census {
    int *places; /* by PE: 1 + its place in the star; 0: has not come */
    wefti_tree_contact *contacts; /* by PE: where its children find it */
    int arrived;
    int expected; /* arrivals */
    uint64_t last_ns; /* when the last came, or something went wrong */
    int offences; /* of those who came */
    weft_status status; /* of the first */
    char text[WEFTI_ERROR_BYTES];
} census;

static void fini_census(census *who)
{
    wefti_free(who->places);
    wefti_free(who->contacts);
}

static weft_status init_census(census *who, int pes)
{
    memset(who, 0, sizeof *who);
    who->expected = pes - 1;
    who->places = wefti_alloc_zeroed((size_t)pes, sizeof *who->places);
    who->contacts = wefti_alloc_zeroed((size_t)pes, sizeof *who->contacts);
    if (who->places == NULL || who->contacts == NULL) {
        fini_census(who);
        return wefti_error(WEFT_ERR_MEMORY, "no memory to meet %d PEs", pes);
    }
    return WEFT_OK;
}

/* ---- arrivals ---- */

/* Write what is wrong with a hello. Returns 0 when nothing is. */
static int find_offence(const wefti_tree *tree, const census *who, const wefti_tree_hello *said, char *text,
                        size_t bytes)
{
    const wefti_tree_hello *own = &tree->hello;
    if (said->version != own->version) {
        return snprintf(text, bytes, "world \"%s\": PE %d uses version %u.%u.%u of weft, PE 0 uses %u.%u.%u", own->name,
                        said->pe, said->version >> 16, said->version >> 8 & 255, said->version & 255,
                        own->version >> 16, own->version >> 8 & 255, own->version & 255);
    }
    if (strcmp(said->name, own->name) != 0) {
        return snprintf(text, bytes, "PE %d creates the world \"%s\" where PE 0 creates \"%s\"", said->pe, said->name,
                        own->name);
    }
    if (said->pes != own->pes) {
        return snprintf(text, bytes, "world \"%s\": PE %d was given %d PEs, PE 0 was given %d", own->name, said->pe,
                        said->pes, own->pes);
    }
    if (said->pe < 0 || said->pe >= tree->pes) {
        return snprintf(text, bytes, "world \"%s\": PE %d does not fit a world of %d PEs", own->name, said->pe,
                        own->pes);
    }
    if (said->pe == 0 || who->places[said->pe] != 0) {
        return snprintf(text, bytes, "world \"%s\": PE %d came twice; give each PE a number of its own", own->name,
                        said->pe);
    }
    return 0;
}

/* Keep the error that this thread has just decided or taken over until all can be told. */
static void note_offence(census *who, weft_status status)
{
    who->last_ns = wefti_os_now_ns();
    if (who->offences++ == 0) {
        who->status = status;
        (void)snprintf(who->text, sizeof who->text, "%s", weft_last_error());
    }
}

static weft_status count_in(wefti_tree *tree, census *who, wefti_link *link, const wefti_tree_hello *said)
{
    char text[WEFTI_ERROR_BYTES];
    weft_status status = wefti_tree_add_star(tree, link);
    if (status != WEFT_OK) {
        wefti_link_fini(link);
        return status;
    }
    who->arrived++;
    who->last_ns = wefti_os_now_ns();
    if (find_offence(tree, who, said, text, sizeof text)) {
        note_offence(who, wefti_error(WEFT_ERR_MISMATCH, "%s", text));
        int64_t claimed = (int64_t)said->pes - 1;
        who->expected = claimed > who->expected && claimed < tree->pes + EXCESS_MAX ? (int)claimed : who->expected;
        return WEFT_OK;
    }
    who->places[said->pe] = (int)tree->star_count;
    who->contacts[said->pe] = said->listens_at;
    return WEFT_OK;
}

static int all_came(const wefti_tree *tree, const census *who)
{
    return who->offences == 0 ? who->arrived == tree->pes - 1 : who->arrived >= who->expected;
}

/* Hear those who came: that they fail, end, or wait no longer. */
static void hear_star(wefti_tree *tree, census *who)
{
    for (size_t i = 0; i < tree->star_count; i++) {
        wefti_link_event event;
        if (wefti_link_ready(&tree->star[i], &tree->polls)) {
            weft_status status = wefti_tree_hear(tree, &tree->star[i], &event);
            if (status != WEFT_OK) {
                note_offence(who, status);
                wefti_link_fini(&tree->star[i]);
            }
        }
    }
}

static void mark_missing(const wefti_tree *tree, const census *who, unsigned char *missing)
{
    for (int pe = 1; pe < tree->pes; pe++) {
        missing[pe] = who->places[pe] == 0;
    }
}

static void warn(const wefti_tree *tree, const census *who)
{
    char list[WEFTI_PE_LIST_BYTES];
    unsigned char *missing = wefti_alloc_zeroed((size_t)tree->pes, 1);
    if (missing != NULL) {
        mark_missing(tree, who, missing);
        (void)wefti_pe_list_text(missing, tree->pes, 1, list);
        wefti_log(WEFTI_LOG_WARN, "world \"%s\": PE 0 still waits for %s to come", tree->hello.name, list);
    }
    wefti_free(missing);
}

static weft_status await_arrivals(wefti_tree *tree, census *who, wefti_greeter *greeter)
{
    for (;;) {
        wefti_link link;
        wefti_tree_hello said;
        while (wefti_greeter_take(greeter, &link, &said)) {
            WEFT_TRY(count_in(tree, who, &link, &said));
        }
        uint64_t until_ns = tree->until_ns;
        if (who->offences > 0 && who->last_ns + GRACE_NS < until_ns) {
            until_ns = who->last_ns + GRACE_NS;
        }
        if (all_came(tree, who) || tree->is_pressed || wefti_os_now_ns() >= until_ns) {
            return WEFT_OK;
        }
        if (wefti_tree_should_warn(tree)) {
            warn(tree, who);
        }
        wefti_polls_clear(&tree->polls);
        uint64_t due_ns = wefti_greeter_watch(greeter, &tree->polls);
        due_ns = due_ns < tree->warn_ns ? due_ns : tree->warn_ns;
        for (size_t i = 0; i < tree->star_count; i++) {
            wefti_link_watch(&tree->star[i], &tree->polls);
        }
        WEFT_TRY(wefti_polls_wait(&tree->polls, due_ns < until_ns ? due_ns : until_ns));
        hear_star(tree, who);
        WEFT_TRY(wefti_greeter_step(greeter, &tree->polls));
    }
}

/* ---- the verdict ---- */

static weft_status name_missing(wefti_tree *tree, const census *who)
{
    unsigned char *missing = wefti_alloc_zeroed((size_t)tree->pes, 1);
    if (missing == NULL) {
        return wefti_error(WEFT_ERR_MEMORY, "no memory to name the PEs that did not come");
    }
    mark_missing(tree, who, missing);
    weft_status status = wefti_tree_missing(tree, missing, "its creation");
    wefti_free(missing);
    return status;
}

static weft_status judge(wefti_tree *tree, const census *who)
{
    if (who->offences > 0) {
        char text[WEFTI_ERROR_BYTES + 64];
        (void)snprintf(text, sizeof text, "%s (and %d more PEs do not fit)", who->text, who->offences - 1);
        tree->names_culprit = 1;
        tree->heard_from = NULL;
        return wefti_error_relay(who->status,
                                 who->offences == 1 || who->status != WEFT_ERR_MISMATCH ? who->text : text);
    }
    return all_came(tree, who) ? WEFT_OK : name_missing(tree, who);
}

/* ---- the answer ---- */

static weft_status welcome(wefti_tree *tree, const census *who, int pe)
{
    wefti_link *link = &tree->star[who->places[pe] - 1];
    int parent = wefti_tree_parent(pe, tree->pes);
    wefti_tree_welcome body = {{0}};
    if (parent != 0) {
        body.parent = who->contacts[parent];
    }
    return wefti_link_send(link, WEFTI_FRAME_WELCOME, 0, &body, sizeof body) ? WEFT_OK
                                                                             : wefti_tree_lost_on_sending(tree, link);
}

/* PEs that have children first: others wait for them. */
static weft_status welcome_all(wefti_tree *tree, const census *who)
{
    for (int pe = WEFTI_TREE_RADIX; pe < tree->pes; pe += WEFTI_TREE_RADIX) {
        WEFT_TRY(welcome(tree, who, pe));
    }
    for (int pe = 1; pe < tree->pes; pe++) {
        if (pe % WEFTI_TREE_RADIX != 0) {
            WEFT_TRY(welcome(tree, who, pe));
        }
    }
    return WEFT_OK;
}

/* The star's connections to children of PE 0 stay. */
static void adopt(wefti_tree *tree, const census *who)
{
    for (int i = 0; i < tree->child_count; i++) {
        int pe = tree->children[i].pe;
        wefti_link *link = &tree->star[who->places[pe] - 1];
        tree->children[i] = *link;
        wefti_link_init(link, -1, pe);
    }
}

static weft_status meet_all(wefti_tree *tree, census *who)
{
    wefti_greeter greeter;
    wefti_greeter_init(&greeter, tree->site, tree->listener, 0);
    weft_status status = await_arrivals(tree, who, &greeter);
    wefti_greeter_fini(&greeter);
    wefti_tree_stop_listening(tree);
    return status == WEFT_OK ? judge(tree, who) : status;
}

weft_status wefti_tree_form_root(wefti_tree *tree)
{
    census who;
    WEFT_TRY(wefti_tree_make_children(tree));
    WEFT_TRY(init_census(&who, tree->pes));
    weft_status status = meet_all(tree, &who);
    if (status == WEFT_OK) {
        wefti_tree_begin_forming(tree);
        status = welcome_all(tree, &who);
    }
    if (status == WEFT_OK) {
        adopt(tree, &who);
        status = wefti_tree_exchange(tree, NULL, NULL, 0);
    }
    if (status == WEFT_OK) {
        wefti_tree_drop_star(tree);
    }
    fini_census(&who);
    return status;
}
