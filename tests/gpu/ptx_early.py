"""Goal: a kernel that may be launched before the one in front of it on the stream has ended touches no memory before it has waited.

Method: in each kernel of the PTX of src/cuda/kernels.cu, griddepcontrol.wait must come before the first access to memory
(its parameters are constant), before the first call and, as code is in that order, before any branch; and in no other place.
Usage: ptx_early.py FILE.ptx.
"""

import re
import sys

WAIT = r"\bgriddepcontrol\.wait\b"
# What may not come before it. Parameters, and the addresses of variables, are not memory that another kernel writes.
BEFORE = r"^\s*(?:@!?%p\d+\s+)?((?:ld|ldu|st|atom|red|cp|prefetch|multimem|call|bra|brx|fence|membar)\b(?!\.param)[\w.:]*)"


def kernels(text):
    return {m.group(1): m.group(2) for m in re.finditer(r"\.entry (\w+)\((?:.*?)^\{(.*?)^\}", text, re.S | re.M)}


def faults(bodies):
    found = [] if bodies else ["no kernels"]
    for name, body in bodies.items():
        waits = list(re.finditer(WAIT, body))
        if len(waits) != 1:
            found.append(f"{name}: {len(waits)} griddepcontrol.wait instead of one")
            continue
        early = re.search(BEFORE, body[: waits[0].start()], re.M)
        if early:
            found.append(f"{name}: {early.group(1)} before griddepcontrol.wait")
    return found


if __name__ == "__main__":
    found = kernels(open(sys.argv[1]).read())
    wrong = faults(found)
    print("\n".join(wrong) if wrong else f"{len(found)} kernels wait first")
    sys.exit(1 if wrong else 0)
