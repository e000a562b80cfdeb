/* tools/weftrun/job.h: the processes of a job, from their start to the end of the last. */
#ifndef WEFTRUN_JOB_H
#define WEFTRUN_JOB_H

#include "tools/weftrun/options.h"

/* Run the job. Returns the code to exit with. */
int run_job_run(const run_options *options);

#endif
