"""Make the OpenSHMEM headers and functions of types.table and routines.table.

    generate.py headers OUT        shmem.h, pshmem.h, shmemx.h, mpp/shmem.h, mpp/shmemx.h, of shmem.h.in and the tables
    generate.py functions OUT      SECTION.c for each section: what the routines that are not written by hand do, and
                                   the weak names shmem_... of all
    generate.py sections           the names of the sections
    generate.py names              every name that is a function, one a line
    generate.py generics           every name that C11 and C++ choose by type

Each routine is a function pshmem_NAME, of which shmem_NAME is a weak alias: so that a profiling library can stand between.
"""

import dataclasses
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True  # the source tree stays as it is
sys.path.insert(0, str(HERE.parent))
from tables import Argument, read_prototype, read_sections, read_types, replace, split_call, variants_of  # noqa: E402

CASTS = {"cmp": "(weft_cmp)", "sig_op": "(weft_signal_op)"}
COUNTS = ("nelems", "nreduce", "nblocks")


TYPES, SETS = read_types(HERE / "types.table")


@dataclasses.dataclass
class Function:
    """One function: a routine of the table for one type and with or without a context."""

    section: str
    flags: set
    result: str
    name: str  # with shmem_
    arguments: list
    call: str  # of weft
    call_arguments: list
    type: str  # its name; "" without one
    has_ctx: bool = False

    def prototype(self, prefix=""):
        arguments = ", ".join(argument.declared for argument in self.arguments)
        return f"{self.result}{'' if self.result.endswith('*') else ' '}{prefix}{self.name}({arguments})"


@dataclasses.dataclass
class Routine:
    section: str
    kinds: str  # a set
    flags: set
    generic: str  # the name without a type
    functions: list


def with_ctx(function):
    ctx = Argument("shmem_ctx_t ctx", "ctx", False, False)
    return dataclasses.replace(function, name=function.name.replace("shmem_", "shmem_ctx_", 1),
                               arguments=[ctx] + function.arguments, has_ctx=True)


def read_routine(section, fields):
    kinds, flags, result, prototype = fields[0], set(fields[1].split()), fields[2], fields[3]
    functions = []
    for names, kind in variants_of(kinds, TYPES, SETS):
        name, arguments = read_prototype(replace(prototype, names))
        call, call_arguments = split_call(replace(fields[4], names)) if len(fields) > 4 else (
            name, [argument.name for argument in arguments if argument.declared != "shmem_team_t team"])
        function = Function(section, flags, replace(result, names), name if "old" in flags else "shmem_" + name, arguments,
                            call, call_arguments, kind)
        if not arguments:
            function.arguments = [Argument("void", "", False, False)]
        functions.append(function)
        if "ctx" in flags:
            functions.append(with_ctx(function))
    return Routine(section, kinds, flags, "shmem_" + re.match(r"(?:T_)?(\w+)", prototype).group(1), functions)


SECTIONS, ROUTINES = read_sections(HERE / "routines.table", read_routine)


# ---- functions ----


def passed(function, name):
    """An argument of weft's call."""
    argument = next((one for one in function.arguments if one.name == name), None)
    if argument is not None and argument.is_symmetric:
        count = next((one.name for one in function.arguments if one.name in COUNTS), None)
        if "team" in function.flags or "active" in function.flags:
            return f"BUFFER({name}, {count})"
        return f"SYMMETRIC({name})"
    return CASTS.get(name, "") + name


def check(function, call):
    """Make a call; where nothing was to be done, nothing can have failed."""
    count = next((one.name for one in function.arguments if one.name in COUNTS), "1")
    contiguous = re.search(r"_(put|get)(mem|\d+)?(_nbi)?$", function.name)
    if not contiguous:
        return f"    CHECK({call}, {count});"
    usual = 8 if contiguous.group(2) == "mem" else 1  # a number that the compiler knows is one load and one store
    one = re.sub(r"\bnelems\b", str(usual), call)
    return f"    if (nelems == {usual}) {{ CHECK({one}, 1); }} else {{ CHECK({call}, {count}); }}"


def of_nothing(function):
    """The result for no elements."""
    return "SIZE_MAX" if "_any" in function.name else "1" if "_test_all" in function.name else "0"


def body(function):
    arguments = [passed(function, name) for name in function.call_arguments]
    if function.result != "void" and "team" not in function.flags:
        arguments.append("&result")
    first = "world"
    lines = []
    if "team" in function.flags:
        first = "TEAM(team)"
    elif "active" in function.flags:
        first = "ACTIVE_SET(PE_start, logPE_stride, PE_size, pSync)"
        if any(one.name == "pWrk" for one in function.arguments):
            lines.append("    (void)pWrk;")
    call = ", ".join([first] + arguments)
    if first == "world":
        lines.append("    weft_world *const world = wefti_shmem.world;")
        if "&result" in arguments:
            lines.append(f"    {function.result} result = {of_nothing(function)};")
    if function.has_ctx:
        far = call.replace("world", "CTX(ctx)", 1)
        lines += ["    if (LIKELY(ctx == SHMEM_CTX_DEFAULT)) {", "    " + check(function, f"weft_{function.call}({call})"),
                  "    } else {", "    " + check(function, f"weft_ctx_{function.call}({far})"), "    }"]
    else:
        lines.append(check(function, f"weft_{function.call}({call})"))
    if function.result != "void":
        lines.append("    return 0;" if "team" in function.flags else "    return result;")
    return lines


def aliases(function):
    """The weak names of a function."""
    names = [function.name]
    if "x" in function.flags:
        names += [function.name.replace("shmem_", "shmemx_", 1), "p" + function.name.replace("shmem_", "shmemx_", 1)]
    return names


def write_functions(out):
    for section, text in SECTIONS.items():
        lines = [f"/* {text}. Made by generate.py of routines.table. */", '#include "faces/shmem/binding.h"', ""]
        for routine in ROUTINES:
            if routine.section != section:
                continue
            for function in routine.functions:
                if "own" not in function.flags:
                    fast = "" if {"team", "active"} & function.flags else "FAST "
                    lines += [fast + function.prototype("p"), "{", *body(function), "}"]
                    lines += [f"WEAK({alias}, p{function.name})" for alias in aliases(function)]
        (out / f"{section}.c").write_text("\n".join(lines) + "\n")
    # Names of functions that are written by hand: an alias must be where the function is.
    lines = ["/* The weak names of routines that are written by hand. Made by generate.py of routines.table. */"]
    for routine in ROUTINES:
        for function in routine.functions:
            if "own" in function.flags:
                names = " ".join(f"WEAK({alias}, p{function.name})" for alias in aliases(function))
                lines.append(f"#define WEAK_p{function.name} {names}")
    (out / "weft_shmem_weak.h").write_text("\n".join(lines) + "\n")


# ---- headers ----


def declarations(prefix, rename=None, only=lambda function: True):
    lines = []
    for section, text in SECTIONS.items():
        found = [function for routine in ROUTINES for function in routine.functions
                 if routine.section == section and only(function)]
        if found:
            lines += ["", f"/* {text} */"]
        for function in found:
            if rename:
                function = dataclasses.replace(function, name=rename(function.name))
            noreturn = "WEFT_SHMEM_NORETURN " if "noreturn" in function.flags else ""
            lines.append(f"WEFT_SHMEM_API {noreturn}{function.prototype(prefix)};")
    return lines


def generic_routines():
    """{name: the functions that it chooses from}"""
    found = {}
    for routine in ROUTINES:
        if "generic" in routine.flags:
            found.setdefault(routine.generic, []).extend(routine.functions)
    return found


QUALIFIERS = ("", "const ", "volatile ")
SIGNED = ("int8", "int16", "int32", "int64")


def told_apart(functions):
    """The types by which _Generic and overloading choose. Bitwise operations have none of int and its like but those of a
    fixed width, which then stand for them."""
    types = {function.type for function in functions}
    return [kind for kind in types if kind in SETS["base"] or (kind in SIGNED and "int" not in types)]


def choices(functions, has_ctx):
    chosen = told_apart(functions)
    for function in functions:
        if function.has_ctx == has_ctx and function.type in chosen:
            for qualifier in QUALIFIERS if "const" in function.flags else QUALIFIERS[:1]:
                yield f"{qualifier}{TYPES[function.type]} *: {function.name}"


def selection(which, branches):
    return f"_Generic(({which}), " + ", \\\n        ".join(branches) + ")"


def c11_macro(name, functions):
    """One that chooses by the first pointer; with a context, by what follows it."""
    place = "WEFT_SHMEM_ARGUMENT_1(__VA_ARGS__, 0)" if "team" in functions[0].flags else None
    if place:  # after the team
        choice = selection(place, list(choices(functions, False)))
    else:
        branches = list(choices(functions, False))
        ctx = list(choices(functions, True))
        if ctx:
            inner = selection("WEFT_SHMEM_ARGUMENT_1(__VA_ARGS__, 0)", ctx + ["default: weft_shmem_no_such_type"])
            branches.append(f"shmem_ctx_t: {inner}")
        choice = selection("WEFT_SHMEM_ARGUMENT_0(__VA_ARGS__, 0)", branches)
    return f"#define {name}(...) \\\n    {choice}(__VA_ARGS__)"


def c11(functions_of, prefix=""):
    lines = []
    for name, functions in functions_of.items():
        if functions[0].type:
            lines.append(c11_macro(name, functions))
        else:  # with a context or without
            lines.append(f"#define {name}(...) _Generic((WEFT_SHMEM_ARGUMENT_0(__VA_ARGS__, 0)), "
                         f"shmem_ctx_t: {name.replace('shmem_', 'shmem_ctx_', 1)}, default: {name})(__VA_ARGS__)")
    return lines


def cxx(functions_of):
    lines = []
    for name, functions in functions_of.items():
        chosen = told_apart(functions)
        for function in functions:
            is_long = name == "shmem_wait_until" and function.type == "long"  # a function of C has that name
            if is_long or (function.type and function.type not in chosen) or (not function.type and not function.has_ctx):
                continue
            given = ", ".join(argument.declared for argument in function.arguments)
            names = ", ".join(argument.name for argument in function.arguments)
            back = "" if function.result == "void" else "return "
            lines.append(f"static inline {function.result} {name}({given}) {{ {back}{function.name}({names}); }}")
    return lines


def cxx_of_c_complex(functions, generic):
    """Overloads for C's complex numbers, which C++ compilers have as an extension, and which lie in memory as C++'s do."""
    lines = []
    for function in functions:
        if function.type not in ("complexf", "complexd"):
            continue
        ours, theirs = TYPES[function.type], f"weft_shmem_c_{function.type}"
        given = ", ".join(argument.declared for argument in function.arguments).replace(ours, theirs)
        names = []
        for argument in function.arguments:
            kind = argument.declared.rsplit("*", 1)[0]
            names.append(f"reinterpret_cast<{kind}*>({argument.name})" if ours in kind else argument.name)
        back = "" if function.result == "void" else "return "
        for name in [function.name] + ([generic] if generic else []):
            lines.append(f"static inline {function.result} {name}({given}) {{ {back}{function.name}({', '.join(names)}); }}")
    return lines


def cxx_of_volatile(routines):
    """Overloads whose first argument points to volatile; C has a warning at most."""
    lines = []
    for routine in routines:
        for function in routine.functions:
            first = function.arguments[0]
            given = ", ".join(["volatile " + first.declared] + [argument.declared for argument in function.arguments[1:]])
            kind = first.declared.rsplit(first.name, 1)[0].rstrip()
            names = ", ".join([f"const_cast<{kind}>({first.name})"] + [argument.name for argument in function.arguments[1:]])
            back = "" if function.result == "void" else "return "
            # The long of shmem_wait_until is that of the deprecated routine, which is no generic one.
            has_other = routine.generic == "shmem_wait_until" and function.type == "long"
            chosen = "generic" in function.flags and function.type in SETS["base"] and not has_other
            for name in [function.name] + ([routine.generic] if chosen else []):
                lines.append(f"static inline {function.result} {name}({given}) {{ {back}{function.name}({names}); }}")
    return lines


def is_extension(function):
    return "x" in function.flags


def as_x(name):
    return name.replace("shmem_", "shmemx_", 1)


def x_header():
    """shmemx.h: names from before the specification had them."""
    lines = declarations("", as_x, is_extension)
    generics = generic_routines()
    macros = [f"#define {as_x(name)}(...) {name}(__VA_ARGS__)" for name in generics if "x" in generics[name][0].flags]
    before_1_5 = [function.name for routine in ROUTINES for function in routine.functions if "x15" in function.flags]
    before_1_5 += [name for name in generics if "x15" in generics[name][0].flags]
    return lines, macros + [f"#define {as_x(name)} {name}" for name in before_1_5]


def write_headers(out):
    (out / "mpp").mkdir(parents=True, exist_ok=True)
    generics = generic_routines()
    parts = {
        "DECLARATIONS": declarations(""),
        "GENERICS_C": c11(generics),
        "GENERICS_CXX": cxx(generics),
        "VOLATILE_CXX": cxx_of_volatile([routine for routine in ROUTINES if "volatile" in routine.flags]),
        "C_COMPLEX_CXX": [line for routine in ROUTINES for line in cxx_of_c_complex(
            routine.functions, routine.generic if "generic" in routine.flags else None)],
        "DECLARATIONS_P": declarations("p") + declarations("p", as_x, is_extension),
    }
    parts["DECLARATIONS_X"], parts["GENERICS_X"] = x_header()
    for name in ("shmem.h", "pshmem.h", "shmemx.h"):
        text = (HERE / f"{name}.in").read_text()
        for part, lines in parts.items():
            text = text.replace(f"@{part}@", "\n".join(lines))
        (out / name).write_text(text)
    for name in ("shmem.h", "shmemx.h"):
        (out / "mpp" / name).write_text(f"/* mpp/{name}: the deprecated place of {name}. */\n#include <{name}>\n")


def main():
    verb = sys.argv[1]
    if verb == "headers":
        write_headers(pathlib.Path(sys.argv[2]))
    elif verb == "functions":
        write_functions(pathlib.Path(sys.argv[2]))
    elif verb == "sections":
        print("\n".join(SECTIONS))
    elif verb == "names":
        print("\n".join(function.name for routine in ROUTINES for function in routine.functions))
    elif verb == "generics":
        print("\n".join(generic_routines()))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
