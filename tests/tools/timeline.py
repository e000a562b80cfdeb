"""Goal: WEFT_TRACE gives one file that loads, whatever becomes of the job, with what every PE did and when.

Method: run programs under weftrun and read the file: the events of each PE, how they nest, whether the PEs' clocks agree;
a killed job, a second job, files that are none. WEFT_NVTX tells the same to a library that stands for NVIDIA's tools.
Usage: timeline.py WEFTRUN HELLO MULTI_COLL EP_STEPS NVTX_LISTENER; "none": this build has no NVTX.
"""

import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

RUN, HELLO, COLL, EP, LISTENER = sys.argv[1:6]
PHASES = ["bootstrap", "hello", "window", "reach", "map"]


class Timeline(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = pathlib.Path(self.folder.name) / "trace.json"
        self.addCleanup(self.folder.cleanup)

    def run_job(self, program, pes=3, file=None, **variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")} | variables
        environment["WEFT_TRACE"] = str(file or self.file)
        command = [RUN, "-n", str(pes), "-t", "100", program]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    def read(self):
        """The spans of each (process, line), in the order of their begin; an outer one before those inside it."""
        spans = collections.defaultdict(list)
        for event in json.loads(self.file.read_text())["traceEvents"]:
            if event["ph"] == "X":
                spans[event["pid"], event["tid"]].append(event)
        for line in spans.values():
            line.sort(key=lambda e: (e["ts"], -e["dur"]))
        return spans

    def assert_nested(self, line):
        """A span ends before the next begins, or contains it; to a ns."""
        open_spans = []
        for event in line:
            begin, end = round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)
            while open_spans and begin >= open_spans[-1] - 1:
                open_spans.pop()
            self.assertTrue(not open_spans or end <= open_spans[-1] + 1, event)
            open_spans.append(end)

    @unittest.skipIf(LISTENER == "none", "no NVTX here")
    def test_nvtx(self):
        told = pathlib.Path(self.folder.name) / "ranges"
        environment = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
        environment |= {"WEFT_NVTX": "1", "NVTX_INJECTION64_PATH": LISTENER, "NVTX_LISTENER_FILE": str(told)}
        done = subprocess.run([RUN, "-n", "2", "-t", "100", EP], capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = told.read_text().splitlines()
        started = [line.split()[1] for line in lines if line.startswith("start ")]
        self.assertEqual(len(started), sum(line.startswith("end") for line in lines))
        self.assertLessEqual({"weft_ep_dispatch", "weft_ep_combine", "weft_malloc"}, set(started))
        self.assertFalse(self.file.exists())

    def test_hello(self):
        done = self.run_job(HELLO)
        self.assertEqual(done.returncode, 0, done.stderr)
        spans = self.read()
        self.assertEqual(len({pid for pid, _ in spans}), 1)
        self.assertEqual(sorted(tid for _, tid in spans), [0, 1, 2])
        barriers = []
        for (_, tid), line in spans.items():
            self.assert_nested(line)
            names = [event["name"] for event in line]
            self.assertEqual(names[: 1 + len(PHASES)], ["weft_world_create"] + PHASES)
            self.assertEqual(names[1 + len(PHASES) :], ["weft_calloc", "weft_barrier", "weft_free"])
            self.assertEqual({event["args"]["pe"] for event in line}, {tid})
            self.assertAlmostEqual(line[0]["dur"], sum(event["dur"] for event in line[1 : 1 + len(PHASES)]), delta=0.01)
            barriers += [event for event in line if event["name"] == "weft_barrier"]
        self.assertEqual(len(barriers), 3)
        # Nobody leaves a barrier before the last has come: one clock for all.
        self.assertGreater(min(e["ts"] + e["dur"] for e in barriers), max(e["ts"] for e in barriers))

    def test_collectives(self):
        done = self.run_job(COLL)
        self.assertEqual(done.returncode, 0, done.stderr)
        worlds = collections.defaultdict(list)
        for (pid, _), line in self.read().items():
            self.assert_nested(line)
            calls = [(e["name"], e["args"].get("bytes")) for e in line if e["args"].get("members") == 3]
            worlds[pid].append(collections.Counter(name for name, _ in calls))
        self.assertTrue(all(counts == lines[0] for lines in worlds.values() for counts in lines), worlds)
        seen = set().union(*(counts for lines in worlds.values() for counts in lines))
        self.assertTrue({"weft_broadcast", "weft_reduce", "weft_alltoall", "weft_scan", "weft_malloc", "weft_team_create",
                         "weft_team_destroy"} <= seen, seen)

    def test_expert_parallel_steps(self):
        """Each call is a span with its parts inside it, one after the other from its begin to its end."""
        done = self.run_job(EP)
        self.assertEqual(done.returncode, 0, done.stderr)
        parts = collections.defaultdict(set)
        calls = collections.defaultdict(collections.Counter)
        for (_, tid), line in self.read().items():
            self.assert_nested(line)
            call = None
            for event in line:
                end = event["ts"] + event["dur"]
                if event["name"].startswith("weft_ep_"):
                    call, call_end = event["name"], end
                    calls[tid][call] += 1
                elif call and end <= call_end + 0.001:
                    parts[call].add(event["name"])
        self.assertEqual(len(calls), 3)
        # Ranks may choose whether they call a move or its halves, but all update together.
        updates = {tid: counts["weft_ep_route_update"] for tid, counts in calls.items()}
        self.assertTrue(0 < updates[0] == updates[1] == updates[2], calls)
        self.assertTrue({"post", "wait for ready", "move", "wait for done"} <= parts["weft_ep_route_update"], parts)
        self.assertTrue({"post", "move to those who are ready", "wait for done"} <= parts["weft_ep_dispatch"], parts)
        self.assertTrue({"post", "wait for ready", "move", "wait for done"} <= parts["weft_ep_combine"], parts)

    def test_a_second_job_replaces_the_first(self):
        self.run_job(HELLO, pes=3)
        self.run_job(HELLO, pes=2)
        self.assertEqual(len(self.read()), 2)

    def test_files_of_others_are_kept(self):
        self.file.write_text("my thesis\n")
        done = self.run_job(HELLO)
        self.assertEqual(done.returncode, 0)
        self.assertIn("trace.json: cannot add to it: the file is another's", done.stderr)
        self.assertEqual(self.file.read_text(), "my thesis\n")

    def test_a_killed_job_leaves_a_whole_file(self):
        environment = os.environ | {"WEFT_TRACE": str(self.file)}
        job = subprocess.Popen([RUN, "-n", "3", COLL], env=environment, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not self.file.exists() and job.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        job.send_signal(signal.SIGKILL)
        job.wait()
        self.assertTrue(self.file.exists(), "nothing was written before the end")
        time.sleep(0.2)  # the PEs follow weftrun
        self.assertTrue(self.read())

    def test_counters_are_printed(self):
        done = self.run_job(HELLO, WEFT_COUNTERS="1", WEFT_LOG="none")
        lines = [line for line in done.stderr.splitlines() if "counters: world" in line]
        self.assertEqual(len(lines), 3)
        for line in lines:
            self.assertIn(" heap_allocs=1 ", line)
            self.assertIn(" barriers=1", line)
            self.assertNotIn("=0", line)


unittest.main(argv=sys.argv[:1])
