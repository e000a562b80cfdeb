"""Runs a function of a test's file in several processes, the ranks of one job, as torchrun would have started them."""

import os
import random
import socket
import subprocess
import sys
import time

SECONDS = int(os.environ.get("WEFT_TEST_SECONDS", "300"))  # a test's ranks
RANKS = int(os.environ.get("WEFT_TEST_RANKS", "0"))  # of a test that asks for several; 0: as many as it asks for


def counts(*asked):
    """What a test that asks for these numbers of ranks is run with: where several mean RANKS, once."""
    return list(dict.fromkeys(RANKS if RANKS and one > 1 else one for one in asked))


def free_port():
    """A port that nothing listens at, outside of those that connections get by themselves."""
    while True:
        port = random.randrange(20000, 30000)
        try:
            for one in (port, port + 1):  # weft's, if torch has the first
                with socket.socket() as listener:
                    listener.bind(("127.0.0.1", one))
            return port
        except OSError:
            continue


def run(file, function, ranks, *arguments, deadline=SECONDS // 4):
    """Each rank runs function(*arguments) of `file`, arguments as text, with a deadline in seconds, which is longer where the tests
    have more time: ranks compile. Raises with the output of those that failed."""
    ranks = RANKS if RANKS and ranks > 1 else ranks
    here = os.path.dirname(os.path.abspath(file))
    module = os.path.splitext(os.path.basename(file))[0]
    code = f"import sys; sys.path.insert(0, {here!r}); import {module}; {module}.{function}(*sys.argv[1:])"
    port = str(free_port())
    jobs = []
    for rank in range(ranks):
        env = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
               "MASTER_PORT": port, "WEFT_DEADLINE": str(deadline), "OMP_NUM_THREADS": "1"}
        jobs.append(subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], env=env, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True))
    end = time.monotonic() + SECONDS
    texts, codes = [], []
    for job in jobs:
        try:
            texts.append(job.communicate(timeout=max(1, end - time.monotonic()))[0])
        except subprocess.TimeoutExpired:
            job.kill()
            texts.append(job.communicate()[0] + f"\nstill running after {SECONDS} s")
        codes.append(job.returncode)
    if any(codes):
        raise AssertionError("\n".join(f"rank {rank} ended with {code}:\n{text}"
                                       for rank, (code, text) in enumerate(zip(codes, texts)) if code))
    return texts
