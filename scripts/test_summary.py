"""Count the tests in CTest's JUnit reports.

test_summary.py show PRESET REPORT CTEST_CODE LOG   one preset: its counts, what was skipped, the output of what failed
test_summary.py total PRESET=REPORT:CTEST_CODE...   all presets: a line each, and the sum as the last line. A REPORT of
                                                    "-" is one check, skipped if its code is 77
"""

import sys
import xml.etree.ElementTree as ElementTree

NAMED = 20  # failures that the end names again, which may be all that is kept of a long log


class Counts:
    def __init__(self):
        self.passed = []
        self.failed = []
        self.skipped = []

    def line(self):
        return f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"


def read_counts(report, code):
    """A preset whose build or report is missing, or whose ctest failed without naming a test, counts as one failure."""
    counts = Counts()
    if report == "-":
        {0: counts.passed, 77: counts.skipped}.get(code, counts.failed).append("(check)")
        return counts
    try:
        cases = ElementTree.parse(report).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        counts.failed.append("(no report)")
        return counts
    for case in cases:
        name = case.get("name")
        skipped = case.find("skipped")
        if case.get("status") == "run":
            counts.passed.append(name)
        elif skipped is not None and "SKIP_RETURN_CODE" in skipped.get("message", ""):
            counts.skipped.append(name)
        else:
            counts.failed.append(name)
    if code != 0 and not counts.failed:
        counts.failed.append("(ctest)")
    return counts


def show(preset, report, code, log):
    counts = read_counts(report, int(code))
    if counts.failed:
        with open(log, errors="replace") as text:
            sys.stdout.write(text.read())
    for name in counts.skipped:
        print(f"skipped: {name}")
    for name in counts.failed:
        print(f"FAILED: {name}")
    print(f"== {preset}: {counts.line()}")


def total(results):
    whole = Counts()
    for result in results:
        preset, _, rest = result.partition("=")
        report, _, code = rest.rpartition(":")
        counts = read_counts(report, int(code))
        whole.passed += counts.passed
        whole.failed += counts.failed
        whole.skipped += counts.skipped
        print(f"{preset}: {counts.line()}")
        for name in counts.failed[:NAMED]:
            print(f"FAILED: {preset}: {name}")
    print(whole.line())
    return 1 if whole.failed or not whole.passed else 0


if __name__ == "__main__":
    if sys.argv[1] == "show":
        show(*sys.argv[2:6])
    else:
        sys.exit(total(sys.argv[2:]))
