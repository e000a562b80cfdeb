"""The device figures of a record as a table: weft beside its peer and the hardware, and the bars.

Usage: table.py RECORD.jsonl
"""

import json
import sys


def figures(path):
    table = {}
    for line in open(path):
        f = json.loads(line)
        how = [str(f[k]) for k in ("scope", "by", "world") if k in f]
        how += [f"{f['threads']} threads"] if "threads" in f else []
        how += [f"{f['blocks']} blocks"] if "blocks" in f else []
        key = (f["name"], f["pes"], f["bytes"], tuple(how), f["unit"])
        table.setdefault(key, {})[f["impl"]] = f["value"]
    return table


# (what, name, size or None, how, limit(nvshmem, hardware), at most or at least)
BARS = [
    ("world creation, first, ms", "world_create", None, ("first",), lambda p, r: 150, "<="),
    ("world destruction, ms", "world_destroy", None, (), lambda p, r: 50, "<="),
    ("p + wait, us", "p_pingpong", 8, (), lambda p, r: 1.03 * p, "<="),
    ("put_signal 8 B by 0.85 of NVSHMEM, us", "put_signal", 8, ("block", "1024 threads"), lambda p, r: 0.85 * p, "<="),
    ("put_signal 8 B by 1.1 of raw, us", "put_signal", 8, ("block", "1024 threads"), lambda p, r: 1.1 * r, "<="),
    ("put_signal 1 KiB by 0.85 of NVSHMEM, us", "put_signal", 1024, ("block", "1024 threads"), lambda p, r: 0.85 * p, "<="),
    ("put_signal 1 KiB by 1.1 of raw, us", "put_signal", 1024, ("block", "1024 threads"), lambda p, r: 1.1 * r, "<="),
    ("put_signal 128 KiB, us", "put_signal", 131072, ("block",), lambda p, r: 4.7, "<="),
    ("put_signal 1 MiB, us", "put_signal", 1048576, ("block",), lambda p, r: 25.0, "<="),
    ("put, 1 block, GB/s", "put_bw", None, ("block", "1 blocks"), lambda p, r: 44, ">="),
    ("put, 8 blocks, GB/s", "put_bw", None, ("block", "8 blocks"), lambda p, r: 345, ">="),
    ("get, 1 block, GB/s", "get_bw", None, ("block", "1 blocks"), lambda p, r: 40, ">="),
    ("get, 8 blocks, GB/s", "get_bw", None, ("block", "8 blocks"), lambda p, r: 320, ">="),
    ("fetch_add on a peer, us", "fetch_add", 8, ("thread",), lambda p, r: p, "<="),
    ("barrier, thread, us", "barrier", None, ("thread",), lambda p, r: 1.8, "<="),
    ("barrier, block, us", "barrier", None, ("block",), lambda p, r: 1.8, "<="),
    ("barrier on a stream, us", "barrier", None, ("stream",), lambda p, r: 4.0, "<="),
    ("barrier as a graph node, us", "barrier", None, ("graph",), lambda p, r: 2.6, "<="),
    *[
        (f"{name} {label} on a stream, us", name, size, ("stream",), lambda p, r, bound=bound: bound, "<=")
        for label, size, bounds in (
            ("1 KiB", 1024, (4.5, 4.5, 4.5, 5.0)),
            ("64 KiB", 65536, (5.0, 5.0, 5.5, 7.5)),
            ("512 KiB", 524288, (7.5, 7.5, 7.5, 11)),
            ("4 MiB", 4194304, (16, 16, 20, 31)),
            ("32 MiB", 33554432, (78, 78, 103, 155)),
        )
        for name, bound in zip(("alltoall", "fcollect", "broadcast", "sum"), bounds)
    ],
    ("sum of 1 KiB in a kernel, block, us", "sum", 1024, ("block",), lambda p, r: 4.0, "<="),
    ("allocation of 1 MiB, us", "device_malloc", None, (), lambda p, r: 13, "<="),
    ("memory of an idle world, heap included, MB", "device_memory_idle", None, (), lambda p, r: 8, "<="),
]


def best(table, name, impl, size, how, sign):
    found = [
        by[impl]
        for (n, _, s, h, _), by in table.items()
        if n == name and impl in by and (size is None or s == size) and all(w in h for w in how)
    ]
    return (min(found) if sign == "<=" else max(found)) if found else None


def show(path):
    table = figures(path)
    print(f"{'figure':40} {'weft':>10} {'weft-copy':>10} {'nvshmem':>10} {'hardware':>10}")
    for (name, pes, size, how, unit), by in table.items():
        cells = " ".join(f"{by[i]:10.4g}" if i in by else " " * 10 for i in ("weft", "weft-copy", "nvshmem", "hardware"))
        print(f"{name + ' ' + (str(size) if size else '') + ' ' + ' '.join(how):50.50} {cells} {unit}")
    print(f"\n{'bar (3 % tolerance)':44} {'weft':>8} {'nvshmem':>8} {'raw':>8}   limit")
    for what, name, size, how, limit, sign in BARS:
        mine = best(table, name, "weft", size, how, sign)
        peer = best(table, name, "nvshmem", size, how, sign)
        raw = best(table, name, "hardware", size, how, sign)
        try:
            bound = limit(peer, raw)
        except TypeError:
            bound = None
        met = "?"
        if mine is not None and bound is not None:
            met = "met" if (mine <= bound * 1.03 if sign == "<=" else mine >= bound / 1.03) else "MISSED"
        cells = " ".join(f"{v:8.4g}" if v is not None else " " * 8 for v in (mine, peer, raw))
        print(f"{what:44} {cells}   {sign} {'' if bound is None else format(bound, '.4g'):8} {met}")


if __name__ == "__main__":
    show(sys.argv[1])
