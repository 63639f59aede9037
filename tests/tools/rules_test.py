#!/usr/bin/env python3
"""bench/rules.py: each rule of bench/rules.toml fits the tree, and bad arguments are refused. Nothing
is built or measured."""

import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import rules  # noqa: E402


class RulesTest(unittest.TestCase):
    def test_each_edit_fits_its_file(self):
        for rule in rules.read_rules():
            with self.subTest(rule.name):
                text = (ROOT / rule.file).read_text()
                self.assertNotEqual(rule.applied(text), text)

    def test_each_rule_is_described(self):
        page = (ROOT / "docs/architecture/progress.md").read_text()
        for rule in rules.read_rules():
            self.assertIn(f"`{rule.name}`", page)

    def test_a_ratio_below_one_means_that_the_rule_helps(self):
        latency, rate = (rules.perftest("ib_write_lat", "us"), rules.perftest("ib_write_bw", "M/s"))
        self.assertLess(rules.gain(latency, without_rule=4.0, with_rule=2.0), 1)
        self.assertLess(rules.gain(rate, without_rule=2.0, with_rule=4.0), 1)

    def test_an_unknown_rule_is_refused(self):
        done = subprocess.run([sys.executable, ROOT / "bench/rules.py", "nobody"], text=True,
                              capture_output=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no rule nobody", done.stderr)


if __name__ == "__main__":
    sys.argv = sys.argv[:1]  # without the build folder, which this test does not need
    unittest.main()
