"""Goal: the tests would find the mistakes that protocols like these have.

Method: each mistake of the lists beside this file (edits.py says how they are written) is made in a copy of its file, which
alone is compiled and linked with the objects of the build. The campaign then runs from a fresh base seed until a run
fails; that run must be clean without the mistake. Where the lists name another test, that must fail, and pass without the
mistake. Prints for each who found it and how soon; fails when an edit does not fit, or a mistake is not found.
Usage: run.py ROOT BUILD [OPTION...]
    --check         only see that all edits fit
    --targets       only print what must be built
    --whole SECONDS so long for each with every case: does the campaign find it by itself, and how soon
    --seconds N     at most, a mistake, without --whole; 60
    --count N       that many of those that the campaign is to find, drawn
    --only TEXT     those whose names or files contain the text
    --seed N        the base seed
    --jobs N        how many at a time; 1
"""

import argparse
import collections
import concurrent.futures
import pathlib
import random
import re
import sys

import edits
from programs import Programs

RUNS = 10000  # at most, where the cases are known
SILENCE = 15  # seconds without a new run: the one under way does not end


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--targets", action="store_true")
    parser.add_argument("--whole", type=float)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--count", type=int)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 1 << 40))
    parser.add_argument("--jobs", type=int, default=1)
    return parser.parse_args()


def check_edits(root, mutations):
    """How many edits do not fit the source, or make of it what another makes; each is told."""
    wrong = 0
    made = {}
    for mutation in mutations:
        try:
            if mutation.file.endswith(".h") and not {"through", "why"} & set(mutation.keys):
                raise edits.Refused(f"{mutation.name}: a header needs a line 'through SOURCES', which include it")
            text = " ".join(re.sub(r"\(void\)\w+;", "", edits.mutate(root, mutation)).split())
            other = made.setdefault((mutation.file, text), mutation.name)
            if other != mutation.name:
                raise edits.Refused(f"{mutation.name} is the same mistake as {other}")
        except edits.Refused as error:
            print(error)
            wrong += 1
    return wrong


class Search:
    """The campaign on one mistake."""

    def __init__(self, programs, mutation, asked):
        self.programs = programs
        seconds = asked.whole or asked.seconds
        self.cases = [] if asked.whole else ["--case", ",".join(mutation.keys["cases"].split())]
        self.limits = ["--seeds", str(1 << 60 if asked.whole else RUNS), "--seconds", str(seconds)]
        self.timeout = seconds + 60
        self.base = asked.seed

    def run(self, program):
        """(found, how, (seed, case)) of a campaign."""
        command = [program, "--seed", str(self.base), *self.limits, *self.cases, "--quiet"]
        code, text, seconds = self.programs.run(command, self.timeout, SILENCE)
        runs = re.search(r"^(\d+) runs,", text, re.M)
        begun = re.findall(r"^at seed (\d+), case (\S+)$", text, re.M)
        failed = re.search(r"^FAILED: (case (\S+),.*)$", text, re.M)
        count = int(runs[1]) if runs else len(begun)
        if code == 0:
            return False, f"in {count} runs, {seconds:.1f} s", None
        reason = failed[1] if failed else "no end" if code is None else f"signal {-code}"
        case = begun[-1][1] if begun else "no case"
        return True, f"by {case} in run {count}, {seconds:.1f} s: {reason}", begun[-1] if begun else None

    def is_clean(self, run):
        """Whether the run that failed is clean without the mistake."""
        if run is None:
            return False
        command = [self.programs.campaign, "--seed", run[0], "--seeds", "1", "--case", run[1], "--quiet"]
        return self.programs.run(command, self.timeout, SILENCE)[0] == 0


def search(programs, mutation, asked):
    program = programs.link_campaign(mutation)
    work = Search(programs, mutation, asked)
    found, how, failing = work.run(program)
    program.unlink()
    if found and not work.is_clean(failing):
        return False, f"found {how}; RUN {failing} FAILS WITHOUT IT TOO"
    return found, f"found {how}" if found else f"MISSED {how}"


def ask_test(programs, mutation, asked):
    """Whether the test that the list names fails with the mistake and passes without it."""
    target, _, command = mutation.keys["test"].partition(":")
    command = command.strip() or "{}"
    program = programs.link_test(mutation, target)
    code, _, seconds = programs.run(programs.command(command, program), asked.seconds)
    clean, _, _ = programs.run(programs.command(command, programs.build / "tests" / target), asked.seconds)
    if clean != 0:
        return False, f"{target} FAILS WITHOUT IT TOO"
    return code != 0, f"found by {target}, {seconds:.1f} s" if code != 0 else f"MISSED by {target}"


def judge(programs, mutation, asked):
    try:
        if "test" in mutation.keys and not asked.whole:
            return ask_test(programs, mutation, asked)
        return search(programs, mutation, asked)
    except edits.Refused as error:
        return False, str(error)


def draw(mutations, asked):
    count = min(asked.count or len(mutations), len(mutations))
    places = random.Random(asked.seed).sample(range(len(mutations)), count)
    return [mutations[place] for place in sorted(places)]


def main():
    asked = parse()
    mutations = [m for m in edits.read_all() if asked.only in m.name or asked.only in m.file]
    if asked.targets:
        tests = {m.keys["test"].partition(":")[0] for m in mutations if "test" in m.keys}
        archives = {"weft_shmem_static"} if any(test.startswith("shmem_") for test in tests) else set()
        print(*sorted({"campaign"} | archives | tests))
        return 0
    wrong = check_edits(asked.root, mutations)
    if asked.check or wrong:
        return 1 if wrong or not mutations else 0
    print(f"base seed {asked.seed}")
    mutations = draw([m for m in mutations if "cases" in m.keys or ("test" in m.keys and not asked.count)], asked)
    programs = Programs(asked.root, asked.build)
    by_file = collections.Counter()
    missed = []
    with concurrent.futures.ThreadPoolExecutor(max_workers=asked.jobs) as pool:
        results = pool.map(lambda mutation: judge(programs, mutation, asked), mutations)
        for mutation, (found, text) in zip(mutations, results):
            by_file[mutation.file] += 1
            line = f"{mutation.name} ({mutation.file}): {mutation.what}: {text[:160] if found else text}"
            print(line, flush=True)
            if not found:
                missed.append(line)
    print(f"{len(mutations) - len(missed)} of {len(mutations)} found, in {len(by_file)} files")
    if missed:
        print("not found:", *missed, sep="\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
