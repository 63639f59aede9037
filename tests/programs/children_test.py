#!/usr/bin/env python3
"""A test that a signal kills leaves no program behind: none on the device, no network namespace.

usage: children_test.py [BUILD_DIR] [-k PATTERN]
"""

import pathlib
import subprocess
import sys
import unittest

import harness
import two_hosts

BUILD = harness.build_from_command_line()
START = """
import sys, time
sys.argv[1:] = [{folder!r}]
import harness, two_hosts
build = harness.build_from_command_line()
{body}
print(program.pid, flush=True)
time.sleep(1000)
"""
ON_THE_DEVICE = "program = build.start('env', 'A=1', 'sleep', 1000)"
IN_A_NAMESPACE = "program = two_hosts.TwoHosts(build, mtu=1500).b.build.start('sleep', 1000)"


def is_alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


class ChildrenTest(unittest.TestCase):
    def check_that_it_ends(self, body):
        test = subprocess.Popen(
            [sys.executable, "-c", START.format(folder=str(BUILD.folder), body=body)],
            cwd=pathlib.Path(__file__).parent, stdout=subprocess.PIPE, text=True)
        self.addCleanup(test.stdout.close)
        pid = test.stdout.readline().strip()
        self.assertTrue(pid.isdigit(), "the program did not start")
        self.assertTrue(is_alive(pid))
        test.kill()
        test.wait()
        harness.wait_until(lambda: not is_alive(pid), harness.START_LIMIT_S, "the program ends")

    def test_a_program_on_the_device(self):
        self.check_that_it_ends(ON_THE_DEVICE)

    def test_a_program_in_a_namespace(self):
        two_hosts.TwoHosts(BUILD, mtu=1500).close()  # skips the test where that is not possible
        self.check_that_it_ends(IN_A_NAMESPACE)


if __name__ == "__main__":
    harness.main()
