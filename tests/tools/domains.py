"""Goal: link domains of GPUs span hosts where the fabric counts, and where it does not, one line of the log says why.

Method: two PEs, each a host of its own, on GPUs of the fake driver, which says of each host's fabric what the variables say;
the program checks which PEs are near and that data arrives all the same. Usage: domains.py WEFTRUN NODES_SH PROGRAM FAKE.
"""

import os
import subprocess
import sys
import unittest

RUN, NODES, PROGRAM, FAKE = sys.argv[1:5]
REFUSED = "PE 1: no GPU of another host is reached: the NVLink fabric is "
CASES = [
    ("2", {"WEFT_FAKE_FABRIC": "1"}, None),
    ("1+1", {}, None),
    ("1+1", {"WEFT_FAKE_FABRIC": "1", "WEFT_CUDA_FABRIC": "0"}, None),
    ("1+1", {"WEFT_FAKE_FABRIC": "1", "WEFT_CUDA_DOMAIN": "1"}, None),
    ("1+1", {"WEFT_FAKE_FABRIC": "1;node-1:not-started"}, REFUSED + "not started"),
    ("1+1", {"WEFT_FAKE_FABRIC": "1;node-1:in-progress"}, REFUSED + "in progress"),
    ("1+1", {"WEFT_FAKE_FABRIC": "1;node-1:failed"}, REFUSED + "completed with an error"),
    ("1+1", {"WEFT_FAKE_FABRIC": "1;node-1:no-uuid"}, REFUSED + "without a cluster UUID"),
    ("1+1", {"WEFT_FAKE_FABRIC": "1;node-1:no-handles"}, REFUSED + "without fabric handles in the driver"),
    ("1+1", {"WEFT_FAKE_FABRIC": "1", "WEFT_FAKE_BLIND": "node-1>node-1"},
     REFUSED + "not usable: a trial export and import failed"),
    ("1+1", {"WEFT_FAKE_FABRIC": "1;node-1:2"},
     "PE 0 and PE 1 are in different link domains: the GPU of PE 0 is in clique 1"),
    ("1+1", {"WEFT_FAKE_FABRIC": "1", "WEFT_FAKE_BLIND": "node-0>node-1"},
     "PE 1 and PE 0 are not in one link domain: the GPU of PE 0 cannot import and map the other's memory, only the other "
     "way round"),
]


class Domains(unittest.TestCase):
    def test_reasons(self):
        for domains, variables, told in CASES:
            with self.subTest(**variables):
                environment = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
                environment |= {"LD_LIBRARY_PATH": FAKE, "TEST_DOMAINS": domains, "WEFT_FAKE_SMS": "8"} | variables
                done = subprocess.run([RUN, "-n", "2", NODES, "1", PROGRAM, "-t", "1"], capture_output=True, text=True,
                                      env=environment, timeout=200)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                lines = [line for line in done.stderr.splitlines() if "device memory:" in line]
                self.assertEqual(len(lines), told is not None, done.stderr)
                self.assertIn(told or "", "".join(lines))

    def test_gpus_that_others_do_not_see(self):
        """PEs of a host that see a GPU each, which both call GPU 0, are in one domain."""
        see_one = 'CUDA_VISIBLE_DEVICES=$(( (WEFT_LOCAL_PE + 1) % 2 )) exec "$@"'
        environment = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
        environment |= {"LD_LIBRARY_PATH": FAKE, "TEST_DOMAINS": "2", "WEFT_FAKE_SMS": "8"}
        done = subprocess.run([RUN, "-n", "2", "sh", "-c", see_one, "sh", PROGRAM, "-t", "1", "-g", "1"],
                              capture_output=True, text=True, env=environment, timeout=200)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
