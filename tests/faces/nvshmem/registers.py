"""Goal: kernels that call the face's routines start with blocks of 1,024 threads (one-sided calls, waits, barriers,
fcollect and alltoall of all PEs) or 640 (other collectives and teams), also in relocatable device code, where a call out of
line costs registers of its own. So do the kernels of bench/gpu/peers/nvshmem.cu.

Method: both compiled with -rdc=true and linked for sm_90; what nvlink says of each kernel's registers, of which a
multiprocessor has 65,536. Usage: registers.py NVCC HOME_OF_NVSHMEM. Exit 77: no nvcc.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
REGISTERS = 65536
GRANULE = 8  # registers are given out so many at a time a thread


BENCH = HERE.parents[2] / "bench/gpu/peers/nvshmem.cu"
BENCH_THREADS = {"put_signal_trips": 1024, "put_rate": 1024, "get_rate": 1024, "barrier_trips": 32}


def registers_of(nvcc, home, source):
    """[(kernel, registers)], of all kernels of a source."""
    with tempfile.TemporaryDirectory() as place:
        unit, linked = pathlib.Path(place) / "unit.o", pathlib.Path(place) / "linked.o"
        subprocess.run([nvcc, "-rdc=true", "-arch=sm_90", "-std=c++17", "-O3", f"-I{home}/include", f"-I{HERE.parents[2]}", "-c",
                        source, "-o", unit], check=True)
        said = subprocess.run([nvcc, "-arch=sm_90", "-dlink", "-Xnvlink", "-v", unit, "-o", linked], check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    return [(name, int(used)) for name, used in
            re.findall(r"Function properties for '(\w+)':\s*\n.*?used (\d+) registers", said)]


def main():
    nvcc, home = sys.argv[1], pathlib.Path(sys.argv[2])
    if shutil.which(nvcc) is None:
        print("skip: no nvcc")
        return 77
    kernels = [(name, int(name.split("_")[1]), used) for name, used in registers_of(nvcc, home, HERE / "registers.cu")]
    failed = len(kernels) != (HERE / "registers.cu").read_text().count("\nKERNEL")
    if failed:
        print(f"nvlink tells of {len(kernels)} kernels: {kernels}")
    bench = registers_of(nvcc, home, BENCH)
    for kernel, threads in BENCH_THREADS.items():
        found = [used for name, used in bench if kernel in name]
        failed |= not found
        kernels.append((f"bench: {kernel}", threads, max(found, default=0)))
    for name, threads, used in kernels:
        most = min(REGISTERS // threads // GRANULE * GRANULE, 255)
        print(f"{name}: {used} registers of {most}")
        failed |= used > most
    return failed


sys.exit(main())
