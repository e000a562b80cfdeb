/* Goal: what a node tells, and what other processes of it do, does no harm: files of control groups, whatever they say;
 * both ends of the socket at which memory is handed over; sizes in the variables of OpenSHMEM and NVSHMEM, milliseconds
 * in NCCL EP's. Nothing is read or written where it should not be; who does not show the token gets nothing; no
 * descriptor stays open.
 * Method: the first byte of the input chooses what reads the rest. Files are pieces of the input; the other end of the
 * socket is an end of a pair here, and says what the input says, with as many descriptors. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "common/milliseconds.h"
#include "common/size.h"

static ssize_t read_piece(const char *path, char *text, size_t bytes);

#define wefti_os_file_read read_piece
#include "os/posix/available.c"
#undef wefti_os_file_read
#undef PATH_BYTES
#include "os/posix/pass.c"

#define ENDS_MAX 4
#define DESCRIPTORS_MAX 5
#define TEXT_MAX 200
#define NUMBERS 48 /* more than a turn opens */

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes);

/* ---- files of control groups ---- */

static struct {
    const uint8_t *at;
    const uint8_t *end;
} pieces;

/* A file is what stands up to the next zero; when nothing is left, files are not there. */
static ssize_t read_piece(const char *path, char *text, size_t bytes)
{
    (void)path;
    if (pieces.at == pieces.end) {
        return -1;
    }
    const uint8_t *zero = memchr(pieces.at, 0, (size_t)(pieces.end - pieces.at));
    const uint8_t *end = zero == NULL ? pieces.end : zero;
    size_t count = (size_t)(end - pieces.at);
    count = count < bytes - 1 ? count : bytes - 1;
    memcpy(text, pieces.at, count);
    text[count] = '\0';
    pieces.at = zero == NULL ? pieces.end : zero + 1;
    return (ssize_t)count;
}

static void read_groups(const uint8_t *input, size_t bytes)
{
    pieces.at = input;
    pieces.end = input + bytes;
    wefti_os_memory_left left = wefti_os_memory_left_query();
    if (left.group > NO_LIMIT && left.group != UINT64_MAX) {
        abort(); /* beyond what a limit can be */
    }
}

/* ---- the socket at which memory is handed over ---- */

static const unsigned char right_token[TOKEN_BYTES] = "token of 16 byte";

static int count_descriptors(void)
{
    int count = 0;
    for (int number = 0; number < NUMBERS; number++) {
        count += fcntl(number, F_GETFD) >= 0;
    }
    return count;
}

/* Say a message with this many descriptors, and end. */
static void say(int end, const void *message, size_t bytes, int descriptors)
{
    int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = bytes};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
    } control = {.bytes = {0}};
    struct msghdr all = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptors > 0) {
        all.msg_control = control.bytes;
        all.msg_controllen = CMSG_SPACE((size_t)descriptors * sizeof(int));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN((size_t)descriptors * sizeof(int));
        for (int i = 0; i < descriptors; i++) {
            memcpy(CMSG_DATA(&control.header) + (size_t)i * sizeof(int), &zeros, sizeof zeros);
        }
    }
    (void)sendmsg(end, &all, MSG_NOSIGNAL);
    close(zeros);
}

/* Take from who answers with what the input says. */
static void take_from(const uint8_t *input, size_t bytes)
{
    int ends[2];
    int taken = -1;
    wait now = wait_until(wefti_os_now_ns() + 1000000, NULL);
    const int descriptors = (input[0] & 0x7f) % (DESCRIPTORS_MAX + 1);
    const size_t count = input[0] < 0x80 ? bytes - 1 : 0; /* a message of no bytes is one, too */
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
        abort();
    }
    say(ends[1], input + 1, count, descriptors);
    close(ends[1]);
    weft_status status = take_answer(ends[0], &now, &taken);
    if ((status == WEFT_OK) != (taken >= 0) || (status == WEFT_OK && (descriptors != 1 || count == 0))) {
        abort();
    }
    close_socket(taken);
    close(ends[0]);
}

/* Guests show pieces of the input, whose lengths stand before them; then they are gone. */
static void serve_to(const uint8_t *input, size_t bytes)
{
    guest_list guests = {.polls = {{.fd = -1}}};
    int ends[ENDS_MAX];
    int knowing = 0;
    int left = ENDS_MAX + 1;
    wait now = wait_until(wefti_os_now_ns() + 1000000, NULL);
    for (int i = 0; i < ENDS_MAX; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
            abort();
        }
        size_t count = bytes > 0 ? input[0] % 32 : 0;
        count = count < bytes ? count : bytes > 0 ? bytes - 1 : 0;
        if (bytes > 0 && input[0] < 0x80) { /* else silent */
            say(pair[1], input + 1, count, input[0] >> 5);
            knowing += count == TOKEN_BYTES && memcmp(input + 1, right_token, count) == 0;
        }
        input += bytes > 0 ? 1 + count : 0;
        bytes -= bytes > 0 ? 1 + count : 0;
        guests.polls[1 + guests.count] = (struct pollfd){.fd = pair[0], .events = POLLIN};
        guests.since_ns[guests.count++] = wefti_os_now_ns();
        ends[i] = pair[1];
    }
    if (serve_once(&guests, right_token, STDIN_FILENO, &left, &now) != WEFT_OK || left != ENDS_MAX + 1 - knowing) {
        abort();
    }
    guests_drop_all(&guests);
    for (int i = 0; i < ENDS_MAX; i++) {
        close(ends[i]);
    }
}

/* ---- numbers in variables ---- */

/* Decimal digits say what they say, and nothing else is taken. */
static void check_milliseconds(const char *text)
{
    uint64_t ns = 0;
    char again[TEXT_MAX];
    if (wefti_milliseconds_parse(text, &ns)) {
        text += strspn(text, "0");
        (void)snprintf(again, sizeof again, "%llu", (unsigned long long)(ns / WEFTI_MILLISECOND_NS));
        if (ns % WEFTI_MILLISECOND_NS != 0 || strcmp(again, *text == '\0' ? "0" : text) != 0) {
            abort();
        }
    }
}

static void read_number(const uint8_t *input, size_t bytes)
{
    char text[TEXT_MAX];
    uint64_t size = 0;
    size_t count = bytes < sizeof text - 1 ? bytes : sizeof text - 1;
    memcpy(text, input, count);
    text[count] = '\0';
    if (wefti_size_parse(text, &size) && (size == 0 || size > UINT64_C(1) << 56)) {
        abort();
    }
    check_milliseconds(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes)
{
    static void (*const readers[])(const uint8_t *, size_t) = {read_groups, take_from, serve_to, read_number};
    if (bytes < 3) {
        return 0;
    }
    int before = count_descriptors();
    readers[input[0] % (sizeof readers / sizeof *readers)](input + 1, bytes - 1);
    if (count_descriptors() != before) {
        abort();
    }
    return 0;
}
