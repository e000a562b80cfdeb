"""What libweft.so exports: src/weft.map lists it, the headers decide it.

exports.py write ROOT             bring src/weft.map up to date; removed names show in the diff
exports.py check ROOT             fail when a function of the headers is not listed, or a listed one is none of theirs
exports.py check-library ROOT LIB fail when the library's dynamic symbols are not those listed, all of version WEFT_0
"""

import pathlib
import re
import subprocess
import sys

import public_api

TEXT = """# The symbols of libweft.so: every public function of weft.h and weft_ep.h, the inline ones included, and what inline
# code calls. `make exports` brings the list up to date; a test compares it with the headers and with the library.
WEFT_0 {{
global:
{public}

    # called by inline code
{private}
local:
    *;
}};
"""


def listed(path):
    return set(re.findall(r"^    (\w+);$", path.read_text(), re.MULTILINE))


def wanted(root):
    include = root / "include"
    return public_api.public_functions(include), public_api.inline_needs(include)


def write(root):
    public, private = wanted(root)
    text = TEXT.format(
        public="\n".join(f"    {name};" for name in public), private="\n".join(f"    {name};" for name in private)
    )
    (root / "src/weft.map").write_text(text)
    return []


def compare(wanted_names, have, missing, superfluous):
    problems = [f"{name}: {missing}" for name in sorted(wanted_names - have)]
    return problems + [f"{name}: {superfluous}" for name in sorted(have - wanted_names)]


def check(root):
    public, private = wanted(root)
    return compare(
        set(public) | set(private),
        listed(root / "src/weft.map"),
        "declared in the public headers, but not listed in src/weft.map: run `make exports`",
        "listed in src/weft.map, but not declared in the public headers",
    )


def check_library(root, library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    symbols = {line.split()[-1] for line in lines.splitlines()} - {"WEFT_0"}
    exported = {re.sub(r"@@?WEFT_0$", "", symbol) for symbol in symbols if "@" in symbol}
    problems = [f"{name}: exported without a version" for name in sorted(symbols) if "@" not in name]
    return problems + compare(
        listed(root / "src/weft.map"), exported, "listed in src/weft.map, but not exported", "exported, but not listed"
    )


if __name__ == "__main__":
    tree = pathlib.Path(sys.argv[2]).resolve()
    if sys.argv[1] == "write":
        found = write(tree)
    elif sys.argv[1] == "check":
        found = check(tree)
    else:
        found = check_library(tree, sys.argv[3])
    for problem in found:
        print(problem)
    sys.exit(1 if found else 0)
