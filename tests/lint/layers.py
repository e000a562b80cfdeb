"""Goal: the layers point one way, and only src/cuda knows CUDA.

Method: read every #include of the tree and compare it with the table below. Usage: layers.py ROOT. Prints each wrong
include as FILE:LINE and exits 1 when there is one.
"""

import pathlib
import re
import sys

# Each layer may include itself and what stands before it. A group of several stands side by side.
ORDER = [
    ["base"],
    ["os"],
    ["topo"],
    ["common"],
    ["bootstrap"],
    ["heap"],
    ["device"],
    ["transport"],
    ["world"],
    ["team"],
    ["rma"],
    ["coll"],
    ["gpu"],
    ["create"],
    ["ep"],
    ["ffi", "faces/shmem", "faces/nvshmem", "faces/nccl_ep", "faces/nvte", "python"],
    ["tools"],
]
# These reach the rest of the library through its public headers.
ONLY = {name: {"base", "os", "common", name} for name in ("ep", "ffi", "python")}
ONLY |= {face: {"common", face} for face in ("faces/shmem", "faces/nvshmem", "faces/nccl_ep")}
ONLY["faces/nvte"] = {"common", "faces/nccl_ep", "faces/nvte"}  # whose groups are the NCCL EP face's
# The simulator stands in for the system below and the transport above; CUDA stands behind the seams it implements.
ONLY["testing/sim"] = {"base", "os", "common", "bootstrap", "heap", "device", "transport", "testing/sim"}
ONLY["cuda"] = {name for group in ORDER[:-2] for name in group} | {"cuda"}
# The rooms of the kernels of expert parallelism, and what each may include: throughput and low latency know nothing of
# each other, and host code of the group nothing of device code.
EP_ROOMS = {
    "device": {"device"},
    "routing": {"device", "routing"},
    "throughput": {"device", "routing", "throughput"},
    "low_latency": {"device", "routing", "low_latency"},
    "backward": {"device", "routing", "throughput", "backward"},
    "many": {"device", "routing", "throughput", "backward", "many"},
    "domains": {"device", "domains"},
    "host": {"host"},
}
ONLY["testing/fake_driver"] = ONLY["cuda"] | {"testing/fake_driver", "testing/sim"}  # its threads are coroutines

NCCL_FACES = ("nccl_ep", "nvte")  # which know NCCL's types

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
CUDA_HEADER = re.compile(r"^(cuda|cu[A-Z]|cub/|cooperative_groups|device_launch|nvml|nvrtc|nccl|vector_types)")
SUFFIXES = {".c", ".h", ".cu", ".cuh", ".cc"}


def layer_of(parts):
    """The layer of a file of src/, of whose path these are the parts."""
    folder = "/".join(parts[:2])
    return folder if folder in ONLY else parts[0]


def ep_room_of(path):
    """The room of a path below src/, or None: not of EP's kernels, or a header that all of them share."""
    parts = path.split("/")
    return parts[2] if parts[:2] == ["cuda", "ep"] and len(parts) > 3 else None


def wrong_room(path, target):
    """Why `path` below src/, in a room, may not include `target`, or None."""
    room, other = ep_room_of(path), ep_room_of(target)
    if room is None or other is None:
        return None
    if room not in EP_ROOMS:
        return f'"cuda/ep/{room}" is no room; add it to EP_ROOMS in tests/lint/layers.py'
    return None if other in EP_ROOMS[room] else f"cuda/ep/{room} may not include cuda/ep/{other}"


def allowed_layers(layer):
    if layer in ONLY:
        return ONLY[layer]
    allowed = set()
    for group in ORDER:
        if layer in group:
            return allowed | {layer}
        allowed |= set(group)
    return None


def wrong_include(root, file, quote, target):
    """Why `file` may not include `target`, or None."""
    parts = file.relative_to(root).parts
    in_cuda = parts[:2] in (("src", "cuda"), ("tests", "gpu"), ("bench", "gpu"), ("examples", "gpu"))
    in_cuda = in_cuda or parts[:3] == ("src", "testing", "fake_driver")
    in_cuda = in_cuda or parts[:3] in ((top, "faces", face) for top in ("src", "tests") for face in NCCL_FACES)
    in_cuda = in_cuda or parts[:2] in (("examples", "nccl_ep"), ("examples", "nvte_ep"), ("tests", "install"))
    if CUDA_HEADER.match(target) and not in_cuda:
        return "a CUDA header outside src/cuda"
    public = (root / "include" / target).is_file()
    if public:
        return None if quote == '"' or parts[0] not in ("src", "include") else "a header of this tree in <>"
    if quote == "<":
        return None
    if parts[0] in ("include", "examples"):
        return "not a public header"
    installed = [root / f"src/faces/{face}/include" / target for face in NCCL_FACES]
    if parts[:2] == ("src", "faces") and parts[2] in NCCL_FACES and any(file.is_file() for file in installed):
        return None  # what they install
    if (file.parent / target).is_file() and "/" not in target:
        return "named without its folder"
    if parts[0] in ("tests", "bench"):
        return None
    if file.name.endswith(("_test.c", "conformance.c", "conformance.h")) and (root / "tests" / target).is_file():
        return None
    if not (root / "src" / target).is_file():
        return "no such header in include/ or src/"
    if wrong_room("/".join(parts[1:]), target):
        return wrong_room("/".join(parts[1:]), target)
    layer = layer_of(parts[1:])
    allowed = allowed_layers(layer)
    if allowed is None:
        return f'"{layer}" is no layer; add it to the table in tests/lint/layers.py'
    if layer_of(target.split("/")) not in allowed:
        return f"{layer} may not include {layer_of(target.split('/'))}"
    return None


def find_wrong(root):
    wrong = []
    for top in ("include", "src", "examples", "tests", "bench"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
                match = INCLUDE.match(line)
                reason = match and wrong_include(root, file, match.group(1), match.group(2))
                if reason:
                    wrong.append(f'{file.relative_to(root)}:{number}: "{match.group(2)}": {reason}')
    return wrong


if __name__ == "__main__":
    found = find_wrong(pathlib.Path(sys.argv[1]).resolve())
    for entry in found:
        print(entry)
    sys.exit(1 if found else 0)
