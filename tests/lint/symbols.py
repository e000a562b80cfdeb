"""Goal: the layers point one way in what they call, too, and no more than a few files call one another in a circle.

Method: the library's objects are read with nm: a name that one file uses and another defines is an arrow. That covers the
public functions, which headers of any layer may declare, and what inline calls lead to. Arrows follow the order of the
layers (layers.py), and a circle has at most CIRCLE_MAX files. Usage: symbols.py ROOT BUILD. Prints each wrong arrow and
each circle, and exits 1 when there is one.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys

import layers

CIRCLE_MAX = 3
OBJECT = re.compile(r"weft_objects\.dir/src/(.*)\.c\.o$")


def objects_of(root, build):
    """The library's objects by the source file's name below src."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        output = re.search(r" -o (\S+)", entry["command"]).group(1)  # cmake 3.18 has no entry "output"
        match = OBJECT.search(output)
        path = build / output
        if match and path.is_file() and pathlib.Path(entry["file"]).is_relative_to(root):
            found[match.group(1)] = path
    return found


def read_names(objects):
    """{file: (what it defines, what it uses)}. One process reads all: starting one each takes longer than reading."""
    names = {file: (set(), set()) for file in objects}
    file_of = {str(path): file for file, path in objects.items()}
    said = subprocess.run(["nm", "-A", *file_of], capture_output=True, text=True, check=True).stdout
    for line in said.splitlines():
        path, _, symbol = line.partition(":")
        kind, name = symbol.split()[-2:]
        defined, used = names[file_of[path]]
        if kind == "U":
            used.add(name)
        elif kind in "TDBRVWC":
            defined.add(name)
    return names


def arrows_of(objects):
    """{file: {other: a name that it uses of it}}"""
    names = read_names(objects)
    owner = {name: file for file, (defined, _) in names.items() for name in defined}
    arrows = collections.defaultdict(dict)
    for file, (_, used) in names.items():
        for name in sorted(used):
            if owner.get(name, file) != file:
                arrows[file][owner[name]] = name
    return arrows


def rank_of(file):
    layer = file.split("/")[0]
    for rank, group in enumerate(layers.ORDER):
        if layer in group:
            return rank
    return None


def find_upward(arrows):
    wrong = []
    for file, others in sorted(arrows.items()):
        for other, name in sorted(others.items()):
            low, high = rank_of(file), rank_of(other)
            if low is not None and high is not None and high > low:
                wrong.append(f"src/{file}.c uses {name} of src/{other}.c, which is a layer above")
    return wrong


def find_circles(arrows):
    """Sets of files each of which leads to all others, of more than one file."""
    number, low, stack, on_stack, circles = {}, {}, [], set(), []

    def visit(file):
        number[file] = low[file] = len(number)
        stack.append(file)
        on_stack.add(file)
        for other in sorted(arrows.get(file, {})):
            if other not in number:
                visit(other)
                low[file] = min(low[file], low[other])
            elif other in on_stack:
                low[file] = min(low[file], number[other])
        if low[file] == number[file]:
            circle = []
            while not circle or circle[-1] != file:
                circle.append(stack.pop())
                on_stack.remove(circle[-1])
            if len(circle) > 1:
                circles.append(sorted(circle))

    for file in sorted(arrows):
        if file not in number:
            visit(file)
    return sorted(circles)


def main():
    root, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    objects = objects_of(root, build)
    if not objects:
        print(f"no objects of the library in {build}")
        return 1
    arrows = arrows_of(objects)
    wrong = find_upward(arrows)
    wrong += [f"{len(circle)} files call one another in a circle: " + ", ".join(f"src/{file}.c" for file in circle)
              for circle in find_circles(arrows) if len(circle) > CIRCLE_MAX]
    for entry in wrong:
        print(entry)
    print(f"{len(objects)} objects, {sum(map(len, arrows.values()))} arrows")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
