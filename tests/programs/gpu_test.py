#!/usr/bin/env python3
"""Programs with GPU memory, on the stand-in for the CUDA driver (tests/standin/): no result of this
test is one of a GPU.

usage: gpu_test.py [BUILD_DIR] [-k PATTERN]
"""

import atexit
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness

BUILD = harness.build_from_command_line()
SOURCES = pathlib.Path(__file__).parent / "gpu"
RUN = pathlib.Path(__file__).parents[1] / "gpu/run.py"
LIMIT_S = 60


class GPUTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-gpu-test-"))
        atexit.register(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.folder.chmod(0o755)
        # A copy, which the user that the programs run as can read.
        cls.driver = cls.folder / "libcuda.so.1"
        shutil.copy(BUILD.original / "tests/standin/libcuda.so.1", cls.driver)
        cls.driver.chmod(0o755)

    def compiled(self, name):
        program = self.folder / name
        subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-D_GNU_SOURCE", SOURCES / f"{name}.c", "-o",
                        program, "-libverbs", "-lrdmacm", "-ldl", "-pthread"],
                       check=True, stdin=subprocess.DEVNULL)
        return program

    def test_two_processes(self):
        for local in ("on", "off"):
            with self.subTest(local=local):
                program = BUILD.run(self.compiled("transfer"), str(self.driver), limit_s=LIMIT_S,
                                    environment={"VERBENA_LOCAL": local})
                self.assertEqual(program.process.returncode, 0, program)
                self.assertIn("sent: right", program.output(), program)
                self.assertIn("written: right", program.output(), program)
                self.assertIn("write to freed memory: remote access error", program.output(),
                              program)
                self.assertIn("receiver: local access violation work queue error", program.output(),
                              program)
                self.assertRegex(program.output().replace("\n ", ""),
                                 r"the memory at \[0x[1-9a-f][0-9a-f]+, 0x[1-9a-f][0-9a-f]+\) is not there",
                                 program)

    def test_copies_on_the_gpu_between_two_processes(self):
        program = self.compiled("neighbours")
        for scenario in ("transfers", "deregistration", "refused", "killed", "reset"):
            with self.subTest(scenario=scenario):
                done = BUILD.run(program, str(self.driver), scenario, limit_s=LIMIT_S)
                self.assertEqual(done.process.returncode, 0, done)
                self.assertNotIn("wrong", done.output(), done)
                self.assertIn("right", done.output(), done)

    def test_ends_that_rdma_cm_connects(self):
        for link in ("udp", "iwarp"):
            with self.subTest(link=link):
                program = BUILD.run(self.compiled("connected"), str(self.driver), BUILD.address,
                                    limit_s=LIMIT_S, environment={"VERBENA_LINK": link})
                self.assertEqual(program.process.returncode, 0, program)
                for step in ("read back", "written", "written from GPU memory",
                             "copied on the GPU", "sent", "added",
                             "read of freed memory fails"):
                    self.assertIn(f"{step}: right", program.output(), program)

    def test_refusals_are_explained_in_a_line(self):
        program = BUILD.run(self.compiled("refusals"), str(self.driver), limit_s=LIMIT_S)
        self.assertEqual(program.process.returncode, 0, program)
        lines = program.output().splitlines()
        self.assertEqual([line for line in lines if line.startswith("E")],
                         ["EFAULT", "EFAULT", "ENOMEM", "ENODEV", "EFAULT", "EIO"], program)
        refused = [line for line in lines if "a memory registration is refused" in line]
        self.assertEqual(len(refused), 6, program)
        for why in ("crosses the end of its allocation", "begins outside of GPU memory",
                    "cannot be pinned", "the descriptor cannot be mapped", "across fork(2)",
                    "the CUDA context of the memory has ended"):
            self.assertEqual(sum(why in line for line in refused), 1, program)

    def test_bench_gpu_paths(self):
        for link in ("udp", "iwarp"):
            with self.subTest(link=link):
                done = BUILD.run_verbena("bench", "gpu-paths", "--driver", str(self.driver),
                                         "--size", "64K", "--count", "5",
                                         environment={"VERBENA_LINK": link})
                self.assertEqual(done.process.returncode, 0, done)
                for way in ("kernel_tcp", "host_rdma", "gpudirect", "cuda_ipc"):
                    self.assertRegex(done.output(), rf"(?m)^{way} +[0-9.]+ us +[0-9] ", done)

    def test_dev_gpu(self):
        result = subprocess.run(
            [sys.executable, RUN, BUILD.original, "--driver", self.driver, "--sizes", "4K"],
            capture_output=True, text=True, check=False, timeout=LIMIT_S)
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("Card and driver: stand-in (no GPU)", result.stdout)
        self.assertIn("Measured: stand-in (no GPU)", result.stdout)

    def test_without_a_driver_nothing_is_measured(self):
        result = subprocess.run([sys.executable, RUN, BUILD.original, "--driver", "libno-such-driver.so"],
                                capture_output=True, text=True, check=False, timeout=LIMIT_S)
        self.assertEqual(result.returncode, 77, result)
        self.assertEqual(len(result.stderr.splitlines()), 1, result)


if __name__ == "__main__":
    harness.main()
