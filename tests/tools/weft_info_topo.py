"""Goal: weft-info topo shows each described machine with the plan and link domains that a person expects of it, as text,
JSON and a graph; follows lists; and says in one line what is wrong.

Method: the machines of tests/topo against expected.txt there; command lines; hwloc and an NVML that stand in for other
machines. Usage: weft_info_topo.py WEFT_INFO FOLDER [FAKE], FAKE: the folder of the fake driver's NVML.
"""

import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

INFO, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
FAKE = sys.argv[3] if len(sys.argv) > 3 and sys.argv[3] else None
MACHINES = FOLDER / "machines"


def run(*arguments, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")} | {"WEFT_LOG": "none"} | variables
    return subprocess.run([INFO, "topo", *arguments], capture_output=True, text=True, env=environment, timeout=60)


def file_of(name):
    found = [MACHINES / f"{name}{ending}" for ending in (".topo", ".xml")]
    return next(path for path in found if path.is_file())


def read(name, *arguments, **variables):
    done = run("--json", "--machine", str(file_of(name)), *arguments, **variables)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


def ports_of_gpus(told):
    """The ports of each GPU of the hosts that are shown, or "-"."""
    ports = {}
    for row in told["objects"]:
        if row["kind"] == "gpu":
            ports[row["host"], row["pci"]] = []
    for row in told["plan"]:
        ports[row["host"], row["pci"]].append(row["port"])
    return ["+".join(of) or "-" for _, of in sorted(ports.items())]


def read_expected():
    for line in (FOLDER / "expected.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, plan, domains, ports = re.fullmatch(r"(\S+): ([^;]*); (\d+)(?:; (.*))?", line).groups()
            yield name, plan.split(), int(domains), (ports or "").split()


class Machines(unittest.TestCase):
    def test_all_are_expected(self):
        self.assertEqual({path.stem for path in MACHINES.iterdir()}, {name for name, *_ in read_expected()})

    def test_plans_and_domains(self):
        for name, plan, domains, ports_of_pes in read_expected():
            with self.subTest(machine=name):
                told = read(name)
                self.assertEqual(told, read(name))  # the same each time
                self.assertEqual(bool(plan), not ports_of_pes)
                if ports_of_pes:
                    pes = read(name, "--pes", str(len(ports_of_pes)))["pes"]
                    self.assertEqual([row["port"] for row in pes], ports_of_pes)
                    self.assertEqual({row["reason"].split(",")[0] for row in pes}, {"in turn among the host's"})
                ports = ports_of_gpus(told)
                self.assertEqual(ports[: len(plan)], plan)
                self.assertEqual(len(ports) % max(1, len(plan)), 0)
                self.assertEqual(int(told["machine"]["link domains"]), domains)
                self.assertEqual(len({row["domain"] for row in told["pes"]}), domains)

    def test_all_say_where_they_come_from(self):
        for name, *_ in read_expected():
            self.assertGreater(len(read(name)["machine"]["source"]), 20, name)

    def test_text_and_graph(self):
        for name, *_ in read_expected():
            with self.subTest(machine=name):
                text = run("--machine", str(file_of(name)))
                self.assertEqual((text.returncode, text.stderr), (0, ""))
                self.assertIn("plan:", text.stdout)
                dot = run("--dot", "--machine", str(file_of(name)))
                self.assertEqual(dot.returncode, 0, dot.stderr)
                self.assertEqual(dot.stdout.count("{"), dot.stdout.count("}"))
                nodes = set(re.findall(r"^(n\d+) \[", dot.stdout, re.M))
                ends = set(re.findall(r"\b(n\d+)\b", "".join(re.findall(r"^n\d+ -> n\d+", dot.stdout, re.M))))
                self.assertLessEqual(ends, nodes)

    def test_graph_has_distances_and_pes(self):
        """Ports that are equally far from all are one column; PEs without a GPU stand in their ports."""
        dot = run("--dot", "--machine", str(file_of("efa-p5"))).stdout
        self.assertIn("<TD>rdmap79s0:1<BR/>rdmap80s0:1<BR/>rdmap81s0:1<BR/>rdmap82s0:1</TD>", dot)
        self.assertEqual(dot.count("<TD>PIX</TD>"), 8)
        dot = run("--dot", "--pes", "4", "--machine", str(file_of("cpu-2socket"))).stdout
        self.assertIn('label="mlx5_0:1\\n100 Gbit/s\\nPE 0, 3"', dot)
        self.assertIn("<TR><TD>numa1</TD><TD>SYS</TD><TD>NODE</TD></TR>", dot)

    def test_hosts_that_differ(self):
        """Hosts that differ in what is down, divided or unreachable are shown apart."""
        host = ("numa n\ngpu 0000:01:00.0 parent=n{}\ngpu 0000:02:00.0 parent=n\n"
                "nic x parent=n pci=0000:03:00.0\nnic y parent=n pci=0000:04:00.0{}\n{}")
        told = "unreachable 0000:01:00.0 0000:02:00.0\n"
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "hosts.topo"
            for other in ((" mig=yes", "", ""), ("", " state=down", ""), ("", "", told)):
                file.write_text("weft-topology 1\nhost a\n" + host.format("", "", "") + "host b\n" + host.format(*other))
                done = run("--json", "--machine", str(file))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual({row["host"] for row in json.loads(done.stdout)["objects"]}, {"a", "b"})

    def test_distances_of_numa_nodes(self):
        text = run("--machine", str(file_of("cpu-2socket"))).stdout
        self.assertRegex(text, r"distances on server\n +mlx5_0:1 +mlx5_0:2 +mlx5_1:1\n  numa0 +NODE +NODE +SYS\n"
                               r"  numa1 +SYS +SYS +NODE\n")

        told = read("cpu-2socket")["distances"]
        self.assertEqual([row["distance"] for row in told], ["NODE", "NODE", "SYS", "SYS", "SYS", "NODE"])
        self.assertEqual({row["from"] for row in told}, {"numa0", "numa1"})

    def test_distances_of_packages(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "packages.topo"
            file.write_text("weft-topology 1\nhost h\npackage p\nroot r parent=p\nnic n parent=r\n")
            self.assertRegex(run("--machine", str(file)).stdout, r"distances on h\n +n:1\n  p +SYS\n")

    def test_names_are_quoted(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "names.topo"
            file.write_text('weft-topology 1\nmachine a "b" \\\nhost h"\nroot r"\ngpu 0000:01:00.0 parent=r"\n'
                            'nic a<"b\\ parent=r"\n')
            dot = run("--dot", "--machine", str(file))
            self.assertEqual(dot.returncode, 0, dot.stderr)
            self.assertIn('label="a<\\"b\\\\:1', dot.stdout)
            self.assertIn('a&#60;"b\\:1', dot.stdout)
            if shutil.which("dot"):
                done = run("--svg", str(pathlib.Path(folder) / "names.svg"), "--machine", str(file))
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_svg(self):
        with tempfile.TemporaryDirectory() as folder:
            picture = pathlib.Path(folder) / "machine.svg"
            done = run("--svg", str(picture), "--machine", str(file_of("dgx-h100")))
            if shutil.which("dot"):
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("<svg", picture.read_text())
            else:
                self.assertEqual(done.returncode, 1)
                self.assertIn("install the package graphviz", done.stderr)

    def test_two_domains_have_a_reason(self):
        told = read("gb200-two-cliques")
        self.assertEqual([row["domain"] for row in told["pes"]], [0] * 68 + [68] * 4)
        self.assertTrue(any("clique 2 " in row["note"] for row in told["notes"]))

    def test_gids(self):
        told = read("roce-dual-port")
        self.assertEqual(len(told["gids"]), 8)
        self.assertEqual(told["gids"][7], {"host": "server", "port": "mlx5_0:2", "index": 3, "gid": "::ffff:10.0.0.2",
                                           "type": "roce-v2"})
        text = run("--machine", str(file_of("roce-dual-port"))).stdout
        self.assertRegex(text, r"server +mlx5_0:2 +3 +::ffff:10.0.0.2 +roce-v2\n")
        self.assertNotIn("gids", run("--machine", str(file_of("dgx-h100"))).stdout)

    def test_nvlinks(self):
        self.assertEqual(len(read("dgx-h100")["nvlinks"]), 8 * 7)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "links.topo"
            file.write_text("weft-topology 1\nhost a\nroot r\ngpu 0000:01:00.0 parent=r\ngpu 0000:02:00.0 parent=r\n"
                            "gpu 0000:03:00.0 parent=r\nnvlink 0000:01:00.0 0000:02:00.0 4\n"
                            "unreachable 0000:03:00.0 0000:01:00.0\n")
            text = run("--machine", str(file)).stdout
        self.assertRegex(text, r"NVLinks on a\n +0000:01:00.0 +0000:02:00.0 +0000:03:00.0\n"
                               r" +0000:01:00.0 +X +NV4 +-\n +0000:02:00.0 +NV4 +X +-\n +0000:03:00.0 +none +- +X\n")

    def test_this_machine(self):
        """By hwloc, where it is here: as many ports as sysfs has devices of NICs, and the same each time."""
        done = run("--json")
        if "libhwloc" in done.stderr or "no hwloc" in done.stderr:
            self.assertIn("WEFT_TOPO_FILE", done.stderr)  # what to do instead
            return
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual(told["machine"]["hosts"], 1)
        self.assertEqual(run("--json").stdout, done.stdout)
        sysfs = pathlib.Path("/sys/class")
        if not (sysfs / "infiniband").is_dir():
            on_pci = {path.parent.name for path in sysfs.glob("net/*/device")
                      if "/pci" in str(path.resolve()) and (path.parent / "device").exists()}
            self.assertEqual({row["name"] for row in told["objects"] if row["kind"] == "nic"}, on_pci)


    @unittest.skipIf(FAKE is None, "built without CUDA")
    def test_nvml(self):
        """What NVML says of GPUs that hwloc shows; hwloc takes them from a file."""
        gpu = '<object type="PCIDev" gp_index="" pci_busid="0000:0{}:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1"/>'
        text = (MACHINES / "vm-2core.xml").read_text()
        text = text.replace('<object type="PCIDev" gp_index="15"', "".join(gpu.format(i) for i in (1, 2, 3, 4)) +
                            '<object type="PCIDev" gp_index="15"').replace("0000:[00-00]", "0000:[00-0f]")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "machine.xml"
            numbers = itertools.count(1)
            file.write_text(re.sub(r'gp_index="\d*"', lambda _: f'gp_index="{next(numbers)}"', text))
            told = {}
            for links in ("switched", "pairs", ""):
                done = run("--json", HWLOC_XMLFILE=str(file), LD_LIBRARY_PATH=FAKE, WEFT_FAKE_GPUS="4",
                           WEFT_FAKE_MIG="2", WEFT_FAKE_NVLINKS=links, WEFT_FAKE_FABRIC="7")
                if "no hwloc" in done.stderr or "libhwloc" in done.stderr:
                    return
                self.assertEqual(done.returncode, 0, done.stderr)
                told[links] = json.loads(done.stdout)
        details = [row["details"] for row in told[""]["objects"] if row["kind"] == "gpu"]
        self.assertEqual(len(details), 4)
        for i, detail in enumerate(details):
            self.assertRegex(detail, rf"^GPU-0{i + 1}[-0-9a-f]+, {'MIG, ' if i == 2 else ''}clique 7")
        self.assertEqual(told[""]["nvlinks"], [])
        links = {(row["from"][5:7], row["to"][5:7]): row["links"] for row in told["pairs"]["nvlinks"]}
        self.assertEqual(links, {("01", "02"): 4, ("02", "01"): 4, ("03", "04"): 4, ("04", "03"): 4})
        links = {(row["from"][5:7], row["to"][5:7]): row["links"] for row in told["switched"]["nvlinks"]}
        self.assertEqual(len(links), 12)
        self.assertEqual({links[pair] for pair in links if "04" in pair}, {6})
        self.assertEqual({links[pair] for pair in links if "04" not in pair}, {18})
        self.assertEqual(told[""]["machine"]["link domains"], 2)  # the divided one is alone

    def test_part_of_a_machine(self):
        """A container that may use one of two sockets shows both: the plan is of the machine. hwloc reads a folder in
        place of this one's files."""
        system = "sys/devices/system/"
        files = {"proc/cpuinfo": "processor\t: 0\n\nprocessor\t: 1\n", "proc/meminfo": "MemTotal: 2097152 kB\n",
                 "proc/mounts": "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n", "proc/self/cpuset": "/box\n",
                 "sys/fs/cgroup/cpuset/box/cpuset.cpus": "0\n", "sys/fs/cgroup/cpuset/box/cpuset.mems": "0\n"}
        files |= {f"{system}{of}": "0-1\n" for of in ("cpu/online", "cpu/possible", "node/online", "node/possible")}
        for i in (0, 1):
            cpu, node = f"{system}cpu/cpu{i}/topology/", f"{system}node/node{i}/"
            files |= {cpu + "physical_package_id": f"{i}\n", cpu + "core_id": "0\n",
                      cpu + "thread_siblings": f"{1 << i:x}\n", cpu + "core_siblings": f"{1 << i:x}\n",
                      node + "cpumap": f"{1 << i:x}\n", node + "meminfo": f"Node {i} MemTotal: 1048576 kB\n"}
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            done = run("--json", HWLOC_FSROOT=folder, HWLOC_COMPONENTS="-x86")
        if "no hwloc" in done.stderr or "libhwloc" in done.stderr:
            self.assertIn("WEFT_TOPO_FILE", done.stderr)
            return
        told = [row["name"] for row in json.loads(done.stdout)["objects"] if row["kind"] in ("package", "numa")]
        self.assertEqual(told, ["package0", "numa0", "package1", "numa1"])

    def test_without_hwloc(self):
        """A file needs none; this machine cannot be told, which one line says."""
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "libhwloc.so.15").write_text("no library")
            variables = {"LD_LIBRARY_PATH": folder}
            for file in ("switches.topo", "switches.xml"):
                told = json.loads(run("--json", "--machine", str(MACHINES / file), **variables).stdout)
                for part in ("objects", "plan"):
                    self.assertEqual(told[part], read("switches")[part])
            done = run(**variables)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("describe the machine in a file (WEFT_TOPO_FILE)", done.stderr)


class Wishes(unittest.TestCase):
    FIELD = "mlx5_0:1:2,mlx5_0:2:2,mlx5_1:1:2,mlx5_1:2:2"

    def test_the_case_from_the_field(self):
        wanted = ["mlx5_0:1"] * 2 + ["mlx5_0:2"] * 2 + ["mlx5_1:1"] * 2 + ["mlx5_1:2"] * 2
        self.assertEqual(ports_of_gpus(read("pcie-8gpu", "--map", self.FIELD)), wanted)
        self.assertEqual(ports_of_gpus(read("pcie-8gpu", WEFT_NIC_MAPPING=self.FIELD)), wanted)
        for pes in ("1", "3", "16"):
            self.assertEqual(ports_of_gpus(read("pcie-8gpu", "--map", self.FIELD, "--pes", pes)), wanted)

    def test_pes(self):
        told = read("gb200-nvl72", "--pes", "144")
        self.assertEqual(len(told["pes"]), 144)
        self.assertEqual([row["host"] for row in told["pes"][:9]], ["tray0"] * 8 + ["tray1"])
        self.assertEqual([row["port"] for row in told["pes"][:5]], ["mlx5_0:1", "mlx5_1:1", "mlx5_4:1", "mlx5_5:1", "mlx5_0:1"])

    def test_lists(self):
        self.assertEqual(set(ports_of_gpus(read("dgx-h100", "--list", "mlx5_1"))), {"mlx5_1:1"})
        self.assertNotIn("mlx5_0:1", ports_of_gpus(read("dgx-h100", WEFT_NIC_LIST="^mlx5_0")))
        in_turn = ["mlx5_0:1", "mlx5_1:1", "mlx5_3:1", "mlx5_4:1", "mlx5_5:1", "mlx5_6:1", "mlx5_7:1", "mlx5_9:1"]
        self.assertEqual(ports_of_gpus(read("dgx-h100", "--round-robin")), in_turn)
        self.assertEqual(ports_of_gpus(read("dgx-h100", WEFT_NIC_ROUND_ROBIN="1")), in_turn)

    def test_help(self):
        done = run("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("--machine", done.stdout)


class Mistakes(unittest.TestCase):
    def refused(self, code, *arguments, told, **variables):
        done = run(*arguments, **variables)
        self.assertEqual(done.returncode, code, done.stdout)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertIn(told, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_one_line_each(self):
        machine = ("--machine", str(file_of("pcie-8gpu")))
        self.refused(1, "--machine", "/nowhere", told='"/nowhere" cannot be opened')
        self.refused(1, told='"/nowhere" cannot be opened', WEFT_TOPO_FILE="/nowhere")
        self.refused(1, *machine, "--map", "mlx5_0:1:x", told='--map: "mlx5_0:1:x", character 10: expected : and a count')
        self.refused(1, *machine, "--map", "mlx5_0:1:7", told="add up to 7, but host")
        self.refused(1, *machine, "--list", "mlx5_0,,", told='--list: "mlx5_0,,", character 8')
        self.refused(1, *machine, told="WEFT_NIC_LIST: character 1: host", WEFT_NIC_LIST="mlx4_0")
        self.refused(2, *machine, "--pes", "0", told='--pes "0" is no number')
        self.refused(2, "--json", "now", told='"now" is not understood')
        unknown = run("--nic")
        self.assertEqual((unknown.returncode, unknown.stdout), (2, ""))
        self.assertIn("--nic", unknown.stderr)
        self.assertIn("see weft-info topo --help", unknown.stderr)
        with tempfile.TemporaryDirectory() as folder:
            bad = pathlib.Path(folder) / "bad.topo"
            bad.write_text("weft-topology 1\nhost h\n  gpus 4\n")
            self.refused(1, "--machine", str(bad), told="bad.topo:3:3: \"gpus\" is none of")
            xml = pathlib.Path(folder) / "bad.xml"
            xml.write_text("<?xml version='1.0'?>\n<topology>")
            self.refused(1, "--machine", str(xml), told="bad.xml:2:2: this element has no end, </topology>")
            bad.write_text("weft-topology 1\nhost h\nhwloc bad.xml\n")
            self.refused(1, "--machine", str(bad), told="bad.xml:2:2: this element has no end, </topology>")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
