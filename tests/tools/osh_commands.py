"""Goal: oshcc and oshc++ build OpenSHMEM programs from wherever they are called, and pass on what they do not know; oshrun starts
them, passes on input, output and variables, and ends as the program does, however that ends.

Method: a program of tests/faces/static that ends in each way (ends.c), one that is C and C++ (tests/install/shmem_consumer.c), and
programs that print what they were given.
Usage: osh_commands.py SOURCE-FOLDER BUILD-FOLDER
"""

import os
import pathlib
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

root, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
work = pathlib.Path(tempfile.mkdtemp(suffix=" with blanks"))
consumer = root / "tests/install/shmem_consumer.c"
COMPILERS = ("OSHCC_CC", "OSHMEM_CC", "SHMEM_CC", "CC", "OSHCXX_CXX", "OSHMEM_CXX", "SHMEM_CXX", "CXX")


def run(*command, **more):
    variables = {name: value for name, value in os.environ.items() if name not in COMPILERS}
    variables |= more.pop("variables", {})
    more.setdefault("stdin", subprocess.DEVNULL if "input" not in more else None)
    if more["stdin"] is None:
        del more["stdin"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100, env=variables, **more)


class Compilers(unittest.TestCase):
    def show(self, command, *arguments, **variables):
        done = run(build / command, *arguments, variables=variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.rstrip("\n")

    def test_builds(self):
        for command, options in (("oshcc", ["-std=c11"]), ("oshc++", ["-x", "c++"]), ("oshCC", ["-x", "c++"])):
            with self.subTest(command=command):
                program = work / command
                done = run(build / command, "-Wall", "-Wextra", "-Werror", *options, consumer, "-o", program)
                self.assertEqual(done.returncode, 0, done.stderr)
                done = run(build / "oshrun", "-n", "3", program)
                self.assertEqual((done.returncode, done.stdout), (0, "consumer: 3 PEs\n"), done.stderr)

    def test_in_steps(self):
        done = run(build / "oshcc", "-c", consumer, "-o", "part.o", cwd=work)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(run(build / "oshcc", "part.o", "-o", "whole", cwd=work).returncode, 0)
        self.assertEqual(run(build / "oshrun", "-np", "2", "./whole", cwd=work).stdout, "consumer: 2 PEs\n")
        done = run(build / "oshcc", "-E", consumer)
        self.assertIn("shmem_init", done.stdout)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = run(build / "oshcc", "-M", consumer)
        self.assertIn("shmem.h", done.stdout)

    def test_from_elsewhere(self):
        """By links, over two of them, and by PATH."""
        (work / "bin").mkdir()
        (work / "bin/first").symlink_to(build / "oshcc")
        (work / "bin/oshcc").symlink_to("first")
        direct = self.show("oshcc", "--showme", "a.c")
        self.assertEqual(run(work / "bin/oshcc", "--showme", "a.c").stdout.strip(), direct)
        self.assertEqual(run("oshcc", "-showme", "a.c", variables={"PATH": f"{work}/bin:{os.environ['PATH']}"}).stdout.strip(),
                         direct)

    def test_failures_pass(self):
        (work / "wrong.c").write_text("int main(void) { return shmem_no_such_thing; }\n")
        done = run(build / "oshcc", "wrong.c", cwd=work)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("shmem_no_such_thing", done.stderr)

    def test_static(self):
        """It is refused before the linker finds other words for it; what is not linked may have it."""
        for option in ("-static", "-static-pie"):
            done = run(build / "oshcc", option, consumer, "-o", work / "static")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, rf"^oshcc: {option}: .* leave it out\n$")
            self.assertEqual(run(build / "oshcc", option, "-c", consumer, "-o", work / "static.o").returncode, 0)

    def test_showme(self):
        added = ["-L" + str(build), "-Wl,-rpath," + str(build), "-lweft_shmem"]
        include = f"-I{build}/include"
        for word in ("--showme", "-showme", "-show"):
            self.assertEqual(shlex.split(self.show("oshcc", word, "a b.c", "-DX=\"it's\"", "-o", "a")),
                             ["cc", include, "a b.c", "-DX=\"it's\"", "-o", "a", *added])
        self.assertEqual(shlex.split(self.show("oshcc", "-show", "-c", "a.c")), ["cc", include, "-c", "a.c"])
        self.assertEqual(shlex.split(self.show("oshc++", "-show", "a.c")), ["c++", include, "a.c", *added])
        self.assertEqual(self.show("oshcc", "-show", "-v"), "cc -v")
        self.assertEqual(shlex.split(self.show("oshcc", "-show")), ["cc", include, *added])
        self.assertEqual(self.show("oshcc", "--showme:command"), "cc")
        self.assertEqual(shlex.split(self.show("oshcc", "--showme:compile")), [include])
        self.assertEqual(shlex.split(self.show("oshcc", "--showme:link")), added)
        self.assertEqual(self.show("oshcc", "--showme:incdirs"), f"{build}/include")
        self.assertEqual(self.show("oshcc", "--showme:libdirs"), str(build))
        self.assertEqual(self.show("oshcc", "--showme:libs"), "weft_shmem")
        self.assertIn("OpenSHMEM 1.6", self.show("oshcc", "--showme:version"))
        self.assertIn("usage: oshcc", self.show("oshcc", "--help"))
        self.assertEqual(run(build / "oshcc", "--showme:nothing").returncode, 2)

    def test_choice_of_compiler(self):
        order = ["CC", "SHMEM_CC", "OSHMEM_CC", "OSHCC_CC"]
        for place in range(len(order)):
            variables = {name: f"gcc -DBY_{name}" for name in order[:place + 1]}
            self.assertEqual(self.show("oshcc", "--showme:command", **variables), f"gcc -DBY_{order[place]}")
        self.assertEqual(self.show("oshcc", "-show", "-c", "a.c", CC="ccache gcc").split()[:2], ["ccache", "gcc"])
        self.assertEqual(self.show("oshcc", "--showme:command", CC="oshcc", OSHCC_CC=str(build / "oshcc")), "cc")
        self.assertEqual(self.show("oshc++", "--showme:command", CC="gcc", CXX="g++ -O1"), "g++ -O1")


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = work / "ends"
        subprocess.run([build / "oshcc", "-O1", f"-I{root}/tests", root / "tests/faces/static/ends.c", "-o", cls.program], check=True)

    def end(self, way, pes=4, **more):
        start = time.monotonic()
        done = run(build / "oshrun", "-n", str(pes), "--timeout", "60", self.program, way, **more)
        self.assertLess(time.monotonic() - start, 30, way)
        return done

    def test_ends(self):
        """Without shmem_finalize, by itself; with others that wait for ever where one ends wrongly."""
        for way, code in (("exit", 3), ("exit-others-wait", 3), ("abort", 134), ("kill", 137), ("global-exit", 5), ("global-exit-0", 0)):
            for pes in (1, 2, 8):
                with self.subTest(way=way, pes=pes):
                    self.assertEqual(self.end(way, pes).returncode, code)
        for pes in (1, 8):
            done = self.end("return", pes)
            self.assertEqual((done.returncode, sorted(done.stdout.split("\n"))),
                             (0, sorted([""] + [f"PE {pe} returns" for pe in range(pes)])), done.stderr)

    def test_says_who_failed(self):
        self.assertIn("PE 3 was killed by signal 9", self.end("kill").stderr)

    def test_input(self):
        done = self.end("input", 3, input="one\ntwo\nwithout an end")
        self.assertEqual((done.returncode, done.stdout), (0, "PE 0 reads one\nPE 0 reads two\nPE 0 reads without an end"))

    def test_variables(self):
        done = run(build / "oshrun", "-n", "2", "-x", "COLOUR=dark blue", "-x", "OTHER", self.program, "variable",
                   variables={"OTHER": "1", "COLOUR": "red"})
        self.assertEqual(sorted(done.stdout.splitlines()), ["PE 0 has dark blue", "PE 1 has dark blue"])
        done = run(build / "oshrun", "-n", "2", "-x", "COLOUR", self.program, "variable", variables={"COLOUR": "red"})
        self.assertEqual(sorted(done.stdout.splitlines()), ["PE 0 has red", "PE 1 has red"])

    def test_wrong_use(self):
        for arguments in (["-n", "2"], ["-n"], ["-n", "x", "true"], ["-n", "0", "true"], ["--nothing", "true"], ["-x", "NO_SUCH", "true"],
                          ["-x", "a;b", "true"], ["--bind-to", "moon", "true"], []):
            done = run(build / "oshrun", *arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn("--help", done.stderr)
        self.assertIn("cannot start", run(build / "oshrun", "-n", "2", "/no/such/program").stderr)
        self.assertEqual(run(build / "oshrun", "-n", "2", "/no/such/program").returncode, 127)

    def test_options(self):
        show = ["sh", "-c", 'echo "$PWD" "$#" "$2"', "sh", "-n", "a b"]
        done = run(build / "oshrun", "-np", "2", "--wdir", work, "--oversubscribe", "--bind-to", "none", "--", *show)
        self.assertEqual(done.stdout, f"{work} 2 a b\n" * 2, done.stderr)
        done = run(build / "oshrun", "-wdir", work, "--np=1", *show)
        self.assertEqual(done.stdout, f"{work} 2 a b\n")
        done = run(build / "oshrun", "--mca", "btl", "^tcp", "--map-by", "core", "-H", "localhost:2,127.0.0.1", "--map-by=slot",
                   "--allow-run-as-root", "-n", "1", *show)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = run(build / "oshrun", "--host", "elsewhere", "-n", "1", *show)
        self.assertEqual(done.returncode, 2)
        self.assertIn("elsewhere is not this machine", done.stderr)
        done = run(build / "oshrun", "-c", "1", "--tag-output", *show)
        self.assertTrue(done.stdout.startswith("[0] "), done.stdout)
        done = run(build / "oshrun", "sh", "-c", "echo")
        self.assertEqual(len(done.stdout), len(os.sched_getaffinity(0)) if os.cpu_count() == len(os.sched_getaffinity(0))
                         else os.cpu_count())
        self.assertEqual(run(build / "oshrun", "-n", "1", "--timeout", "0.2", "sleep", "20").returncode, 124)
        self.assertIn("usage: oshrun", run(build / "oshrun", "--help").stdout)
        self.assertIn("OpenSHMEM 1.6", run(build / "oshrun", "--version").stdout)

    def test_many(self):
        """Within 0.6 s on an idle machine of two processors: so in 1.2 s of processor time, whatever else runs here."""
        program = work / "hello"
        subprocess.run([build / "oshcc", "-O1", consumer, "-o", program], check=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = used.ru_utime + used.ru_stime
        done = run(build / "oshrun", "-n", "64", program)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertEqual((done.returncode, done.stdout), (0, "consumer: 64 PEs\n"), done.stderr)
        self.assertLess(used.ru_utime + used.ru_stime - start, 1.2, "64 PEs")


try:
    unittest.main(argv=sys.argv[:1])
finally:
    shutil.rmtree(work)
