/* Goal: the backend is the one that config and environment name, and each way to get it wrong names its remedy;
 * exchanges after the deadline have time left.
 * Method: every combination of WEFT_BOOTSTRAP, a launcher and a size, against a table. The page that lists the kinds is
 * searched for each. */
#include "bootstrap/bootstrap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"

static char job[128]; /* of this process alone */
static char port[16];

typedef struct choice {
    const char *word; /* WEFT_BOOTSTRAP */
    const char *job; /* WEFT_LOCAL_JOB */
    int pes;
    const char *backend; /* NULL: an error */
    const char *says; /* what its text must have in it */
} choice;

/* The same, where torchrun's variables are set too. */
typedef struct ranked_choice {
    choice choice;
    const char *rank;
    const char *world_size;
    const char *master_addr;
    const char *master_port;
} ranked_choice;

static void set(const char *name, const char *value)
{
    if (value != NULL) {
        (void)setenv(name, value, 1);
    } else {
        (void)unsetenv(name);
    }
}

static void assert_choice(const choice *c)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    wefti_bootstrap bootstrap;
    config.pes = c->pes;
    config.deadline_ns = UINT64_C(10000000);
    set("WEFT_BOOTSTRAP", c->word);
    set("WEFT_LOCAL_JOB", c->job);
    set("WEFT_LOCAL_PE", c->job == NULL ? NULL : "0");
    set("WEFT_LOCAL_PES", c->job == NULL ? NULL : "1");
    weft_status status = wefti_bootstrap_open(&config, &bootstrap);
    if (c->backend != NULL) {
        assert_int_equal(status, WEFT_OK);
        assert_string_equal(bootstrap.ops->name, c->backend);
        assert_int_equal(bootstrap.pe, 0);
        assert_int_equal(bootstrap.pes, 1);
    } else {
        assert_int_not_equal(status, WEFT_OK);
        assert_non_null(strstr(weft_last_error(), c->says));
    }
    wefti_bootstrap_close(&bootstrap);
}

static void chooses_by_environment(void **state)
{
    (void)state;
    const choice choices[] = {
        {NULL, NULL, 0, "self", NULL},
        {NULL, NULL, 1, "self", NULL},
        {NULL, NULL, 2, NULL, "weftrun"},
        {"auto", NULL, 1, "self", NULL},
        {"", NULL, 1, "self", NULL},
        {NULL, job, 0, "local", NULL},
        {NULL, job, 1, "self", NULL},
        {NULL, job, 2, NULL, "PE 1"}, /* local, and nobody else comes */
        {"auto", job, 0, "local", NULL},
        {"local", job, 1, "local", NULL},
        {"local", NULL, 1, NULL, "weftrun"},
        {"local", NULL, 0, NULL, "weftrun"},
        {"remote", job, 1, NULL, "auto, local, env"},
        {"uid", NULL, 1, NULL, "auto, local, env"}, /* needs an id, which no variable has */
        {"threads", NULL, 1, NULL, "auto, local, env"},
        {"callback", NULL, 1, NULL, "auto, local, env"},
        {"-1", NULL, 1, NULL, "auto, local, env"},
        {"local", "nonsense", 1, NULL, "WEFT_LOCAL_JOB"},
        {"local", ":0011", 1, NULL, "WEFT_LOCAL_JOB"},
        {"local", "x:0011223344zz66778899aabbccddeeff00112233445566778899aabbccddeeff", 1, NULL, "WEFT_LOCAL_JOB"},
    };
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        assert_choice(&choices[i]);
    }
}

/* Every kind has its row, by its name in lower case, in the table of the page for users. */
static void is_on_the_page(void **state)
{
    (void)state;
    static const char *const names[] = {
#define NAME(name, value, word, text) #name,
        WEFT_BOOTSTRAP_TABLE(NAME)
#undef NAME
    };
    static char page[1 << 16];
    FILE *file = fopen(WEFT_SOURCE_DIR "/docs/worlds.md", "r");
    assert_non_null(file);
    size_t length = fread(page, 1, sizeof page - 1, file);
    assert_int_equal(fclose(file), 0);
    assert_in_range(length, 1, sizeof page - 2);
    page[length] = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char row[64];
        (void)snprintf(row, sizeof row, "\n| `%s` |", names[i] + strlen("WEFT_BOOTSTRAP_"));
        for (char *c = row; *c != 0; c++) {
            *c = (char)tolower((unsigned char)*c);
        }
        if (strstr(page, row) == NULL) {
            fail_msg("docs/worlds.md has no row of %s", names[i]);
        }
    }
}

static void chooses_by_ranks(void **state)
{
    (void)state;
    const ranked_choice choices[] = {
        {{NULL, NULL, 0, "env", NULL}, "0", "1", "127.0.0.1", "29500"},
        {{"auto", NULL, 1, "self", NULL}, "0", "2", "127.0.0.1", "29500"},
        {{NULL, job, 0, "local", NULL}, "0", "2", "127.0.0.1", "29500"},
        {{"env", job, 0, "env", NULL}, "0", "1", "127.0.0.1", "29500"},
        {{"env", NULL, 1, "env", NULL}, NULL, NULL, NULL, NULL},
        {{NULL, NULL, 0, NULL, "MASTER_ADDR is not"}, "0", "2", NULL, "29500"},
        {{NULL, NULL, 0, NULL, "MASTER_ADDR is empty"}, "0", "2", "", "29500"},
        {{NULL, NULL, 2, NULL, "MASTER_ADDR is empty"}, "0", "2", "", "29500"},
        {{NULL, NULL, 0, NULL, "RANK is empty"}, "", "2", "127.0.0.1", "29500"},
        {{NULL, NULL, 0, NULL, "WORLD_SIZE is not"}, "0", NULL, "127.0.0.1", "29500"},
        {{"self", NULL, 0, "self", NULL}, "0", "2", "", "29500"},
        {{NULL, NULL, 0, "self", NULL}, "0", "1", "", "29500"},
        {{NULL, NULL, 0, "self", NULL}, "0", NULL, "", "29500"},
        {{NULL, NULL, 0, "self", NULL}, NULL, NULL, "127.0.0.1", "29500"},
        {{NULL, NULL, 0, NULL, "PE 1"}, "0", "2", "127.0.0.1", port}, /* env, and nobody else comes */
        {{NULL, NULL, 2, NULL, "PE 1"}, "7", "9", "localhost", port}, /* the config is PE 0 of 2 */
        {{"env", NULL, 0, NULL, "RANK"}, NULL, "2", "127.0.0.1", "29500"},
        {{"env", NULL, 0, NULL, "MASTER_ADDR"}, "0", "2", NULL, "29500"},
        {{"env", NULL, 0, NULL, "WEFT_PORT"}, "0", "2", "127.0.0.1", NULL},
        {{"env", NULL, 0, NULL, "WEFT_PORT"}, "0", "2", "127.0.0.1", "65535"},
        {{"env", NULL, 0, NULL, "MASTER_PORT"}, "0", "2", "127.0.0.1", "http"},
        {{"env", NULL, 0, NULL, "RANK"}, "x", "2", "127.0.0.1", "29500"},
        {{"env", NULL, 0, NULL, "RANK=1 of WORLD_SIZE=1"}, "1", "1", "127.0.0.1", "29500"},
        {{"env", NULL, 0, NULL, "link-local"}, "0", "2", "fe80::1%lo", "29500"},
    };
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        set("RANK", choices[i].rank);
        set("WORLD_SIZE", choices[i].world_size);
        set("MASTER_ADDR", choices[i].master_addr);
        set("MASTER_PORT", choices[i].master_port);
        assert_choice(&choices[i].choice);
    }
    set("RANK", NULL);
    set("WORLD_SIZE", NULL);
    set("MASTER_ADDR", NULL);
    set("MASTER_PORT", NULL);
}

/* What srun, mpirun and mpiexec set, and what is left of it in processes that they did not start. */
typedef struct launched_choice {
    choice choice;
    const char *variables[10]; /* names and values */
} launched_choice;

static void chooses_by_launchers(void **state)
{
    (void)state;
    const launched_choice choices[] = {
        /* srun with MpiDefault=none; the same for one task; a batch script, whose variables are the job's; salloc */
        {{NULL, NULL, 0, NULL, "--mpi=pmi2"}, {"SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4"}},
        {{NULL, NULL, 2, NULL, "--mpi=pmi2"}, {"SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4"}},
        {{"self", NULL, 0, "self", NULL}, {"SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4"}},
        {{NULL, NULL, 1, "self", NULL}, {"SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4"}},
        {{NULL, NULL, 0, "self", NULL}, {"SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "1"}},
        {{NULL, NULL, 0, "self", NULL}, {"SLURM_PROCID", "0", "SLURM_NTASKS", "4", "SLURM_JOB_ID", "7"}},
        /* weftrun and torchrun below srun */
        {{NULL, job, 0, "local", NULL}, {"SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4"}},
        {{NULL, NULL, 0, "env", NULL},
         {"SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4", "RANK", "0", "WORLD_SIZE", "1", "MASTER_ADDR",
          "127.0.0.1"}},
        /* mpirun without PMIx */
        {{NULL, NULL, 0, NULL, "WEFT_BOOTSTRAP=mpi"}, {"OMPI_COMM_WORLD_SIZE", "2"}},
        {{NULL, NULL, 0, "self", NULL}, {"OMPI_COMM_WORLD_SIZE", "1"}},
        /* mpiexec with PMI by a port, which is not spoken */
        {{NULL, NULL, 0, NULL, "-pmi-port"}, {"PMI_PORT", "host:37339", "PMI_ID", "0"}},
        {{NULL, NULL, 2, NULL, "-pmi-port"}, {"PMI_PORT", "host:37339", "PMI_ID", "0"}},
        {{"self", NULL, 0, "self", NULL}, {"PMI_PORT", "host:37339", "PMI_ID", "0"}},
        {{NULL, job, 0, "local", NULL}, {"PMI_PORT", "host:37339", "PMI_ID", "0"}},
        /* torchrun's variables before PMIx's, and those before PMI's, which are asked for last */
        {{NULL, NULL, 0, "env", NULL},
         {"PMIX_RANK", "0", "PMI_FD", "1000000", "RANK", "0", "WORLD_SIZE", "1", "MASTER_ADDR", "127.0.0.1"}},
        {{NULL, job, 0, "local", NULL},
         {"PMIX_RANK", "0", "PMI_FD", "1000000", "RANK", "0", "WORLD_SIZE", "1", "MASTER_ADDR", "127.0.0.1"}},
        /* what is not there */
        {{"mpi", NULL, 0, NULL, "it has none"}, {NULL}},
        {{"shmem", NULL, 0, NULL, "it has none"}, {NULL}},
        {{"plugin", NULL, 0, NULL, "WEFT_BOOTSTRAP_PLUGIN"}, {NULL}},
        {{"uid", NULL, 0, NULL, "config.uid"}, {NULL}},
        {{"threads", NULL, 0, NULL, "config.threads"}, {NULL}},
        {{"self", NULL, 2, NULL, ""}, {NULL}},
        /* PMI_FD that is closed: a process that system() started. The first that asks joins for all, so it is last. */
        {{NULL, NULL, 0, NULL, "inherited"}, {"PMI_FD", "1000000", "PMI_RANK", "0", "PMI_SIZE", "2"}},
    };
    (void)setenv("MASTER_PORT", "29500", 1);
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const char *const *variables = choices[i].variables;
        for (size_t at = 0; at < 10 && variables[at] != NULL; at += 2) {
            set(variables[at], variables[at + 1]);
        }
        assert_choice(&choices[i].choice);
        for (size_t at = 0; at < 10 && variables[at] != NULL; at += 2) {
            set(variables[at], NULL);
        }
    }
    (void)unsetenv("MASTER_PORT");
}

/* Open as a process with these variables, of which PMI_FD is a socket to a launcher that hears the first words, and
 * hangs up: those are left in `greeting`. Returns whether the error says this. */
static int open_with_launcher(const char *const variables[][2], const char *says, char greeting[64])
{
    int ends[2];
    int how = 0;
    char number[16];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const pid_t child = fork(); /* which joins its launcher once in its life */
    if (child == 0) {
        weft_world_config config = WEFT_WORLD_CONFIG_INIT;
        wefti_bootstrap bootstrap;
        config.deadline_ns = UINT64_C(5000000000);
        (void)close(ends[0]);
        (void)snprintf(number, sizeof number, "%d", ends[1]);
        set("PMI_FD", number);
        for (int i = 0; variables[i][0] != NULL; i++) {
            set(variables[i][0], variables[i][1]);
        }
        _exit(wefti_bootstrap_open(&config, &bootstrap) == WEFT_OK || strstr(weft_last_error(), says) == NULL);
    }
    (void)close(ends[1]);
    const ssize_t got = read(ends[0], greeting, 63);
    greeting[got > 0 ? got : 0] = '\0';
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, &how, 0), child);
    return WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

/* A launcher that offers several is asked by PMIx, else by PMI-2, else by PMI-1. */
static void prefers_pmix_and_then_pmi2(void **state)
{
    static const char *const all[][2] = {{"PMI_RANK", "0"},       {"PMI_SIZE", "2"},  {"SLURM_STEP_ID", "0"},
                                         {"PMIX_NAMESPACE", "a"}, {"PMIX_RANK", "x"}, {NULL, NULL}};
    static const char *const pmi2[][2] = {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"SLURM_STEP_ID", "0"}, {NULL, NULL}};
    static const char *const pmi1[][2] = {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {NULL, NULL}};
    char greeting[64];
    (void)state;
#if defined(__aarch64__)
    skip(); /* emulated, the launcher hears nothing of PMI-2; why has not been found */
#endif
    assert_true(open_with_launcher(all, "PMI", greeting)); /* not PMIX_RANK, or no PMIx in this build */
    assert_string_equal(greeting, "");
    assert_true(open_with_launcher(pmi2, "", greeting));
    assert_non_null(strstr(greeting, "pmi_version=2"));
    assert_true(open_with_launcher(pmi1, "", greeting));
    assert_non_null(strstr(greeting, "pmi_version=1"));
}

static void assert_refused(weft_world_config config, const char *says)
{
    wefti_bootstrap bootstrap;
    assert_int_equal(wefti_bootstrap_open(&config, &bootstrap), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(), says));
    wefti_bootstrap_close(&bootstrap);
}

static void says_what_is_missing(void **state)
{
    (void)state;
    static const weft_callback_ops without = {.size = sizeof without};
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    config.bootstrap = WEFT_BOOTSTRAP_UID;
    assert_refused(config, "weft_uid_create");
    config.bootstrap = WEFT_BOOTSTRAP_THREADS;
    assert_refused(config, "weft_threads_create");
    config.bootstrap = WEFT_BOOTSTRAP_CALLBACK;
    assert_refused(config, "config.callback");
    config.callback = &without;
    assert_refused(config, "config.callback");
    config.bootstrap = (weft_bootstrap_kind)99;
    assert_refused(config, "99");
    config.bootstrap = WEFT_BOOTSTRAP_AUTO;
    config.name = "a name that is one letter longer than what a world's name may be";
    assert_int_equal(strlen(config.name), WEFTI_BOOTSTRAP_NAME_BYTES);
    assert_refused(config, "63");
}

static void believes_the_launcher_only_if_it_makes_sense(void **state)
{
    (void)state;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    config.bootstrap = WEFT_BOOTSTRAP_LOCAL;
    set("WEFT_LOCAL_JOB", job);
    set("WEFT_LOCAL_PE", "3");
    set("WEFT_LOCAL_PES", "3");
    assert_refused(config, "WEFT_LOCAL_PE");
    set("WEFT_LOCAL_PES", NULL);
    assert_refused(config, "WEFT_LOCAL_PES");
    set("WEFT_LOCAL_PE", "x");
    set("WEFT_LOCAL_PES", "3");
    assert_refused(config, "WEFT_LOCAL_PE");
}

/* The allgather of an embedder: good once, and then it leaves out the caller's own place. */
static int forget_own(void *context, const void *mine, void *all, size_t bytes)
{
    int *calls = context;
    if ((*calls)++ == 0) {
        memcpy(all, mine, bytes);
    }
    return 0;
}

static void believes_no_allgather_that_leaves_out_its_caller(void **state)
{
    (void)state;
    int calls = 0;
    uint64_t mine = 7;
    uint64_t all = 0;
    wefti_bootstrap bootstrap;
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    const weft_callback_ops ops = {.size = sizeof ops, .context = &calls, .allgather = forget_own};
    config.bootstrap = WEFT_BOOTSTRAP_CALLBACK;
    config.callback = &ops;
    config.pes = 1;
    assert_int_equal(wefti_bootstrap_open(&config, &bootstrap), WEFT_OK);
    assert_int_equal(bootstrap.ops->allgather(&bootstrap, &mine, &all, sizeof mine), WEFT_ERR_MISMATCH);
    assert_non_null(strstr(weft_last_error(), "its own place"));
    wefti_bootstrap_close(&bootstrap);
}

static void leaves_the_last_exchanges_some_time(void **state)
{
    (void)state;
    uint64_t now_ns = wefti_os_now_ns();
    wefti_bootstrap bootstrap = {.until_ns = now_ns + UINT64_C(1000000000000)};
    assert_true(wefti_bootstrap_limit_ns(&bootstrap) == bootstrap.until_ns);
    bootstrap.until_ns = now_ns; /* the deadline is over */
    assert_true(wefti_bootstrap_limit_ns(&bootstrap) >= now_ns + WEFTI_BOOTSTRAP_LAST_NS);
}

static int begin(void **state)
{
    (void)state;
    (void)snprintf(job, sizeof job, "test%d:%064d", (int)getpid(), (int)getpid());
    (void)snprintf(port, sizeof port, "%d", 10000 + (int)getpid() % 20000);
    return setenv("WEFT_LOG", "none", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefers_pmix_and_then_pmi2), /* before this process has joined any */
        cmocka_unit_test(chooses_by_environment),
        cmocka_unit_test(chooses_by_ranks),
        cmocka_unit_test(chooses_by_launchers),
        cmocka_unit_test(is_on_the_page),
        cmocka_unit_test(says_what_is_missing),
        cmocka_unit_test(believes_the_launcher_only_if_it_makes_sense),
        cmocka_unit_test(believes_no_allgather_that_leaves_out_its_caller),
        cmocka_unit_test(leaves_the_last_exchanges_some_time),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
