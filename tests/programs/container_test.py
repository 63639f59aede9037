#!/usr/bin/env python3
"""What Verbena needs of a container: no capability, and nothing that the engines' default seccomp
profiles refuse. A thorough run carries out packaging/container/Containerfile without an engine, with
the packages of build/packages (`./dev packages`).

usage: container_test.py [BUILD_DIR] [-k PATTERN]
"""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness
import testing

BUILD = harness.build_from_command_line()
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WITHOUT_ENGINE = ROOT / "packaging/container/without_engine.py"
PACKAGES = pathlib.Path(os.environ.get("VERBENA_PACKAGES", ROOT / "build/packages"))
LIMIT_S = 60


def engine():
    spec = importlib.util.spec_from_file_location("without_engine", WITHOUT_ENGINE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Confined(unittest.TestCase):
    """Two processes of one container, and by UDP, as two containers."""

    def confined(self, *command, environment=None):
        program = harness.Program(["python3", HERE / "without_privilege.py", *command],
                                  {"VERBENA_ADDRESS": BUILD.address} | (environment or {}))
        self.addCleanup(program.kill)
        return program

    def pair(self, *command, options=(), environment=None):
        port = harness.free_tcp_port()
        run = [*options, BUILD.verbena, "run", "--", *command, "-p", str(port)]
        server = self.confined(*run, environment=environment)
        harness.wait_until(lambda: server.ended() or harness.sockets("tcp", port, "0A"), LIMIT_S,
                           "the server listens")
        client = self.confined(*run, BUILD.address, environment=environment)
        self.assertEqual(client.wait(LIMIT_S), 0, f"{client}\n{server}")
        self.assertEqual(server.wait(LIMIT_S), 0, f"{client}\n{server}")

    def test_the_filter_refuses(self):
        program = self.confined("unshare", "--user", "true")
        self.assertNotEqual(program.wait(LIMIT_S), 0)
        self.assertIn("not permitted", program.output())

    def test_a_program_finds_its_device(self):
        program = self.confined(BUILD.verbena, "run", "--", "ibv_devinfo")
        self.assertEqual(program.wait(LIMIT_S), 0, program)
        self.assertIn("verbena0", program.output())

    def test_processes_of_one_container(self):
        self.pair("ibv_rc_pingpong", "-g", "3", "-c", "-n", "100")

    def test_processes_of_one_container_without_process_vm(self):
        self.pair("ibv_rc_pingpong", "-g", "3", "-c", "-n", "100", options=("--no-process-vm",))

    def test_packets_between_containers(self):
        self.pair("ib_write_bw", "-n", "100", environment={"VERBENA_LOCAL": "off"})


class Instructions(unittest.TestCase):
    def test_the_containerfile_is_read(self):
        build, last = engine().stages((ROOT / "packaging/container/Containerfile").read_text())
        self.assertEqual((build["name"], last["name"]), ("build", ""))
        words = [word for word, _ in last["steps"]]
        self.assertEqual(words, ["RUN", "USER", "ENTRYPOINT", "CMD"])  # one layer
        self.assertIn("/packages/verbena_*.deb", last["steps"][0][1])

    def test_continued_lines_and_comments(self):
        self.assertEqual(engine().instructions("# a\nRUN a && \\\n  b\n\n# c\nUSER 1\n"),
                         [("RUN", "a && b"), ("USER", "1")])

    def test_a_layer_holds_what_changed(self):
        before = {"/a": (1, 10, 100), "/b": (2, 10, 100)}
        after = {"/a": (1, 10, 100), "/b": (2, 11, 120), "/c": (3, 12, 7), "/hard link of c": (3, 12, 7)}
        self.assertEqual(engine().added_bytes(before, after), 127)


@testing.thorough
class Image(unittest.TestCase):
    def test_its_runtime_layer_is_small_and_its_command_runs(self):
        if shutil.which("mmdebstrap") is None or not list(PACKAGES.glob("verbena_*.deb")):
            self.skipTest("needs mmdebstrap and the packages of ./dev packages")
        with tempfile.TemporaryDirectory() as folder:
            image = pathlib.Path(folder, "image")
            done = subprocess.run([sys.executable, WITHOUT_ENGINE, "--packages", PACKAGES, image],
                                  capture_output=True, text=True, timeout=1200)
            self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-4000:])
            self.assertRegex(done.stdout, r"runtime layer: [1-5]?\d\.\d MB")
            self.assertRegex(done.stdout, r"hca_id:\s+verbena0")


if __name__ == "__main__":
    harness.main()
