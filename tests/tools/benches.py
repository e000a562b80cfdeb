"""Goal: a benchmark measures, and writes each figure as a line of a table and as a line of JSON with the members that
scripts/bench_record.py and the records have; a wrong command line is refused.

Method: run two on two PEs with one sample a figure, read what they write, and merge it as scripts/bench.sh does.
Usage: benches.py BENCH_HOST BENCH_WORLD WEFTRUN.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HOST, WORLD, RUN = sys.argv[1:4]
MEMBERS = ["name", "impl", "pes", "bytes", "value", "unit", "stat", "n", "low", "high"]
MERGE = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "bench_record.py"


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


class Benches(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def figures(self, program):
        path = self.folder / "figures.jsonl"
        done = run(RUN, "-q", "-n", "2", program, "--blocks", "1", "--json", str(path))
        self.assertEqual(done.returncode, 0, done.stderr)
        figures = [json.loads(line) for line in path.read_text().splitlines()]
        for figure in figures:
            self.assertEqual(list(figure)[: len(MEMBERS)], MEMBERS)
            self.assertEqual(figure["stat"], "median")
            self.assertLessEqual(figure["low"], figure["high"])
            self.assertIn(f"{figure['name']} ", done.stdout)
        return figures

    def test_host(self):
        figures = self.figures(HOST)
        self.assertTrue({"put_issue", "get", "fetch_add", "barrier", "pingpong", "put_bw"} <= {f["name"] for f in figures})
        self.assertEqual({f["impl"] for f in figures}, {"weft", "hardware", "memcpy"})
        self.assertTrue(all(f["value"] > 0 for f in figures))

    def test_world_and_merge(self):
        figures = self.figures(WORLD)
        modes = {f["mode"] for f in figures if f["name"] == "world_create"}
        self.assertEqual(modes, {"first", "later"})
        self.assertTrue(all(f["value"] > 0 for f in figures if f["name"] == "pss_per_pe"))
        record = self.folder / "record.jsonl"
        rounds = str(self.folder / "figures.jsonl")
        about = ["--machine", "m", "--commit", "c", "--date", "d", "--output", str(record)]
        done = run(sys.executable, str(MERGE), "merge", *about, rounds, rounds)
        self.assertEqual(done.returncode, 0, done.stderr)
        merged = [json.loads(line) for line in record.read_text().splitlines()]
        self.assertEqual(len(merged), len(figures))
        self.assertEqual([f["rounds"] for f in merged], [[f["value"]] * 2 for f in figures])

    def test_wrong_usage(self):
        for arguments, told in [
            (["--blocks", "0"], "give a number from 1 to 1024"),
            (["--block", "3"], 'no option "--block"'),
            (["--json"], "its value is missing"),
            (["--json", "/nowhere/figures.jsonl"], "cannot write /nowhere/figures.jsonl"),
        ]:
            done = run(WORLD, *arguments)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn(told, done.stderr)
        self.assertIn("--blocks N", run(WORLD, "--help").stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
