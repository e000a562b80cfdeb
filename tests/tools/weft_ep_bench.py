"""Goal: weft-ep-bench measures what it is told to, checks it, tells it as a table and as JSON lines, which scripts/plot.py draws, and says
what is wrong with a command line.

Method: run it on small shapes, alone, with threads and under weftrun, and read what it prints. Of a plot read the points; it is
drawn where matplotlib is installed. The GPU's part runs on the fake driver where that was built. Usage: weft_ep_bench.py WEFT_EP_BENCH WEFTRUN FAKE_DRIVER_FOLDER.
"""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import plot

BENCH, RUN, FAKE = sys.argv[1:4]
SMALL = ["--tokens", "8,20", "--hidden", "32", "--topk", "3", "--experts", "7", "--repeats", "3", "--check"]
FIGURES = ["ep_dispatch", "ep_combine", "ep_pair", "ep_setup", "ep_memory"]


def run(*arguments, launcher=(), fake=False, sms=1):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")} | {"WEFT_LOG": "none"}
    if fake:
        environment |= {"LD_LIBRARY_PATH": FAKE, "WEFT_FAKE_SMS": str(sms)}
    return subprocess.run([*launcher, BENCH, *arguments], capture_output=True, text=True, env=environment, timeout=100)


class Bench(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def lines(self, *arguments, **how):
        path = self.folder / "figures.jsonl"
        done = run(*arguments, "--json", str(path), **how)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in path.read_text().splitlines()], done.stdout

    def test_alone(self):
        figures, table = self.lines(*SMALL)
        self.assertEqual([f["name"] for f in figures], FIGURES * 2)
        self.assertEqual({f["tokens"] for f in figures}, {8, 20})
        self.assertEqual(len(table.splitlines()), 4)

    def test_threads_and_every_layout(self):
        figures, _ = self.lines(*SMALL, "--threads", "3", "--layout", "rank-major,expert-major,slots-source,slots-expert",
                                "--alignment", "4", "--routing", "fresh,cached", "--skew", "uniform,zipf,one-rank",
                                "--dtype", "bf16,f16,f32,fp8,bf16-fp8", "--mode", "ht,ll,eager", "--repeats", "1")
        self.assertEqual(len(figures), 7 * 2 * 4 * 2 * 3 * 5 * 3)  # with the floors of dispatch and combine
        for figure in figures:
            self.assertEqual(figure["pes"], 3)
            self.assertEqual((figure["hidden"], figure["topk"], figure["experts"]), (32, 3, 7))
            self.assertIn(figure["impl"], ("weft", "floor"))
            self.assertEqual(figure["unit"], "MB" if figure["name"] == "ep_memory" else "us")
            self.assertGreater(figure["value"], 0)
            self.assertLessEqual(figure["low"], figure["value"])
            self.assertLessEqual(figure["value"], figure["high"])
        self.assertEqual({f["layout"] for f in figures}, {"rank-major", "expert-major", "slots"})
        self.assertEqual({f.get("slots") for f in figures}, {None, "source", "expert"})
        self.assertEqual({f["mode"] for f in figures}, {"ht", "ll", "eager"})

    def test_two_pairs(self):
        figures, _ = self.lines(*SMALL, "--threads", "2", "--layout", "rank-major,expert-major,slots-source,slots-expert",
                                "--routing", "fresh,cached", "--mode", "ll,two", "--repeats", "1", "--backward")
        by = {(f["name"], f["impl"], f["mode"], f["tokens"], f["layout"], f.get("slots"), f["routing"]): f["bytes"]
              for f in figures if "bytes" in f}
        self.assertEqual({(mode, count > 0) for (name, _, mode, *_), count in by.items() if name == "ep_pair"},
                         {("ll", True), ("two", True)})
        for (name, impl, mode, *rest), count in by.items():
            if mode == "two" and count:
                self.assertEqual(count, by[name, impl, "ll", *rest] * (1 if "bwd" in name else 2))

    def test_backward(self):
        figures, table = self.lines(*SMALL, "--threads", "2", "--backward", "--layout", "expert-major,slots-expert")
        self.assertEqual(sum(f["name"] in ("ep_dispatch_bwd", "ep_combine_bwd") for f in figures), 8)
        self.assertIn("combine'", table)

    def test_processes(self):
        figures, _ = self.lines(*SMALL, launcher=(RUN, "-n", "4", "-q"))
        self.assertEqual({f["pes"] for f in figures}, {4})

    def test_buffers_and_worst_case(self):
        figures, _ = self.lines(*SMALL, "--threads", "2", "--buffers", "symmetric,plain", "--worst-case", "--layout",
                                "rank-major,expert-major,slots-expert")
        self.assertEqual({f["buffers"] for f in figures}, {"symmetric", "plain"})
        self.assertEqual({f["name"] for f in figures if f["impl"] == "floor"}, {"ep_dispatch", "ep_combine"})

    def test_memcpy(self):
        figures, _ = self.lines(*SMALL, "--memcpy", "--unweighted", "--mode", "ht,ll", launcher=(RUN, "-n", "3", "-q"))
        beside = {}
        for figure in figures:
            key = figure["name"], figure["tokens"], figure["mode"]
            beside.setdefault(key, {})[figure["impl"]] = figure["bytes"]
        for name in ("ep_dispatch", "ep_combine", "ep_pair"):
            for tokens in (8, 20):
                for mode in ("ht", "ll"):
                    by = beside[name, tokens, mode]
                    self.assertEqual(set(by), {"weft", "memcpy"})
                    self.assertEqual(by["weft"], by["memcpy"])
                    self.assertGreater(by["weft"], 0)

        self.assertEqual(run("--memcpy", "--mode", "two").returncode, 2)

    def test_unweighted(self):
        self.lines(*SMALL, "--unweighted", "--threads", "3", "--layout", "rank-major,expert-major,slots-source,slots-expert")

    @unittest.skipUnless(pathlib.Path(FAKE, "libcuda.so.1").exists(), "no fake driver was built")
    def test_gpu(self):
        shape = ["--gpu", "--check", "--hidden", "64", "--topk", "2", "--experts", "5", "--repeats", "1", "--warmup", "0"]
        figures, _ = self.lines(*shape, "--tokens", "3", "--threads", "2", "--routing", "fresh,cached", "--sms", "0,1", fake=True)
        self.assertEqual(len({(f["routing"], f["sms"]) for f in figures}), 4)
        self.assertEqual({f["name"] for f in figures if f["impl"] == "floor"}, {"ep_dispatch", "ep_combine"})
        _, table = self.lines(*shape, "--tokens", "3", "--mode", "ll", "--dtype", "f32", "--buffers", "plain", "--worst-case",
                              launcher=(RUN, "-n", "2", "-q"), fake=True)
        self.assertEqual(len(table.splitlines()), 3)
        figures, _ = self.lines(*shape, "--tokens", "3", "--threads", "2", "--mode", "ll,eager", "--layout", "rank-major,expert-major",
                                "--dtype", "fp8,bf16-fp8", "--routing", "fresh,cached", fake=True)
        self.assertEqual(len({(f["mode"], f["layout"], f["dtype"], f["routing"]) for f in figures if "fp8" in f["dtype"]}), 16)
        figures, table = self.lines(*shape, "--tokens", "3", "--threads", "2", "--mode", "ht,ll,two", "--layout",
                                    "rank-major,slots-expert", "--routing", "fresh,cached", "--counts", fake=True)
        counts = [(f["mode"], f["layout"], f["impl"], f["routing"]) for f in figures if f["name"] == "ep_counts"]
        self.assertEqual(sorted(counts), [(mode, layout, impl, "fresh") for mode in ("ht", "ll")
                                          for layout in ("rank-major", "slots") for impl in ("update", "weft")])
        by = {f["mode"]: f["bytes"] for f in figures if f["name"] == "ep_pair" and f["layout"] == "rank-major"}
        self.assertEqual(by["two"], 2 * by["ll"])
        for layout in ("rank-major", "slots"):  # the rows of both pairs, whatever else there is of each
            by = {f["mode"]: f["value"] for f in figures if (f["name"], f["layout"], f["routing"]) == ("ep_memory", layout, "cached")}
            self.assertGreaterEqual(by["two"], 2 * by["ll"])
        self.assertIn("update", table.splitlines()[1])
        self.assertEqual(run("--counts").returncode, 2)
        done = run(*shape, "--tokens", "3", "--threads", "33", "--mode", "eager", fake=True)  # more than can leave with send
        self.assertIn("not supported: weft_ep_create: flags has WEFT_EP_ROWS_WITH_SEND", done.stdout)

    @unittest.skipUnless(pathlib.Path(FAKE, "libcuda.so.1").exists(), "no fake driver was built")
    def test_gpu_two_streams(self):
        shape = ["--gpu", "--check", "--hidden", "64", "--topk", "2", "--experts", "5", "--repeats", "1", "--warmup", "0"]
        figures, _ = self.lines(*shape, "--tokens", "3", "--threads", "2", "--routing", "fresh,cached", "--sms", "1",
                                "--layout", "rank-major,slots-expert", "--mode", "two,streams", fake=True, sms=2)
        of = {(f["mode"], f["layout"], f["routing"]): f["bytes"] for f in figures if f["name"] == "ep_pair" and f["impl"] == "weft"}
        self.assertEqual(len(of), 8)
        for (mode, *rest), count in of.items():
            self.assertEqual(count, of["two", *rest])
        for short in (["--mode", "streams"], ["--mode", "streams", "--gpu"]):
            refused = run(*short)
            self.assertEqual((refused.returncode, "--sms" in refused.stderr), (2, True))

    def test_no_gpu(self):
        if shutil.which("nvidia-smi") is None:
            done = run("--gpu")
            self.assertEqual(done.returncode, 77)
            self.assertIn("no GPU here", done.stderr)

    def test_ranges(self):
        figures, _ = self.lines("--tokens", "2:16", "--hidden", "16", "--repeats", "1", "--experts", "8")
        self.assertEqual(sorted({f["tokens"] for f in figures}), [2, 4, 8, 16])

    def test_plot(self):
        shape = ["--tokens", "4:32", "--hidden", "32", "--repeats", "2"]
        figures, _ = self.lines(*shape, "--routing", "fresh,cached", "--threads", "2")
        drawn = plot.make_plot(figures)
        self.assertEqual(drawn.axis, "tokens a rank")
        self.assertIn("rank-major", drawn.title)
        self.assertEqual([panel.title for panel in drawn.panels], ["dispatch", "combine", "dispatch and combine"])
        for panel in drawn.panels:
            for curve in ("weft, fresh", "weft, cached"):
                self.assertEqual([x for x, _ in panel.curves[curve]], [4, 8, 16, 32])
        pairs = {f["tokens"]: f["value"] for f in figures if f["name"] == "ep_pair" and f["routing"] == "fresh"}
        self.assertEqual(dict(drawn.panels[2].curves["weft, fresh"]), pairs)
        if importlib.util.find_spec("matplotlib"):
            plot.draw(drawn, self.folder / "plot.svg")
            picture = (self.folder / "plot.svg").read_text()
            for text in ("dispatch and combine", "rank-major", "fresh"):
                self.assertIn(text, picture)

    def test_help(self):
        told = run("--help")
        self.assertEqual(told.returncode, 0)
        for option in ("--tokens", "--layout", "--check", "--json", "--threads", "--gpu", "--sms", "--buffers"):
            self.assertIn(option, told.stdout)
        self.assertRegex(run("--version").stdout, r"^weft \d+\.\d+\.\d+$")

    def test_wrong_usage(self):
        for arguments, told in [
            (["--token", "8"], 'no option "--token"'),
            (["--tokens"], "its value is missing"),
            (["--tokens", "x"], "give a number from 0"),
            (["--tokens", "64:8"], "a range goes from"),
            (["--layout", "row-major"], "give one of: rank-major, expert-major"),
            (["--hidden", "12"], "give a multiple of 8"),
            (["--topk", "9", "--experts", "8"], "a token chooses distinct experts"),
            (["--threads", "0"], "give a number from 1"),
            (["--memcpy", "--layout", "expert-major"], "--memcpy is for the host, rank-major"),
            (["--memcpy", "--buffers", "plain"], "not for rank-major plain bf16"),
            (["--memcpy", "--dtype", "bf16-fp8"], "not for rank-major symmetric bf16-fp8"),
            (["stray"], 'no option "stray"'),
        ]:
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(told, done.stderr)

    def test_file_that_cannot_be_written(self):
        done = run(*SMALL, "--json", "/nonexistent/figures")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write /nonexistent/figures", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
