"""Tell which versions of the library of a network there are to test with, a line each: VERSION, a tab and the folder in
which to look for it, empty for the one that the system has. Another is taken from the folder in the variable
WEFT_TEST_LIBFABRIC or WEFT_TEST_UCX, which has to have it, or from Python's packages (mpich or openmpi have libfabric
2, libucx-cu12 has UCX). A version is what the library says when it is loaded as weft loads it.

Usage: libraries.py ofi|ucx
"""

import glob
import os
import site
import subprocess
import sys
import sysconfig

LIBRARIES = {
    "ofi": ("WEFT_TEST_LIBFABRIC", "libfabric.so.1", ["lib/mpich", "lib/openmpi"],
            "v = lib.fi_version(); print(f'{v >> 16}.{v & 0xffff}')"),
    "ucx": ("WEFT_TEST_UCX", "libucp.so.0", [f"lib/python3*/{at}-packages/libucx/lib" for at in ("site", "dist")],
            "lib.ucp_get_version_string.restype = ctypes.c_char_p; print(lib.ucp_get_version_string().decode())"),
}


def version_in(folder, soname, ask):
    """The version that a program with this folder in LD_LIBRARY_PATH gets; None if it gets none."""
    environment = os.environ | ({"LD_LIBRARY_PATH": folder} if folder else {})
    done = subprocess.run([sys.executable, "-c", f"import ctypes; lib = ctypes.CDLL('{soname}'); {ask}"], text=True,
                          env=environment, capture_output=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def folders_of_packages(places):
    prefixes = dict.fromkeys([sys.prefix, sysconfig.get_path("data"), "/usr/local", site.getuserbase()])
    return [folder for prefix in prefixes for place in places for folder in sorted(glob.glob(f"{prefix}/{place}"))]


def main(transport):
    variable, soname, places, ask = LIBRARIES[transport]
    system = version_in("", soname, ask)
    if system is not None:
        print(f"{system}\t")
    given = os.environ.get(variable)
    for folder in [given] if given else folders_of_packages(places):
        version = version_in(folder, soname, ask) if os.path.exists(f"{folder}/{soname}") else None
        if version is None and given:
            sys.exit(f"{variable}: {folder} has no {soname} that can be loaded")
        if version is not None and (given or version != system):
            print(f"{version}\t{os.path.abspath(folder)}")
            return


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in LIBRARIES:
        sys.exit(__doc__)
    main(sys.argv[1])
