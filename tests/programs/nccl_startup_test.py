#!/usr/bin/env python3
"""NCCL's way to a device on Verbena: nccl/startup.cc makes the calls of its InfiniBand transport, from
dlvsym() on, in two processes. Where its data is in GPU memory, that is the stand-in's for the CUDA
driver (tests/standin/): no result of this test is one of a GPU.

usage: nccl_startup_test.py [BUILD_DIR] [-k PATTERN]
"""

import atexit
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import harness

BUILD = harness.build_from_command_line()
SOURCE = pathlib.Path(__file__).parent / "nccl/startup.cc"


class NCCLStartupTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-nccl-test-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        cls.driver = folder / "libcuda.so.1"
        shutil.copy(BUILD.original / "tests/standin/libcuda.so.1", cls.driver)
        cls.driver.chmod(0o755)
        cls.program = folder / "startup"
        subprocess.run(["g++", "-std=c++20", "-O1", SOURCE, "-o", cls.program, "-ldl", "-pthread"],
                       check=True, stdin=subprocess.DEVNULL)

    def run_startup(self, *arguments, environment=None):
        program = BUILD.run(self.program, *arguments, environment=environment)
        self.assertEqual(program.process.returncode, 0, program)
        self.assertIn("sender: 20 messages", program.output())
        self.assertIn("receiver: 20 messages", program.output())
        self.assertNotIn("event:", program.output())
        return program.output()

    def test_two_processes(self):
        output = self.run_startup()
        self.assertIn("device verbena0 at /sys/devices/virtual/infiniband/verbena0,", output)
        self.assertIn("GID 0,", output)  # the first that is RoCEv2 over IPv4: all are here

    def test_several_devices(self):
        second = BUILD.address.removesuffix("1") + "2"
        self.run_startup(environment={"VERBENA_ADDRESS": f"{BUILD.address},{second}"})

    def test_data_in_gpu_memory(self):
        for registration in ("dmabuf", "iova2"):
            for local in ("on", "off"):
                with self.subTest(registration=registration, local=local):
                    self.run_startup(str(self.driver), registration,
                                     environment={"VERBENA_LOCAL": local})


if __name__ == "__main__":
    harness.main()
