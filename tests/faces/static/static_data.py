"""Goal: global and static variables of an executable are symmetric, however it was linked, and nothing else of the process changes.

Method: the programs of this folder, which check themselves, are built by oshcc and run by oshrun; each says at its head what it
checks. Executables that differ are started as PEs of one program.
Usage: static_data.py SOURCE-FOLDER BUILD-FOLDER
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

folder, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
oshcc, oshrun = build / "oshcc", build / "oshrun"
work = pathlib.Path(tempfile.mkdtemp())
TESTS = f"-I{folder.parent.parent}"

LINKS = {
    "pie": ["-fPIE", "-pie"],
    "no-pie": ["-fno-pie", "-no-pie"],
    "no-relro": ["-Wl,-z,norelro"],
    "now": ["-Wl,-z,relro,-z,now"],
    "large-pages": ["-Wl,-z,max-page-size=0x200000"],
    "no-build-id": ["-Wl,--build-id=none"],
}
for linker in ("lld", "gold", "mold"):
    if shutil.which(f"ld.{linker}"):
        LINKS[linker] = [f"-fuse-ld={linker}"]


def compile_program(source, name, *options):
    """An executable of a source of this folder."""
    program = work / name
    subprocess.run([oshcc, "-O1", "-g", TESTS, folder / f"{source}.c", "-o", program, *options], check=True)
    return program


def run(pes, *command):
    """A program on so many PEs: its code and what it printed."""
    done = subprocess.run([oshrun, "-n", str(pes), "--timeout", "60", *command], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=100)
    return done.returncode, done.stdout, done.stderr


class StaticData(unittest.TestCase):
    def expect(self, pes, *command):
        code, out, err = run(pes, *command)
        self.assertEqual(code, 0, f"{command} on {pes} PEs:\n{out}{err}")
        return out, err

    def test_numbers_of_pes(self):
        program = compile_program("variables", "variables")
        for pes in (1, 2, 3, 8):
            self.expect(pes, program)

    def test_ways_to_link(self):
        for name, options in LINKS.items():
            with self.subTest(link=name):
                self.expect(3, compile_program("variables", f"variables-{name}", *options), "" if name == "no-relro" else "sealed")

    def test_library_within(self):
        """The library's own variables, the executable's then, are exchanged with the others."""
        archives = [build / "libweft_shmem.a", build / "libweft.a"]
        flags = subprocess.run(["pkg-config", "--libs", "libsodium"], capture_output=True, text=True, check=False).stdout.split()
        for link in ("lazy", "now"):
            program = work / f"within-{link}"
            for source in ("variables", "forks", "threads"):
                subprocess.run(["cc", "-O1", f"-I{build}/include", TESTS, folder / f"{source}.c", "-o", program, *archives, *flags, "-lm",
                                "-ldl", "-pthread", f"-Wl,-z,{link}"], check=True)
                self.expect(2, program, "handler")

    def test_c_library(self):
        library = work / "libother.so"
        subprocess.run(["cc", "-shared", "-fPIC", folder / "other.c", "-o", library], check=True)
        flags = [f"-L{work}", "-lother", f"-Wl,-rpath,{work}"]
        for name, options in (("copies", ["-fno-pie", "-no-pie"]), ("any", ["-fPIE", "-pie"])):
            with self.subTest(link=name):
                out, err = self.expect(2, compile_program("libc", f"libc-{name}", *options, *flags), name)
                self.assertEqual(sorted(out.split()), ["after"] * 4 + ["before"] * 2 + ["out"] * 4)
                self.assertEqual(err.count("turned\n"), 4)

    def test_untouched_gigabytes(self):
        program = compile_program("sparse", "sparse")
        for pes in (2, 4):
            self.expect(pes, program)

    def test_forks(self):
        program = compile_program("forks", "forks", "-pthread")
        for pes in (1, 3):
            self.expect(pes, program)

    def test_other_threads(self):
        program = compile_program("threads", "threads", "-pthread")
        for way in ("handler", "default"):
            self.expect(1, program, way)
            self.expect(2, program, way)

    def expect_refused(self, first, second, name):
        """PE 1 of 3 runs another program."""
        script = f'if [ "$WEFT_LOCAL_PE" = 1 ]; then exec {second}; else exec {first}; fi'
        code, out, err = run(3, "sh", "-c", script)
        self.assertNotEqual(code, 0)
        self.assertRegex(err, r"PE 1 runs program ([0-9a-f]{40}), but PE [02] (?!\1)[0-9a-f]{40}; start the same executable", name)
        self.assertNotIn("not so", err)
        return err

    def test_different_programs(self):
        first = compile_program("variables", "first")
        other_sizes = compile_program("variables", "other-sizes", "-DCOUNT=90000")
        other_code = compile_program("variables", "other-code", "-O2")
        err = self.expect_refused(first, other_sizes, "sizes")
        self.expect_refused(first, other_code, "code")
        notes = subprocess.run(["readelf", "-n", first], capture_output=True, text=True, check=True).stdout
        self.assertIn(re.search(r"Build ID: (\w+)", notes).group(1), err)
        first, other = (compile_program("variables", f"{name}-no-id", "-Wl,--build-id=none", *options)
                        for name, options in (("first", []), ("other", ["-DCOUNT=90000"])))
        self.expect_refused(first, other, "without build ids")

    def test_static_executable(self):
        program = work / "static"
        sodium = subprocess.run(["pkg-config", "--static", "--libs", "libsodium"], capture_output=True, text=True,
                                check=False)
        built = subprocess.run(["cc", "-static", f"-I{build}/include", TESTS, folder / "variables.c", "-o", program,
                                build / "libweft_shmem.a", build / "libweft.a",
                                *sodium.stdout.split(),
                                "-lm", "-ldl", "-pthread"], capture_output=True, text=True, check=False)
        if built.returncode != 0:
            self.skipTest("no static C library here")
        code, _, err = run(2, program)
        self.assertNotEqual(code, 0)
        self.assertRegex(err, r"PE [01]: shmem_init\w*: this executable is linked statically.*link it without -static")


try:
    unittest.main(argv=sys.argv[:1])
finally:
    shutil.rmtree(work)
