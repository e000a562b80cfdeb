"""Goal: the bitcode library has every routine of kernels by its own name, and a kernel that another compiler made links with
it as Triton and Numba do: with what it needs alone, the state visible to nvshmemx_cumodule_init, down to machine code.

Method: names are composed here of manifest.py's lists, not by the library's generator, and compared with what llvm-nm
sees; a kernel that declares its routines itself goes through llvm-link, opt and llc, and ptxas where it is found.
Usage: bitcode.py CLANG BITCODE SOURCE_OF_THE_FACE. Exit 77: LLVM's tools do not lie beside clang.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from manifest import AMO, BITWISE, EXTENDED, REDUCTIONS, RMA, SIZED, SIZES, WAIT

GROUPS = ("", "_warp", "_block")
TYPED_GROUPS = "put get put_nbi get_nbi iput iget put_signal put_signal_nbi broadcast fcollect alltoall".split()
QUEUED_GROUPS = "put get put_nbi get_nbi put_signal put_signal_nbi".split()
FLOATS = ["half", "float", "double"]
TYPED = [
    (RMA, "p g"),
    (EXTENDED, "atomic_fetch atomic_set atomic_swap"),
    (AMO, "atomic_compare_swap atomic_inc atomic_fetch_inc atomic_add atomic_fetch_add"),
    (BITWISE, "atomic_and atomic_or atomic_xor atomic_fetch_and atomic_fetch_or atomic_fetch_xor"),
    (WAIT, """wait_until wait_until_all wait_until_any wait_until_some wait_until_all_vector wait_until_any_vector
              wait_until_some_vector test test_all test_any test_some test_all_vector test_any_vector test_some_vector"""),
]
ONCE_GROUPS = """putmem getmem putmem_nbi getmem_nbi putmem_signal putmem_signal_nbi broadcastmem fcollectmem alltoallmem
    barrier_all sync_all barrier team_sync""".split()
EXTENSION_GROUPS = "flush qp_quiet qp_fence region_start region_stop putmem_signal_counted_nbi".split()
ONCE = """my_pe n_pes info_get_version info_get_name ptr team_my_pe team_n_pes team_translate_pe signal_fetch signal_wait_until
    fence quiet global_exit""".split()
EXTENSIONS = """vendor_get_version_info mc_ptr signal_op qp_signal_op signal_counted_reset signal_counted_load
    signal_counted_wait_until barrier_warpgroup region_is_active""".split()

KERNEL = """
#include <cuda.h>
extern "C" __device__ int nvshmem_my_pe(void);
extern "C" __device__ void nvshmemx_putmem_signal_block(void *, const void *, size_t, unsigned long *, unsigned long, int, int);
extern "C" __device__ unsigned long nvshmem_signal_wait_until(unsigned long *, int, unsigned long);
extern "C" __device__ int nvshmemx_bfloat16_sum_reduce_block(int, void *, const void *, size_t);
extern "C" __device__ void nvshmem_barrier_all(void);
extern "C" __global__ void user(char *to, const char *from, unsigned long *signal)
{
    nvshmemx_putmem_signal_block(to, from, 4096, signal, 1, 9, nvshmem_my_pe() ^ 1);
    nvshmem_signal_wait_until(signal, 0, 1);
    nvshmemx_bfloat16_sum_reduce_block(0, to, from, 128);
    nvshmem_barrier_all();
}
"""


def names():
    grouped = [f"{kind}_{form}" for form in TYPED_GROUPS for kind in RMA]
    grouped += [form.replace("{N}", str(size)) for form in SIZED for size in SIZES]
    grouped += [f"{kind}_{op}_{form}" for types, ops in REDUCTIONS for op in ops.split() for kind in types
                for form in ("reduce", "reducescatter")]
    grouped += ONCE_GROUPS
    single = [f"{kind}_{form}" for types, forms in TYPED for form in forms.split() for kind in types] + ONCE
    found = [f"nvshmem_{name}" for name in single + grouped]
    found += [f"nvshmemx_{name}{group}" for name in grouped for group in GROUPS[1:]]
    found += [f"nvshmemx_{name}{group}" for name in EXTENSION_GROUPS for group in GROUPS]
    found += [f"nvshmemx_qp_{kind}_{form}{group}" for form in QUEUED_GROUPS for kind in RMA for group in GROUPS]
    found += [f"nvshmemx_qp_{kind}_{form}" for form in "pg" for kind in RMA]
    found += [f"nvshmemx_{kind}_{form}" for form in ("atomic_add", "atomic_fetch_add") for kind in FLOATS]
    return {*found, *[f"nvshmemx_{name}" for name in EXTENSIONS]}


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def main():
    clang, bitcode, source = sys.argv[1:]
    tools = pathlib.Path(os.path.realpath(clang)).parent
    if not all((tools / tool).exists() for tool in ("llvm-nm", "llvm-link", "opt", "llc")):
        print(f"LLVM's tools are not in {tools}")
        return 77
    symbols = [line.split() for line in run(tools / "llvm-nm", "--defined-only", bitcode).splitlines()]
    there = {words[-1] for words in symbols if words[-2] == "T" and words[-1].startswith("nvshmem")}
    wrong = [f"not there: {name}" for name in sorted(names() - there)]
    wrong += [f"there, and no routine of kernels: {name}" for name in sorted(there - names())]
    print("\n".join(wrong[:20]))
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        (folder / "user.cu").write_text(KERNEL)
        run(clang, "-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_90", "-nocudainc", "-nocudalib", "-std=c++17", "-O3",
            "-fgpu-flush-denormals-to-zero", "-Wno-unknown-cuda-version", "-emit-llvm", "-c", f"-I{source}/bitcode", folder / "user.cu", "-o", folder / "user.bc")
        run(tools / "llvm-link", "--only-needed", folder / "user.bc", bitcode, "-o", folder / "all.bc")
        run(tools / "opt", "-O3", folder / "all.bc", "-o", folder / "best.bc")
        run(tools / "llc", "-O3", "-mcpu=sm_90", "-mattr=+ptx84", folder / "best.bc", "-o", folder / "user.ptx")
        code = (folder / "user.ptx").read_text()
        if not re.search(r"\.visible \.const \.align 8 \.b8 weft_nvshmem_state_d\[", code):
            wrong.append("the state is not visible")
        if re.search(r"\.extern \.func", code):
            wrong.append(f"functions are missing: {re.findall(r'.extern .func.*', code)}")
        ptxas = shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")
        if ptxas:
            run(ptxas, "-arch=sm_90", "-c", folder / "user.ptx", "-o", folder / "user.cubin")
    print(f"{len(there)} routines; {len(wrong)} mistakes")
    print("\n".join(wrong[-3:]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
