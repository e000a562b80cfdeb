"""Goal: in the kernels of expert parallelism a warp meets between one lane's acquire and what the other lanes read by it.

Votes, shuffles and reductions of a warp tell lanes what one of them has seen, but order no memory; bar.warp.sync does.
So on no way through a kernel may there be an acquire, then one of these, then a load of ordinary memory, without a
barrier in between. Method: the instructions of each kernel of the PTX, in all orders that its branches allow. An acquire
is ld.acquire, or an atomic that a fence follows before any other access, but of shared memory behind one of device
memory; those of shared memory, or of an address that may be there, count for loads of shared memory, too. Functions out
of line are read as kernels are; a call of one counts as an acquire if it ends behind one of its own.
Usage: ptx_votes.py FILE.ptx [FEWEST], the fewest acquires that there must be.
"""

import re
import sys

ENTRY = re.compile(r"\.entry (\w+)\((?:.*?)^\{(.*?)^\}", re.S | re.M)
FUNCTION = re.compile(r"\.func\s+(?:\([^)]*\)\s*)?(\w+)\s*\([^;{}]*\)[^;{}]*^\{(.*?)^\}", re.S | re.M)
CALL = re.compile(r"\bcall(?:\.uni)?\s+(?:\([^)]*\)\s*,)?\s*(\w+)[^;]*;")
LABEL = re.compile(r"^\s*(\$?[\w$]+):")
INSTRUCTION = re.compile(r"^\s*(?:@(!?%p\d+)\s+)?([a-z][\w.:]*)\s*([^;]*);?")
VOTE = re.compile(r"^(vote|shfl|redux|match)\.sync")
BARRIER = re.compile(r"^(bar\.warp\.sync|bar\.sync|bar\.red|barrier\.)")
ACQUIRE = re.compile(r"^ld\.acquire")
ATOMIC = re.compile(r"^(atom|ld\.relaxed)\b")
FENCE = re.compile(r"^(fence\.(acq_rel|sc)|membar)")
ACCESS = re.compile(r"^(ld|st|red|cp)\b(?!\.param)(?!\.const)(?!\.local)")
LOAD = re.compile(r"^ld(\.volatile)?(\.global|\.v2|\.v4|\.b\d+|\.u\d+|\.s\d+|\.f\d+)")
LOAD_SHARED = re.compile(r"^ld(\.volatile)?\.shared")

# What a way through a kernel has seen, as bits: an acquire of device memory; then a vote; the same of shared memory;
# the last access was an atomic of device, or of shared memory.
SEEN, VOTED, SEEN_SHARED, VOTED_SHARED, ATOM, ATOM_SHARED = 1, 2, 4, 8, 16, 32


def after(state, op):
    """The state behind an instruction, for one that is before it."""
    if BARRIER.match(op):
        return 0
    if ACQUIRE.match(op):
        return state & ~(ATOM | ATOM_SHARED) | SEEN
    if ATOMIC.match(op):
        either = ATOM | ATOM_SHARED  # through a generic address
        return state & ~either | (ATOM_SHARED if ".shared" in op else ATOM if ".global" in op else either)
    if FENCE.match(op):
        state |= SEEN if state & ATOM else 0
        state |= SEEN_SHARED if state & ATOM_SHARED else 0
        return state & ~(ATOM | ATOM_SHARED)
    if VOTE.match(op):
        state |= VOTED if state & SEEN else 0
        return state | (VOTED_SHARED if state & SEEN_SHARED else 0)
    if ACCESS.match(op):
        is_of_one = state & ATOM == 0 or state & ATOM_SHARED == 0
        return state & ~(ATOM_SHARED if ".shared" in op and is_of_one else ATOM | ATOM_SHARED)
    return state


def blocks_of(body):
    """{name: ([instruction], [names of what may follow])}, and the first name."""
    blocks, name, closed = {"": ([], [])}, "", False
    for line in re.sub(r"//[^\n]*", "", body).splitlines():
        label = LABEL.match(line)
        if label:
            if not closed:
                blocks[name][1].append(label[1])
            name, closed = label[1], False
            blocks[name] = ([], [])
            continue
        if closed or line.strip() in ("", "{", "}") or line.strip().startswith("."):
            continue
        match = INSTRUCTION.match(line)
        if match is None:
            continue
        predicate, op, rest = match.groups()
        if op.split(".")[0] in ("bra", "brx"):
            if op.startswith("brx"):
                raise SystemExit("a branch by a table: teach ptx_votes.py to follow it")
            target = rest.strip().rstrip(";")
            blocks[name][1].append(target)
            if predicate is None:
                closed = True
            else:  # what follows is a block of its own
                fresh = f"{name}+{len(blocks)}"
                blocks[name][1].append(fresh)
                name = fresh
                blocks[name] = ([], [])
        elif op.split(".")[0] in ("ret", "exit") and predicate is None:
            closed = True
        else:
            blocks[name][0].append((op, line.strip()))
    return blocks


def faults_of(body):
    """Loads that are not ordered: their lines. How many acquires there are."""
    blocks = blocks_of(body)
    states = {name: set() for name in blocks}
    states[""] = {0}
    work, found = [""], {}
    while work:
        name = work.pop()
        out = set()
        for state in states[name]:
            for op, line in blocks[name][0]:
                if state & VOTED and LOAD.match(op) or state & VOTED_SHARED and LOAD_SHARED.match(op):
                    found.setdefault(line, op)
                    state &= ~(VOTED | VOTED_SHARED | SEEN | SEEN_SHARED)  # told once
                state = after(state, op)
            out.add(state)
        for follower in blocks[name][1]:
            if not out <= states[follower]:
                states[follower] |= out
                work.append(follower)
    acquires = sum(ACQUIRE.match(op) is not None for instructions, _ in blocks.values() for op, _ in instructions)
    return list(found), acquires


def ends_behind_acquire(body):
    ops = [match[2] for match in map(INSTRUCTION.match, body.splitlines()) if match]
    met = [i for i, op in enumerate(ops) if BARRIER.match(op)]
    return any(ACQUIRE.match(op) for op in ops[met[-1] if met else 0 :])


def with_calls(bodies, functions):
    """The bodies with an acquire in place of each call of a function that ends behind one of its own. What such a one
    calls is left out: a wait that lasts looks at words of the world by acquire, on which nobody relies."""
    acquiring = {name for name, body in functions if ends_behind_acquire(body)}
    return [
        (name, CALL.sub(lambda call: "ld.acquire.called;" if call[1] in acquiring else "called;", body))
        for name, body in bodies
    ]


def main():
    fewest = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    text = open(sys.argv[1]).read()
    functions = FUNCTION.findall(text)
    kernels = with_calls(ENTRY.findall(text) + functions, functions)
    wrong, acquires = [], 0
    for name, body in kernels:
        found, here = faults_of(body)
        acquires += here
        wrong += [f"{name}: an acquire, a vote, no barrier, then {line}" for line in found]
    if acquires < fewest or not kernels:
        wrong.append(f"{len(kernels)} kernels and functions with {acquires} acquires; expected at least {fewest}")
    print("\n".join(wrong) if wrong else f"{len(kernels)} kernels and functions, {acquires} acquires: warps meet before they read")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
