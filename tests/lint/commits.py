"""Goal: subjects of commits say what changed and where, in one line that fits.

Method: of all commits since FROM the subject is "area: what", the area in lower case, of at most 72 characters, and does not
end with a full stop.
Usage: commits.py ROOT. Prints each that is not, and exits 1 when there is one. Without git, or where the history does not
reach back to FROM, nothing is read.
"""

import re
import subprocess
import sys

FROM = "e2f6d5f739a35b908b2225394b92949820449b6e"  # the last that this refuses
LENGTH_MAX = 72
SUBJECT = re.compile(r"[a-z][a-z0-9_./, -]{0,39}: \S")


def fault_of(subject):
    """What is wrong with it, or None."""
    if not SUBJECT.match(subject):
        return 'is not "area: what" with the area in lower case'
    if len(subject) > LENGTH_MAX:
        return f"has {len(subject)} characters; at most {LENGTH_MAX}"
    return "ends with a full stop" if subject.endswith(".") else None


def read(root):
    """[(commit, subject)], or None."""
    command = ["git", "-C", root, "log", "--no-merges", "--format=%h %s", f"{FROM}..HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return None
    return [line.split(" ", 1) for line in done.stdout.splitlines()] if done.returncode == 0 else None


def main():
    commits = read(sys.argv[1])
    if commits is None:
        print("commits: no history here")
        return 0
    wrong = [(commit, fault_of(subject), subject) for commit, subject in commits if fault_of(subject)]
    for commit, fault, subject in wrong:
        print(f'{commit} {fault}: "{subject}"')
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
