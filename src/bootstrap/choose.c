/* bootstrap/choose.c: the choice of the backend. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/mpi/mpi.h"
#include "os/os.h"

/* Whether all three are set: RANK, WORLD_SIZE and MASTER_ADDR. */
static int is_env_complete(void)
{
    return wefti_env_is_set(WEFTI_ENV_RANK) && wefti_env_is_set(WEFTI_ENV_WORLD_SIZE) &&
           wefti_env_is_set(WEFTI_ENV_MASTER_ADDR);
}

/* Two of the three say that this process is one of several: the third has been forgotten, or is empty. Returns 0 after
 * an error. */
static int check_env(void)
{
    static const wefti_env_id three[] = {WEFTI_ENV_RANK, WEFTI_ENV_WORLD_SIZE, WEFTI_ENV_MASTER_ADDR};
    const char *missing = "";
    const char *others[3] = {"", "", ""};
    int set = 0;
    for (size_t i = 0; i < sizeof three / sizeof *three; i++) {
        const char *name = wefti_env_entry_of(three[i])->name;
        if (wefti_env_is_set(three[i])) {
            others[set++] = name;
        } else {
            missing = name;
        }
    }
    if (set != 2 || strcmp(wefti_env_word(WEFTI_ENV_WORLD_SIZE), "1") == 0) {
        return 1;
    }
    (void)wefti_error(
        WEFT_ERR_ARGUMENT,
        "%s and %s are set and %s is %s, so that this process cannot find the others: set RANK, WORLD_SIZE "
        "and MASTER_ADDR (and MASTER_PORT or WEFT_PORT) on all PEs as torchrun does, or say "
        "WEFT_BOOTSTRAP=self for worlds of one PE",
        others[0], others[1], missing, getenv(missing) == NULL ? "not" : "empty");
    return 0;
}

static int by_weftrun(void)
{
    return wefti_env_is_set(WEFTI_ENV_LOCAL_JOB);
}

static int by_pmix(void)
{
    return wefti_env_is_set(WEFTI_ENV_PMIX_RANK);
}

static int by_pmi1(void)
{
    return wefti_env_is_set(WEFTI_ENV_PMI_FD);
}

/* Where the program's MPI has the launcher's PMI, it takes that MPI. */
static int by_mpi(void)
{
#ifdef WEFT_SIM
    return 0;
#else
    return by_pmi1() && wefti_mpi_is_up();
#endif
}

static int by_pmi2(void)
{
    const int has_place = wefti_env_is_set(WEFTI_ENV_PMI_RANK) && wefti_env_is_set(WEFTI_ENV_PMI_SIZE);
    return by_pmi1() ? wefti_env_is_set(WEFTI_ENV_SLURM_STEP_ID) : has_place;
}

/* Which builds have a kind (WEFTI_BOOTSTRAP_BACKENDS): its functions, or NULL. */
#define OPS_HERE(name) &wefti_bootstrap_##name
#ifdef WEFT_SIM
#define OPS_SYSTEM(name) NULL
#else
#define OPS_SYSTEM(name) &wefti_bootstrap_##name
#endif
#ifdef WEFT_HAVE_PMIX
#define OPS_WITH_PMIX(name) &wefti_bootstrap_##name
#else
#define OPS_WITH_PMIX(name) NULL
#endif

typedef struct row {
    weft_bootstrap_kind kind;
    const wefti_bootstrap_ops *ops;
    int (*is_meant)(void);
} row;

static const row rows[] = {
#define ROW(KIND, name, builds, is_meant) {WEFT_BOOTSTRAP_##KIND, OPS_##builds(name), is_meant},
    WEFTI_BOOTSTRAP_BACKENDS(ROW)
#undef ROW
};

#define ONE(...) +1
_Static_assert(0 WEFTI_BOOTSTRAP_BACKENDS(ONE) + 1 == 0 WEFT_BOOTSTRAP_TABLE(ONE),
               "a kind of WEFT_BOOTSTRAP_TABLE (weft/bootstrap.h) has no row in WEFTI_BOOTSTRAP_BACKENDS");
#undef ONE

/* A row's functions; NULL after an error. */
static const wefti_bootstrap_ops *ops_of(const row *found)
{
    if (found->ops == NULL && found->kind == WEFT_BOOTSTRAP_PMIX) {
        (void)wefti_error(
            WEFT_ERR_ARGUMENT,
            "a launcher with PMIx started this process, or its bootstrap was asked for, and this build of weft has no "
            "PMIx: install the package libpmix-dev and build again, or start the program with weftrun or torchrun");
    } else if (found->ops == NULL) {
        (void)wefti_error(WEFT_ERR_ARGUMENT, "the simulator has no launcher, no MPI and no plugins of the system");
    }
    return found->ops;
}

/* A launcher has started several processes and left them no way to find each other: N worlds of one would be a
 * surprise. Returns 0 after an error. */
static int check_alone(void)
{
    const int steps = atoi(wefti_env_word(WEFTI_ENV_SLURM_STEP_TASKS));
    const int ranks = atoi(wefti_env_word(WEFTI_ENV_OMPI_SIZE));
    if (wefti_env_is_set(WEFTI_ENV_SLURM_STEP_ID) && steps > 1) {
        (void)wefti_error(WEFT_ERR_ARGUMENT,
                          "srun has started %d processes that cannot find each other, since it offers neither PMIx nor "
                          "PMI (MpiDefault=none): say srun --mpi=pmi2 or srun --mpi=pmix (srun --mpi=list tells what "
                          "there is), or WEFT_BOOTSTRAP=self for worlds of one PE",
                          steps);
        return 0;
    }
    if (ranks > 1) {
        (void)wefti_error(
            WEFT_ERR_ARGUMENT,
            "Open MPI's mpirun has started %d processes and PMIX_RANK is not set, so they cannot find each "
            "other: initialise MPI and say WEFT_BOOTSTRAP=mpi, or WEFT_BOOTSTRAP=self for worlds of one "
            "PE",
            ranks);
        return 0;
    }
    if (wefti_env_is_set(WEFTI_ENV_PMI_PORT)) {
        (void)wefti_error(WEFT_ERR_ARGUMENT,
                          "a launcher has started this process that speaks PMI by a port (PMI_PORT is %s) and not by "
                          "PMI_FD, so that it cannot find the others: leave out mpiexec's -pmi-port, initialise MPI "
                          "and say WEFT_BOOTSTRAP=mpi, or WEFT_BOOTSTRAP=self for worlds of one PE",
                          wefti_env_word(WEFTI_ENV_PMI_PORT));
        return 0;
    }
    return 1;
}

/* By the variables of weftrun or torchrun each process is a world of its own, and another launcher, above or below it,
 * says that there are several: which of them was meant is not known. */
static void warn_of_others(weft_bootstrap_kind kind)
{
    static const wefti_env_id sizes[] = {WEFTI_ENV_WORLD_SIZE, WEFTI_ENV_PMI_SIZE, WEFTI_ENV_OMPI_SIZE,
                                         WEFTI_ENV_SLURM_STEP_TASKS};
    const wefti_env_id own = kind == WEFT_BOOTSTRAP_LOCAL ? WEFTI_ENV_LOCAL_PES : WEFTI_ENV_WORLD_SIZE;
    const int is_alone = (kind == WEFT_BOOTSTRAP_LOCAL || kind == WEFT_BOOTSTRAP_ENV) && atoi(wefti_env_word(own)) == 1;
    for (size_t i = 0; is_alone && i < sizeof sizes / sizeof *sizes; i++) {
        if (atoi(wefti_env_word(sizes[i])) > 1) {
            wefti_log(WEFTI_LOG_WARN,
                      "%s is 1, so this process is a world of one, and %s is %s: if all of these are to be one world, "
                      "unset %s, or say WEFT_BOOTSTRAP",
                      wefti_env_entry_of(own)->name, wefti_env_entry_of(sizes[i])->name, wefti_env_word(sizes[i]),
                      wefti_env_entry_of(kind == WEFT_BOOTSTRAP_LOCAL ? WEFTI_ENV_LOCAL_JOB : WEFTI_ENV_RANK)->name);
            return;
        }
    }
}

/* What the launcher's variables say; NULL after an error. */
static const wefti_bootstrap_ops *choose_by_launcher(const weft_world_config *config)
{
    if (config->pes == 1) {
        return &wefti_bootstrap_self;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].is_meant != NULL && rows[i].is_meant()) {
            warn_of_others(rows[i].kind);
            return ops_of(&rows[i]);
        }
    }
    if (!check_alone() || !check_env()) {
        return NULL;
    }
    if (config->pes == 0) {
        return &wefti_bootstrap_self;
    }
    (void)wefti_error(WEFT_ERR_ARGUMENT,
                      "PE %d does not know how to find the other %d PEs of its world: start the program with weftrun, "
                      "torchrun, mpirun "
                      "or srun --mpi=pmi2, or set config.bootstrap (WEFT_BOOTSTRAP_UID, _THREADS or _CALLBACK) and "
                      "what belongs to it",
                      config->pe, config->pes - 1);
    return NULL;
}

/* What WEFT_BOOTSTRAP says, by the one table; -1 after an error, which lists what it may say. A kind without a word
 * there is known by its enumerator, since the error says what the program has to do: set the member of that name. */
static int read_kind(void)
{
    static const struct {
        const char *word;
        const char *name;
        weft_bootstrap_kind kind;
    } kinds[] = {
#define ROW(name, value, word, text) {word, #name, name},
        WEFT_BOOTSTRAP_TABLE(ROW)
#undef ROW
    };
    const char *said = wefti_env_word(WEFTI_ENV_BOOTSTRAP);
    char words[160] = "";
    size_t used = 0;
    int is_of_program = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].word == NULL) {
            is_of_program |= strcasecmp(said, kinds[i].name + strlen("WEFT_BOOTSTRAP_")) == 0;
            continue;
        }
        if (strcmp(said, kinds[i].word) == 0) {
            return (int)kinds[i].kind;
        }
        used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", used == 0 ? "" : ", ", kinds[i].word);
        used = used < sizeof words ? used : sizeof words - 1;
    }
    if (is_of_program) {
        (void)wefti_error(WEFT_ERR_ARGUMENT,
                          "WEFT_BOOTSTRAP=\"%s\" needs what no variable can bring: the program itself sets "
                          "config.bootstrap and config.%s; a variable can be one of %s",
                          said, said, words);
    } else {
        (void)wefti_error(WEFT_ERR_ARGUMENT, "WEFT_BOOTSTRAP=\"%.40s\" is not a bootstrap: give one of %s", said,
                          words);
    }
    return -1;
}

/* The ops of the config's kind; NULL after an error. */
static const wefti_bootstrap_ops *choose(const weft_world_config *config)
{
    const int kind = config->bootstrap == WEFT_BOOTSTRAP_AUTO ? read_kind() : (int)config->bootstrap;
    if (config->bootstrap == WEFT_BOOTSTRAP_AUTO && kind == -1) {
        return NULL;
    }
    if (kind == WEFT_BOOTSTRAP_AUTO) {
        return choose_by_launcher(config);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if ((int)rows[i].kind == kind) {
            return ops_of(&rows[i]);
        }
    }
    (void)wefti_error(WEFT_ERR_ARGUMENT, "config.bootstrap %d is none of WEFT_BOOTSTRAP_TABLE", kind);
    return NULL;
}

weft_status wefti_bootstrap_begin(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    memset(bootstrap, 0, sizeof *bootstrap);
    if (config->pes < 0 || config->pe < 0) {
        return wefti_error(WEFT_ERR_ARGUMENT, "config.pe %d of config.pes %d: neither may be negative", config->pe,
                           config->pes);
    }
    if (config->name != NULL && strlen(config->name) >= WEFTI_BOOTSTRAP_NAME_BYTES) {
        return wefti_error(WEFT_ERR_ARGUMENT, "config.name \"%.80s...\" is longer than %d bytes", config->name,
                           WEFTI_BOOTSTRAP_NAME_BYTES - 1);
    }
    bootstrap->deadline_ns = config->deadline_ns;
    return WEFT_OK;
}

void wefti_bootstrap_met(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    bootstrap->until_ns = wefti_os_now_ns() + config->deadline_ns;
}

weft_status wefti_bootstrap_open(const weft_world_config *config, wefti_bootstrap *bootstrap)
{
    WEFT_TRY(wefti_bootstrap_begin(config, bootstrap));
    const wefti_bootstrap_ops *ops = choose(config);
    if (ops == NULL) {
        return WEFT_ERR_ARGUMENT;
    }
    weft_status status = ops->open(config, bootstrap);
    if (status != WEFT_OK) {
        *bootstrap = (wefti_bootstrap){.has_met = bootstrap->has_met}; /* one that opened another may have named it */
        return status;
    }
    bootstrap->ops = bootstrap->ops == NULL ? ops : bootstrap->ops;
    wefti_bootstrap_met(config, bootstrap);
    return WEFT_OK;
}
