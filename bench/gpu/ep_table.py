"""The figures of expert parallelism of a record as a table, each beside its floor, and the bars.

Usage: ep_table.py RECORD.jsonl
"""

import json
import sys


def figures(path):
    """{(call, route, dtype, layout, T, SMs): {impl: value}}."""
    table = {}
    for line in open(path):
        f = json.loads(line)
        if f["name"] in ("ep_setup", "ep_memory"):
            table[f["name"]] = f["value"]
        elif "route" in f:
            key = (f["name"], f["route"], f["dtype"], f["layout"], f["gate"], f["tokens"], f["sms"])
            table.setdefault(key, {})[f["impl"]] = f["value"]
    return table


# (what, call, route, dtype, layout, T, at most this, and for any of the SM budgets or this one)
BARS = [
    ("bf16 dispatch, fresh", "ep_dispatch", "fresh", "bf16", "rank-major", 4096, 470, None),
    ("the same, 16 SMs", "ep_dispatch", "fresh", "bf16", "rank-major", 4096, 500, 16),
    ("the same, plain buffers", "ep_dispatch", "fresh, plain buffers", "bf16", "rank-major", 4096, 580, None),
    ("the same, expert-major", "ep_dispatch", "fresh", "bf16", "expert-major", 4096, 560, None),
    ("fp8 dispatch, fresh", "ep_dispatch", "fresh", "fp8", "rank-major", 4096, 248, None),
    ("bf16 combine", "ep_combine", "cached", "bf16", "rank-major", 4096, 480, None),
    ("the same, expert-major", "ep_combine", "cached", "bf16", "expert-major", 4096, 590, None),
    ("bf16 dispatch, fresh", "ep_dispatch", "fresh", "bf16", "rank-major", 512, 70, None),
    ("bf16 combine", "ep_combine", "cached", "bf16", "rank-major", 512, 72, None),
    ("slots, fp8 from bf16", "ep_dispatch", "fresh", "fp8, from bf16", "slots", 128, 14.5, None),
    ("slots by source, dispatch", "ep_dispatch", "fresh", "bf16", "slots", 128, 20, None),
    ("slots by source, combine", "ep_combine", "cached", "bf16", "slots", 128, 22, None),
    ("slots by expert, dispatch", "ep_dispatch", "fresh", "bf16", "slots by expert", 128, 26, None),
    ("slots by expert, combine", "ep_combine", "cached", "bf16", "slots by expert", 128, 30, None),
    ("slots by source, a pair", "ep_pair", "fresh", "bf16", "slots", 8, 13, None),
]


def show(path):
    table = figures(path)
    setup = table.pop("ep_setup", None)
    memory = table.pop("ep_memory", None)
    print(f"{'call':12} {'route':22} {'dtype':14} {'layout':15} {'gate':8} {'T':>5} {'SMs':>4} {'us':>8} {'floor':>8}")
    for (name, route, dtype, layout, gate, tokens, sms), by in table.items():
        floor = f"{by['floor']:8.4g}" if "floor" in by else ""
        print(f"{name:12} {route:22} {dtype:14} {layout:15} {gate:8} {tokens:5} {sms:4} {by.get('weft', 0):8.4g} {floor}")
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
