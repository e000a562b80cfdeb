"""Goal: how programs end, and what the environment says (8, 9.1.5; and what the project promises beside the specification).

Method: start ends.c and look at its exit status, its output, and how long it took: programs that return without a finalize,
global exits while other PEs compute, misuse, which gives one line that names the PE, the call, the cause and the remedy.
Usage: ends.py WEFTRUN ENDS
"""

import os
import re
import subprocess
import sys
import time
import unittest

WEFTRUN, ENDS = sys.argv[1:3]


class Ends(unittest.TestCase):
    def run_it(self, how, pes=4, code=None, alone=False, **variables):
        words = [how] if how.endswith("malloc") else how.split()
        command = ([] if alone else [WEFTRUN, "-n", str(pes)]) + [ENDS] + words
        start = time.monotonic()
        done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=100)
        self.took_s = time.monotonic() - start
        if code is not None:
            self.assertEqual(done.returncode, code, f"{how}: {done.stdout}{done.stderr}")
        return done

    def test_no_finalize(self):
        for pes in (1, 2, 3, 8):
            done = self.run_it("return", pes, 0)
            self.assertEqual(done.stdout.count("returns"), pes)
            self.assertEqual(done.stderr, "")
        self.run_it("late", 4, 0)

    def test_without_a_launcher_a_program_is_one_pe(self):
        done = self.run_it("return", code=0, alone=True)
        self.assertEqual(done.stdout, "PE 0 returns\n")

    def test_exit_with_an_error(self):
        self.run_it("exit 3", 4, 3)
        self.assertLess(self.took_s, 5)
        self.run_it("exit 3", code=3, alone=True)

    def test_global_exit(self):
        for code in (0, 5):
            for pes in (1, 2, 4):
                done = self.run_it(f"global {code}", pes, code)
                self.assertLess(self.took_s, 5)
                self.assertIn(f"PE {pes - 1} ends all", done.stdout)
                for pe in range(pes):
                    self.assertIn(f"PE {pe} is here", done.stdout)
        self.run_it("global 7", code=7, alone=True)

    def one_line(self, how, call, *words, pes=4, of_all=False, **options):
        """A mistake that all PEs make may be told by several."""
        done = self.run_it(how, pes, **options)
        self.assertNotEqual(done.returncode, 0)
        lines = [line for line in done.stderr.splitlines() if "weftrun:" not in line]
        self.assertTrue(lines, f"{how} said nothing")
        self.assertTrue(of_all or len(lines) == 1, done.stderr)
        self.assertIn(call, lines[0])
        for word in words:
            self.assertIn(word, lines[0])
        self.assertLess(self.took_s, 20)
        return lines[0]

    def test_misuse(self):
        self.one_line("range", "PE 3: shmem_int_put: ", "PE 4", "give one of 0 to 3")
        self.one_line("local", "PE 3: shmem_long_atomic_inc", "heap")
        self.one_line("mismatch", "shmem_calloc", "different", of_all=True)
        self.one_line("free", "shmem_free", "allocated", of_all=True)
        self.one_line("unlock", "shmem_clear_lock", of_all=True)
        self.one_line("early", "shmem_long_p", "before shmem_init", of_all=True)
        self.one_line("after", ": shmem_barrier_all", "PE ", "after the last shmem_finalize", of_all=True)

    def test_a_message_has_the_interface_s_names(self):
        heap = "shmem_malloc, or use a global or static variable"
        self.one_line("local", "shmem_long_atomic_inc", heap)
        self.one_line("lock", "shmem_set_lock", heap, of_all=True)
        self.one_line("again", "shmem_set_lock", "holds or awaits", "clear it first", of_all=True)
        self.one_line("unlock", "shmem_clear_lock", "does not hold", "who has set it", of_all=True)
        self.one_line("compare", "shmem_long_wait_until: ", "17 is none of SHMEM_CMP_EQ", of_all=True)
        self.one_line("signal", "shmem_putmem_signal: ", "SHMEM_SIGNAL_SET", of_all=True)
        self.one_line("option", "shmem_ctx_create: ", "none of SHMEM_CTX_SERIALIZED", of_all=True)
        self.one_line("context", "shmem_ctx_long_p: ", "the context is SHMEM_CTX_INVALID or destroyed", of_all=True)
        member = self.one_line("member", "shmem_ctx_long_p: ", "no member of the context's team; give one of", of_all=True)
        self.assertNotIn("world", member)
        self.one_line("part", "shmem_long_atomic_inc: ", "not aligned", "align it", of_all=True)
        self.one_line("root", "shmem_long_broadcast: root 4", "give one of 0 to 3", of_all=True)
        self.one_line("sync", "shmem_barrier: ", "pSync is not symmetric", of_all=True)

    def test_active_sets(self):
        self.one_line("set", "shmem_barrier: the 4 PEs 1, 3 ...", "among the 4; lower PE_start", of_all=True)

    def test_the_address_of_what_is_no_block(self):
        done = self.run_it("enlarge", 1)
        said = re.search("means (0x[0-9a-f]+)", done.stdout)
        self.assertIn(f"shmem_realloc: {said.group(1)} is no block", done.stderr)

    def test_too_few_addresses(self):
        """Where a limit lets no heap of the default size be; the smaller one that the line tells to ask for is."""
        limited = ["sh", "-c", 'ulimit -v 4000000; exec "$@"', "sh", WEFTRUN, "-n", "2", ENDS, "return"]
        done = subprocess.run(limited, capture_output=True, text=True, timeout=100)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"\bshmem_init: no world: .*lower SHMEM_SYMMETRIC_SIZE or raise ulimit -v")
        done = subprocess.run(limited, capture_output=True, text=True, timeout=100,
                              env={**os.environ, "SHMEM_SYMMETRIC_SIZE": "50m"})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_calls_outside_of_init_and_finalize(self):
        self.one_line("early malloc", "shmem_malloc: called before shmem_init", of_all=True)
        self.one_line("after malloc", "shmem_malloc: called after the last shmem_finalize", "PE ", of_all=True)
        self.assertNotIn("PE -1", self.one_line("level", "shmem_init_thread: argument 'requested' is no thread level", of_all=True))

    def test_a_dead_pe_ends_the_program(self):
        done = self.run_it("killed", 4)
        self.assertNotEqual(done.returncode, 0)
        self.assertLess(self.took_s, 10)

    def test_deadline(self):
        self.one_line("waits", "shmem_long_wait_until", pes=2, of_all=True, WEFT_DEADLINE="0.3")
        self.assertLess(self.took_s, 5)

    def test_fork(self):
        self.run_it("fork", 3, 0)

    def test_symmetric_size(self):
        for prefix in ("SHMEM", "SMA"):
            name = prefix + "_SYMMETRIC_SIZE"
            for size in ("20m", "3.1M", "100", "1g", ".5G", "64K", "0.1t", "20kk"):
                self.run_it("return", 2, 0, **{name: size})
            for size in ("m", "", "-5m", "0", "3x", "1e", "nan", "inf", "5 m"):
                done = self.run_it("return", 1, **{name: size})
                self.assertNotEqual(done.returncode, 0, f"{size!r} is taken")
                self.assertIn("SHMEM_SYMMETRIC_SIZE", done.stderr)
        done = self.run_it("heap 300", 2, 0, SHMEM_SYMMETRIC_SIZE="300m")
        self.assertEqual(done.stdout.count("has it"), 2)
        done = self.run_it("heap 300", 2, 0, SHMEM_SYMMETRIC_SIZE="20m")
        self.assertEqual(done.stdout.count("has none"), 2)
        done = self.run_it("heap 300", 2, 0, SHMEM_SYMMETRIC_SIZE="300kk")  # 300 KiB: one letter counts
        self.assertEqual(done.stdout.count("has none"), 2)
        self.run_it("return", 1, 0, SHMEM_SYMMETRIC_SIZE="20m", SMA_SYMMETRIC_SIZE="3x")

    def test_information(self):
        for prefix in ("SHMEM", "SMA"):
            done = self.run_it("return", 3, 0, **{prefix + "_VERSION": "1"})
            self.assertEqual(len(re.findall(r"OpenSHMEM 1\.6, weft \d+\.\d+", done.stdout)), 1)
            done = self.run_it("return", 3, 0, **{prefix + "_INFO": ""})
            for name in ("SHMEM_SYMMETRIC_SIZE", "SHMEM_VERSION", "SHMEM_INFO", "SHMEM_DEBUG"):
                self.assertEqual(done.stdout.count(name), 1)
        self.assertNotEqual(self.run_it("return", 2, 0, SHMEM_DEBUG="1").stderr, "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
