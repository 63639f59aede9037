#!/usr/bin/env python3
"""`verbena run --check`: what it finds in programs that misuse the verbs (check/*.c), and that it finds
nothing in their twins, which do not. check_programs_test.py: nor in those that everybody uses.

usage: check_test.py [BUILD_DIR] [-k PATTERN]
"""

import atexit
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import harness

BUILD = harness.build_from_command_line()
SOURCES = pathlib.Path(__file__).parent / "check"
LIMIT_S = 60

# The mistake that is found in each program, and the function of the program that makes it.
WRONG = {
    "send_buffer": ("a buffer changed while it was being sent", "send_it"),
    "small_receive": ("a receive is too small for the message that came", "receive_it"),
    "never_receives": ("messages came to a queue pair that never had a receive", "main"),
    "region_in_use": ("a memory region was deregistered while work was using it", "let_go"),
    "memory_gone": ("memory was unmapped while it was registered", "send_it"),
    "unknown_key": ("an L_Key names no memory region", "send_it"),
    "other_domain": ("a memory region of another protection domain", "send_it"),
    "invalidated_key": ("an R_Key was used after it was invalidated", "write_it"),
    "unsignaled": ("a send queue is full of unsignaled work", "write_it"),
    "small_cq": ("a completion queue is too small for the work in flight", "write_it"),
    "wrong_state": ("work was posted in a state that takes none", "receive_it"),
    "skipped_state": ("ibv_modify_qp skips a state", "hurry"),
    "unaligned": ("an atomic operation is not on 8 aligned bytes", "add_to"),
    "overlap": ("two operations in flight write to the same memory", "read_to"),
    "unacknowledged": ("an object was destroyed before its events were acked", "finish"),
    "cm_unacknowledged": ("an object was destroyed before its events were acked", "finish"),
    "leak": ("an object was never destroyed", "make_it"),
    "cm_leak": ("an object was never destroyed", "make_it"),
}
ALL = "leaks,overlaps"  # beside what is always checked


def findings(output):
    """The paragraphs of the output, each as its title and its functions."""
    found = []
    for paragraph in output.split("\n\n"):
        title = re.search(r"verbena check: (.*)\n(?=  )", paragraph + "\n")
        if title:
            found.append((title[1], re.findall(r"^    (\w+)\+0x", paragraph, re.M)))
    return found


class CheckTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-check-test-"))
        atexit.register(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.folder.chmod(0o755)
        for name in WRONG:
            subprocess.run(["gcc", "-O1", "-Wall", "-Werror", SOURCES / f"{name}.c",
                            "-o", cls.folder / name, "-lrdmacm", "-libverbs", "-pthread"], check=True,
                           stdin=subprocess.DEVNULL)

    def check(self, name, how, *options):
        return BUILD.run_verbena("run", *options, "--", self.folder / name, how, limit_s=LIMIT_S)

    def test_what_is_wrong_is_found_where_it_is_done(self):
        for name, (title, function) in WRONG.items():
            with self.subTest(program=name):
                program = self.check(name, "wrong", f"--check={ALL}")
                self.assertEqual(program.process.returncode, 0, program)
                found = findings(program.output())
                stacks = [functions for what, functions in found if what == title]
                self.assertTrue(stacks, program)
                self.assertTrue(any(function in functions for functions in stacks), program)
                self.assertEqual({what for what, _ in found}, {title}, program)
                self.assertRegex(program.output(),
                                 rf"verbena check: {len(found)} findings?\n$")

    def test_nothing_is_found_in_their_right_twins(self):
        for name in WRONG:
            with self.subTest(program=name):
                program = self.check(name, "right", f"--check={ALL}")
                self.assertEqual((program.process.returncode, program.output()), (0, ""), program)

    def test_each_call_is_reported_once(self):
        program = self.check("wrong_state", "wrong", "--check")
        self.assertEqual(len(findings(program.output())), 2, program)  # a send, a receive

    def test_without_check_nothing_is_said(self):
        program = self.check("send_buffer", "wrong")
        self.assertEqual((program.process.returncode, program.output()), (0, ""), program)

    def test_fatal_aborts_at_the_first(self):
        program = self.check("send_buffer", "wrong", "--check=fatal")
        self.assertEqual(program.process.returncode, -signal.SIGABRT, program)
        self.assertEqual(len(findings(program.output())), 1, program)

    def test_an_exit_code_for_findings(self):
        for how, code in (("wrong", 42), ("right", 0)):
            program = self.check("send_buffer", how, "--check", "--check-exit-code", "42")
            self.assertEqual(program.process.returncode, code, program)

    def test_leaks_are_one_line_unless_asked_for(self):
        program = self.check("leak", "wrong", "--check")
        self.assertEqual(findings(program.output()), [], program)
        self.assertRegex(program.output(), r"^verbena check: left at exit: 1 CQ, 1 MR, 1 PD, 2 QP, ")
        self.assertEqual(len(program.output().splitlines()), 1, program)

    def test_wrong_words_are_one_line(self):
        for options in (("--check=everything",), ("--check", "--check-exit-code", "300")):
            done = BUILD.run_verbena("run", *options, "--", "true")
            self.assertEqual(done.process.returncode, 2, done)
            self.assertEqual(len(done.output().splitlines()), 1, done)


if __name__ == "__main__":
    harness.main()
