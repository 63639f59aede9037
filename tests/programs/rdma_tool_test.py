#!/usr/bin/env python3
"""iproute2's rdma tool, unmodified: it asks the kernel for devices by NETLINK_RDMA, and under
`verbena run` gets those of Verbena.

usage: rdma_tool_test.py [BUILD_DIR] [-k PATTERN]
"""

import json
import shutil
import unittest

import harness

BUILD = harness.build_from_command_line()
FILES = "/sys/class/infiniband/verbena0"


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

    def test_what_is_not_known_is_refused(self):
        """Programs do not tell of their other objects, and devices cannot be changed."""
        for line in ("resource show cq", "resource show mr", "resource show cm_id",
                     "statistic show link verbena0/1", "dev set verbena0 name other"):
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
