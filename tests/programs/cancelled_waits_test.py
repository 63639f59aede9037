#!/usr/bin/env python3
"""A program cancels its threads that wait for events: pthread_cancel(3).

The C library unwinds such a thread through the frames of the drop-in libraries.

usage: cancelled_waits_test.py [BUILD_DIR] [-k PATTERN]
"""

import atexit
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import harness

BUILD = harness.build_from_command_line()
SOURCE = pathlib.Path(__file__).parent / "cancelled" / "waits.c"
LIMIT_S = 30
CALLS = ("ibv_get_cq_event", "ibv_get_async_event", "rdma_get_cm_event", "rdma_get_request", "raccept",
         "rpoll")


class CancelledWaitsTest(unittest.TestCase):
    def compiled(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-cancelled-test-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        program = folder / "waits"
        subprocess.run(["gcc", "-O1", "-Wall", "-Werror", SOURCE, "-o", program, "-libverbs",
                        "-lrdmacm", "-lpthread"], check=True, stdin=subprocess.DEVNULL)
        return program

    def test_every_call_that_waits(self):
        program = BUILD.run(self.compiled(), limit_s=LIMIT_S)
        self.assertEqual(program.process.returncode, 0, program)
        for call in CALLS:
            self.assertIn(f"{call} cancelled\n", program.output(), program)


if __name__ == "__main__":
    harness.main()
