"""Goal: WEFT_TRANSPORT says which networks are tried and in which order; one that cannot be used harms nothing where the
next can, and else one error says what was tried and what there is.

Method: a world of two PEs, each a node of its own, with variables that spoil libfabric, UCX or both.
For an interface that cannot be opened libfabric is one of tests/provider, of which no endpoint can.
Usage: networks.py WEFT_INFO WEFTRUN NODES_SH STRICT, in a build with both; STRICT: the folder of that library.
"""

import os
import re
import subprocess
import sys
import unittest

INFO, RUN, NODES, STRICT = sys.argv[1:5]
OFI = "ofi   PEs of other nodes, by messages, on "
UCX = "ucx   PEs of other nodes, by messages, on "


class Networks(unittest.TestCase):
    def run_with(self, **variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("WEFT_", "UCX_", "FI_"))}
        return subprocess.run([RUN, "-q", "-n", "2", NODES, "1", INFO, "transports"], capture_output=True, text=True,
                              env=environment | variables, timeout=100)

    def check_uses(self, line, **variables):
        done = self.run_with(**variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(line, done.stdout)
        self.assertNotIn("error", done.stderr)
        return done

    def check_fails(self, *told, **variables):
        done = self.run_with(**variables)
        self.assertNotEqual(done.returncode, 0)
        for words in told:
            self.assertIn(words, done.stderr + done.stdout)

    def test_order(self):
        self.check_uses(OFI)
        self.check_uses(OFI, WEFT_TRANSPORT="ofi,ucx")
        self.check_uses(UCX, WEFT_TRANSPORT="ucx,ofi")
        self.check_uses(UCX, WEFT_TRANSPORT="^ofi")
        self.check_uses(OFI, WEFT_TRANSPORT="^ucx")

    def test_the_next_is_taken(self):
        done = self.check_uses(UCX, FI_PROVIDER="none")
        self.assertNotIn("FI_PROVIDER", done.stderr)
        done = self.check_uses(OFI, WEFT_TRANSPORT="ucx,ofi", UCX_TLS="none")
        self.assertNotIn("UCX_TLS", done.stderr)
        done = self.check_uses(OFI, WEFT_TRANSPORT="ucx,ofi", UCX_NET_DEVICES="none") # found out when PEs connect
        self.assertNotIn("UCX_NET_DEVICES", done.stderr)

    def test_none_is_left(self):
        self.check_fails("ofi: ", "variable FI_PROVIDER", "ucx: ", "UCX_TLS is none", "this host has lo",
                         WEFT_TRANSPORT="ofi,ucx", FI_PROVIDER="none", UCX_TLS="none")
        self.check_fails("variable FI_PROVIDER is none", "it has ", "tcp, ", "this host has lo", WEFT_TRANSPORT="ofi",
                         FI_PROVIDER="none")
        self.check_fails("FI_TCP_IFACE is wrong0", "this host has lo", WEFT_TRANSPORT="ofi", FI_TCP_IFACE="wrong0")
        self.check_fails("UCX_NET_DEVICES none", "this host has lo", WEFT_TRANSPORT="ucx", UCX_NET_DEVICES="none")
        self.check_fails("cannot open an endpoint", "FI_PROVIDER is tcp, FI_TCP_IFACE lo; this host has lo",
                         WEFT_TRANSPORT="ofi", FI_PROVIDER="tcp", FI_TCP_IFACE="lo", STRICT_CLOSED="1",
                         LD_LIBRARY_PATH=STRICT)
        self.check_fails('WEFT_TRANSPORT names "none"', "map, ofi, ucx", WEFT_TRANSPORT="none")
        names = re.search("a list of (.*?) or the", self.run_with(WEFT_TRANSPORT="none").stderr).group(1)
        self.check_fails("WEFT_TRANSPORT", WEFT_TRANSPORT="^" + names.replace(", ", ","))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
