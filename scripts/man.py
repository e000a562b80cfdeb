"""Manual pages, from the comments of the public headers and from what a command prints for --help.

man.py headers INCLUDE FOLDER VERSION    weft.3 with all headers, one page a header, one a group of functions that share a
                                         comment, and a link to it from each function
man.py command PROGRAM FOLDER VERSION    PROGRAM.1
"""

import collections
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import public_api

Block = collections.namedtuple("Block", "comment prototypes types")
FUNCTION = re.compile(r"\b(weft_\w+)\s*\(")
TABLE_USE = re.compile(r"^(WEFT_\w+)\((WEFTI_\w+)\)$")
# What stands for the columns of a table of types or sizes in a page.
PLACEHOLDERS = {"WEFT_SIZES": ("SIZE", "BYTES")}
PLACEHOLDER = "(?:NAME|SIZE)"
WIDTH = 78


# ---- reading a header -------------------------------------------------------------------------------------------


def comment_text(lines):
    """The text of a /* */ comment, without its marks."""
    text = "\n".join(lines).strip()
    text = re.sub(r"^/\*+ ?|\s*\*/$", "", text)
    return "\n".join(re.sub(r"^ \* ?", "", line) for line in text.split("\n")).strip("\n")


def split_blocks(text):
    """Each comment at the margin with the lines of code behind it, up to an empty line."""
    blocks = []
    comment, code, depth = [], [], 0
    in_comment = False
    for line in text.split("\n") + [""]:
        starts = line.startswith("/*")
        if not in_comment and depth == 0 and (starts or not line.strip()) and (comment or code):
            blocks.append((comment_text(comment), code))
            comment, code = [], []
        if starts or in_comment:
            comment.append(line)
            in_comment = "*/" not in line
        elif line.strip():
            code.append(line)
            if not line.startswith("#") and not line.endswith("\\"):
                depth += line.count("{") - line.count("}")
            if re.match(r'extern "C" \{', line):
                depth = 0
            depth = max(depth, 0)
    return blocks


def expand(macros, name, arguments):
    """The text of a macro's use, macros inside it expanded too."""
    parameters, body = macros[name]
    for parameter, argument in zip(parameters, arguments):
        body = re.sub(rf"(?:\s*##\s*)?\b{parameter}\b(?:\s*##\s*)?", lambda _: argument, body)
    inner = re.compile(rf"\b({'|'.join(map(re.escape, macros))})\(([^()]*)\)")
    return inner.sub(lambda m: expand(macros, m.group(1), [a.strip() for a in m.group(2).split(",")]), body)


def prototypes_of(text):
    """The function declarations in a piece of code, on one line each and without bodies, attributes and storage."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    while re.search(r"\{[^{}]*\}", text):
        text = re.sub(r"\{[^{}]*\}", ";", text)
    found = []
    for declaration in text.split(";"):
        declaration = " ".join(declaration.split())
        declaration = re.sub(r"\b(WEFT_API|WEFT_INLINE|WEFT_MUST_CHECK|WEFTI_DEVICE)\b ?", "", declaration)
        declaration = declaration.replace("wefti_u64", "unsigned long long").strip()
        if FUNCTION.search(declaration) and not re.match(r"typedef|[^(]*=", declaration):
            found.append(declaration)
    return found


def table_rows(name, body):
    """The rows X(a, b, ...) of a table, as aligned columns; the names of other tables that it includes."""
    rows = [re.findall(r'"[^"]*"|[^,"]+', row) for row in re.findall(r'X\(((?:"[^"]*"|[^()"])*)\)', body)]
    rows = [[cell.strip().strip('"') for cell in row if cell.strip()] for row in rows]
    lines = [f"{name}:"] + [f"    all of {other}" for other in re.findall(r"(WEFT_\w+)\(X\)", body)]
    widths = [max(len(row[i]) for row in rows if i < len(row) - 1) if i < max(map(len, rows)) - 1 else 0
              for i in range(max(map(len, rows)))] if rows else []
    return lines + ["    " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def read_code(lines, macros):
    """(prototypes, types) of a block's code; what it defines is added to `macros`."""
    prototypes, types, plain = [], [], []
    text = "\n".join(lines).replace("\\\n", " ")
    for line in text.split("\n"):
        define = re.match(r"#define (WEFTI_\w+)\(([^)]*)\)\s*(.*)", line)
        table = re.match(r"#define (WEFT_\w+)\(X\)\s*(.*)", line)
        use = TABLE_USE.match(line.strip())
        if define:
            macros[define.group(1)] = ([p.strip() for p in define.group(2).split(",")], define.group(3))
        elif table:
            types += table_rows(table.group(1), table.group(2))
        elif use and use.group(2) in macros:
            columns = PLACEHOLDERS.get(use.group(1), ("NAME", "TYPE"))
            prototypes += prototypes_of(expand(macros, use.group(2), columns))
        elif not line.startswith("#"):
            plain.append(line)
    code = "\n".join(plain)
    prototypes += prototypes_of(code)
    if re.match(r"typedef\b", code) and "WEFT_" not in code.split("{")[0] and "wefti_" not in code.split("{")[0]:
        types += plain
    return prototypes, types


def read_header(path):
    """(summary, description, blocks) of a header."""
    macros = {}
    raw = split_blocks(path.read_text())
    head = raw[0][0]
    summary = " ".join(head.split("\n\n")[0].split()).split(": ", 1)[1]
    summary = re.split(r"\. |\.$", summary)[0]
    blocks = []
    for comment, code in raw[1:]:
        if comment.startswith("----"):
            comment = ""
        prototypes, types = read_code(code, macros)
        if prototypes or types:
            blocks.append(Block(comment, prototypes, types))
    return summary, head, blocks


# ---- writing a page ---------------------------------------------------------------------------------------------


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text)


def paragraphs(text):
    """Roff of a comment: paragraphs are filled; what is indented stays as it is."""
    lines = []
    verbatim = False
    for line in text.split("\n"):
        indented = line.startswith("  ")
        if indented != verbatim:
            lines += [".PP", ".nf"] if indented else [".fi"]
            verbatim = indented
        if line.strip():
            lines.append(re.sub(r"`([^`]+)`", r"\\fB\1\\fP", escape(line.rstrip())))
        elif lines and lines[-1] != ".PP":
            lines.append(".PP")
    return lines + ([".fi"] if verbatim else [])


def wrapped(prototype):
    """A prototype on lines of at most WIDTH columns, parameters after the first line indented."""
    lines, line = [], ""
    for part in re.findall(r"[^,]+,?\s*", prototype + ";"):
        if line and len(line) + len(part.rstrip()) > WIDTH:
            lines.append(line.rstrip())
            line = "    "
        line += part
    return lines + [line.rstrip()]


def code_lines(lines):
    return [".PP", ".nf"] + [f"\\fB{escape(line)}\\fP" if line.strip() else "" for line in lines] + [".fi"]


def block_synopsis(block):
    lines = list(block.types)
    for prototype in block.prototypes:
        lines += wrapped(prototype)
    return code_lines(lines)


def tidy(lines):
    """Drop a paragraph's mark that stands before or after a section's, or twice."""
    kept = []
    for line in lines:
        after_mark = kept and kept[-1][:3] in (".SH", ".SS", ".PP")
        if line == ".PP" and after_mark:
            continue
        if line[:3] in (".SH", ".SS", ".TP") and kept and kept[-1] == ".PP":
            kept.pop()
        kept.append(line)
    return kept[:-1] if kept[-1] == ".PP" else kept


def page(name, section, summary, version, body):
    date = datetime.date.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))
    head = [f'.TH {name.upper()} {section} "{date}" "weft {version}" "weft"', ".nh", ".SH NAME"]
    return "\n".join(tidy(head + [f"{name} \\- {escape(summary)}"] + body)) + "\n"


def names_of(block):
    return [FUNCTION.search(prototype).group(1) for prototype in block.prototypes]


def type_name(block):
    """Of the type, else of the table, that a block defines."""
    match = re.search(r"\b(weft_\w+)(;|,| \{)|\b(WEFT_\w+):", "\n".join(block.types))
    return match.group(1) or match.group(3)


def short_name(name):
    """weft_NAME_put as weft_put."""
    return re.sub(rf"{PLACEHOLDER}_?", "", name)


def header_page(header, title, summary, head, blocks, version):
    body = [".SH SYNOPSIS", ".nf", f"\\fB#include <{header}>\\fP", ".fi", ".SH DESCRIPTION"]
    body += paragraphs(head.split("\n\n", 1)[1]) if "\n\n" in head else [escape(summary[0].upper() + summary[1:]) + "."]
    for block in blocks:
        if block.prototypes:
            first = names_of(block)[0]
            body += [f".SS {escape(first)}"]
        else:
            body += [f".SS {escape(type_name(block))}"]
        body += block_synopsis(block) + [".PP"] + paragraphs(block.comment)
    return page(title, 3, summary, version, body + [".SH SEE ALSO", ".BR weft (3)"])


def summary_of(block, summary):
    text = " ".join(block.comment.split())
    sentence = re.split(r"\. |: |; |\.$", text)[0]
    if not sentence or sentence.startswith(("For each", "As ", "The same", "Local", "Likewise")) or len(sentence) > 100:
        return summary
    return sentence[0].lower() + sentence[1:]


def block_page(name, header, title, summary, head, block, version):
    body = [".SH SYNOPSIS", ".nf", f"\\fB#include <{header}>\\fP", ".fi"] + block_synopsis(block)
    body += [".SH DESCRIPTION"] + (paragraphs(block.comment) if block.comment else [f"See {title}(3)."])
    if any("TYPE" in prototype for prototype in block.prototypes):
        body += [".PP", "NAME and TYPE are each row of a table of types, as in weft_int_put and int; see weft_types(3)."]
    if "\n\n" in head:
        body += [f".SH ALL CALLS OF {escape(header.upper())}"] + paragraphs(head.split("\n\n", 1)[1])
    body += [".SH SEE ALSO", f".BR {title} (3),", ".BR weft (3)"]
    return page(name, 3, summary_of(block, summary), version, body)


def title_of(header):
    """weft/rma.h is weft_rma(3), weft/device/rma.cuh weft_device_rma(3), weft_ep.h weft_ep(3)."""
    return re.sub(r"\.cuh?$|\.h$", "", header).replace("/", "_")


def public_headers(include):
    """Those that users include or read, in alphabetical order; weft.h is the first page."""
    names = [str(path.relative_to(include)) for path in sorted(include.rglob("*")) if path.suffix in (".h", ".cuh")]
    hidden = ("weft/inline/", "weft/protocol/", "weft_sim.h", "weft/device/ptx.cuh", "weft/device/on_host.cuh")
    return [name for name in names if not name.startswith(hidden) and name != "weft.h"]


def pattern_of(name):
    return re.compile("^" + re.sub(PLACEHOLDER, "[a-z0-9]+", name) + "$")


def write_headers(include, folder, version):
    pages, links, contents = {}, {}, []
    functions = public_api.functions(include)
    for header in public_headers(include):
        summary, head, blocks = read_header(include / header)
        title = title_of(header)
        contents += [".TP", f".BR {title} (3)", escape(summary)]
        pages[title] = header_page(header, title, summary, head, blocks, version)
        patterns = []
        for block in blocks:
            names = names_of(block)
            if block.types:
                links.setdefault(type_name(block), title)
            if not names:
                continue
            pages[names[0]] = block_page(names[0], header, title, summary, head, block, version)
            for name in names:
                patterns.append((pattern_of(name), names[0]))
                links.setdefault(name, names[0])
                links.setdefault(short_name(name), names[0])
        for function in functions.values():
            if function.header == header and function.name.startswith("weft_"):
                for pattern, target in patterns:
                    if pattern.match(function.name):
                        links.setdefault(function.name, target)
    overview = comment_text((include / "weft.h").read_text().split("\n")[:1]).split(": ", 1)[1]
    pages["weft"] = page("weft", 3, "symmetric-memory communication", version, [
        ".SH SYNOPSIS", ".nf", "\\fB#include <weft.h>\\fP", "\\fB#include <weft_ep.h>\\fP", ".fi", ".SH DESCRIPTION",
        escape(overview[0].upper() + overview[1:]), "Each header has a page, and each function."] + contents
        + [".SH SEE ALSO", ".BR weftrun (1),", ".BR weft\\-info (1)"])
    for name, text in pages.items():
        (folder / f"{name}.3").write_text(text)
    for name, target in links.items():
        if name not in pages:
            (folder / f"{name}.3").write_text(f".so man3/{target}.3\n")


# ---- commands ---------------------------------------------------------------------------------------------------


def environment(program):
    """The variables that weft reads, which weft-info can tell."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
    text = subprocess.run([program, "--json", "env"], capture_output=True, text=True, check=True, env=clean).stdout
    lines = [".SH ENVIRONMENT", "What weft reads when a world is created."]
    for row in json.loads(text)["env"]:
        standard = f" Default: {row['default']}." if row["default"] else ""
        lines += [".TP", f".BR {row['name']} \" ({row['type']})\"", escape(f"{row['description']}.{standard}")]
    return lines


def write_command(program, folder, version):
    """From "usage: ...", paragraphs, and rows of options of the form "  -x, --long WHAT   text"."""
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    name = pathlib.Path(program).name
    parts = text.strip("\n").split("\n\n")
    usage = [line.strip() for line in parts[0].removeprefix("usage:").split("\n")]
    body = [".SH SYNOPSIS", ".nf"] + [f"\\fB{escape(line)}\\fP" for line in usage] + [".fi", ".SH DESCRIPTION"]
    summary = re.split(r"[.:] |\.$", " ".join(parts[1].split()))[0]
    for part in parts[1:]:
        heading = re.match(r"(\S[^\n]*):\n(?=  )", part)
        if heading:
            body += [f".SS {escape(heading.group(1))}"]
            part = part[heading.end():]
        if not part.startswith("  "):
            body += paragraphs(part) + [".PP"]
            continue
        rows = re.findall(r"^ +(\S.*?)  +(.*(?:\n {12,}\S.*)*)", part, re.MULTILINE)
        for what, meaning in rows:
            body += [".TP", f".B {escape(what)}", escape(" ".join(meaning.split()))]
        body += [".PP"]
    if name == "weft-info":
        body += environment(program)
    body += [".SH SEE ALSO", ".BR weft (3),", ".BR weftrun (1),", ".BR weft\\-info (1)"]
    (folder / f"{name}.1").write_text(page(name, 1, summary[0].lower() + summary[1:], version, body))


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[3])
    target.mkdir(parents=True, exist_ok=True)
    if sys.argv[1] == "headers":
        write_headers(pathlib.Path(sys.argv[2]).resolve(), target, sys.argv[4])
    else:
        write_command(sys.argv[2], target, sys.argv[4])
