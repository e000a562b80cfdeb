"""Goal: the measures count what they say. Method: small texts whose measures are known."""

import unittest

import measures


class Measures(unittest.TestCase):
    def test_lengths(self):
        self.assertEqual(measures.function_lengths("int f(void)\n{\n    a;\n    b;\n}\n\nstruct s {\n    c;\n};\n"), [2])
        self.assertEqual(measures.function_lengths("int f(void)\n{\n}\nint g(void)\n{\n    a;\n}\n"), [0, 1])

    def test_percentile(self):
        self.assertEqual(measures.percentile(list(range(100)), 0.99), 99)
        self.assertEqual(measures.percentile([5] * 99 + [70], 0.98), 5)
        self.assertEqual(measures.percentile([3], 0.99), 3)

    def test_largest(self):
        self.assertEqual(measures.largest([]), 0)
        self.assertEqual(measures.largest([["a", "b"], ["c", "d", "e"]]), 3)


if __name__ == "__main__":
    unittest.main()
