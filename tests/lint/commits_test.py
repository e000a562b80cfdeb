"""Goal: the test of commits refuses subjects that are too long or name no area. Method: subjects made by hand."""

import unittest

import commits


class CommitsTest(unittest.TestCase):
    def test_right(self):
        for subject in ("ep: a limit", "src/os: x", "tests, docs: both", "a: " + "b" * 69):
            self.assertIsNone(commits.fault_of(subject), subject)

    def test_wrong(self):
        for subject in ("A limit of groups", "ep:no blank", "ep: ", "ep: it ends.", "README: a table", "Revert: x", "a: " + "b" * 70, "x" * 41 + ": long area"):
            self.assertIsNotNone(commits.fault_of(subject), subject)


if __name__ == "__main__":
    unittest.main()
