/* sim/strangers.c: connections of those who do not belong. */
#include <stdio.h>
#include <string.h>

#include "bootstrap/bootstrap.h"
#include "bootstrap/tree/link.h"
#include "bootstrap/tree/message.h"
#include "os/socket.h"
#include "sim/meeting.h"
#include "testing/sim/socket.h"

#define VISIT_NS UINT64_C(20000000)
#define BYTES_MAX 1200

typedef enum manner { SILENT, GARBAGE, HALF, WRONG_PROOF, ENDLESS, ECHO, FOREIGN, MANNERS } manner;

/* What another user says who knows the job's secret, and all else of a PE: it must not even be heard. */
static void know_all(wefti_tree_introduction *said)
{
    const weft_world_config config = WEFT_WORLD_CONFIG_INIT;
    said->hello.version = WEFT_VERSION;
    said->hello.pe = (int32_t)weft_sim_random((uint32_t)weft_sim_pes());
    (void)snprintf(said->hello.name, sizeof said->hello.name, "%s", wefti_bootstrap_world_name(&config));
    for (size_t i = 0; i < sizeof said->proof; i++) {
        unsigned digits;
        (void)sscanf(MEETING_SECRET + 2 * i, "%2x", &digits);
        said->proof[i] = (unsigned char)digits;
    }
}

/* Write what a stranger says; returns how many bytes. */
static size_t compose(manner how, unsigned char *bytes)
{
    wefti_frame_header header = {.type = WEFTI_FRAME_HELLO, .bytes = sizeof(wefti_tree_introduction)};
    wefti_tree_introduction said = {.hello = {.magic = WEFTI_TREE_MAGIC, .protocol = WEFTI_TREE_PROTOCOL}};
    said.hello.pe = (int32_t)weft_sim_random(64);
    said.hello.pes = weft_sim_pes();
    said.proof[0] = 1;
    size_t count = 0;
    switch (how) {
    case GARBAGE:
        count = (size_t)weft_sim_random(BYTES_MAX);
        for (size_t i = 0; i < count; i++) {
            bytes[i] = (unsigned char)weft_sim_random(256);
        }
        return count;
    case ENDLESS:
        header.type = (uint32_t)weft_sim_random(12);
        header.bytes = weft_sim_random(2) == 0 ? UINT64_MAX : weft_sim_random(2000);
        break;
    case SILENT:
    case ECHO:
        return 0;
    case FOREIGN:
        know_all(&said);
        break;
    default:
        break;
    }
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + sizeof header, &said, sizeof said);
    count = sizeof header + sizeof said;
    return how == HALF ? 1 + (size_t)weft_sim_random(count - 1) : count;
}

/* Send what is left, read or send back what comes. Returns 0 when the other end has gone. */
static int converse(int descriptor, manner how, const unsigned char *bytes, size_t count, size_t *sent)
{
    unsigned char heard[64];
    struct pollfd item = {.fd = descriptor, .events = (short)(*sent < count ? POLLIN | POLLOUT : POLLIN)};
    if (wefti_os_socket_poll(&item, 1, 100000) <= 0) {
        return 1;
    }
    if (item.revents & POLLOUT) {
        struct iovec rest = {(void *)(uintptr_t)(bytes + *sent), count - *sent};
        ssize_t more = wefti_os_socket_send(descriptor, &rest, 1);
        *sent += more > 0 ? (size_t)more : 0;
    }
    if (item.revents & (POLLIN | POLLERR | POLLHUP)) {
        ssize_t got = wefti_os_socket_receive(descriptor, heard, sizeof heard);
        if (got > 0 && how == ECHO) {
            struct iovec back = {heard, (size_t)got};
            (void)wefti_os_socket_send(descriptor, &back, 1);
        }
        return got != 0 && !(got < 0 && item.revents & (POLLERR | POLLHUP));
    }
    return 1;
}

static void visit(const meeting *now)
{
    struct sockaddr_storage address;
    unsigned char bytes[BYTES_MAX];
    size_t sent = 0;
    socklen_t address_bytes = wefti_sim_socket_find(&address);
    if (address_bytes == 0) {
        weft_sim_sleep_ns(1 + weft_sim_random(50000));
        return;
    }
    int descriptor = wefti_os_socket_open(address.ss_family);
    manner how = (manner)weft_sim_random(MANNERS);
    size_t count = compose(how, bytes);
    if (how == FOREIGN) {
        wefti_sim_socket_disguise(descriptor);
    }
    uint64_t until_ns = weft_sim_now_ns() + weft_sim_random(VISIT_NS);
    int is_heard = wefti_os_socket_connect(descriptor, (const struct sockaddr *)&address, address_bytes) == 0;
    while (is_heard && !now->is_over && weft_sim_now_ns() < until_ns) {
        is_heard = converse(descriptor, how, bytes, count, &sent);
    }
    wefti_os_socket_close(descriptor);
    weft_sim_sleep_ns(1 + weft_sim_random(100000));
}

static void keep_visiting(void *argument)
{
    const meeting *now = argument;
    while (!now->is_over) {
        visit(now);
    }
}

wefti_os_thread *strangers_start(case_run *run)
{
    wefti_os_thread *thread;
    MUST(wefti_os_thread_start(&thread, keep_visiting, meeting_of(run)));
    return thread;
}

void strangers_end(wefti_os_thread *thread)
{
    if (thread != NULL) {
        wefti_os_thread_join(thread);
    }
}
