"""Records of benchmarks: JSON lines, one figure a line. See bench/README.md.

bench_record.py merge --machine M --commit C --date D --output RECORD ROUND...
    one record of several rounds: of each figure the median over the rounds
bench_record.py table RECORD
    what a person reads: weft beside its peer and the hardware, the bars, and whether they hold
"""

import argparse
import json
import statistics
import sys

# What tells figures apart; the rest is what was measured.
MEASURED = {"value", "stat", "n", "low", "high", "rounds", "machine", "commit", "date", "version"}  # "rounds": a value each
HARDWARE = ("hardware", "memcpy", "floor", "machine")
PEERS = ("ompi",)

# The bars: name, condition on the figure, the most, and of what. "ompi", "memcpy" and "hardware" are times of that impl
# in the same run; a unit is a plain limit.
BARS = (
    [(name, {"bytes": 8, "pes": 2}, 0.5, "ompi") for name in ("put_issue", "p_issue", "get", "g", "fetch_add")]
    + [("barrier", {"pes": 2}, 0.7, "ompi"), ("pingpong", {"pes": 2}, 1.15, "hardware")]
    + [
        (name, {"bytes": size, "pes": 2}, most, of)
        for name in ("put_bw", "get_bw")
        for size in (64 << 10, 1 << 20, 4 << 20)
        for most, of in ((1.10, "memcpy"), (1.05, "ompi"))
    ]
    + [
        (name, {"bytes": size, "pes": pes}, 0.7 if size <= 1024 else 0.5 if name == "sum" else 1, "ompi")
        for name in ("broadcast", "fcollect", "alltoall", "sum")
        for size in (8, 1 << 10, 64 << 10, 1 << 20)
        for pes in (2, 4, 8)
    ]
    + [(name, {"bytes": size, "pes": 2}, 1.25, "floor") for name in ("broadcast", "alltoall") for size in (64 << 10, 1 << 20)]
    + [("lock", {"pes": pes}, 0.7, "ompi") for pes in (2, 4, 8)]
    + [("barrier", {"pes": pes}, 0.7, "ompi") for pes in (4, 8)]
    + [("world_create", {"pes": pes}, most, "ms") for pes, most in ((2, 5), (16, 40), (64, 150), (512, 1000))]
    + [("malloc", {"pes": 512, "mode": mode}, 2000, "ms") for mode in ("first", "later")]
    + [("pss_per_pe", {"pes": 64}, 1, "MB"), ("hello", {"pes": 64}, 600, "ms")]
    + [
        (
            "ep_dispatch",
            {"pes": 2, "tokens": 1024, "hidden": 4096, "topk": 8, "experts": 64, "layout": "rank-major"},
            1.4,
            "memcpy",
        )
    ]
    + [
        (
            "ep_pair",
            {"pes": pes, "tokens": 1024, "hidden": 4096, "topk": 8, "experts": 64, "layout": "rank-major"},
            most,
            of,
        )
        for pes in (2, 4)
        for most, of in ((0.6, "ompi"), (1.6, "memcpy"))
    ]
)

# The same through weft's OpenSHMEM, figures of "weft-shmem"; "behind": ns more than weft's own call.
WORDS = ("put_issue", "p_issue", "get", "g", "fetch_add")
FACE_BARS = (
    [(name, {"bytes": 8, "pes": 2}, most, of) for name in WORDS for most, of in ((0.6, "ompi"), (2, "behind"))]
    + [(name, {"pes": pes}, 0.7, "ompi") for name in ("barrier", "lock") for pes in (2, 4, 8)]
    + [
        (name, {"bytes": size, "pes": pes}, 0.7 if size <= 1024 else 1, "ompi")
        for name in ("broadcast", "fcollect", "alltoall", "sum")
        for size in (8, 1 << 10, 64 << 10, 1 << 20)
        for pes in (2, 4, 8)
    ]
)


def read_figures(path):
    with open(path) as lines:
        return [json.loads(line) for line in lines if line.strip()]


def identity(figure):
    return tuple(sorted((key, value) for key, value in figure.items() if key not in MEASURED))


def subject(figure):
    """What was measured, whoever did it."""
    return tuple(pair for pair in identity(figure) if pair[0] != "impl")


# ---- merge ----


def merge(arguments):
    groups = {}
    for path in arguments.rounds:
        for figure in read_figures(path):
            groups.setdefault(identity(figure), []).append(figure)
    with open(arguments.output, "w") as record:
        for figures in groups.values():
            values = [figure["value"] for figure in figures]
            merged = {key: value for key, value in figures[0].items() if key not in MEASURED}
            merged.update(
                value=float(f"{statistics.median(values):.5g}"),
                stat="median",
                n=sum(figure["n"] for figure in figures),
                rounds=values,
                machine=arguments.machine,
                commit=arguments.commit,
                date=arguments.date,
            )
            record.write(json.dumps(merged) + "\n")


# ---- table ----


def time_ratio(figure, other):
    """The figure's time over the other's: the median over the rounds, in each of which both were measured."""
    mine, theirs = figure["rounds"], other["rounds"]
    if len(mine) != len(theirs):
        mine, theirs = [figure["value"]], [other["value"]]
    if "/s" in figure["unit"]:
        mine, theirs = theirs, mine
    return statistics.median(a / b for a, b in zip(mine, theirs))


def matches(figure, name, condition):
    return figure["name"] == name and all(figure.get(key) == value for key, value in condition.items())


def first_of(figures, impls):
    return next((figures[impl] for impl in impls if impl in figures), None)


def judge(figure, beside, bars=BARS):
    """The bars of a figure of weft: their text and whether all hold (None: nothing to compare with)."""
    texts = []
    holds = None
    for name, condition, most, of in bars:
        if not matches(figure, name, condition):
            continue
        if of == "behind" and "weft" in beside:
            seen = figure["value"] - beside["weft"]["value"]
            texts.append(f"{most:g} ns behind weft")
        elif of == figure["unit"]:
            seen = figure["value"]
            texts.append(f"{most:g} {of}")
        elif of in beside:
            seen = time_ratio(figure, beside[of])
            texts.append(f"{most:.2f} {of}")
        else:
            texts.append(f"{most:.2f} {of} (not run)")
            continue
        holds = (holds is not False) and seen <= most
    return " and ".join(texts), holds


def describe(figure):
    details = [figure[key] for key in ("mode", "scope", "layout") if key in figure]
    details += [f"{letter}={figure[key]}" for key, letter in (("tokens", "T"), ("hidden", "H")) if key in figure]
    return " ".join([figure["name"]] + details)


def size_text(size):
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} B" if size else ""


def value_text(figure):
    return f"{figure['value']:.4g} {figure['unit']}" if figure else ""


def ratio_text(figure, other):
    return f"{time_ratio(figure, other):.2f}" if other else ""


def rows_of(figures):
    groups = {}
    for figure in figures:
        groups.setdefault(subject(figure), {})[figure["impl"]] = figure
    for beside in groups.values():
        ours = beside.get("weft")
        peer = first_of(beside, PEERS)
        hardware = first_of(beside, HARDWARE)
        if ours is None:
            yield (describe(peer or hardware), peer or hardware, None, peer, hardware, "", None)
        else:
            yield (describe(ours), ours, ours, peer, hardware, *judge(ours, beside))
        face = beside.get("weft-shmem")
        if face is not None:
            text = describe(face) + " (OpenSHMEM)"
            yield (text, face, face, peer, hardware, *judge(face, beside, FACE_BARS))


LEFT = ("name", "at most (time)")


def table(path):
    figures = read_figures(path)
    heads = ("name", "PEs", "bytes", "weft", "peer", "ratio", "hardware", "ratio", "at most (time)", "")
    lines = []
    held = missed = 0
    for text, any_figure, ours, peer, hardware, bar, holds in rows_of(figures):
        held += holds is True
        missed += holds is False
        lines.append(
            (
                text,
                str(any_figure["pes"]),
                size_text(any_figure["bytes"]),
                value_text(ours),
                value_text(peer),
                ratio_text(ours, peer) if ours else "",
                value_text(hardware),
                ratio_text(ours, hardware) if ours else "",
                bar,
                {True: "holds", False: "MISSED", None: ""}[holds],
            )
        )
    widths = [max(len(line[i]) for line in [heads, *lines]) for i in range(len(heads))]
    about = figures[0]
    print(f"{about['machine']}, {about['date']}, commit {about['commit']}")
    print("values: medians over the rounds; ratios: weft's time over the other's in the same round, median of them")
    for line in [heads, *lines]:
        cells = (
            cell.ljust(width) if head in LEFT else cell.rjust(width) for head, cell, width in zip(heads, line, widths)
        )
        print("  ".join(cells).rstrip())
    print(f"bars: {held} hold, {missed} missed")


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    merging = commands.add_parser("merge")
    for option in ("machine", "commit", "date", "output"):
        merging.add_argument("--" + option, required=True)
    merging.add_argument("rounds", nargs="+")
    showing = commands.add_parser("table")
    showing.add_argument("record")
    arguments = parser.parse_args()
    if arguments.command == "merge":
        merge(arguments)
    else:
        table(arguments.record)


if __name__ == "__main__":
    sys.exit(main())
