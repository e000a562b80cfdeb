"""Goal: the test of the layers finds wrong includes, and does not find fault with right ones.

Method: small trees made in a temporary folder, each with one include to judge.
"""

import pathlib
import tempfile
import unittest

import layers

HEADERS = [
    "include/weft.h",
    "include/weft/world.h",
    "include/weft/protocol/mem.h",
    "src/base/error.h",
    "src/os/os.h",
    "src/bootstrap/bootstrap.h",
    "src/heap/heap.h",
    "src/world/world.h",
    "src/ep/route.h",
    "src/faces/shmem/face.h",
    "src/testing/sim/coroutine.h",
    "src/cuda/ep/abi.h",
    "src/cuda/ep/device/pipe.cuh",
    "src/cuda/ep/routing/count.cuh",
    "src/cuda/ep/throughput/send.cuh",
    "src/cuda/ep/low_latency/send.cuh",
    "src/cuda/ep/host/group.h",
    "tests/support/ledger.h",
]


class LayersTest(unittest.TestCase):
    def judge(self, path, line):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in HEADERS + [path]:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text("")
            (root / path).write_text(f"/* one */\n{line}\n")
            return layers.find_wrong(root)

    def assert_right(self, path, line):
        self.assertEqual(self.judge(path, line), [])

    def assert_wrong(self, path, line, reason):
        found = self.judge(path, line)
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith(f"{path}:2: "), found[0])
        self.assertIn(reason, found[0])

    def test_layers_look_left(self):
        self.assert_right("src/world/create.c", '#include "heap/heap.h"')
        self.assert_right("src/world/create.c", '#include "world/world.h"')
        self.assert_right("src/world/create.c", '#include "weft/world.h"')
        self.assert_right("src/base/error.c", "#include <stdio.h>")

    def test_layers_do_not_look_right(self):
        self.assert_wrong("src/base/error.c", '#include "os/os.h"', "base may not include os")
        self.assert_wrong("src/heap/heap.c", '#include "world/world.h"', "heap may not include world")
        self.assert_wrong("src/common/wait.c", '#  include "bootstrap/bootstrap.h"', "common may not include bootstrap")

    def test_faces_use_public_headers(self):
        self.assert_right("src/faces/shmem/setup.c", '#include "weft/world.h"')
        self.assert_wrong("src/faces/shmem/setup.c", '#include "base/error.h"', "faces/shmem may not include base")
        self.assert_wrong("src/ep/route.c", '#include "faces/shmem/face.h"', "ep may not include faces/shmem")

    def test_ep_uses_public_headers(self):
        self.assert_right("src/ep/dispatch.c", '#include "weft/world.h"')
        self.assert_right("src/ep/dispatch.c", '#include "weft/protocol/mem.h"')
        self.assert_right("src/ep/dispatch.c", '#include "os/os.h"')
        self.assert_wrong("src/ep/dispatch.c", '#include "world/world.h"', "ep may not include world")

    def test_cuda_stays_in_its_folder(self):
        self.assert_right("src/cuda/map.c", "#include <cuda.h>")
        self.assert_wrong("src/heap/device.c", "#include <cuda.h>", "CUDA header")
        self.assert_wrong("include/weft/dev.h", "#include <cuda_runtime_api.h>", "CUDA header")

    def test_rooms_of_ep_kernels(self):
        self.assert_right("src/cuda/ep/low_latency/recv.cuh", '#include "cuda/ep/low_latency/send.cuh"')
        self.assert_right("src/cuda/ep/low_latency/recv.cuh", '#include "cuda/ep/routing/count.cuh"')
        self.assert_right("src/cuda/ep/backward/gradients.cuh", '#include "cuda/ep/throughput/send.cuh"')
        self.assert_right("src/cuda/ep/device/copy.cuh", '#include "cuda/ep/abi.h"')
        self.assert_right("src/cuda/device.h", '#include "cuda/ep/host/group.h"')
        for room, other, file in (
            ("low_latency", "throughput", "send.cuh"),
            ("throughput", "low_latency", "send.cuh"),
            ("routing", "throughput", "send.cuh"),
            ("device", "routing", "count.cuh"),
            ("host", "device", "pipe.cuh"),
            ("device", "host", "group.h"),
        ):
            self.assert_wrong(
                f"src/cuda/ep/{room}/one.cuh",
                f'#include "cuda/ep/{other}/{file}"',
                f"cuda/ep/{room} may not include cuda/ep/{other}",
            )
        self.assert_wrong("src/cuda/ep/cellar/one.cuh", '#include "cuda/ep/device/pipe.cuh"', "is no room")

    def test_nothing_needs_what_tests_stand_on(self):
        self.assert_right("src/testing/sim/run.c", '#include "testing/sim/coroutine.h"')
        self.assert_right("src/testing/fake_driver/grid.c", '#include "testing/sim/coroutine.h"')
        self.assert_right("src/testing/fake_driver/devices.c", "#include <cuda.h>")
        self.assert_wrong("src/testing/sim/run.c", "#include <cuda.h>", "CUDA header")
        self.assert_wrong("src/testing/sim/run.c", '#include "world/world.h"', "testing/sim may not include world")
        self.assert_wrong("src/world/create.c", '#include "testing/sim/coroutine.h"', "world may not include testing/sim")
        self.assert_wrong("src/cuda/map.c", '#include "testing/sim/coroutine.h"', "cuda may not include testing/sim")

    def test_public_headers_and_examples_use_public_headers(self):
        self.assert_wrong("include/weft/heap.h", '#include "heap/heap.h"', "not a public header")
        self.assert_wrong("examples/hello.c", '#include "os/os.h"', "not a public header")
        self.assert_right("examples/hello.c", "#include <weft.h>")

    def test_names(self):
        self.assert_wrong("src/world/create.c", '#include "world.h"', "named without its folder")
        self.assert_wrong("src/world/create.c", '#include "gone/gone.h"', "no such header")
        self.assert_wrong("src/oddments/one.c", '#include "os/os.h"', "is no layer")

    def test_tests_may_use_test_parts(self):
        self.assert_right("src/os/posix/memory_test.c", '#include "support/ledger.h"')
        self.assert_wrong("src/os/posix/memory.c", '#include "support/ledger.h"', "no such header")


if __name__ == "__main__":
    unittest.main()
