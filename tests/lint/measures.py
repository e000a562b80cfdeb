"""Goal: the source stays readable, by measures that can be compared from one version to the next.

Method: the length of functions (lines between the braces; the formatter puts those in the first column), circles of
includes, circles and upward arrows of symbols (symbols.py), lines of more than 120 columns, retired words (words.py).
Usage: measures.py ROOT BUILD. Prints each measure with its bar, and exits 1 when one is missed.
"""

import collections
import pathlib
import sys

import layers
import symbols
import words

COLUMNS = 120
LENGTH_P99_MAX = 40
LENGTH_MAX = 60
TEST_LENGTH_P99_MAX = 50
TEST_LENGTH_MAX = 80


def function_lengths(text):
    lengths, start = [], None
    for number, line in enumerate(text.splitlines()):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            lengths.append(number - start - 1)
            start = None
    return lengths


def percentile(values, share):
    """The value that at most a part 1 - share of all exceeds."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def include_arrows(root):
    arrows = collections.defaultdict(dict)
    for top in ("src", "include"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in layers.SUFFIXES:
                name = str(path.relative_to(root / top))
                for line in path.read_text(errors="replace").splitlines():
                    match = layers.INCLUDE.match(line)
                    if match and match.group(1) == '"':
                        arrows[name][match.group(2)] = line
    return arrows


def largest(circles):
    return max(map(len, circles), default=0)


def is_test(root, path):
    return path.relative_to(root).parts[0] == "tests" or path.stem.endswith("_test")


def length_measures(lengths, what, p99_max, length_max):
    return [(f"lines of {what}, 99 of 100 of {len(lengths)}", percentile(lengths, 0.99), p99_max),
            (f"lines of {what}, the longest", max(lengths), length_max)]


def measure(root, build):
    """[(what, value, bar)]"""
    sources = [path for top in ("src", "include", "bench", "examples", "tests") for path in
               sorted((root / top).rglob("*")) if path.suffix in layers.SUFFIXES]
    lengths, test_lengths, long_lines, retired = [], [], 0, 0
    retired_words = words.read_list(pathlib.Path(words.__file__).with_name("words.txt"))
    for path in sources:
        text = path.read_text(errors="replace")
        (test_lengths if is_test(root, path) else lengths).extend(function_lengths(text))
        long_lines += sum(len(line) > COLUMNS for line in text.splitlines())
        retired += len(words.find_in(retired_words, path.relative_to(root), text))
    arrows = symbols.arrows_of(symbols.objects_of(root, build))
    return [
        *length_measures(lengths, "a function", LENGTH_P99_MAX, LENGTH_MAX),
        *length_measures(test_lengths, "a function of tests", TEST_LENGTH_P99_MAX, TEST_LENGTH_MAX),
        ("files in the largest circle of includes", largest(symbols.find_circles(include_arrows(root))),
         symbols.CIRCLE_MAX),
        ("files in the largest circle of symbols", largest(symbols.find_circles(arrows)), symbols.CIRCLE_MAX),
        ("upward includes", len(layers.find_wrong(root)), 0),
        ("upward symbols", len(symbols.find_upward(arrows)), 0),
        (f"lines of more than {COLUMNS} columns", long_lines, 0),
        ("retired words", retired, 0),
    ]


def main():
    root, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    missed = 0
    for what, value, bar in measure(root, build):
        missed += value > bar
        print(f"{what}: {value} (at most {bar}){' MISSED' if value > bar else ''}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
