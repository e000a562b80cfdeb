/* faces/shmem/setup.c: library setup, exit and query. (OpenSHMEM 1.6, 9.1.) */
#include "faces/shmem/setup.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft_shmem_weak.h>

#include "faces/shmem/binding.h"

wefti_shmem_face wefti_shmem;

/* Guards init and finalize, which any thread may call. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
    pid_t pid; /* of the process that called init: a forked one is no PE */
    int pe; /* its number then */
    int is_watching; /* the handlers below are installed */
    int is_ending; /* the program ends without another call of weft */
} life;

/* ---- the end ---- */

static uint64_t exit_notice(void)
{
    const wefti_shmem_notice *notice = wefti_shmem.notice;
    return notice == NULL ? 0 : __atomic_load_n(&notice->exit, __ATOMIC_ACQUIRE);
}

/* The notice of a PE of this node; NULL for others, whom the abort tells. */
static wefti_shmem_notice *notice_of(int pe)
{
    return wefti_shmem.notice == NULL ? NULL : weft_ptr(wefti_shmem.world, wefti_shmem.notice, pe);
}

/* Write the exit word of a PE's notice; only the first write counts. */
static void tell(int pe, uint64_t word)
{
    wefti_shmem_notice *theirs = notice_of(pe);
    uint64_t none = 0;
    if (theirs != NULL) {
        (void)__atomic_compare_exchange_n(&theirs->exit, &none, word, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
}

/* Send a PE a signal, as it may not be in a call of the library; only if its process id is of this pid namespace. */
static void wake(int pe)
{
    const wefti_shmem_notice *theirs = notice_of(pe);
    if (theirs != NULL && theirs->pid != 0 && theirs->pid_namespace == wefti_shmem.notice->pid_namespace &&
        theirs->pid != (uint64_t)getpid()) {
        (void)kill((pid_t)theirs->pid, SIGTERM);
    }
}

void wefti_shmem_end(int code)
{
    life.is_ending = 1;
    if (wefti_shmem.world != NULL && life.pid == getpid()) {
        const uint64_t word = WEFTI_SHMEM_EXIT | (uint32_t)code;
        (void)fflush(NULL); /* before others hear of it, since the first exit with an error ends a job */
        const int pes = weft_world_pes(wefti_shmem.world);
        for (int pe = 0; pe < pes; pe++) {
            tell(pe, word);
        }
        (void)weft_world_abort(wefti_shmem.world, code);
        for (int pe = 0; pe < pes; pe++) {
            wake(pe);
        }
    }
    _exit(code);
}

/* If another PE has ended the program, exit with the code that it gave. */
static void follow(void)
{
    const uint64_t word = exit_notice();
    if (word != 0) {
        life.is_ending = 1;
        (void)fflush(NULL);
        _exit((int)(uint32_t)word);
    }
}

static const char *without_p(const char *call)
{
    return strncmp(call, "pshmem", 6) == 0 || strncmp(call, "pstart", 6) == 0 ? call + 1 : call;
}

void wefti_shmem_refuse(const char *call, const char *cause)
{
    char who[32] = "";
    if (wefti_shmem.world != NULL) {
        (void)snprintf(who, sizeof who, "PE %d: ", weft_world_pe(wefti_shmem.world));
    }
    (void)fprintf(stderr, "%s%s: %s\n", who, without_p(call), cause); /* at once: others may end this PE meanwhile */
    wefti_shmem_end(EXIT_FAILURE);
}

void wefti_shmem_refuse_null(const char *call, const char *argument)
{
    char cause[128];
    (void)snprintf(cause, sizeof cause, "argument '%s' is NULL; give the address of a variable", argument);
    wefti_shmem_refuse(call, cause);
}

/* What weft's messages tell to give or do, in this interface's names. */
typedef struct wording {
    const char *wefts;
    const char *ours;
    unsigned char is_rest; /* the rest of the message is left out */
    unsigned char is_of_contexts; /* replaced only in routines that take a context */
} wording;

static const wording words[] = {
    {"with weft_malloc of this world", "with shmem_malloc, or use a global or static variable", 0, 0},
    {"is no weft_cmp", "is none of SHMEM_CMP_EQ to SHMEM_CMP_LE", 0, 0},
    {"is no weft_signal_op", "is neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD", 0, 0},
    {"none of WEFT_CTX_", "none of SHMEM_CTX_", 0, 0},
    {"argument 'world' is NULL or destroyed", "the context is SHMEM_CTX_INVALID or destroyed", 0, 0}, /* the world is */
    {"heap_max_bytes or WEFT_HEAP_MAX", "SHMEM_SYMMETRIC_SIZE", 0, 0},
    {"it or WEFT_HEAP_MAX", "SHMEM_SYMMETRIC_SIZE", 0, 0},
    {"WEFT_HEAP_MAX", "SHMEM_SYMMETRIC_SIZE", 0, 0},
    {"PE -1 is not one of the", "the PE is no member of the context's team; give one of 0 to the team's size less 1", 1,
     1},
};

static const wording *find_wording(const char *call, const char *text)
{
    const int is_of_context = strncmp(call, "pshmem_ctx_", 11) == 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if ((is_of_context || !words[i].is_of_contexts) && strstr(text, words[i].wefts) != NULL) {
            return &words[i];
        }
    }
    return NULL;
}

/* The cause of the last failure, as this interface's user knows it: without weft's name of the call. */
static void write_cause(const char *call, weft_status status, char *cause, size_t bytes)
{
    const char *text = weft_last_error();
    const char *inner = strncmp(text, "weft_", 5) == 0 ? strstr(text, ": ") : NULL;
    text = inner != NULL ? inner + 2 : text;
    const wording *word = find_wording(call, text);
    if (word == NULL) {
        (void)snprintf(cause, bytes, "%s (%s)", text, weft_status_name(status));
    } else {
        const char *found = strstr(text, word->wefts);
        (void)snprintf(cause, bytes, "%.*s%s%s (%s)", (int)(found - text), text, word->ours,
                       word->is_rest ? "" : found + strlen(word->wefts), weft_status_name(status));
    }
}

void wefti_shmem_fail(const char *call, weft_status status)
{
    if (life.pid != 0 && life.pid != getpid()) {
        (void)fprintf(stderr, "%s: called in a process that was forked from a PE; only the PE may call it\n",
                      without_p(call));
        _exit(EXIT_FAILURE);
    }
    if (wefti_shmem.world == NULL) {
        if (life.pid == 0) {
            (void)fprintf(stderr, "%s: called before shmem_init; call it between shmem_init and shmem_finalize\n",
                          without_p(call));
        } else {
            (void)fprintf(stderr,
                          "PE %d: %s: called after the last shmem_finalize; call it between shmem_init and "
                          "shmem_finalize\n",
                          life.pe, without_p(call));
        }
        _exit(EXIT_FAILURE);
    }
    if (status == WEFT_ERR_ABORTED) {
        follow();
    }
    char cause[1024];
    write_cause(call, status, cause, sizeof cause);
    wefti_shmem_refuse(call, cause);
}

/* The end of a program that did not finalize: by exit or a return from main. With an error the others need not come. */
static void at_exit(int code, void *unused)
{
    (void)unused;
    if (life.is_ending || life.pid != getpid() || wefti_shmem.world == NULL) {
        return;
    }
    follow();
    if (code != 0) {
        wefti_shmem_end(code);
    }
    (void)pthread_mutex_lock(&lock);
    while (wefti_shmem.world != NULL) {
        wefti_shmem_close(__func__);
    }
    (void)pthread_mutex_unlock(&lock);
}

/* SIGTERM, which ends the process as before, but with the code that another PE's global exit gives. */
static void at_signal(int number)
{
    const uint64_t word = exit_notice();
    if (word != 0 && life.pid == getpid()) {
        _exit((int)(uint32_t)word);
    }
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void watch_end(void)
{
    struct sigaction before;
    life.pid = getpid();
    life.pe = weft_world_pe(wefti_shmem.world);
    life.is_ending = 0;
    if (life.is_watching) {
        return;
    }
    life.is_watching = 1;
    (void)on_exit(at_exit, NULL);
    if (sigaction(SIGTERM, NULL, &before) == 0 && before.sa_handler == SIG_DFL) {
        struct sigaction action = {.sa_handler = at_signal, .sa_flags = SA_RESTART};
        (void)sigaction(SIGTERM, &action, NULL);
    }
}

/* ---- the world ---- */

static void note_self(void)
{
    struct stat names;
    wefti_shmem.notice->pid_namespace = stat("/proc/self/ns/pid", &names) == 0 ? (uint64_t)names.st_ino : 0;
    wefti_shmem.notice->pid = wefti_shmem.notice->pid_namespace != 0 ? (uint64_t)getpid() : 0;
}

static void open_teams(weft_world *world)
{
    wefti_shmem.teams[(uintptr_t)SHMEM_TEAM_WORLD] = weft_team_world(world);
    wefti_shmem.teams[(uintptr_t)SHMEM_TEAM_SHARED] = weft_team_link(world);
    wefti_shmem.teams[(uintptr_t)SHMEM_TEAM_NODE] = weft_team_node(world);
}

static void check(const char *call, weft_status status)
{
    if (status != WEFT_OK) {
        wefti_shmem_fail(call, status);
    }
}

static void check_static(const char *call, const char *wrong)
{
    if (wrong != NULL) {
        wefti_shmem_refuse(call, wrong);
    }
}

/* Another PE's global exit may end this one at any moment: the lines that it has written by then are not lost. Unless
 * the program has chosen, or has begun to write. */
static void write_by_lines(void)
{
    if (__fbufsize(stdout) == 0) {
        (void)setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    }
}

static void open_world(const char *call)
{
    weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    void *notice;
    wefti_shmem_environment(call, &config);
    wefti_static_configure(&config);
    const weft_status status = weft_world_create(&config, &wefti_shmem.world);
    if (status != WEFT_OK) {
        char cause[1024];
        write_cause(call, status, cause, sizeof cause);
        (void)fprintf(stderr, "%s: no world: %s\n", without_p(call), cause);
        _exit(EXIT_FAILURE);
    }
    watch_end();
    write_by_lines();
    check(call, weft_calloc(wefti_shmem.world, 1, sizeof *wefti_shmem.notice, &notice));
    wefti_shmem.notice = notice;
    note_self();
    open_teams(wefti_shmem.world);
    check_static(call, wefti_static_map(wefti_shmem.world));
    check(call, weft_barrier(wefti_shmem.world));
    wefti_shmem_print();
}

void wefti_shmem_close(const char *call)
{
    check(call, weft_barrier(wefti_shmem.world));
    if (--wefti_shmem.init_count > 0) {
        return;
    }
    weft_world *const world = wefti_shmem.world;
    wefti_shmem_active_sets_drop();
    check_static(call, wefti_static_unmap());
    wefti_shmem.notice = NULL;
    wefti_shmem.world = NULL;
    memset(wefti_shmem.teams, 0, sizeof wefti_shmem.teams);
    (void)weft_world_destroy(world);
}

static void init(const char *call, int level, int *provided)
{
    (void)pthread_mutex_lock(&lock);
    if (wefti_shmem.world == NULL) {
        wefti_shmem.thread_level = level;
        open_world(call);
        wefti_shmem.init_count = 0;
    }
    wefti_shmem.init_count++;
    if (provided != NULL) {
        *provided = wefti_shmem.thread_level;
    }
    (void)pthread_mutex_unlock(&lock);
}

int pshmem_init_thread(int requested, int *provided)
{
    if (requested < SHMEM_THREAD_SINGLE || requested > SHMEM_THREAD_MULTIPLE) {
        wefti_shmem_refuse(
            __func__,
            "argument 'requested' is no thread level; give one of SHMEM_THREAD_SINGLE to SHMEM_THREAD_MULTIPLE");
    }
    init(__func__, requested, provided);
    return 0;
}
WEAK_pshmem_init_thread

    void
    pshmem_init(void)
{
    init(__func__, SHMEM_THREAD_SINGLE, NULL);
}
WEAK_pshmem_init

    void
    pstart_pes(int npes)
{
    (void)npes;
    if (wefti_shmem.world == NULL) {
        init(__func__, SHMEM_THREAD_SINGLE, NULL);
    }
}
WEAK_pstart_pes

    void
    pshmem_finalize(void)
{
    (void)pthread_mutex_lock(&lock);
    if (wefti_shmem.world != NULL) {
        wefti_shmem_close(__func__);
    } else if (life.pid == 0) {
        wefti_shmem_fail(__func__, WEFT_ERR_STATE);
    } /* else one too many, as programs have from before inits were counted: nothing is left to do */
    (void)pthread_mutex_unlock(&lock);
}
WEAK_pshmem_finalize

    void
    pshmem_global_exit(int status)
{
    if (wefti_shmem.world == NULL) {
        wefti_shmem_fail(__func__, WEFT_ERR_STATE);
    }
    wefti_shmem_end(status);
}
WEAK_pshmem_global_exit

    /* ---- queries ---- */

    void
    pshmem_query_thread(int *provided)
{
    NEED(provided);
    *provided = wefti_shmem.thread_level;
}
WEAK_pshmem_query_thread

    void
    pshmem_query_initialized(int *initialized)
{
    NEED(initialized);
    *initialized = wefti_shmem.world != NULL;
}
WEAK_pshmem_query_initialized

    int
    pshmem_my_pe(void)
{
    return weft_world_pe(wefti_shmem.world);
}
WEAK_pshmem_my_pe

    int
    pshmem_n_pes(void)
{
    return weft_world_pes(wefti_shmem.world);
}
WEAK_pshmem_n_pes

    int
    p_my_pe(void)
{
    return pshmem_my_pe();
}
WEAK_p_my_pe

    int
    p_num_pes(void)
{
    return pshmem_n_pes();
}
WEAK_p_num_pes

    int
    pshmem_pe_accessible(int pe)
{
    return weft_pe_accessible(wefti_shmem.world, pe);
}
WEAK_pshmem_pe_accessible

    int
    pshmem_addr_accessible(const void *addr, int pe)
{
    return weft_addr_accessible(wefti_shmem.world, SYMMETRIC(addr), pe);
}
WEAK_pshmem_addr_accessible

    void *
    pshmem_ptr(const void *dest, int pe)
{
    return weft_ptr(wefti_shmem.world, SYMMETRIC(dest), pe);
}
WEAK_pshmem_ptr

    void
    pshmem_info_get_version(int *major, int *minor)
{
    NEED(major);
    NEED(minor);
    *major = SHMEM_MAJOR_VERSION;
    *minor = SHMEM_MINOR_VERSION;
}
WEAK_pshmem_info_get_version

    void
    pshmem_info_get_name(char *name)
{
    NEED(name);
    memcpy(name, SHMEM_VENDOR_STRING, sizeof SHMEM_VENDOR_STRING);
}
WEAK_pshmem_info_get_name

    /* Nothing of this library is profiled by levels; a profiling library has its own. */
    void
    pshmem_pcontrol(int level, ...)
{
    (void)level;
}
WEAK_pshmem_pcontrol
