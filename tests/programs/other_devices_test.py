#!/usr/bin/env python3
"""Programs of Debian that link libibverbs or libibumad and want another device than ours: a
Mellanox card, an Omni-Path HFI, an InfiniBand port with its subnet manager. Each ends by itself and
says what it lacks; none takes our device for its own.

usage: other_devices_test.py [BUILD_DIR] [-k PATTERN]
"""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

import harness

BUILD = harness.build_from_command_line()
LIMIT_S = 60

NOT_A_MELLANOX_CARD = "finds no device of its own: it reads and writes registers of Mellanox cards"
NO_HFI = "finds no device of its own: Omni-Path HFIs only"
NO_UMAD = "cannot run: there is no /dev/infiniband/umad, since QP 0 and subnet management are InfiniBand's"

# The command, what it prints, and what docs/compatibility.md says.
REFUSALS = (
    (("mstflint", "-d", "verbena0", "query"), "Cannot open Device: verbena0", NOT_A_MELLANOX_CARD),
    (("mstconfig", "-d", "verbena0", "query"), "Failed to open the device", NOT_A_MELLANOX_CARD),
    (("mstlink", "-d", "verbena0"), "Failed to open device", NOT_A_MELLANOX_CARD),
    (("opainfo",), "No HFIs found", NO_HFI),
    (("opaportinfo",), "failed to open port hfi", NO_HFI),
    (("opasaquery",), "No hfi names found", NO_HFI),
    (("ibsrpdm",), "Unsupported link layer Ethernet",
     "cannot run: SRP targets are found by subnet management, which Ethernet has not"),
    (("ibhosts",), "can't open UMAD port", NO_UMAD),
    (("ibnetdiscover",), "can't open MAD port", NO_UMAD),
    (("iblinkinfo",), "can't open UMAD port", NO_UMAD),
    (("perfquery",), "can't open UMAD port", NO_UMAD + "; `verbena stats` and sysfs have the counters"),
    (("ibping", "-S"), "can't open UMAD port", NO_UMAD),
    (("smpquery", "nodeinfo", "1"), "can't open UMAD port", NO_UMAD),
    (("saquery",), "No SM/SA found", NO_UMAD),
)


def found(program):
    return shutil.which(program, path=harness.PATH)


class OtherDevicesTest(unittest.TestCase):
    def run_to_end(self, *command):
        if not found(command[0]) and not pathlib.Path(command[0]).exists():
            self.skipTest(f"{command[0]} is not installed")
        return BUILD.run(*command, limit_s=LIMIT_S)

    def folder(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-devices-test-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o777)
        return folder

    def test_what_needs_another_device_says_so(self):
        for command, message, remark in REFUSALS:
            with self.subTest(command=command):
                program = self.run_to_end(*command)
                self.assertNotEqual(program.process.returncode, 0, program)
                self.assertIn(message, program.output(), program)
                harness.record.remark(command[0], remark)

    def test_ibstat_and_ibstatus_show_the_device(self):
        """They read it from sysfs, and need no management datagrams."""
        for command, state in ((("ibstat",), "State: Active"), (("ibstatus",), "4: ACTIVE")):
            with self.subTest(command=command):
                program = self.run_to_end(*command)
                self.assertEqual(program.process.returncode, 0, program)
                self.assertIn("verbena0", program.output())
                self.assertIn(state, program.output())

    def test_ibacm(self):
        """Its service looks for InfiniBand ports."""
        folder = self.folder()
        options = folder / "options"
        options.write_text(f"log_file {folder}/log\nlog_level 1\nlock_file {folder}/lock\n"
                           "server_mode unix\n")
        options.chmod(0o644)
        program = self.run_to_end("ibacm", "-P", "-O", options)
        self.assertNotEqual(program.process.returncode, 0, program)
        log = (folder / "log").read_text()
        self.assertIn("verbena0 port 1 is not an InfiniBand port", log)
        harness.record.remark("ibacm", "cannot run: it resolves paths of InfiniBand ports only, and says so")

    def test_pcp(self):
        """The agent finds the port, and cannot ask it by management datagrams."""
        agent = "/var/lib/pcp/pmdas/infiniband/pmdaib"
        program = self.run_to_end(agent, "-w", "-c", self.folder() / "configuration")
        self.assertIn("can't open UMAD port (verbena0:1)", program.output(), program)
        harness.record.remark("pmdaib", "cannot run: it counts by management datagrams, which Ethernet "
                              "has not, and says so")

    def test_dpdk(self):
        """All drivers are loaded, those for mlx5 among them; none takes the device."""
        program = self.run_to_end("dpdk-testpmd", "--no-huge", "-m", 256, "--no-shconf",
                                  "-l", "0,1", "--", "--total-num-mbufs=2048")
        self.assertIn("No probed ethernet devices", program.output(), program)
        harness.record.remark("dpdk-testpmd",
                              "finds no device of its own: DPDK's mlx5 drivers want Mellanox cards")

    def test_nfs_ganesha(self):
        """Debian builds it, and its RPC library, without RDMA."""
        program = found("ganesha.nfsd")
        if not program:
            self.skipTest("nfs-ganesha is not installed")
        needed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        self.assertIn("libntirpc", needed)
        self.assertNotIn("librdmacm", needed)
        self.assertNotIn("libibverbs", needed)
        version = self.run_to_end("ganesha.nfsd", "-v")
        self.assertEqual(version.process.returncode, 0, version)
        harness.record.remark("ganesha.nfsd", "offers no RDMA: Debian builds it without")


if __name__ == "__main__":
    harness.main()
