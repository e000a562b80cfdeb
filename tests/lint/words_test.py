"""Goal: the lint of words finds retired ones in identifiers and names of files, and leaves ordinary English alone."""

import pathlib
import unittest

import words

LIST = {"census": (["*"], "join tracker"), "line": (["src/ep"], "call header")}


class WordsTest(unittest.TestCase):
    def find(self, file, text):
        return words.find_in(LIST, pathlib.Path(file), text)

    def test_identifiers(self):
        self.assertEqual(self.find("src/a.c", "int x;\nint wefti_census_init(void);\n"), [(2, "census")])
        self.assertEqual(self.find("src/a.c", "#define WEFTI_CENSUS 1\n"), [(1, "CENSUS")])
        self.assertEqual(self.find("src/a.py", "census = 1\n"), [(1, "census")])

    def test_files(self):
        self.assertEqual(self.find("src/tree/census.c", ""), [(0, "census")])

    def test_comments_and_strings(self):
        self.assertEqual(self.find("src/a.c", '/* a census\n * of all */ // census\nprintf("census");\n'), [])
        self.assertEqual(self.find("src/a.py", '"""census"""\n# census\nprint("census")\n'), [])

    def test_folders(self):
        self.assertEqual(self.find("src/ep/a.c", "int line;\n"), [(1, "line")])
        self.assertEqual(self.find("src/base/a.c", "int line;\n"), [])

    def test_parts(self):
        self.assertEqual(self.find("src/a.c", "int censuses;\n"), [])


if __name__ == "__main__":
    unittest.main()
