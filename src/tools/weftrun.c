/* tools/weftrun.c: start the PEs of a job on this machine. Its parts are in tools/weftrun/. */
#include "tools/weftrun/job.h"
#include "tools/weftrun/options.h"

int main(int argc, char **argv)
{
    run_options options;
    int code = run_options_parse(&options, argc, argv);
    if (code != RUN_GO_ON) {
        return code;
    }
    code = run_job_run(&options);
    run_options_fini(&options);
    return code;
}
