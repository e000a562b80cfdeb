"""Goal: a call of the face costs what weft's own costs: the code differs by where the state is loaded from.

Method: costs.cu as PTX. A kernel that calls the face is compared with one that gives weft's call the same struct in constant
memory, and with one that has it as a parameter: each kind of access to global and shared memory, of atomic, fence, barrier
and call must be there as often, and as many instructions but for six at most: the compiler may lay branches out otherwise.
A warpgroup's barrier is that of its first warp between two meetings of its four, and reads a fault once more.
Usage: costs.py NVCC HOME_OF_NVSHMEM. Exit 77: no nvcc.
"""

import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CALLS = "put get put_signal p add quiet barrier".split()
MEETINGS = {"bar.sync": 1, "bar.red.or.pred": 1}
INSTRUCTIONS_APART = 6
KINDS = re.compile(r"^(@!?%p\d+ )?((?:ld|st|atom|red|fence|membar|bar|barrier|call|vote|shfl|nanosleep)\b[\w.]*)")


def body(code, name):
    found = re.search(rf"\.entry {name}\(.*?\n\{{\n(.*?)\n\}}\n", code, re.S)
    lines = []
    for line in found.group(1).splitlines():
        line = line.split("//")[0].strip()
        if line and not line.startswith("."):
            lines.append(line)
    return lines


def accesses(lines):
    kinds = collections.Counter()
    for line in lines:
        found = KINDS.match(line)
        if found and not re.match(r"ld\.(param|const)", found.group(2)):
            kinds[found.group(2)] += 1
    return kinds


def main():
    nvcc, home = sys.argv[1:]
    if shutil.which(nvcc) is None:
        print("no nvcc here")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        ptx = pathlib.Path(folder) / "costs.ptx"
        subprocess.run([nvcc, "-std=c++17", "-arch=sm_90", "-ptx", f"-I{home}/include", HERE / "costs.cu", "-o", ptx], check=True)
        code = ptx.read_text()
    wrong = 0
    for call in CALLS:
        face, weft, value = (body(code, f"{call}_by_{way}") for way in ("face", "weft", "value"))
        is_short = all(abs(len(face) - len(other)) <= INSTRUCTIONS_APART for other in (weft, value))
        is_alike = accesses(face) == accesses(weft) == accesses(value) != {}
        print(f"{call}: {len(face)} instructions by the face, {len(weft)} by weft, {len(value)} with the state as a parameter"
              f"{'' if is_short else '; too far apart'}{'' if is_alike else '; other accesses'}")
        wrong += not is_short or not is_alike
    group, warp = (accesses(body(code, f"warpgroup_by_{way}")) for way in ("face", "weft"))
    more = {kind: count for kind, count in (group - warp).items() if not kind.startswith("ld.")}
    print(f"warpgroup: beside a warp's barrier {more}")
    wrong += more != MEETINGS or bool(warp - group)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
