"""Mistakes as edits of the source. A list (*.txt beside this file) has blocks with an empty line between them:

    NAME: what is wrong
    file src/team/sync.c              the file that has it
    through src/coll/barrier.c ...    where that is a header: the sources to compile with it (PATH/*.c for several); of a
                                      table or generator of the OpenSHMEM face those that differ are compiled
    cases barriers worlds             the cases of the campaign that are to find it
    test TARGET: COMMAND              or the test that does, where the campaign cannot; {} stands for its program
    why ...                           or why it changes nothing that matters (equivalent.txt)
    @@ flag_member(
    -    the line as it is
    +    the line with the mistake

Lines are compared without the blanks around them, and get those before the first of them. What stands behind @@ is text of the first line of a function, which ends
at the next "}" in the first column; nothing means the whole file. There the lines with - and those that begin with a blank
must be found exactly once, else the edit is refused: the code has changed, and the edit must be looked at."""

import dataclasses
import pathlib
import re

FOLDER = pathlib.Path(__file__).parent
KEYS = ("file", "through", "cases", "test", "why")


class Refused(Exception):
    """An edit that does not fit the source, or a block that cannot be read."""


@dataclasses.dataclass
class Hunk:
    place: str
    lines: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Mutation:
    name: str
    what: str
    keys: dict = dataclasses.field(default_factory=dict)
    hunks: list = dataclasses.field(default_factory=list)

    @property
    def file(self):
        return self.keys["file"]


def read_line(mutation, line):
    key, _, value = line.partition(" ")
    if line.startswith("@@"):
        mutation.hunks.append(Hunk(line[2:].strip()))
    elif mutation.hunks:
        mutation.hunks[-1].lines.append((line[0], line[1:].strip()))
    elif key in KEYS and value:
        mutation.keys[key] = value.strip()
    else:
        raise Refused(f"{mutation.name}: cannot read {line!r}")


def read_block(block):
    head, *lines = block.splitlines()
    name = re.fullmatch(r"([A-Z][A-Z0-9_]+): (.+)", head)
    if not name:
        raise Refused(f"no name of a mutation: {head!r}")
    mutation = Mutation(name[1], name[2])
    for line in lines:
        read_line(mutation, line)
    finders = [key for key in ("cases", "test", "why") if key in mutation.keys]
    if len(finders) != 1 or not mutation.hunks or "file" not in mutation.keys:
        raise Refused(f"{mutation.name}: needs file, one of cases, test and why, and an edit")
    return mutation


def read_all():
    mutations = []
    for path in sorted(FOLDER.glob("*.txt")):
        text = re.sub(r"^#.*\n", "", path.read_text(), flags=re.M)
        mutations += [read_block(block) for block in re.split(r"\n\n+", text.strip()) if block]
    names = [mutation.name for mutation in mutations]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise Refused(f"twice: {', '.join(sorted(twice))}")
    return mutations


def range_of(lines, place):
    """The lines in which a hunk is looked for: those of the function, or all."""
    if not place:
        return 0, len(lines)
    heads = [i for i, line in enumerate(lines) if place in line and line[0] not in " /*#" and not line.endswith(";")]
    first = heads[0] if heads else None
    if first is None:
        raise Refused(f"no {place!r}")
    last = next((i for i in range(first, len(lines)) if lines[i] == "}"), len(lines))
    return first, last


def apply_hunk(lines, hunk):
    old = [text for mark, text in hunk.lines if mark in "- "]
    first, last = range_of(lines, hunk.place)
    found = [i for i in range(first, last - len(old) + 1) if [line.strip() for line in lines[i : i + len(old)]] == old]
    if len(found) != 1 or not old:
        raise Refused(f"{len(found)} times instead of once: {' / '.join(old)!r}")
    blanks = re.match(r" *", lines[found[0]])[0]
    new = [blanks + text for mark, text in hunk.lines if mark in "+ "]
    return lines[: found[0]] + new + lines[found[0] + len(old) :]


def mutate(root, mutation):
    """The text of the mutation's file with the mistake in it."""
    lines = (root / mutation.file).read_text().splitlines()
    try:
        for hunk in mutation.hunks:
            lines = apply_hunk(lines, hunk)
    except Refused as error:
        raise Refused(f"{mutation.name} no longer fits {mutation.file}: {error}") from None
    return "\n".join(lines) + "\n"
