#!/usr/bin/env python3
"""What bench/ makes of its figures: medians, ratios, goals, table, JSON, picture; and what it says to
bad arguments. Nothing is measured here."""

import json
import pathlib
import subprocess
import sys
import unittest
import xml.etree.ElementTree

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
import cases  # noqa: E402
import picture  # noqa: E402
import results  # noqa: E402


def line(unit, ours, theirs, goal):
    case = cases.Case("name", "veth", "WRITE <8> B", unit, "our program",
                      (cases.Peer("peer", "their program", goal),))
    return results.Line(case, results.Series(ours), [(case.peers[0], results.Series(theirs))])


class ResultsTest(unittest.TestCase):
    def test_the_ratio_is_the_median_of_the_rounds_ratios(self):
        measured = line("GB/s", [1.0, 4.0, 9.0], [1.0, 2.0, 3.0], 2.0)
        peer, series = measured.peers[0]
        self.assertEqual(measured.ratio(series), 2.0)
        self.assertTrue(measured.met(peer, series))

    def test_of_a_latency_less_is_better(self):
        measured = line("us", [3.0], [2.0], 1.4)
        peer, series = measured.peers[0]
        self.assertFalse(measured.met(peer, series))
        self.assertIn("<= 1.4: **not met**", results.table([measured]))

    def test_a_round_without_a_value_counts_on_neither_side(self):
        measured = line("M/s", [10.0, None, 30.0], [1.0, 1.0, None], 5)
        self.assertEqual(measured.ratio(measured.peers[0][1]), 10.0)
        nothing = line("M/s", [None], [1.0], 5)
        self.assertIsNone(nothing.ratio(nothing.peers[0][1]))
        self.assertIn("not measured", results.table([nothing]))

    def test_json_holds_every_value(self):
        measured = line("GB/s", [1.0, None], [2.0, 4.0], None)
        known = json.loads(json.dumps(results.as_json([measured], {"cores": 2})))
        self.assertEqual(known["cases"][0]["ours"], [1.0, None])
        self.assertEqual(known["cases"][0]["peers"][0]["values"], [2.0, 4.0])

    def test_the_picture_is_well_formed_and_shows_what_was_measured(self):
        image = picture.svg([line("us", [2.0], [4.0], None), line("us", [None], [4.0], None)], "a & b")
        root = xml.etree.ElementTree.fromstring(image)
        bars = [float(e.get("width")) for e in root.iter() if e.tag.endswith("rect")][1:]
        self.assertEqual(len(bars), 2)
        self.assertEqual(bars[0], 2 * bars[1])  # half the time, twice the bar

    def test_names_of_cases_are_unique(self):
        names = [case.name for case in cases.CASES]
        self.assertEqual(len(names), len(set(names)))


class CommandTest(unittest.TestCase):
    def run_bench(self, *arguments):
        return subprocess.run([sys.executable, BENCH / "run.py", "build/none", *arguments],
                              capture_output=True, text=True, check=False)

    def test_list(self):
        done = self.run_bench("--list", "--only", "wire-*")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("wire-write-1m", done.stdout)
        self.assertNotIn("local-", done.stdout)

    def test_bad_arguments(self):
        for arguments in (["--only", "nothing-*"], ["--runs", "0"], ["--runs", "x"], ["--nonsense"]):
            done = self.run_bench(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn("error:", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
