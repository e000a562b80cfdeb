"""Timing that programs of DeepEP import."""

import contextlib
import os
import re
import time

import torch
import torch.distributed as dist

L2_BYTES = 256 << 20  # more than any GPU's second level cache


def flush_l2_cache(enabled=True):
    """Have the GPU's second level cache hold something else."""
    if enabled and torch.cuda.is_available():
        torch.zeros(L2_BYTES // 4, dtype=torch.int32, device="cuda")


def bench(fn, num_warmups=30, num_tests=30, post_fn=None, flush_l2=True):
    """Seconds of fn() by events, or where there is no GPU by the clock: (average, least, most) of all runs but the first."""
    for _ in range(num_warmups):
        fn()
    if not torch.cuda.is_available():
        seconds = []
        for _ in range(num_tests):
            start = time.perf_counter()
            fn()
            seconds.append(time.perf_counter() - start)
            if post_fn is not None:
                post_fn()
        return sum(seconds[1:]) / (num_tests - 1), min(seconds[1:]), max(seconds[1:])
    pairs = []
    for _ in range(num_tests):
        pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        flush_l2_cache(flush_l2)
        pair[0].record()
        fn()
        pair[1].record()
        if post_fn is not None:
            post_fn()
        pairs.append(pair)
    torch.cuda.synchronize()
    seconds = [begin.elapsed_time(end) / 1e3 for begin, end in pairs][1:]
    return sum(seconds) / len(seconds), min(seconds), max(seconds)


@contextlib.contextmanager
def suppress_stdout_stderr():
    """Nothing of what is written meanwhile is seen, also by libraries."""
    kept = [os.dup(fd) for fd in (1, 2)]
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        for fd in (1, 2):
            os.dup2(nothing, fd)
        yield
    finally:
        for fd, old in zip((1, 2), kept):
            os.dup2(old, fd)
            os.close(old)
        os.close(nothing)


empty_suppress = contextlib.nullcontext


def _meet(barrier):
    torch.cuda._sleep(20_000_000)  # so that hosts are ahead of their GPUs
    barrier() if barrier is not None else dist.all_reduce(torch.ones(1, device="cuda"))


def _of_a_call(name, launches, calls):
    """DeepEP 2.x times a call's kernel and its epilogue. weft has no epilogues, whose time is not a number; a routing is a
    dispatch, and what prepares a combine belongs to it."""
    kernel = name.removesuffix("_impl")
    names = (f"::{kernel}", "::order") if kernel == "combine" else (f"::{kernel}",)
    times = [seconds for _, launched, seconds in launches if any(one in launched for one in names)]
    return sum(times) / calls if times else float("nan")


def bench_kineto(fn, kernel_names, num_tests=30, suppress_kineto_output=False, trace_path=None, flush_l2=True,
                 barrier_comm_profiling=False, num_kernels_per_period=1, barrier=None):
    """Seconds of the kernels whose names have kernel_names, a name or several, by torch's profiler: the average of each; with
    num_kernels_per_period a list for each, of every so-manieth launch. Where there is no GPU there are no kernels: fn() is
    called as often, and their times are not numbers."""
    names = (kernel_names,) if isinstance(kernel_names, str) else kernel_names
    if not torch.cuda.is_available():
        for _ in range(1 + num_tests):
            fn()
        nothing = float("nan") if num_kernels_per_period == 1 else [float("nan")] * num_kernels_per_period
        return nothing if isinstance(kernel_names, str) else [nothing] * len(names)
    if int(os.environ.get("EP_USE_NVIDIA_TOOLS", 0)):
        return 1 if isinstance(kernel_names, str) else (1,) * len(names)
    fn()
    torch.cuda.synchronize()
    with suppress_stdout_stderr() if suppress_kineto_output else empty_suppress():
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            for _ in range(num_tests):
                flush_l2_cache(flush_l2)
                if barrier_comm_profiling:
                    _meet(barrier)
                fn()
            torch.cuda.synchronize()
    if trace_path is not None:
        profiler.export_chrome_trace(trace_path)
    launches = sorted((event.time_range.start, event.name, event.device_time_total / 1e6) for event in profiler.events())
    averages = []
    for name in names:
        if name.endswith("_impl"):
            averages.append(_of_a_call(name, launches, num_tests))
            continue
        times = [seconds for _, launched, seconds in launches if name in launched]
        parts = [times[i::num_kernels_per_period] for i in range(num_kernels_per_period)]
        means = [sum(part) / len(part) if part else 0 for part in parts]
        averages.append(means if num_kernels_per_period > 1 else means[0])
    return averages[0] if isinstance(kernel_names, str) else averages


def parse_num_bytes(text):
    """Bytes of a text as 1G, 64M, 512k or 1048576."""
    found = re.fullmatch(r"([0-9]+\.?[0-9]*)\s*([kmgt]?)i?b?", text.strip().lower())
    count = int(float(found[1]) * (1 << 10 * " kmgt".index(found[2] or " "))) if found else 0
    if count <= 0:
        raise ValueError(f"{text!r} is not a number of bytes; give one as 1G, 64M or 512k")
    return count
