"""Goal: every environment variable of NVSHMEM that the table has is honoured, or answered with one line that names what weft has
instead, and docs/nvshmem.md shows the table; bad values are refused with a status.
Method: NVSHMEM_INFO prints the table, which is compared with the page; each variable that is not read is set alone, and all PEs
together must say so once. Usage: variables.py SOURCE WEFTRUN SETUP_PROGRAM
"""

import os
import pathlib
import re
import subprocess
import sys
import time


def run(weftrun, program, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NVSHMEM_")}
    return subprocess.run([weftrun, "-n", "2", program], env={**environment, **variables}, capture_output=True, text=True,
                          timeout=120)


def main():
    source, weftrun, program = sys.argv[1:]
    wrong = []
    told = re.findall(r"^(?:\[\d+\] )?(NVSHMEM_\w+)\n(?:\[\d+\] )?    (not read; instead: |without effect: |)(.*)\n",
                      run(weftrun, program, NVSHMEM_INFO="1").stdout, re.M)
    if len(told) < 30:
        wrong.append(f"NVSHMEM_INFO=1 printed {len(told)} variables")
    page = (pathlib.Path(source) / "docs/nvshmem.md").read_text()
    rows = dict(re.findall(r"^\| (NVSHMEM_\w+) \| (.*) \|$", page, re.M))
    for name, kind, text in told:
        wanted = {"": "honoured", "not read; instead: ": "instead", "without effect: ": "without effect"}[kind] + " | " + text
        if rows.pop(name, None) != wanted:
            wrong.append(f"docs/nvshmem.md: the row of {name} should be | {name} | {wanted} |")
    wrong += [f"docs/nvshmem.md: {name} is no variable of the table" for name in rows]
    instead = {f"{name}": "x" for name, kind, _ in told if kind.startswith("not read")}
    lines = run(weftrun, program, **instead).stderr.splitlines()
    for name in instead:
        if sum(f"{name} is set, and not read by weft; instead: " in line for line in lines) != 1:
            wrong.append(f"{name}: no line, or several, says what to set instead")
    if "weft: NVSHMEM v3" not in run(weftrun, program, NVSHMEM_VERSION="1").stdout:
        wrong.append("NVSHMEM_VERSION=1 prints no version")
    for name, value in (("NVSHMEM_SYMMETRIC_SIZE", "much"), ("NVSHMEM_BOOTSTRAP", "HEARSAY"), ("NVSHMEM_BOOTSTRAP", "SHMEM"),
                        ("NVSHMEM_DEBUG_ATTACH_DELAY", "soon")):
        done = run(weftrun, program, **{name: value})
        if done.returncode == 0 or name not in done.stderr:
            wrong.append(f"{name}={value} is not refused by name: {done.returncode} {done.stderr}")
    begin = time.monotonic()
    if run(weftrun, program, NVSHMEM_DEBUG_ATTACH_DELAY="4").returncode != 0 or time.monotonic() - begin < 4:
        wrong.append("NVSHMEM_DEBUG_ATTACH_DELAY=4: the program did not sleep, or failed")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
