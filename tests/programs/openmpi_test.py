#!/usr/bin/env python3
"""Open MPI on Verbena, unmodified: every collective operation, transfers between pairs of ranks and
one-sided ones (mpi/collectives.cc checks every byte), on UCX's RC and UD transports, with as many and
with more ranks than cores; and by libfabric, which also takes iWARP devices, as UCX does not.

usage: openmpi_test.py [BUILD_DIR] [-k PATTERN]
"""

import atexit
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import harness
import two_hosts

BUILD = harness.build_from_command_line()
SOURCE = pathlib.Path(__file__).parent / "mpi/collectives.cc"
LIMIT_S = 240


def missing():
    for program in ("mpirun", "mpicxx"):
        if not shutil.which(program):
            return f"{program} is not installed"
    return None


def work_folder():
    """For the program, and for what mpirun writes; anyone may."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-mpi-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o777)
    return folder


@unittest.skipIf(missing(), missing())
class OpenMPITest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = work_folder()
        cls.program = cls.folder / "collectives"
        subprocess.run(["mpicxx", "-DOMPI_SKIP_MPICXX", "-std=c++20", "-O1", SOURCE,
                        "-o", cls.program], check=True, stdin=subprocess.DEVNULL)

    def mpirun(self, ranks, *command, tls, environment=None):
        variables = {"TMPDIR": str(self.folder), "UCX_TLS": tls,
                     "UCX_NET_DEVICES": "verbena0:1"} | (environment or {})
        program = BUILD.run(
            "mpirun", "-n", ranks, "--oversubscribe", "--mca", "pml", "ucx", "--mca", "osc", "ucx",
            "--mca", "btl", "self", *command, environment=variables, limit_s=LIMIT_S)
        self.assertEqual(program.process.returncode, 0, program)
        return program.output()

    def check_collectives(self, ranks, max_bytes, tls):
        output = self.mpirun(ranks, self.program, max_bytes, tls=tls)
        lines = [line for line in output.splitlines() if "blocking" in line]
        self.assertEqual(len(lines), 40, output)
        for line in lines:
            self.assertIn(" ok ", line, output)

    def test_collectives_on_rc(self):
        for ranks, max_bytes in ((2, 16 << 20), (3, 1 << 20), (4, 1 << 20), (8, 65536)):
            with self.subTest(ranks=ranks, max_bytes=max_bytes):
                self.check_collectives(ranks, max_bytes, "rc_v,self")

    def test_collectives_on_ud(self):
        for ranks, max_bytes in ((2, 1 << 20), (4, 65536), (8, 1000)):
            with self.subTest(ranks=ranks, max_bytes=max_bytes):
                self.check_collectives(ranks, max_bytes, "ud_v,self")

    def test_each_rank_may_be_given_the_device_itself(self):
        """As over several hosts, where the environment of mpirun does not reach the ranks."""
        output = self.mpirun(2, BUILD.verbena, "run", "--", self.program, 1000, tls="rc_v,self")
        self.assertEqual(output.count(" ok "), 40, output)

    def test_the_ranks_use_the_device(self):
        output = self.mpirun(2, self.program, 8, tls="rc_v,self",
                             environment={"UCX_LOG_LEVEL": "info"})
        self.assertIn("rc_verbs/verbena0:1", output)

    def mpirun_by_libfabric(self, ranks, link, *command, environment=None):
        """libfabric's verbs provider takes no loopback interface, so the ranks are in a host of
        their own."""
        hosts = two_hosts.TwoHosts(BUILD, mtu=9000)
        self.addCleanup(hosts.close)
        variables = {"TMPDIR": str(self.folder), "VERBENA_LINK": link,
                     "OMPI_ALLOW_RUN_AS_ROOT": "1",  # of the namespace
                     "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} | (environment or {})
        program = hosts.a.build.run(
            "mpirun", "-n", ranks, "--oversubscribe", "--mca", "pml", "cm", "--mca", "mtl", "ofi",
            "--mca", "mtl_ofi_provider_include", "verbs;ofi_rxm", "--mca", "btl", "self", *command,
            environment=variables, limit_s=LIMIT_S)
        self.assertEqual(program.process.returncode, 0, program)
        return program.output()

    def test_collectives_by_libfabric(self):
        """Avoids two faults of theirs. Open MPI 4.1 does not acknowledge an MPI_Issend whose
        message MPI_Mprobe has taken, on libfabric's TCP provider too. libfabric 1.17 does not
        complete a message that is claimed (FI_CLAIM) and came in segments (SAR)."""
        for link, ranks in (("udp", 2), ("udp", 4), ("iwarp", 2), ("iwarp", 4)):
            with self.subTest(link=link, ranks=ranks):
                output = self.mpirun_by_libfabric(
                    ranks, link, self.program, 1 << 20, "unsynchronized",
                    environment={"FI_OFI_RXM_SAR_LIMIT": "0"})
                self.assertEqual(output.count(" ok "), 40, output)

    def test_messages_on_iwarp(self):
        ring = self.folder / "ring"
        subprocess.run(["mpicxx", "-DOMPI_SKIP_MPICXX", "-std=c++20", "-O1",
                        SOURCE.with_name("ring.cc"), "-o", ring], check=True, stdin=subprocess.DEVNULL)
        for ranks in (2, 4):
            with self.subTest(ranks=ranks):
                output = self.mpirun_by_libfabric(ranks, "iwarp", ring)
                self.assertEqual(output.count(" ok"), ranks, output)


if __name__ == "__main__":
    harness.main()
