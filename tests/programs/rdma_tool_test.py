#!/usr/bin/env python3
"""iproute2's rdma tool, unmodified: it asks the kernel for devices by NETLINK_RDMA, and under
`verbena run` gets those of Verbena.

usage: rdma_tool_test.py [BUILD_DIR] [-k PATTERN]
"""

import json
import shutil
import subprocess
import unittest

import harness

BUILD = harness.build_from_command_line()
FILES = "/sys/class/infiniband/verbena0"
PYTHON = "/usr/bin/python3"  # pyverbs is built for Debian's own
OBJECTS = """
import mmap, sys, time
from pyverbs import cq, device, enums as e, mr, pd, srq
context = device.Context(name="verbena0")
pds = [pd.PD(context), pd.PD(context)]
queue = cq.CQ(context, 100, None, None, 0)
regions = [mr.MR(pds[1], 4096 * (1 + i), e.IBV_ACCESS_LOCAL_WRITE) for i in range(200)]
shared = srq.SRQ(pds[1], srq.SrqInitAttr(srq.SrqAttr(max_wr=10)))
print("keys", *(region.lkey for region in regions), flush=True)
time.sleep(600)
"""


def has_pyverbs():
    return subprocess.run([PYTHON, "-c", "import pyverbs.device"], stdin=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


@unittest.skipUnless(shutil.which("rdma"), "iproute2's rdma is not installed")
class RDMAToolTest(unittest.TestCase):
    def output_of(self, *command, **options):
        program = BUILD.run(*command, **options)
        self.assertEqual(program.process.returncode, 0, program)
        return program.output()

    def rows(self, *arguments, **options):
        return json.loads(self.output_of("rdma", *arguments, "-j", **options))

    def test_links(self):
        """The rows that pyverbs takes the names of network interfaces from."""
        interface = self.output_of("cat", f"{FILES}/ports/1/gid_attrs/ndevs/0").strip()
        with open(f"/sys/class/net/{interface}/ifindex", encoding="ascii") as file:
            index = int(file.read())
        self.assertEqual(self.rows("link", "show"), [{
            "ifindex": 0, "ifname": "verbena0", "port": 1, "state": "ACTIVE",
            "physical_state": "LINK_UP", "netdev": interface, "netdev_index": index}])
        self.assertEqual(self.output_of("rdma", "link", "show", "verbena0/1").split()[:4],
                         ["link", "verbena0/1", "state", "ACTIVE"])

    def test_devices(self):
        row, = self.rows("dev", "show")
        self.assertEqual(row["ifname"], "verbena0")
        self.assertEqual(row["node_type"], "ca")
        for key, file in (("fw", "fw_ver"), ("node_guid", "node_guid"),
                          ("sys_image_guid", "sys_image_guid")):
            self.assertEqual(row[key], self.output_of("cat", f"{FILES}/{file}").strip())

    def test_two_devices(self):
        second = BUILD.address.removesuffix("1") + "2"
        both = {"VERBENA_ADDRESS": f"{BUILD.address},{second}"}
        self.assertEqual([(row["ifindex"], row["ifname"]) for row in
                          self.rows("dev", "show", environment=both)],
                         [(0, "verbena0"), (1, "verbena1")])
        self.assertEqual([row["ifname"] for row in self.rows("link", "show", environment=both)],
                         ["verbena0", "verbena1"])

    def test_resources_of_running_programs(self):
        """As many QPs as do not fit into one message."""
        count = 100
        pair = BUILD.start_pair("ib_write_bw", "-D", 600, "-q", count)
        self.addCleanup(harness.stop, *pair)
        BUILD.wait_for_traffic(*pair)
        summary, = self.rows("resource", "show")
        self.assertEqual((summary["ifname"], summary["qp"]), ("verbena0", 2 * count))
        rows = self.rows("resource", "show", "qp")
        self.assertEqual(len(rows), 2 * count)
        self.assertEqual({row["comm"] for row in rows}, {"ib_write_bw"})
        self.assertEqual({row["pid"] for row in rows}, {each.process.pid for each in pair})
        peers = {row["lqpn"]: row for row in rows}
        self.assertEqual(len(peers), 2 * count)
        for row in rows:
            self.assertEqual((row["type"], row["path-mig-state"]), ("RC", "MIGRATED"))
            is_client = row["pid"] == pair[1].process.pid  # the server sends nothing
            self.assertEqual(row["state"], "RTS" if is_client else "RTR")
            peer = peers[row["rqpn"]]
            self.assertEqual(peer["rqpn"], row["lqpn"])
            if is_client:
                self.assertEqual(peer["rq-psn"], row["sq-psn"])
        one, = self.rows("resource", "show", "qp", "link", "verbena0/1", "lqpn", rows[0]["lqpn"])
        self.assertEqual(one["pid"], rows[0]["pid"])

    @unittest.skipUnless(has_pyverbs(), "python3-pyverbs is not installed")
    def test_objects_of_running_programs(self):
        """PDs, CQs, MRs, SRQs and contexts of two programs, whose numbers differ."""
        programs = [BUILD.start(PYTHON, "-c", OBJECTS) for _ in range(2)]
        self.addCleanup(harness.stop, *programs)
        for program in programs:
            harness.wait_until(lambda: "keys" in program.output() or program.ended(), 30,
                               "the program's objects")
        summary, = self.rows("resource", "show")
        self.assertEqual({kind: summary[kind] for kind in ("pd", "cq", "qp", "mr", "ctx", "srq")},
                         {"pd": 4, "cq": 2, "qp": 0, "mr": 400, "ctx": 2, "srq": 2})
        rows = {kind: self.rows("resource", "show", kind)
                for kind in ("pd", "cq", "mr", "srq", "ctx")}
        pids = {program.process.pid for program in programs}
        for kind, number in (("pd", "pdn"), ("cq", "cqn"), ("mr", "mrn"), ("srq", "srqn"),
                             ("ctx", "ctxn")):
            with self.subTest(kind=kind):
                self.assertEqual(len(rows[kind]), summary[kind])
                self.assertEqual(len({row[number] for row in rows[kind]}), summary[kind])
                self.assertEqual({row["pid"] for row in rows[kind]}, pids)
                self.assertEqual({row["comm"] for row in rows[kind]}, {"python3"})
                one, = self.rows("resource", "show", kind, number, rows[kind][0][number])
                self.assertEqual(one, rows[kind][0])
        for program in programs:
            self.check_objects_of(program, {
                kind: [row for row in listed if row["pid"] == program.process.pid]
                for kind, listed in rows.items()})

    def check_objects_of(self, program, rows):
        """Two PDs, of which one is used by 200 MRs and an SRQ."""
        used, = (row["pdn"] for row in rows["pd"] if row["users"])
        self.assertEqual(sorted(row["users"] for row in rows["pd"]), [0, 201])
        self.assertGreaterEqual(rows["cq"][0]["cqe"], 100)
        self.assertEqual(rows["cq"][0]["users"], 0)
        self.assertEqual({row["pdn"] for row in rows["mr"] + rows["srq"]}, {used})
        self.assertEqual(sorted(row["mrlen"] for row in rows["mr"]),
                         [4096 * (1 + i) for i in range(200)])
        self.assertEqual(rows["srq"][0]["type"], "BASIC")
        # Only root sees keys.
        keys = {int(key) for key in program.output().split("keys")[1].split()}
        self.assertIn({int(str(row["lkey"]), 0) for row in rows["mr"] if "lkey" in row},
                      (keys, set()))

    def test_what_is_not_known_is_refused(self):
        """Programs do not tell of their rdma_cm IDs, and devices cannot be changed."""
        for line in ("resource show cm_id", "statistic show link verbena0/1", "dev set verbena0 name other"):
            with self.subTest(line=line):
                program = BUILD.run("rdma", *line.split())
                self.assertNotEqual(program.process.returncode, 0, program)
                self.assertIn("Operation not supported", program.output())

    def test_other_sockets_are_as_they_were(self):
        """NETLINK_ROUTE goes to the kernel, beside one of ours in the same process."""
        self.assertEqual(self.output_of("python3", "-c", """
import os, socket
rdma = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20)
rdma.bind((0, 0))
route = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
route.bind((0, 0))
unix = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
unix[0].send(b"x")
rdma.send(b"\\x10\\0\\0\\0\\x01\\x14\\x05\\0\\x07\\0\\0\\0\\0\\0\\0\\0")  # CMD_GET, for no device
reply, sender = rdma.recvfrom(4096)
print(rdma.getsockname() == (os.getpid(), 0), route.getsockname()[0] != 0, unix[1].recv(9),
      reply[4:6], int.from_bytes(reply[16:20], "little", signed=True), sender)
"""), "True True b'x' b'\\x02\\x00' -22 (0, 0)\n")


if __name__ == "__main__":
    harness.main()
