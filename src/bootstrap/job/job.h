/* bootstrap/job/job.h: worlds of the processes of a launcher's job. PE 0 makes a unique id and tells it to the others
 * by what the launcher offers, a store of keys and values; with it they meet (bootstrap/uid), so that deadlines, texts
 * that name the missing, and the secret are those of unique ids. */
#ifndef WEFTI_BOOTSTRAP_JOB_JOB_H
#define WEFTI_BOOTSTRAP_JOB_JOB_H

#include "base/thread_state.h"
#include "bootstrap/bootstrap.h"

#define WEFTI_JOB_KEY_BYTES 40
#define WEFTI_JOB_WORLDS_MAX 256 /* names of worlds that are told apart exactly */

typedef struct wefti_job wefti_job;

typedef struct wefti_job_ops {
    const char *name; /* of the way to the store, for texts */
    /* PE 0: tell the processes of the job the id. Until until_ns. */
    weft_status (*publish)(wefti_job *job, const char *key, const weft_uid *uid, uint64_t until_ns);
    /* The id that PE 0 publishes under this key, before the call or during it; WEFT_ERR_TIMEOUT when there is none by
     * until_ns. */
    weft_status (*fetch)(wefti_job *job, const char *key, uint64_t until_ns, weft_uid *uid);
    /* PE 0, after all have come: forget the id. NULL: it stays. After a failure it stays, too. */
    void (*retract)(wefti_job *job, const char *key);
    /* PE 0, after it has published: whether another process had published under this key before; *uid is then its id.
     * NULL: it cannot be known. */
    int (*is_other)(wefti_job *job, const char *key, uint64_t until_ns, weft_uid *uid);
} wefti_job_ops;

/* One process's membership. It lives as long as the process, or as what stands for it in tests. */
struct wefti_job {
    const wefti_job_ops *ops;
    int rank;
    int size;
    int needs_all; /* all of the job's processes must ask for an id before one of them gets it */
    void *state; /* the backend's */
    int lock; /* of worlds: 1 while a thread has it; atomic */
    struct {
        uint64_t hash;
        unsigned count;
    } worlds[WEFTI_JOB_WORLDS_MAX]; /* by name, how many there were */
};

/* What an `open` of wefti_bootstrap_ops does, once the process has joined its job. */
weft_status wefti_job_open(wefti_job *job, const weft_world_config *config, wefti_bootstrap *bootstrap,
                           uint64_t until_ns);

/* Join once a process: the first caller's `join` runs, others wait for it; all get its status and text. */
typedef struct wefti_joining {
    int stage; /* 0; 1 while a thread joins; 2 once that is over */
    weft_status status;
    int process; /* the process that has joined; a child that is forked from it has not */
    char text[WEFTI_ERROR_BYTES];
} wefti_joining;
weft_status wefti_join_once(wefti_joining *joining, weft_status (*join)(void));

/* Claim that this process is number `rank` of the job called `job`, for as long as it lives: a program that one of the
 * job's processes starts has inherited the launcher's variables and is no process of the job. WEFT_ERR_STATE. */
weft_status wefti_job_claim(const char *job, int rank, const char *variables);

#endif
