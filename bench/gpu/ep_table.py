"""The figures of expert parallelism of a record as a table, each beside its floor, and the bars.

Usage: ep_table.py RECORD.jsonl
"""

import json
import sys


def key_of(f):
    """(call, route, dtype, layout, gate, T, SMs)."""
    route = f["route"] if "route" in f else f["routing"] + (", plain buffers" if f["buffers"] == "plain" else "")
    layout = "slots by expert" if f.get("slots") == "expert" else f["layout"]
    modes = {"ll": ", halves", "eager": ", halves, rows with send", "two": ", two pairs of halves"}
    layout += modes.get(f.get("mode"), "") if "buffers" in f else ""
    gate = f["gate"] if "gate" in f else f["skew"]
    return f["name"], route, f["dtype"], layout, gate, f["tokens"], f["sms"]


def figures(path):
    """{key: {impl: value}}, and set-up and memory of the worst case that has a bar."""
    table = {}
    for line in open(path):
        f = json.loads(line)
        if f["name"] in ("ep_setup", "ep_memory"):
            if f["tokens"] == 4096 and f.get("layout", "rank-major") == "rank-major":
                table.setdefault(f["name"], f["value"])
        elif "tokens" in f:
            table.setdefault(key_of(f), {})[f["impl"]] = f["value"]
    return table


# (what, call, route, dtype, layout, T, at most this, and for any of the SM budgets or this one)
BARS = [
    ("bf16 dispatch", "ep_dispatch", "fresh", "bf16", "rank-major", 4096, 470, None),
    ("bf16 combine", "ep_combine", "fresh", "bf16", "rank-major", 4096, 480, None),
    ("dispatch, 16 SMs", "ep_dispatch", "fresh", "bf16", "rank-major", 4096, 500, 16),
    ("combine, 16 SMs", "ep_combine", "fresh", "bf16", "rank-major", 4096, 600, 16),
    ("dispatch, expert-major", "ep_dispatch", "fresh", "bf16", "expert-major", 4096, 540, None),
    ("combine, expert-major", "ep_combine", "fresh", "bf16", "expert-major", 4096, 520, None),
    ("fp8 dispatch", "ep_dispatch", "fresh", "fp8", "rank-major", 4096, 252, None),
    ("fp8 dispatch from bf16", "ep_dispatch", "fresh", "bf16-fp8", "rank-major", 4096, 265, None),
    ("bf16 dispatch", "ep_dispatch", "fresh", "bf16", "rank-major", 512, 72, 132),
    ("bf16 combine", "ep_combine", "fresh", "bf16", "rank-major", 512, 74, 132),
    ("slots by source, dispatch", "ep_dispatch", "fresh", "bf16", "slots", 128, 24, None),
    ("slots by source, combine", "ep_combine", "fresh", "bf16", "slots", 128, 22, None),
    ("slots by expert, dispatch", "ep_dispatch", "fresh", "bf16", "slots by expert", 128, 29, None),
    ("slots by expert, combine", "ep_combine", "fresh", "bf16", "slots by expert", 128, 28, None),
    ("slots, fp8 from bf16", "ep_dispatch", "fresh", "bf16-fp8", "slots", 128, 21, None),
    ("slots by source, a pair", "ep_pair", "fresh", "bf16", "slots", 8, 21, None),
]


def show(path):
    table = figures(path)
    setup = table.pop("ep_setup", None)
    memory = table.pop("ep_memory", None)
    print(f"{'call':12} {'route':22} {'dtype':8} {'layout':15} {'gate':8} {'T':>5} {'SMs':>4} {'us':>8} {'floor':>8}")
    for (name, route, dtype, layout, gate, tokens, sms), by in table.items():
        floor = f"{by['floor']:8.4g}" if "floor" in by else ""
        print(f"{name:12} {route:22} {dtype:8} {layout:15} {gate:8} {tokens:5} {sms:4} {by.get('weft', 0):8.4g} {floor}")
    print(f"\n{'bar (3 % tolerance)':32} {'T':>5} {'us':>8}   limit")
    for what, name, route, dtype, layout, tokens, limit, sms in BARS:
        found = [
            by["weft"]
            for (n, r, d, l, g, t, s), by in table.items()
            if (n, r, d, l, g, t) == (name, route, dtype, layout, "uniform", tokens) and (sms is None or s == sms)
        ]
        best = min(found) if found else None
        met = "?" if best is None else "met" if best <= limit * 1.03 else "MISSED"
        print(f"{what:32} {tokens:5} {'' if best is None else format(best, '8.4g'):>8}   <= {limit:<5} {met}")
    for what, value, unit, limit in (("creation and first call", setup, "us", 50000), ("GPU memory, T 4096", memory, "MB", 1100)):
        if value is not None:
            print(f"{what:32} {'':5} {value:8.4g} {unit} <= {limit:<5} {'met' if value <= limit * 1.03 else 'MISSED'}")


if __name__ == "__main__":
    show(sys.argv[1])
