"""Goal: every routine, constant, type and handle of OpenSHMEM 1.6 is declared, and every routine is exported, as shmem_ and as
pshmem_, in the shared library and in the archive; and nothing else is exported. The names that C11 and C++ choose by type take
the types of the specification's tables and no others, with a context and without.

Method: the names are composed from the tables and the forms of names in the specification's text, here and not by the
library's generator; a program that takes the address of each is compiled. For each generic name and type a function that makes
the call is compiled, as C11 and as C++: its assembly says what was called. A call with a type that is not in the table must be
an error of the compiler.
Usage: manifest.py CC CXX INCLUDE LIBRARY ARCHIVE
"""

import pathlib
import re
import subprocess
import sys
import tempfile

# ---- tables of types (1.6: 5 standard RMA, 6 standard AMO, 7 extended AMO, 8 bitwise AMO, 9 reductions) ----

RMA = """float double longdouble char schar short int long longlong uchar ushort uint ulong ulonglong int8 int16 int32
         int64 uint8 uint16 uint32 uint64 size ptrdiff""".split()
AMO = "int long longlong uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff".split()
EXTENDED = AMO + ["float", "double"]
BITWISE = "uint ulong ulonglong int32 int64 uint32 uint64".split()
SIGNED_BITS = "schar short int long longlong".split()  # no part of the specification, and used: SOS has them
REDUCE_BITS = "uchar ushort uint ulong ulonglong int8 int16 int32 int64 uint8 uint16 uint32 uint64 size".split()
REDUCE_ORDER = RMA
REDUCE_SUM = RMA + ["complexf", "complexd"]
SIZES = [8, 16, 32, 64, 128]

# ---- forms of names: {T} a type, {N} a size ----

TYPED = [
    # 9.6 remote memory access, 9.8 signals; each also with a context
    (RMA, "put p iput ibput get g iget ibget put_nbi get_nbi put_signal put_signal_nbi", True),
    # 9.7 atomics
    (EXTENDED, """atomic_fetch atomic_set atomic_swap atomic_fetch_nbi atomic_swap_nbi""", True),
    (AMO, """atomic_compare_swap atomic_inc atomic_fetch_inc atomic_add atomic_fetch_add atomic_compare_swap_nbi
             atomic_fetch_inc_nbi atomic_fetch_add_nbi""", True),
    (BITWISE, """atomic_and atomic_or atomic_xor atomic_fetch_and atomic_fetch_or atomic_fetch_xor atomic_fetch_and_nbi
                 atomic_fetch_or_nbi atomic_fetch_xor_nbi""", True),
    # 9.9 collectives
    (RMA, "broadcast collect fcollect alltoall alltoalls", False),
    (REDUCE_BITS + SIGNED_BITS, "and_reduce or_reduce xor_reduce", False),
    (REDUCE_ORDER, "max_reduce min_reduce", False),
    (REDUCE_SUM, "sum_reduce prod_reduce sum_inscan sum_exscan", False),
    # 9.10 point-to-point synchronisation
    (AMO, """wait_until wait_until_all wait_until_any wait_until_some wait_until_all_vector wait_until_any_vector
             wait_until_some_vector test test_all test_any test_some test_all_vector test_any_vector test_some_vector""", False),
    # deprecated
    ("short int long longlong".split(), "wait and_to_all or_to_all xor_to_all", False),
    ("short ushort".split(), "wait_until test", False),
    # deprecated, in the specification for int, long, long long (fetch, set, swap: float, double), here for all types:
    # what Sandia's implementation has, and programs for it take for granted
    (EXTENDED, "fetch set swap", False),
    (AMO, "cswap finc inc fadd add", False),
    ("short ushort".split(), """wait_until_all wait_until_any wait_until_some wait_until_all_vector wait_until_any_vector
     wait_until_some_vector test_all test_any test_some test_all_vector test_any_vector test_some_vector""", False),
    ("short int long longlong float double longdouble".split(), "max_to_all min_to_all", False),
    ("short int long longlong float double longdouble complexf complexd".split(), "sum_to_all prod_to_all", False),
]

SIZED = "put{N} iput{N} ibput{N} get{N} iget{N} ibget{N} put{N}_nbi get{N}_nbi put{N}_signal put{N}_signal_nbi".split()
BYTES_WITH_CTX = "putmem getmem putmem_nbi getmem_nbi putmem_signal putmem_signal_nbi signal_add signal_set".split()
ONCE = """init my_pe n_pes finalize global_exit pe_accessible addr_accessible ptr team_ptr info_get_version info_get_name
    init_thread query_thread query_initialized pcontrol
    malloc free realloc align malloc_with_hints calloc
    team_my_pe team_n_pes team_get_config team_translate_pe team_split_strided team_split_2d team_destroy
    ctx_create team_create_ctx ctx_destroy ctx_get_team ctx_session_start ctx_session_stop
    signal_fetch signal_wait_until
    barrier_all barrier sync_all sync team_sync
    broadcastmem collectmem fcollectmem alltoallmem alltoallsmem
    broadcast32 broadcast64 collect32 collect64 fcollect32 fcollect64 alltoall32 alltoall64 alltoalls32 alltoalls64
    wait wait_until
    fence ctx_fence quiet ctx_quiet pe_quiet ctx_pe_quiet
    clear_lock set_lock test_lock
    set_cache_inv clear_cache_inv set_cache_line_inv clear_cache_line_inv udcflush udcflush_line""".split()
OTHERS = "start_pes _my_pe _num_pes shmalloc shfree shrealloc shmemalign".split()

GENERIC = """put p iput ibput get g iget ibget put_nbi get_nbi put_signal put_signal_nbi
    atomic_fetch atomic_set atomic_compare_swap atomic_swap atomic_fetch_inc atomic_inc atomic_fetch_add atomic_add
    atomic_fetch_and atomic_and atomic_fetch_or atomic_or atomic_fetch_xor atomic_xor
    atomic_fetch_nbi atomic_compare_swap_nbi atomic_swap_nbi atomic_fetch_inc_nbi atomic_fetch_add_nbi
    atomic_fetch_and_nbi atomic_fetch_or_nbi atomic_fetch_xor_nbi signal_add signal_set
    sync broadcast collect fcollect alltoall alltoalls and_reduce or_reduce xor_reduce max_reduce min_reduce sum_reduce
    prod_reduce sum_inscan sum_exscan
    wait_until wait_until_all wait_until_any wait_until_some wait_until_all_vector wait_until_any_vector
    wait_until_some_vector test test_all test_any test_some test_all_vector test_any_vector test_some_vector
    fetch set cswap swap finc inc fadd add""".split()

CONSTANTS = """SHMEM_THREAD_SINGLE SHMEM_THREAD_FUNNELED SHMEM_THREAD_SERIALIZED SHMEM_THREAD_MULTIPLE
    SHMEM_TEAM_NUM_CONTEXTS SHMEM_CTX_SERIALIZED SHMEM_CTX_PRIVATE SHMEM_CTX_NOSTORE SHMEM_CTX_SESSION_BATCH
    SHMEM_CTX_SESSION_SAME_AMO SHMEM_CTX_SESSION_TOTAL_OPS SHMEM_SIGNAL_SET SHMEM_SIGNAL_ADD SHMEM_MALLOC_ATOMICS_REMOTE
    SHMEM_MALLOC_SIGNAL_REMOTE
    SHMEM_MAJOR_VERSION SHMEM_MINOR_VERSION SHMEM_MAX_NAME_LEN SHMEM_CMP_EQ SHMEM_CMP_NE SHMEM_CMP_LT SHMEM_CMP_LE
    SHMEM_CMP_GT SHMEM_CMP_GE SHMEM_SYNC_VALUE SHMEM_SYNC_SIZE SHMEM_BCAST_SYNC_SIZE SHMEM_REDUCE_SYNC_SIZE
    SHMEM_BARRIER_SYNC_SIZE SHMEM_COLLECT_SYNC_SIZE SHMEM_ALLTOALL_SYNC_SIZE SHMEM_ALLTOALLS_SYNC_SIZE
    SHMEM_REDUCE_MIN_WRKDATA_SIZE _SHMEM_SYNC_VALUE _SHMEM_BARRIER_SYNC_SIZE _SHMEM_BCAST_SYNC_SIZE _SHMEM_COLLECT_SYNC_SIZE
    _SHMEM_REDUCE_SYNC_SIZE _SHMEM_REDUCE_MIN_WRKDATA_SIZE _SHMEM_MAJOR_VERSION _SHMEM_MINOR_VERSION _SHMEM_MAX_NAME_LEN
    _SHMEM_CMP_EQ _SHMEM_CMP_NE _SHMEM_CMP_LT _SHMEM_CMP_LE _SHMEM_CMP_GT _SHMEM_CMP_GE
    OSHMEM_SPEC_VERSION""".split()
STRINGS = "SHMEM_VENDOR_STRING _SHMEM_VENDOR_STRING".split()
TEAMS = "SHMEM_TEAM_WORLD SHMEM_TEAM_SHARED SHMEM_TEAM_INVALID".split()
CONTEXTS = "SHMEM_CTX_DEFAULT SHMEM_CTX_INVALID".split()

# What SOS had as extensions and 1.6 has: shmemx_ before the rest; and what it alone has.
EXTENSIONS = (
    ["shmemx_wtime", "shmemx_nodename", "shmemx_register_gettid"] +
    ["shmemx_pcntr_get_" + name for name in """pending_put pending_get completed_put completed_get issued_write issued_read
     completed_write completed_read completed_target all""".split()] +
    ["shmemx_" + name for name in "team_ptr query_initialized ctx_session_start ctx_session_stop pe_quiet ctx_pe_quiet".split()]
    + [f"shmemx_{ctx}signal_{what}" for ctx in ("", "ctx_") for what in ("add", "set")]
    + [f"shmemx_{ctx}{name}_{what}" for ctx in ("", "ctx_") for name in RMA for what in ("ibput", "ibget")]
    + [f"shmemx_{ctx}{what}{size}" for ctx in ("", "ctx_") for size in SIZES for what in ("ibput", "ibget")]
    + [f"shmemx_{name}_sum_{what}" for name in REDUCE_SUM for what in ("inscan", "exscan")]
    # what it had before 1.5
    + [f"shmemx_{ctx}{name}_atomic_{what}_nbi" for ctx in ("", "ctx_") for names, whats in (
        (EXTENDED, "fetch swap"), (AMO, "compare_swap fetch_inc fetch_add"), (BITWISE, "fetch_and fetch_or fetch_xor"))
       for name in names for what in whats.split()]
)


def functions():
    names = ["shmem_" + name for name in ONCE] + OTHERS
    for types, forms, has_ctx in TYPED:
        for form in forms.split():
            for kind in types:
                names += [f"shmem_{kind}_{form}"] + ([f"shmem_ctx_{kind}_{form}"] if has_ctx else [])
    for form in SIZED:
        for size in SIZES:
            name = form.replace("{N}", str(size))
            names += [f"shmem_{name}", f"shmem_ctx_{name}"]
    for name in BYTES_WITH_CTX:
        names += [f"shmem_{name}", f"shmem_ctx_{name}"]
    return names


def exported(command):
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if len(line.split()) == 3 and line.split()[-2] in "TW"}


def complain(what, names):
    if names:
        print(f"{what}: {', '.join(sorted(names)[:20])}{' ...' if len(names) > 20 else ''} ({len(names)})")
    return len(names)


def compile_all(compiler, include, names):
    """Everything that is a name of C is one."""
    lines = ["#include <shmem.h>", "#include <shmemx.h>", "#include <pshmem.h>", "typedef void (*function)(void);",
             "extern const function all[]; extern const long constants[]; extern const char *const strings[];",
             "extern const shmem_team_t teams[]; extern const shmem_ctx_t contexts[];",
             "extern shmem_team_config_t team_config; extern shmem_ctx_session_config_t session_config;",
             f"const function all[] = {{{', '.join(f'(function){name}' for name in names)}}};",
             f"const long constants[] = {{{', '.join(CONSTANTS)}}};",
             f"const char *const strings[] = {{{', '.join(STRINGS)}}};",
             f"const shmem_team_t teams[] = {{{', '.join(TEAMS)}}};", f"const shmem_ctx_t contexts[] = {{{', '.join(CONTEXTS)}}};",
             "shmem_team_config_t team_config = {.num_contexts = 1};",
             "shmem_ctx_session_config_t session_config = {.total_ops = 1};",
             *[f"#ifndef {name}\n#error {name} is no macro\n#endif" for name in CONSTANTS + STRINGS + TEAMS + CONTEXTS]]
    lines += [f"#ifndef shmem_{name}\n#error shmem_{name} is not chosen by type\n#endif" for name in GENERIC]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "all.c"
        source.write_text("\n".join(lines) + "\n")
        for standard in ("c99", "c11"):
            text = "\n".join(line for line in lines if standard == "c11" or "is not chosen" not in line)
            source.write_text(text + "\n")
            subprocess.run([compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wno-cast-function-type", "-Werror", "-I", include, "-c",
                            source, "-o", source.with_suffix(".o")], check=True)


# ---- what is chosen by type ----

C_TYPES = {"longdouble": "long double", "schar": "signed char", "longlong": "long long", "uchar": "unsigned char",
           "ushort": "unsigned short", "uint": "unsigned int", "ulong": "unsigned long", "ulonglong": "unsigned long long",
           "size": "size_t", "ptrdiff": "ptrdiff_t", "complexf": "float _Complex", "complexd": "double _Complex"}
C_TYPES |= {name: name + "_t" for name in RMA if re.match(r"u?int\d", name)}
CXX_TYPES = C_TYPES | {"complexf": "std::complex<float>", "complexd": "std::complex<double>"}
# Other names of one type, on the machines that weft runs on.
SAME = {"int8": "schar", "int16": "short", "int32": "int", "int64": "long", "uint8": "uchar", "uint16": "ushort",
        "uint32": "uint", "uint64": "ulong", "size": "ulong", "ptrdiff": "long"}


def types_of(form):
    """The types that have it, and whether it is there with a context."""
    rows = [row for row in TYPED if form in row[1].split()]
    return [kind for row in rows for kind in row[0]], any(row[2] for row in rows)


def calls_by_type(declared, types):
    """(call of a generic name, the functions that it may reach; none where the type is not one of the form's)"""
    for form in GENERIC:
        kinds, has_ctx = types_of(form)
        reached = {SAME.get(kind, kind) for kind in kinds}
        shown = next((kind for kind in ("longlong", "ulonglong") if kind in kinds), "")  # no parameter else has this type
        for ctx in ["", "ctx_"] if has_ctx else [""]:
            parameters = declared.get(f"shmem_{ctx}{shown}_{form}")
            for kind in RMA + ["complexf", "complexd"] if kinds else []:
                right = {f"shmem_{ctx}{one}_{form}" for one in kinds if SAME.get(one, one) == SAME.get(kind, kind)}
                casts = [re.sub(rf"\b{types.get(shown)}(?= \**$)", types.get(kind, kind), one) for one in parameters]
                assert (SAME.get(kind, kind) in reached) == bool(right)
                # The long of shmem_wait_until in C++ is that of the deprecated routine.
                right |= {"shmem_wait_until"} if form == "wait_until" and "shmem_long_wait_until" in right else set()
                yield f"shmem_{form}({', '.join(f'({cast.strip()})0' for cast in casts)})", right


def compile_calls(compiler, flags, include, calls, suffix):
    """The assembly, or the errors, of one function a call."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / f"calls{suffix}"
        linkage = 'extern "C" ' if suffix == ".cc" else ""
        source.write_text("#include <shmem.h>\n" + "".join(
            f"{linkage}void call_{i}(void) {{ {call}; }}\n" for i, call in enumerate(calls)))
        return subprocess.run([compiler, *flags, "-I", include, "-S", "-o", "-", source], capture_output=True, text=True)


def check_choices(compiler, flags, include, suffix, types):
    header = (pathlib.Path(include) / "shmem.h").read_text()
    declared = {name: [re.sub(r"\w+$", "", one.strip()) for one in arguments.split(",")]
                for name, arguments in re.findall(r"^WEFT_SHMEM_API .*?(\w+)\((.*)\);", header, re.M)}
    calls = list(calls_by_type(declared, types))
    right = [(call, names) for call, names in calls if names]
    done = compile_calls(compiler, flags, include, [call for call, _ in right], suffix)
    if done.returncode:
        return complain(f"not compiled as {suffix}", set(done.stderr.splitlines()[:10]))
    reached = dict(re.findall(r"^call_(\d+):.*?\b(?:callq?|bl)\s+(\w+)", done.stdout, re.M | re.S))
    wrong = complain(f"another function was chosen as {suffix}", {
        f"{call}: {reached.get(str(i))}" for i, (call, names) in enumerate(right) if reached.get(str(i)) not in names})
    others = [call for call, names in calls if not names]
    done = compile_calls(compiler, flags, include, others, suffix)
    refused = {int(line) - 2 for line in re.findall(rf"calls{suffix}:(\d+):\d+: ", done.stderr)}
    wrong += complain(f"taken as {suffix}, and in no table", {call for i, call in enumerate(others) if i not in refused})
    print(f"{suffix}: {len(right)} calls by type, {len(others)} refused")
    return wrong


def main():
    compiler, cxx, include, library, archive = sys.argv[1:]
    routines = functions()
    wanted = routines + EXTENSIONS
    wanted += ["p" + name for name in wanted]
    assert len(set(wanted)) == len(wanted)
    compile_all(compiler, include, wanted)
    shared = exported(["nm", "-D", "--defined-only", library])
    wrong = complain("not exported", set(wanted) - shared)
    wrong += complain("exported, and no name of the interface", shared - set(wanted))
    in_archive = exported(["nm", "--defined-only", archive])
    wrong += complain("not in the archive", set(wanted) - in_archive)
    wrong += complain("names of the archive that a program may have, too",
                      {name for name in in_archive if not name.startswith("wefti_")} - set(wanted))
    wrong += check_choices(compiler, ["-std=c11", "-O0", "-w"], include, ".c", C_TYPES)
    if cxx.endswith("-NOTFOUND"):
        print("no C++ compiler: C++ is left out")
    else:
        wrong += check_choices(cxx, ["-O2", "-fno-optimize-sibling-calls", "-w", "-fmax-errors=0"], include, ".cc", CXX_TYPES)
    print(f"{len(routines)} routines and {len(set(GENERIC))} names that C11 chooses by type; {len(shared)} symbols")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
