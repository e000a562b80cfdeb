"""Goal: languages that do not read C headers can call all of weft.

Method: load libweft.so by ctypes, look up every function of the public headers by name, and use a world of one PE through
them, inline calls of every word type included. Usage: ffi.py ROOT LIBRARY.
"""

import ctypes
import os
import pathlib
import sys

root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root / "scripts"))
import public_api  # noqa: E402  (found by the path above)

NUMBERS = {
    "int": ctypes.c_int,
    "long": ctypes.c_long,
    "uint8": ctypes.c_uint8,
    "int16": ctypes.c_int16,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "size": ctypes.c_size_t,
}


def check(library, status):
    if status != 0:
        library.weft_last_error.restype = ctypes.c_char_p
        raise RuntimeError(f"status {status}: {library.weft_last_error().decode()}")


def look_up_all(library):
    names = public_api.public_functions(root / "include")
    missing = [name for name in names if not hasattr(library, name)]
    assert not missing, f"not in the library: {missing}"
    assert len(names) > 1000, f"only {len(names)} functions were found in the headers"
    print(f"{len(names)} functions found")


def put_and_get(library, world, block):
    for name, kind in NUMBERS.items():
        put = getattr(library, f"weft_{name}_p")
        get = getattr(library, f"weft_{name}_g")
        put.argtypes = [ctypes.c_void_p, ctypes.c_void_p, kind, ctypes.c_int]
        value = kind()
        check(library, put(world, block, 42, 0))
        check(library, get(world, block, 0, ctypes.byref(value)))
        assert value.value == 42, f"weft_{name}_p, then _g: {value.value}"
    add = library.weft_long_atomic_fetch_add
    add.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_int, ctypes.c_void_p]
    old = ctypes.c_long()
    check(library, library.weft_long_p(world, block, 40, 0))
    check(library, add(world, block, 2, 0, ctypes.byref(old)))
    assert old.value == 40 and ctypes.c_long.from_address(block.value).value == 42


def read_counters(library, world):
    library.weft_world_counter.restype = ctypes.c_char_p
    counters = {}
    value = ctypes.c_uint64()
    while name := library.weft_world_counter(world, ctypes.c_size_t(len(counters)), ctypes.byref(value)):
        counters[name.decode()] = value.value
    assert counters["heap_allocs"] == 1 and counters["barriers"] == 0 and counters["create_ns"] > 0, counters


def main():
    for name in [name for name in os.environ if name.startswith("WEFT_")]:
        del os.environ[name]
    library = ctypes.CDLL(sys.argv[2])
    look_up_all(library)
    world = ctypes.c_void_p()
    block = ctypes.c_void_p()
    check(library, library.weft_world_create(None, ctypes.byref(world)))
    check(library, library.weft_malloc(world, ctypes.c_size_t(64), ctypes.byref(block)))
    put_and_get(library, world, block)
    read_counters(library, world)
    check(library, library.weft_free(world, block))
    check(library, library.weft_world_destroy(world))
    print("a world was used by ctypes")


main()
