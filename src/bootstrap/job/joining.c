/* bootstrap/job/joining.c: a process joins its launcher's job once, and only a process that the launcher started. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/error.h"
#include "base/hash.h"
#include "bootstrap/job/job.h"
#include "os/os.h"
#include "os/socket.h"

weft_status wefti_join_once(wefti_joining *joining, weft_status (*join)(void))
{
    int expected = 0;
    if (__atomic_compare_exchange_n(&joining->stage, &expected, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        joining->process = wefti_os_process_number();
        joining->status = join();
        (void)snprintf(joining->text, sizeof joining->text, "%s", joining->status == WEFT_OK ? "" : weft_last_error());
        __atomic_store_n(&joining->stage, 2, __ATOMIC_RELEASE);
    }
    while (__atomic_load_n(&joining->stage, __ATOMIC_ACQUIRE) != 2) {
        wefti_os_yield();
    }
    if (joining->status == WEFT_OK && joining->process != wefti_os_process_number()) {
        return wefti_error(WEFT_ERR_STATE,
                           "this process was forked from process %d, which belongs to the launcher's job; processes "
                           "forked from it do not: give them config.bootstrap, or start them anew by weftrun",
                           joining->process);
    }
    return joining->status == WEFT_OK ? WEFT_OK : wefti_error_relay(joining->status, joining->text);
}

/* The name of who is that process of the job, in the abstract namespace. */
static socklen_t make_name(const char *job, int rank, struct sockaddr_un *address)
{
    static const unsigned char no_secret[WEFTI_HASH_BYTES] = {0};
    unsigned char hash[WEFTI_HASH_BYTES];
    char text[320];
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    (void)snprintf(text, sizeof text, "%u/%.255s/%d", wefti_os_user(), job, rank);
    wefti_hash(no_secret, text, strlen(text), hash);
    int used = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "weft/job/");
    for (size_t i = 0; i < 16; i++) {
        used += snprintf(address->sun_path + 1 + used, sizeof address->sun_path - 1 - (size_t)used, "%02x", hash[i]);
    }
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)used);
}

/* Whether who has the name is this user's: the system says so. Somebody else's claim means nothing. Nobody takes
 * connections at a claim: EAGAIN, its queue is full, so somebody of the job has looked at it before. */
static int is_own_users(const struct sockaddr_un *address, socklen_t bytes)
{
    const int probe = wefti_os_socket_open(AF_UNIX);
    if (probe < 0) {
        return 0;
    }
    const int met = wefti_os_socket_connect(probe, (const struct sockaddr *)address, bytes);
    const int is_own = met == 0 ? wefti_os_socket_is_own_user(probe, NULL) : errno == EAGAIN;
    wefti_os_socket_close(probe);
    return is_own;
}

weft_status wefti_job_claim(const char *job, int rank, const char *variables)
{
    struct sockaddr_un address;
    const socklen_t bytes = make_name(job, rank, &address);
    const int claim = wefti_os_socket_open(AF_UNIX);
    if (claim < 0) {
        return wefti_error(
            WEFT_ERR_SYSTEM,
            "process %d of the launcher's job has no descriptor left: %s; allow more open files (ulimit -n)", rank,
            strerror(errno));
    }
    if (wefti_os_socket_bind(claim, (const struct sockaddr *)&address, bytes) == 0) {
        (void)wefti_os_socket_listen(claim, 1);
        return WEFT_OK; /* held until the process ends or becomes another program */
    }
    /* Where the name cannot be bound for another reason nothing is known: the process goes on without a claim. */
    const int is_taken = errno == EADDRINUSE && is_own_users(&address, bytes);
    wefti_os_socket_close(claim);
    return !is_taken ? WEFT_OK
                     : wefti_error(WEFT_ERR_STATE,
                                   "another process is process %d of the launcher's job already: this one was started "
                                   "by it and has inherited %s; unset them, say WEFT_BOOTSTRAP=self for a world of one "
                                   "PE, or start the program by weftrun",
                                   rank, variables);
}
