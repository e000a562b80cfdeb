"""Goal: the test of paths finds names that are nowhere, and nothing else.

Method: lines and a tree made by hand.
"""

import pathlib
import unittest

import paths

TREE = {"src/base/env.h", "src/coll/scan", "src/coll/scan/scan.c"}


def find(line):
    return [name for _, name in paths.wrong_names(pathlib.Path("docs/page.md"), line, None, TREE)]


class PathsTest(unittest.TestCase):
    def test_there(self):
        self.assertEqual(find("`src/base/env.h`, `env.h`, `base/env.h`, `src/coll/scan`, `scan/NAME.c`, `src/coll/*/*.c`"), [])

    def test_nowhere(self):
        self.assertEqual(find("`src/base/no.h` and `no.c`, `base/scan.c`"), ["src/base/no.h", "no.c", "base/scan.c"])

    def test_alternatives(self):
        self.assertEqual(find("`src/base/{env,no}.h`"), ["src/base/no.h"])

    def test_no_paths(self):
        self.assertEqual(find("`weft_malloc`, `build/release/hello.c`, `-n/-m`, `a.b`, [web](https://example.org/x.c)"), [])

    def test_link(self):
        self.assertEqual(find("[a page](nowhere.md#part)"), ["nowhere.md"])

    def test_records(self):
        tree = {"bench/records/a.jsonl", "bench/records/b.jsonl", "bench/records/c.jsonl", "bench/suite/pairs.h"}
        texts = ["Record a.jsonl says so", "see `bench/records/c.jsonl`"]
        self.assertEqual(paths.unnamed_records(tree, texts), ["bench/records/b.jsonl"])


if __name__ == "__main__":
    unittest.main()
