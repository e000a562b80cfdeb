"""Goal: the test of symbols finds arrows that point up and circles, and nothing else.

Method: arrows made by hand.
"""

import unittest

import symbols


class SymbolsTest(unittest.TestCase):
    def test_upward(self):
        wrong = symbols.find_upward({"heap/a": {"world/b": "wefti_b"}, "world/b": {"heap/c": "wefti_c"}})
        self.assertEqual(wrong, ["src/heap/a.c uses wefti_b of src/world/b.c, which is a layer above"])

    def test_side_by_side(self):
        self.assertEqual(symbols.find_upward({"ep/a": {"ep/b": "x"}, "cuda/a": {"world/b": "x"}}), [])

    def test_circles(self):
        arrows = {"a": {"b": "x"}, "b": {"c": "x"}, "c": {"a": "x"}, "d": {"a": "x"}, "e": {"f": "x"}, "f": {"e": "x"}}
        self.assertEqual(symbols.find_circles(arrows), [["a", "b", "c"], ["e", "f"]])

    def test_no_circle(self):
        self.assertEqual(symbols.find_circles({"a": {"b": "x", "c": "x"}, "b": {"c": "x"}}), [])


if __name__ == "__main__":
    unittest.main()
