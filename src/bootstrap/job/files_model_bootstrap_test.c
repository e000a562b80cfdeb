/* Goal: what docs/changing.md says about a bootstrap of the library is enough to write one, over a store of keys and
 * values: here files in a folder that all processes see; and such a one conforms.
 *
 * Method: the file of such a bootstrap, whole, as it would lie in src/bootstrap/files, and the suite of all bootstraps.
 * In the suite PEs are threads, so that it opens as a given process; a process has its place from variables. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "bootstrap/job/job.h"
#include "os/os.h"

/* ---- src/bootstrap/files/files.c ---- */

#define PATH_BYTES 300
#define LOOK_NS UINT64_C(1000000) /* between two looks for a file */

/* A job for each folder and process, for ever: a job counts its worlds by their names. The folder is this job's alone;
 * files of an earlier one would be taken for this one's. */
typedef struct files_job {
    struct files_job *next;
    wefti_job job; /* its state is the folder */
    char folder[PATH_BYTES - 2 * WEFTI_JOB_KEY_BYTES];
} files_job;
static files_job *jobs;
static int jobs_lock;

static void make_path(const wefti_job *job, const char *key, const char *end, char path[PATH_BYTES])
{
    (void)snprintf(path, PATH_BYTES, "%s/%s%s", (const char *)job->state, key, end);
}

/* Written under another name first: who finds the file finds all of it. A file that is there already stays. */
static weft_status publish(wefti_job *job, const char *key, const weft_uid *uid, uint64_t until_ns)
{
    char part[PATH_BYTES];
    char path[PATH_BYTES];
    char end[32];
    (void)until_ns;
    (void)snprintf(end, sizeof end, ".%d.%lld", job->rank, (long long)getpid());
    make_path(job, key, end, part);
    make_path(job, key, "", path);
    const int file = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); /* who knows the id may join */
    if (file < 0) {
        return wefti_error(WEFT_ERR_SYSTEM, "cannot write %s: %s", part, strerror(errno));
    }
    const int is_written = write(file, uid, sizeof *uid) == (ssize_t)sizeof *uid;
    const int is_closed = close(file) == 0;
    const int is_there = is_written && is_closed && (link(part, path) == 0 || errno == EEXIST);
    (void)unlink(part);
    return is_there ? WEFT_OK : wefti_error(WEFT_ERR_SYSTEM, "cannot write %s", path);
}

static int read_id(const char *path, weft_uid *uid)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return 0;
    }
    const int is_read = fread(uid, sizeof *uid, 1, file) == 1;
    (void)fclose(file);
    return is_read;
}

static weft_status fetch(wefti_job *job, const char *key, uint64_t until_ns, weft_uid *uid)
{
    char path[PATH_BYTES];
    make_path(job, key, "", path);
    while (!read_id(path, uid)) {
        if (wefti_os_now_ns() >= until_ns) {
            return wefti_error(WEFT_ERR_TIMEOUT, "PE 0 has written no %s in time; is its folder the same?", path);
        }
        wefti_os_sleep_ns(LOOK_NS);
    }
    return WEFT_OK;
}

static void retract(wefti_job *job, const char *key)
{
    char path[PATH_BYTES];
    make_path(job, key, "", path);
    (void)unlink(path);
}

/* Of two that say that they are PE 0 the first has the file. */
static int is_other(wefti_job *job, const char *key, uint64_t until_ns, weft_uid *uid)
{
    char path[PATH_BYTES];
    (void)until_ns;
    make_path(job, key, "", path);
    return read_id(path, uid);
}

static const wefti_job_ops files_ops = {
    .name = "files", .publish = publish, .fetch = fetch, .retract = retract, .is_other = is_other};

static files_job *find_job(const char *folder, int rank)
{
    files_job *found = jobs;
    while (found != NULL && (strcmp(found->folder, folder) != 0 || found->job.rank != rank)) {
        found = found->next;
    }
    return found;
}

/* NULL: no memory. */
static wefti_job *job_of(const char *folder, int rank, int size)
{
    while (__atomic_exchange_n(&jobs_lock, 1, __ATOMIC_ACQUIRE)) {
        wefti_os_yield();
    }
    files_job *found = find_job(folder, rank);
    if (found == NULL && (found = calloc(1, sizeof *found)) != NULL) {
        (void)snprintf(found->folder, sizeof found->folder, "%s", folder);
        found->job = (wefti_job){.ops = &files_ops, .rank = rank, .size = size, .state = found->folder};
        found->next = jobs;
        jobs = found;
    }
    __atomic_store_n(&jobs_lock, 0, __ATOMIC_RELEASE);
    return found != NULL ? &found->job : NULL;
}

static weft_status open_in(const char *folder, int rank, int size, const weft_world_config *config,
                           wefti_bootstrap *bootstrap)
{
    const uint64_t until_ns = wefti_os_now_ns() + config->deadline_ns;
    if (folder == NULL || folder[0] == '\0' || strlen(folder) >= sizeof jobs->folder) {
        return wefti_error(WEFT_ERR_ARGUMENT, "config.bootstrap_argument is no folder's path of at most %zu bytes",
                           sizeof jobs->folder - 1);
    }
    wefti_job *job = job_of(folder, rank, size);
    return job != NULL ? wefti_job_open(job, config, bootstrap, until_ns)
                       : wefti_error(WEFT_ERR_MEMORY, "no memory for a job");
}

static weft_status files_open(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    uint64_t rank = (uint64_t)config->pe;
    uint64_t size = (uint64_t)config->pes;
    if (config->pes == 0) {
        WEFT_TRY(wefti_env_count(WEFTI_ENV_RANK, &rank));
        WEFT_TRY(wefti_env_count(WEFTI_ENV_WORLD_SIZE, &size));
    }
    if (size < 1 || size > INT32_MAX || rank >= size) {
        return wefti_error(WEFT_ERR_ARGUMENT, "RANK=%s of WORLD_SIZE=%s is no process of a job",
                           wefti_env_word(WEFTI_ENV_RANK), wefti_env_word(WEFTI_ENV_WORLD_SIZE));
    }
    return open_in(config->bootstrap_argument, (int)rank, (int)size, config, bootstrap);
}

/* There it is `const wefti_bootstrap_ops wefti_bootstrap_files`, which WEFTI_BOOTSTRAP_BACKENDS declares. */
static const wefti_bootstrap_ops model_of_files = {.name = "files", .open = files_open};

/* ---- src/bootstrap/files/files_bootstrap_test.c ---- */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bootstrap/conformance.h"

typedef struct meeting {
    char folder[64];
    int pes;
} meeting;

static weft_status begin(int pes, weft_world_config *shared)
{
    meeting *m = calloc(1, sizeof *m);
    assert_non_null(m);
    strcpy(m->folder, "/tmp/weft-files-XXXXXX");
    assert_non_null(mkdtemp(m->folder));
    m->pes = pes;
    shared->bootstrap_argument = m; /* carried to open_in_place */
    return WEFT_OK;
}

static void end(weft_world_config *shared)
{
    meeting *m = (meeting *)(uintptr_t)shared->bootstrap_argument;
    char command[128];
    (void)snprintf(command, sizeof command, "rm -r %s", m->folder);
    assert_int_equal(system(command), 0);
    free(m);
}

static weft_status open_in_place(int place, const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    const meeting *m = config->bootstrap_argument;
    return open_in(m->folder, place, m->pes, config, bootstrap);
}

/* A process by itself, which has its place from variables. */
static void opens_by_variables(void **state)
{
    (void)state;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    wefti_bootstrap bootstrap = {.ops = &model_of_files};
    config.deadline_ns = UINT64_C(1000000000);
    config.bootstrap_argument = "/tmp";
    assert_int_equal(setenv("RANK", "0", 1), 0);
    assert_int_equal(setenv("WORLD_SIZE", "1", 1), 0);
    assert_int_equal(bootstrap.ops->open(&config, &bootstrap), WEFT_OK);
    assert_int_equal(bootstrap.pes, 1);
    bootstrap.ops->close(&bootstrap);
    assert_int_equal(setenv("RANK", "1", 1), 0);
    assert_int_equal(model_of_files.open(&config, &bootstrap), WEFT_ERR_ARGUMENT);
}

int main(void)
{
    const bootstrap_subject subject = {
        .limits = BOOTSTRAP_MEETING_REUSED | BOOTSTRAP_NAMES_APART, .begin = begin, .end = end, .open = open_in_place};
    const struct CMUnitTest tests[] = {cmocka_unit_test(opens_by_variables)};
    const int failed = bootstrap_conformance_run(&subject);
    return cmocka_run_group_tests(tests, NULL, NULL) | failed;
}
