"""Goal: the PTX of the device calls has the orders that the protocol needs, and no weaker ones.

Method: for each kernel of tests/gpu/calls/calls.cu, patterns that must occur, in this order, and patterns that must not.
Usage: ptx_orders.py FILE.ptx [whole|volatile]; whole: of a GPU that has no fences of one direction; volatile: compiled with
WEFT_DEVICE_GET_VOLATILE. Functions that a kernel calls out of line are not followed.
"""

import re
import sys

BLOCK_BARRIER = r"\b(bar|barrier)\.(cta\.)?(sync|red)"
LOOK = r"ld\.relaxed\.sys\.global\.b64"
ASKS_WIDE = r"ld\.relaxed\.sys\.global\.v4"
NEVER_CHANGES = r"ld\.global\.nc"
FENCE = r"\bfence\."

# kernel: (instructions that must occur, in this order; instructions that must not occur)
EXPECTED = {
    "use_put_signal": ([BLOCK_BARRIER, r"st\.global\.v4", BLOCK_BARRIER, r"st\.release\.sys"], []),
    "use_signal_add": ([r"red\.release\.sys\.global\.add\.u64"], [r"red\.relaxed"]),
    "use_wait": ([LOOK, r"fence\.acquire\.sys", r"shfl\.sync", r"bar\.warp\.sync"], []),
    "use_sync": (
        [BLOCK_BARRIER, r"fence\.release\.sys", r"red\.relaxed\.sys", LOOK, r"fence\.acquire\.sys", BLOCK_BARRIER],
        [],
    ),
    "use_bulk": (
        [
            r"fence\.proxy\.async",
            r"cp\.async\.bulk\.shared::cluster\.global\.mbarrier",
            r"cp\.async\.bulk\.global\.shared::cta\.bulk_group",
            r"cp\.async\.bulk\.wait_group 0",
            r"fence\.proxy\.async",
            r"st\.release\.sys",
        ],
        [r"wait_group\.read 0"],
    ),
    "use_get": ([r"ld\.global\.v4"], [NEVER_CHANGES, ASKS_WIDE, FENCE]),
    "use_get_few": ([r"ld\.global\.v4"], [NEVER_CHANGES, ASKS_WIDE, FENCE]),
    "use_get_long": ([ASKS_WIDE], [NEVER_CHANGES, r"ld\.global\.v4"]),
    "use_iget": ([r"ld\.global\.b32"], [NEVER_CHANGES, r"ld\.relaxed\.sys\.global\.b32", FENCE]),
    # Who polls by it sees the word change; and the value does not go by way of the thread's stack.
    "use_g": ([r"ld\.relaxed\.sys\.global\.b64"], [r"ld\.global", FENCE, r"end inline asm\s*st\.local"]),
    "use_packed": (
        [BLOCK_BARRIER, r"st\.relaxed\.sys\.global\.b128", r"ld\.relaxed\.sys\.global\.b128"],
        [r"fence\.(acq_rel|release|sc)", r"st\.release"],
    ),
    "use_plain": (
        [
            r"st\.relaxed\.sys\.global\.b128",
            r"ld\.relaxed\.sys\.global\.b128",
            BLOCK_BARRIER,
            r"st\.global\.v4",
            BLOCK_BARRIER,
            r"fence\.acq_rel\.sys",
            r"st\.relaxed\.sys\.global\.b64",
            LOOK,
            r"fence\.acquire\.sys",
            BLOCK_BARRIER,
        ],
        [],
    ),
    "use_order": ([r"fence\.acq_rel\.sys", r"fence\.sc\.sys"], []),
}

# Where fences have both directions a look acquires.
WHOLE = {
    "use_wait": ([r"ld\.acquire\.sys", r"shfl\.sync", r"bar\.warp\.sync"], [LOOK + r" .*\[%rd1\]"]),
    "use_sync": ([BLOCK_BARRIER, r"fence\.acq_rel\.sys", r"red\.relaxed\.sys", r"ld\.acquire\.sys", BLOCK_BARRIER], []),
    "use_get_few": EXPECTED["use_get_few"],
}

# Each get asks the other GPU.
VOLATILE = {
    name: ([ASKS_WIDE], [NEVER_CHANGES, r"ld\.global\.v4", FENCE]) for name in ("use_get", "use_get_few", "use_get_long")
}
VOLATILE["use_iget"] = ([r"ld\.relaxed\.sys\.global\.b32"], [NEVER_CHANGES, r"ld\.global\.b32"])
VOLATILE["use_g"] = EXPECTED["use_g"]


def kernels(text):
    return {m.group(1): m.group(2) for m in re.finditer(r"\.entry (\w+)\((?:.*?)^\{(.*?)^\}", text, re.S | re.M)}


def faults(bodies, expected):
    found = []
    for name, (wanted, banned) in expected.items():
        body = bodies.get(name)
        if body is None:
            found.append(f"{name}: no such kernel")
            continue
        at = 0
        for pattern in wanted:
            match = re.search(pattern, body[at:])
            if match is None:
                found.append(f"{name}: no {pattern} after position {at}")
                break
            at += match.end()
        found += [f"{name}: {pattern} must not occur" for pattern in banned if re.search(pattern, body)]
    return found


if __name__ == "__main__":
    ways = {"": EXPECTED, "whole": WHOLE, "volatile": VOLATILE}
    wrong = faults(kernels(open(sys.argv[1]).read()), ways["".join(sys.argv[2:])])
    print("\n".join(wrong) if wrong else "all orders as intended")
    sys.exit(1 if wrong else 0)
