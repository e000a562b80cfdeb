"""Goal: the code that the documentation shows is the code of the examples, which is compiled and run.

Method: in docs/*.md, between a line `<!-- NAME.c TAG -->` and the next `<!-- end -->`, there must be a block of C that is
what stands in examples/NAME.c between two lines `/* [TAG] */`. Usage: excerpts.py ROOT [--write]; --write brings the
documentation up to date, else each difference is told and the exit status is 1.
"""

import pathlib
import re
import sys

PLACE = re.compile(r"(<!-- (\w+\.c) ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.S)


def excerpt(root, name, tag):
    parts = (root / "examples" / name).read_text().split(f"/* [{tag}] */\n")
    if len(parts) != 3:
        raise SystemExit(f"examples/{name}: /* [{tag}] */ must stand there twice")
    return f"```c\n{parts[1]}```\n"


def main():
    root = pathlib.Path(sys.argv[1])
    writes = sys.argv[2:] == ["--write"]
    wrong = places = 0
    for page in sorted((root / "docs").glob("*.md")):
        text = page.read_text()
        places += len(PLACE.findall(text))
        told = PLACE.sub(lambda m: m[1] + excerpt(root, m[2], m[3]) + m[5], text)
        if told != text and writes:
            page.write_text(told)
        elif told != text:
            print(f"{page}: code is not that of the examples; run tests/lint/excerpts.py . --write")
            wrong += 1
    if places == 0:
        print("no excerpt found")
    return wrong > 0 or places == 0


if __name__ == "__main__":
    sys.exit(main())
