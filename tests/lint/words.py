"""Goal: words that were retired for the field's do not come back (docs/glossary.md).

Method: words.txt beside this file has a line each: the word, the folders where it is retired ("*" for all), and what stands
for it. Names of files and folders, and identifiers outside of comments and strings, are taken apart at "_" and compared.
Usage: words.py ROOT. Prints each find as FILE:LINE and exits 1 when there is one.
"""

import pathlib
import re
import sys

TOPS = ("src", "include", "tests", "bench", "examples")
SUFFIXES = {".c", ".h", ".cu", ".cuh", ".cpp", ".py"}
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
C_NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
PY_NO_CODE = re.compile(r'"""(?:\\.|[^\\])*?"""|#[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')


def read_list(path):
    words = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            word, folders, instead = (part.strip() for part in line.split("|"))
            words[word] = (folders.split(), instead)
    return words


def is_retired(words, part, file):
    folders, _ = words.get(part.lower(), ((), ""))
    return any(folder == "*" or str(file).startswith(folder + "/") for folder in folders)


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def find_in(words, file, text):
    """[(line, word)]"""
    found = [(0, part) for name in file.parts for part in re.split(r"[_.\-]", name) if is_retired(words, part, file)]
    code = (PY_NO_CODE if file.suffix == ".py" else C_NO_CODE).sub(blank, text)
    for number, line in enumerate(code.splitlines(), 1):
        for name in IDENTIFIER.findall(line):
            found += [(number, part) for part in name.split("_") if is_retired(words, part, file)]
    return found


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    words = read_list(pathlib.Path(__file__).with_name("words.txt"))
    count = 0
    for top in TOPS:
        for path in sorted((root / top).rglob("*")):
            file = path.relative_to(root)
            if path.suffix not in SUFFIXES or "corpus" in file.parts:
                continue
            for number, word in find_in(words, file, path.read_text(errors="replace")):
                print(f'{file}:{number}: "{word}": say {words[word.lower()][1]}')
                count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
