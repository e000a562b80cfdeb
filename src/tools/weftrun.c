/* tools/weftrun.c: start the PEs of a job on this machine. Its parts are in tools/weftrun/. */
#include <fcntl.h>
#include <unistd.h>

#include "tools/weftrun/job.h"
#include "tools/weftrun/options.h"

/* Without standard input, output or error their numbers would go to what is opened next, and output with them. */
static void open_standard(void)
{
    int descriptor;
    do {
        descriptor = open("/dev/null", O_RDWR);
    } while (descriptor >= 0 && descriptor <= STDERR_FILENO);
    if (descriptor >= 0) {
        (void)close(descriptor);
    }
}

int main(int argc, char **argv)
{
    run_options options;
    open_standard();
    int code = run_options_parse(&options, argc, argv);
    if (code != RUN_GO_ON) {
        return code;
    }
    code = run_job_run(&options);
    run_options_fini(&options);
    return code;
}
