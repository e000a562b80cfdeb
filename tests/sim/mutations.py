"""Goal: the campaign would find the bugs that protocols like these have.

Method: for each bug of mutations.txt, run its build of the campaign from a fresh base seed until a run fails, at most
SEEDS runs; then run the build without bugs on the same seeds, which must be clean. Prints a line a bug.
Usage: mutations.py FOLDER-OF-THE-BUILDS [BASE-SEED]
"""

import pathlib
import random
import re
import subprocess
import sys

SEEDS = 10000


def read_table():
    for line in (pathlib.Path(__file__).parent / "mutations.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, cases, text = line.split(None, 3)
            yield name, cases, text


def run(program, base, seeds, cases):
    """How it ended, and after how many runs."""
    command = [str(program), "--seed", str(base), "--seeds", str(seeds), "--case", cases, "--quiet"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    runs = re.search(r"^(\d+) runs,", done.stdout, re.M)
    reason = re.search(r"^FAILED: (.*)$", done.stdout, re.M)
    progress = re.findall(r"^at seed (\d+)$", done.stdout, re.M)
    if done.returncode < 0:  # a signal: no tally, but the last seed begun
        return False, int(progress[-1]) - base + 1 if progress else seeds, f"signal {-done.returncode}"
    return done.returncode == 0, int(runs.group(1)), reason.group(1) if reason else ""


def main():
    folder = pathlib.Path(sys.argv[1])
    base = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(1, 1 << 40)
    print(f"base seed {base}")
    wrong = 0
    for name, cases, text in read_table():
        missed, runs, reason = run(folder / f"campaign_{name}", base, SEEDS, cases)
        clean, _, unmutated = run(folder / "campaign", base, runs, cases)
        verdict = "MISSED" if missed else f"found in run {runs}: {reason}"
        if not clean:
            verdict += f"; WITHOUT IT TOO: {unmutated}"
        wrong += missed or not clean
        print(f"{name:20} {text}: {verdict[:150]}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
