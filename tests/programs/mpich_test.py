#!/usr/bin/env python3
"""MPICH on Verbena, unmodified: every collective operation, transfers between pairs of ranks and
one-sided ones (mpi/collectives.cc checks every byte). Debian builds MPICH's device ch4 for UCX only,
and not for libfabric.

usage: mpich_test.py [BUILD_DIR] [-k PATTERN]
"""

import atexit
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import harness

BUILD = harness.build_from_command_line()
SOURCE = pathlib.Path(__file__).parent / "mpi/collectives.cc"
LIMIT_S = 240
NO_SHARED_MEMORY = {"MPIR_CVAR_NOLOCAL": "1"}  # each rank is as if on a host of its own


@unittest.skipUnless(shutil.which("mpicxx.mpich"), "libmpich-dev is not installed")
class MPICHTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-mpich-test-"))
        atexit.register(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.folder.chmod(0o777)
        cls.program = cls.folder / "collectives"
        subprocess.run(["mpicxx.mpich", "-DMPICH_SKIP_MPICXX", "-std=c++20", "-O1", SOURCE, "-o",
                        cls.program], check=True, stdin=subprocess.DEVNULL)

    def run_ranks(self, ranks, max_bytes, tls, **environment):
        variables = {"TMPDIR": str(self.folder), "UCX_TLS": tls,
                     "UCX_NET_DEVICES": "verbena0:1"} | NO_SHARED_MEMORY | environment
        program = BUILD.run("mpirun.mpich", "-n", ranks, self.program, max_bytes,
                            environment=variables, limit_s=LIMIT_S)
        self.assertEqual(program.process.returncode, 0, program)
        self.assertEqual(program.output().count(" ok "), 40, program)
        return program.output()

    def test_collectives(self):
        for ranks, max_bytes, tls in ((2, 4 << 20, "rc_v,self"), (4, 65536, "rc_v,self"),
                                      (2, 65536, "ud_v,self")):
            with self.subTest(ranks=ranks, max_bytes=max_bytes, tls=tls):
                self.run_ranks(ranks, max_bytes, tls)

    def test_the_ranks_use_the_device(self):
        output = self.run_ranks(2, 8, "rc_v,self", UCX_LOG_LEVEL="info")
        self.assertIn("rc_verbs/verbena0:1", output)
        harness.record.remark("mpirun.mpich", "passed; ch4 over UCX, Debian's build has no ofi")

    def test_debian_builds_it_for_ucx(self):
        version = subprocess.run(["mpichversion"], capture_output=True, text=True, check=True).stdout
        self.assertRegex(version, r"MPICH Device:\s+ch4:ucx")


if __name__ == "__main__":
    harness.main()
