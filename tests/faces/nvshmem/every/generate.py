"""Make the program that calls every routine of kernels, for every type and scope.

    generate.py OUT PARTS [THIRD]     part0.cu ..., the kernels and the tables of what they call, as many reduce0.cu ... of
                                      the reductions, which compile for long, and parts.h, their names

THIRD, 0 to 2: a third of the reductions, each type and operation in one scope, another one for each third; else all. What the
kernels and the tables mean is told in kernels.cuh and model.cc. The routines are those of the face's tables; one
that nothing here calls, and that once.cuh does not name, is a mistake.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parents[3] / "src" / "faces" / "nvshmem"))
from generate import KERNEL, SETS, TYPES  # noqa: E402

SCOPES = ("", "_warp", "_block")
ENDS_PROGRAM = {"nvshmem_global_exit"}
ONE_SIDED = {"put": "PUT", "put_nbi": "PUT", "get": "GET", "get_nbi": "GET", "iput": "IPUT", "iget": "IGET", "p": "P", "g": "G",
             "put_signal": "PUT_SIGNAL", "put_signal_nbi": "PUT_SIGNAL"}
MOVES = {"broadcast": "BROADCAST", "fcollect": "FCOLLECT", "alltoall": "ALLTOALL"}
REDUCTIONS = ("and", "or", "xor", "max", "min", "sum", "prod")
ATOMICS = {"fetch": "FETCH", "set": "SET", "swap": "SWAP", "compare_swap": "COMPARE_SWAP", "inc": "INC", "fetch_inc": "FETCH_INC",
           "add": "ADD", "fetch_add": "FETCH_ADD", "and": "AND", "fetch_and": "FETCH_AND", "or": "OR", "fetch_or": "FETCH_OR",
           "xor": "XOR", "fetch_xor": "FETCH_XOR"}
WAITS = {"wait_until": "WAIT", "wait_until_all": "WAIT_ALL", "wait_until_any": "WAIT_ANY", "wait_until_some": "WAIT_SOME",
         "wait_until_all_vector": "WAIT_ALL_VECTOR", "wait_until_any_vector": "WAIT_ANY_VECTOR",
         "wait_until_some_vector": "WAIT_SOME_VECTOR", "test": "TEST", "test_all": "TEST_ALL", "test_any": "TEST_ANY",
         "test_some": "TEST_SOME", "test_all_vector": "TEST_ALL_VECTOR", "test_any_vector": "TEST_ANY_VECTOR",
         "test_some_vector": "TEST_SOME_VECTOR"}
WAITS_OF_TYPE = 14  # set.h's EVERY_NEVER: a type has all or none


def find(*names):
    """The routine of any of the names that is there; or None."""
    return next((name for name in names if name in KERNEL), None)


def routine(kind, form, scope, queue=False):
    """The name of a typed routine: nvshmem_, or nvshmemx_ where it has a scope, a queue pair, or no other form."""
    name = f"{kind}_{form}{scope}"
    return find(f"nvshmemx_qp_{name}") if queue else find(f"nvshmem_{name}", f"nvshmemx_{name}")


def rma_calls(kind, scope):
    for form, what in ONE_SIDED.items():
        for queue in (False, True):
            name = routine(kind, form, scope, queue)
            if name:
                yield (f"QP_{what}" if queue else what), name


def sized_calls(scope, stem):
    """Those without a type, of so many bits, or of bytes: put32, putmem."""
    for form, what in ONE_SIDED.items():
        name = re.sub(r"^(i?(?:put|get))", rf"\g<1>{stem}", form) + scope
        found = find(f"nvshmem_{name}", f"nvshmemx_{name}")
        if found:
            yield what, found


def move_calls(kind, scope):
    for form, what in MOVES.items():
        yield what, routine(kind, form, scope)


def reduce_calls(number, kind, scope, third):
    for index, operation in enumerate(REDUCTIONS):
        for form, what in (("reduce", "REDUCE"), ("reducescatter", "REDUCE_SCATTER")):
            name = routine(kind, f"{operation}_{form}", scope)
            is_wanted = third is None or (number + index + len(what) + SCOPES.index(scope)) % 3 == third
            if name and is_wanted:
                yield f"{operation.upper()}_{what}", name


def kernel_of(name, scope, enter, element, calls, before="", enters=(), leaves=()):
    """A kernel, and its table. An element is what pointers point to, its size and what it is. Each call is a function of its
    own, out of line: compilers take much longer for a kernel that has all of them inline."""
    pointed, size, number = element
    calls = list(calls)
    lines = []
    for i, (what, call) in enumerate(calls):
        see = f" EVERY_SEE({i})" if what.endswith("PUT_SIGNAL") else ""
        first = f" {before}" if what.startswith("TEST") else ""
        if what.startswith(("WAIT", "TEST")):
            first, see = f" every_tell(a, {2 * i + 1});{first}", f" every_tell(a, {2 * i + 2});"
        lines += [f"EVERY_CALL({name}, {i})", f"{{{first} EVERY_{what}({i}, {pointed}, {call}){see} }}"]
    lines += [f"EVERY_KERNEL({name})", "{", f"    EVERY_ENTER_{enter}", *[f"    {one}" for one in enters]]
    lines += [f"    {name}_{i}(a, kind, rank, size);" for i in range(len(calls))]
    lines += [*[f"    {one}" for one in leaves], "}"]
    rows = [f"    {{\"{call}\", EVERY_IS_{what.removeprefix('QP_')}}}," for what, call in calls]
    lines += [f"static const every_call {name}_calls[] = {{", *rows, "};"]
    lines.append(f"EVERY_SET({name}, {scope}, {size}, {number})")
    return "\n".join(lines) + "\n"


def scope_word(scope):
    return {"": "THREAD", "_warp": "WARP", "_block": "BLOCK"}[scope]


def ways_to_complete(scope):
    """What stands between the calls and the barrier: each kernel of a type has another one, told by a number."""
    fence = ["nvshmem_fence();", "nvshmem_quiet();"]
    flush = [f"nvshmemx_flush{scope}();"]
    queues = [f"nvshmemx_qp_fence{scope}(a.next, NULL, 0);", f"nvshmemx_qp_quiet{scope}(a.next, NULL, 0);"]
    return (fence, flush, queues)


def barrier(scope):
    return f"nvshmem{'x' if scope else ''}_barrier_all{scope}();"


def sync_calls(scope):
    """Before and after collectives."""
    x = "x" if scope else ""
    return [f"EVERY_STATUS(nvshmem{x}_team_sync{scope}(a.team))", f"EVERY_STATUS(nvshmem{x}_barrier{scope}(a.team))",
            f"nvshmem{x}_sync_all{scope}();", barrier(scope)]


def element_of(kind):
    return (TYPES[kind], f"sizeof({TYPES[kind]})", f"every_number<{TYPES[kind]}>()")


def reductions_of_type(number, kind, third):
    for scope in SCOPES:
        calls = list(reduce_calls(number, kind, scope, third))
        if calls:
            yield kernel_of(f"{kind}_reduce{scope}", scope_word(scope), scope_word(scope), element_of(kind), calls,
                            leaves=sync_calls(scope))


def kernels_of_type(number, kind):
    element = element_of(kind)
    for scope in SCOPES:
        word = scope_word(scope)
        leaves = [*ways_to_complete(scope)[number % 3], barrier(scope)]
        yield kernel_of(f"{kind}_rma{scope}", word, word, element, rma_calls(kind, scope), leaves=leaves)
        yield kernel_of(f"{kind}_coll{scope}", word, word, element, move_calls(kind, scope), leaves=sync_calls(scope))
    atomics = [(f"ATOMIC_{what}", routine(kind, f"atomic_{form}", "")) for form, what in ATOMICS.items()]
    atomics = [(what, call) for what, call in atomics if call]
    if atomics:
        yield kernel_of(f"{kind}_amo", "ATOMIC", "BLOCK", element, atomics, leaves=["nvshmem_quiet();", barrier("_block")])
    waits = [(what, routine(kind, form, "")) for form, what in WAITS.items() if routine(kind, form, "")]
    if waits:
        all_vector = routine(kind, "wait_until_all_vector", "")
        if len(waits) != WAITS_OF_TYPE:
            sys.exit(f"generate.py: {kind} has {len(waits)} waits and tests of {WAITS_OF_TYPE}: {' '.join(call for _, call in waits)}")
        yield kernel_of(f"{kind}_wait", "WAIT", "WAIT", element, waits, f"EVERY_ARRIVE({TYPES[kind]}, {all_vector})",
                        [f"EVERY_SENDS({len(waits)}, {TYPES[kind]}, {routine(kind, 'p', '')})", "if (threadIdx.x == EVERY_WAITER) {"],
                        ["}", "__syncthreads();", "if (threadIdx.x == EVERY_WAITER) {", barrier(""), "}"])


def kernels_of_sizes():
    sizes = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16, "mem": 1}
    for scope in SCOPES:
        word = scope_word(scope)
        for number, (stem, size) in enumerate(sizes.items()):
            leaves = [*ways_to_complete(scope)[number % 3], barrier(scope)]
            element = ("void", size, "EVERY_BITS")
            yield kernel_of(f"bits_{stem}_rma{scope}", word, word, element, sized_calls(scope, stem), leaves=leaves)
        moves = [(what, find(f"nvshmem_{form}mem{scope}", f"nvshmemx_{form}mem{scope}")) for form, what in MOVES.items()]
        yield kernel_of(f"bytes_coll{scope}", word, word, ("void", 1, "EVERY_BITS"), moves, leaves=sync_calls(scope))


def write_part(path, name, kernels, more=()):
    sets = [*re.findall(r"EVERY_SET\((\w+),", "\n".join(kernels)), *more]
    lines = ["/* Made by generate.py. */", '#include "faces/nvshmem/every/kernels.cuh"',
             *[f'#include "faces/nvshmem/every/{one}.cuh"' for one in more], "", *kernels,
             f"extern const every_set *const {name}[] = {{", *[f"    &{one}_set," for one in sets], "    NULL};"]
    path.write_text("\n".join(lines) + "\n")


def main():
    out, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    third = int(sys.argv[3]) if len(sys.argv) > 3 else None
    types = list(enumerate(kind for kind in TYPES if kind in SETS["rma"]))
    kernels = [text for number, kind in types for text in kernels_of_type(number, kind)] + list(kernels_of_sizes())
    reductions = [text for number, kind in types for text in reductions_of_type(number, kind, third)]
    called = set(re.findall(r"\bnvshmemx?_\w+", "\n".join([*kernels, *reductions]) + (HERE / "once.cuh").read_text()))
    missing = sorted(set(KERNEL) - called - ENDS_PROGRAM)
    if missing and third is None:
        sys.exit(f"generate.py: nothing calls {' '.join(missing[:20])}, {len(missing)} in all")
    out.mkdir(parents=True, exist_ok=True)
    names = []
    for part in range(count):
        for stem, texts, more in (("part", kernels, ["once"]), ("reduce", reductions, [])):
            names.append(f"every_{stem}{part}")
            write_part(out / f"{stem}{part}.cu", names[-1], texts[part::count], more if part == 0 else [])
    lines = ["/* Made by generate.py. */", *[f"extern const every_set *const {name}[];" for name in names],
             f"static const every_set *const *const every_parts[] = {{{', '.join(names)}, NULL}};"]
    (out / "parts.h").write_text("\n".join(lines) + "\n")
    print(f"{len(called & set(KERNEL))} routines")


if __name__ == "__main__":
    main()
