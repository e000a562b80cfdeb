"""Goal: PEs that load different builds of weft are told so at creation, whatever it is that the builds have different.

Method: a second libweft.so is made of the same objects, as if of other sources, and one PE of a world loads it. Which
sources count: a copy of the tree in which one number of one file is changed, for each file that says how memory is
shared, must have another hash; the copy itself, and one with a test or a tool changed, must not.
Usage: builds.py SOURCE-FOLDER WEFTRUN PROGRAM OTHER-LIBRARY CMAKE
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

root, weftrun, program, other, cmake = sys.argv[1:6]
root = pathlib.Path(root)

# A file, and a number in it that builds may have different.
CHANGES = [
    ("include/weft/protocol/coll_layout.h", "WEFTI_COLL_LINES 64u"),
    ("include/weft/protocol/layout.h", "uint64_t unused_abort[7]"),
    ("include/weft/protocol/ep_layout.h", "WEFTI_EP_CACHE_LINE_BYTES 64"),
    ("include/weft/device/dev.h", "WEFTI_DEV_RING_ENTRIES 128"),
    ("include/weft/inline/view.h", "WEFTI_VIEW_ABI 3"),
    ("src/cuda/ep/abi.h", None),
    ("src/cuda/proxy/mail.c", None),
    ("src/world/tuning.c", "PAIRS_PES_MAX 63"),
    ("src/ep/tuning.c", None),
    ("src/team/agree.c", None),
    ("src/coll/step.c", None),
    ("src/bootstrap/tree/message.h", None),
    ("src/os/posix/record.c", None),
]
SAME = ["src/tools/weft-info.c", "src/world/hello_test.c", "src/testing/sim/run.c", "tests/multi/coll.c"]


def run_pes(library):
    """Two PEs, of which the second loads `library`, or the same; their exit status and what they printed."""
    preload = f'if [ "$WEFT_LOCAL_PE" = 1 ]; then export LD_PRELOAD={library}; fi; ' if library else ""
    command = [weftrun, "-n", "2", "sh", "-c", f"{preload}exec {program}"]
    environment = dict(os.environ, WEFT_DEADLINE="60")
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=100)
    return result.returncode, result.stdout + result.stderr


class Load(unittest.TestCase):
    def test_one_build(self):
        status, text = run_pes(None)
        self.assertEqual(status, 0, text)

    def test_two_builds(self):
        status, text = run_pes(other)
        self.assertNotEqual(status, 0, text)
        self.assertIn("different builds of weft", text)
        self.assertIn("WEFT_ERR_MISMATCH", text)
        self.assertRegex(text, r"PE 1 runs \d+\.\d+\.\d+, build [0-9a-f]{16}, but PE 0 \d+\.\d+\.\d+, build [0-9a-f]{16}")


class Hash(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.copy = pathlib.Path(cls.folder.name)
        for name in ("include", "src"):
            shutil.copytree(root / name, cls.copy / name)
        cls.original = cls.hash_of(root)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def hash_of(cls, tree):
        header = cls.copy / "hash.h"
        script = root / "cmake/source_hash.cmake"
        subprocess.run([cmake, f"-DROOT={tree}", f"-DHEADER={header}", "-P", script], check=True)
        return header.read_text()

    def hash_with(self, name, change):
        file = self.copy / name
        kept = file.read_text()
        file.write_text(change(kept))
        result = self.hash_of(self.copy)
        file.write_text(kept)
        return result

    def test_a_copy_is_the_same(self):
        self.assertEqual(self.hash_of(self.copy), self.original)

    def test_a_number(self):
        for name, number in CHANGES:
            with self.subTest(file=name):
                text = (root / name).read_text()
                if number is None:
                    number = re.search(r"\b[a-z]\w* *[=<+] *\d+|\w \d+\b", text).group()
                self.assertIn(number, text)
                changed = number + " + 1" if not number.endswith("]") else number[:-1] + " + 8]"
                self.assertNotEqual(self.hash_with(name, lambda all: all.replace(number, changed, 1)), self.original)

    def test_what_is_not_the_library(self):
        for name in SAME:
            if (self.copy / name).exists():
                with self.subTest(file=name):
                    self.assertEqual(self.hash_with(name, lambda all: all + "\n"), self.original)

    def test_a_new_file(self):
        new = self.copy / "src/coll/new.c"
        new.write_text("int wefti_new;\n")
        self.assertNotEqual(self.hash_of(self.copy), self.original)
        new.unlink()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
