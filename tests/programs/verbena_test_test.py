#!/usr/bin/env python3
"""`verbena test`: commands on hosts of their own, their results, and what is kept of a failure.

usage: verbena_test_test.py [BUILD_DIR] [-k PATTERN]
"""

import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

import children
import harness

BUILD = harness.build_from_command_line()
VERBENA = BUILD.folder / "bin" / "verbena"
LIMIT_S = 60
ADDRESSES = ("10.77.0.1", "10.77.0.2", "10.77.0.3")


class VerbenaTestTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-test-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.user, _ = harness.ordinary_user()
        self.folder.chmod(0o777)

    def run_test(self, *arguments, status=0):
        done = subprocess.run([VERBENA, "test", *arguments], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, cwd=self.folder, timeout=LIMIT_S, **self.user)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.has_namespaces = "hosts are addresses of loopback" not in done.stderr
        return done.stdout

    def test_perftest_between_two_hosts(self):
        for places in ([], ["--loopback"]):
            with self.subTest(places=places):
                text = self.run_test(*places, "--delay", "5", "ib_write_lat", "-n", "100", ":",
                                     "ib_write_lat", "-n", "100", "{host0}")
                self.assertIn("verbena test: passed on 2 hosts\n", text)
                self.assertIn("[1]  #bytes", text)

    def test_every_host_has_an_address_of_its_own(self):
        text = self.run_test("-n", "3", "--", "sh", "-c",
                             "echo {host} of $VERBENA_TEST_HOSTS, $VERBENA_TEST_HOST2; ip -brief address")
        for host in range(3):
            self.assertIn(f"[{host}] {host} of 3, ", text)
        if self.has_namespaces:
            for host, address in enumerate(ADDRESSES):
                self.assertRegex(text, rf"\[{host}\] net0@\S+ +UP +{address}/24")

    def test_a_failure_is_run_again_with_a_capture(self):
        text = self.run_test("-o", "out", "--junit", "result.xml", "--name", "mine", "--", "sh", "-c",
                             "echo server", ":", "sh", "-c", "ibv_devinfo > /dev/null; exit 7", status=7)
        self.assertIn("verbena test: host 1: exit status 7: sh -c", text)
        self.assertIn("verbena test: it failed again\n", text)
        self.assertEqual((self.folder / "out" / "host0.log").read_text(), "server\n")
        self.assertTrue((self.folder / "out" / "host1.pcapng").exists())
        suite = xml.etree.ElementTree.parse(self.folder / "result.xml").getroot()
        self.assertEqual((suite.get("name"), suite.get("tests"), suite.get("failures")), ("mine", "2", "1"))

    def test_a_server_that_serves_for_ever_is_told_to_end(self):
        text = self.run_test("--grace", "0.2", "--delay", "0.1", "--", "sleep", "1000", ":", "true")
        self.assertIn("verbena test: passed on 2 hosts\n", text)

    def test_the_time_is_over(self):
        self.run_test("--timeout", "0.5", "--no-rerun", "--", "sleep", "1000", status=124)

    def test_a_signal_ends_all(self):
        process = children.Child([VERBENA, "test", "--", "sh", "-c", "echo started; sleep 1000"],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                 cwd=self.folder, **self.user)
        self.assertIn("started", process.stdout.readline())
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 130, output)

    def test_what_cannot_be(self):
        self.run_test("--junit", self.folder / "nowhere" / "x.xml", "true", status=2)
        self.run_test("--no-rerun", "no-such-program", status=127)


if __name__ == "__main__":
    harness.main()
