"""Goal: the network transport uses the interface of the plan, data goes over it, and the transport map says which and why.

Method: a world of two PEs, each a node of its own, with machines described whose NICs are this host's loopback and others.
Usage: nics.py WEFT_INFO WEFTRUN NODES_SH PROGRAM [GPU_PROGRAM FAKE], test programs that run on two PEs, the second on two
GPUs of the fake driver in the folder FAKE.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

INFO, RUN, NODES, PROGRAM = sys.argv[1:5]
GPU_PROGRAM, FAKE = sys.argv[5:7] if len(sys.argv) > 5 else (None, None)
MACHINE = """weft-topology 1
machine of a test
source made up
host here
numa numa0
nic {nic} parent=numa0 port=1
"""
GPUS = """gpu 0000:01:00.0 parent=numa0
gpu 0000:02:00.0 parent=numa0
nic mlx5_9 parent=numa0 port=1
"""


class Nics(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "machine.topo"

    def run_on(self, nic, *command, more="", **variables):
        self.file.write_text(MACHINE.format(nic=nic) + more)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
        environment |= {"WEFT_TOPO_FILE": str(self.file)} | variables
        return subprocess.run([RUN, "-q", "-n", "2", NODES, "1", *command], capture_output=True, text=True,
                              env=environment, timeout=100)

    def test_list(self):
        done = self.run_on("lo", INFO, "transports", WEFT_NIC_LIST="lo:1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ofi   PEs of other nodes, by messages, on lo (", done.stdout)
        self.assertIn("): in turn among those nearest to ", done.stdout)
        done = self.run_on("lo", PROGRAM, WEFT_NIC_LIST="lo")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_hosts_of_other_names(self):
        done = self.run_on("lo", INFO, "transports", more="host other\nnuma numa0\n", WEFT_NIC_LIST="lo", WEFT_LOG="warn")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("2 hosts are described, but none that is called", done.stderr)
        self.assertIn('the first, "here", is taken for it', done.stderr)

    def test_interface_that_is_not_here(self):
        done = self.run_on("mlx5_9", INFO, "transports", WEFT_NIC_LIST="mlx5_9")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("the plan's NIC of this PE is mlx5_9", done.stderr + done.stdout)
        self.assertIn("interfaces here are: ", done.stderr + done.stdout)

    def test_plan_that_nobody_asked_for(self):
        done = self.run_on("mlx5_9", INFO, "transports")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("): libfabric's first", done.stdout)

    @unittest.skipIf(GPU_PROGRAM is None, "built without CUDA")
    def test_mapping_of_gpus(self):
        fake = {"LD_LIBRARY_PATH": FAKE, "TEST_DOMAINS": "1+1"}
        done = self.run_on("lo", GPU_PROGRAM, more=GPUS, WEFT_NIC_MAPPING="lo:1:2", **fake)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("WEFT_NIC_MAPPING", done.stderr)
        done = self.run_on("lo", GPU_PROGRAM, more=GPUS, WEFT_NIC_MAPPING="lo:1:1,mlx5_9:1:1", **fake)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("the plan's NIC of this PE is mlx5_9", done.stderr)

    @unittest.skipIf(GPU_PROGRAM is None, "built without CUDA")
    def test_gpus_that_are_not_seen(self):
        """A process that sees one GPU of the host, by its number or UUID, as in a container, uses that one's port."""
        fake = {"LD_LIBRARY_PATH": FAKE, "TEST_DOMAINS": "1+1", "WEFT_NIC_MAPPING": "mlx5_9:1:1,lo:1:1"}
        for visible in ("1", "GPU-02", "1,0"):
            done = self.run_on("lo", GPU_PROGRAM, "-g", "1", more=GPUS, CUDA_VISIBLE_DEVICES=visible, **fake)
            self.assertEqual(done.returncode, 0, done.stderr)
        for visible in ("0", "GPU-01", "0,1"):
            done = self.run_on("lo", GPU_PROGRAM, "-g", "1", more=GPUS, CUDA_VISIBLE_DEVICES=visible, **fake)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("the plan's NIC of this PE is mlx5_9", done.stderr)

    @unittest.skipIf(GPU_PROGRAM is None, "built without CUDA")
    def test_gpu_that_the_machine_does_not_show(self):
        """It is no reason to have no network, nor to say that there was an error."""
        done = self.run_on("lo", GPU_PROGRAM, more="gpu 0000:77:00.0 parent=numa0\n", LD_LIBRARY_PATH=FAKE,
                           TEST_DOMAINS="1+1", WEFT_LOG="warn", WEFT_TRANSPORT="ofi")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("error", done.stderr)

    def test_mapping_is_for_gpus(self):
        done = self.run_on("lo", INFO, "transports", WEFT_NIC_MAPPING="lo:1:2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("WEFT_NIC_MAPPING and WEFT_NIC_ROUND_ROBIN are for GPUs", done.stderr)

    def test_mistakes(self):
        for variables, told in [
            ({"WEFT_NIC_LIST": "lo:0"}, "character 4"),
            ({"WEFT_NIC_LIST": "eth77"}, "has no port eth77"),
            ({"WEFT_TOPO_FILE": "/nowhere/machine.topo"}, "/nowhere/machine.topo"),
        ]:
            done = self.run_on("lo", INFO, "transports", **variables)
            self.assertNotEqual(done.returncode, 0, variables)
            self.assertIn(told, done.stderr + done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
