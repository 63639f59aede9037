#!/usr/bin/env python3
"""The list of mutants fits the tree, and tests/mutants/ reads it as it says. Nothing is built.

A change that moves code which a mutant edits fails here: the mutant's text must move with it.
"""

import contextlib
import io
import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "mutants"))
import fast_set  # noqa: E402
import mutant_list  # noqa: E402
import run  # noqa: E402

ENTRY = """[[mutant]]
name = "a"
why = "b"
file = "src/base/c.cc"
find = '''x < y'''
replace = '''x <= y'''
"""


class TheList(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mutants = mutant_list.read_all()

    def test_has_at_least_forty(self):
        self.assertGreaterEqual(len(self.mutants), 40)

    def test_covers_each_layer(self):
        names = re.findall(r"^verbena_(?:layer|command)\((?:verbena LAYER )?(\w+)",
                           (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
        layers = {name for name in names if (ROOT / "src" / name).is_dir()}
        self.assertEqual(layers, set(mutant_list.LAYERS))
        self.assertEqual({mutant.layer for mutant in self.mutants}, layers)

    def test_names_are_unique(self):
        names = [mutant.name for mutant in self.mutants]
        self.assertEqual(sorted(set(names)), sorted(names))

    def test_each_edit_fits_its_file(self):
        for mutant in self.mutants:
            with self.subTest(mutant.name):
                self.assertTrue(mutant.file.startswith(f"src/{mutant.layer}/"))
                text = (ROOT / mutant.file).read_text()
                self.assertNotEqual(mutant.applied(text), text)
                self.assertNotIn("_test.cc", mutant.file)
                self.assertTrue(mutant.why.endswith("."))

    def test_each_meets_the_tests_it_names_or_those_of_its_layer_first(self):
        for mutant in self.mutants:
            with self.subTest(mutant.name):
                tests = [test.name for test in fast_set.tests_for(mutant, quick=True)]
                self.assertTrue(set(mutant.first) <= set(tests))
                if mutant.first:
                    self.assertEqual(tests[0], mutant.first[0])
                elif mutant.layer != "live":  # which has no unit test
                    self.assertIn(mutant.layer, tests[0])

    def test_the_first_are_spread_over_the_layers(self):
        first = mutant_list.select(self.mutants, [str(len(mutant_list.LAYERS))])
        self.assertEqual({mutant.layer for _, mutant in first}, set(mutant_list.LAYERS))


class Reading(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "base.toml").write_text(text)
            return mutant_list.read("base", pathlib.Path(folder))

    def test_an_entry(self):
        mutant, = self.read(ENTRY)
        self.assertEqual(mutant.applied("if (x < y) z;"), "if (x <= y) z;")

    def test_a_text_that_is_not_there_once_is_an_error(self):
        mutant, = self.read(ENTRY)
        for text in ("x > y", "x < y || x < y"):
            with self.assertRaises(mutant_list.ListError):
                mutant.applied(text)

    def test_wrong_entries_are_errors(self):
        for text in (ENTRY.replace("why", "because"), ENTRY.replace('"a"', "a"), ENTRY + "more = 1"):
            with self.assertRaises(mutant_list.ListError):
                self.read(text)

    def test_selection(self):
        mutants = mutant_list.read_all()
        self.assertEqual(len(mutant_list.select(mutants, [])), len(mutants))
        self.assertEqual([number for number, _ in mutant_list.select(mutants, ["3"])], [1, 2, 3])
        name = mutants[5].name
        self.assertEqual(mutant_list.select(mutants, [name]), [(6, mutants[5])])
        self.assertEqual({mutant.layer for _, mutant in mutant_list.select(mutants, ["host"])},
                         {"host"})
        for words in (["0"], [str(len(mutants) + 1)], ["nobody"]):
            with self.assertRaises(mutant_list.ListError):
                mutant_list.select(mutants, words)


class Verdicts(unittest.TestCase):
    def status(self, *verdicts):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            status = run.exit_status(list(verdicts))
        self.last_line = output.getvalue().splitlines()[-1]
        return status

    def test_two_of_forty_may_escape(self):
        self.assertEqual(self.status(*["caught"] * 38, *["not caught"] * 2), 0)
        self.assertEqual(self.last_line, "dev mutants: 38 caught, 2 not caught")
        self.assertEqual(self.status(*["caught"] * 37, *["not caught"] * 3), 1)

    def test_a_mutant_that_does_not_compile_is_an_error(self):
        self.assertEqual(self.status("caught", "does not compile"), 1)

    def test_the_failure_that_is_named(self):
        for output, failure in (("1: [  FAILED  ] RingTest.Fills (0 ms)\n", "RingTest.Fills"),
                                ("FAIL: test_tables (__main__.Sim.test_tables)\n", "test_tables"),
                                ("1/1 Test #1: a_test ...***Exception: SegFault  0.1 sec\n",
                                 "Exception"),
                                ("", "its exit status")):
            self.assertEqual(run.first_failure(output), failure)

    def test_a_command_that_takes_too_long_is_ended_with_what_it_has_started(self):
        run.adopt_orphans()
        with tempfile.TemporaryDirectory() as folder, \
                unittest.mock.patch.object(run, "TREE", pathlib.Path(folder)):
            self.assertEqual(run.run(["setsid", "sh", "-c", "sleep 60 & wait"], limit=0.5), (None, ""))
        self.assertEqual(run.descendants(), [])


if __name__ == "__main__":
    sys.argv = sys.argv[:1]  # without the build folder, which this test does not need
    unittest.main()
