/* tools/weftrun/input.c: standard input for PE 0. */
#include "tools/weftrun/input.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int run_input_init(run_input *input, int *pes_end)
{
    int ends[2];
    input->to = -1;
    input->first = input->end = 0;
    *pes_end = -1;
    if (!isatty(STDIN_FILENO)) {
        return 1;
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return 0;
    }
    (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
    *pes_end = ends[0];
    input->to = ends[1];
    return 1;
}

void run_input_started(run_input *input, int pes_end)
{
    (void)input;
    if (pes_end >= 0) {
        (void)close(pes_end);
    }
}

void run_input_fini(run_input *input)
{
    if (input->to >= 0) {
        (void)close(input->to);
        input->to = -1;
    }
}

/* A background group that reads from its terminal is stopped. */
static int may_read(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void run_input_watch(const run_input *input, struct pollfd *readable, struct pollfd *writable)
{
    int is_empty = input->first == input->end;
    *readable = (struct pollfd){.fd = input->to >= 0 && is_empty && may_read() ? STDIN_FILENO : -1, .events = POLLIN};
    *writable = (struct pollfd){.fd = is_empty ? -1 : input->to, .events = POLLOUT};
}

void run_input_move(run_input *input, short readable, short writable)
{
    if (readable != 0) {
        ssize_t got = read(STDIN_FILENO, input->bytes, sizeof input->bytes);
        input->first = 0;
        input->end = got > 0 ? (size_t)got : 0;
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) {
            run_input_fini(input);
        }
    }
    if (writable != 0) {
        ssize_t wrote = write(input->to, input->bytes + input->first, input->end - input->first);
        if (wrote > 0) {
            input->first += (size_t)wrote;
        } else if (wrote < 0 && errno != EINTR && errno != EAGAIN) {
            run_input_fini(input);
            input->first = input->end;
        }
    }
}
