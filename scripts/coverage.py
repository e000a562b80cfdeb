"""Line coverage of src/ by the tests that a build with WEFT_COVERAGE has run.

coverage.py ROOT BUILD    one line a file below LIMIT, and the sum; all files in BUILD/coverage.txt. A line counts as run when
                          any test ran it, in the library or in the simulator. Fails when a file below LIMIT has no
                          explanation in tests/coverage.txt, or one that is far above it has one, unless a process that
                          was killed broke its counts; exit 77 instead where the build has no CUDA. A folder there,
                          with a "/" at its end, explains all files in it; and "PATH: varies: REASON" a file of which
                          some runs count much more than others.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

LIMIT = 85
CLEARLY_ABOVE = 92  # coverage differs a little from run to run


def read_object(note):
    """What gcov says of one object: of each file its path and (line, count) of each line; and whether its counts are
    broken: those of a process that was killed while it wrote them are cut short, and all that ran later leave them so.
    Paths may be relative to where the compiler ran."""
    command = ["gcov", "--json-format", "--stdout", note.name]
    said = subprocess.run(command, cwd=note.parent, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"})
    files = []
    for document in map(json.loads, filter(None, said.stdout.splitlines())):
        for file in document["files"]:
            path = pathlib.Path(document["current_working_directory"], file["file"]).resolve()
            files.append((path, [(line["line_number"], line["count"]) for line in file["lines"]]))
    if said.returncode != 0 and not any(lines for _, lines in files):
        raise RuntimeError(f"{note}: gcov tells nothing of it: {said.stderr.strip()}")
    return files, said.returncode != 0 or "mismatch" in said.stderr


def read_counts(root, build):
    """Of each file of src/, how often each of its lines ran; and the files of which an object's counts are broken."""
    source = root / "src"
    counts = collections.defaultdict(lambda: collections.defaultdict(int))
    broken = set()
    notes = sorted(build.rglob("*.gcno"))
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for note, (files, is_broken) in zip(notes, pool.map(read_object, notes)):
            if is_broken:
                print(f"{note}: its counts are broken, as a process was killed that wrote them", file=sys.stderr)
            for path, lines in files:
                if not path.is_relative_to(source) or not path.exists():
                    continue
                name = str(path.relative_to(root))
                for line, count in lines:
                    counts[name][line] += count
                if is_broken:
                    broken.add(name)
    return counts, broken


def explanations(root):
    rows = [line.split(": ", 1) for line in (root / "tests/coverage.txt").read_text().splitlines()]
    return {row[0]: row[1] for row in rows if len(row) == 2 and not row[0].startswith("#")}


def explanation_of(file, explained):
    folders = [name for name in explained if name.endswith("/") and file.startswith(name)]
    return explained.get(file) or (explained[folders[0]] if folders else None)


def percent(run, lines):
    return 100 * run / lines if lines else 100.0


def main(root, build):
    explained = explanations(root)
    problems, table = [], []
    run_in_all = lines_in_all = 0
    counts, broken = read_counts(root, build)
    for file, lines in sorted(counts.items()):
        run = sum(1 for count in lines.values() if count > 0)
        share = percent(run, len(lines))
        run_in_all += run
        lines_in_all += len(lines)
        table.append(f"{share:5.1f} %  {run:5} of {len(lines):5}  {file}")
        if share < LIMIT:
            why = explanation_of(file, explained)
            print(f"{table[-1]}: {why or 'NOT EXPLAINED'}")
            if not why and file not in broken:
                problems.append(f"{file} is below {LIMIT} %: test it, or say why not in tests/coverage.txt")
        elif share > CLEARLY_ABOVE and not explained.get(file, "varies").startswith("varies"):
            problems.append(f"{file} is at {share:.0f} % and explained in tests/coverage.txt: take it out")
    problems += [f"{file} is explained, but it does not exist" for file in explained if not (root / file).exists()]
    table.append(f"{percent(run_in_all, lines_in_all):5.1f} %  {run_in_all:5} of {lines_in_all:5}  all")
    (build / "coverage.txt").write_text("\n".join(table) + "\n")
    print(f"coverage: {percent(run_in_all, lines_in_all):.1f} % of the lines of src/ (each file: {build}/coverage.txt)")
    print("\n".join(problems))
    if problems and not (build / "fake").exists():
        print("this build has no CUDA, whose parts need its tests: the check of single files is skipped")
        return 77
    return 1 if problems or lines_in_all == 0 else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()))
