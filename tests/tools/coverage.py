"""Goal: scripts/coverage.py counts what ran, and says which file a killed process's broken counts do not tell of.

Method: a library of two files, one of which does not run, by a compiler with --coverage; its counts are then cut short,
as they are when a process is killed that writes them.
Usage: coverage.py COMPILER
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

COMPILER = sys.argv[1]
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "coverage.py"
FILES = {"one.c": "int one(void)\n{\n    return 1;\n}\n", "two.c": "int two(void)\n{\n    return 2;\n}\n"}


class Coverage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.build = self.root / "build"
        for path in ("src", "tests", "build/fake"):
            (self.root / path).mkdir(parents=True)
        for name, text in FILES.items():
            (self.root / "src" / name).write_text(text)
        (self.root / "tests/coverage.txt").write_text("")
        (self.root / "main.c").write_text("int one(void);\nint main(void)\n{\n    return one() - 1;\n}\n")
        sources = [f"../src/{name}" for name in FILES] + ["../main.c"]
        subprocess.run([COMPILER, "--coverage", *sources, "-o", "program"], cwd=self.build, check=True)
        subprocess.run([self.build / "program"], check=True)

    def check(self):
        command = [sys.executable, SCRIPT, self.root, self.build]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def counts_of(self, name):
        (counts,) = self.build.glob(f"*{name}*.gcda")
        return counts

    def test_a_file_that_does_not_run(self):
        said = self.check()
        self.assertEqual(said.returncode, 1, said.stdout + said.stderr)
        self.assertIn("src/two.c: NOT EXPLAINED", said.stdout)
        self.assertNotIn("src/one.c", said.stdout)

    def test_an_explained_one(self):
        (self.root / "tests/coverage.txt").write_text("src/two.c: nobody calls it\n")
        said = self.check()
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)

    def test_broken_counts(self):
        (self.root / "tests/coverage.txt").write_text("src/two.c: nobody calls it\n")
        for length in (0, 8, 60):
            with self.subTest(length=length):
                os.truncate(self.counts_of("one"), length)
                said = self.check()
                self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
                self.assertIn("its counts are broken", said.stderr)

    def test_an_object_of_which_nothing_is_told(self):
        (self.root / "tests/coverage.txt").write_text("src/two.c: nobody calls it\n")
        (note,) = self.build.glob("*one*.gcno")
        os.truncate(note, 8)
        said = self.check()
        self.assertEqual(said.returncode, 1, said.stdout + said.stderr)

    def test_broken_counts_excuse_no_other_file(self):
        os.truncate(self.counts_of("one"), 0)
        said = self.check()
        self.assertEqual(said.returncode, 1, said.stdout + said.stderr)
        self.assertIn("src/two.c is below", said.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
