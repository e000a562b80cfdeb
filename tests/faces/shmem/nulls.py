"""Goal: no pointer argument of any routine is a crash when it is NULL: the program ends with one line that names the routine and
what is NULL, or NULL is a value that the argument may have.

Method: the prototypes of the installed headers; of a routine that is there for several types or sizes, one. A program of one
PE makes the call that its argument names, with NULL for one pointer and what is right for the rest.
Usage: nulls.py CC INCLUDE LIBRARIES
"""

import pathlib
import re
import subprocess
import sys
import tempfile

TYPES = """float double longdouble char schar short int long longlong uchar ushort uint ulong ulonglong int8 int16 int32 int64
           uint8 uint16 uint32 uint64 size ptrdiff complexf complexd""".split()

# NULL is a value of these, for all routines or for some.
MAY_BE_NULL = """status pWrk config xaxis_config yaxis_config gettid
    init_thread.provided addr_accessible.addr ptr.dest team_ptr.dest realloc.ptr free.ptr shfree.ptr shrealloc.ptr
    set_cache_line_inv.dest clear_cache_line_inv.dest udcflush_line.dest""".split()
# The set of all PEs needs no work array; nor has a root alone anything to move.
MAY_BE_NULL += ["pSync", "broadcastN.dest", "broadcastN.source"]

GIVEN = {"team": "SHMEM_TEAM_WORLD", "ctx": "SHMEM_CTX_DEFAULT", "PE_size": "shmem_n_pes()", "cmp": "SHMEM_CMP_EQ",
         "src_team": "SHMEM_TEAM_WORLD", "dest_team": "SHMEM_TEAM_WORLD", "parent_team": "SHMEM_TEAM_WORLD", "alignment": "8",
         "config_mask": "SHMEM_TEAM_NUM_CONTEXTS"}
ONE = "nelems nreduce nblocks bsize dst sst npes size count stride xrange".split()
PLACES = {"pSync": "sync", "indices": "indices", "sig_addr": "&sig"}
START = """#define WEFT_SHMEM_NO_GENERICS
#include <shmemx.h>
#include <stdlib.h>
static char to[4096], from[4096];
static long sync[SHMEM_SYNC_SIZE];
static size_t indices[8];
static uint64_t sig;
int main(int argc, char **argv)
{
    shmem_init();
    switch (argc > 1 ? atoi(argv[1]) : -1) {
"""


def without_type(name):
    if not re.search(r"short_(wait|test)", name):  # which are made apart from those of other types
        name = re.sub(rf"_({'|'.join(TYPES)})_", "_", name)
    return re.sub(r"(put|get|broadcast|collect|alltoall|alltoalls)(8|16|32|64|128)(?=_|$)", r"\1N", name)


def read_prototypes(include):
    """(name, arguments) of one routine of each kind."""
    found = {}
    for header in ("shmem.h", "shmemx.h"):
        for name, arguments in re.findall(r"^WEFT_SHMEM_API .*?(\w+)\((.*)\);", (include / header).read_text(), re.M):
            kind = without_type(name)
            if kind.replace("shmemx_", "shmem_") not in found:
                found[kind] = (name, [one.strip() for one in re.sub(r"\(\*gettid\)\(void\)", "*gettid", arguments).split(",")])
    return found


def argument(declared, is_first):
    name = re.search(r"(\w+)$", declared).group(1)
    if "*" in declared:
        return PLACES.get(name, "(void *)to" if is_first else "(void *)from")
    return GIVEN.get(name, "1" if name in ONE else "0")


def cases(prototypes):
    """(routine, name of the argument, may it be NULL, statement)"""
    for kind, (routine, arguments) in prototypes.items():
        arguments = [one for one in arguments if one not in ("void", "...")]
        for null, declared in enumerate(arguments):
            if "*" not in declared:
                continue
            name = re.search(r"(\w+)$", declared).group(1)
            given = ["NULL" if i == null else argument(one, i == 0) for i, one in enumerate(arguments)]
            short = re.sub(r"^shmemx?_(ctx_)?", "", kind)
            yield routine, name, name in MAY_BE_NULL or f"{short}.{name}" in MAY_BE_NULL, f"{routine}({', '.join(given)})"


def complaint(program, number, case):
    routine, name, may_be, call = case
    done = subprocess.run([program, str(number)], capture_output=True, text=True, timeout=60)
    lines = done.stderr.splitlines()
    if may_be:
        return "" if done.returncode == 0 and not lines else f"{call}: {done.returncode}: {done.stderr}"
    is_told = done.returncode == 1 and len(lines) == 1 and f"{routine}: " in lines[0] and "is NULL" in lines[0]
    return "" if is_told else f"{call}: {done.returncode}: {done.stderr}"


def main():
    compiler, include, libraries = sys.argv[1:]
    all_cases = list(cases(read_prototypes(pathlib.Path(include))))
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "nulls.c"
        body = "".join(f"    case {i}:\n        (void){case[3]};\n        break;\n" for i, case in enumerate(all_cases))
        source.write_text(START + body.replace("(void)shmem", "shmem") + "    }\n    shmem_finalize();\n    return 0;\n}\n")
        program = source.with_suffix("")
        subprocess.run([compiler, "-w", "-I", include, source, "-o", program, "-L", libraries, "-lweft_shmem",
                        f"-Wl,-rpath,{libraries}"], check=True)
        wrong = [text for i, case in enumerate(all_cases) if (text := complaint(program, i, case))]
    print("\n".join(wrong))
    print(f"{len(all_cases)} pointers, {sum(case[2] for case in all_cases)} of which may be NULL; {len(wrong)} are wrong")
    return 1 if wrong or len(all_cases) < 300 else 0


if __name__ == "__main__":
    sys.exit(main())
