/* sim/meeting.c: PEs meet over the simulator's sockets (os/socket.h), which do all that sockets may. */
#include "sim/meeting.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bootstrap/uid/id.h"
#include "os/socket.h"
#include "support/check.h"

#define MS_NS UINT64_C(1000000)
#define S_NS (1000 * MS_NS)
#define WRONG_SECRET "00112233445566778899aabbccddeeff00112233445566778899aabbccddeefe"

meeting *meeting_of(case_run *run)
{
    return (meeting *)(void *)run->board;
}

meeting_way meeting_prepare(case_run *run, meeting_way way)
{
    meeting *now = meeting_of(run);
    if (way == MEETING_LOCAL) {
        return way;
    }
    if (weft_sim_pe() == 0) {
        weft_status status = weft_uid_create("127.0.0.1", &now->uid);
        if (status != WEFT_OK && status != WEFT_ERR_UNSUPPORTED) {
            must(status, "weft_uid_create");
        }
        now->has_uid = status == WEFT_OK ? 1 : -1; /* without libsodium there are no ids */
    }
    while (now->has_uid == 0) {
        weft_sim_sleep_ns(1000);
    }
    return now->has_uid > 0 ? MEETING_UID : MEETING_LOCAL;
}

void meeting_config(case_run *run, meeting_way way, meeting_secret secret, weft_uid *uid, weft_world_config *config)
{
    weft_sim_world_config(config);
    config->threads = NULL;
    config->bootstrap = WEFT_BOOTSTRAP_LOCAL;
    if (way == MEETING_UID) {
        *uid = meeting_of(run)->uid;
        uid->bytes[offsetof(wefti_uid_body, secret)] ^= (unsigned char)(secret == MEETING_WRONG);
        config->bootstrap = WEFT_BOOTSTRAP_UID;
        config->uid = uid;
    }
}

/* Nobody else runs before the job has been read. */
weft_status meeting_create(const weft_world_config *config, meeting_secret secret, weft_world **world)
{
    (void)setenv("WEFT_LOCAL_JOB", secret == MEETING_RIGHT ? "sim:" MEETING_SECRET : "sim:" WRONG_SECRET, 1);
    return weft_world_create(config, world);
}

/* ---- all goes well ---- */

static void use(weft_world *world)
{
    uint64_t *block;
    int pe = weft_world_pe(world);
    int next = (pe + 1) % weft_world_pes(world);
    uint64_t value = case_value(pe, next, 1);
    MUST(weft_calloc(world, 1, sizeof *block, (void **)&block));
    MUST(weft_uint64_p(world, block, value, next));
    MUST(weft_barrier(world));
    int before = (pe + weft_world_pes(world) - 1) % weft_world_pes(world);
    if (*block != case_value(before, pe, 1)) {
        weft_sim_fail("PE %d's word is %llx", before, (unsigned long long)*block);
    }
    MUST(weft_barrier(world));
}

/* PEs of odd number form a world of their own beside the others', at the same time: with another name, or in a job
 * whose secret differs in one digit. */
static meeting_secret go_apart(weft_world_config *config, int by_name)
{
    int pe = config->pe;
    config->pes = (config->pes + 1 - pe % 2) / 2;
    config->pe = pe / 2;
    config->name = by_name && pe % 2 == 1 ? "other" : NULL;
    return !by_name && pe % 2 == 1 ? MEETING_WRONG : MEETING_RIGHT;
}

void case_meet(void *argument)
{
    case_run *run = argument;
    uint64_t common = run->seed;
    int rounds = 1 + common_below(&common, 2);
    uint64_t late_ns = 1000 + (uint64_t)common_below(&common, 3) * 5 * MS_NS;
    int host = common_below(&common, 2) == 0 ? common_below(&common, run->pes) : -1;
    meeting_way way = meeting_prepare(run, common_below(&common, 2) == 0 ? MEETING_UID : MEETING_LOCAL);
    wefti_os_thread *strangers = weft_sim_pe() == host ? strangers_start(run) : NULL;
    rounds = way == MEETING_UID ? 1 : rounds;
    int is_apart = way == MEETING_LOCAL && common_below(&common, 3) == 0;
    int by_name = common_below(&common, 2);
    for (int round = 0; round < rounds; round++) {
        weft_uid uid;
        weft_world *world;
        weft_world_config config = WEFT_WORLD_CONFIG_INIT;
        meeting_config(run, way, MEETING_RIGHT, &uid, &config);
        meeting_secret secret = is_apart ? go_apart(&config, by_name) : MEETING_RIGHT;
        dawdle(4, late_ns);
        uint64_t start_ns = weft_sim_now_ns();
        must(meeting_create(&config, secret, &world), "weft_world_create");
        if (weft_sim_now_ns() - start_ns > config.deadline_ns) {
            weft_sim_fail("weft_world_create took %llu ms",
                          (unsigned long long)((weft_sim_now_ns() - start_ns) / MS_NS));
        }
        use(world);
        MUST(weft_world_destroy(world));
    }
    meeting_of(run)->is_over = 1;
    strangers_end(strangers);
}

/* ---- a PE that does not fit ---- */

enum { WRONG_NUMBER, WRONG_SIZE, WRONG_SECRETS, WRONGS };

static void expect(weft_status status, weft_status wanted, int culprit)
{
    if (status != wanted || !text_names_pe(weft_last_error(), culprit)) {
        weft_sim_fail("%s was to name PE %d, but there was %s: %s", weft_status_name(wanted), culprit,
                      weft_status_name(status), status == WEFT_OK ? "" : weft_last_error());
    }
}

/* PE 0 turns away who does not know the secret, if its word can be sent at once; if it is PE 0 that does not, all the
 * others. */
static void expect_strangers(weft_status status, int wrong)
{
    int pe = weft_sim_pe();
    if (wrong == 0 ? pe == 0 : pe != wrong) {
        expect(status, WEFT_ERR_TIMEOUT, wrong == 0 ? 1 : wrong);
    } else {
        expect(status, status == WEFT_ERR_TIMEOUT ? WEFT_ERR_TIMEOUT : WEFT_ERR_AUTHENTICATION, 0);
    }
}

void case_meet_wrong(void *argument)
{
    case_run *run = argument;
    uint64_t common = run->seed;
    int what = common_below(&common, WRONGS);
    int wrong = common_below(&common, run->pes);
    int other = (wrong + 1 + common_below(&common, run->pes - 1)) % run->pes;
    meeting_way way = common_below(&common, 2) == 0 ? MEETING_UID : MEETING_LOCAL;
    if (what == WRONG_NUMBER && (wrong == 0 || other == 0)) {
        way = MEETING_LOCAL; /* only the process that made an id can be PE 0 of it */
    }
    way = meeting_prepare(run, way);
    weft_uid uid;
    weft_world *world;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    meeting_secret secret = what == WRONG_SECRETS && weft_sim_pe() == wrong ? MEETING_WRONG : MEETING_RIGHT;
    meeting_config(run, way, secret, &uid, &config);
    config.deadline_ns = what == WRONG_SECRETS ? S_NS : 3 * S_NS;
    if (weft_sim_pe() == wrong) {
        config.pe = what == WRONG_NUMBER ? other : config.pe;
        config.pes += what == WRONG_SIZE;
    }
    uint64_t start_ns = weft_sim_now_ns();
    weft_status status = meeting_create(&config, secret, &world);
    /* All have come, and PE 0, if there is one, knows so; where a size is wrong one more may come. */
    const int knows = what == WRONG_NUMBER && wrong != 0;
    if (weft_sim_now_ns() - start_ns > (knows ? S_NS / 5 * 4 : config.deadline_ns + S_NS)) {
        weft_sim_fail("a PE that does not fit was told after %llu ms",
                      (unsigned long long)((weft_sim_now_ns() - start_ns) / MS_NS));
    }
    if (what == WRONG_SECRETS) {
        expect_strangers(status, wrong);
    } else if (what == WRONG_NUMBER && wrong == 0) {
        expect(status, WEFT_ERR_TIMEOUT, 0); /* there is none, to whom all would say who they are */
    } else {
        /* Where PE 0 has another size, all others differ from it. */
        expect(status, WEFT_ERR_MISMATCH, what == WRONG_NUMBER ? other : wrong);
    }
}

/* ---- a PE that is lost ---- */

enum { LOST_ABSENT, LOST_KILLED, LOST_STALLED, LOST_CUT, LOST_CALL, LOSSES };

typedef struct loss {
    case_run *run;
    int what;
    int culprit;
    uint64_t after_ns;
    uint64_t nth; /* LOST_CALL: which of the calls that can fail does, and how many */
    uint64_t times;
} loss;

/* A process dies as a whole. */
static void kill_process(int culprit)
{
    for (int pe = 0; pe < weft_sim_pes(); pe++) {
        if (weft_sim_same_process(pe, culprit)) {
            weft_sim_kill(pe);
        }
    }
}

static void lose(void *argument)
{
    const loss *one = argument;
    weft_sim_sleep_ns(one->after_ns);
    switch (one->what) {
    case LOST_KILLED:
        kill_process(one->culprit);
        break;
    case LOST_STALLED:
        weft_sim_stall(one->culprit, 30 * S_NS);
        break;
    case LOST_CALL:
        wefti_fault_arm(one->nth, one->times);
        break;
    default:
        (void)weft_sim_cut(one->culprit);
    }
    meeting_of(one->run)->lost_ns = weft_sim_now_ns();
}

/* Those of whom the text says that they had not come; 0: it says something else. */
static uint64_t said_missing(const char *error)
{
    const char *at = strstr(error, "\": PE");
    const char *end = "";
    uint64_t named = at == NULL ? 0 : named_pes(at + strlen("\": PE") + (at[strlen("\": PE")] == 's'), &end);
    return strncmp(end, "had not come", 12) == 0 ? named : 0;
}

/* A PE that was parked has no connection by which it could be told why its parent has given up: it names the parent. */
static int says_who_gave_up(const loss *one)
{
    for (int pe = 0; pe < weft_sim_pes(); pe++) {
        char gone[64];
        char missing[64];
        (void)snprintf(gone, sizeof gone, "PE %d is gone, or has given up: ", pe);
        (void)snprintf(missing, sizeof missing, "PE %d, or PE 0 to tell it where, had not come", pe);
        if (meeting_of(one->run)->has_failed[pe] &&
            (strstr(weft_last_error(), gone) != NULL || strstr(weft_last_error(), missing) != NULL)) {
            return 1;
        }
    }
    return 0;
}

/* The text names the culprit, or, killed, one of those that died with it, and nobody else as missing. */
static int names_culprit(const loss *one)
{
    int is_named = text_names_pe(weft_last_error(), one->culprit) || says_who_gave_up(one);
    uint64_t missing = said_missing(weft_last_error());
    for (int pe = 0; pe < weft_sim_pes(); pe++) {
        int is_lost = pe == one->culprit || (one->what == LOST_KILLED && weft_sim_same_process(pe, one->culprit));
        if (!is_lost && (missing >> pe & 1) != 0) {
            return 0;
        }
    }
    for (int pe = 0; pe < weft_sim_pes() && one->what == LOST_KILLED; pe++) {
        is_named |= weft_sim_same_process(pe, one->culprit) && text_names_pe(weft_last_error(), pe);
    }
    return is_named;
}

/* Whoever made an id for others drops it when they have not met by it (bootstrap/job.h): by then the number of its
 * descriptor may stand for what another thread has opened, which stays open. */
static void drop_id(const weft_uid *uid)
{
    enum { OPENED_MAX = 100 };
    wefti_uid_body body;
    int opened[OPENED_MAX];
    uint64_t cookies[OPENED_MAX];
    int count = 0;
    MUST(wefti_uid_read(uid, &body));
    do { /* the lowest free number each time */
        opened[count] = wefti_os_socket_open(AF_UNIX);
        cookies[count] = wefti_os_socket_cookie(opened[count]);
    } while (opened[count++] < body.descriptor && count < OPENED_MAX);
    wefti_uid_drop(uid);
    while (count-- > 0) {
        if (wefti_os_socket_cookie(opened[count]) != cookies[count]) {
            weft_sim_fail("an id that is dropped has closed a socket of another thread");
        }
        wefti_os_socket_close(opened[count]);
    }
}

/* Beyond the deadline: a PE may wait a level of the tree after the other for its place, and again for the result, where
 * those it waits for learn only then who is missing (half a second each with 16 PEs), and then tells the others. */
#define TELLING_NS (3 * S_NS / 2)

/* Who is neither lost nor late to hear of it either has a world or says who is missing. */
static void expect_loss(const loss *one, weft_status status, uint64_t start_ns, uint64_t deadline_ns)
{
    uint64_t lost_ns = meeting_of(one->run)->lost_ns;
    uint64_t since_ns = weft_sim_now_ns() - (lost_ns > start_ns ? lost_ns : start_ns);
    if (status == WEFT_OK && one->what != LOST_ABSENT) {
        return;
    }
    if (one->what != LOST_CALL && status != WEFT_ERR_TIMEOUT && (status != WEFT_ERR_PEER || one->what == LOST_ABSENT) &&
        (status != WEFT_ERR_MISMATCH || one->what != LOST_CUT)) {
        weft_sim_fail("PE %d is lost, but there was %s: %s", one->culprit, weft_status_name(status), weft_last_error());
    }
    if (one->what < LOST_CUT && !names_culprit(one)) {
        weft_sim_fail("PE %d is lost, but %s speaks of others: %s", one->culprit, weft_status_name(status),
                      weft_last_error());
    }
    if (since_ns > deadline_ns + TELLING_NS) {
        weft_sim_fail("PE %d was missed after %llu ms only", one->culprit, (unsigned long long)(since_ns / MS_NS));
    }
}

static void be_absent(case_run *run, meeting_way way)
{
    while (meeting_of(run)->left < run->pes - 1) {
        weft_sim_sleep_ns(MS_NS);
    }
    if (way == MEETING_UID && weft_sim_pe() == 0) {
        MUST(weft_uid_discard(&meeting_of(run)->uid));
    }
}

void case_meet_loss(void *argument)
{
    case_run *run = argument;
    uint64_t common = run->seed;
    loss one = {.run = run, .what = common_below(&common, LOSSES), .culprit = common_below(&common, run->pes)};
    one.after_ns = (uint64_t)common_below(&common, 1 << common_below(&common, 23));
    one.nth = 1 + (uint64_t)common_below(&common, 1 << common_below(&common, 9));
    one.times = 1 + (uint64_t)common_below(&common, 3);
    int killer = (one.culprit + 1 + common_below(&common, run->pes - 1)) % run->pes;
    if (one.what == LOST_KILLED && weft_sim_same_process(killer, one.culprit)) {
        one.what = LOST_STALLED;
    }
    meeting_way way = meeting_prepare(run, common_below(&common, 2) == 0 ? MEETING_UID : MEETING_LOCAL);
    if (one.what == LOST_ABSENT && weft_sim_pe() == one.culprit) {
        be_absent(run, way);
        return;
    }
    weft_uid uid;
    weft_world *world;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    meeting_config(run, way, MEETING_RIGHT, &uid, &config);
    config.deadline_ns = S_NS;
    wefti_os_thread *thread = NULL;
    if (weft_sim_pe() == killer && one.what != LOST_ABSENT) {
        MUST(wefti_os_thread_start(&thread, lose, &one));
    }
    uint64_t start_ns = weft_sim_now_ns();
    weft_status status = meeting_create(&config, MEETING_RIGHT, &world);
    meeting_of(run)->has_failed[weft_sim_pe()] = status != WEFT_OK;
    if (weft_sim_pe() != one.culprit || one.what >= LOST_CUT) {
        expect_loss(&one, status, start_ns, config.deadline_ns);
    }
    meeting_of(run)->left++;
    if (thread != NULL) {
        wefti_os_thread_join(thread);
    }
    if (status == WEFT_OK) {
        MUST(weft_world_destroy(world));
    } else if (way == MEETING_UID && weft_sim_pe() == 0) {
        wefti_fault_arm(0, 0);
        drop_id(&meeting_of(run)->uid); /* it may have failed before it used the id */
    }
}
