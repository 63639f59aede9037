#!/usr/bin/env python3
"""The verbena command: what it runs, its exit statuses, and that what goes wrong is one line.

usage: cli_test.py [BUILD_DIR] [-k PATTERN]
"""

import os
import pathlib
import shutil
import stat
import subprocess
import tempfile
import unittest

import harness

BUILD = harness.build_from_command_line()


class CommandTest(unittest.TestCase):
    def run_verbena(self, *arguments, environment=None):
        return BUILD.run_verbena(*arguments, environment=environment)

    def succeeds(self, *arguments, environment=None):
        program = self.run_verbena(*arguments, environment=environment)
        self.assertEqual(program.process.returncode, 0, program)
        return program.output()

    def fails(self, status, needle, *arguments, environment=None):
        program = self.run_verbena(*arguments, environment=environment)
        self.assertEqual(program.process.returncode, status, program)
        lines = program.output().splitlines()
        self.assertEqual(len(lines), 1, program)
        self.assertTrue(lines[0].startswith("verbena: "), program)
        self.assertIn(needle, lines[0], program)


class UsageTest(CommandTest):
    def test_wrong_usage_is_one_line_and_status_2(self):
        for needle, arguments in {
                "a command is needed": [],
                "'frobnicate'": ["frobnicate"],
                "'--frobnicate'": ["--frobnicate"],
                "run needs a program": ["run", "--"],
                "'--adress'": ["run", "--adress", "127.0.0.1", "true"],
                "--address": ["run", "--address"],
                "'extra'": ["devices", "extra"],
                "'--xml'": ["devices", "--xml"]}.items():
            with self.subTest(arguments=arguments):
                self.fails(2, needle, *arguments)
                self.fails(2, "--help", *arguments)

    def test_help_reads_like_a_manual(self):
        for arguments in (["--help"], ["run", "--help"], ["devices", "-h"]):
            with self.subTest(arguments=arguments):
                output = self.succeeds(*arguments)
                for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "ENVIRONMENT", "EXIT STATUS",
                                "EXAMPLES", "VERBENA_ADDRESS"):
                    self.assertIn(section, output)
                self.assertLessEqual(max(map(len, output.splitlines())), 84)

    def test_version(self):
        self.assertRegex(self.succeeds("--version"), r"^verbena \d+\.\d+\.\d+\n$")

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([BUILD.verbena, "--help"], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, b"verbena: cannot write to standard output\n")


class RunTest(CommandTest):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-test-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.folder.chmod(0o755)

    def add(self, name, content, mode=0o755):
        path = self.folder / name
        path.write_bytes(content)
        path.chmod(mode)
        return path

    def test_status_and_arguments_are_the_program_s(self):
        self.assertEqual(self.run_verbena("run", "--", "sh", "-c", "exit 42").process.returncode, 42)
        self.assertEqual(self.succeeds("run", "printf", "%s|", "-a", "b c", "--", ""),
                         "-a|b c|--||")

    def test_environment(self):
        show = ["run", "--", "sh", "-c", "echo $LD_LIBRARY_PATH $VERBENA_ADDRESS"]
        folder = str(BUILD.library.parent)
        self.assertEqual(self.succeeds(*show), f"{folder} {harness.ADDRESS}\n")
        self.assertEqual(self.succeeds(*show, environment={"LD_LIBRARY_PATH": "/a:/b"}),
                         f"{folder}:/a:/b {harness.ADDRESS}\n")
        show[1:1] = ["--address", "127.0.0.2"]
        self.assertEqual(self.succeeds(*show), f"{folder} 127.0.0.2\n")

    def test_a_script_and_what_it_starts(self):
        script = self.add("script", b"#!/bin/sh\nexec ibv_devices\n")
        self.assertIn("verbena0", self.succeeds("run", script))

    def test_moved_tree(self):
        (self.folder / "bin").mkdir()
        (self.folder / "lib").mkdir()
        shutil.copy(BUILD.verbena, self.folder / "bin")
        shutil.copy(BUILD.library, self.folder / "lib")
        moved = harness.Program([self.folder / "bin/verbena", "run", "ibv_devices"],
                                {"VERBENA_ADDRESS": harness.ADDRESS})
        self.assertEqual(moved.wait(harness.START_LIMIT_S), 0, moved)
        self.assertIn("verbena0", moved.output())

    def test_library_missing_or_not_loadable(self):
        (self.folder / "bin").mkdir()
        (self.folder / "lib").mkdir()
        shutil.copy(BUILD.verbena, self.folder / "bin")
        for content, needle in ((None, "is missing"), (b"not a library", "cannot be loaded")):
            if content:
                self.add("lib/libibverbs.so.1", content)
            program = harness.Program([self.folder / "bin/verbena", "run", "true"],
                                      {"VERBENA_ADDRESS": harness.ADDRESS})
            self.assertEqual(program.wait(harness.START_LIMIT_S), 2, program)
            [line] = program.output().splitlines()
            self.assertIn(needle, line)

    def test_program_not_found_is_127(self):
        self.fails(127, "no-such-program", "run", "no-such-program")
        self.fails(127, "/no/such/program", "run", "--", "/no/such/program")

    def test_program_not_executable_is_126(self):
        self.fails(126, "Permission denied", "run", self.add("text", b"hello", 0o644))
        self.fails(126, "Is a directory", "run", self.folder)
        bad = self.add("bad", b"\x7fELF" + bytes(60))
        program = self.run_verbena("run", bad)
        self.assertIn(program.process.returncode, (2, 126), program)

    def test_bad_address(self):
        self.fails(2, "203.0.113.9", "run", "--address", "203.0.113.9", "true")
        self.fails(2, "203.0.113.9", "run", "true", environment={"VERBENA_ADDRESS": "203.0.113.9"})
        self.fails(2, "203.0.113.9", "devices", "--address", "203.0.113.9")

    def test_program_that_gains_privilege(self):
        su = pathlib.Path("/bin/su")
        if not su.exists() or not su.stat().st_mode & stat.S_ISUID:
            self.skipTest("no set-user-ID program on this machine")
        self.fails(2, "gains privilege", "run", su)

    def test_static_program_is_warned_of(self):
        static = next((p for p in ("/sbin/ldconfig", "/usr/sbin/ldconfig") if os.path.exists(p)), None)
        if static is None or b"ELF" not in pathlib.Path(static).read_bytes()[:4]:
            self.skipTest("no static program on this machine")
        program = self.run_verbena("run", "--", static, "--version")
        self.assertEqual(program.process.returncode, 0, program)
        self.assertIn("statically linked", program.output())


class DevicesTest(CommandTest):
    def test_text(self):
        output = self.succeeds("devices")
        for part in ("verbena0\n", "interface   lo", harness.ADDRESS, "port 1      active", "RoCE v2"):
            self.assertIn(part, output)

    def test_address_option_goes_first(self):
        others = [harness.ADDRESS.removesuffix("1") + last for last in "23"]
        output = self.succeeds("devices", "--address", ",".join(others))
        self.assertIn(others[0], output)
        self.assertIn("verbena1", output)


if __name__ == "__main__":
    harness.main()
