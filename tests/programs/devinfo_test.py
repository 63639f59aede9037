#!/usr/bin/env python3
"""What programs see: ibv_devices, ibv_devinfo -v, and that `verbena devices` says the same.

usage: devinfo_test.py [BUILD_DIR] [-k PATTERN]
"""

import json
import re
import unittest

import harness

BUILD = harness.build_from_command_line()
SECOND = harness.ADDRESS.removesuffix("1") + "2"
TWO_ADDRESSES = {"VERBENA_ADDRESS": f"{harness.ADDRESS},{SECOND}"}


def fields(output):
    """The "name: value" lines of ibv_devinfo, the first of each name."""
    found = {}
    for name, value in re.findall(r"^\s*([A-Za-z_0-9\[\] ]+?):\s+(.*?)\s*$", output, re.MULTILINE):
        found.setdefault(name, value)
    return found


class DevinfoTest(unittest.TestCase):
    def output_of(self, *command, environment=None):
        program = BUILD.run(*command, environment=environment)
        self.assertEqual(program.process.returncode, 0, program)
        return program.output()

    def devices(self, environment=None):
        program = BUILD.run_verbena("devices", "--json", environment=environment)
        self.assertEqual(program.process.returncode, 0, program)
        return json.loads(program.output())

    def test_ibv_devices(self):
        self.assertIn("verbena0", self.output_of("ibv_devices"))

    def test_two_addresses_are_two_devices(self):
        output = self.output_of("ibv_devices", environment=TWO_ADDRESSES)
        self.assertRegex(output, r"(?s)verbena0.*verbena1")
        self.assertEqual([d["addresses"] for d in self.devices(TWO_ADDRESSES)],
                         [[harness.ADDRESS], [SECOND]])

    def test_devinfo_is_sane(self):
        output = self.output_of("ibv_devinfo", "-v")
        found = fields(output)
        for name, value in {"hca_id": "verbena0", "transport": "InfiniBand (0)",
                            "phys_port_cnt": "1", "port": "1", "link_layer": "Ethernet",
                            "state": "PORT_ACTIVE (4)", "active_mtu": "4096 (5)",
                            "max_mtu": "4096 (5)", "port_lid": "0"}.items():
            self.assertEqual(found.get(name), value, f"{name}\n{output}")
        for name in ("max_qp", "max_qp_wr", "max_sge", "max_cq", "max_cqe", "max_mr", "max_pd",
                     "max_srq", "max_srq_wr", "max_qp_rd_atom", "max_ah"):
            self.assertGreater(int(found.get(name, 0)), 0, f"{name}\n{output}")
        self.assertEqual(found.get("atomic_cap"), "ATOMIC_HCA (1)", output)
        self.assertRegex(found.get("node_guid", ""), r"^[0-9a-f]{4}(:[0-9a-f]{4}){3}$")
        self.assertNotEqual(found["node_guid"], "0000:0000:0000:0000")
        self.assertIn(f"{harness.ADDRESS}, RoCE v2", output.replace("::ffff:", ""))

    def test_devices_says_the_same(self):
        found = fields(self.output_of("ibv_devinfo", "-v"))
        [device] = self.devices()
        self.assertEqual(device["device"], found["hca_id"])
        self.assertEqual(device["node_guid"], found["node_guid"])
        self.assertEqual(device["port"]["state"], "active")
        self.assertEqual(f"{device['port']['path_mtu']} (5)", found["active_mtu"])
        self.assertEqual(device["gids"][3]["gid"], harness.ADDRESS)  # as on a ConnectX: -x 3
        self.assertEqual(device["gids"][3]["type"], "RoCE v2")

    def test_unknown_device(self):
        program = BUILD.run("ibv_devinfo", "-d", "no-such-device")
        self.assertGreater(program.process.returncode, 0, program)


if __name__ == "__main__":
    harness.main()
