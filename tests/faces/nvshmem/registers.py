"""Goal: kernels that call the face's routines start with blocks of 1,024 threads (one-sided calls, waits, barriers,
fcollect and alltoall of all PEs) or 640 (other collectives and teams), also in relocatable device code, where a call out of
line costs registers of its own.

Method: registers.cu compiled with -rdc=true and linked for sm_90; what nvlink says of each kernel's registers, of which a
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


def main():
    nvcc, home = sys.argv[1], pathlib.Path(sys.argv[2])
    if shutil.which(nvcc) is None:
        print("skip: no nvcc")
        return 77
    with tempfile.TemporaryDirectory() as place:
        unit, linked = pathlib.Path(place) / "unit.o", pathlib.Path(place) / "linked.o"
        subprocess.run([nvcc, "-rdc=true", "-arch=sm_90", "-std=c++17", "-O3", f"-I{home}/include", "-c", HERE / "registers.cu",
                        "-o", unit], check=True)
        said = subprocess.run([nvcc, "-arch=sm_90", "-dlink", "-Xnvlink", "-v", unit, "-o", linked], check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    kernels = re.findall(r"Function properties for '(threads_(\d+)_\w+)':\s*\n.*?used (\d+) registers", said)
    failed = len(kernels) != (HERE / "registers.cu").read_text().count("\nKERNEL")
    if failed:
        print(f"nvlink tells of {len(kernels)} kernels:\n{said}")
    for name, threads, used in kernels:
        most = REGISTERS // int(threads) // GRANULE * GRANULE
        print(f"{name}: {used} registers of {most}")
        failed |= int(used) > most
    return failed


sys.exit(main())
