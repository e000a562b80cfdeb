"""The public functions as the compiler sees them: every declaration of weft.h and weft_ep.h, with the header it is in.

Used by scripts/exports.py (what the library exports) and scripts/man.py (its manual pages).
"""

import collections
import os
import pathlib
import re
import shlex
import subprocess

HEADERS = ("weft.h", "weft_ep.h")
NAME = re.compile(r"\b(wefti?_\w+)\s*\(")

Function = collections.namedtuple("Function", "name header text is_static")


def preprocess(include):
    """The public headers after the preprocessor, with its line marks."""
    source = "".join(f'#include "{header}"\n' for header in HEADERS)
    compiler = shlex.split(os.environ.get("CC") or "cc")
    command = compiler + ["-E", f"-I{include}", "-x", "c", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout


def declarations(text):
    """(file, declaration) of what stands at the outermost level, bodies left out."""
    file = ""
    depth = 0
    collected = []
    for line in text.splitlines():
        mark = re.match(r'# \d+ "([^"]*)"', line)
        if mark:
            file = mark.group(1)
            continue
        for part in re.split(r"([{};])", line):
            if part == "{":
                depth += 1
            elif part == "}":
                depth -= 1
            elif depth == 0 and part != ";":
                collected.append(part)
            if depth == 0 and part in ("}", ";"):
                yield file, " ".join(" ".join(collected).split())
                collected = []


def functions(include):
    """Every function of the tree's own headers, by name; a function counts where it is first declared."""
    include = pathlib.Path(include).resolve()
    found = {}
    for file, text in declarations(preprocess(include)):
        match = NAME.search(text)
        if text.startswith("typedef") or not match or not pathlib.Path(file).resolve().is_relative_to(include):
            continue
        header = str(pathlib.Path(file).resolve().relative_to(include))
        found.setdefault(match.group(1), Function(match.group(1), header, text, text.startswith("static")))
    return found


def public_functions(include):
    """The names that users may call, sorted."""
    return sorted(name for name in functions(include) if name.startswith("weft_"))


def inline_needs(include):
    """The library's own functions that inline code calls, sorted: they must be exported, too."""
    return sorted(f.name for f in functions(include).values() if f.name.startswith("wefti_") and not f.is_static)
