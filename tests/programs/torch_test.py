#!/usr/bin/env python3
"""torch.distributed on the backend verbena: each operation beside gloo, DistributedDataParallel, what
fails, torchrun, and the example that trains a small GPT.

usage: torch_test.py [BUILD_DIR] [-k PATTERN]
"""

import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import unittest

import children
import harness

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 and sys.argv[1][0] != "-" else "build/test")
harness.build_from_command_line()
HERE = pathlib.Path(__file__).resolve().parent
CASES = HERE / "torch" / "cases.py"
OWN = HERE / "torch" / "torchs_own.py"
TRAINING = HERE / "torch" / "training.py"
TRAIN = HERE.parent.parent / "examples" / "train_gpt.py"
PYTHON = "/usr/bin/python3"  # the backend is built for Debian's own
PACKAGE = BUILD.resolve() / "python"
LIMIT_S = 120


def is_missing():
    return not (PACKAGE / "verbena_torch" / "_backend.so").exists()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1",
            "VERBENA_ADDRESS": harness.ADDRESS, "PYTHONDONTWRITEBYTECODE": "1", **more}


def run_ranks(ranks, *arguments):
    """What each rank printed, and its exit status."""
    port = str(free_port())
    processes = [children.Child([PYTHON, *map(str, arguments)], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
                                env=environment(RANK=str(rank), WORLD_SIZE=str(ranks),
                                                MASTER_ADDR="127.0.0.1", MASTER_PORT=port))
                 for rank in range(ranks)]
    try:
        return [(process.communicate(timeout=LIMIT_S)[0], process.returncode)
                for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()


@unittest.skipIf(is_missing(), "verbena_torch is not built: no PyTorch was found")
class TorchTest(unittest.TestCase):
    def pass_cases(self, ranks, *cases):
        self.pass_cases_of(CASES, ranks, *cases)

    def pass_cases_of(self, program, ranks, *cases):
        for output, status in run_ranks(ranks, program, *cases):
            self.assertEqual(status, 0, output)
            self.assertIn("done", output.splitlines(), output)

    def test_two_ranks(self):
        self.pass_cases(2, "reductions", "movements", "exchanges", "messages", "overlapping",
                        "groups", "endings", "ddp")

    def test_three_ranks(self):
        self.pass_cases(3, "exchanges", "messages", "groups", "ddp")

    def test_what_training_programs_use(self):
        for ranks in (2, 3):
            self.pass_cases_of(TRAINING, ranks, "unused_parameters", "accumulation",
                               "uneven_inputs", "sharded_optimizer", "buffers", "objects",
                               "batches", "subsets", "missing")

    def test_four_ranks(self):
        self.pass_cases(4, "exchanges", "groups", "ddp")
        self.pass_cases_of(TRAINING, 4, "unused_parameters", "uneven_inputs", "batches", "subsets")

    def test_pytorchs_own(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([PYTHON, OWN], env=environment(TEMP_DIR=folder, WORLD_SIZE="3"),
                                  text=True, timeout=5 * LIMIT_S, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder)
        self.assertEqual(done.returncode, 0, done.stdout)
        ran, skipped = (int(re.search(what, done.stdout, re.MULTILINE)[1])
                        for what in (r"^Ran (\d+) tests", r"skipped=(\d+)"))
        self.assertGreater(ran - skipped, 80, done.stdout)

    def test_failures(self):
        self.pass_cases(2, "late", "timeouts", "patience", "mismatches")

    def test_torchrun_trains_as_gloo_does(self):
        """The loss curves of both backends, and of packets of which some are lost."""
        # torch 1.13 on Python 3.11 knows no other value of --redirects.
        command = [PYTHON, "-m", "torch.distributed.run", "--redirects", "1", "--tee", "1",
                   "--nproc_per_node", "2", "--master_port", str(free_port()), str(TRAIN),
                   "--steps", "8", "--compare", "--width", "32", "--layers", "1", "--batch", "4"]
        for more in ({}, {"VERBENA_FAULT": "loss 1%"}):
            done = subprocess.run(command, env=environment(**more), timeout=LIMIT_S, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn("the curves are the same", done.stdout)
            rates = re.findall(r"^\[default0\]:(gloo|verbena): +([0-9.,]+) tokens/s", done.stdout, re.MULTILINE)
            self.assertEqual({name for name, _ in rates}, {"gloo", "verbena"}, done.stdout)


if __name__ == "__main__":
    harness.main()
