"""Goal: every function, constant and type of NVSHMEM's host interface, on streams too, is declared, exported and can be called; and
nothing else is exported.

Method: the names are composed from the tables of types and the forms of names in the interface's documentation, here and not
by the library's generator; a program that takes the address of each is compiled, as C and as C++, with CUDA's headers and without.
Usage: manifest.py CC CXX INCLUDE LIBRARY
"""

import pathlib
import subprocess
import sys
import tempfile

RMA = """bfloat16 half float double char short schar int long longlong uchar ushort uint ulong ulonglong int8 int16 int32 int64
         uint8 uint16 uint32 uint64 size ptrdiff""".split()
BITWISE = "uint ulong ulonglong int32 uint32 int64 uint64".split()
AMO = BITWISE + "int long longlong size ptrdiff".split()
EXTENDED = AMO + ["float", "double"]
WAIT = AMO + ["short", "ushort"]
REDUCE_BITS = "uchar ushort uint ulong ulonglong int8 int16 int32 int64 uint8 uint16 uint32 uint64 size".split()
REDUCE = REDUCE_BITS + "char schar short int long longlong bfloat16 half float double".split()
SIZES = [8, 16, 32, 64, 128]
REDUCTIONS = [(REDUCE_BITS, "and or xor"), (REDUCE, "max min sum prod")]

TYPED = [
    (RMA, "put p iput get g iget put_nbi get_nbi put_signal put_signal_nbi broadcast fcollect alltoall"),
    (EXTENDED, "atomic_fetch atomic_set atomic_swap"),
    (AMO, "atomic_compare_swap atomic_inc atomic_fetch_inc atomic_add atomic_fetch_add"),
    (BITWISE, "atomic_and atomic_or atomic_xor atomic_fetch_and atomic_fetch_or atomic_fetch_xor"),
    (WAIT, """wait_until wait_until_all wait_until_any wait_until_some wait_until_all_vector wait_until_any_vector
              wait_until_some_vector test test_all test_any test_some test_all_vector test_any_vector test_some_vector"""),
]
SIZED = "put{N} iput{N} get{N} iget{N} put{N}_nbi get{N}_nbi put{N}_signal put{N}_signal_nbi".split()
ONCE = """init init_thread finalize query_thread global_exit my_pe n_pes info_get_version info_get_name
    malloc calloc align free ptr putmem putmem_nbi getmem getmem_nbi putmem_signal putmem_signal_nbi signal_fetch
    signal_wait_until quiet fence barrier_all sync_all barrier team_sync broadcastmem fcollectmem alltoallmem
    team_my_pe team_n_pes team_get_config team_translate_pe team_split_strided team_split_2d team_destroy""".split()
EXTENSIONS = """init_status init_attr hostlib_init_attr hostlib_finalize get_uniqueid set_attr_uniqueid_args set_attr_mpi_comm_args
    vendor_get_version_info mc_ptr buffer_register buffer_unregister buffer_unregister_all buffer_register_symmetric
    buffer_register_symmetric_at_preferred_address buffer_unregister_symmetric signal_op team_get_uniqueid team_init
    cumodule_init cumodule_finalize culibrary_init culibrary_finalize flush qp_create
    half_atomic_add float_atomic_add double_atomic_add half_atomic_fetch_add float_atomic_fetch_add double_atomic_fetch_add
    region_start region_stop region_is_active signal_counted_reset""".split()

STREAM_TYPED = [
    (RMA, "put p iput get g iget put_nbi get_nbi put_signal put_signal_nbi broadcast fcollect alltoall"),
    (WAIT, "wait_until wait_until_all wait_until_all_vector"),
]
STREAM_ONCE = """putmem putmem_nbi getmem getmem_nbi putmem_signal putmem_signal_nbi signal_op signal_wait_until quiet flush
    barrier_all sync_all barrier team_sync broadcastmem fcollectmem alltoallmem""".split()

CONSTANTS = """NVSHMEM_MAJOR_VERSION NVSHMEM_MINOR_VERSION NVSHMEM_VENDOR_MAJOR_VERSION NVSHMEM_VENDOR_MINOR_VERSION
    NVSHMEM_VENDOR_PATCH_VERSION NVSHMEM_VENDOR_VERSION NVSHMEM_MAX_NAME_LEN NVSHMEM_CMP_EQ NVSHMEM_CMP_NE NVSHMEM_CMP_GT
    NVSHMEM_CMP_LE NVSHMEM_CMP_LT NVSHMEM_CMP_GE NVSHMEM_SIGNAL_SET NVSHMEM_SIGNAL_ADD NVSHMEM_THREAD_SINGLE
    NVSHMEM_THREAD_FUNNELED NVSHMEM_THREAD_SERIALIZED NVSHMEM_THREAD_MULTIPLE NVSHMEM_STATUS_NOT_INITIALIZED
    NVSHMEM_STATUS_IS_BOOTSTRAPPED NVSHMEM_STATUS_IS_INITIALIZED NVSHMEM_STATUS_LIMITED_MPG NVSHMEM_STATUS_FULL_MPG
    NVSHMEMX_SUCCESS NVSHMEMX_ERROR_INVALID_VALUE NVSHMEMX_ERROR_OUT_OF_MEMORY NVSHMEMX_ERROR_NOT_SUPPORTED
    NVSHMEMX_ERROR_SYMMETRY NVSHMEMX_ERROR_GPU_NOT_SELECTED NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED NVSHMEMX_ERROR_INTERNAL
    NVSHMEMX_INIT_THREAD_PES NVSHMEMX_INIT_WITH_MPI_COMM NVSHMEMX_INIT_WITH_SHMEM NVSHMEMX_INIT_WITH_UNIQUEID
    NVSHMEM_TEAM_INVALID NVSHMEM_TEAM_WORLD NVSHMEM_TEAM_SHARED NVSHMEMX_TEAM_NODE NVSHMEMX_TEAM_SAME_MYPE_NODE
    NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS NVSHMEMX_QP_DEFAULT NVSHMEMX_QP_HOST
    NVSHMEMX_REGION_HINT_NONE NVSHMEMX_REGION_HINT_BATCH_RMA NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID""".split()
# The sizes of what programs hand over are part of the interface.
LAYOUTS = {"nvshmemx_uniqueid_t": 128, "nvshmemx_uniqueid_args_t": 24, "nvshmemx_init_args_t": 128, "nvshmemx_init_attr_t": 144,
           "nvshmem_team_config_t": 64, "nvshmemx_region_attrs_t": 64, "nvshmem_team_t": 4, "nvshmemx_team_uniqueid_t": 8, "half": 2, "__nv_bfloat16": 2}
VALUES = {"NVSHMEM_SIGNAL_SET": 9, "NVSHMEM_SIGNAL_ADD": 10, "NVSHMEM_CMP_LE": 3, "NVSHMEM_CMP_LT": 4, "NVSHMEM_CMP_GE": 5,
          "NVSHMEM_TEAM_INVALID": -1, "NVSHMEMX_TEAM_NODE": 2, "NVSHMEMX_INIT_WITH_UNIQUEID": 8, "NVSHMEMX_INIT_WITH_MPI_COMM": 2}
INCLUDES = """nvshmem.h nvshmemx.h host/nvshmem_api.h host/nvshmemx_api.h host/nvshmem_coll_api.h host/nvshmemx_coll_api.h
    device/nvshmem_defines.h device/nvshmemx_defines.h device_host/nvshmem_types.h device_host/nvshmem_common.cuh
    non_abi/nvshmem_version.h non_abi/nvshmemx_error.h bootstrap_device_host/nvshmem_uniqueid.h""".split()

# Declared with CUDA's headers only, whose types they take.
LAUNCHES = [f"nvshmemx_collective_launch{form}" for form in ("", "_attr", "_query_gridsize")]

# What the headers call beside the interface; and what NVIDIA's device library calls, which is refused by words.
OWN = LAUNCHES + ["weft_nvshmem_launch", "weft_nvshmem_launch_query", "weft_nvshmem_unit_add", "weft_nvshmem_unit_remove"]
OWN += ["nvshmemid_hostlib_init_attr", "nvshmemid_hostlib_finalize", "nvshmemid_init_status"]


def host():
    names = ["nvshmem_" + name for name in ONCE] + ["nvshmemx_" + name for name in EXTENSIONS]
    names += [f"nvshmem_{kind}_{form}" for types, forms in TYPED for form in forms.split() for kind in types]
    names += ["nvshmem_" + form.replace("{N}", str(size)) for form in SIZED for size in SIZES]
    return names + [f"nvshmem_{kind}_{op}_{form}" for types, ops in REDUCTIONS for op in ops.split() for kind in types
                    for form in ("reduce", "reducescatter")]


def stream():
    names = [f"nvshmemx_{name}_on_stream" for name in STREAM_ONCE]
    names += [f"nvshmemx_{kind}_{form}_on_stream" for types, forms in STREAM_TYPED for form in forms.split() for kind in types]
    names += [f"nvshmemx_{form.replace('{N}', str(size))}_on_stream" for form in SIZED for size in SIZES]
    return names + [f"nvshmemx_{kind}_{op}_{form}_on_stream" for types, ops in REDUCTIONS for op in ops.split() for kind in types
                    for form in ("reduce", "reducescatter")]


def compile_all(compiler, suffix, standard, include, names, options):
    lines = ["#define NVSHMEM_HOSTLIB_ONLY", *[f"#include <{name}>" for name in INCLUDES], "typedef void (*function)(void);",
             "extern const function all[]; extern const long constants[];",
             f"const function all[] = {{{', '.join(f'(function){name}' for name in names)}}};",
             f"const long constants[] = {{{', '.join(f'(long){name}' for name in CONSTANTS)}}};",
             "nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;",
             "nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER; nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;"]
    lines += [f"typedef char size_of_{kind}[sizeof({kind}) == {size} ? 1 : -1];" for kind, size in LAYOUTS.items()]
    lines += [f"typedef char value_of_{name}[(long){name} == {value} ? 1 : -1];" for name, value in VALUES.items()]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / f"all.{suffix}"
        source.write_text("\n".join(lines) + "\n")
        subprocess.run([compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wno-cast-function-type", "-Werror", *options,
                        "-isystem", include, "-c", source, "-o", source.with_suffix(".o")], check=True)


def complain(what, names):
    if names:
        print(f"{what}: {', '.join(sorted(names)[:20])}{' ...' if len(names) > 20 else ''} ({len(names)})")
    return len(names)


def main():
    compiler, compiler_cxx, include, library = sys.argv[1:]
    wanted = host() + stream()
    assert len(set(wanted)) == len(wanted)
    for options in ([], ["-DWEFT_NVSHMEM_NO_CUDA"]):
        compile_all(compiler, "c", "c11", include, wanted, options)
        compile_all(compiler_cxx, "cc", "c++17", include, wanted, options)
    lines = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout.splitlines()
    shared = {line.split()[-1] for line in lines if len(line.split()) == 3 and line.split()[-2] in "TW"}
    wrong = complain("not exported", set(wanted + OWN) - shared)
    wrong += complain("exported, and no name of the interface", shared - set(wanted + OWN))
    print(f"{len(host())} functions of the host, {len(stream())} on streams; {len(shared)} symbols")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
