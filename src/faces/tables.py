"""Reading the tables of faces: types.table and routines.table. What generate.py of each face shares.

types.table:    type NAME C-TYPE      NAME is what stands for TYPENAME in the names of routines
                set NAME MEMBER...    types that have a routine; a member is a type, or a set that is told above
routines.table: lines of fields with | between, in sections ("section NAME: what it is"); what the fields are the face says.
                A prototype is NAME(ARGUMENTS): T_ in the name and TYPE in it stand for a type of a set, BITS and BYTES for a
                size; an argument marked `sym` is a symmetric address.
"""

import dataclasses
import re

SIZES = {"sizes": (8, 16, 32, 64, 128), "halves": (32, 64)}


def lines_of(path):
    """The lines that say something. A # begins a comment in types.table; elsewhere it does only where a line begins."""
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip() if path.name.startswith("types") else line.strip()
        if line and not line.startswith("#"):
            yield line


def read_types(path):
    """{type: its C type}, {set: its types}"""
    types, sets = {}, {}
    for line in lines_of(path):
        kind, name, rest = line.split(None, 2)
        if kind == "type":
            types[name] = rest
        else:
            sets[name] = [one for member in rest.split() for one in sets.get(member, [member])]
    return types, sets


@dataclasses.dataclass
class Argument:
    declared: str  # as in a prototype
    name: str
    is_symmetric: bool
    is_const: bool


def read_argument(text):
    is_symmetric = text.startswith("sym ")
    declared = text.removeprefix("sym ")
    name = re.search(r"(\w+)$", declared).group(1) if declared != "..." else "..."
    return Argument(declared, name, is_symmetric, declared.startswith("const "))


def read_prototype(text):
    """The name, and the arguments; none for void."""
    name, arguments = re.fullmatch(r"(\w+)\((.*)\)", text).groups()
    return name, [] if arguments == "void" else [read_argument(one.strip()) for one in arguments.split(",")]


def split_call(text):
    """The name of what is called, and the texts of its arguments."""
    name, arguments = re.fullmatch(r"(\w+)\((.*)\)", text).groups()
    depth, parts, part = 0, [], ""
    for letter in arguments + ",":
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += letter
    return name, [one for one in parts if one]


def variants_of(kinds, types, sets):
    """What stands for T, TYPE, BITS and BYTES, for each variant; and its type."""
    if kinds == "once":
        return [({}, "")]
    if kinds in SIZES:
        return [({"BITS": str(bits), "BYTES": str(bits // 8)}, "") for bits in SIZES[kinds]]
    return [({r"\bT_": f"{name}_", r"\bTYPE\b": types[name]}, name) for name in sets[kinds]]


def replace(text, names):
    for pattern, value in names.items():
        text = re.sub(pattern, value, text)
    return text


def read_sections(path, read_routine):
    """{section: what it is}, and what read_routine makes of each line: read_routine(section, fields)"""
    sections, routines = {}, []
    for line in lines_of(path):
        if line.startswith("section "):
            section, text = line.removeprefix("section ").split(": ", 1)
            sections[section] = text
        else:
            routines.append(read_routine(section, [field.strip() for field in line.split("|")]))
    return sections, routines
