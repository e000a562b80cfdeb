"""Goal: weft-perf measures every operation in every scope that there is, checks what it did, says where something is not
supported, and tells it as a table and as JSON lines, which scripts/plot.py draws.

Method: run it with few calls, with threads and under weftrun, on host memory and, where it was built, with streams and
kernels on the fake driver, which can be told to lose a byte, which must be found. Usage: weft_perf.py WEFT_PERF WEFTRUN
FAKE_DRIVER_FOLDER.
"""

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

PERF, RUN, FAKE = sys.argv[1:4]
FEW = ["--calls", "2", "--rounds", "2"]
MOVES = "put,put_quiet,get"
TRIPS = "put_signal,signal,p_pingpong"
WORDS = "p,g,fetch,set,swap,compare_swap,add,fetch_add,inc,fetch_inc,and,fetch_and,or,fetch_or,xor,fetch_xor"
COLLECTIVES = "barrier,sync,broadcast,fcollect,collect,alltoall"
REDUCTIONS = "reduce,reduce_scatter"


def run(*arguments, launcher=(), fake=False, **more):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")} | {"WEFT_LOG": "none"} | more
    if fake:
        environment["LD_LIBRARY_PATH"] = FAKE
    return subprocess.run([*launcher, PERF, *FEW, *arguments], capture_output=True, text=True, env=environment, timeout=100)


class Base(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def lines(self, *arguments, **how):
        path = self.folder / "figures.jsonl"
        done = run(*arguments, "--json", str(path), **how)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in path.read_text().splitlines()], done.stdout

    def names(self, figures):
        return {f["name"] for f in figures}


class Host(Base):
    def test_host(self):
        ops = f"{MOVES},{TRIPS},{WORDS},put_bw,get_bw,{COLLECTIVES},{REDUCTIONS},inscan,exscan,malloc"
        figures, table = self.lines("-o", ops, "-b", "48,6K", "-a", "one,all", "--threads", "3")
        self.assertEqual(self.names(figures), {*ops.replace("reduce,", "sum,").split(","), "put_bw_all", "get_bw_all"})
        self.assertNotIn("not supported", table)
        for figure in figures:
            self.assertEqual((figure["impl"], figure["scope"]), ("weft", "host"))
            self.assertGreater(figure["value"], 0, figure)
            self.assertEqual(figure.get("wrong", 0), 0, figure)
            self.assertEqual(figure["unit"], "GB/s" if "_bw" in figure["name"] else "us")

    def test_types_and_operations(self):
        figures, _ = self.lines("-o", "reduce,reduce_scatter,inscan,exscan", "-b", "96", "-d", "int8,uint16,int32,int64,float,double",
                                "-r", "min,max,sum,prod", "--threads", "2")
        self.assertEqual(len(figures), 4 * 6 * 4)
        self.lines("-o", "fetch,fetch_add", "-d", "int32,uint32,int64", "--threads", "2")
        self.lines("-o", "g,set", "-d", "float,double", "--threads", "2")
        figures, _ = self.lines("-o", "reduce", "-b", "96", "-d", "uint8,uint64", "-r", "and,or,xor", "--threads", "2")
        self.assertEqual({f["name"] for f in figures[-6:]}, {"and", "or", "xor"})

    def test_processes_and_numbers_of_pes(self):
        figures, table = self.lines("-o", "fcollect,barrier,put", "-n", "1,2,3", "-b", "12", launcher=(RUN, "-n", "3", "-q"))
        self.assertEqual({(f["name"], f["pes"]) for f in figures},
                         {(n, p) for n in ("fcollect", "barrier") for p in (1, 2, 3)} | {("put", 1), ("put", 2)})
        self.assertIn("3 PEs; host memory", table)
        figures, _ = self.lines("-o", "world", launcher=(RUN, "-n", "2", "-q"))
        self.assertEqual([f["name"] for f in figures[-3:]], ["world_create", "world_create", "world_destroy"])

    def test_what_is_not_there(self):
        _, table = self.lines("-o", "alltoallv,raw_put_bw,put_bulk_bw", "-b", "64", "--threads", "2")
        self.assertEqual(table.count("not supported"), 3)
        _, table = self.lines("-o", "reduce", "-d", "bf16", "-b", "64")
        self.assertEqual(table.count("not supported"), 1)
        _, table = self.lines("-o", "put_signal,put_bw", "-b", "64")  # alone
        self.assertEqual(table.count("not supported"), 2)

    def test_plot(self):
        figures, _ = self.lines("-o", "put,get", "-b", "8:4K")
        times, rates = plot.make_plot(figures).panels
        self.assertEqual((times.label, rates.label), ("us", "GB/s"))
        self.assertEqual(set(times.curves), set(rates.curves))
        self.assertEqual(len(times.curves), 2)
        for name, points in times.curves.items():
            self.assertEqual([x for x, _ in points], [8 << i for i in range(10)])
            for (bytes_, us), (_, rate) in zip(points, rates.curves[name]):
                self.assertAlmostEqual(rate, bytes_ / us * 1e-3)
        self.assertIsNone(plot.make_plot([]))

    def test_usage(self):
        told = run("--help")
        self.assertEqual(told.returncode, 0)
        for option in ("--op", "--scope", "--bytes", "--json", "--threads"):
            self.assertIn(option, told.stdout)
        for arguments, expected in [
            (["--op", "shove"], "give one of: put, put_quiet"),
            (["--bytes", "8Q"], "give a number from 1"),
            (["--op", "world", "--threads", "2"], "leave --threads out"),
        ]:
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(expected, done.stderr)

    def test_no_gpu(self):
        if shutil.which("nvidia-smi") is None:
            done = run("--scope", "stream")
            self.assertEqual(done.returncode, 77)
            self.assertIn("no GPU here", done.stderr)


@unittest.skipUnless(pathlib.Path(FAKE, "libcuda.so.1").exists(), "no fake driver was built")
class FakeGpu(Base):
    def test_streams(self):
        ops = f"{MOVES},{TRIPS},{WORDS},put_bw,get_bw,{COLLECTIVES},alltoallv,{REDUCTIONS}"
        figures, table = self.lines("-s", "stream", "-o", ops, "-b", "48,6K", "-a", "one,all", "--threads", "3", fake=True)
        self.assertEqual(self.names(figures), {*ops.replace("reduce,", "sum,").split(","), "put_bw_all", "get_bw_all"})
        self.assertNotIn("not supported", table)
        self.lines("-s", "stream", "-o", "p,fetch_add,swap", "-d", "int32,uint32,int64", "--threads", "2", fake=True)
        self.lines("-s", "stream", "-o", "p,swap", "-d", "float,double", "--threads", "2", fake=True)
        figures, _ = self.lines("-s", "stream", "-o", REDUCTIONS, "-b", "96", "-d", "bf16,fp16,e4m3,e5m2,int64", "-r", "sum,max",
                                "--threads", "2", fake=True)
        self.assertEqual({f["wrong"] for f in figures if "dtype" in f}, {0})

    def test_kernels(self):
        ops = f"{MOVES},put_signal,put_bw,get_bw,{COLLECTIVES},alltoallv,{REDUCTIONS}"
        figures, table = self.lines("-s", "thread,warp,block", "-o", ops, "-b", "48,6K", "-a", "one,all", "-B", "1,3", "-t", "256",
                                    "--threads", "3", fake=True)
        self.assertEqual(self.names(figures), {*ops.replace("reduce,", "sum,").split(","), "put_bw_all", "get_bw_all"})
        self.assertNotIn("not supported", table)
        _, table = self.lines("-s", "block", "-o", "reduce", "-b", "64", "-t", "512,1024", "--threads", "2", fake=True)
        self.assertEqual(table.count("not supported"), 1)  # too large a block
        figures, table = self.lines("-s", "thread", "-o", f"signal,p_pingpong,{WORDS},raw_put_signal", "-d", "uint32,uint64",
                                    "-b", "8", "--threads", "2", fake=True)
        self.assertNotIn("not supported", table)
        self.assertEqual({f["impl"] for f in figures if f["name"] == "put_signal"}, {"weft", "hardware"})

    def test_processes(self):
        figures, _ = self.lines("-m", "device", "-o", "put,fetch_add,malloc,world", "-b", "8", launcher=(RUN, "-n", "2", "-q"), fake=True)
        self.assertEqual(self.names(figures), {"put", "fetch_add", "device_malloc", "world_create", "world_destroy"})
        figures, _ = self.lines("-s", "warp,block", "-o", "put_bulk_bw,raw_put_bw,raw_get_bw,raw_get_bulk_bw", "-b", "256K",
                                launcher=(RUN, "-n", "2", "-q"), fake=True)
        self.assertIn("16-byte stores", {f.get("by") for f in figures})

    def test_wrong_data_are_found(self):
        done = run("-s", "stream", "-o", "put", "-b", "8K", "--threads", "2", fake=True, WEFT_FAKE_LOSES="1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("not what they must be", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
