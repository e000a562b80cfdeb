"""Draw the README's pictures from records of bench/records.

Usage: pictures.py HOST_RECORD GPU_EP_RECORD FOLDER
  HOST_RECORD     of scripts/bench.sh on a machine with Open MPI
  GPU_EP_RECORD   of scripts/gpu_ep.sh
  FOLDER          gets expert-parallelism.svg and collectives.svg
Needs matplotlib (Debian: python3-matplotlib; pip install matplotlib).
"""

import argparse
import json
import os

WEFT, PEER, FLOOR = "#1f77b4", "#d9822b", "#9a9a9a"
EP_CALLS = {"ep_dispatch": "dispatch", "ep_combine": "combine", "ep_pair": "both"}
# name, bytes, PEs of the rows: one-sided access, then collectives.
ONE_SIDED = [("put_issue", 8), ("get", 8), ("fetch_add", 8), ("put_bw", 1 << 20), ("get_bw", 1 << 20)]
COLLECTIVES = ["barrier", "broadcast", "fcollect", "alltoall", "sum"]
SIZES = [8, 1 << 10, 64 << 10, 1 << 20]
UNITS_NS = {"ns": 1, "us": 1e3, "ms": 1e6}


def read(path):
    with open(path) as lines:
        return [json.loads(line) for line in lines if line.strip()]


def find(figures, **wanted):
    for figure in figures:
        if all(figure.get(key) == value for key, value in wanted.items()):
            return figure
    return None


def time_ns(figure):
    if figure["unit"] == "GB/s":
        return figure["bytes"] / figure["value"]
    return figure["value"] * UNITS_NS[figure["unit"]]


def size_text(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def source_text(path, figures):
    first = figures[0]
    return f"{os.path.basename(path)}: {first['machine']}, {first['date']}, commit {first['commit']}"


# ---- expert parallelism ----


def draw_bars(axes, groups, series):
    """groups: names along the axis; series: {name: (colour, [value of each group])}."""
    width = 0.8 / len(series)
    for i, (name, (colour, values)) in enumerate(series.items()):
        at = [j + (i - (len(series) - 1) / 2) * width for j in range(len(groups))]
        bars = axes.bar(at, values, width * 0.92, color=colour, label=name)
        axes.bar_label(bars, [f"{value:.3g}" for value in values], fontsize=7, padding=2)
    axes.set_xticks(range(len(groups)), groups)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    axes.margins(y=0.3)


def draw_ep_host(axes, figures, pes):
    case = {"pes": pes, "tokens": 1024, "hidden": 4096, "topk": 8, "experts": 64, "layout": "rank-major"}
    impls = {"weft": ("weft", WEFT), "Open MPI, MPI_Alltoallv": ("ompi", PEER), "memcpy of the same rows": ("memcpy", FLOOR)}
    series = {}
    for name, (impl, colour) in impls.items():
        rows = [find(figures, name=call, impl=impl, **case) for call in EP_CALLS]
        series[name] = (colour, [time_ns(row) / 1e6 for row in rows])
    draw_bars(axes, list(EP_CALLS.values()), series)
    axes.set_ylabel("ms")
    axes.set_title(f"{pes} processes, 2 cores: 1024 tokens of 4096 bf16, top 8 of 64", fontsize=8)


def draw_ep_gpu(axes, figures, tokens):
    case = {"tokens": tokens, "hidden": 7168, "topk": 8, "experts": 256, "dtype": "bf16", "layout": "rank-major", "mode": "ht",
            "routing": "fresh", "skew": "uniform", "buffers": "symmetric"}
    calls = ["ep_dispatch", "ep_combine"]
    rows = [find(figures, name=call, impl="weft", **case) for call in calls]
    floors = [find(figures, name=call, impl="floor", **case, sms=row["sms"]) for call, row in zip(calls, rows)]
    draw_bars(axes, [EP_CALLS[call] for call in calls],
              {"weft": (WEFT, [row["value"] for row in rows]), "the bytes over NVLink": (FLOOR, [row["value"] for row in floors])})
    axes.set_ylabel("µs")
    gpus = f"{rows[0]['pes']} {rows[0]['machine'].split('x')[0].upper()} GPUs"
    axes.set_title(f"{gpus}: {tokens} tokens of 7168 bf16, top 8 of 256", fontsize=8)


def draw_ep(plots, host, gpu, texts):
    figure, axes = plots.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    draw_ep_host(axes[0], host, 2)
    draw_ep_host(axes[1], host, 4)
    draw_ep_gpu(axes[2], gpu, 4096)
    figure.supxlabel("; ".join(texts), fontsize=7, color="#555555")
    return figure


# ---- one-sided access and collectives ----


def rows_of(figures, names, pes):
    rows = []
    for name, size in names:
        case = {"name": name, "pes": pes, **({"bytes": size} if size else {})}
        ours, theirs = find(figures, impl="weft-shmem", **case), find(figures, impl="ompi", **case)
        label = name.replace("_issue", "").replace("_bw", "")
        rows.append((f"{label} {size_text(size)}" if size else label, time_ns(ours), time_ns(theirs)))
    return rows


def time_text(ns):
    for unit, name in ((1e6, "ms"), (1e3, "µs")):
        if ns >= unit:
            return f"{ns / unit:.3g} {name}"
    return f"{ns:.3g} ns"


def draw_rows(axes, rows, title):
    at = range(len(rows), 0, -1)
    axes.barh(at, [ours / theirs for _, ours, theirs in rows], 0.7, color=WEFT)
    axes.axvline(1, color=PEER)
    for y, (_, ours, theirs) in zip(at, rows):
        axes.text(max(ours / theirs, 1) + 0.03, y, f"{time_text(ours)} / {time_text(theirs)}", va="center", fontsize=7)
    axes.set_yticks(list(at), [name for name, _, _ in rows], fontsize=8)
    axes.set_xlim(0, 1.45)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, fontsize=9)


def draw_collectives(plots, host, texts):
    figure, axes = plots.subplots(1, 3, figsize=(12, 4.4), layout="constrained")
    names = [(name, size) for name in COLLECTIVES for size in ([0] if name == "barrier" else SIZES)]
    draw_rows(axes[0], rows_of(host, ONE_SIDED, 2) + rows_of(host, [("lock", 0)], 2), "one-sided, 2 PEs")
    draw_rows(axes[1], rows_of(host, names, 2), "collectives, 2 PEs on 2 cores")
    draw_rows(axes[2], rows_of(host, names, 8), "collectives, 8 PEs on 2 cores")
    figure.supxlabel("time of weft's OpenSHMEM over that of Open MPI's (the line), the same programs in one run; shorter is faster\n"
                     + "; ".join(texts), fontsize=7, color="#555555")
    return figure


def main():
    parser = argparse.ArgumentParser(description="draw the README's pictures")
    parser.add_argument("host")
    parser.add_argument("gpu")
    parser.add_argument("folder")
    given = parser.parse_args()
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "weft"  # the same picture of the same records
    from matplotlib import pyplot

    host, gpu = read(given.host), read(given.gpu)
    os.makedirs(given.folder, exist_ok=True)
    pictures = {
        "expert-parallelism": draw_ep(pyplot, host, gpu, [source_text(given.host, host), source_text(given.gpu, gpu)]),
        "collectives": draw_collectives(pyplot, host, [source_text(given.host, host)]),
    }
    for name, picture in pictures.items():
        path = os.path.join(given.folder, name + ".svg")
        picture.savefig(path, metadata={"Date": None})
        print(path)


if __name__ == "__main__":
    main()
