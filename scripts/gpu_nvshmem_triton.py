"""The bitcode library of the NVSHMEM face in Triton's kernels, on GPUs: each PE puts to the next and tells it by a signal,
and all meet in a barrier of the kernel.

Usage: WEFT_NVSHMEM=build/release/nvshmem build/release/weftrun -n 2 python3 scripts/gpu_nvshmem_triton.py, with torch and
triton. Prints what Triton and weft are, and "ok" on PE 0.
"""

import ctypes
import os
import pathlib
import sys

import torch
import triton
import triton.language as tl
from triton.language import core

HOME = pathlib.Path(os.environ.get("WEFT_NVSHMEM", "build/release/nvshmem"))
COUNT = 4096


def routine(name, result, *kinds):
    """A routine of the library for Triton's kernels."""
    types = tuple(core.dtype(kind) for kind in kinds)

    @core.extern
    def call(*arguments, _semantic=None):
        values = [core.to_tensor(one, _semantic=_semantic) for one in arguments]
        values = [core.cast(one, kind, _semantic=_semantic) for one, kind in zip(values, types)]
        return core.extern_elementwise("", "", values, {types: (name, core.dtype(result))}, is_pure=False, _semantic=_semantic)

    return call


my_pe = routine("nvshmem_my_pe", "int32")
n_pes = routine("nvshmem_n_pes", "int32")
put_signal = routine("nvshmemx_putmem_signal_block", "int32", "int64", "int64", "int64", "int64", "int64", "int32", "int32")
wait = routine("nvshmem_signal_wait_until", "int64", "int64", "int32", "int64")
barrier = routine("nvshmemx_barrier_all_block", "int32")


@triton.jit
def ring(to, source, signal, found, count: tl.constexpr):
    peer = (my_pe() + 1) % n_pes()
    put_signal(to, source, count * 4, signal, 7, 9, peer)
    wait(signal, 0, 7)
    barrier()
    tl.store(found, my_pe() * 100 + n_pes())


class Symmetric:
    """Numbers in symmetric memory, for torch."""

    def __init__(self, address, count):
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "<i4", "data": (address, False), "version": 3}


def init_module(host, kernel):
    """Tell the kernel's module of the world."""
    status = host.nvshmemx_cumodule_init(ctypes.c_void_p(kernel.module))
    if status != 0:
        sys.exit(f"nvshmemx_cumodule_init: {status}")


def main():
    host = ctypes.CDLL(str(HOME / "lib/libnvshmem_host.so.3"), mode=ctypes.RTLD_GLOBAL)
    host.nvshmem_calloc.restype = ctypes.c_void_p
    host.nvshmem_calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    host.nvshmem_free.argtypes = [ctypes.c_void_p]
    host.nvshmem_init()
    pe, pes = host.nvshmem_my_pe(), host.nvshmem_n_pes()
    torch.cuda.set_device(host.nvshmem_team_my_pe(2) % torch.cuda.device_count())
    torch.zeros(1, device="cuda")
    host.nvshmem_barrier_all()
    to, signal = host.nvshmem_calloc(COUNT, 4), host.nvshmem_calloc(1, 8)
    source = torch.arange(COUNT, device="cuda", dtype=torch.int32) + pe * COUNT
    found = torch.zeros(1, device="cuda", dtype=torch.int32)
    libraries = {"libnvshmem_device": str((HOME / "lib/libnvshmem_device.bc").resolve())}
    arguments = (to, source.data_ptr(), signal, found, COUNT)
    kernel = ring.warmup(*arguments, grid=(1,), num_warps=4, extern_libs=libraries)
    kernel._init_handles()
    init_module(host, kernel)
    ring[(1,)](*arguments, num_warps=4, extern_libs=libraries)
    torch.cuda.synchronize()
    host.nvshmem_barrier_all()
    got = torch.as_tensor(Symmetric(to, COUNT), device="cuda")
    before = (pe + pes - 1) % pes
    wanted = torch.arange(COUNT, device="cuda", dtype=torch.int32) + before * COUNT
    is_right = bool((got == wanted).all()) and int(found) == pe * 100 + pes
    host.nvshmem_barrier_all()
    host.nvshmem_free(signal)
    host.nvshmem_free(to)
    host.nvshmem_finalize()
    if pe == 0 or not is_right:
        print(f"triton {triton.__version__}, PE {pe} of {pes}: {'ok' if is_right else 'WRONG'}")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
