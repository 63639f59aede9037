#!/usr/bin/env python3
"""Runs every command of docs/tutorial.md, in its order, and compares what it prints.

A line "..." of the page stands for any lines, "..." within a line for any text; the exit status is 0
unless a last line "(exit status N)" says otherwise.

usage: tutorial_test.py [BUILD_DIR] [-k PATTERN]
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import harness

BUILD = harness.build_from_command_line()
ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
LIMIT_S = 120
NEEDED = ("ibv_devinfo", "ib_write_bw", "cc")


def steps(text):
    """(command, lines that follow it) of each "$ ..." in blocks of consoles."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def pattern_of(lines):
    parts = []
    for line in lines:
        if line == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            words = (re.escape(word) for word in line.split("..."))
            parts.append(".*".join(words) + r"\s*\n")
    return re.compile("".join(parts) + r"\Z")


class TutorialTest(unittest.TestCase):
    def setUp(self):
        for program in NEEDED:
            if shutil.which(program, path=harness.PATH) is None:
                self.skipTest(f"{program} is not installed")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-tutorial-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o777)
        shutil.copytree(ROOT / "examples", self.folder / "examples")

    def run_step(self, command, lines):
        status = 0
        if lines and (said := re.fullmatch(r"\(exit status (\d+)\)", lines[-1])):
            status, lines = int(said.group(1)), lines[:-1]
        user, _ = harness.ordinary_user()
        environment = {**os.environ, "PATH": f"{BUILD.folder / 'bin'}:{harness.PATH}"}
        done = subprocess.run(["sh", "-c", command], cwd=self.folder, env=environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=LIMIT_S, **user)
        self.assertEqual(done.returncode, status, f"$ {command}\n{done.stdout}")
        self.assertRegex(done.stdout, pattern_of(lines), f"$ {command}")

    def test_every_command_does_what_the_page_says(self):
        commands = steps(PAGE.read_text())
        self.assertGreater(len(commands), 8)
        for command, lines in commands:
            with self.subTest(command=command):
                self.run_step(command, lines)


if __name__ == "__main__":
    harness.main()
