"""Goal: nothing stands in the tree that nothing uses.

Method: it reads words, not programs: a name is used where it stands outside comments, strings and its own declarations.
Reported are functions and macros that nothing uses, or only tests; functions that no other file uses and that are not
static; types and fields whose name stands once; headers that nobody includes. A name that a macro of a table puts
together (`wefti_##name`) counts as used if what it is put together of stands somewhere. What stays although it is found
has its reason in KEPT. Usage: dead.py ROOT. Prints FILE: NAME: what it is, and exits 1 when there is one.
"""

import collections
import pathlib
import re
import sys

KEPT = {
    "PyInit__weft": "Python calls it",
    "Py_LIMITED_API": "Python's header reads it",
    "PY_SSIZE_T_CLEAN": "Python's header reads it",
    "wefti_fault_arm": "fault injection is what tests are for",
    "wefti_fault_passed": "fault injection is what tests are for",
    "wefti_pmi_job_fini": "tests join several jobs in a process, a program one that lasts as long as it",
    "wefti_alloc_live": "the count of allocations is what tests are for",
}

TOPS = ("src", "include", "python", "tests", "bench", "examples")
SUFFIXES = {".c", ".h", ".cu", ".cuh", ".cpp", ".cc"}
# Interfaces of others, of which all is declared whether it is used or not.
INTERFACES = re.compile(r"src/faces/\w+/include/|src/faces/(nvshmem|shmem)/|examples/")
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^">]+)[">]', re.M)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.M)
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
STATIC = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+static\b", re.M)
WORD = re.compile(r"[A-Za-z_]\w*")
PASTED = re.compile(r"\w+(?:[ \t]*##[ \t]*\w+)+")
AGGREGATE = re.compile(r"\b(?:struct|union)\s*\w*\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
TAG = re.compile(r"\btypedef\s+(?:struct|union)\s+(\w+)\s*\{")
ENUM = re.compile(r"\btypedef\s+enum\s+(\w+)\s*\{")  # whose name says what its constants are
TYPE = re.compile(r"^\}\s*(\w+);|^typedef\b[^{};]*\b(\w+);", re.M)
FIELD = re.compile(r"(\w+)(?:\[[^\n;]*\])?(?:\s*:\s*\d+)?;")
SPECIFIERS = re.compile(r"\b(?:__attribute__|alignas|_Alignas|__launch_bounds__|__declspec)\s*\((?:[^()]|\([^()]*\))*\)+")


def is_test(path):
    return path.startswith(("tests/", "src/testing/")) or \
        re.search(r"(_test|conformance)\.[ch]$", path) is not None


def is_interface(path):
    return INTERFACES.match(path) is not None


class Source:
    """A file: its code without comments and strings, and what it declares at its top level."""

    def __init__(self, path, text):
        self.path = path
        self.included = set(INCLUDE.findall(text))
        code = NOT_CODE.sub(lambda m: '""' if m.group()[0] in "\"'" else " ", text)
        code = INCLUDE.sub("", code)
        self.macros = set(DEFINE.findall(code))
        self.statics = set(STATIC.findall(code))  # macros that say it
        self.pastes = set(PASTED.findall(" ".join(DIRECTIVE.findall(code))))
        self.words = collections.Counter(WORD.findall(code))
        self.words.subtract(DEFINE.findall(code))
        self.members = {name for body in AGGREGATE.findall(code) for name in FIELD.findall(body)}
        self.types = {name or other for name, other in TYPE.findall(code)} - set(ENUM.findall(code))
        self.tags = collections.Counter(TAG.findall(code))
        self.declared = collections.Counter()
        self.defined = {}  # name: whether it is static
        for head, is_definition in top_level(DIRECTIVE.sub("", code)):
            self.declare(SPECIFIERS.sub(" ", head), is_definition)

    def declare(self, head, is_definition):
        match = re.match(r"[\s\w*]*?(\w+)\s*\(", head)
        if match is None or "=" in head[:match.end()] or not re.search(r"\w[\s*]+\w+\s*\($", head[:match.end()]):
            return
        name = match.group(1)
        self.declared[name] += 1
        if is_definition:
            before = set(WORD.findall(head[:match.start(1)]))
            self.defined[name] = bool(before & ({"static", "inline"} | self.statics))


def top_level(code):
    """(text, whether a body follows) of each declaration at the top level; `extern "C" {` opens no level."""
    code = re.sub(r'\bextern\s*""\s*\{?', " ", code)
    depth, start = 0, 0
    for match in re.finditer(r"[{};]", code):
        mark = match.group()
        if mark == "{":
            if depth == 0:
                yield code[start:match.start()], True
            depth += 1
        elif mark == "}":
            depth = max(depth - 1, 0)
            start = match.end()
        elif depth == 0:
            yield code[start:match.start()], False
            start = match.end()


def read(root):
    found = []
    for top in TOPS:
        for file in sorted((root / top).rglob("*")):
            if file.suffix in SUFFIXES and file.is_file():
                path = str(file.relative_to(root))
                found.append(Source(path, file.read_text(errors="replace")))
    return found


class Tree:
    def __init__(self, root):
        # Where programs and builds name headers that they write into others.
        texts = [file for top in TOPS + ("cmake",) for file in (root / top).rglob("*") if file.suffix in (".py", ".cmake")]
        paths = re.findall(r"[\w/]+\.c?u?h\b", "\n".join(file.read_text() for file in texts))
        self.named = {path[path.find("/src/") + 5 :] if "/src/" in path else path for path in paths}
        self.sources = read(root)
        self.exported = set(WORD.findall((root / "src/weft.map").read_text()))
        self.uses = collections.defaultdict(dict)  # name: {path: how often beside its declarations}
        for source in self.sources:
            for name, count in source.words.items():
                count -= source.declared[name]
                if count > 0:
                    self.uses[name][source.path] = count
        self.words = {word for source in self.sources for word in source.words}
        self.interface = {name for source in self.sources if is_interface(source.path) for name in source.declared}
        self.patterns = [re.compile(pattern) for pattern in
                         {pattern_of(paste) for source in self.sources for paste in source.pastes} - {None}]

    def is_pasted(self, name):
        return any((match := pattern.fullmatch(name)) and all(part in self.words for part in match.groups())
                   for pattern in self.patterns)

    def is_exported(self, name):
        return name in self.interface or name.startswith("weft_") or name in self.exported

    def used_in(self, name, tests):
        return {path for path in self.uses[name] if is_test(path) == tests}


def pattern_of(paste):
    """A paste as a pattern in which what stands short or in capitals alone is open; None if nothing is fixed."""
    parts = [part.strip() for part in paste.split("##")]
    fixed = [part for part in parts if "_" in part and len(part) > 2]
    return "".join(part if part in fixed else r"(\w+)" for part in parts) if fixed else None


def find_functions(tree):
    for source in tree.sources:
        if is_test(source.path) or is_interface(source.path):
            continue
        for name, is_static in source.defined.items():
            product, tests = tree.used_in(name, False), tree.used_in(name, True)
            what = None
            if not product:
                what = "function that only tests use" if tests else "function that nothing uses"
            elif not is_static and product == {source.path} and not tests and source.path.endswith(".c"):
                what = "function that no other file uses, and is not static"
            if what and name != "main" and not tree.is_exported(name) and not tree.is_pasted(name):
                yield source.path, name, what


def find_macros(tree):
    for source in tree.sources:
        if is_test(source.path) or is_interface(source.path):
            continue
        for name in source.macros:
            is_public = source.path.startswith("include/") and not name.startswith("WEFTI_")
            is_guard = name.endswith(("_H", "_CUH"))
            if not is_public and not is_guard and not tree.uses[name] and not tree.is_pasted(name):
                yield source.path, name, "macro that nothing uses"


def find_members(tree):
    for source in tree.sources:
        if is_test(source.path) or is_interface(source.path) or source.path.startswith("include/weft"):
            continue
        for name in sorted(source.types):  # a struct has its name twice
            if sum(tree.uses[name].values()) <= source.tags[name] + 1 and not tree.is_pasted(name):
                yield source.path, name, "type that nothing uses"
        for name in sorted(source.members):
            if sum(tree.uses[name].values()) == 1 and not name.startswith("unused") and not tree.is_pasted(name):
                yield source.path, name, "field that stands once"


def find_headers(tree):
    included = {name for source in tree.sources for name in source.included} | tree.named
    for source in tree.sources:
        path = source.path
        parts = path.split("/")
        names = {"/".join(parts[i:]) for i in range(len(parts))}
        if path.endswith((".h", ".cuh")) and not names & included and parts[0] != "include" and not is_interface(path):
            yield path, "", "header that nobody includes"


def find_dead(root):
    tree = Tree(root)
    found = [row for find in (find_functions, find_macros, find_members, find_headers) for row in find(tree)]
    return sorted((row for row in found if row[1] not in KEPT), key=lambda row: (row[2], row[0]))


def main():
    found = find_dead(pathlib.Path(sys.argv[1]))
    for path, name, what in found:
        print(f"{path}: {name}: {what}" if name else f"{path}: {what}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
