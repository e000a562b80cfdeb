"""Make the NVSHMEM headers and functions of types.table and routines.table.

    generate.py headers OUT        nvshmem.h of nvshmem.h.in, and so kernels.cuh and macros.h, and the other names that
                                   programs include
    generate.py functions OUT      SECTION.c for each section: what the host's routines that are not written by hand do
    generate.py bitcode OUT        bitcode.cu: kernels' routines by their own names, for the bitcode library
    generate.py sections           the names of the sections
    generate.py files              the names of the headers
    generate.py names PLACE        every name of a place, one a line: host, stream, kernel (with groups and queue pairs)
"""

import dataclasses
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True  # the source tree stays as it is
sys.path.insert(0, str(HERE.parent))
from tables import Argument, read_prototype, read_sections, read_types, replace, split_call, variants_of  # noqa: E402

TYPES, SETS = read_types(HERE / "types.table")
COUNTS = ("nelems", "nreduce", "bytes")
CASTS = {"cmp": "CMP(cmp)", "sig_op": "SIGNAL_OP(sig_op)"}
STREAM = Argument("cudaStream_t cstrm", "cstrm", False, False)
QP = Argument("nvshmemx_qp_handle_t qp_index", "qp_index", False, False)
SCOPES = {"": "weft_thread()", "_warp": "wefti_nv_warp()", "_block": "wefti_nv_block()"}

# What programs include, beside nvshmem.h: all of it is there.
NAMES = """nvshmemx.h nvshmem_host.h
    host/nvshmem_api.h host/nvshmemx_api.h host/nvshmem_coll_api.h host/nvshmemx_coll_api.h host/nvshmem_macros.h
    device/nvshmem_defines.h device/nvshmemx_defines.h device/nvshmem_device_macros.h device/nvshmem_coll_defines.cuh
    device/nvshmemx_coll_defines.cuh device/nvshmemx_collective_launch_apis.h
    device_host/nvshmem_common.cuh device_host/nvshmem_types.h
    device_host/nvshmem_api_constants.h device_host/nvshmem_api_macros.h device_host/nvshmem_constants.h
    device_host/nvshmem_uniqueid.h device_host/nvshmem_version.h device_host/nvshmemx_status.h device_host/nvshmemx_uniqueid.h
    c_api/nvshmem_api.h c_api/nvshmem_api_constants.h c_api/nvshmem_api_macros.h c_api/nvshmem_coll_api.h c_api/nvshmem_macros.h
    c_api/nvshmem_types.h c_api/nvshmemx_api.h c_api/nvshmemx_coll_api.h c_api/nvshmemx_collective_launch_apis.h
    c_api/nvshmemx_status.h c_api/nvshmemx_uniqueid.h
    non_abi/device/common/nvshmemi_common_device.cuh non_abi/c/nvshmem_build_options.h non_abi/nvshmem_build_options.h
    device_host_transport/nvshmem_common_transport.h
    device_host_transport/nvshmem_constants.h bootstrap_device_host/nvshmem_uniqueid.h
    non_abi/nvshmem_version.h non_abi/nvshmemx_error.h""".split()
# Made of a file NAME.in here.
MADE = {"nvshmem.h": "nvshmem.h", "kernels.cuh": "weft_nvshmem/kernels.cuh", "macros.h": "weft_nvshmem/macros.h",
        "tensor.h": "device_host/nvshmem_tensor.h"}

# The lists of programs: a name, and its types.
LISTS = {"STANDARD_RMA_TYPES": SETS["small"] + SETS["plain"], "WAIT_TYPES": SETS["wait_short"] + SETS["wait"]}
REDUCE_LISTS = {"BITWISE_REDUCE_TYPES": SETS["bits"], "STANDARD_REDUCE_TYPES": SETS["order"] + SETS["small"],
                "ARITH_REDUCE_TYPES": SETS["order"] + SETS["small"]}
REDUCTIONS = {"and": "BITWISE", "or": "BITWISE", "xor": "BITWISE", "min": "STANDARD", "max": "STANDARD", "prod": "ARITH",
              "sum": "ARITH"}
SIZE_TYPES = {8: "int8_t", 16: "int16_t", 32: "int32_t", 64: "int64_t", 128: "int4"}
SCOPE_FORMS = {"": [], "_WITH_SCOPE": ["SC"], "_WITH_SCOPE2": ["SC", "SC_SUFFIX", "SC_PREFIX"]}


@dataclasses.dataclass
class Function:
    """One function: a routine of the table for one type, in one place."""

    section: str
    place: str  # host, stream or kernel
    flags: set
    result: str
    name: str
    arguments: list
    call: str  # of weft, or the kernel's expression
    type: str
    is_own: bool

    def prototype(self, name=None):
        arguments = ", ".join(argument.declared for argument in self.arguments) or "void"
        return f"{self.result}{'' if self.result.endswith('*') else ' '}{name or self.name}({arguments})"

    @property
    def names(self):
        return ", ".join(argument.name for argument in self.arguments)


def read_routine(section, fields):
    """The functions of a line."""
    kinds, flags, result, prototype = fields[0], set(fields[1].split()), fields[2], fields[3]
    host, stream, kernel = ((fields[4:] + ["-", "-", "-"])[:3])
    functions = []
    for names, kind in variants_of(kinds, TYPES, SETS):
        name, arguments = read_prototype(replace(prototype, names))
        usual = ", ".join(one.name for one in arguments if one.declared != "nvshmem_team_t team")

        def add(place, name, arguments, call, is_own=False):
            functions.append(Function(section, place, flags, replace(result, names), name, arguments, call, kind, is_own))

        plain = ("nvshmemx_" if "x" in flags else "nvshmem_") + name
        if "host" in flags:
            add("host", plain, arguments, replace(host, names) if host != "-" else f"{name}({usual})", "own" in flags)
        if "stream" in flags:
            call = replace(stream, names) if stream != "-" else f"{name}_on_stream({usual})"
            add("stream", f"nvshmemx_{name}_on_stream", arguments + [STREAM], call, "own_stream" in flags)
        if "kernel" in flags or "groups" in flags:
            for suffix, scope in SCOPES.items():
                if suffix and "groups" not in flags:
                    continue
                call = replace(kernel, names).replace("SCOPE", scope)
                add("kernel", f"nvshmemx_{name}{suffix}" if suffix else plain, arguments, call)
                if "qp" in flags:
                    add("kernel", f"nvshmemx_qp_{name}{suffix}", arguments + [QP], call)
    return functions


SECTIONS, LINES = read_sections(HERE / "routines.table", read_routine)
FUNCTIONS = [function for line in LINES for function in line]


def of_place(place):
    return [function for function in FUNCTIONS if function.place == place]


KERNEL = {function.name: function for function in of_place("kernel")}
HOST = {function.name: function for function in of_place("host")}


# ---- functions of the host ----


def weft_call(function, first, more=()):
    """The call of weft."""
    name, arguments = split_call(function.call)
    arguments = [CASTS.get(one, re.sub(r"\bOF\((\w+), ([\w ]+)\)", r"wefti_bytes_of(\1, sizeof(\2))", one)) for one in arguments]
    prefix = "" if name.startswith("wefti_") else "weft_"
    return f"{prefix}{name}({', '.join([first, *arguments, *more])})"


def of_nothing(function):
    """The result for no elements."""
    if "_any" in function.name:
        return "SIZE_MAX"
    return "1" if "_test_all" in function.name else "{0}" if function.type in SETS["small"] else "0"


def body(function, stream_form):
    count = next((one.name for one in function.arguments if one.name in COUNTS), "1")
    if "team" in function.flags:
        if function.place == "stream":
            return [f"    ON_STREAM({weft_call(function, 'members', ['cstrm'])})"]
        return [f"    COLLECTIVE({weft_call(function, 'members')},",
                f"               {weft_call(stream_form, 'members', ['STREAM'])})"]
    more = ["cstrm"] if function.place == "stream" else []
    has_result = function.result != "void"
    if has_result and "&result" not in function.call:
        more.append("&result")
    lines = [f"    {function.result} result = {of_nothing(function)};"] if has_result else []
    lines.append(f"    CHECK({weft_call(function, 'WORLD', more)}, {count});")
    if has_result:
        lines.append("    return result;")
    return lines


def write_functions(out):
    for section, text in SECTIONS.items():
        lines = [f"/* {text}. Made by generate.py of routines.table. */", '#include "faces/nvshmem/binding.h"', ""]
        for line in LINES:
            forms = {function.name: function for function in line}
            for function in line:
                if function.section == section and function.place != "kernel" and not function.is_own:
                    stream_form = forms.get("nvshmemx_" + function.name.removeprefix("nvshmem_") + "_on_stream")
                    lines += [function.prototype(), "{", *body(function, stream_form), "}"]
        (out / f"{section}.c").write_text("\n".join(lines) + "\n")
    # The sets, for what is written by hand.
    lines = ["/* The sets of types, X(NAME, TYPE). Made by generate.py of types.table. */"]
    for name, members in SETS.items():
        rows = [f"    X({member}, {TYPES[member]})" for member in members]
        lines += [f"#define WEFTI_NV_{name.upper()}_TYPES(X) \\", " \\\n".join(rows)]
    (out / "weft_nvshmem_types.h").write_text("\n".join(lines) + "\n")


# ---- headers ----


def by_section(functions, line_of):
    lines = []
    for section, text in SECTIONS.items():
        found = [function for function in functions if function.section == section]
        if found:
            lines += ["", f"/* {text} */", *[line_of(function) for function in found]]
    return lines


def declaration(function):
    noreturn = "WEFT_NVSHMEM_NORETURN " if "noreturn" in function.flags else ""
    return f"WEFT_NVSHMEM_API {noreturn}{function.prototype()};"


def kernel_function(function):
    """What a kernel calls; and the host, if it has the routine, too."""
    back = "" if function.result == "void" else "return "
    call = function.call if function.result != "void" else f"(void){function.call}"
    if function.result == "int" and ("team" in function.flags or "_barrier" in function.name):
        call = f"wefti_nv_status({function.call})"
    lines = ["template <int = 0>"]
    host = HOST.get(function.name)
    if host is None:
        unused = "".join(f"(void){one.name}; " for one in function.arguments if one is QP)
        lines.append(f"WEFTI_NV_KERNEL {function.prototype()} {{ {unused}{back}{call}; }}")
    else:
        other = f"wefti_nv_host::{function.name}({function.names})"
        lines.append(f"WEFTI_NV_BOTH {function.prototype()} {{ WEFTI_NV_CHOOSE({back}{call}, {back}{other}) }}")
    return "\n".join(lines)


def labelled(function):
    """The host's function, by the name that it has in the library."""
    return f'extern "C" {function.prototype()} __asm__("{function.name}");'


def repetition(name, before, after, rows):
    """A macro that calls its first argument once for each row, with `before` and `after` around it."""
    lines = [f"#define NVSHMEMI_REPT_{name}({', '.join(['NVSHMEMI_FN_TEMPLATE', *before, *after])})"]
    lines += [f"    NVSHMEMI_FN_TEMPLATE({', '.join([*before, *row, *after])})" for row in rows]
    return " \\\n".join(lines)


def lists():
    """The lists of types and of sizes."""
    lines = []
    for form, before in SCOPE_FORMS.items():
        for name, members in LISTS.items():
            lines.append(repetition(f"FOR_{name}{form}", before, [], [(one, TYPES[one]) for one in members]))
        for name, members in REDUCE_LISTS.items():
            lines.append(repetition(f"FOR_{name}{form}", before, ["opname"], [(one, TYPES[one]) for one in members]))
        lines.append(repetition(f"FOR_SIZES{form}", before, [], [(str(size),) for size in SIZE_TYPES]))
        arguments = ", ".join(["NVSHMEMI_FN_TEMPLATE", *before])
        lines.append(f"#define NVSHMEMI_REPT_TYPES_AND_OPS_FOR_REDUCE{form}({arguments})" + "".join(
            f" \\\n    NVSHMEMI_REPT_FOR_{kind}_REDUCE_TYPES{form}({arguments}, {name})" for name, kind in REDUCTIONS.items()))
    lines.append(repetition("FOR_SIZES_WITH_TYPE", [], [], [(str(size), name) for size, name in SIZE_TYPES.items()]))
    return lines


def write_headers(out):
    parts = {
        "LISTS": lists(),
        "HOST": by_section([one for one in of_place("host") if one.name not in KERNEL], declaration),
        "BOTH": by_section([one for one in of_place("host") if one.name in KERNEL], declaration),
        "STREAM": by_section(of_place("stream"), declaration),
        "LABELLED": by_section([one for one in of_place("host") if one.name in KERNEL], labelled),
        "KERNELS": by_section(of_place("kernel"), kernel_function),
    }
    for name, made in MADE.items():
        text = (HERE / f"{name}.in").read_text()
        for part, lines in parts.items():
            text = text.replace(f"@{part}@", "\n".join(lines))
        place = out / made
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    for name in NAMES:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(f"/* {name}: nvshmem.h has all of it. Made by generate.py. */\n#include <nvshmem.h>\n")


def write_bitcode(out):
    lines = ["/* Kernels' routines by their own names. Made by generate.py of routines.table. */", "#include <cuda.h>",
             "#include <nvshmem.h>", '', 'extern "C" {']
    for function in of_place("kernel"):
        back = "" if function.result == "void" else "return "
        lines.append(f"__device__ {function.prototype()} {{ {back}{function.name}<0>({function.names}); }}")
    (out / "bitcode.cu").write_text("\n".join([*lines, "}"]) + "\n")


def main():
    verb = sys.argv[1]
    if verb == "headers":
        write_headers(pathlib.Path(sys.argv[2]))
    elif verb == "functions":
        write_functions(pathlib.Path(sys.argv[2]))
    elif verb == "bitcode":
        write_bitcode(pathlib.Path(sys.argv[2]))
    elif verb == "sections":
        print("\n".join(SECTIONS))
    elif verb == "files":
        print("\n".join([*MADE.values(), *NAMES]))
    elif verb == "names":
        print("\n".join(function.name for function in of_place(sys.argv[2])))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
