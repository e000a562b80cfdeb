"""Goal: what is typed at a terminal reaches PE 0, and the end of the input ends it.

Method: give weftrun a terminal of its own and type. Usage: weftrun_terminal.py WEFTRUN.
"""

import os
import pty
import sys
import time


def main():
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.argv[1], [sys.argv[1], "-n", "2", "-t", "60", "cat"])
    os.write(terminal, b"warp\n")
    time.sleep(0.3)
    os.write(terminal, b"weft\n\x04")
    said = b""
    try:
        while part := os.read(terminal, 4096):
            said += part
    except OSError:  # how Linux says that nobody has the terminal open any more
        pass
    _, status = os.waitpid(child, 0)
    print(said.decode())
    for word in (b"[0] warp", b"[0] weft"):
        assert word in said, f"{word} was not said"
    assert b"[1] " not in said, "PE 1 has no input"
    assert os.waitstatus_to_exitcode(status) == 0, status


main()
