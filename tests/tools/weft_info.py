"""Goal: weft-info tells the truth as text and as JSON, alone and under weftrun, and says what is wrong with a command line
or a variable.

Method: run it with chosen arguments and environments and read what it prints. Usage: weft_info.py WEFT_INFO WEFTRUN.
"""

import json
import os
import subprocess
import sys
import unittest

INFO, RUN = sys.argv[1:3]
SECTIONS = ["build", "env", "nvshmem", "statuses", "world", "transports", "heap", "teams", "tuning", "counters"]


def run(*arguments, launcher=(), **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")} | variables
    return subprocess.run([*launcher, INFO, *arguments], capture_output=True, text=True, env=environment, timeout=60)


def read(*arguments, **more):
    done = run("--json", *arguments, **more)
    return json.loads(done.stdout), done


class Info(unittest.TestCase):
    def test_all_sections(self):
        told, done = read()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(set(told), set(SECTIONS) | {"unknown_variables", "phases"})
        self.assertEqual(told["statuses"][0], {"name": "WEFT_OK", "value": 0, "meaning": "success"})
        self.assertEqual(told["world"]["pes"], 1)
        self.assertIn("hello", [phase["name"] for phase in told["phases"]])
        self.assertIn({"team": "world", "members": 1, "number_of_pe_0": 0}, told["teams"])
        self.assertIn("broadcast", [row["collective"] for row in told["tuning"]])
        self.assertIn({"collective": "sync", "algorithm": "rounds", "bytes": "any"}, told["tuning"])
        self.assertEqual(told["heap"]["bytes used"], 0)
        self.assertEqual(done.stderr, "")

    def test_text_has_what_json_has(self):
        for section in SECTIONS:
            text = run(section).stdout
            self.assertIn(f"{section}:\n", text)
            for table, rows in read(section)[0].items():
                self.assertIn(f"{table}:", text)
                names = list(rows) if isinstance(rows, dict) else [str(row[next(iter(row))]) for row in rows]
                for name in names:
                    self.assertIn(name, text)

    def test_one_section(self):
        self.assertEqual(list(read("statuses")[0]), ["statuses"])
        self.assertEqual(set(read("teams", "heap")[0]), {"teams", "heap"})

    def test_under_weftrun(self):
        told, done = read("world", "teams", launcher=(RUN, "-n", "4", "-q"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(told["world"]["pes"], 4)
        self.assertEqual(told["teams"][0]["members"], 4)

    def test_variables(self):
        told, done = read("env", WEFT_HEAP="64Q", WEFT_DEADLINE="2.5", WEFT_COLL="reduce:magic", WEFT_LOG="loud")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = {row["name"]: row for row in told["env"]}
        self.assertEqual(rows["WEFT_HEAP"]["state"], "UNREADABLE")
        self.assertIn("64M", rows["WEFT_HEAP"]["description"])
        self.assertEqual(rows["WEFT_COLL"]["state"], "UNREADABLE")
        self.assertEqual(rows["WEFT_LOG"]["state"], "UNREADABLE")
        self.assertEqual((rows["WEFT_DEADLINE"]["state"], rows["WEFT_DEADLINE"]["here"]), ("set", "2.5"))
        self.assertEqual((rows["WEFT_WARN"]["state"], rows["WEFT_WARN"]["default"]), ("default", "10"))

    def test_unknown_variables(self):
        told, _ = read("env", WEFT_DEADLINES="1", WEFT_QWERTYUIOP="x", OTHER="1")
        self.assertEqual(
            sorted((row["name"], row["nearest"]) for row in told["unknown_variables"]),
            [("WEFT_DEADLINES", "WEFT_DEADLINE"), ("WEFT_QWERTYUIOP", "")],
        )

    def test_variables_of_nvshmem(self):
        told, _ = read("nvshmem", NVSHMEM_SYMMETRIC_SIZE="1g", NVSHMEM_HCA_LIST="mlx5_0")
        rows = {row["name"]: row for row in told["nvshmem"]}
        self.assertGreater(len(rows), 30)
        self.assertEqual((rows["NVSHMEM_SYMMETRIC_SIZE"]["state"], rows["NVSHMEM_SYMMETRIC_SIZE"]["here"]), ("honoured", "1g"))
        self.assertEqual(rows["NVSHMEM_HCA_LIST"], {"name": "NVSHMEM_HCA_LIST", "state": "instead", "here": "mlx5_0",
                                                    "description": "WEFT_NIC_LIST"})
        self.assertEqual(rows["NVSHMEM_DISABLE_NVLS"]["state"], "without effect")

    def test_odd_bytes_are_json(self):
        told, _ = read("env", WEFT_NODE_ID='a"b\\c\nd\x01')
        rows = {row["name"]: row for row in told["env"]}
        self.assertEqual(rows["WEFT_NODE_ID"]["here"], 'a"b\\c\nd\x01')

    def test_the_secret_of_a_job_is_not_shown(self):
        done = run("env", launcher=(RUN, "-n", "1", "-q"))
        self.assertIn("(set)", done.stdout)
        told, _ = read("env", WEFT_LOCAL_JOB="a-secret")
        self.assertNotIn("a-secret", json.dumps(told))

    def test_a_world_that_cannot_be(self):
        told, done = read(WEFT_HEAP="1T", WEFT_LOG="none")
        self.assertEqual(done.returncode, 1)
        self.assertIn("WEFT_ERR_", told["world"]["error"])
        self.assertEqual(len(told["statuses"]), len(read("statuses")[0]["statuses"]))

    def test_command_line(self):
        self.assertIn("usage: weft-info", run("--help").stdout)
        self.assertRegex(run("--version").stdout, r"^weft \d+\.\d+\.\d+\n$")
        for arguments, words in [(["teems"], 'did you mean "teams"'), (["--jsn"], "--help"), (["zzzzzz"], "zzzzzz")]:
            done = run(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stdout, "")
            self.assertIn(words, done.stderr)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([INFO, "statuses"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write", done.stderr)


unittest.main(argv=sys.argv[:1])
