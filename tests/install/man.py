"""Goal: every tool, public header and public function has a manual page without faults.

Method: look for each name among the pages that were made, follow links, and let mandoc read all (exit 77 without it).
Usage: man.py ROOT FOLDER TOOL...
"""

import pathlib
import re
import shutil
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
folder = pathlib.Path(sys.argv[2])
sys.path.insert(0, str(root / "scripts"))
import man  # noqa: E402  (found by the path above)
import public_api  # noqa: E402


def read_page(name):
    """The text of a page, a link followed."""
    text = (folder / name).read_text()
    link = re.match(r"\.so (\S+)$", text)
    return (folder / link.group(1)).read_text() if link else text


def check_function(name, problems):
    path = f"man3/{name}.3"
    if not (folder / path).is_file():
        problems.append(f"{name}: no page")
        return
    text = read_page(path).replace("\\-", "-")
    if not any(man.pattern_of(shown).match(name) for shown in re.findall(r"\b(weft_\w+)\(", text)):
        problems.append(f"{name}: its page has no declaration of it")


def kernel_functions(include):
    for path in include.rglob("*.cuh"):
        if "on_host" not in path.name:
            yield from re.findall(r"^(?:template <.*> )?WEFTI_DEVICE [\w ]+?(weft_\w+)\(", path.read_text(), re.MULTILINE)


def main():
    include = root / "include"
    problems = []
    functions = public_api.public_functions(include) + sorted(set(kernel_functions(include)))
    for name in functions:
        check_function(name, problems)
    pages = [f"man3/{man.title_of(header)}.3" for header in man.public_headers(include)]
    pages += [f"man1/{tool}.1" for tool in sys.argv[3:]] + ["man3/weft.3", "man3/weft_put.3", "man3/weft_world_config.3"]
    problems += [f"{page}: no such page" for page in pages if not (folder / page).is_file()]
    print("\n".join(problems[:20]))
    print(f"{len(functions)} functions, {len(problems)} problems")
    if problems:
        sys.exit(1)
    if shutil.which("mandoc") is None:
        print("no mandoc here: the pages were not read")
        sys.exit(77)
    own = [str(path) for path in sorted(folder.rglob("*.[13]")) if not path.read_text().startswith(".so ")]
    done = subprocess.run(["mandoc", "-Tlint", "-Wwarning"] + own, capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr, end="")
    sys.exit(1 if done.returncode else 0)


main()
