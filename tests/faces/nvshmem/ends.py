"""Goal: nvshmem_global_exit ends the program on all PEs with its code, also with 0, and what was printed before is there.
Method: ends.c with several codes; the exit status of weftrun, its output, and the time that it took.
Usage: ends.py WEFTRUN ENDS
"""

import subprocess
import sys
import time


def main():
    weftrun, program = sys.argv[1:]
    wrong = 0
    for code in (0, 1, 7, 200):
        start = time.monotonic()
        done = subprocess.run([weftrun, "-n", "4", program, str(code)], capture_output=True, text=True, timeout=60)
        seconds = time.monotonic() - start
        if done.returncode != code or "ends" not in done.stdout or "goes on" in done.stdout or seconds > 20:
            print(f"global_exit({code}): status {done.returncode} after {seconds:.1f} s\n{done.stdout}{done.stderr}")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
