#!/usr/bin/env python3
"""What `verbena run` says on standard error where a call fails for a reason that errno does not tell.

usage: refused_calls_test.py [BUILD_DIR] [-k PATTERN]
"""

import atexit
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import harness

BUILD = harness.build_from_command_line()
SOURCES = pathlib.Path(__file__).parent / "refused"
LIMIT_S = 30
NO_GRH = "is refused: ah_attr has no GRH, which RoCE needs"
OTHER_LIBRARY = "and not Verbena's libibverbs, so it finds no device"


def folder_of_system_library():
    """Where the linker finds the system's libibverbs; None: nowhere."""
    found = subprocess.run(["gcc", "-print-file-name=libibverbs.so.1"], capture_output=True,
                           text=True, check=True).stdout.strip()
    return pathlib.Path(found).resolve().parent if "/" in found else None


class RefusedCallsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-refused-test-"))
        atexit.register(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.folder.chmod(0o755)

    def compiled(self, name, *options):
        program = self.folder / name
        subprocess.run(["gcc", "-O1", "-Wall", "-Werror", SOURCES / f"{name}.c", "-o", program,
                        "-libverbs", *options], check=True, stdin=subprocess.DEVNULL)
        return program

    def test_a_path_without_a_grh(self):
        program = BUILD.run(self.compiled("no_grh"), limit_s=LIMIT_S)
        self.assertEqual(program.process.returncode, 0, program)
        self.assertEqual(program.output().count(NO_GRH), 2, program)  # the same line is told once
        self.assertIn("verbena: ibv_modify_qp of QP 0x", program.output())
        self.assertIn("verbena: ibv_create_ah is refused", program.output())

    def test_nothing_is_said_where_nobody_wants_it(self):
        program = BUILD.run(self.compiled("no_grh"), limit_s=LIMIT_S,
                            environment={"VERBENA_EXPLAIN": "0"})
        self.assertEqual(program.process.returncode, 0, program)
        self.assertNotIn(NO_GRH, program.output(), program)

    def test_a_program_with_an_rpath(self):
        folder = folder_of_system_library()
        if folder is None:
            self.skipTest("the system has no libibverbs")
        program = BUILD.run(self.compiled("count_devices", "-Wl,--disable-new-dtags",
                                          f"-Wl,-rpath,{folder}"), limit_s=LIMIT_S)
        self.assertEqual(program.process.returncode, 0, program)
        self.assertEqual(program.output().count(OTHER_LIBRARY), 1, program)
        self.assertIn(f"this program has loaded {folder}/libibverbs.so.1", program.output())

    def test_nothing_is_said_of_programs_on_our_library(self):
        program = BUILD.run(self.compiled("count_devices"), limit_s=LIMIT_S)
        self.assertGreater(program.process.returncode, 0, program)
        self.assertEqual(program.output(), "", program)


if __name__ == "__main__":
    harness.main()
