#!/usr/bin/env python3
"""`verbena run --check` finds nothing in programs that are right: a few of each kind that the other
tests run. Each runs with VERBENA_CHECK=fatal, so that a finding ends it; harness.py looks, too.

What is left out is wrong, and found: rdma-core's tests of pyverbs misuse the verbs on purpose, and
ucx_perftest -t ucp_put_bw ends with a byte that it writes into a buffer from which PUTs are under way.

usage: check_programs_test.py [BUILD_DIR] [-k PATTERN]
"""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest

os.environ["VERBENA_CHECK"] = "fatal"  # harness reads it

import harness
import testing
from rdmacm_pairs import RDMACMPairs, free_port

BUILD = harness.build_from_command_line()
HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 240
# The tests to run, by script.
TESTS = {
    "libfabric_test": ("test_connected_endpoints",),
    "multicast_programs_test": ("test_every_receiver_gets_every_message",),
    "openmpi_test": ("test_each_rank_may_be_given_the_device_itself",),
    "pingpong_test": ("test_rc_events", "test_rc_new_post_send", "test_uc", "test_ud", "test_srq"),
    "pyverbs_test": ("test_tour",),
    "rdmacm_programs_test": ("*.test_rping", "test_ucmatose", "test_udaddy", "test_cmtime",
                             "test_rdma_client_and_server"),
    "rsocket_programs_test": ("test_riostream", "test_rcopy", "test_udpong_echo"),
    "ucx_test": ("test_ucp_on_rc", "test_ucp_on_ud"),
    "xrc_programs_test": ("test_xsrq_pingpong", "test_rdma_xclient_and_xserver"),
}
PERFTEST = ("ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_atomic_bw", "ib_send_lat", "ib_write_lat",
            "ib_read_lat", "ib_atomic_lat")
QPERF = ("rc_bw", "rc_lat", "rc_rdma_write_bw", "rc_rdma_read_bw", "rc_rdma_write_poll_lat",
         "rc_compare_swap_mr")
FIO = ("fio", "--ioengine=rdma", "--bs=64k", "--size=8m", "--iodepth=16")


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"{program} is not installed")


class OtherTests(unittest.TestCase):
    def test_nothing_is_found(self):
        for script, names in TESTS.items():
            with self.subTest(script=script):
                patterns = [word for name in names for word in ("-k", name)]
                done = subprocess.run(
                    [sys.executable, HERE / f"{script}.py", BUILD.folder, *patterns],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    text=True, timeout=LIMIT_S, check=False)
                self.assertEqual(done.returncode, 0, done.stdout)
                # A class that cannot run here is skipped as a whole, and counts as no test.
                self.assertRegex(done.stdout, r"Ran [1-9]\d* test|OK \(skipped=[1-9]", done.stdout)


class ProgramsTest(RDMACMPairs):
    build = BUILD

    def test_perftest(self):
        for program in testing.sample(PERFTEST, every=3):
            for options in ((), ("-b",) if program.endswith("bw") else ("-s", "8")):
                with self.subTest(program=program, options=options):
                    BUILD.run_pair(program, "-n", "200", *options)

    @needs("qperf")
    def test_qperf(self):
        port = harness.free_tcp_port()
        server = self.start("qperf", "-lp", port)
        harness.wait_until(lambda: harness.sockets("tcp", port, "0A") or server.ended(), 30,
                           f"qperf listens\n{server}")
        for tests in (QPERF, ("quit",)):
            client = BUILD.run("qperf", "-lp", port, BUILD.address, "-cm", "1", "-t", "1",
                               *tests)
            self.assertEqual(client.process.returncode, 0, f"{server}\n{client}")
        self.assertEqual(server.wait(LIMIT_S), 0, server)

    @needs("fio")
    def test_fio(self):
        """Not --verb=send, which does not wait for the other's receives, nor ask for RNR retries."""
        for verb in ("write", "read"):
            with self.subTest(verb=verb):
                port = free_port()
                self.check_pair(
                    (*FIO, f"--port={port}", "--name=s", "--verb=recv", "--rw=read"),
                    (*FIO, f"--port={port}", "--name=c", f"--verb={verb}", "--rw=write",
                     f"--hostname={BUILD.address}", "--iodepth_batch_complete=4"))


if __name__ == "__main__":
    harness.main()
