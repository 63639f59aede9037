#!/usr/bin/env python3
"""iSER on Verbena, unmodified: tgt's target, and libiscsi's initiator in its own tools and in QEMU's
block layer, which writes a disk and reads it back.

tgt 1.0.85 admits an initiator over iSER only where the target's lists have both its address and its
name; over TCP one of them is enough. Without the name it answers "target not found".

usage: iser_test.py [BUILD_DIR] [-k PATTERN]
"""

import os
import pathlib
import shutil
import tempfile
import unittest

import harness
import rdmacm_pairs

BUILD = harness.build_from_command_line()
LIMIT_S = 60
TARGET = "iqn.2026-01.org.verbena:disk"
INITIATOR = "iqn.2026-01.org.verbena:initiator"
DISK_MIB = 32
BLOCK = 256 << 10
QEMU_ISCSI = pathlib.Path("/usr/lib/x86_64-linux-gnu/qemu/block-iscsi.so")


def missing():
    for program, package in (("tgtd", "tgt"), ("iscsi-inq", "libiscsi-bin")):
        if not shutil.which(program, path=harness.PATH):
            return f"{package} is not installed"
    return None


@unittest.skipIf(missing(), missing())
class ISERTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-iser-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o777)
        self.disk = self.folder / "disk"
        self.disk.write_bytes(bytes(DISK_MIB << 20))
        self.disk.chmod(0o666)
        self.port = rdmacm_pairs.free_port()  # tgtd keeps it in a short: below 32768
        self.control = "7"
        # By default the socket of tgtadm is in a folder of root's.
        environment = self.environment = {"TGT_IPC_SOCKET": str(self.folder / "control")}
        self.target = BUILD.start("tgtd", "-f", "-C", self.control, "--iscsi",
                                  f"portal={BUILD.address}:{self.port}", "--iser",
                                  f"port={self.port}", environment=environment)
        self.addCleanup(self.target.kill)
        harness.wait_until(lambda: self.target.ended() or self.admin_accepts("sys", "show"),
                           harness.START_LIMIT_S, f"tgtd starts\n{self.target}")
        self.admin("target", "new", "--targetname", TARGET)
        self.admin("logicalunit", "new", "--lun", "1", "-b", str(self.disk))
        self.admin("target", "bind", "-I", "ALL")

    def admin_accepts(self, mode, operation, *options):
        command = ["tgtadm", "-C", self.control, "--mode", mode, "--op", operation, *options]
        program = harness.Program(command, self.environment)
        return program.wait(LIMIT_S) == 0

    def admin(self, mode, operation, *options):
        options = ("--lld", "iser", "--tid", "1", *options)
        self.assertTrue(self.admin_accepts(mode, operation, *options), f"{options}\n{self.target}")

    def admit(self, name):
        self.admin("target", "bind", "-Q", name)

    def url(self):
        return f"iser://{BUILD.address}:{self.port}/{TARGET}/1"

    def run_tool(self, *command):
        program = BUILD.run(*command, limit_s=LIMIT_S)
        self.assertEqual(program.process.returncode, 0, f"{program}\n{self.target}")
        return program.output()

    def test_inquiry_and_capacity(self):
        self.admit(INITIATOR)
        harness.record.remark("tgtd", "passed; for iSER, tgt 1.0.85 needs the initiator's address and "
                              "its name (`tgtadm --op bind -I` and `-Q`), otherwise it answers "
                              "\"target not found\"")
        inquiry = self.run_tool("iscsi-inq", "-i", INITIATOR, self.url())
        self.assertIn("VIRTUAL-DISK", inquiry)
        size = self.run_tool("iscsi-readcapacity16", "-i", INITIATOR, self.url())
        self.assertRegex(size, rf"Total size: *{DISK_MIB << 20}")

    def test_an_initiator_that_tgt_does_not_know_by_name(self):
        program = BUILD.run("iscsi-inq", "-i", INITIATOR, self.url(), limit_s=LIMIT_S)
        self.assertIn("Target not found", program.output(), f"{program}\n{self.target}")

    @unittest.skipUnless(QEMU_ISCSI.exists() and shutil.which("qemu-io"),
                         "qemu-utils or qemu-block-extra is not installed")
    def test_a_disk_is_written_and_read_back(self):
        """By blocks of 256 KiB, each of another byte: libiscsi takes less than 512 KiB over iSER."""
        self.admit(INITIATOR)
        writes, reads = [], []
        for number in range(DISK_MIB << 2):
            where = f"-P {1 + number % 255} {number * BLOCK} {BLOCK}"
            writes += ["-c", f"aio_write {where}"]
            reads += ["-c", f"read {where}"]
        disk = (f"driver=iscsi,transport=iser,portal={BUILD.address}:{self.port},target={TARGET},"
                f"lun=1,initiator-name={INITIATOR}")
        self.run_tool("qemu-io", "--image-opts", disk, *writes, "-c", "aio_flush")
        self.assertTrue(self.disk.read_bytes() == b"".join(
            bytes([1 + number % 255]) * BLOCK for number in range(DISK_MIB << 2)))
        output = self.run_tool("qemu-io", "--image-opts", disk, *reads)
        self.assertEqual(output.count(f"read {BLOCK}/{BLOCK} bytes"), DISK_MIB << 2, output)
        self.assertNotIn("Pattern verification failed", output)


if __name__ == "__main__":
    harness.main()
