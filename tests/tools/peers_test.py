#!/usr/bin/env python3
"""./dev peers: how it recognizes trees, reads their output, and what its exit status says.

The tree here is a small one, and `verbena run` a script that runs the command behind it.
"""

import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("peers", "programs")]
import outputs  # noqa: E402
import run  # noqa: E402
import testing  # noqa: E402
import trees  # noqa: E402



def can_be_alone():
    return subprocess.run(run.alone(["true"]), stdin=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


UNITTEST = """test_a (tests.test_cq.CQTest.test_a) ... ok
test_b (tests.test_cq.CQTest)
What it is about. ... A line that the test prints
ok
test_c (tests.test_cq.CQTest.test_c) ... skipped 'No such device'
test_d (tests.test_cq.CQTest.test_d) ... FAIL
test_e (tests.test_cq.CQTest.test_e) ... ERROR
======
FAIL: test_b (tests.test_cq.CQTest) [bad]
"""
GTEST = """[ RUN      ] rc_verbs/test_rma.put/0
[       OK ] rc_verbs/test_rma.put/0 (3 ms)
[ RUN      ] rc_verbs/test_rma.get/0
[  FAILED  ] rc_verbs/test_rma.get/0, where GetParam() = 0 (3 ms)
[ RUN      ] ud/test.a
[  SKIPPED ] ud/test.a (0 ms)
[  PASSED  ] 1 test.
[  FAILED  ] 1 test, listed below:
"""
FABTESTS = """fi_msg -p "verbs":                                                       Pass
fi_rdm -p "verbs":                                                       Fail
fi_av_xfer -e rdm -p "verbs":                                          Notrun
"""


class Reading(unittest.TestCase):
    def test_unittest(self):
        score = outputs.unittest(UNITTEST)
        self.assertEqual(score.passed, {"test_cq.CQTest.test_a"})
        self.assertEqual(score.skipped, {"test_cq.CQTest.test_c"})
        self.assertEqual(score.failed, {f"test_cq.CQTest.test_{name}" for name in "bde"})

    def test_gtest(self):
        score = outputs.gtest(GTEST)
        self.assertEqual((score.passed, score.failed, score.skipped),
                         ({"rc_verbs/test_rma.put/0"}, {"rc_verbs/test_rma.get/0"}, {"ud/test.a"}))

    def test_fabtests(self):
        score = outputs.fabtests(FABTESTS)
        self.assertEqual((score.passed, score.failed, score.skipped),
                         ({'fi_msg -p "verbs"'}, {'fi_rdm -p "verbs"'}, {'fi_av_xfer -e rdm -p "verbs"'}))

    def test_what_runs_when_the_program_ends_early_has_failed(self):
        self.assertEqual(outputs.gtest("[ RUN      ] a.b\nKilled").failed, {"a.b"})
        self.assertEqual(outputs.unittest("test_a (tests.test_x.X.test_a) ... Killed").failed,
                         {"test_x.X.test_a"})


class Table(unittest.TestCase):
    def test_no_tree_has_the_files_of_another(self):
        for tree in trees.TREES:
            with self.subTest(tree.name), tempfile.TemporaryDirectory() as folder:
                for mark in tree.marks:
                    (pathlib.Path(folder) / mark).parent.mkdir(parents=True, exist_ok=True)
                    (pathlib.Path(folder) / mark).touch()
                self.assertIs(trees.recognize(pathlib.Path(folder)), tree)
                self.assertIs(trees.by_name(tree.name), tree)

    def test_an_address_is_for_this_run(self):
        self.assertRegex(run.own_address(), r"^127\.\d+\.\d+\.2$")


class Runs(unittest.TestCase):
    """Of a tree whose test program is a file of it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bin").mkdir()
        verbena = self.folder / "bin/verbena"
        verbena.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
        verbena.chmod(0o755)

    def peers(self, output, *arguments, **changes):
        """Returns the exit status and what is printed, of a tree whose tests print `output`."""
        tree = self.folder / "tree"
        tree.mkdir(exist_ok=True)
        (tree / "mark").write_text(output)
        entry = trees.Tree(**(dict(
            name="small", what="", marks=("mark",), needs=("sh",), made="mark",
            build=(("cp", "{source}/mark", "{build}/mark"),), tests=(("cat", "{build}/mark"),),
            read=outputs.gtest) | changes))
        printed = io.StringIO()
        with unittest.mock.patch.object(trees, "TREES", (entry,)), \
                unittest.mock.patch.object(run, "WORK", self.folder / "work"), \
                unittest.mock.patch.object(sys, "argv", ["peers", str(self.folder), *arguments]), \
                contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            return run.main(), printed.getvalue()

    def of_tree(self, output, *arguments, **changes):
        return self.peers(output, str(self.folder / "tree"), *arguments, **changes)

    def test_all_pass(self):
        status, printed = self.of_tree("[       OK ] a.b (1 ms)\n")
        self.assertEqual(status, 0, printed)
        self.assertEqual(printed.splitlines()[-1], "small: 1 passed, 0 failed (0 known), 0 skipped")

    def test_a_failure_is_named(self):
        status, printed = self.of_tree(GTEST)
        self.assertEqual(status, 1)
        self.assertIn("FAILED  rc_verbs/test_rma.get/0", printed)
        self.assertIn("small: 1 passed, 1 failed (0 known), 1 skipped", printed)

    def test_a_known_failure_has_a_reason(self):
        status, printed = self.of_tree(GTEST, known={"test_rma.get": "why it is"})
        self.assertEqual(status, 0, printed)
        self.assertIn("known   1 failed: why it is", printed)

    def test_no_test_is_a_failure(self):
        status, printed = self.of_tree("")
        self.assertEqual(status, 1)
        self.assertIn("no test ran", printed)

    def test_a_command_that_takes_too_long_is_ended(self):
        status, printed = self.of_tree("", tests=(("sleep", "60"),), limit_s=0.2)
        self.assertEqual(status, 1)
        self.assertIn("longer than 0.2 s", printed)

    @unittest.skipUnless(can_be_alone(), "this machine lets no process have namespaces of its own")
    def test_a_tree_that_needs_an_interface_is_alone(self):
        """With one interface beside lo, which is up, and no process of others."""
        script = ("ip -o address show dev net0 up | grep -c 'inet 10.77.0.1/24' && "
                  "ps -e -o comm= | sort | uniq | tr '\\n' ' ' && echo && echo '[       OK ] '$1 '(1 ms)'")
        status, printed = self.of_tree("", tests=(("sh", "-c", script, "sh", "{address}.b"),),
                                       alone=True)
        self.assertEqual(status, 0, printed)
        self.assertIn("small: 1 passed", printed)
        log = (self.folder / "work/small/tests.log").read_text().splitlines()
        self.assertEqual(log[0], "1")
        self.assertLessEqual(set(log[1].split()), {"ps", "sh", "sort", "tr", "uniq"})
        self.assertIn("10.77.0.1.b", log[2])

    def test_arguments_go_to_the_last_command(self):
        status, printed = self.of_tree("[       OK ] a.b (1 ms)\n", "--", "-n")
        self.assertEqual(status, 0, printed)
        self.assertIn("/mark -n", printed)

    def test_a_missing_build_dependency_is_named(self):
        for need in ("no-such-command", "no/such/header.h", "module:no_such_module"):
            status, printed = self.of_tree("", needs=("sh", need))
            self.assertEqual(status, 2)
            self.assertIn(f"not installed: {need}\n", printed)

    def test_a_build_that_fails_shows_why(self):
        status, printed = self.of_tree("", build=(("sh", "-c", "echo the reason; exit 3"),))
        self.assertEqual(status, 2)
        self.assertIn("the reason", printed)

    def test_a_build_that_lacks_what_debian_has_not_says_so_in_one_line(self):
        status, printed = self.of_tree("", lacks={"no lib.*Config": "it needs lib, which Debian lacks"},
                                       build=(("sh", "-c", "echo no libConfig.cmake; exit 1"),))
        self.assertEqual(status, 2)
        self.assertEqual(printed.splitlines()[-1],
                         "peers: this tree of small cannot be built: it needs lib, which Debian lacks")
        self.assertNotIn("no libConfig.cmake\n", printed)

    def test_a_name_runs_the_copy(self):
        status, printed = self.peers("", "small")
        self.assertEqual(status, 2)
        self.assertIn("no copy of small", printed)
        self.of_tree("[       OK ] a.b (1 ms)\n")
        status, printed = self.peers("not copied again", "small")
        self.assertEqual(status, 0, printed)

    def test_other_folders_and_names_are_refused(self):
        for given in (str(self.folder), "nothing"):
            status, printed = self.peers("", given)
            self.assertEqual(status, 2)
            self.assertIn("--list shows", printed)


if __name__ == "__main__":
    testing.main(argv=sys.argv[:1])
