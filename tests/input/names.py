#!/usr/bin/env python3
"""names.py CC INCLUDE TEST: compare the functions of the public headers with the rows of the table of bad input.

The headers are preprocessed, so that families over types are whole; a function is a name that begins with weft_ and is
followed by a parenthesis. TEST --names prints the names that have a row. weft_sim.h is for programs compiled with WEFT_SIM:
its calls are tested by src/testing/sim/run_test.c, and a new one has to be added to SIMULATOR here and tested there."""
import re
import subprocess
import sys

HEADERS = ["weft.h", "weft_ep.h"]
SIMULATOR = """counts_query cut fail is_dead kill note now_ns pe pes random run same_process sleep_ns stall
               world_config""".split()


def functions_of(compiler, include, headers):
    source = "".join(f'#include "{header}"\n' for header in headers)
    text = subprocess.run([compiler, "-E", "-P", "-std=gnu17", "-I", include, "-x", "c", "-"], input=source, text=True,
                          check=True, capture_output=True).stdout
    return set(re.findall(r"\bweft_\w+(?=\()", text)) - {"weft_status"}


def report(what, names, remedy):
    if names:
        some = ", ".join(sorted(names)[:20])
        print(f"{what}: {some}{' ...' if len(names) > 20 else ''} ({len(names)})\n{remedy}\n", file=sys.stderr)
    return len(names)


def main():
    compiler, include, test = sys.argv[1:]
    public = functions_of(compiler, include, HEADERS)
    simulator = functions_of(compiler, include, HEADERS + ["weft_sim.h"]) - public
    lines = subprocess.run([test, "--names"], text=True, check=True, capture_output=True).stdout.split()
    rows = set(lines)
    wrong = report("functions of the public headers without a row in tests/input", public - rows,
                   "Add a line to the file of the subject there (onesided.c, collectives.c, worlds.c, experts.c, device.c):\n"
                   "    ROW(bytes of an element, FUNCTION, KIND OF EACH ARGUMENT ...)    for the usual arguments, or\n"
                   "    CASE(FUNCTION) { ... CHECK_STATUS(FUNCTION(NULL), WEFT_ERR_ARGUMENT); ... }    for any other.\n"
                   "The top of tests/input/table.h says how they work.")
    wrong += report("rows of tests/input whose function no public header has", rows - public, "Remove them.")
    wrong += report("functions with more than one row", {name for name in rows if lines.count(name) > 1},
                    "Keep one row a function.")
    known = {"weft_sim_" + name for name in SIMULATOR}
    wrong += report("functions of weft_sim.h that this script does not know", simulator ^ known,
                    "Test in src/testing/sim/run_test.c what they do with bad input, and change SIMULATOR in tests/input/names.py.")
    print(f"{len(public)} functions of the public headers, {len(rows)} rows")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
