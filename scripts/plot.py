"""Draw the figures of weft-perf and weft-ep-bench, JSON lines as --json writes them, over the parameter that has most values.

Usage: plot.py FIGURES... [-o PICTURE]
  FIGURES   files of JSON lines
  PICTURE   FIGURES.svg of the first file; another ending gives another format
Needs matplotlib (Debian: python3-matplotlib; pip install matplotlib).

Expert parallelism has a panel a call; the rest a panel of times and one of rates. A curve is what is the same but for the
parameter of the axis; what all curves have in common stands above the panels.
"""

import argparse
import collections
import json
import sys

# Parameters any of which may be the axis: the first of those with most values is.
AXES = {
    "bytes": "bytes",
    "blocks": "blocks",
    "tokens": "tokens a rank",
    "hidden": "elements a row",
    "topk": "experts a token",
    "experts": "experts",
}
CALLS = {"ep_dispatch": "dispatch", "ep_combine": "combine", "ep_pair": "dispatch and combine"}
# What is no parameter of a figure: what was measured, where and when.
MEASURED = {"value", "unit", "stat", "n", "low", "high", "rounds", "machine", "commit", "version", "date", "wrong"}

Panel = collections.namedtuple("Panel", "title label curves")  # curves: {name: [(x, y), ...]}
Plot = collections.namedtuple("Plot", "title axis panels")


def read_figures(paths):
    figures = []
    for path in paths:
        with open(path) as lines:
            figures += [json.loads(line) for line in lines if line.strip()]
    return figures


def values_of(figures, key):
    return {figure.get(key) for figure in figures}


def axis_of(figures, keys):
    return max(keys, key=lambda key: len(values_of(figures, key) - {None, 0}))


def text_of(key, value):
    if key == "pes":
        return f"{value} PEs"
    return f"{key}={value}" if isinstance(value, (int, float)) else str(value)


def join(figure, keys):
    return ", ".join(text_of(key, figure[key]) for key in keys if figure.get(key) is not None)


def add_point(panel, name, x, y):
    panel.curves.setdefault(name, []).append((x, y))


def make_plot(figures):
    """What is to be drawn, or None where there is nothing."""
    of_calls = [figure for figure in figures if figure["name"] in CALLS]
    is_ep = bool(of_calls)
    keys_of_axis = ("tokens", "hidden", "topk", "experts") if is_ep else ("bytes", "blocks")
    figures = of_calls if is_ep else [f for f in figures if f["unit"] in ("us", "GB/s")]
    if not figures:
        return None
    axis = axis_of(figures, keys_of_axis)
    figures = [figure for figure in figures if figure.get(axis)]
    ignored = MEASURED | {axis} | ({"name", "bytes"} if is_ep else set())
    keys = [key for key in dict.fromkeys(key for f in figures for key in f) if key not in ignored]
    varying = [key for key in keys if len(values_of(figures, key)) > 1]
    common = join(figures[0], [key for key in keys if key not in varying]) if figures else ""
    panels = {}
    for figure in figures:
        name = join(figure, varying) or str(figure.get("layout", figure["name"]))
        x, value = figure[axis], figure["value"]
        if is_ep:
            panel = panels.setdefault(figure["name"], Panel(CALLS[figure["name"]], figure["unit"], {}))
            add_point(panel, name, x, value)
            continue
        times = panels.setdefault("us", Panel("time of a call", "us", {}))
        rates = panels.setdefault("GB/s", Panel("bytes over time", "GB/s", {}))
        other = figure["bytes"] / value * 1e-3 if value > 0 and figure["bytes"] > 0 else None
        add_point(times if figure["unit"] == "us" else rates, name, x, value)
        if other is not None:
            add_point(rates if figure["unit"] == "us" else times, name, x, other)
    shown = [panel for panel in panels.values() if panel.curves]
    return Plot(common, AXES[axis], shown) if shown else None


def draw(plot, picture):
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot

    count = len(plot.panels)
    drawing, axes = pyplot.subplots(count, 1, figsize=(10, 4 * count), squeeze=False, layout="constrained")
    drawing.suptitle(plot.title)
    for (axis,), panel in zip(axes, plot.panels):
        for name, points in panel.curves.items():
            axis.loglog(*zip(*sorted(points)), marker=".", label=name, base=2)
        axis.set(title=panel.title, ylabel=panel.label, xlabel=plot.axis)
        axis.legend(fontsize="small")
        axis.grid()
    drawing.savefig(picture)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("figures", nargs="+")
    parser.add_argument("-o", "--output")
    arguments = parser.parse_args()
    plot = make_plot(read_figures(arguments.figures))
    if plot is None:
        sys.exit("plot.py: no times or rates over a parameter in " + " ".join(arguments.figures))
    picture = arguments.output or arguments.figures[0] + ".svg"
    try:
        draw(plot, picture)
    except ImportError:
        sys.exit("plot.py: matplotlib is missing: install python3-matplotlib, or pip install matplotlib")
    print(picture)


if __name__ == "__main__":
    main()
