"""Goal: the documentation names files that are there.

Method: in README.md, CONTRIBUTING.md, docs and bench, look at every link, and at every word in backticks that reads as a
path. A link must lead to a file beside its page. A path that begins with a folder of the root must be there, or the file
PATH.in of which it is made; any other word with a known ending must be the end of some path of the tree, but on pages
about programs of others, which name files of those. And each record of a benchmark is named by a page, else it is deleted.
Usage: paths.py ROOT. Prints each name that is nowhere as PAGE:LINE, each record that no page names, and exits 1.
"""

import pathlib
import re
import sys

PAGES = ("*.md", "docs/*.md", "bench/**/*.md")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
CODE = re.compile(r"`([^`\s]+)`")
PATH = re.compile(r"[\w.*{},/-]+")
ENDING = re.compile(r"\.(c|h|cu|cuh|py|sh|md|txt|map|jsonl|cmake)$")
TOPS = {"src", "include", "tests", "docs", "bench", "scripts", "examples", "cmake"}
OTHERS = {"megatron.md", "sglang.md", "vllm.md"}
MADE = ("build/", "/", "lib/", "mpp/")  # of a build, of a system, of an installation


def tree_of(root):
    """All files and folders, but for what is built."""
    found = set()
    for path in root.rglob("*"):
        relative = path.relative_to(root)
        if relative.parts[0] not in ("build", ".git"):
            found.add(relative.as_posix())
    return found


def alternatives(word):
    """`a{b,c}d` is abd and acd."""
    match = re.search(r"\{([^{}]*)\}", word)
    if not match:
        return [word]
    return [
        full for part in match[1].split(",") for full in alternatives(word[: match.start()] + part + word[match.end() :])
    ]


def is_there(word, tree):
    word = word.rstrip("/").removeprefix("./")
    pattern = re.escape(word).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*").replace("NAME", r"[\w-]+") + r"(\.in)?"
    if word.split("/")[0] in TOPS and "/" in word:
        return any(re.fullmatch(pattern, path) for path in tree)
    return any(re.fullmatch("(.*/)?" + pattern, path) for path in tree)


def is_path(word):
    if not PATH.fullmatch(word) or word.startswith(MADE):
        return False
    return bool(ENDING.search(word)) or word.split("/")[0] in TOPS and "/" in word


def wrong_names(page, text, root, tree):
    for number, line in enumerate(text.split("\n"), 1):
        for link in LINK.findall(line):
            if "://" not in link and not (page.parent / link).exists():
                yield number, link
        for word in CODE.findall(line):
            if is_path(word) and (page.name not in OTHERS or word.split("/")[0] in TOPS):
                for name in alternatives(word):
                    if not is_there(name, tree):
                        yield number, name


def unnamed_records(tree, texts):
    """Records that no page names, by their names alone or with folders."""
    records = [path for path in tree if path.startswith("bench/records/") and path.endswith(".jsonl")]
    return sorted(path for path in records if not any(path.rsplit("/", 1)[1] in text for text in texts))


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    tree = tree_of(root)
    pages = {page: page.read_text() for page in sorted({page for pattern in PAGES for page in root.glob(pattern)})}
    wrong = [
        f"{page.relative_to(root)}:{number}: {name} is nowhere"
        for page, text in pages.items()
        for number, name in wrong_names(page, text, root, tree)
    ] + [f"{record}: no page names it; name or delete it" for record in unnamed_records(tree, pages.values())]
    for line in wrong or ([] if pages else ["no page found"]):
        print(line)
    return bool(wrong) or not pages


if __name__ == "__main__":
    sys.exit(main())
